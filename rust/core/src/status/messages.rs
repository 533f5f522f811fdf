//! Kueue's texts: those for message codes, and fixed ones. No other file of the cycle contains such text.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::base::amount::Amount;
use crate::base::ids::ResourceId;
use crate::base::names::Lexicon;
use crate::base::text::Text;
use crate::objects::conditions::{MAX_CONDITION_MESSAGE, truncate};
use crate::objects::message::{
    Blocker, Considered, ConsideredFlavor, Message, Misfit, NoFit, Path, Preemption, Queue, Reason, Why,
};
use crate::objects::resource_names::quantity_from_value;
use crate::objects::{Condition, MetaDetails, WorkloadMeta};
use crate::status::reasons;

const SECOND_NS: i64 = 1_000_000_000;

/// Label with the UID of a workload's job.
pub(crate) const JOB_UID_LABEL: &str = "kueue.x-k8s.io/job-uid";
/// Condition and event messages of skipped entries (rules/05 §6).
pub(crate) const FAILED_CHECKS: &str = "The workload has failed admission checks";
/// The namespace does not match the selector of the ClusterQueue.
pub(crate) const NAMESPACE_MISMATCH: &str = "workload namespace doesn't match ClusterQueue selector";
pub(crate) const NAMESPACE_MISMATCH_WITH_CAPITAL: &str = "Workload namespace doesn't match ClusterQueue selector";
/// The namespace does not exist, until change NamespaceTextIsLowerCase.
pub(crate) fn could_not_obtain_namespace(name: &str) -> String {
    format!("Could not obtain workload namespace: Namespace \"{name}\" not found")
}
/// Other entries of the cycle took what it needs.
pub(crate) const NO_LONGER_FITS: &str = "Workload no longer fits after processing another workload";
/// A preemption gate is closed.
pub(crate) const PREEMPTION_GATED: &str = "Workload requires preemption, but it's gated";
/// Its targets are victims of another entry.
pub(crate) const OVERLAPPING_TARGETS: &str = "Workload has overlapping preemption targets with another workload";
/// It fits once the victims of other entries are gone.
pub(crate) const FITS_AFTER_PREEMPTIONS: &str = "Workload has overlapping preemption targets with another workload, but will \
                                          fit after these preemptions complete";
/// Not all admitted workloads have ready pods.
pub(crate) const WAITING_FOR_PODS_READY: &str = "waiting for all admitted workloads to be in PodsReady condition";

/// Another variant already has a better flavor (rules/09 §4.4).
pub(crate) const PREFERRED_VARIANT_ADMITTED: &str = "A more favorable variant is already admitted";
/// The ClusterQueue allows no migration to this flavor.
pub(crate) const BELOW_LAST_ACCEPTABLE_FLAVOR: &str = "Target flavor is below LastAcceptableFlavorName";

/// `spec.active` is false.
pub(crate) const DEACTIVATED: &str = "The workload is deactivated";
/// Parked with an equivalent workload that failed.
pub(crate) const BYPASSED: &str = "Bypassed scheduling evaluation because an equivalent workload recently failed";
/// Not evaluated yet, or due for another evaluation.
pub(crate) const PENDING_EVALUATION: &str = "Workload is pending evaluation in the scheduling queue";

/// The message of a variant evicted in favor of one with a better flavor (rules/09 §4.4).
pub(crate) fn migrated(uid: &str) -> String {
    format!("Evicted to accommodate a workload (UID: {uid}) due to migration to more favorable resource flavor")
}

/// The message of a slice that is finished because `successor` has its quota (rules/09 §2.3).
pub(crate) fn slice_replaced(successor: &WorkloadMeta) -> String {
    format!(
        "Replaced to accommodate a workload (UID: {}, JobUID: {}) due to workload slice aggregation",
        successor.key.uid(),
        job_uid(&successor.details),
    )
}

/// The message of a second pass whose ClusterQueue is gone (rules/05 §6.1).
pub(crate) fn queue_not_found(queue: &str) -> String {
    format!("ClusterQueue {queue} not found")
}

/// The message of an eviction because failed hosts have no replacement (rules/08 §11.7).
pub(crate) fn no_replacement(nodes: &str) -> String {
    format!("Workload was evicted as there was no replacement for unhealthy node(s): {nodes}")
}

/// The message of an eviction because only one failed host is replaced (rules/08 §13.3).
pub(crate) fn several_nodes_failed(failed: &[String], node: &str) -> String {
    let named = failed.join(", ");
    format!("Workload eviction triggered due to multiple TAS assigned node failures, including: {named}, {node}")
}

