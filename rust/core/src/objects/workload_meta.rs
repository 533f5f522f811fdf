//! `metadata` of workloads (rules/01 §6).

use super::kinds::{Meta, OwnerReference, StringMap};
use super::time::Time;
use crate::base::key::Key;
use crate::base::shared::Shared;

/// `metadata` of a Workload.
#[derive(Clone, Debug, Default)]
pub struct WorkloadMeta {
    /// Namespace, name and UID.
    pub key: Key,
    pub created: Time,
    pub generation: i64,
    pub details: Shared<MetaDetails>,
}

/// Parts of a Workload's metadata that scheduling reads and many workloads lack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaDetails {
    pub labels: StringMap,
    pub annotations: StringMap,
    pub owners: Vec<OwnerReference>,
    pub deleting: bool,
}

impl From<Meta> for WorkloadMeta {
    fn from(meta: Meta) -> Self {
        let Meta { name, namespace, uid, created, generation, labels, annotations, owners, deleting } = meta;
        let details = MetaDetails { labels, annotations, owners, deleting };
        Self { key: Key::new(&namespace, &name, &uid), created, generation, details: Shared::of(details) }
    }
}

impl PartialEq for WorkloadMeta {
    fn eq(&self, other: &Self) -> bool {
        let facts = |meta: &Self| (meta.created, meta.generation);
        self.key.is_same(&other.key) && facts(self) == facts(other) && self.details == other.details
    }
}

impl Eq for WorkloadMeta {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_metadata_says_the_same_throughout() {
        let meta = |change: fn(&mut Meta)| {
            let mut meta = Meta { name: "w".to_owned(), namespace: "ns".to_owned(), ..Meta::default() };
            change(&mut meta);
            WorkloadMeta::from(meta)
        };
        let changes: [fn(&mut Meta); 7] = [
            |_| (),
            |it| it.name.push('x'),
            |it| it.uid.push('x'),
            |it| it.created = Time(1),
            |it| it.generation = 1,
            |it| it.labels.extend([("a".to_owned(), String::new())]),
            |it| it.deleting = true,
        ];
        for (n, a) in changes.iter().enumerate() {
            for (m, b) in changes.iter().enumerate() {
                assert_eq!(meta(*a) == meta(*b), n == m, "{n} and {m}");
            }
        }
    }
}
