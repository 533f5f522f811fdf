//! Whether a ClusterQueue may admit, and why not (rules/02 §5).

use std::collections::BTreeSet;

use crate::base::gates::{Gate, Gates};
use crate::objects::conditions::{MAX_CONDITION_MESSAGE, truncate};
use crate::objects::{AdmissionCheck, ClusterQueue, ResourceFlavor, StopPolicy};
use crate::status::checks::{all_flavors, flavors_by_check};

/// Controller name of MultiKueue checks.
pub(crate) const MULTI_KUEUE_CONTROLLER: &str = "kueue.x-k8s.io/multikueue";
/// Controller name of ProvisioningRequest checks.
pub(crate) const PROVISIONING_CONTROLLER: &str = "kueue.x-k8s.io/provisioning-request";

/// The status that decides whether a ClusterQueue takes part in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueStatus {
    /// It admits.
    Active,
    /// It does not, for now.
    Pending,
    /// It is being deleted.
    Terminating,
}

impl QueueStatus {
    /// `active`, `pending` or `terminating`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            QueueStatus::Active => "active",
            QueueStatus::Pending => "pending",
            QueueStatus::Terminating => "terminating",
        }
    }
}

/// The reasons of the condition Active.
pub(crate) const REASONS: [&str; 12] = [
    "NotFound",
    "Terminating",
    "Ready",
    "Stopped",
    "FlavorNotFound",
    "AdmissionCheckNotFound",
    "AdmissionCheckInactive",
    "MultipleMultiKueueAdmissionChecks",
    "MultiKueueAdmissionCheckAppliedPerFlavor",
    "MultiKueueWithProvisioningRequest",
    "TopologyNotFound",
    "CohortCycleDetected",
];

/// Status, and reason and message of condition Active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activeness {
    /// The condition Active is True exactly for `Active`.
    pub status: QueueStatus,
    /// Reason of the condition Active.
    pub reason: &'static str,
    /// Message of the condition Active.
    pub message: String,
}

impl Activeness {
    /// May the ClusterQueue admit?
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.status == QueueStatus::Active
    }
}

/// Lookups of the other objects that matter, by name.
pub struct Lookup<'a> {
    /// The ResourceFlavor.
    pub flavor: &'a dyn Fn(&str) -> Option<&'a ResourceFlavor>,
    /// The AdmissionCheck.
    pub check: &'a dyn Fn(&str) -> Option<&'a AdmissionCheck>,
    /// Does this Topology exist?
    pub has_topology: &'a dyn Fn(&str) -> bool,
    /// The cohort of the ClusterQueue, if a cycle of cohorts above it counts.
    pub cyclic_cohort: Option<&'a str>,
}

/// May this ClusterQueue admit, and if not, why? The message lists every cause; the first one is the reason.
#[must_use]
pub fn activeness(cluster_queue: &ClusterQueue, terminating: bool, lookup: &Lookup<'_>, gates: Gates) -> Activeness {
    if terminating {
        let message = "Can't admit new workloads; clusterQueue is terminating".to_owned();
        return Activeness { status: QueueStatus::Terminating, reason: "Terminating", message };
    }
    let checks = CheckFindings::of(cluster_queue, lookup);
    let missing_topologies = missing_topologies(cluster_queue, lookup, gates);
    let mut causes = basic_causes(cluster_queue, lookup, &checks);
    let cycle = lookup.cyclic_cohort.map(|name| format!("Cohort \"{name}\" has a cycle in hierarchy"));
    // A MultiKueue manager places nothing itself: a missing Topology is not a cause there, but appears in the message.
    if causes.is_empty() && cycle.is_none() && (missing_topologies.is_empty() || !checks.multi_kueue.is_empty()) {
        let message = "Can admit new workloads".to_owned();
        return Activeness { status: QueueStatus::Active, reason: "Ready", message };
    }
    for (flavor, topology) in missing_topologies {
        let text = format!("there is no Topology \"{topology}\" for TAS flavor \"{flavor}\"");
        causes.push(("TopologyNotFound", text));
    }
    // Kueue's place for it among several causes is not known.
    causes.extend(cycle.map(|text| ("CohortCycleDetected", text)));
    let texts: Vec<&str> = causes.iter().map(|(_, text)| text.as_str()).collect();
    let message = format!("Can't admit new workloads: {}.", texts.join(", "));
    let message = truncate(message, MAX_CONDITION_MESSAGE).to_string();
    Activeness { status: QueueStatus::Pending, reason: causes[0].0, message }
}

