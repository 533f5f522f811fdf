//! `metadata` of workloads (rules/01 §6).

#![allow(missing_docs)]

use super::kinds::{Meta, OwnerReference, StringMap, Time};
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

/// What scheduling reads of a Workload's metadata, and many have none of.
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
