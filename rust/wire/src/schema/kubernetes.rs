//! Metadata, and the kinds of Kubernetes itself.

use super::{Field, Schema, any, boolean, field, int32, int64, kind, known, list, map, object, quantity, text, time};

/// `metadata` of any object.
pub(super) fn metadata() -> Schema {
    let mut fields = vec![
        field("name", text()),
        field("generateName", text()),
        field("namespace", text()),
        field("uid", text()),
        field("creationTimestamp", time()),
        field("deletionTimestamp", time()),
        field("generation", int64()),
        field("labels", map(text())),
        field("annotations", map(text())),
        field("finalizers", list(text())),
        field("ownerReferences", list(owner())),
    ];
    fields.extend(known(&["selfLink", "resourceVersion", "deletionGracePeriodSeconds", "managedFields"]));
    object(fields)
}

fn owner() -> Schema {
    object([
        field("apiVersion", text()).required(),
        field("kind", text()).required(),
        field("name", text()).required(),
        field("uid", text()).required(),
        field("controller", boolean()),
        field("blockOwnerDeletion", boolean()),
    ])
}

/// A kind of which only the spec may be looked into.
pub(super) fn with_spec(spec: Schema) -> Schema {
    kind([field("spec", spec), field("status", any())])
}

/// `resources` of a container or a pod.
pub(super) fn resources() -> Schema {
    object([field("requests", map(quantity())), field("limits", map(quantity())), field("claims", any())])
}

pub(super) fn toleration() -> Schema {
    object([
        field("key", text()),
        field("operator", text()),
        field("value", text()),
        field("effect", text()),
        field("tolerationSeconds", int64()),
    ])
}

pub(super) fn label_selector() -> Schema {
    let expression =
        object([field("key", text()).required(), field("operator", text()).required(), field("values", list(text()))]);
    object([field("matchExpressions", list(expression)), field("matchLabels", map(text()))])
}

// Quantities of Kubernetes' own kinds may be any number, not only integers: they are checked when they are read.
pub(super) fn limit_range() -> Schema {
    let quantities = |name| -> Field { field(name, map(any())) };
    let limit = object([
        field("type", text()).required(),
        quantities("max"),
        quantities("min"),
        quantities("default"),
        quantities("defaultRequest"),
        quantities("maxLimitRequestRatio"),
    ]);
    kind([field("spec", object([field("limits", list(limit)).required()]))])
}

pub(super) fn runtime_class() -> Schema {
    kind([
        field("handler", text()).required(),
        field("overhead", object([field("podFixed", map(any()))])),
        field("scheduling", any()),
    ])
}

pub(super) fn priority_class() -> Schema {
    kind([
        field("value", int32()).required(),
        field("globalDefault", boolean()),
        field("description", text()),
        field("preemptionPolicy", text()),
    ])
}