/// Rows 1 to 7 of the table, in order.
fn basic_causes(
    cluster_queue: &ClusterQueue,
    lookup: &Lookup<'_>,
    checks: &CheckFindings<'_>,
) -> Vec<(&'static str, String)> {
    let mut causes = Vec::new();
    if cluster_queue.stop_policy != StopPolicy::None {
        causes.push(("Stopped", "is stopped".to_owned()));
    }
    let missing: Vec<&str> = flavor_names(cluster_queue).filter(|name| (lookup.flavor)(name).is_none()).collect();
    if !missing.is_empty() {
        causes.push(("FlavorNotFound", format!("references missing ResourceFlavor(s): {}", missing.join(","))));
    }
    if !checks.missing.is_empty() {
        let names = checks.missing.join(",");
        causes.push(("AdmissionCheckNotFound", format!("references missing AdmissionCheck(s): {names}")));
    }
    if !checks.inactive.is_empty() {
        let names = checks.inactive.join(",");
        causes.push(("AdmissionCheckInactive", format!("references inactive AdmissionCheck(s): {names}")));
    }
    let multi = checks.multi_kueue.join(",");
    if checks.multi_kueue.len() > 1 {
        let text = format!("Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: {multi}");
        causes.push(("MultipleMultiKueueAdmissionChecks", text));
    }
    if !checks.per_flavor_multi_kueue.is_empty() {
        let names = checks.per_flavor_multi_kueue.join(",");
        let text = format!("Cannot specify MultiKueue AdmissionCheck per flavor, found: {names}");
        causes.push(("MultiKueueAdmissionCheckAppliedPerFlavor", text));
    }
    if !checks.multi_kueue.is_empty() && !checks.provisioning.is_empty() {
        let provisioning = checks.provisioning.join(",");
        let what = "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together";
        causes.push(("MultiKueueWithProvisioningRequest", format!("{what}, found: {multi}, {provisioning}")));
    }
    causes
}

/// Findings about the checks of a ClusterQueue; names sorted.
#[derive(Default)]
struct CheckFindings<'a> {
    missing: Vec<&'a str>,
    inactive: Vec<&'a str>,
    multi_kueue: Vec<&'a str>,
    per_flavor_multi_kueue: Vec<&'a str>,
    provisioning: Vec<&'a str>,
}

impl<'a> CheckFindings<'a> {
    fn of(cluster_queue: &'a ClusterQueue, lookup: &Lookup<'_>) -> Self {
        let mut found = Self::default();
        let flavors = all_flavors(&cluster_queue.resource_groups);
        for (name, of_check) in flavors_by_check(&cluster_queue.admission_checks, &flavors) {
            let Some(check) = (lookup.check)(name) else {
                found.missing.push(name);
                continue;
            };
            if !check.active {
                found.inactive.push(name);
            }
            match check.controller_name.as_str() {
                PROVISIONING_CONTROLLER => found.provisioning.push(name),
                MULTI_KUEUE_CONTROLLER => {
                    found.multi_kueue.push(name);
                    if of_check != flavors {
                        found.per_flavor_multi_kueue.push(name);
                    }
                }
                _ => {}
            }
        }
        found
    }
}

/// (flavor, Topology) for each flavor whose Topology is missing, in declaration order; Kueue's order is undefined.
fn missing_topologies<'q, 'f>(
    cluster_queue: &'q ClusterQueue,
    lookup: &Lookup<'f>,
    gates: Gates,
) -> Vec<(&'q str, &'f str)> {
    if !gates.enabled(Gate::TopologyAwareScheduling) {
        return Vec::new();
    }
    let mut seen = BTreeSet::new();
    flavor_names(cluster_queue)
        .filter(|name| seen.insert(*name))
        .filter_map(|name| (lookup.flavor)(name).map(|flavor| (name, flavor.topology_name.as_str())))
        .filter(|(_, topology)| !topology.is_empty() && !(lookup.has_topology)(topology))
        .collect()
}

