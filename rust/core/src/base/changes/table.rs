//! The table of all changes: what Kueue does since when, the rule that it amends, and how it is known.

use super::super::releases::{DEVEL, Version};

/// How the old behaviour is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Recorded runs of releases on both sides of it are met.
    Recorded,
    /// The code of both sides was read, or a test of Kueue.
    Read,
    /// A proposal, a pull request or an issue describes it.
    Proposal,
    /// A sentence of the changelog is all that was found.
    Changelog,
}

impl Proof {
    /// `recorded`, `read`, `proposal` or `changelog`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Proof::Recorded => "recorded",
            Proof::Read => "read",
            Proof::Proposal => "proposal",
            Proof::Changelog => "changelog",
        }
    }
}

/// One row of the table.
pub(super) struct Row {
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

/// Makes the enum and its table, in one order.
macro_rules! changes {
    ($($name:ident: [$($pull:literal),*], [$(($minor:literal, $patch:expr)),+], $rule:literal, $proof:ident,
        $what:literal;)+) => {
        /// A change of Kueue without a feature gate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Change {
            $(#[doc = $what] $name,)+
        }

        impl Change {
            /// Every change, in the order of the table.
            pub const ALL: [Change; TABLE.len()] = [$(Change::$name),+];
        }

        pub(super) static TABLE: [Row; [$(stringify!($name)),+].len()] = [$(Row {
            name: stringify!($name),
            pulls: &[$($pull),*],
            since: &[$(Version::new($minor, $patch)),+],
            what: $what,
            rule: $rule,
            proof: Proof::$proof,
        }),+];
    };
}

// Name of the new behaviour: pull requests, the first release of each line, the rule, how the old one is known, what.
changes! {
    GateDependenciesAreChecked: [10931, 11781], [(16, 9), (17, 4), (18, 0)], "rules/11 §4.3", Read,
        "Kueue does not start with a gate on that needs another which is off; before, this was checked against the defaults";
    GateDependenciesAreListed: [13412, 14237], [(20, DEVEL)], "rules/11 §4.3", Read,
        "A gate that is on while others that it needs are off is refused with all of these in one text, and more gates need others";
    PreemptionPrioritiesAreNamed: [9120], [(17, 0)], "rules/04 §8", Recorded,
        "The preemptor gets an event PreemptedWorkload, and messages of a preemption end with the priorities of both sides";
    FlavorsAreMatchedByTheirOwnLabels: [12449], [(17, 6), (18, 2), (19, 0)], "rules/03 §5", Recorded,
        "A node selector or affinity is matched against the labels of the flavor itself; before, against the keys of all flavors of the group";
    PodsAreNotInTotals: [10485], [(18, 0)], "rules/03 §8", Recorded,
        "Requests of a workload do not hold its `pods`: preemption does not see that their quota is short and takes too few victims; before, it made room for pods, and status.resourceRequests counted them";
    EveryMisfitIsNamed: [13338], [(18, 5), (19, 1), (20, DEVEL)], "rules/03 §4", Recorded,
        "A flavor that does not fit is reported with every resource that does not; before, with one of them";
    FitBeatsNoCandidates: [13616], [(18, 5), (19, 1), (20, DEVEL)], "rules/03 §2.1", Recorded,
        "With PreemptionOverBorrowing, a flavor that fits beats one without preemption candidates; before, the other way round";
    TargetsLeaveOnce: [14269], [(18, 5), (19, 1), (20, DEVEL)], "rules/04 §7", Recorded,
        "Elastic jobs: a slice that its replacement also preempts makes room once; before, twice";
    AdmissionsAreSettled: [10156], [(16, 6), (17, 1), (18, 0)], "rules/09 §1.3", Recorded,
        "Usage-based fair sharing: the penalty of a workload becomes usage when it is admitted; before, it stayed as long as its LocalQueue";
    WeightOfZeroGoesLast: [13481], [(18, 5), (19, 1), (20, DEVEL)], "rules/09 §1.2", Recorded,
        "Usage-based fair sharing: a LocalQueue of weight 0 goes last; before, first";
    PenaltiesAreSettled: [12786, 13844], [(18, 5), (19, 1), (20, DEVEL)], "rules/09 §1.3", Recorded,
        "Usage-based fair sharing: the penalty of an admission is charged only where usage orders workloads, once, and settled when the workload is admitted; before, it was charged in every ClusterQueue and in each pass, and stayed for workloads with admission checks";
    SmallUsageCounts: [13621], [(18, 5), (19, 1), (20, DEVEL)], "rules/09 §1.2", Recorded,
        "Usage-based fair sharing: usage below a thousandth counts; before, it was cut off";
    PenaltiesAreKeptByWorkload: [14153], [(18, 6), (19, 2), (20, DEVEL)], "rules/09 §1.3", Recorded,
        "Usage-based fair sharing: a penalty goes with its workload; before, those of a LocalQueue were one sum, in which stayed what was not admitted, or admitted with fewer pods";
    NamespaceTextIsLowerCase: [12659, 13578], [(18, 5), (19, 0)], "rules/05 §6.1", Recorded,
        "Messages about a namespace that does not exist, or does not match the ClusterQueue's selector, start with a small letter; before, with a capital, and otherwise for the former";
    RequestsAreNotNegative: [12838], [(18, 5), (19, 1), (20, DEVEL)], "rules/01 §7.3", Read,
        "Negative requests in stored Workloads count as 0; before, they lowered usage, and so made quota";
    TransformationsAreExact: [12953], [(17, 7), (18, 3), (19, 0)], "rules/11 §3", Read,
        "Transformations multiply exactly; before, the request was rounded up to whole units first, 100m of cpu to 1";
    TransformationsAreSummedApart: [13986], [(18, 5), (19, 1), (20, DEVEL)], "rules/11 §3", Read,
        "Outputs of transformations are summed apart, a negative sum counts as 0, and multiplyBy scales only outputs; before, a retained input was scaled, too, and overwrote what others had added to it";
    FlavorlessAdmissionNeedsNoCheck: [10890], [(18, 0)], "rules/07 §2", Read,
        "An admission without any flavor needs no admission check; before, all of the ClusterQueue";
    ChecksOfAllFlavorsAreListed: [9359], [(16, 6), (17, 1), (18, 0)], "rules/07 §2", Recorded,
        "A workload without an admission needs the checks for all flavors; before, none, unless all checks of its ClusterQueue are";
    FailedChecksAreDescribed: [10623], [(18, 0)], "rules/07 §3", Read,
        "Messages about checks in Retry or Rejected name each check with its message; before, a fixed text";
    BorrowingIsUsageAboveQuota: [9738], [(17, 0)], "rules/04 §5.3", Read,
        "Fair sharing, victims: a node borrows if it uses more than its quota; before, only if its share was above 0, which it is not where nobody lends";
    TasLabelHasNoMeaning: [8770], [(17, 0)], "rules/08 §4", Read,
        "A pod with label kueue.x-k8s.io/tas takes room on its node as others do; before, it counted as placed by Kueue";
    StrictQueuesNotePreemptors: [13797], [(18, 6), (19, 2), (20, DEVEL)], "rules/05 §5", Recorded,
        "A workload that preempts in a StrictFIFO queue ends the precedence that another one has from when the queue was BestEffortFIFO, and its own; before, not";
    FlavorEditsRetryWorkloads: [13670, 13734, 13647], [(18, 5), (19, 1), (20, DEVEL)], "rules/05 §3", Read,
        "An edit of a flavor's taints, tolerations or labels retries the workloads of its ClusterQueues; before, they waited for another event";
    PreferencesAreNotSwapped: [9464], [(16, 2), (17, 0)], "rules/03 §2.1", Read,
        "The values of flavorFungibility.preference do what they say; before, each did what the other does";
    RetriesAreBatched: [9232], [(16, 2), (17, 0)], "rules/05 §3.1", Read,
        "A running Kueue retries parked workloads a second after what may let them in, once for several changes; before, at once";
    FreedNodesRetryWorkloads: [13772], [(18, 5), (19, 1), (20, DEVEL)], "rules/08 §4", Recorded,
        "Topology: a pod outside Kueue that ends or leaves its node has workloads retried; before, they waited for another event";
    TaintsMeetAllTolerations: [11185], [(16, 8), (17, 3), (18, 0)], "rules/08 §13.2", Recorded,
        "Topology: a taint repels running pods unless their template, their flavors or their admission checks tolerate it; before, unless their template does";
    SecondPassTimersStay: [13745], [(18, 5), (19, 1), (20, DEVEL)], "rules/08 §11", Recorded,
        "Topology: an update of a workload that waits for a second pass changes nothing; before, it came a second after the update, if that was sooner than its backoff";
    MovedPodsCount: [14572], [(18, 6), (19, 2), (20, DEVEL)], "rules/08 §11", Read,
        "Topology: pods that a second pass moves to another domain take room there for the rest of the cycle; before, they took none";
    LayersNeedNoGate: [12290], [(19, 0)], "rules/08 §2", Recorded,
        "Topology: all layers of slices in a Workload count; before, only the outermost while gate TASMultiLayerTopology is off";
    FullNodesHaveNoRoom: [10949], [(16, 8), (17, 3), (18, 0)], "rules/08 §4", Recorded,
        "Topology: a node that is filled beyond its capacity has room for no pod; before, for a negative number, which lowers the room of domains above";
    MissingResourcesAreFull: [13252], [(17, 8), (18, 4), (19, 0)], "rules/08 §4", Recorded,
        "Topology: a resource that a node lacks is like one of which nothing is left, and the first by name is reported; before, the one that it lacks";
    PodSetsShareRoomForPods: [11293], [(16, 9), (17, 4), (18, 0)], "rules/08 §11", Recorded,
        "Topology: the pods of earlier pod sets of a workload count against the number of pods that a node takes; before, only what they request";
    NodeUsageIsThatOfPods: [12006], [(17, 5), (18, 1), (19, 0)], "rules/08 §11", Recorded,
        "Topology: pods take of a node what they request; before, the workload's quota per pod, and for the rest of the cycle as often as it has resources";
    PlacementErrorsAreNoFit: [12055], [(17, 5), (18, 1), (19, 0)], "rules/08 §11", Recorded,
        "Topology: a workload does not fit with a pod set that cannot be placed at all; before, it was admitted without a place";
    OnlyElasticJobsAreLimited: [11997], [(17, 5), (18, 1), (19, 0)], "rules/08 §11", Recorded,
        "Topology: with gate ElasticJobsViaWorkloadSlicesWithTAS, only elastic workloads cannot have a required or preferred level; before, none could";
    LeadersNeedDomains: [10783], [(16, 7), (17, 2), (18, 0)], "rules/08 §5", Recorded,
        "Topology: room beside a leader counts only in domains that have room for the leader; before, in all";
    BalanceFallsBack: [11136, 10948], [(18, 0)], "rules/08 §9", Recorded,
        "Topology: balanced placement leaves out sets of domains that are too small once pruned, and falls back to the ordinary one; before, the placement failed, and room next to a leader counted in every domain";
    GroupGivesItsFlavor: [12562], [(18, 5), (19, 1), (20, DEVEL)], "rules/03 §3", Read,
        "Topology: a pod set without requests takes the flavor of its group; before, it got none, and its placement failed";
    ShapesFailByFit: [11097], [(18, 0)], "rules/05 §4", Read,
        "Workloads of one shape are parked together only if the first of them does not fit or finds no candidates; before, after any failure";
    RayAutoscalerCounted: [12405], [(19, 0)], "rules/10 §5.8", Read,
        "Ray: the container of the in-tree autoscaler counts in the head; before, it did not";
    RaySubmitterSidecarCounted: [12454], [(17, 7), (18, 3), (19, 0)], "rules/10 §5.9", Read,
        "RayJob with submissionMode SidecarMode: the submitter's container counts in the head; before, it did not";
    RayRedisCleanupCounted: [11260], [(17, 6), (18, 2), (19, 0)], "rules/10 §5.8", Read,
        "Ray with GCS fault tolerance: the head requests at least what the clean-up of Redis needs; before, only what it asks for";
    PodSetsUpToTen: [11388], [(18, 0)], "rules/10 §1", Read,
        "A Workload has up to 10 pod sets; before 8, and a RayCluster up to 7 worker groups";
    PodSetsUpToEighteen: [12819], [(19, 0)], "rules/10 §1", Read,
        "A Workload has up to 18 pod sets; before 10";
    CompletedIndexesReclaimed: [13178], [(17, 8), (18, 4), (19, 0)], "rules/10 §4.5", Read,
        "Reclaimable pods of an Indexed Job: completed indexes below its completions count; before, status.succeeded";
    FailedIndexesReclaimed: [13486], [(18, 5), (19, 1), (20, DEVEL)], "rules/10 §4.5", Read,
        "Reclaimable pods of an Indexed Job: indexes that failed for good count, too";
    RayValidationFailedOnHold: [13415], [(18, 5), (19, 1), (20, DEVEL)], "rules/10 §4.1", Read,
        "A RayJob in ValidationFailed gives its quota back until it can run; before, it kept it";
    DefaultQueueNeedsManagedNamespace: [13375], [(18, 5), (19, 1), (20, DEVEL)], "rules/10 §2.2", Read,
        "Jobs get the default LocalQueue only where managedJobsNamespaceSelector selects their namespace; before, in every namespace";
    AncestorUidsChecked: [13802], [(18, 6), (19, 2), (20, DEVEL)], "rules/10 §2.3", Read,
        "The walk to a job's managed ancestor stops at an owner whose UID is not that of the reference; before, only its name counted";
    ProvisioningSkipsEmptyPodSets: [13975], [(18, 5), (19, 1), (20, DEVEL)], "rules/07 §4", Read,
        "A ProvisioningRequest leaves out pod sets of no pods, and none is made if no other is left; before, they had a PodTemplate and an entry";
    ProvisioningMessageCleared: [13785], [(18, 5), (19, 1), (20, DEVEL)], "rules/07 §4", Read,
        "The message of a check is cleared while its ProvisioningRequest has no condition; before, an older one stayed";
    NoUngateOntoFailedNode: [14099], [(18, 5), (19, 1), (20, DEVEL)], "rules/08 §12", Read,
        "Topology: pods stay gated while the node of their domain is among the unhealthy ones of their workload; before, they were released to it";
    SlicesFollowPriority: [13780], [(18, 5), (19, 1), (20, DEVEL)], "rules/10 §3.3", Read,
        "A changed priority class reaches the slices of an elastic job; before, only those that are created later";
    ReplacedSlicesAreNamed: [13489], [(18, 5), (19, 1), (20, DEVEL)], "rules/10 §6", Read,
        "Of several slices, one that another replaces ends with the reason WorkloadSliceReplaced; before, with OutOfSync like all";
    ActiveSliceReleasesPods: [13914, 14139, 13975], [(18, 5), (19, 1), (20, DEVEL)], "rules/10 §6", Read,
        "Elastic jobs: the newest slice with quota that is not evicted releases pods once it is admitted, with what its checks say; before, evicted ones did as well, without checks, and only while the first slice was there";
    PriorityClassMissingEvent: [13775], [(20, DEVEL)], "rules/10 §3.3", Read,
        "A job whose WorkloadPriorityClass is missing gets a warning event; before, none";
    LwsPodsGetQueueName: [14138], [(18, 6), (19, 2), (20, DEVEL)], "rules/10 §5.7", Read,
        "Gated pods of a LeaderWorkerSet get its queue name if they have another; before, they kept that of their template";
    JobTextsAreCorrected: [14018, 13996, 13671], [(18, 5), (19, 1), (20, DEVEL)], "rules/10 §7", Read,
        "Refusals of jobs and pod sets are spelled correctly";
    RayAutoscalingNeedsOneCluster: [13244], [(18, 5), (19, 1), (20, DEVEL)], "rules/10 §7", Read,
        "An elastic RayCluster with in-tree autoscaling that MultiKueue manages is refused; before, it was accepted";
    MultiKueueBackoffInMessage: [13726], [(20, DEVEL)], "rules/06 §2", Read,
        "The message of a MultiKueueCluster without connection ends with attempts and next attempt; before, without";
    MultiKueueCheckEditsRequeue: [10229], [(20, DEVEL)], "rules/06 §4", Read,
        "MultiKueue: another config of an AdmissionCheck, or a new check, has its workloads looked at again; before, only an edit of the MultiKueueConfig";
    LwsQueueMayChange: [4932], [(18, 0)], "rules/10 §5.7", Read,
        "The queue of a LeaderWorkerSet may change while no replica is ready, and its Workloads and templates follow; before, never";
    WorkerPodsAreMarked: [10242], [(18, 0)], "rules/10 §4.2", Read,
        "Pods of jobs that MultiKueue created on a worker get the label multikueue-worker-workload-pod; before, they did not";
    ElasticAnnotationNeedsSupport: [11300, 11342], [(18, 0)], "rules/10 §7", Read,
        "The annotation elastic-job is refused for kinds without slices, and together with partial admission; before, it was ignored there";
    FastAdmissionNeedsTrue: [12768], [(17, 7), (18, 3), (19, 0)], "rules/10 §5.4", Read,
        "Pod groups: fast admission is asked for with true; before, with any value";
    LocalQueueStatusLimit64: [12082], [(17, 5), (18, 1), (19, 0)], "rules/01 §10", Read,
        "Lists in the status of a LocalQueue hold up to 64 flavors and resources; before 16";
    QueueNameFixedWhileReserved: [12594], [(18, 5), (19, 0)], "rules/01 §10", Read,
        "While quota is reserved, queueName can neither change nor be set or removed; before, it only could not change";
    PodSetSliceSizeMinimum: [13634], [(20, DEVEL)], "rules/01 §10", Read,
        "topologyRequest.podSetSliceSize is at least 1 in the schema; before, any number";
    SubGroupCountMinimum: [13108, 13061, 13101], [(20, DEVEL)], "rules/01 §10", Read,
        "topologyRequest.subGroupCount is not negative; before, any number";
    TopologyLevelsMutable: [13910], [(20, DEVEL)], "rules/08 §1", Read,
        "Levels of a Topology may change while the hostname is the lowest before and after; before, never";
    TopologyFlavorLabelsMutable: [13738, 13622], [(20, DEVEL)], "rules/08 §1", Read,
        "nodeLabels and tolerations of a flavor with a topology may change; before, they could not";
    TopologyFlavorTaintsMutable: [9427], [(17, 0)], "rules/08 §1", Read,
        "nodeTaints of a flavor with a topology may change; before, nothing of its spec could";
    WaitForPodsReadyByDefault: [11855, 13107, 13085], [(19, 0)], "rules/11 §2", Read,
        "A Configuration v1beta2 without waitForPodsReady has it, with a timeout of 30 minutes; before, it had none";
    ClientConnectionIsFast: [12440], [(19, 0)], "rules/11 §2", Read,
        "clientConnection allows 300 requests a second and bursts of 500; before 20 and 30";
    DeviceClassesShareMappings: [13152], [(19, 0)], "rules/11 §3", Read,
        "A DeviceClass may be in several deviceClassMappings that count different counters of it; before, in one";
    SchemaFieldsOf017: [9506, 9721], [(17, 0)], "rules/01 §10", Read,
        "Workloads have preemptionGates and podsetSliceRequiredTopologyConstraints; before, the fields were dropped";
    SchemaFieldsOf018: [10610, 11141], [(18, 0)], "rules/01 §10", Read,
        "ClusterQueues have concurrentAdmissionPolicy, and MultiKueueConfigs quotaManagement; before, the fields were dropped";
    PodsKeyIsReserved: [12838], [(18, 5), (19, 1), (20, DEVEL)], "rules/01 §6", Read,
        "The resource pods is refused in limits and for whole pods, too; before, only in requests of containers";
    PrebuiltNameByAnnotation: [13636], [(18, 5), (19, 1), (20, DEVEL)], "rules/10 §2.1", Read,
        "With gate WorkloadIdentifierAnnotations off, the name of an existing Workload that is too long for a label is read from the annotation; before, it was not";
    RaySubmitterIsConstrained: [12644], [(17, 7), (18, 3), (19, 0)], "rules/10 §5.9", Read,
        "The submitter of a RayJob without a template of its own gets what its flavor demands; before, nothing";
    // Kueue 0.20: queues, cycles, flavors and preemption.
    OtherResultsEndStickiness: [14863], [(20, 0)], "rules/05 §5", Read,
        "A preemptor that comes back to its queue for any other reason than its victims loses its place in front; before, only when it left the queue";
    PreemptionIsSizedByAssignment: [16167], [(20, 0)], "rules/03 §8", Read,
        "Victims make room for the counts of the assignment, less the slice that is replaced, and for pods where they have quota; before, for the whole growth of a slice, and never for pods";
    GroupMembersMayBeApart: [16273], [(20, 0)], "rules/03 §3", Read,
        "Scan progress, the replaced slice and a second pass know each pod set by its name, wherever the members of its group stand; before, by its place in a list";
    UncoveredResourceHasAReason: [15304], [(20, 0)], "rules/03 §7.1", Read,
        "A resource without quota that comes after one with quota gives the reason NoMatchingFlavor; before, none, and the status was refused";
    ZeroPodsNeedRoomForOne: [15444], [(20, 0)], "rules/03 §4", Read,
        "Pod sets of no pods get a flavor whose maximum capacity holds a pod of each, if there is one; before, the first flavor that suits";
    CohortCycleIsShown: [13774], [(20, 0)], "rules/02 §5", Read,
        "A ClusterQueue below a cycle of cohorts is not Active, with reason CohortCycleDetected; before, it could say Ready";
    SameNamedLocalQueuesDiffer: [14547], [(20, 0)], "rules/04 §3", Read,
        "Usage of LocalQueues orders candidates also where these differ only in their namespaces; before, only where the names differ";
    LimitRangeEditsRetryWorkloads: [14967], [(20, 0)], "rules/05 §3.1", Read,
        "A LimitRange with other constraints has the pending workloads of its namespace retried; before, none";
    RejectionCountsDuringEviction: [14309], [(20, 0)], "rules/07 §3", Proposal,
        "A check that rejects a workload while that is being evicted deactivates it; before, it had no effect then";
    DerivedDeactivationIsUndone: [14874], [(20, 0)], "rules/07 §9", Proposal,
        "A workload that was deactivated for a cause is requeued when it is reactivated; before, only one without a cause";
    UnresolvedDevicesAreNamed: [16123], [(20, 0)], "rules/09 §8", Changelog,
        "Devices that cannot be charged give the reason DRAResourcesUnresolved to QuotaReserved and Requeued; before, Misconfigured and Inadmissible";
    AdmittedWaitIsMeasured: [15829], [(20, 0)], "rules/05 §6.6", Changelog,
        "The event Admitted of a second pass says how long ago quota was reserved; before, 0s";
    // Kueue 0.20: topology.
    DonePodSetsLeaveNodes: [15219], [(20, 0)], "rules/08 §4.5", Proposal,
        "Topology: a pod set of which no pods are left takes no room of its domains; before, all of it until its workload ended";
    CycleUsageReachesAllFlavors: [14366], [(20, 0)], "rules/08 §4.5", Read,
        "Topology: what a cycle places or has leave a node is seen by all flavors with that node; before, only by the flavor of these pods";
    ReplacedSliceLeavesNodes: [15579], [(20, 0)], "rules/08 §14", Read,
        "Elastic jobs: while a slice is placed, that which it replaces takes no room; before, pods that stay were counted twice";
    FailuresByHostname: [15575, 14304], [(20, 0)], "rules/08 §13.1", Proposal,
        "Topology: a failed node is known by its label kubernetes.io/hostname, as assignments name it; before, by its name";
    OwnPodsProgress: [15365], [(20, 0)], "rules/08 §13.2", Changelog,
        "Topology: a node that is not ready fails for a workload once the workload's own pods have left it; before, once all pods of the namespace had";
    PodIndexOffsetIsChecked: [14485, 14475], [(20, 0)], "rules/08 §12.2", Proposal,
        "MPIJobs and LeaderWorkerSets: pod-index-offset is refused beside a group name, and unless it is a non-negative integer; before, it was not looked at";
    PrebuiltTopologyIsCompared: [14585, 14583], [(20, 0)], "rules/10 §3.4", Proposal,
        "A prebuilt Workload that requests another topology than its job is out of sync; before, it was taken over";
    StatefulSetTopologyIsChecked: [15857, 16039], [(20, 0)], "rules/08 §2.4", Proposal,
        "The topology annotations of a StatefulSet are checked; before, they were not";
    NodeChangesRetryTheirQueues: [16152], [(20, 0)], "rules/08 §11.11", Changelog,
        "Topology: a change of a node or flavor has the workloads of queues with that flavor retried; before, those of all queues";
    // Kueue 0.20: charges, validation and statuses.
    OwnLimitsBeforeDefaults: [15023], [(20, 0)], "rules/01 §7.3", Read,
        "A container's own limits are its missing requests before the defaults of LimitRanges are; before, a default request won over the container's limit";
    ContainersBoundPodLevelRequests: [16047], [(20, 0)], "rules/01 §7.3", Read,
        "A request for a whole pod below the sum of its containers counts as that sum; before, as it is";
    ExcludedResourcesAreInputs: [15954, 16041], [(20, 0)], "rules/01 §7.3", Proposal,
        "Excluded resources are inputs and multipliers of transformations; before, they were dropped first";
    DevicesReplaceContainerRequests: [14154], [(20, 0)], "rules/09 §8", Proposal,
        "Devices replace what containers request of an extended resource, sidecars beside them; before, everything under its name, without a sum over sidecars";
    MinCountMayBeZero: [14720], [(20, 0)], "rules/01 §10", Proposal,
        "minCount of a pod set may be 0 in the schema; before, it was at least 1";
    ConcurrentFlavorsUpTo32: [15949], [(20, 0)], "rules/09 §4", Changelog,
        "With concurrentAdmissionPolicy, a resource group has up to 32 flavors; before 16";
    SchemaFieldsOf020: [], [(20, 0)], "rules/01 §10", Read,
        "ClusterQueues and Cohorts have status.effectiveQuotas; before, the field was dropped";
    OldVersionIsNotServed: [14558], [(20, 0)], "rules/01 §8", Changelog,
        "Kueue's kinds are served in v1beta2 alone; before, in v1beta1, too";
    // Kueue 0.20: jobs, MultiKueue and the configuration.
    JobReclaimsFromItsPodSet: [16111], [(20, 0)], "rules/10 §4.5", Read,
        "Reclaimable pods of a Job are counted from the pods of its pod set; before, from its parallelism, though it may exceed the completions";
    SparkRequestsAreSparks: [15833], [(20, 0)], "rules/10 §5.13", Read,
        "A SparkApplication's pods request what Spark does: cores, overhead of memory, and what sparkConf says; before, coreRequest and memory alone";
    SparkNodeSelectorCounts: [15649], [(20, 0)], "rules/10 §5.13", Proposal,
        "spec.nodeSelector of a SparkApplication is part of both pod sets; before, it was ignored, and lost when the job stopped";
    PodLevelPartsAreCompared: [14436], [(20, 0)], "rules/10 §3.4", Proposal,
        "Resources of a whole pod and resource claims count when a Workload is compared with its job; before, they did not";
    StatefulSetCountFollowsScaleUp: [15279], [(20, 0)], "rules/10 §5.6", Proposal,
        "A StatefulSet scaled to 0 and up again has its new replicas counted before its Workload leaves the hold; before, the old ones were charged";
    EvictedSlicesWaitForTheirPods: [15661], [(20, 0)], "rules/09 §2", Proposal,
        "An evicted slice keeps its quota until its pods have stopped, unless an admitted slice has replaced it; before, it lost it at once while a replacement waited";
    LwsSurgeMayBePercentage: [14405], [(20, 0)], "rules/10 §5.7", Changelog,
        "LeaderWorkerSet: a maxSurge in percent counts groups of a rolling update; before, as none, and Workloads of surplus groups were deleted";
    OldRevisionsWaitForAdmission: [16329], [(20, 0)], "rules/10 §5.6", Changelog,
        "Pods that a rolling update replaces are ungated once their Workload is admitted; before, at once";
    QueueChangesReachGatedPods: [16270], [(20, 0)], "rules/10 §5.6", Changelog,
        "A changed queue of a StatefulSet is written to its gated pods; before, to all";
    DefaultPriorityClassNeedsManagedNamespace: [15851], [(20, 0)], "rules/10 §2.2", Changelog,
        "Jobs get the default WorkloadPriorityClass only where managedJobsNamespaceSelector selects their namespace; before, in every namespace";
    WorkersWithoutOwnerAreRetried: [14997], [(20, 0)], "rules/06 §4", Proposal,
        "MultiKueue: a remote Workload that ends because its owner is gone resets the check; before, the manager's Workload ended, too";
    ClientConnectionIsFaster: [15206], [(20, 0)], "rules/11 §2", Changelog,
        "clientConnection allows 1000 requests a second and bursts of 1000; before 300 and 500";
    SchedulerLibraryNeedsTopology: [16362], [(20, 0)], "rules/11 §4.3", Changelog,
        "Gate SchedulerLibraryIntegration needs TopologyAwareScheduling; before, nothing";
    EndedServingPodsAreLetGo: [14632], [(20, 0)], "rules/10 §5.4", Proposal,
        "A pod of a serving group that is being deleted and has ended loses its finalizer at once; before, only once another pod took its place, and with Succeeded it counted as one that runs";
    GroupsWithoutPodsEndEvictions: [14578], [(20, 0)], "rules/10 §5.4", Proposal,
        "The evicted Workload of a StatefulSet or LeaderWorkerSet that has no pods left gives its quota back and stays; before, it was finished, or let go with its quota";
    EvictedSlicesLoseTheirCopies: [15871], [(20, 0)], "rules/06 §5.4", Changelog,
        "MultiKueue: an evicted slice that replaces another is removed from the workers; before, its copies stayed, and ran with the old spec when it was admitted again";
    ReservedPriorityKeepsItsKind: [14565], [(20, 0)], "rules/10 §3.3", Proposal,
        "A Workload with quota stays as it is when its job loses the label of its WorkloadPriorityClass; before, it was written again and again in a way that the API server refuses";
    FailedSubmissionsMayBeRetried: [16364], [(20, 0)], "rules/10 §5", Changelog,
        "A SparkApplication in state SUBMISSION_FAILED has not finished; before, it had";
    SparkIsReadyWithMinExecutors: [14505], [(20, 0)], "rules/10 §5", Proposal,
        "A SparkApplication with dynamic allocation is ready with minExecutors executors; before, with executor.instances";
    RayAutoscalingNeedsItsGate: [13435, 16260], [(20, 0)], "rules/10 §7", Changelog,
        "Ray objects with in-tree autoscaling that MultiKueue manages are refused unless gate MultiKueueRayInTreeAutoscaling is on; before, elastic RayClusters were, and no others";
    UnevaluatedVariantsAreAwaited: [15553], [(20, 0)], "rules/09 §4.3", Proposal,
        "Concurrent admission: a variant does not preempt while a preferred one with QuotaReserved=False and reason PendingEvaluation waits to be tried; before, only while that had no such condition";
    RemotePrioritiesStay: [14963], [(20, 0)], "rules/11 §5", Proposal,
        "Workloads that MultiKueue created keep the priority that their manager gave them when a WorkloadPriorityClass changes; before, they took that of the class of their own cluster";
    PreemptionConfigIsAKind: [15913], [(20, 0)], "rules/01 §1", Read,
        "PreemptionConfig is a kind, which an annotation of a ClusterQueue names; before, it was unknown";
    LocalQueueSelectorIsChecked: [16379], [(20, 0)], "rules/11 §2", Read,
        "Kueue does not start with a metrics.localQueueMetrics.localQueueSelector that is malformed; before, metrics of all LocalQueues were reported";
    CapacityNamesHaveOneSlash: [14951], [(20, 0)], "rules/11 §3.2", Proposal,
        "The name of a capacity that has more than one slash is refused; before, it was accepted";
    LostDomainStopsReplacement: [16321], [(20, 0)], "rules/08 §13.5", Changelog,
        "Topology: pods of a failed node stay where they are if no domain makes their slice whole; before, they could go anywhere";
    ResolvedDevicesAreNamed: [15888], [(20, 0)], "rules/09 §8", Proposal,
        "A workload whose devices can be charged now has Requeued=True with the reason DRAResourcesResolved; before, its conditions were left, here removed";
}
