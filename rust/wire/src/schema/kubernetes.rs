//! Metadata, shapes shared by many kinds, and Kubernetes' own kinds.

use super::{
    Field, Schema, any, boolean, field, fields, int32, int64, kind, list, map, object, one_of, quantity, text, texts,
    time, unknown,
};

/// What a taint may do to pods.
pub(super) const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// `metadata` of any object.
pub(super) fn metadata() -> Schema {
    // A null label value is the empty text: API servers read metadata themselves, without a schema.
    let entries = || map(text().default(""));
    object([
        field("labels", entries()),
        field("annotations", entries()),
        field("finalizers", texts()),
        field("ownerReferences", list(owner())),
        field("managedFields", list(managed())),
    ])
    .with(fields(&["name", "generateName", "namespace", "uid", "selfLink", "resourceVersion"], text))
    .with(fields(&["generation", "deletionGracePeriodSeconds"], int64))
    .with(fields(&["creationTimestamp", "deletionTimestamp"], time))
}

fn owner() -> Schema {
    let flags = &["controller", "blockOwnerDeletion"];
    object(fields(&["apiVersion", "kind", "name", "uid"], text)).with(fields(flags, boolean))
}

fn managed() -> Schema {
    object([field("time", time()), field("fieldsV1", any())])
        .with(fields(&["manager", "operation", "apiVersion", "fieldsType", "subresource"], text))
}

/// `metadata` of a template: the part that CustomResourceDefinitions know.
pub(super) fn template_metadata() -> Schema {
    object([
        field("annotations", map(text())),
        field("finalizers", texts()),
        field("labels", map(text())),
        field("name", text()),
        field("namespace", text()),
        // Generated manifests carry it, always null.
        field("creationTimestamp", unknown()),
    ])
}

/// A kind whose spec alone may be checked.
pub(super) fn with_spec(spec: Schema) -> Schema {
    kind([field("spec", spec), field("status", any())])
}

/// `resources` of a container or a pod.
pub(super) fn resources() -> Schema {
    let claim = object(fields(&["name", "request"], text)).needs(&["name"]);
    quantities_asked().with([field("claims", list(claim).unique_by(&["name"]))])
}

/// Limits and requests.
pub(super) fn quantities_asked() -> Schema {
    object([field("limits", map(quantity())), field("requests", map(quantity()))])
}

pub(super) fn toleration() -> Schema {
    object(fields(&["key", "operator", "value", "effect"], text)).with([field("tolerationSeconds", int64())])
}

pub(super) fn label_selector() -> Schema {
    object([field("matchExpressions", requirements()), field("matchLabels", map(text()))])
}

/// `matchExpressions` or `matchFields` of any selector.
pub(super) fn requirements() -> Schema {
    let fields = [field("key", text()), field("operator", text()), field("values", texts())];
    list(object(fields).needs(&["key", "operator"]))
}

// Quantities of Kubernetes' own kinds may be any number, not only integers: reading checks them.
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

/// Only the used fields of its status are checked.
pub(super) fn node() -> Schema {
    let taint = object(fields(&["key", "value"], text))
        .with([field("effect", one_of(EFFECTS)), field("timeAdded", time())])
        .needs(&["key", "effect"]);
    let spec = object([
        field("configSource", any()),
        field("podCIDRs", texts()),
        field("taints", list(taint)),
        field("unschedulable", boolean()),
    ])
    .with(fields(&["externalID", "podCIDR", "providerID"], text));
    let condition = object(fields(&["type", "status", "reason", "message"], text))
        .with(fields(&["lastHeartbeatTime", "lastTransitionTime"], time))
        .needs(&["type", "status"]);
    let status = object([
        field("allocatable", map(any())),
        field("capacity", map(any())),
        field("conditions", list(condition)),
        field("phase", text()),
    ])
    .with(fields(
        &[
            "addresses",
            "config",
            "daemonEndpoints",
            "declaredFeatures",
            "features",
            "images",
            "nodeInfo",
            "runtimeHandlers",
            "volumesAttached",
            "volumesInUse",
        ],
        any,
    ));
    kind([field("spec", spec), field("status", status)])
}

pub(super) fn priority_class() -> Schema {
    kind([
        field("value", int32()).required(),
        field("globalDefault", boolean()),
        field("description", text()),
        field("preemptionPolicy", text()),
    ])
}

/// The name of an object in the same namespace.
pub(super) fn named_reference() -> Schema {
    object([field("name", text()).default("")])
}

/// Security settings that pods and containers share.
pub(super) fn shared_security_context() -> Schema {
    let profile = || object(fields(&["localhostProfile", "type"], text)).needs(&["type"]);
    let windows = object(fields(&["gmsaCredentialSpec", "gmsaCredentialSpecName", "runAsUserName"], text))
        .with([field("hostProcess", boolean())]);
    object([
        field("appArmorProfile", profile()),
        field("runAsNonRoot", boolean()),
        field("seLinuxOptions", object(fields(&["level", "role", "type", "user"], text))),
        field("seccompProfile", profile()),
        field("windowsOptions", windows),
    ])
    .with(fields(&["runAsGroup", "runAsUser"], int64))
}