fn flavor_names(cluster_queue: &ClusterQueue) -> impl Iterator<Item = &str> {
    cluster_queue.resource_groups.iter().flat_map(|group| &group.flavors).map(|flavor| flavor.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{AdmissionCheckRule, FlavorQuotas, ResourceGroup};

    /// Check names and the flavors that they are restricted to.
    type Rules<'a> = &'a [(&'a str, &'a [&'a str])];

    const FLAVORS: &[&str] = &["f", "tas"];

    /// Looks up in a world with flavors `f` and `tas` (Topology `t`), and the checks below.
    fn in_world(cq: &ClusterQueue, terminating: bool, topology: bool, gates: Gates) -> Activeness {
        let plain = ResourceFlavor::default();
        let tas = ResourceFlavor { topology_name: "t".to_owned(), ..Default::default() };
        let check = |active, controller: &str| AdmissionCheck {
            active,
            controller_name: controller.to_owned(),
            ..Default::default()
        };
        let checks = [
            ("good", check(true, "c")),
            ("idle", check(false, "c")),
            ("mk1", check(true, MULTI_KUEUE_CONTROLLER)),
            ("mk2", check(true, MULTI_KUEUE_CONTROLLER)),
            ("prov", check(true, PROVISIONING_CONTROLLER)),
        ];
        let lookup = Lookup {
            cyclic_cohort: None,
            flavor: &|name| match name {
                "f" => Some(&plain),
                "tas" => Some(&tas),
                _ => None,
            },
            check: &|name| checks.iter().find(|(n, _)| *n == name).map(|(_, c)| c),
            has_topology: &|_| topology,
        };
        activeness(cq, terminating, &lookup, gates)
    }

    fn queue(flavors: &[&str], rules: Rules<'_>) -> ClusterQueue {
        let flavors = flavors.iter().map(|f| FlavorQuotas { name: (*f).to_owned(), ..Default::default() }).collect();
        let rule = |(name, on): &(&str, &[&str])| AdmissionCheckRule {
            name: (*name).to_owned(),
            on_flavors: on.iter().map(|f| (*f).to_owned()).collect(),
        };
        ClusterQueue {
            resource_groups: vec![ResourceGroup { flavors, ..Default::default() }],
            admission_checks: rules.iter().map(rule).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn each_cause_has_its_reason_and_text() {
        let table: [(&[&str], Rules<'_>, &str, &str); 9] = [
            (FLAVORS, &[("good", &["f"])], "Ready", "Can admit new workloads"),
            (&["y", "f", "x"], &[], "FlavorNotFound", "references missing ResourceFlavor(s): y,x"),
            (FLAVORS, &[("y", &[]), ("x", &[])], "AdmissionCheckNotFound", "references missing AdmissionCheck(s): x,y"),
            (FLAVORS, &[("idle", &[])], "AdmissionCheckInactive", "references inactive AdmissionCheck(s): idle"),
            (
                FLAVORS,
                &[("mk2", &[]), ("mk1", &[])],
                "MultipleMultiKueueAdmissionChecks",
                "Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: mk1,mk2",
            ),
            (
                FLAVORS,
                &[("mk1", &["f"])],
                "MultiKueueAdmissionCheckAppliedPerFlavor",
                "Cannot specify MultiKueue AdmissionCheck per flavor, found: mk1",
            ),
            (FLAVORS, &[("mk1", &["f", "tas"])], "Ready", "Can admit new workloads"),
            (
                FLAVORS,
                &[("mk1", &[]), ("prov", &["f"])],
                "MultiKueueWithProvisioningRequest",
                "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found: mk1, prov",
            ),
            (
                &["x"],
                &[("y", &[])],
                "FlavorNotFound",
                "references missing ResourceFlavor(s): x, references missing AdmissionCheck(s): y",
            ),
        ];
        for (flavors, rules, reason, text) in table {
            let found = in_world(&queue(flavors, rules), false, true, Gates::default());
            let message =
                if reason == "Ready" { text.to_owned() } else { format!("Can't admit new workloads: {text}.") };
            assert_eq!((found.reason, found.message), (reason, message));
            assert_eq!(found.status == QueueStatus::Active, reason == "Ready");
        }
    }

    #[test]
    fn terminating_outranks_stopped_and_stopped_every_other_reason() {
        for stop_policy in [StopPolicy::Hold, StopPolicy::HoldAndDrain] {
            let cq = ClusterQueue { stop_policy, ..queue(&["x"], &[]) };
            let found = in_world(&cq, false, true, Gates::default());
            let message = "Can't admit new workloads: is stopped, references missing ResourceFlavor(s): x.";
            assert_eq!((found.reason, found.message.as_str()), ("Stopped", message));
            assert_eq!(in_world(&cq, true, true, Gates::default()).reason, "Terminating");
        }
    }

    #[test]
    fn a_missing_topology_deactivates_only_with_its_gate_and_without_multi_kueue() {
        let alone = queue(FLAVORS, &[]);
        let found = in_world(&alone, false, false, Gates::default());
        let text = "there is no Topology \"t\" for TAS flavor \"tas\"";
        assert_eq!(found.reason, "TopologyNotFound");
        assert_eq!(found.message, format!("Can't admit new workloads: {text}."));
        let off = Gates::default().with(Gate::TopologyAwareScheduling, false);
        assert!(in_world(&alone, false, false, off).is_active());
        assert!(in_world(&queue(FLAVORS, &[("mk1", &[])]), false, false, Gates::default()).is_active());
        // If another cause makes it pending, the message still mentions it.
        let pending = queue(FLAVORS, &[("mk1", &[]), ("idle", &[])]);
        assert!(in_world(&pending, false, false, Gates::default()).message.ends_with(&format!("{text}.")));
    }
}
