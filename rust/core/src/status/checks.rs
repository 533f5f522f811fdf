//! Admission checks: which ones a workload needs, and the list in its status (rules/07 §2, §3).

use std::collections::{BTreeMap, BTreeSet};

use crate::base::changes::{Change, Changes};
use crate::objects::{
    Admission, AdmissionCheckRule, AdmissionCheckState, CheckState, ClusterQueue, ResourceGroup, Time, Workload,
};

const SECOND_NS: i64 = 1_000_000_000;

/// The flavors of all resource groups.
#[must_use]
pub(crate) fn all_flavors(groups: &[ResourceGroup]) -> BTreeSet<&str> {
    groups.iter().flat_map(|group| &group.flavors).map(|flavor| flavor.name.as_str()).collect()
}

/// Maps check names to flavors; a rule without flavors applies to all of `flavors`.
///
/// If two rules name one check, the later one counts.
#[must_use]
pub(crate) fn flavors_by_check<'a>(
    rules: &'a [AdmissionCheckRule],
    flavors: &BTreeSet<&'a str>,
) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let of = |rule: &'a AdmissionCheckRule| {
        if rule.on_flavors.is_empty() { flavors.clone() } else { rule.on_flavors.iter().map(String::as_str).collect() }
    };
    rules.iter().map(|rule| (rule.name.as_str(), of(rule))).collect()
}

/// The checks that apply to some of the `assigned` flavors.
#[must_use]
pub(crate) fn checks_for_flavors(
    rules: &[AdmissionCheckRule],
    flavors: &BTreeSet<&str>,
    assigned: &BTreeSet<&str>,
) -> BTreeSet<String> {
    names(flavors_by_check(rules, flavors), |of_check| !of_check.is_disjoint(assigned))
}

/// The checks that a workload needed before those for all flavors were told apart (rules/07 §2).
fn checks_before(cluster_queue: &ClusterQueue, admission: Option<&Admission>) -> BTreeSet<String> {
    let flavors = all_flavors(&cluster_queue.resource_groups);
    let by_check = flavors_by_check(&cluster_queue.admission_checks, &flavors);
    if by_check.values().all(|of_check| *of_check == flavors) {
        return names(by_check, |_| true);
    }
    let assignments = admission.into_iter().flat_map(|admission| &*admission.pod_set_assignments);
    let assigned: BTreeSet<&str> = assignments.flat_map(|it| it.flavors.values()).map(String::as_str).collect();
    names(by_check, |of_check| !of_check.is_disjoint(&assigned))
}

/// The checks of `cluster_queue` that apply to some flavor of `admission`.
#[must_use]
pub(crate) fn checks_for_admission(
    cluster_queue: &ClusterQueue,
    admission: &Admission,
    changes: Changes,
) -> BTreeSet<String> {
    if cluster_queue.admission_checks.is_empty() {
        return BTreeSet::new();
    }
    if !changes.has(Change::ChecksOfAllFlavorsAreListed) {
        return checks_before(cluster_queue, Some(admission));
    }
    let assigned: BTreeSet<&str> =
        admission.pod_set_assignments.iter().flat_map(|p| p.flavors.values()).map(String::as_str).collect();
    if assigned.is_empty() && !changes.has(Change::FlavorlessAdmissionNeedsNoCheck) {
        return cluster_queue.admission_checks.iter().map(|rule| rule.name.clone()).collect();
    }
    checks_for_flavors(&cluster_queue.admission_checks, &all_flavors(&cluster_queue.resource_groups), &assigned)
}

/// The checks that `workload` needs: with an admission, those for its flavors; without one, those that apply to every
/// flavor of the ClusterQueue.
#[must_use]
pub fn required_checks(cluster_queue: &ClusterQueue, workload: &Workload, changes: Changes) -> BTreeSet<String> {
    if let Some(admission) = &workload.status.admission {
        return checks_for_admission(cluster_queue, admission, changes);
    }
    if cluster_queue.admission_checks.is_empty() {
        return BTreeSet::new();
    }
    if !changes.has(Change::ChecksOfAllFlavorsAreListed) {
        return checks_before(cluster_queue, None);
    }
    let flavors = all_flavors(&cluster_queue.resource_groups);
    names(flavors_by_check(&cluster_queue.admission_checks, &flavors), |of_check| of_check.is_superset(&flavors))
}

