//! Messages of conditions and events as codes with ids and amounts, turned into text when read.
//!
//! [`crate::status::messages`] has the texts.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use smallvec::SmallVec;

use super::fields::read_text;
use super::kinds::Taint;
use super::pod_set::PodSet;
use super::workload_meta::MetaDetails;
use crate::base::amount::Amount;
use crate::base::ids::{CohortId, FlavorId, FlavorResourceId, QueueId, ResourceId};
use crate::base::key::Key;
use crate::base::names::Lexicon;
use crate::base::shared::Shared;
use crate::base::text::Text;
use crate::base::when_read::WhenRead;

/// A message. Two are equal if their texts are; equal codes are the fast path.
#[derive(Clone)]
pub enum Message {
    /// A fixed text of the program, or text from outside.
    Text(Text),
    /// Quota is reserved in this ClusterQueue.
    QuotaReserved(Arc<str>),
    /// The event of that, with the time in the queue.
    QuotaReservedAfter {
        /// The ClusterQueue.
        queue: Arc<str>,
        /// In nanoseconds.
        wait_ns: i64,
    },
    /// The same, with the flavors that were considered.
    QuotaReservedAmong(Arc<Considered>),
    /// The event of an admission, with the time since the reservation.
    AdmittedBy {
        /// The ClusterQueue.
        queue: Arc<str>,
        /// In nanoseconds.
        wait_ns: i64,
    },
    /// Flavors can't be assigned (now).
    NoFit(Arc<NoFit>),
    /// A message, plus the number of pending preemptions.
    PendingPreemptions(Arc<Message>, usize),
    /// A message, plus the note that it replaces another variant once that has stopped.
    PendingMigration(Arc<Message>),
    /// A queue is missing, or does not admit.
    Blocked(Queue, Blocker),
    /// Admission is gated by this value.
    GatedBy(Arc<str>),
    /// The namespace does not exist.
    NamespaceMissing(Arc<str>),
    /// Preempted for another workload.
    Preempted(Arc<Preemption>),
    /// The same, with the priorities of both.
    PreemptedWithPriorities(Arc<Preemption>),
    /// The text of the preemptor's event.
    PreemptedFor(Arc<Preemption>),
    /// The message of a condition from when it was True.
    Previously(Arc<Message>),
    /// Deactivated for the announced reason.
    DeactivatedDueTo(Arc<Message>),
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_text(deserializer, |text| Message::Text(Text::copied(text)))
    }
}

impl Message {
    /// Do two codes have the same text? `None`: only the texts can tell, as one is text or has other ids.
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
                // Waits are shown in whole seconds.
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
            // All others are compared by their text.
            _ if std::mem::discriminant(self) == std::mem::discriminant(other) => return None,
            _ => false,
        })
    }
}

/// A queue that a workload needs, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The workload's LocalQueue.
    Local(Arc<str>),
    /// The ClusterQueue of the LocalQueue.
    Cluster(Arc<str>),
}

/// What is wrong with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocker {
    /// There is no queue of that name.
    Missing,
    /// It does not admit.
    Inactive,
    /// It is being or was deleted, and a reservation waits for checks.
    Gone,
    /// It is stopped, and a reservation waits for checks.
    Stopped,
}

/// Why flavors can't be assigned.
#[derive(Debug)]
pub struct NoFit {
    /// The pod sets of the workload.
    pub pod_sets: Shared<Vec<PodSet>>,
    /// Those that do not fit (now).
    pub misfits: SmallVec<[Misfit; 1]>,
    /// The names of ids.
    pub lexicon: Arc<Lexicon>,
}

impl NoFit {
    fn says_the_same(&self, other: &Self) -> Option<bool> {
        let is_alike = Arc::ptr_eq(&self.lexicon, &other.lexicon) && self.pod_sets.is_same(&other.pod_sets);
        // The reasons may be the same in another order: their texts are sorted.
        let is_same = is_alike && self.misfits == other.misfits;
        is_same.then_some(true)
    }
}

/// Why a pod set does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    pub pod_set: usize,
    /// The reasons against each flavor, or the error that prevented the evaluation.
    pub why: Why,
}

/// Why a pod set does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It could not be evaluated.
    Error(String),
    /// Reasons against its flavors.
    Reasons(Vec<Reason>),
}

/// One reason of a pod set's status or of an attempt (rules/03 §3 to §5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No resource group covers the resource.
    ResourceUnavailable(ResourceId),
    /// The ResourceFlavor does not exist.
    FlavorNotFound(FlavorId),
    /// A recomputation may only use the flavors of the nomination.
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
    /// The flavor only places pods with topology, and the pod set does not ask for it.
    TopologyOnly(FlavorId),
    /// A taint of the flavor is not tolerated.
    UntoleratedTaint(FlavorId, Box<Taint>),
    /// Node selector or affinity do not match the flavor's labels.
    AffinityMismatch(FlavorId),
    /// More than the maximum capacity.
    ExceedsMaximum {
        /// Flavor and resource.
        fr: FlavorResourceId,
        /// What earlier pod sets take.
        assumed: Amount,
        /// The request of this pod set (group).
        requested: i64,
        /// The maximum capacity.
        maximum: Amount,
    },
    /// More than is currently free.
    Insufficient {
        /// Flavor and resource.
        fr: FlavorResourceId,
        /// How much is missing.
        missing: Amount,
    },
    /// It was reclaimed from this ClusterQueue, which waits before it borrows it again (rules/13 §3).
    BorrowingWaits(FlavorResourceId),
    /// The replaced slice uses another flavor.
    ReplacedSliceFlavor(FlavorId, Option<FlavorId>),
    /// The flavor was tried for other resources of its group, but has no quota for this one.
    ResourceNotProvided(FlavorId, ResourceId),
}

/// The flavors that were tried before a workload got quota (rules/03 §7).
#[derive(Debug)]
pub struct Considered {
    /// The ClusterQueue.
    pub queue: Arc<str>,
    /// How long it was queued, in nanoseconds.
    pub wait_ns: i64,
    /// The pod sets of the workload.
    pub pod_sets: Shared<Vec<PodSet>>,
    /// Indexes of pod sets, in order, with the flavors that were skipped or that borrow.
    pub flavors: WhenRead<Vec<(usize, ConsideredFlavor)>>,
    /// The names of ids.
    pub lexicon: Arc<Lexicon>,
}

/// A flavor that was skipped, or that borrows.
#[derive(Clone, Debug)]
pub struct ConsideredFlavor {
    pub flavor: FlavorId,
    /// The mode in which it could be assigned.
    pub mode: &'static str,
    /// What a simulated preemption found.
    pub possibility: Option<&'static str>,
    /// The borrowing level.
    pub level: u32,
    /// The reasons against it.
    pub reasons: SmallVec<[Reason; 2]>,
}

/// A preemption: who, for whom, and why (rules/04 §8).
#[derive(Debug)]
pub struct Preemption {
    pub preemptor: Key,
    /// Details of its metadata.
    pub preemptor_details: Shared<MetaDetails>,
    /// The preempted workload.
    pub preemptee: Key,
    /// Reason of its condition Preempted.
    pub reason: &'static str,
    /// Where the preemptor needs quota.
    pub preemptor_path: Path,
    /// Where the preempted workload holds quota.
    pub preemptee_path: Path,
    /// The effective priority of the preemptor and the one of its spec.
    pub preemptor_priorities: (i64, i32),
    /// The same for the preempted workload.
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
    /// `None` if the ClusterQueue is gone.
    pub cohorts: Option<SmallVec<[CohortId; 4]>>,
}
