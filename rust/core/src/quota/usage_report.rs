//! Usage as the status of ClusterQueues and LocalQueues reports it (rules/02 §7).

use std::collections::BTreeSet;

use crate::base::amount::Amount;
use crate::objects::ResourceGroup;

/// One entry of `flavorsReservation` or `flavorsUsage`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorUsage {
    /// Name of the flavor.
    pub name: String,
    /// Sorted by name; one entry for each covered resource of the group.
    pub resources: Vec<ResourceUsage>,
}

/// Usage of one resource of a flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceUsage {
    /// Name of the resource.
    pub name: String,
    /// All usage.
    pub total: Amount,
    /// The part of it above nominal quota; zero without a cohort. A LocalQueue's report has no such field.
    pub borrowed: Amount,
}

/// The usage per flavor, in the order of the resource groups.
///
/// `used` and `nominal` look up (flavor, resource). `borrows`: whether the ClusterQueue has a cohort; false for a
/// LocalQueue.
#[must_use]
pub fn flavor_usages(
    groups: &[ResourceGroup],
    borrows: bool,
    used: impl Fn(&str, &str) -> Amount,
    nominal: impl Fn(&str, &str) -> Amount,
) -> Vec<FlavorUsage> {
    let usage_of = |flavor: &str, resource: &str| {
        let total = used(flavor, resource);
        let over = total.minus(nominal(flavor, resource));
        let borrowed = if borrows { over.max(Amount::ZERO) } else { Amount::ZERO };
        ResourceUsage { name: resource.to_owned(), total, borrowed }
    };
    let mut report = Vec::new();
    for group in groups {
        let covered: BTreeSet<&str> = group.covered_resources.iter().map(String::as_str).collect();
        for flavor in &group.flavors {
            let resources = covered.iter().map(|resource| usage_of(&flavor.name, resource)).collect();
            report.push(FlavorUsage { name: flavor.name.clone(), resources });
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::FlavorQuotas;

    fn groups() -> Vec<ResourceGroup> {
        let group = |covered: &[&str], flavors: &[&str]| ResourceGroup {
            covered_resources: covered.iter().map(|r| (*r).to_owned()).collect(),
            flavors: flavors.iter().map(|f| FlavorQuotas { name: (*f).to_owned(), ..Default::default() }).collect(),
        };
        vec![group(&["memory", "cpu"], &["spot", "demand"]), group(&["gpu"], &["a"])]
    }

    fn report(borrows: bool) -> Vec<(String, String, i64, i64)> {
        let used = |flavor: &str, resource: &str| match (flavor, resource) {
            ("spot", "cpu") => Amount::new(13),
            ("spot", "memory") => Amount::new(7),
            ("a", "gpu") => Amount::UNLIMITED,
            _ => Amount::ZERO,
        };
        flavor_usages(&groups(), borrows, used, |_, _| Amount::new(10))
            .into_iter()
            .flat_map(|f| {
                f.resources.into_iter().map(move |r| (f.name.clone(), r.name, r.total.get(), r.borrowed.get()))
            })
            .collect()
    }

    fn rows(all: &[(&str, &str, i64, i64)]) -> Vec<(String, String, i64, i64)> {
        all.iter().map(|(f, r, t, b)| ((*f).to_owned(), (*r).to_owned(), *t, *b)).collect()
    }

    #[test]
    fn flavors_stand_as_declared_and_resources_by_name() {
        let expected = [
            ("spot", "cpu", 13, 3),
            ("spot", "memory", 7, 0),
            ("demand", "cpu", 0, 0),
            ("demand", "memory", 0, 0),
            ("a", "gpu", i64::MAX, i64::MAX),
        ];
        assert_eq!(report(true), rows(&expected));
    }

    #[test]
    fn nothing_is_borrowed_without_a_cohort() {
        assert!(report(false).iter().all(|row| row.3 == 0));
    }
}