impl Message {
    /// The text. Conditions and events may cut it: see [`Message::cut`].
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Message::Text(text) => Cow::Borrowed(text),
            code => Cow::Owned(code.to_string()),
        }
    }

    /// The text in at most `limit` bytes.
    pub fn cut(&self, limit: usize) -> Text {
        match self {
            Message::Text(text) => truncate(text.clone(), limit),
            code => truncate(code.to_string(), limit),
        }
    }
}

impl Condition {
    /// The message as shown in the condition.
    pub fn text(&self) -> Text {
        self.message.cut(MAX_CONDITION_MESSAGE)
    }
}

/// As the message of a condition.
impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.cut(MAX_CONDITION_MESSAGE))
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Text(text) => f.write_str(text),
            Message::QuotaReserved(queue) => write!(f, "Quota reserved in ClusterQueue {queue}"),
            Message::QuotaReservedAfter { queue, wait_ns } => write_quota_reserved(f, queue, *wait_ns),
            Message::QuotaReservedAmong(considered) => {
                write_quota_reserved(f, &considered.queue, considered.wait_ns)?;
                write!(f, "; Flavors considered: {}", considered_flavors(considered))
            }
            Message::AdmittedBy { queue, wait_ns } => {
                write!(f, "Admitted by ClusterQueue {queue}, wait time since reservation was {}s", seconds(*wait_ns))
            }
            Message::NoFit(no_fit) => write_no_fit(f, no_fit),
            Message::PendingPreemptions(what, n) => write!(f, "{what}. Pending the preemption of {n} workload(s)"),
            Message::PendingMigration(what) => write!(f, "{what}. Pending the migration of 1 workload(s)"),
            Message::Blocked(queue, blocker) => {
                let (kind, name) = match queue {
                    Queue::Local(name) => ("LocalQueue", name),
                    Queue::Cluster(name) => ("ClusterQueue", name),
                };
                let what = match blocker {
                    Blocker::Missing => "doesn't exist",
                    Blocker::Inactive => "is inactive",
                    Blocker::Gone => "is terminating or missing",
                    Blocker::Stopped => "is stopped",
                };
                write!(f, "{kind} {name} {what}")
            }
            Message::GatedBy(by) => write!(f, "Admission is gated by: {by}"),
            Message::NamespaceMissing(namespace) => {
                write!(f, "workload namespace \"{namespace}\" does not exist: Namespace \"{namespace}\" not found")
            }
            Message::Preempted(it) => write_preempted(f, it),
            Message::PreemptedWithPriorities(it) => {
                write_preempted(f, it)?;
                write_priorities(f, it)
            }
            Message::PreemptedFor(it) => {
                let (who, queue) = (&it.preemptee, it.lexicon.queue(it.preemptee_path.queue));
                write!(f, "Preempted workload {who} (UID: {}) in ClusterQueue {queue}", who.uid())?;
                write_priorities(f, it)
            }
            Message::Previously(what) => write!(f, "Previously: {what}"),
            Message::DeactivatedDueTo(what) => write!(f, "{DEACTIVATED} due to {what}"),
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), f)
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        // One may have been read back as text. In conditions both are cut.
        let reads_the_same = || self.cut(MAX_CONDITION_MESSAGE) == other.cut(MAX_CONDITION_MESSAGE);
        let is_same = self.says_the_same(other).unwrap_or_else(reads_the_same);
        debug_assert!(!is_same || reads_the_same(), "equal codes read the same");
        is_same
    }
}

impl Eq for Message {}

impl Default for Message {
    fn default() -> Self {
        Message::Text(Text::default())
    }
}

impl From<Text> for Message {
    fn from(text: Text) -> Self {
        Message::Text(text)
    }
}

impl From<&'static str> for Message {
    fn from(text: &'static str) -> Self {
        Message::Text(text.into())
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Message::Text(text.into())
    }
}

fn write_quota_reserved(f: &mut fmt::Formatter<'_>, queue: &str, wait_ns: i64) -> fmt::Result {
    write!(f, "Quota reserved in ClusterQueue {queue}, wait time since queued was {}s", seconds(wait_ns))
}

/// Whole seconds formatted as by `%.0f`, ties to even.
fn seconds(ns: i64) -> String {
    // For waits of many days, Kueue's float may round a half the other way.
    if !(0..1 << 50).contains(&ns) {
        return format!("{:.0}", ns as f64 / 1e9);
    }
    let (whole, rest) = (ns / SECOND_NS, ns % SECOND_NS);
    let up = rest > SECOND_NS / 2 || (rest == SECOND_NS / 2 && whole % 2 == 1);
    (whole + i64::from(up)).to_string()
}