/// Is some check Retry or Rejected?
#[must_use]
pub(crate) fn has_retry_or_rejected_checks(workload: &Workload) -> bool {
    workload.status.rare.admission_checks.iter().any(|c| matches!(c.state, CheckState::Retry | CheckState::Rejected))
}

/// Is every check of the status Ready? True when there is none.
#[must_use]
pub(crate) fn has_all_checks_ready(workload: &Workload) -> bool {
    workload.status.rare.admission_checks.iter().all(|c| c.state == CheckState::Ready)
}

/// Are all `required` checks in the status, in any state?
#[must_use]
pub(crate) fn has_all_checks(workload: &Workload, required: &BTreeSet<String>) -> bool {
    required.iter().all(|name| workload.status.rare.admission_checks.iter().any(|c| c.name == *name))
}

/// The checks in this state, by name, as an eviction message lists them; `None` if there is none (rules/07 §3).
#[must_use]
pub(crate) fn describe_checks(workload: &Workload, state: CheckState) -> Option<String> {
    let mut checks: Vec<&AdmissionCheckState> =
        workload.status.rare.admission_checks.iter().filter(|c| c.state == state).collect();
    checks.sort_by(|a, b| a.name.cmp(&b.name));
    let noun = if checks.len() > 1 { "AdmissionChecks" } else { "AdmissionCheck" };
    let parts: Vec<String> =
        checks
            .iter()
            .map(|c| {
                if c.message.is_empty() { format!("\"{}\"", c.name) } else { format!("\"{}\" ({})", c.name, c.message) }
            })
            .collect();
    (!parts.is_empty()).then(|| format!("{noun} in {state:?} state: {}", parts.join("; ")))
}

/// The latest time until which a check in Retry wants to wait; `None` if there is none (rules/07 §3).
#[must_use]
pub(crate) fn retry_time(workload: &Workload) -> Option<Time> {
    let retries = workload.status.rare.admission_checks.iter().filter(|c| c.state == CheckState::Retry);
    let times = retries.filter(|c| c.last_transition != Time::ABSENT).filter_map(|c| {
        let after_ns = i64::from(c.requeue_after_seconds?).saturating_mul(SECOND_NS);
        Some(Time(c.last_transition.0.saturating_add(after_ns)))
    });
    times.max()
}

/// Makes `status.admissionChecks` list the required checks; returns whether it changed.
///
/// Missing checks are added as Pending. Others are dropped only if the list is then longer than the required set.
pub(crate) fn sync_admission_checks(workload: &mut Workload, required: &BTreeSet<String>, now: Time) -> bool {
    let listed = &workload.status.rare.admission_checks;
    let missing: Vec<AdmissionCheckState> = required
        .iter()
        .filter(|name| !listed.iter().any(|c| c.name == **name))
        .map(|name| AdmissionCheckState { name: name.clone(), last_transition: now, ..Default::default() })
        .collect();
    if missing.is_empty() && listed.len() <= required.len() {
        return false;
    }
    let checks = &mut workload.status.rare.admission_checks;
    checks.extend(missing);
    if checks.len() > required.len() {
        checks.retain(|c| required.contains(&c.name));
    }
    checks.sort_by(|a, b| a.name.cmp(&b.name));
    true
}

/// Sets the state of one check; the transition time changes with the state, retryCount stays (rules/07 §3).
///
/// Uses `new.last_transition` if set, else `now`. A check that is not listed is added as given.
pub fn set_check_state(checks: &mut Vec<AdmissionCheckState>, mut new: AdmissionCheckState, now: Time) {
    if new.last_transition == Time::ABSENT {
        new.last_transition = now;
    }
    let Some(old) = checks.iter_mut().find(|c| c.name == new.name) else {
        checks.push(new);
        return;
    };
    if old.state == new.state {
        new.last_transition = old.last_transition;
    }
    new.retry_count = old.retry_count;
    *old = new;
}

