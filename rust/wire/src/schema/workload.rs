//! The Workload's spec (rules/01 §6).

use kueuecore::base::changes::Change;
use serde_json::Value;

use super::pod::pod_template;
use super::rule::{Outcome, has_integer};
use super::status::workload_status;
use super::{
    Pattern, Schema, Served, boolean, field, has, int32, int32_from, items, kind, list, object, one_of, reference,
    text, text_of,
};

/// A condition of a Workload is True, in CEL.
macro_rules! is_true {
    ($workload:literal, $condition:literal) => {
        concat!(
            "(has(",
            $workload,
            ".status) && has(",
            $workload,
            ".status.conditions) && ",
            $workload,
            ".status.conditions.exists(it, it.type == '",
            $condition,
            "' && it.status == 'True'))"
        )
    };
}

/// Quota was reserved, and the priority class is set before and after, in CEL.
macro_rules! keeps_class {
    () => {
        concat!(
            is_true!("oldSelf", "QuotaReserved"),
            " && has(self.spec.priorityClassRef) && has(oldSelf.spec.priorityClassRef)"
        )
    };
}

/// Quota was reserved, and the source of the priority class is set before and after, in CEL.
macro_rules! keeps_source {
    () => {
        concat!(
            is_true!("oldSelf", "QuotaReserved"),
            " && has(self.spec.priorityClassSource) && has(oldSelf.spec.priorityClassSource)"
        )
    };
}

fn workload_spec(served: Served) -> Schema {
    let old = served.old;
    let pod_sets = list(pod_set(served)).at_least(1).at_most(served.most_pod_sets()).unique_by(&["name"]);
    let mut pod_sets = field("podSets", pod_sets);
    pod_sets.required = old;
    let mut fields = vec![
        pod_sets,
        field("queueName", reference()),
        field("priority", int32()),
        field("active", boolean()).default(true),
        field("maximumExecutionTimeSeconds", int32_from(1)),
    ];
    if old {
        fields.push(field("priorityClassName", reference()));
        let sources = &["kueue.x-k8s.io/workloadpriorityclass", "scheduling.k8s.io/priorityclass", ""];
        fields.push(field("priorityClassSource", one_of(sources)).default(""));
        object(fields).rule(
            "priority should not be nil when priorityClassName is set",
            "has(self.priorityClassName) ? has(self.priority) : true",
            |spec| Ok(!has(spec, "priorityClassName") || has_integer(spec, "priority")?),
        )
    } else {
        fields.push(field("priorityClassRef", priority_class_ref()));
        if served.has(Change::SchemaFieldsOf017) {
            let gate = object([field("name", text().at_least(1).at_most(63)).required()]);
            fields.push(field("preemptionGates", list(gate).at_most(8).unique_by(&["name"])));
        }
        object(fields).rule(
            "priority should not be nil when priorityClassRef is set",
            "has(self.priorityClassRef) ? has(self.priority) : true",
            |spec| Ok(!has(spec, "priorityClassRef") || has_integer(spec, "priority")?),
        )
    }
}

pub(super) fn workload(served: Served) -> Schema {
    let workload = kind([field("spec", workload_spec(served)), field("status", workload_status(served))]).rule(
        "podSetAssignments must have the same number of podSets as the spec",
        concat!(
            is_true!("self", "QuotaReserved"),
            " && has(self.status.admission) \
             ? size(self.spec.podSets) == size(self.status.admission.podSetAssignments) : true"
        ),
        |workload| {
            let status = &workload["status"];
            let is_reserved = |c: &Value| text_of(c, "type") == "QuotaReserved" && text_of(c, "status") == "True";
            let reserved = items(status, "conditions").iter().any(is_reserved);
            if !reserved || !has(status, "admission") {
                return Ok(true);
            }
            let spec = workload.get("spec").ok_or(Outcome::NoSuchKey("spec"))?;
            Ok(length_of(spec, "podSets")? == length_of(&status["admission"], "podSetAssignments")?)
        },
    );
    let workload = if served.old { old_class_stays(workload) } else { class_stays(workload) };
    workload
        .on_update(
            "queueName is immutable while workload quota reserved",
            if served.has(Change::QueueNameFixedWhileReserved) { QUEUE_STAYS } else { NAMED_QUEUE_STAYS },
        )
        .on_update(
            "maximumExecutionTimeSeconds is immutable while workload quota reserved",
            concat!(
                is_true!("oldSelf", "Admitted"),
                " && ",
                is_true!("self", "Admitted"),
                " ? (has(self.spec.maximumExecutionTimeSeconds) ? has(oldSelf.spec.maximumExecutionTimeSeconds) \
                 && self.spec.maximumExecutionTimeSeconds == oldSelf.spec.maximumExecutionTimeSeconds \
                 : !has(oldSelf.spec.maximumExecutionTimeSeconds)) : true"
            ),
        )
}

/// The queue neither changes nor comes nor goes while quota is reserved, in CEL.
const QUEUE_STAYS: &str = concat!(
    is_true!("oldSelf", "QuotaReserved"),
    " && ",
    is_true!("self", "QuotaReserved"),
    " ? (has(self.spec.queueName) ? has(oldSelf.spec.queueName) \
     && self.spec.queueName == oldSelf.spec.queueName : !has(oldSelf.spec.queueName)) : true"
);
/// The queue changes to no other while quota is reserved, in CEL.
const NAMED_QUEUE_STAYS: &str = concat!(
    is_true!("oldSelf", "QuotaReserved"),
    " && ",
    is_true!("self", "QuotaReserved"),
    " && has(self.spec.queueName) && has(oldSelf.spec.queueName) \
     ? self.spec.queueName == oldSelf.spec.queueName : true"
);

