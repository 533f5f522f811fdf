//! The Workload's spec (rules/01 §6).

use serde_json::Value;

use super::pod::pod_template;
use super::rule::has_integer;
use super::{
    Pattern, Schema, any, boolean, field, has, int32, int32_from, items, kind, list, object, one_of, reference, text,
    text_of,
};

pub(super) fn workload(old: bool) -> Schema {
    let pod_sets = list(pod_set(old)).at_least(1).at_most(18).unique_by(&["name"]);
    let mut pod_sets = field("podSets", pod_sets);
    pod_sets.required = old;
    let mut fields = vec![
        pod_sets,
        field("queueName", reference()),
        field("priority", int32()),
        field("active", boolean()).default(true),
        field("maximumExecutionTimeSeconds", int32_from(1)),
    ];
    let spec = if old {
        fields.push(field("priorityClassName", reference()));
        let sources = &["kueue.x-k8s.io/workloadpriorityclass", "scheduling.k8s.io/priorityclass", ""];
        fields.push(field("priorityClassSource", one_of(sources)).default(""));
        object(fields).rule("priority should not be nil when priorityClassName is set", |spec| {
            Ok(!has(spec, "priorityClassName") || has_integer(spec, "priority")?)
        })
    } else {
        fields.push(field("priorityClassRef", priority_class_ref()));
        let gate = object([field("name", text().at_least(1).at_most(63)).required()]);
        fields.push(field("preemptionGates", list(gate).at_most(8).unique_by(&["name"])));
        object(fields).rule("priority should not be nil when priorityClassRef is set", |spec| {
            Ok(!has(spec, "priorityClassRef") || has_integer(spec, "priority")?)
        })
    };
    let status = if old { any() } else { super::status::workload_status() };
    kind([field("spec", spec), field("status", status)]).rule(
        "podSetAssignments must have the same number of podSets as the spec",
        |workload| {
            let status = &workload["status"];
            let is_reserved = |c: &Value| text_of(c, "type") == "QuotaReserved" && text_of(c, "status") == "True";
            let reserved = items(status, "conditions").iter().any(is_reserved);
            !reserved
                || !has(status, "admission")
                || items(&workload["spec"], "podSets").len() == items(&status["admission"], "podSetAssignments").len()
        },
    )
}

fn priority_class_ref() -> Schema {
    object([
        field("group", one_of(&["kueue.x-k8s.io", "scheduling.k8s.io"])).required(),
        field("kind", one_of(&["WorkloadPriorityClass", "PriorityClass"])).required(),
        field("name", reference().at_least(1)).required(),
    ])
    .rule("only the PriorityClass kind is allowed for the scheduling.k8s.io group", |class| {
        text_of(class, "group") != "scheduling.k8s.io" || text_of(class, "kind") == "PriorityClass"
    })
    .rule("only the WorkloadPriorityClass kind is allowed for the kueue.x-k8s.io group", |class| {
        text_of(class, "group") != "kueue.x-k8s.io" || text_of(class, "kind") == "WorkloadPriorityClass"
    })
}

fn pod_set(old: bool) -> Schema {
    let mut count = field("count", int32_from(0)).default(1);
    count.required = old;
    object([
        field("name", text().at_most(63).like(Pattern::Label)).default("main"),
        count,
        field("minCount", int32_from(1)),
        field("template", pod_template()).required(),
        field("topologyRequest", topology_request(old)),
    ])
    .rule("minCount should be positive and less or equal to count", |pod_set| {
        let number = |name| pod_set.get(name).and_then(Value::as_i64);
        let bounded = has_integer(pod_set, "minCount")? && has_integer(pod_set, "count")?;
        Ok(!bounded || number("minCount") <= number("count"))
    })
}

fn topology_request(old: bool) -> Schema {
    let limited = |max: usize| if old { text() } else { text().at_most(max) };
    let mut fields = vec![
        field("required", limited(63)),
        field("preferred", limited(63)),
        field("unconstrained", boolean()),
        field("podIndexLabel", limited(317)),
        field("subGroupIndexLabel", limited(317)),
        field("subGroupCount", int32_from(if old { i64::MIN } else { 0 })),
        field("podSetGroupName", limited(256)),
        field("podSetSliceRequiredTopology", limited(63)),
        field("podSetSliceSize", int32_from(1)),
    ];
    if !old {
        let constraint = object([
            field("topology", text().at_least(1).at_most(63)).required(),
            field("size", int32_from(1)).required(),
        ]);
        fields.push(field("podsetSliceRequiredTopologyConstraints", list(constraint).at_most(3)));
    }
    object(fields)
}
