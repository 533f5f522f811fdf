//! What conditions and events say: a code with ids and amounts, which becomes words when somebody reads it.
//!
//! [`crate::status::messages`] has the words.

use std::sync::Arc;

use smallvec::SmallVec;

use super::kinds::Taint;
use super::pod_set::PodSet;
use super::workload_meta::MetaDetails;
use crate::base::amount::Amount;
use crate::base::ids::{CohortId, FlavorId, FlavorResourceId, QueueId, ResourceId};
use crate::base::key::Key;
use crate::base::names::Lexicon;
use crate::base::shared::Shared;
use crate::base::text::Text;

/// A message. Two are equal if they read the same; whether the codes are the same is looked at first.
#[derive(Clone)]
pub enum Message {
    /// Words of the program that stand for themselves, or text from outside.
    Text(Text),
    /// Quota is reserved in this ClusterQueue.
    QuotaReserved(Arc<str>),
    /// The event of that: so long after it was queued.
    QuotaReservedAfter {
        /// The ClusterQueue.
        queue: Arc<str>,
        /// In nanoseconds.
        wait_ns: i64,
    },
    /// The same with the flavors that were passed over.
    QuotaReservedAmong(Arc<Considered>),
    /// The event of an admission: so long after the reservation.
    AdmittedBy {
        /// The ClusterQueue.
        queue: Arc<str>,
        /// In nanoseconds.
        wait_ns: i64,
    },
    /// Flavors can't be assigned (now).
    NoFit(Arc<NoFit>),
    /// What is said, and that this many preemptions are pending.
    PendingPreemptions(Arc<Message>, usize),
    /// What is said, and that it takes the place of another variant once that has stopped.
    PendingMigration(Arc<Message>),
    /// A queue is not there, or does not admit.
    Blocked(Queue, Blocker),
    /// Somebody gates the admission.
    GatedBy(Arc<str>),
    /// The namespace is not there.
    NamespaceMissing(Arc<str>),
    /// Preempted for another workload.
    Preempted(Arc<Preemption>),
    /// The same, with the priorities of both.
    PreemptedWithPriorities(Arc<Preemption>),
    /// What the preemptor's event says of it.
    PreemptedFor(Arc<Preemption>),
    /// What a condition said while it was True.
    Previously(Arc<Message>),
    /// Deactivated, for what was announced.
    DeactivatedDueTo(Arc<Message>),
}

impl Message {
    /// Do two codes say the same? `None`: that takes their words, as one of them is text or knows other ids.
    pub(crate) fn says_the_same(&self, other: &Self) -> Option<bool> {
        use Message::*;
        Some(match (self, other) {
            (Text(a), Text(b)) => a == b,
            (Text(_), _) | (_, Text(_)) => return None,
            (QuotaReserved(a), QuotaReserved(b))
            | (GatedBy(a), GatedBy(b))
            | (NamespaceMissing(a), NamespaceMissing(b)) => a == b,
            (Blocked(a, x), Blocked(b, y)) => (a, x) == (b, y),
            (QuotaReservedAfter { queue: a, wait_ns: x }, QuotaReservedAfter { queue: b, wait_ns: y })
            | (AdmittedBy { queue: a, wait_ns: x }, AdmittedBy { queue: b, wait_ns: y }) => {
                // Waits are said in whole seconds.
                return if a == b && x != y { None } else { Some(a == b) };
            }
            (QuotaReservedAmong(a), QuotaReservedAmong(b)) if !Arc::ptr_eq(a, b) => return None,
            (NoFit(a), NoFit(b)) => return if Arc::ptr_eq(a, b) { Some(true) } else { a.says_the_same(b) },
            (PendingPreemptions(a, x), PendingPreemptions(b, y)) => x == y && a == b,
            (PendingMigration(a), PendingMigration(b))
            | (Previously(a), Previously(b))
            | (DeactivatedDueTo(a), DeactivatedDueTo(b)) => a == b,
            (Preempted(a), Preempted(b)) => return if Arc::ptr_eq(a, b) { Some(true) } else { a.says_the_same(b) },
            (PreemptedWithPriorities(a), PreemptedWithPriorities(b)) | (PreemptedFor(a), PreemptedFor(b))
                if !Arc::ptr_eq(a, b) =>
            {
                return None;
            }
            // One and the same part.
            (QuotaReservedAmong(_), QuotaReservedAmong(_))
            | (PreemptedWithPriorities(_), PreemptedWithPriorities(_))
            | (PreemptedFor(_), PreemptedFor(_)) => true,
            // What is not listed here is compared by its words.
            _ if std::mem::discriminant(self) == std::mem::discriminant(other) => return None,
            _ => false,
        })
    }
}

/// A queue that a workload needs, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Its LocalQueue.
    Local(Arc<str>),
    /// The ClusterQueue of that.
    Cluster(Arc<str>),
}

/// What is the matter with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocker {
    /// There is none of that name.
    Missing,
    /// It does not admit.
    Inactive,
    /// It is being deleted or was, and a reservation waits for checks.
    Gone,
    /// It is stopped, and a reservation waits for checks.
    Stopped,
}

/// Why flavors can't be assigned.
#[derive(Debug)]
pub struct NoFit {
    /// The pod sets of the workload.
    pub pod_sets: Shared<Vec<PodSet>>,
    /// Those of them that do not fit (now).
    pub misfits: SmallVec<[Misfit; 1]>,
    /// The names of ids.
    pub lexicon: Arc<Lexicon>,
}