/// A quantity of a resource as Kueue prints it.
fn quantity(lexicon: &Lexicon, resource: ResourceId, value: i64) -> String {
    quantity_from_value(lexicon.resource(resource), value, false).text().into_owned()
}

/// An amount of a resource; the sentinel prints `<unlimited>`.
fn amount(lexicon: &Lexicon, resource: ResourceId, amount: Amount) -> String {
    if amount.is_unlimited() { amount.to_string() } else { quantity(lexicon, resource, amount.get()) }
}

/// One reason in Kueue's words (rules/03 §3 to §5).
pub fn reason(lexicon: &Lexicon, reason: &Reason) -> String {
    let flavor = |id| lexicon.flavor(id);
    match *reason {
        Reason::ResourceUnavailable(resource) => {
            format!("resource {} unavailable in ClusterQueue", lexicon.resource(resource))
        }
        Reason::FlavorNotFound(id) => format!("flavor {} not found", flavor(id)),
        Reason::NotNominated(id, resource) => format!(
            "skipping flavor {} as it is not found in the nomination mapping for resource {}",
            flavor(id),
            lexicon.resource(resource)
        ),
        Reason::NotAllowed(id) => {
            format!("skipping flavor {} due to WorkloadAllowedResourceFlavorAnnotation annotation", flavor(id))
        }
        Reason::TopologyUnsupported(id) => {
            format!("Flavor \"{}\" does not support TopologyAwareScheduling", flavor(id))
        }
        Reason::TopologyUnknown(id) => format!("Flavor \"{}\" information missing in TAS cache", flavor(id)),
        Reason::LevelUnknown(id) => format!("Flavor \"{}\" does not contain the requested level", flavor(id)),
        Reason::NoPlace(ref why) => why.to_string(),
        Reason::TopologyOnly(id) => format!("Flavor \"{}\" supports only TopologyAwareScheduling", flavor(id)),
        Reason::UntoleratedTaint(id, ref taint) => format!(
            "untolerated taint {{{} {} {} <nil>}} in flavor {}",
            taint.key,
            taint.value,
            taint.effect,
            flavor(id)
        ),
        Reason::AffinityMismatch(id) => format!("flavor {} doesn't match node affinity", flavor(id)),
        Reason::ExceedsMaximum { fr, assumed, requested, maximum } => {
            let (id, resource) = lexicon.parts(fr);
            format!(
                "insufficient quota for {} in flavor {}, previously considered podsets requests ({}) + current podset request \
                 ({}) > maximum capacity ({})",
                lexicon.resource(resource),
                flavor(id),
                amount(lexicon, resource, assumed),
                quantity(lexicon, resource, requested),
                amount(lexicon, resource, maximum),
            )
        }
        Reason::Insufficient { fr, missing } => {
            let (id, resource) = lexicon.parts(fr);
            format!(
                "insufficient unused quota for {} in flavor {}, {} more needed",
                lexicon.resource(resource),
                flavor(id),
                amount(lexicon, resource, missing),
            )
        }
        Reason::BorrowingWaits(fr) => {
            let (id, resource) = lexicon.parts(fr);
            format!(
                "{} in flavor {} was reclaimed and is not borrowed again yet (experiment reclaimBackoffSeconds, not in Kueue)",
                lexicon.resource(resource),
                flavor(id),
            )
        }
        Reason::ReplacedSliceFlavor(id, original) => format!(
            "could not assign {} flavor since the original workload is assigned: {}",
            flavor(id),
            original.map_or("", flavor)
        ),
        Reason::ResourceNotProvided(id, resource) => {
            format!("flavor {} does not provide resource {}", flavor(id), lexicon.resource(resource))
        }
    }
}

/// Reasons in Kueue's words, sorted (rules/03 §7).
pub fn sorted_reasons(lexicon: &Lexicon, reasons: &[Reason]) -> Vec<String> {
    let mut texts: Vec<String> = reasons.iter().map(|it| reason(lexicon, it)).collect();
    texts.sort();
    texts
}

/// The reasons of an attempt: sorted, equal texts once (rules/03 §7).
pub fn attempt_reasons(lexicon: &Lexicon, of_attempt: &[Reason]) -> Vec<String> {
    let mut texts = sorted_reasons(lexicon, of_attempt);
    texts.dedup();
    texts
}

/// Why flavors can't be assigned (rules/03 §7).
fn write_no_fit(f: &mut fmt::Formatter<'_>, no_fit: &NoFit) -> fmt::Result {
    for (n, Misfit { pod_set, why }) in no_fit.misfits.iter().enumerate() {
        let name = &no_fit.pod_sets[*pod_set].name;
        match why {
            Why::Error(error) => write!(f, "failed to assign flavors to pod set {name}: {error}")?,
            Why::Reasons(why) => {
                let before = if n == 0 { "" } else { "; " };
                let why = sorted_reasons(&no_fit.lexicon, why).join(", ");
                write!(f, "{before}couldn't assign flavors to pod set {name}: {why}")?;
            }
        }
    }
    Ok(())
}

