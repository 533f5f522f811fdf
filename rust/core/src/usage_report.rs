//! Usage as the status of ClusterQueues and LocalQueues reports it (rules/02 §7).

use std::collections::BTreeSet;

use crate::amount::Amount;
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
/// `used` and `nominal` answer for (flavor, resource). `borrows` tells whether the ClusterQueue has a cohort; it is
/// false for a LocalQueue.
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