fn names(by_check: BTreeMap<&str, BTreeSet<&str>>, wanted: impl Fn(&BTreeSet<&str>) -> bool) -> BTreeSet<String> {
    by_check.into_iter().filter(|(_, flavors)| wanted(flavors)).map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{FlavorQuotas, PodSetAssignment};

    fn queue(flavors: &[&str], rules: &[(&str, &[&str])]) -> ClusterQueue {
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

    fn assigned(flavor: &str) -> Workload {
        let mut w = Workload::default();
        let flavors = [("cpu".to_owned(), flavor.to_owned())].into();
        let pod_set_assignments = vec![PodSetAssignment { flavors, ..Default::default() }];
        w.status.admission =
            Some(Admission { cluster_queue: "cq".into(), pod_set_assignments: pod_set_assignments.into() }.into());
        w
    }

    fn set_of(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|n| (*n).to_owned()).collect()
    }

    fn state(name: &str, state: CheckState) -> AdmissionCheckState {
        AdmissionCheckState { name: name.to_owned(), state, last_transition: Time(1), ..Default::default() }
    }

    #[test]
    fn a_check_is_required_for_its_flavors() {
        let rules: &[(&str, &[&str])] = &[("any", &[]), ("a", &["fa"]), ("both", &["fa", "fb"]), ("gone", &["fx"])];
        let cq = queue(&["fa", "fb"], rules);
        assert_eq!(required_checks(&cq, &assigned("fa"), Changes::default()), set_of(&["a", "any", "both"]));
        assert_eq!(required_checks(&cq, &assigned("fb"), Changes::default()), set_of(&["any", "both"]));
        // Without an admission, only checks that apply to any flavor.
        assert_eq!(required_checks(&cq, &Workload::default(), Changes::default()), set_of(&["any", "both"]));
        assert_eq!(required_checks(&queue(&["fa"], &[]), &assigned("fa"), Changes::default()), set_of(&[]));
    }

    #[test]
    fn syncing_adds_missing_checks_and_drops_others() {
        use CheckState::{Pending, Ready};
        let names = |checks: &[AdmissionCheckState]| -> Vec<(String, CheckState)> {
            checks.iter().map(|c| (c.name.clone(), c.state)).collect()
        };
        let named = |all: &[(&str, CheckState)]| -> Vec<(String, CheckState)> {
            all.iter().map(|(n, s)| ((*n).to_owned(), *s)).collect()
        };
        type States<'a> = &'a [(&'a str, CheckState)];
        let table: [(States<'_>, &[&str], States<'_>, bool); 6] = [
            (&[], &[], &[], false),
            (&[("a", Ready)], &[], &[], true),
            (&[("b", Ready)], &["a", "b"], &[("a", Pending), ("b", Ready)], true),
            (&[("a", Ready)], &["a"], &[("a", Ready)], false),
            (&[("old", Ready), ("a", Ready)], &["a"], &[("a", Ready)], true),
            (&[("old", Ready)], &["a"], &[("a", Pending)], true),
        ];
        for (before, required, after, changed) in table {
            let mut w = Workload::default();
            w.status.rare.admission_checks = before.iter().map(|(n, s)| state(n, *s)).collect();
            assert_eq!(sync_admission_checks(&mut w, &set_of(required), Time(7)), changed, "{before:?}");
            assert_eq!(names(&w.status.rare.admission_checks), named(after), "{before:?}");
        }
    }

    #[test]
    fn a_new_check_is_pending_since_now() {
        let mut w = Workload::default();
        sync_admission_checks(&mut w, &set_of(&["a"]), Time(7));
        assert_eq!(
            w.status.rare.admission_checks,
            vec![AdmissionCheckState { last_transition: Time(7), ..state("a", CheckState::Pending) }]
        );
    }

    #[test]
    fn a_new_state_moves_the_transition_time_and_keeps_the_retry_count() {
        let mut checks = vec![AdmissionCheckState { retry_count: Some(2), ..state("a", CheckState::Pending) }];
        let report =
            |s| AdmissionCheckState { message: "m".to_owned(), last_transition: Time::ABSENT, ..state("a", s) };
        set_check_state(&mut checks, report(CheckState::Pending), Time(5));
        assert_eq!((checks[0].last_transition, checks[0].message.as_str()), (Time(1), "m"));
        set_check_state(&mut checks, report(CheckState::Ready), Time(6));
        assert_eq!((checks[0].last_transition, checks[0].retry_count), (Time(6), Some(2)));
    }

    #[test]
    fn checks_are_ready_when_all_are_and_failed_when_one_is() {
        let mut w = Workload::default();
        assert!(has_all_checks_ready(&w) && !has_retry_or_rejected_checks(&w));
        w.status.rare.admission_checks = vec![state("a", CheckState::Ready), state("b", CheckState::Pending)];
        assert!(!has_all_checks_ready(&w) && !has_retry_or_rejected_checks(&w));
        assert!(has_all_checks(&w, &set_of(&["a", "b"])) && !has_all_checks(&w, &set_of(&["c"])));
        w.status.rare.admission_checks[1].state = CheckState::Rejected;
        assert!(has_retry_or_rejected_checks(&w));
    }
}
