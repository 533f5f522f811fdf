//! Kueue's own kinds except the Workload (rules/01 §1-5).

use kueuecore::base::changes::Change;
use kueuecore::objects::words::Word;
use kueuecore::objects::{FungibilityPolicy, FungibilityPreference, QueueingStrategy, StopPolicy};
use serde_json::{Value, json};

use super::flavor::{node_labels, node_taints, resource_groups, tolerations};
use super::kubernetes::{EFFECTS, label_selector};
use super::queue_statuses;
use super::rule::Outcome;
use super::{
    Field, Pattern, Schema, Served, entries, field, has, int32, int64, items, kind, list, map, object, one_of,
    quantity, reference, text, text_of,
};

const HOSTNAME: &str = "kubernetes.io/hostname";
const IMMUTABLE: &str = "field is immutable";
/// In CEL: unchanged.
const SAME: &str = "oldSelf == self";

/// The field of this name is set, or no resource has a borrowing limit.
macro_rules! borrows_with {
    ($cohort:literal) => {
        concat!(
            "has(self.",
            $cohort,
            ") || !has(self.resourceGroups) || !self.resourceGroups.exists(group, group.flavors.exists(flavor, \
             flavor.resources.exists(resource, has(resource.borrowingLimit))))"
        )
    };
}

/// The field of this name stays while there is a topology, in CEL.
macro_rules! stays {
    ($field:literal) => {
        concat!(
            "has(oldSelf.topologyName) ? has(self.",
            $field,
            ") == has(oldSelf.",
            $field,
            ") && (!has(self.",
            $field,
            ") || self.",
            $field,
            " == oldSelf.",
            $field,
            ") : true"
        )
    };
}

/// A kind with a spec and a status.
fn with(spec: Schema, status: Schema) -> Schema {
    kind([field("spec", spec), field("status", status)])
}

pub(super) fn cluster_queue(served: Served) -> Schema {
    let old = served.old;
    let mut fields = vec![
        field("resourceGroups", resource_groups()),
        field("queueingStrategy", one_of(QueueingStrategy::WORDS)).default("BestEffortFIFO"),
        field("namespaceSelector", label_selector()),
        field("flavorFungibility", flavor_fungibility(old)).default(json!({})),
        field("preemption", preemption()).default(json!({})),
        field("admissionChecksStrategy", admission_checks_strategy(old)),
        stop_policy(),
        fair_sharing(),
        field("admissionScope", admission_scope(old)),
    ];
    if old {
        fields.push(field("cohort", reference()));
        fields.push(field("admissionChecks", list(text().at_most(316))));
        return with(
            object(fields).rule(BORROWING_WITHOUT_COHORT, borrows_with!("cohort"), |spec| {
                has(spec, "cohort") || !has_borrowing_limit(spec)
            }),
            queue_statuses::cluster_queue(served),
        );
    }
    fields.push(field("cohortName", reference()));
    if served.has(Change::SchemaFieldsOf018) {
        fields.push(field("concurrentAdmissionPolicy", concurrent_admission()));
    }
    with(
        object(fields).rule(BORROWING_WITHOUT_COHORT, borrows_with!("cohortName"), |spec| {
            has(spec, "cohortName") || !has_borrowing_limit(spec)
        }),
        queue_statuses::cluster_queue(served),
    )
}

const BORROWING_WITHOUT_COHORT: &str = "borrowingLimit must be nil when cohort is empty";

fn has_borrowing_limit(spec: &Value) -> bool {
    let flavors = items(spec, "resourceGroups").iter().flat_map(|group| items(group, "flavors"));
    flavors.flat_map(|flavor| items(flavor, "resources")).any(|resource| has(resource, "borrowingLimit"))
}

fn flavor_fungibility(old: bool) -> Schema {
    let (borrow, preempt): (&[&str], &[&str]) = if old {
        (&["MayStopSearch", "TryNextFlavor", "Borrow"], &["MayStopSearch", "TryNextFlavor", "Preempt"])
    } else {
        (FungibilityPolicy::WORDS, FungibilityPolicy::WORDS)
    };
    object([
        field("whenCanBorrow", one_of(borrow)).default("MayStopSearch"),
        field("whenCanPreempt", one_of(preempt)).default("TryNextFlavor"),
        field("preference", one_of(FungibilityPreference::WORDS)),
    ])
    .rule(
        "preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor",
        "has(self.preference) ? [self.whenCanBorrow, self.whenCanPreempt].all(when, when == 'TryNextFlavor') : true",
        |fungibility| {
            let next = |name| text_of(fungibility, name) == "TryNextFlavor";
            !has(fungibility, "preference") || (next("whenCanBorrow") && next("whenCanPreempt"))
        },
    )
}