impl NoFit {
    fn says_the_same(&self, other: &Self) -> Option<bool> {
        let is_alike = Arc::ptr_eq(&self.lexicon, &other.lexicon) && self.pod_sets.is_same(&other.pod_sets);
        // Reasons in another order may read the same: they are sorted by their words.
        let is_same = is_alike && self.misfits == other.misfits;
        is_same.then_some(true)
    }
}

/// Why a pod set does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Its index.
    pub pod_set: usize,
    /// What speaks against flavors; one alone if it could not be evaluated.
    pub why: Why,
}

/// What speaks against a pod set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It could not be evaluated.
    Error(String),
    /// These.
    Reasons(Vec<Reason>),
}

/// One reason of a pod set's status or of an attempt (rules/03 §3 to §5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No resource group covers the resource.
    ResourceUnavailable(ResourceId),
    /// The ResourceFlavor does not exist.
    FlavorNotFound(FlavorId),
    /// A recomputation keeps to the flavors of the nomination.
    NotNominated(FlavorId, ResourceId),
    /// A variant is limited to other flavors (concurrent admission).
    NotAllowed(FlavorId),
    /// The pod set asks for topology, the flavor has none.
    TopologyUnsupported(FlavorId),
    /// The same, and the nodes of the flavor are not known yet.
    TopologyUnknown(FlavorId),
    /// The flavor's topology has no such level.
    LevelUnknown(FlavorId),
    /// There is no place on the nodes of the chosen flavor.
    NoPlace(Box<String>),
    /// The flavor places with topology only, the pod set does not ask for it.
    TopologyOnly(FlavorId),
    /// A taint of the flavor is not tolerated.
    UntoleratedTaint(FlavorId, Box<Taint>),
    /// Node selector or affinity do not match the flavor's labels.
    AffinityMismatch(FlavorId),
    /// More than there could ever be.
    ExceedsMaximum {
        /// Flavor and resource.
        fr: FlavorResourceId,
        /// What earlier pod sets take.
        assumed: Amount,
        /// What this pod set (group) asks for.
        requested: i64,
        /// The most that there can be.
        maximum: Amount,
    },
    /// More than is free now.
    Insufficient {
        /// Flavor and resource.
        fr: FlavorResourceId,
        /// How much is missing.
        missing: Amount,
    },
    /// The slice that is replaced uses another flavor.
    ReplacedSliceFlavor(FlavorId, Option<FlavorId>),
    /// The flavor was tried for other resources of its group, but has none of this one.
    ResourceNotProvided(FlavorId, ResourceId),
}

/// The flavors that a workload with quota was tried with before (rules/03 §7).
#[derive(Debug)]
pub struct Considered {
    /// The ClusterQueue.
    pub queue: Arc<str>,
    /// How long it was queued, in nanoseconds.
    pub wait_ns: i64,
    /// The pod sets of the workload.
    pub pod_sets: Shared<Vec<PodSet>>,
    /// Their indexes, and the flavors that were passed over or that borrow, in the order of these.
    pub flavors: Vec<(usize, ConsideredFlavor)>,
    /// The names of ids.
    pub lexicon: Arc<Lexicon>,
}

/// A flavor that was passed over, or that borrows.
#[derive(Clone, Debug)]
pub struct ConsideredFlavor {
    /// The flavor.
    pub flavor: FlavorId,
    /// How it could be had.
    pub mode: &'static str,
    /// What a simulated preemption found.
    pub possibility: Option<&'static str>,
    /// The borrowing level.
    pub level: u32,
    /// What speaks against it.
    pub reasons: SmallVec<[Reason; 2]>,
}

/// Who gives way to whom, and why (rules/04 §8).
#[derive(Debug)]
pub struct Preemption {
    /// For whom.
    pub preemptor: Key,
    /// What its metadata says besides.
    pub preemptor_details: Shared<MetaDetails>,
    /// Who.
    pub preemptee: Key,
    /// Reason of its condition Preempted.
    pub reason: &'static str,
    /// Where the preemptor wants quota.
    pub preemptor_path: Path,
    /// Where the other one has it.
    pub preemptee_path: Path,
    /// The effective priority of the preemptor and the one of its spec.
    pub preemptor_priorities: (i64, i32),
    /// The same of the other one.
    pub preemptee_priorities: (i64, i32),
    /// The names of ids.
    pub lexicon: Arc<Lexicon>,
}

impl Preemption {
    fn says_the_same(&self, other: &Self) -> Option<bool> {
        let known = |it: &Self| (it.reason, it.preemptor_path.clone(), it.preemptee_path.clone());
        let is_same = self.preemptor.is_same(&other.preemptor)
            && self.preemptor_details == other.preemptor_details
            && known(self) == known(other);
        let is_other = self.preemptor.uid() != other.preemptor.uid();
        (Arc::ptr_eq(&self.lexicon, &other.lexicon) && (is_same || is_other)).then_some(is_same)
    }
}

/// A ClusterQueue, and the cohorts above it up to the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The ClusterQueue.
    pub queue: QueueId,
    /// None if it is not there any more.
    pub cohorts: Option<SmallVec<[CohortId; 4]>>,
}
