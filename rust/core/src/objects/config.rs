//! The part of Kueue's `Configuration` that scheduling reads (rules/01 §9, rules/11 §2).

use std::collections::BTreeMap;

use crate::base::changes::{Change, Changes};
use crate::base::gates::{Gate, Gates};
use crate::base::quantity::Quantity;
use crate::base::releases::Release;
use crate::objects::StringMap;

/// The settings of a cycle: its input besides the objects and `now`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The release of Kueue whose decisions these are.
    pub release: Release,
    /// Feature gates.
    pub gates: Gates,
    /// Changes without a gate that are in effect.
    pub changes: Changes,
    /// `fairSharing`; present turns Fair Sharing on.
    pub fair_sharing: Option<FairSharing>,
    /// `admissionFairSharing`; absent is off.
    pub admission_fair_sharing: Option<AdmissionFairSharing>,
    /// `waitForPodsReady`; `None` where pod readiness is not modelled.
    pub wait_for_pods_ready: Option<WaitForPodsReady>,
    /// The queue time of a Workload that was evicted because its pods were not ready. It normally comes from the
    /// requeuing strategy; this is what counts, even while `wait_for_pods_ready` is `None`.
    pub requeuing_timestamp: RequeuingTimestamp,
    /// `resources`.
    pub resources: Resources,
    /// Do requested retries wait, so that several become one, as in a running Kueue (rules/05 §3.1)?
    pub batches_retries: bool,
    /// Rules that Kueue does not have; all off by default.
    pub experiments: Experiments,
}

/// Rules that were asked for and that Kueue does not have (rules/13); `None`: off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Experiments {
    /// How long a workload runs before other ClusterQueues may preempt it (rules/13 §2).
    pub min_run_ns: Option<i64>,
    /// How long a ClusterQueue does not borrow again what was reclaimed from it (rules/13 §3).
    pub reclaim_backoff_ns: Option<i64>,
    /// How long a workload runs before others of its priority take its turn (rules/13 §4).
    pub time_share_ns: Option<i64>,
}

impl Experiments {
    /// Is any of them on?
    #[must_use]
    pub fn are_on(&self) -> bool {
        *self != Self::default()
    }
}

impl Config {
    /// The settings of a release without a file.
    #[must_use]
    pub fn of(release: Release) -> Self {
        Config { release, gates: Gates::of(release), changes: Changes::of(release), ..Config::default() }
    }

    /// How long a requested retry waits for others; `None`: it does not (rules/05 §3.1).
    #[must_use]
    pub fn retry_delay_ns(&self) -> Option<i64> {
        let seconds = if self.gates.enabled(Gate::SchedulerLongRequeueInterval) { 10 } else { 1 };
        let batches = self.batches_retries && self.changes.has(Change::RetriesAreBatched);
        batches.then_some(seconds * 1_000_000_000)
    }
}

/// `fairSharing`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FairSharing {
    /// Empty acts as both strategies in order (rules/04 §5.2).
    pub preemption_strategies: Vec<PreemptionStrategy>,
}

/// One strategy of `fairSharing.preemptionStrategies`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreemptionStrategy {
    LessThanOrEqualToFinalShare,
    LessThanInitialShare,
}

/// `admissionFairSharing`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdmissionFairSharing {
    pub usage_half_life_ns: i64,
    pub usage_sampling_interval_ns: i64,
    /// Missing resource: weight 1.
    pub resource_weights: BTreeMap<String, f64>,
}

/// `waitForPodsReady`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitForPodsReady {
    pub timeout_ns: i64,
    /// `None`: no recovery timeout.
    pub recovery_timeout_ns: Option<i64>,
    /// How long pods may be without a node, since the admission; `None`: that is not followed.
    pub unscheduled_timeout_ns: Option<i64>,
    pub block_admission: bool,
    pub requeuing_timestamp: RequeuingTimestamp,
    /// `None`: no limit.
    pub backoff_limit_count: Option<i32>,
    pub backoff_base_seconds: i32,
    pub backoff_max_seconds: i32,
}

/// `requeuingStrategy.timestamp`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequeuingTimestamp {
    #[default]
    Eviction,
    Creation,
}

/// `resources`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    pub exclude_resource_prefixes: Vec<String>,
    /// By input resource.
    pub transformations: BTreeMap<String, Transformation>,
    /// `quotaCheckStrategy: IgnoreUndeclared`.
    pub ignore_undeclared: bool,
    /// Device class to the quota resource that it is charged to; of mappings with sources, the first one.
    pub device_classes: StringMap,
    /// `deviceClassMappings` with all that they say (rules/11 §3.2).
    pub device_class_mappings: Vec<DeviceClassMapping>,
}

/// One resource transformation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transformation {
    /// `strategy: Replace`; otherwise the input is retained.
    pub replace: bool,
    /// Empty: no multiplication.
    pub multiply_by: String,
    pub outputs: BTreeMap<String, Quantity>,
}

/// One device class mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceClassMapping {
    /// The resource that quota is counted in.
    pub name: String,
    pub device_class_names: Vec<String>,
    /// Empty: a claim charges its number of devices.
    pub sources: Vec<DeviceSource>,
}

/// What a claim charges instead of its number of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSource {
    pub kind: DeviceSourceKind,
    /// Of the counter or capacity.
    pub name: String,
    pub driver: String,
    /// A CEL expression over a device; never evaluated here.
    pub device_selector: String,
}

/// The kinds of a [`DeviceSource`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceSourceKind {
    Counter,
    Capacity,
}