fn class_stays(workload: Schema) -> Schema {
    workload
        .on_update(
            "priorityClassRef is immutable while workload quota reserved",
            concat!(
                is_true!("oldSelf", "QuotaReserved"),
                " ? has(self.spec.priorityClassRef) == has(oldSelf.spec.priorityClassRef) : true"
            ),
        )
        .on_update(
            "priorityClassRef.group is immutable while workload quota reserved",
            concat!(
                keeps_class!(),
                " ? self.spec.priorityClassRef.group == oldSelf.spec.priorityClassRef.group : true"
            ),
        )
        .on_update(
            "priorityClassRef.kind is immutable while workload quota reserved",
            concat!(keeps_class!(), " ? self.spec.priorityClassRef.kind == oldSelf.spec.priorityClassRef.kind : true"),
        )
        .on_update(
            "priorityClassRef.name is immutable for scheduling.k8s.io/priorityclass while workload quota reserved",
            concat!(
                keeps_class!(),
                " && self.spec.priorityClassRef.kind == 'PriorityClass' \
                 && self.spec.priorityClassRef.group == 'scheduling.k8s.io' \
                 ? self.spec.priorityClassRef.name == oldSelf.spec.priorityClassRef.name : true"
            ),
        )
}

fn old_class_stays(workload: Schema) -> Schema {
    workload
        .on_update(
            "priorityClassSource is immutable while workload quota reserved",
            concat!(keeps_source!(), " ? self.spec.priorityClassSource == oldSelf.spec.priorityClassSource : true"),
        )
        .on_update(
            "priorityClassName is immutable while workload quota reserved and priorityClassSource is not equal to \
             kueue.x-k8s.io/workloadpriorityclass",
            concat!(
                keeps_source!(),
                " && self.spec.priorityClassSource != 'kueue.x-k8s.io/workloadpriorityclass' \
                 && has(self.spec.priorityClassName) && has(oldSelf.spec.priorityClassName) \
                 ? self.spec.priorityClassName == oldSelf.spec.priorityClassName : true"
            ),
        )
}

fn length_of(value: &Value, name: &'static str) -> Result<usize, Outcome> {
    value.get(name).and_then(Value::as_array).map(Vec::len).ok_or(Outcome::NoSuchKey(name))
}

fn priority_class_ref() -> Schema {
    object([
        field("group", one_of(&["kueue.x-k8s.io", "scheduling.k8s.io"])).required(),
        field("kind", one_of(&["WorkloadPriorityClass", "PriorityClass"])).required(),
        field("name", reference().at_least(1)).required(),
    ])
    .rule(
        "only the PriorityClass kind is allowed for the scheduling.k8s.io group",
        "self.kind == 'PriorityClass' || self.group != 'scheduling.k8s.io'",
        |class| text_of(class, "group") != "scheduling.k8s.io" || text_of(class, "kind") == "PriorityClass",
    )
    .rule(
        "only the WorkloadPriorityClass kind is allowed for the kueue.x-k8s.io group",
        "self.kind == 'WorkloadPriorityClass' || self.group != 'kueue.x-k8s.io'",
        |class| text_of(class, "group") != "kueue.x-k8s.io" || text_of(class, "kind") == "WorkloadPriorityClass",
    )
}

fn pod_set(served: Served) -> Schema {
    let mut count = field("count", int32_from(0)).default(1);
    count.required = served.old;
    object([
        field("name", text().at_most(63).like(Pattern::Label)).default("main"),
        count,
        field("minCount", int32_from(if served.has(Change::MinCountMayBeZero) { 0 } else { 1 })),
        field("template", pod_template()).required(),
        field("topologyRequest", topology_request(served)),
    ])
    .rule(
        "minCount should be positive and less or equal to count",
        "has(self.minCount) ? self.count >= self.minCount : true",
        |pod_set| {
            let number = |name| pod_set.get(name).and_then(Value::as_i64);
            let bounded = has_integer(pod_set, "minCount")? && has_integer(pod_set, "count")?;
            Ok(!bounded || number("minCount") <= number("count"))
        },
    )
}

fn topology_request(served: Served) -> Schema {
    let old = served.old;
    let least = |change, min| if served.has(change) { min } else { i64::MIN };
    let sub_groups = if old { i64::MIN } else { least(Change::SubGroupCountMinimum, 0) };
    let limited = |max: usize| if old { text() } else { text().at_most(max) };
    let mut fields = vec![
        field("required", limited(63)),
        field("preferred", limited(63)),
        field("unconstrained", boolean()),
        field("podIndexLabel", limited(317)),
        field("subGroupIndexLabel", limited(317)),
        field("subGroupCount", int32_from(sub_groups)),
        field("podSetGroupName", limited(256)),
        field("podSetSliceRequiredTopology", limited(63)),
        field("podSetSliceSize", int32_from(least(Change::PodSetSliceSizeMinimum, 1))),
    ];
    if !old && served.has(Change::SchemaFieldsOf017) {
        let constraint = object([
            field("topology", text().at_least(1).at_most(63)).required(),
            field("size", int32_from(1)).required(),
        ]);
        fields.push(field("podsetSliceRequiredTopologyConstraints", list(constraint).at_most(3)));
    }
    object(fields)
}