fn preemption() -> Schema {
    let borrow = object([
        field("policy", one_of(&["Never", "LowerPriority"])).default("Never"),
        field("maxPriorityThreshold", int32()),
    ]);
    object([
        field("reclaimWithinCohort", one_of(&["Never", "LowerPriority", "Any"])).default("Never"),
        field("withinClusterQueue", one_of(&["Never", "LowerPriority", "LowerOrNewerEqualPriority"])).default("Never"),
        field("borrowWithinCohort", borrow).default(json!({})),
    ])
    .rule(
        "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never",
        "self.reclaimWithinCohort != 'Never' || !has(self.borrowWithinCohort) || self.borrowWithinCohort.policy == 'Never'",
        |preemption| {
            let borrows =
                preemption.get("borrowWithinCohort").is_some_and(|borrow| text_of(borrow, "policy") != "Never");
            text_of(preemption, "reclaimWithinCohort") != "Never" || !borrows
        },
    )
}

fn admission_checks_strategy(old: bool) -> Schema {
    if old {
        let rule = object([field("name", text().at_most(316)).required(), field("onFlavors", list(reference()))]);
        return object([field("admissionChecks", list(rule))]);
    }
    let rule = object([
        field("name", text().at_least(1).at_most(316)).required(),
        field("onFlavors", list(reference()).at_most(64).unique()),
    ]);
    object([field("admissionChecks", list(rule).at_least(1).at_most(64).unique_by(&["name"])).required()])
}

fn admission_scope(old: bool) -> Schema {
    let mode = if old { text() } else { one_of(&["UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"]) };
    object([field("admissionMode", mode).required()])
}

fn concurrent_admission() -> Schema {
    let migration = object([
        field("mode", one_of(&["TryPreferredFlavors", "RetainFirstAdmission"]).at_most(253)).required(),
        field("constraints", object([field("lastAcceptableFlavorName", reference())])),
    ]);
    object([field("migration", migration).required()])
}

fn stop_policy() -> Field {
    field("stopPolicy", one_of(StopPolicy::WORDS)).default("None")
}

fn fair_sharing() -> Field {
    field("fairSharing", object([field("weight", quantity()).default(1)]))
}

pub(super) fn cohort(served: Served) -> Schema {
    with(
        object([field("parentName", reference()), field("resourceGroups", resource_groups()), fair_sharing()]),
        queue_statuses::cohort(served),
    )
}

pub(super) fn local_queue(served: Served) -> Schema {
    let cluster_queue = reference().on_update(IMMUTABLE, SAME);
    with(
        object([field("clusterQueue", cluster_queue), stop_policy(), fair_sharing()]),
        queue_statuses::local_queue(served),
    )
}

pub(super) fn resource_flavor(served: Served) -> Schema {
    let taints = node_taints().rule(
        "supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'",
        "!self.exists(taint, !(taint.effect in ['NoExecute', 'NoSchedule', 'PreferNoSchedule']))",
        |taints| entries(taints).all(|taint| EFFECTS.contains(&text_of(taint, "effect"))),
    );
    let spec = object([
        field("nodeLabels", node_labels()),
        field("nodeTaints", taints),
        field("tolerations", tolerations()),
        field("topologyName", reference()),
    ])
    .rule(
        "at least one nodeLabel is required when topology is set",
        "has(self.topologyName) ? size(self.nodeLabels) > 0 : true",
        |spec| match spec.get("nodeLabels") {
            _ if !has(spec, "topologyName") => Outcome::Holds,
            None => Outcome::NoSuchKey("nodeLabels"),
            Some(labels) => labels.as_object().is_some_and(|labels| !labels.is_empty()).into(),
        },
    );
    if !served.has(Change::TopologyFlavorTaintsMutable) {
        let message = "resourceFlavorSpec are immutable when topologyName is set";
        return kind([field("spec", spec.on_update(message, "has(oldSelf.topologyName) ? oldSelf == self : true"))]);
    }
    let spec = if served.has(Change::TopologyFlavorLabelsMutable) {
        spec
    } else {
        spec.on_update("nodeLabels are immutable when topologyName is set", stays!("nodeLabels"))
            .on_update("tolerations are immutable when topologyName is set", stays!("tolerations"))
    };
    let spec = spec.on_update(
        "topologyName is immutable when topologyName is set",
        "has(oldSelf.topologyName) ? has(self.topologyName) && oldSelf.topologyName == self.topologyName : true",
    );
    kind([field("spec", spec)])
}