/// The flavors that were passed over or that borrow, pod set by pod set, by name (rules/03 §7).
fn considered_flavors(considered: &Considered) -> String {
    let Considered { pod_sets, flavors, lexicon, .. } = considered;
    let of_pod_set = |of: &[(usize, ConsideredFlavor)]| {
        let mut flavors: Vec<&ConsideredFlavor> = of.iter().map(|(_, flavor)| flavor).collect();
        flavors.sort_by_key(|it| lexicon.flavor(it.flavor));
        let flavors: Vec<String> = flavors.into_iter().map(|it| considered_flavor(lexicon, it)).collect();
        format!("{}: {}", pod_sets[of[0].0].name, flavors.join(", "))
    };
    flavors.chunk_by(|a, b| a.0 == b.0).map(of_pod_set).collect::<Vec<_>>().join(" | ")
}

fn considered_flavor(lexicon: &Lexicon, it: &ConsideredFlavor) -> String {
    let mode = it.possibility.map_or_else(|| it.mode.to_owned(), |found| format!("preemptionMode={found}"));
    let borrow = if it.level > 0 { format!(";borrow={}", it.level) } else { String::new() };
    let reasons: String = attempt_reasons(lexicon, &it.reasons).iter().map(|reason| format!(";{reason}")).collect();
    format!("{}({mode}{borrow}{reasons})", lexicon.flavor(it.flavor))
}

/// The purpose of a preemption in its message.
fn preemption_purpose(reason: &str) -> &'static str {
    match reason {
        reasons::IN_CLUSTER_QUEUE => "prioritization in the ClusterQueue",
        reasons::IN_COHORT_RECLAMATION => "reclamation within the cohort",
        reasons::IN_COHORT_FAIR_SHARING => "Fair Sharing within the cohort",
        reasons::IN_COHORT_RECLAIM_WHILE_BORROWING => "reclamation within the cohort while borrowing",
        _ => "UNKNOWN",
    }
}

/// The message of a preemption; the paths go from the root cohort to the ClusterQueues (rules/04 §8).
pub fn preempted(preemptor: &WorkloadMeta, reason: &str, preemptor_path: &str, preemptee_path: &str) -> String {
    preempted_for(preemptor.key.uid(), job_uid(&preemptor.details), reason, preemptor_path, preemptee_path)
}

fn preempted_for(uid: &str, job_uid: &str, reason: &str, preemptor_path: &str, preemptee_path: &str) -> String {
    fn known(text: &str) -> &str {
        if text.is_empty() { "UNKNOWN" } else { text }
    }
    format!(
        "Preempted to accommodate a workload (UID: {}, JobUID: {}) due to {}; preemptor path: {}; preemptee path: {}",
        known(uid),
        known(job_uid),
        preemption_purpose(reason),
        known(preemptor_path),
        known(preemptee_path),
    )
}

fn write_preempted(f: &mut fmt::Formatter<'_>, it: &Preemption) -> fmt::Result {
    let path = |path| path_text(&it.lexicon, path);
    let (to, from) = (path(&it.preemptor_path), path(&it.preemptee_path));
    f.write_str(&preempted_for(it.preemptor.uid(), job_uid(&it.preemptor_details), it.reason, &to, &from))
}

/// A path from the root, as `/root/cohort/queue`; empty if the ClusterQueue is gone.
fn path_text(lexicon: &Lexicon, path: &Path) -> String {
    let Some(cohorts) = &path.cohorts else { return String::new() };
    let names = cohorts.iter().rev().map(|&cohort| lexicon.cohort(cohort)).chain([lexicon.queue(path.queue)]);
    names.flat_map(|name| ["/", name]).collect()
}

/// Priorities of both sides, at the end of preemption events (rules/04 §8).
fn write_priorities(f: &mut fmt::Formatter<'_>, it: &Preemption) -> fmt::Result {
    for (who, (effective, base)) in [("preemptor", it.preemptor_priorities), ("preemptee", it.preemptee_priorities)] {
        let boost = effective - i64::from(base);
        write!(f, "; {who} effective priority: {effective} (base: {base}, boost: {boost})")?;
    }
    Ok(())
}

/// The UID of a workload's job; empty if it is not known.
fn job_uid(details: &MetaDetails) -> &str {
    details.labels.get(JOB_UID_LABEL).map_or("", String::as_str)
}

#[cfg(test)]
mod tests;
