//! The table of all changes: what Kueue does since when, the rule that it amends, and how it is known.

use super::super::releases::{DEVEL, Version};
use Change::*;
use Proof::{Read, Recorded};

/// A change of Kueue without a feature gate; its row in the table says what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // the table below describes each one
pub enum Change {
    GateDependenciesAreChecked,
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
    RequestsAreNotNegative,
    TransformationsAreExact,
    TransformationsAreSummedApart,
    FlavorlessAdmissionNeedsNoCheck,
    FailedChecksAreDescribed,
    BorrowingIsUsageAboveQuota,
    TasLabelHasNoMeaning,
    FlavorEditsRetryWorkloads,
    PreferencesAreNotSwapped,
    MovedPodsCount,
    GroupGivesItsFlavor,
    ShapesFailByFit,
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
pub(super) static TABLE: [Row; 24] = [
    Row {
        change: GateDependenciesAreChecked,
        name: "GateDependenciesAreChecked",
        pulls: &[10931, 11781],
        since: &[v(16, 9), v(17, 4), v(18, 0)],
        what: "Kueue does not start with a gate on that needs another which is off; before, this was checked against the defaults",
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
    Row {
        change: RequestsAreNotNegative,
        name: "RequestsAreNotNegative",
        pulls: &[12838],
        since: &[v(18, 5), v(19, 1), v(20, DEVEL)],
        what: "Negative requests in stored Workloads count as 0; before, they lowered usage, and so made quota",
        rule: "rules/01 §7.3",
        proof: Read,
    },
    Row {
        change: TransformationsAreExact,
        name: "TransformationsAreExact",
        pulls: &[12953],
        since: &[v(17, 7), v(18, 3), v(19, 0)],
        what: "Transformations multiply exactly; before, the request was rounded up to whole units first, 100m of cpu to 1",
        rule: "rules/11 §3",
        proof: Read,
    },
    Row {
        change: TransformationsAreSummedApart,
        name: "TransformationsAreSummedApart",
        pulls: &[13986],
        since: &[v(18, 5), v(19, 1), v(20, DEVEL)],
        what: "Outputs of transformations are summed apart, a negative sum counts as 0, and multiplyBy scales only outputs; before, a retained input was scaled, too, and overwrote what others had added to it",
        rule: "rules/11 §3",
        proof: Read,
    },
    Row {
        change: FlavorlessAdmissionNeedsNoCheck,
        name: "FlavorlessAdmissionNeedsNoCheck",
        pulls: &[10890],
        since: &[v(18, 0)],
        what: "An admission without any flavor needs no admission check; before, all of the ClusterQueue",
        rule: "rules/07 §2",
        proof: Read,
    },
    Row {
        change: FailedChecksAreDescribed,
        name: "FailedChecksAreDescribed",
        pulls: &[10623],
        since: &[v(18, 0)],
        what: "Messages about checks in Retry or Rejected name each check with its message; before, a fixed text",
        rule: "rules/07 §3",
        proof: Read,
    },
    Row {
        change: BorrowingIsUsageAboveQuota,
        name: "BorrowingIsUsageAboveQuota",
        pulls: &[9738],
        since: &[v(17, 0)],
        what: "Fair sharing, victims: a node borrows if it uses more than its quota; before, only if its share was above 0, which it is not where nobody lends",
        rule: "rules/04 §5.3",
        proof: Read,
    },
    Row {
        change: TasLabelHasNoMeaning,
        name: "TasLabelHasNoMeaning",
        pulls: &[8770],
        since: &[v(17, 0)],
        what: "A pod with label kueue.x-k8s.io/tas takes room on its node as others do; before, it counted as placed by Kueue",
        rule: "rules/08 §4",
        proof: Read,
    },
    Row {
        change: FlavorEditsRetryWorkloads,
        name: "FlavorEditsRetryWorkloads",
        pulls: &[13670, 13734, 13647],
        since: &[v(18, 5), v(19, 1), v(20, DEVEL)],
        what: "An edit of a flavor's taints, tolerations or labels retries the workloads of its ClusterQueues; before, they waited for another event",
        rule: "rules/05 §3",
        proof: Read,
    },
    Row {
        change: PreferencesAreNotSwapped,
        name: "PreferencesAreNotSwapped",
        pulls: &[9464],
        since: &[v(16, 2), v(17, 0)],
        what: "The values of flavorFungibility.preference do what they say; before, each did what the other does",
        rule: "rules/03 §2.1",
        proof: Read,
    },
    Row {
        change: MovedPodsCount,
        name: "MovedPodsCount",
        pulls: &[14572],
        since: &[v(18, 6), v(19, 2), v(20, DEVEL)],
        what: "Topology: pods that a second pass moves to another domain take room there for the rest of the cycle; before, they took none",
        rule: "rules/08 §11",
        proof: Read,
    },
    Row {
        change: GroupGivesItsFlavor,
        name: "GroupGivesItsFlavor",
        pulls: &[12562],
        since: &[v(18, 5), v(19, 1), v(20, DEVEL)],
        what: "Topology: a pod set without requests takes the flavor of its group; before, it got none, and its placement failed",
        rule: "rules/03 §3",
        proof: Read,
    },
    Row {
        change: ShapesFailByFit,
        name: "ShapesFailByFit",
        pulls: &[11097],
        since: &[v(18, 0)],
        what: "Workloads of one shape are parked together only if the first of them does not fit or finds no candidates; before, after any failure",
        rule: "rules/05 §4",
        proof: Read,
    },
];