pub(super) fn topology(served: Served) -> Schema {
    let level = object([field("nodeLabel", text().at_least(1).at_most(316).like(Pattern::LabelKey)).required()]);
    let levels = list(level).at_least(1).at_most(16);
    let levels = if served.old || !served.has(Change::TopologyLevelsMutable) {
        levels.on_update(IMMUTABLE, SAME)
    } else {
        levels.on_update(
            "levels are mutable only when kubernetes.io/hostname is the lowest level both before and after the change",
            "oldSelf == self || [oldSelf, self].all(levels, levels[size(levels) - 1].nodeLabel == 'kubernetes.io/hostname')",
        )
    };
    let levels = levels.rule("must be unique", ALL_DIFFER, all_differ).rule(
        "the kubernetes.io/hostname label can only be used at the lowest level of topology",
        "self.exists(level, level.nodeLabel == 'kubernetes.io/hostname') \
             ? self[size(self) - 1].nodeLabel == 'kubernetes.io/hostname' : true",
        |levels| {
            let is_hostname = |level: &Value| text_of(level, "nodeLabel") == HOSTNAME;
            !entries(levels).any(is_hostname) || entries(levels).last().is_some_and(is_hostname)
        },
    );
    kind([field("spec", object([field("levels", levels).required()]))])
}

const ALL_DIFFER: &str = "!self.exists(one, self.filter(other, other == one).size() > 1)";

fn all_differ(list: &Value) -> bool {
    let entries: Vec<&Value> = entries(list).collect();
    entries.iter().enumerate().all(|(i, entry)| !entries[..i].contains(entry))
}

pub(super) fn admission_check(old: bool) -> Schema {
    let least = usize::from(!old);
    let parameters = object([
        field("apiGroup", reference().at_least(least)).required(),
        field("kind", text().at_least(least).at_most(63).like(Pattern::KindName)).required(),
        field("name", text().at_least(least).at_most(63).like(Pattern::Label)).required(),
    ]);
    let controller = if old { text() } else { text().at_least(1).at_most(253) };
    let controller = controller.on_update(IMMUTABLE, SAME);
    let mut fields = vec![field("controllerName", controller).required(), field("parameters", parameters)];
    if old {
        fields.push(field("retryDelayMinutes", int64()).default(15));
    }
    with(object(fields), queue_statuses::with_conditions(old))
}

pub(super) fn workload_priority_class(old: bool) -> Schema {
    let description = if old { text() } else { text().at_most(2048) };
    kind([field("value", int32()).required(), field("description", description)])
}

pub(super) fn multikueue_config(served: Served) -> Schema {
    let clusters = |name| list(name).at_least(1).at_most(20);
    if served.old {
        return kind([field("spec", object([field("clusters", clusters(text()).unique()).required()]))]);
    }
    let clusters = clusters(text().at_most(256)).rule("must be unique", ALL_DIFFER, all_differ);
    let mut fields = vec![field("clusters", clusters).required()];
    if served.has(Change::SchemaFieldsOf018) {
        fields.push(field("quotaManagement", one_of(&["Manual", "Automated"])));
    }
    kind([field("spec", object(fields))])
}

pub(super) fn multikueue_cluster(old: bool) -> Schema {
    let location = if old { text() } else { text().at_least(1).at_most(256) };
    let config = object([
        field("location", location).required(),
        field("locationType", one_of(&["Secret", "Path"])).default("Secret"),
    ]);
    let profile = object([field("name", text().at_least(1).at_most(256)).required()]);
    if old {
        let config = config.needs(&["locationType"]);
        let spec = object([field("kubeConfig", config).required(), field("clusterProfileRef", profile)]);
        return with(spec, queue_statuses::with_conditions(old));
    }
    let source = object([field("kubeConfig", config), field("clusterProfileRef", profile)]).rule(
        "exactly one of the fields in [kubeConfig clusterProfileRef] must be set",
        "has(self.clusterProfileRef) ? !has(self.kubeConfig) : has(self.kubeConfig)",
        |source| has(source, "kubeConfig") != has(source, "clusterProfileRef"),
    );
    with(object([field("clusterSource", source).required()]), queue_statuses::with_conditions(old))
}

pub(super) fn provisioning_request_config(old: bool) -> Schema {
    let update = object([
        field("key", text().at_least(1).at_most(317).like(Pattern::LabelKey)).required(),
        field("valueFromProvisioningClassDetail", text().at_least(1).at_most(32768)).required(),
    ]);
    let retry = object([
        field("backoffLimitCount", int32()).default(3),
        field("backoffBaseSeconds", int32()).default(60),
        field("backoffMaxSeconds", int32()).default(1800),
    ]);
    let updates = list(update).at_most(8);
    let updates = if old { updates } else { updates.unique_by(&["key"]) };
    kind([field(
        "spec",
        object([
            field("provisioningClassName", reference().at_least(usize::from(!old))).required(),
            field("parameters", map(text().at_most(255)).at_most(100)),
            field("managedResources", list(text()).at_most(100).unique()),
            field("retryStrategy", retry).default(json!({})),
            field("podSetUpdates", object([field("nodeSelector", updates)])),
            field("podSetMergePolicy", one_of(&["IdenticalPodTemplates", "IdenticalWorkloadSchedulingRequirements"])),
        ]),
    )])
}
