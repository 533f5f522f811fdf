//! ClusterQueue, Cohort and LocalQueue (rules/01 §1-3).

use kueuecore::base::quantity::Quantity;
use kueuecore::objects::{
    AdmissionCheckRule, BorrowWithinCohort, ClusterQueue, Cohort, FlavorFungibility, FlavorQuotas, FungibilityPolicy,
    FungibilityPreference, LabelSelector, LocalQueue, Meta, Preemption, PreemptionPolicy, QueueingStrategy,
    ResourceGroup, ResourceList, ResourceQuota, StopPolicy,
};
use serde::Deserialize;

use super::meta::{MetaWire, SelectorWire};
use crate::read::{QuantityText, list, maybe, nil, part, quantity, resources, text};
use crate::words::Word;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClusterQueueWire {
    #[serde(deserialize_with = "part::<_, MetaWire, _>")]
    metadata: Meta,
    #[serde(deserialize_with = "nil")]
    spec: ClusterQueueSpec,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ClusterQueueSpec {
    #[serde(deserialize_with = "nil")]
    cohort_name: String,
    #[serde(deserialize_with = "list::<_, GroupWire, _>")]
    resource_groups: Vec<ResourceGroup>,
    #[serde(deserialize_with = "nil")]
    queueing_strategy: String,
    #[serde(deserialize_with = "maybe::<_, SelectorWire, _>")]
    namespace_selector: Option<LabelSelector>,
    #[serde(deserialize_with = "part::<_, FungibilityWire, _>")]
    flavor_fungibility: FlavorFungibility,
    #[serde(deserialize_with = "maybe::<_, PreemptionWire, _>")]
    preemption: Option<Preemption>,
    #[serde(deserialize_with = "nil")]
    admission_checks_strategy: StrategyWire,
    #[serde(deserialize_with = "nil")]
    stop_policy: String,
    #[serde(deserialize_with = "nil")]
    fair_sharing: FairSharingWire,
    #[serde(deserialize_with = "nil")]
    admission_scope: ScopeWire,
    #[serde(deserialize_with = "text")]
    concurrent_admission_policy: String,
}

impl From<ClusterQueueWire> for ClusterQueue {
    fn from(wire: ClusterQueueWire) -> Self {
        let spec = wire.spec;
        ClusterQueue {
            meta: wire.metadata,
            cohort_name: spec.cohort_name,
            resource_groups: spec.resource_groups,
            queueing_strategy: QueueingStrategy::read(&spec.queueing_strategy).unwrap_or_default(),
            namespace_selector: spec.namespace_selector,
            flavor_fungibility: spec.flavor_fungibility,
            preemption: spec.preemption,
            admission_checks: spec.admission_checks_strategy.admission_checks,
            stop_policy: StopPolicy::read(&spec.stop_policy).unwrap_or_default(),
            fair_weight: spec.fair_sharing.weight,
            usage_based_admission: spec.admission_scope.admission_mode == "UsageBasedAdmissionFairSharing",
            last_acceptable_flavor: last_acceptable_flavor(&spec.concurrent_admission_policy),
            concurrent_admission_policy: spec.concurrent_admission_policy,
        }
    }
}

fn last_acceptable_flavor(policy: &str) -> Option<String> {
    let policy: serde_json::Value = serde_json::from_str(policy).ok()?;
    Some(policy.pointer("/migration/constraints/lastAcceptableFlavorName")?.as_str()?.to_owned())
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct GroupWire {
    #[serde(deserialize_with = "nil")]
    covered_resources: Vec<String>,
    #[serde(deserialize_with = "list::<_, FlavorWire, _>")]
    flavors: Vec<FlavorQuotas>,
}

impl From<GroupWire> for ResourceGroup {
    fn from(wire: GroupWire) -> Self {
        ResourceGroup { covered_resources: wire.covered_resources, flavors: wire.flavors }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct FlavorWire {
    #[serde(deserialize_with = "nil")]
    name: String,
    #[serde(deserialize_with = "list::<_, QuotaWire, _>")]
    resources: Vec<ResourceQuota>,
}

impl From<FlavorWire> for FlavorQuotas {
    fn from(wire: FlavorWire) -> Self {
        FlavorQuotas { name: wire.name, resources: wire.resources }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct QuotaWire {
    #[serde(deserialize_with = "nil")]
    name: String,
    #[serde(deserialize_with = "part::<_, QuantityText, _>")]
    nominal_quota: Quantity,
    #[serde(deserialize_with = "quantity")]
    borrowing_limit: Option<Quantity>,
    #[serde(deserialize_with = "quantity")]
    lending_limit: Option<Quantity>,
}

impl From<QuotaWire> for ResourceQuota {
    fn from(wire: QuotaWire) -> Self {
        ResourceQuota {
            name: wire.name,
            nominal_quota: wire.nominal_quota,
            borrowing_limit: wire.borrowing_limit,
            lending_limit: wire.lending_limit,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct FungibilityWire {
    #[serde(deserialize_with = "nil")]
    when_can_borrow: String,
    #[serde(deserialize_with = "nil")]
    when_can_preempt: String,
    #[serde(deserialize_with = "nil")]
    preference: String,
}

impl From<FungibilityWire> for FlavorFungibility {
    fn from(wire: FungibilityWire) -> Self {
        let defaults = FlavorFungibility::default();
        FlavorFungibility {
            when_can_borrow: fungibility_policy(&wire.when_can_borrow, defaults.when_can_borrow),
            when_can_preempt: fungibility_policy(&wire.when_can_preempt, defaults.when_can_preempt),
            preference: FungibilityPreference::read(&wire.preference),
        }
    }
}

fn fungibility_policy(text: &str, absent: FungibilityPolicy) -> FungibilityPolicy {
    if text.is_empty() { absent } else { FungibilityPolicy::read(text).unwrap_or(FungibilityPolicy::MayStopSearch) }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PreemptionWire {
    #[serde(deserialize_with = "nil")]
    reclaim_within_cohort: String,
    #[serde(deserialize_with = "nil")]
    within_cluster_queue: String,
    #[serde(deserialize_with = "maybe::<_, BorrowWire, _>")]
    borrow_within_cohort: Option<BorrowWithinCohort>,
}

impl From<PreemptionWire> for Preemption {
    fn from(wire: PreemptionWire) -> Self {
        Preemption {
            reclaim_within_cohort: preemption_policy(&wire.reclaim_within_cohort),
            within_cluster_queue: preemption_policy(&wire.within_cluster_queue),
            borrow_within_cohort: wire.borrow_within_cohort,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct BorrowWire {
    #[serde(deserialize_with = "nil")]
    policy: String,
    max_priority_threshold: Option<i32>,
}

impl From<BorrowWire> for BorrowWithinCohort {
    fn from(wire: BorrowWire) -> Self {
        BorrowWithinCohort {
            policy: preemption_policy(&wire.policy),
            max_priority_threshold: wire.max_priority_threshold,
        }
    }
}

fn preemption_policy(text: &str) -> PreemptionPolicy {
    PreemptionPolicy::read(text).unwrap_or_default()
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct StrategyWire {
    #[serde(deserialize_with = "list::<_, CheckRuleWire, _>")]
    admission_checks: Vec<AdmissionCheckRule>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CheckRuleWire {
    #[serde(deserialize_with = "nil")]
    name: String,
    #[serde(deserialize_with = "nil")]
    on_flavors: Vec<String>,
}

impl From<CheckRuleWire> for AdmissionCheckRule {
    fn from(wire: CheckRuleWire) -> Self {
        AdmissionCheckRule { name: wire.name, on_flavors: wire.on_flavors }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct FairSharingWire {
    #[serde(deserialize_with = "quantity")]
    weight: Option<Quantity>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ScopeWire {
    #[serde(deserialize_with = "nil")]
    admission_mode: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CohortWire {
    #[serde(deserialize_with = "part::<_, MetaWire, _>")]
    metadata: Meta,
    #[serde(deserialize_with = "nil")]
    spec: CohortSpec,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CohortSpec {
    #[serde(deserialize_with = "nil")]
    parent_name: String,
    #[serde(deserialize_with = "list::<_, GroupWire, _>")]
    resource_groups: Vec<ResourceGroup>,
    #[serde(deserialize_with = "nil")]
    fair_sharing: FairSharingWire,
}

impl From<CohortWire> for Cohort {
    fn from(wire: CohortWire) -> Self {
        Cohort {
            meta: wire.metadata,
            parent_name: wire.spec.parent_name,
            resource_groups: wire.spec.resource_groups,
            fair_weight: wire.spec.fair_sharing.weight,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LocalQueueWire {
    #[serde(deserialize_with = "part::<_, MetaWire, _>")]
    metadata: Meta,
    #[serde(deserialize_with = "nil")]
    spec: LocalQueueSpec,
    #[serde(deserialize_with = "nil")]
    status: LocalQueueStatus,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct LocalQueueStatus {
    #[serde(deserialize_with = "nil")]
    fair_sharing: LocalQueueFairSharing,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct LocalQueueFairSharing {
    admission_fair_sharing_status: Option<ConsumedWire>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ConsumedWire {
    #[serde(deserialize_with = "resources")]
    consumed_resources: ResourceList,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct LocalQueueSpec {
    #[serde(deserialize_with = "nil")]
    cluster_queue: String,
    #[serde(deserialize_with = "nil")]
    stop_policy: String,
    #[serde(deserialize_with = "nil")]
    fair_sharing: FairSharingWire,
}

impl From<LocalQueueWire> for LocalQueue {
    fn from(wire: LocalQueueWire) -> Self {
        LocalQueue {
            meta: wire.metadata,
            cluster_queue: wire.spec.cluster_queue,
            stop_policy: StopPolicy::read(&wire.spec.stop_policy).unwrap_or_default(),
            fair_weight: wire.spec.fair_sharing.weight,
            consumed_resources: wire
                .status
                .fair_sharing
                .admission_fair_sharing_status
                .map(|status| status.consumed_resources),
        }
    }
}
