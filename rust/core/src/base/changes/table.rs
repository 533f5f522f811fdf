//! The table of all changes: what Kueue does since when, the rule that it amends, and how it is known.

use super::super::releases::{DEVEL, Version};
use Change::*;
use Proof::{Read, Recorded};

/// A change of Kueue without a feature gate; its row in the table says what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // the table below describes each one
pub enum Change {
    TopologyGatesNeedTopology,
    GateDependenciesAreListed,
    PreemptionPrioritiesAreNamed,
    FlavorsAreMatchedByTheirOwnLabels,
    PodsAreNotInTotals,
    EveryMisfitIsNamed,
    FitBeatsNoCandidates,
    WeightOfZeroGoesLast,
    PenaltiesAreSettled,
    SmallUsageCounts,
    PenaltiesAreKeptByWorkload,
    NamespaceTextIsLowerCase,
}

/// How the old behaviour is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Recorded runs of releases on both sides of it are met.
    Recorded,
    /// Its code was read in both.
    Read,
}

impl Proof {
    /// `recorded` or `read`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Recorded => "recorded",
            Read => "read",
        }
    }
}

/// One row of the table.
pub(super) struct Row {
    pub change: Change,
    pub name: &'static str,
    /// Kueue's pull requests.
    pub pulls: &'static [u16],
    /// The first release of each line that has it. Lines after the last one here have it, too.
    pub since: &'static [Version],
    /// What Kueue does since, and what it did before.
    pub what: &'static str,
    pub rule: &'static str,
    pub proof: Proof,
}

const fn v(minor: u8, patch: i8) -> Version {
    Version::new(minor, patch)
}

/// All changes, in the order of the enum and of time.
pub(super) static TABLE: [Row; 12] = [
    Row {
        change: TopologyGatesNeedTopology,
        name: "TopologyGatesNeedTopology",
        pulls: &[11781],
        since: &[v(16, 9), v(17, 4), v(18, 0)],
        what: "Kueue does not start with a topology gate on and TopologyAwareScheduling off",
        rule: "rules/11 §4.3",
        proof: Read,
    },
    Row {
        change: GateDependenciesAreListed,
        name: "GateDependenciesAreListed",
        pulls: &[13412, 14237],
        since: &[v(20, DEVEL)],
        what: "A gate that is on while others that it needs are off is refused with all of these in one text, and more gates need others",
        rule: "rules/11 §4.3",
        proof: Read,
    },
    Row {
        change: PreemptionPrioritiesAreNamed,
        name: "PreemptionPrioritiesAreNamed",
        pulls: &[9120],
        since: &[v(17, 0)],
        what: "The preemptor gets an event PreemptedWorkload, and messages of a preemption end with the priorities of both sides",
        rule: "rules/05 §7",
        proof: Recorded,
    },
    Row {
        change: FlavorsAreMatchedByTheirOwnLabels,
        name: "FlavorsAreMatchedByTheirOwnLabels",
        pulls: &[12449],
        since: &[v(17, 6), v(18, 2), v(19, 0)],
        what: "A node selector or affinity is matched against the labels of the flavor itself; before, against the keys of all flavors of the group",
        rule: "rules/03 §2.2",
        proof: Recorded,
    },
    Row {
        change: PodsAreNotInTotals,
        name: "PodsAreNotInTotals",
        pulls: &[10485],
        since: &[v(18, 0)],
        what: "Requests of a workload do not hold its `pods`: preemption does not see that their quota is short and takes too few victims; before, it made room for pods, and status.resourceRequests counted them",
        rule: "rules/04 §2",
        proof: Recorded,
    },
    Row {
        change: EveryMisfitIsNamed,
        name: "EveryMisfitIsNamed",
        pulls: &[13338],
        since: &[v(18, 5), v(19, 1), v(20, DEVEL)],
        what: "A flavor that does not fit is reported with every resource that does not; before, with one of them",
        rule: "rules/03 §4",
        proof: Recorded,
    },
    Row {
        change: FitBeatsNoCandidates,
        name: "FitBeatsNoCandidates",
        pulls: &[13616],
        since: &[v(18, 5), v(19, 1), v(20, DEVEL)],
        what: "With PreemptionOverBorrowing, a flavor that fits beats one without preemption candidates; before, the other way round",
        rule: "rules/03 §5",
        proof: Recorded,
    },
    Row {
        change: WeightOfZeroGoesLast,
        name: "WeightOfZeroGoesLast",
        pulls: &[13481],
        since: &[v(18, 5), v(19, 1), v(20, DEVEL)],
        what: "Usage-based fair sharing: a LocalQueue of weight 0 goes last; before, first",
        rule: "rules/09 §1",
        proof: Recorded,
    },
    Row {
        change: PenaltiesAreSettled,
        name: "PenaltiesAreSettled",
        pulls: &[12786, 13844],
        since: &[v(18, 5), v(19, 1), v(20, DEVEL)],
        what: "Usage-based fair sharing: the penalty of an admission is charged only where usage orders workloads, once, and settled when the workload is admitted; before, it was charged in every ClusterQueue and in each pass, and stayed for workloads with admission checks",
        rule: "rules/09 §1.3",
        proof: Recorded,
    },
    Row {
        change: SmallUsageCounts,
        name: "SmallUsageCounts",
        pulls: &[13621],
        since: &[v(18, 5), v(19, 1), v(20, DEVEL)],
        what: "Usage-based fair sharing: usage below a thousandth counts; before, it was cut off",
        rule: "rules/09 §1",
        proof: Recorded,
    },
    Row {
        change: PenaltiesAreKeptByWorkload,
        name: "PenaltiesAreKeptByWorkload",
        pulls: &[14153],
        since: &[v(18, 6), v(19, 2), v(20, DEVEL)],
        what: "Usage-based fair sharing: a penalty goes with its workload; before, those of a LocalQueue were one sum, in which stayed what was not admitted, or admitted with fewer pods",
        rule: "rules/09 §1.3",
        proof: Recorded,
    },
    Row {
        change: NamespaceTextIsLowerCase,
        name: "NamespaceTextIsLowerCase",
        pulls: &[12659, 13578],
        since: &[v(18, 5), v(19, 1), v(20, DEVEL)],
        what: "The message about a namespace that does not match the ClusterQueue's selector starts with a small letter",
        rule: "rules/03 §1",
        proof: Recorded,
    },
];
