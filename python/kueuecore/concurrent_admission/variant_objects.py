"""Recognizes parents and variants, and builds new variants (rules/09 §4.2)."""

from __future__ import annotations

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at, texts_at
from kueuecore._kinds import KUEUE
from kueuecore.checks import WorkloadKey
from kueuecore.jobs.workload_names import owner_reference, variant_name

__all__ = [
    "PARENT_LABEL",
    "VARIANT_GATE",
    "becomes_parent",
    "belongs_to",
    "flavor_of",
    "flavors_of",
    "is_parent",
    "new_variant",
    "parent_of",
    "workload_key",
]

PARENT_LABEL = "kueue.x-k8s.io/concurrent-admission-parent"
"""The label of a parent, with the value `true`."""
VARIANT_GATE = "kueue.x-k8s.io/concurrent-admission"
"""The name of the preemption gate of variants."""
_ALLOWED_FLAVORS = "kueue.x-k8s.io/workload-allowed-resource-flavors"


def is_parent(workload: JsonObject) -> bool:
    """Return whether a Workload is labelled as the parent of variants."""
    return text_at(workload, "metadata", "labels", PARENT_LABEL) == "true"


def parent_of(workload: JsonObject) -> WorkloadKey | None:
    """Return namespace and name of the parent of a variant; `None` for any other Workload."""
    for owner in list_at(workload, "metadata", "ownerReferences"):
        if (text_at(owner, "kind"), text_at(owner, "apiVersion")) == ("Workload", KUEUE):
            name = text_at(owner, "name")
            return (text_at(workload, "metadata", "namespace"), name) if name else None
    return None


def belongs_to(variant: JsonObject, parent: JsonObject) -> bool:
    """Return whether a variant belongs to this parent, rather than to an earlier one of the same name."""
    uid = text_at(parent, "metadata", "uid")
    owners = list_at(variant, "metadata", "ownerReferences")
    return parent_of(variant) == workload_key(parent) and any(text_at(owner, "uid") == uid for owner in owners)


def workload_key(workload: JsonObject) -> WorkloadKey:
    """Return namespace and name of a Workload."""
    return text_at(workload, "metadata", "namespace"), text_at(workload, "metadata", "name")


def becomes_parent(workload: JsonObject, cluster_queue: JsonObject) -> bool:
    """Return whether the ClusterQueue makes a Workload a parent that is not labelled as one yet.

    Args:
        workload: The Workload.
        cluster_queue: The ClusterQueue of its LocalQueue.
    """
    has_policy = isinstance(object_at(cluster_queue, "spec").get("concurrentAdmissionPolicy"), dict)
    return has_policy and not is_parent(workload) and parent_of(workload) is None


def flavors_of(cluster_queue: JsonObject) -> tuple[str, ...]:
    """Return the flavors of the first resource group of a ClusterQueue, the preferred one first."""
    for group in list_at(cluster_queue, "spec", "resourceGroups"):
        return tuple(text_at(flavor, "name") for flavor in list_at(group, "flavors"))
    return ()


def flavor_of(variant: JsonObject) -> str:
    """Return the flavor for which a variant was made; empty if it does not say."""
    allowed = texts_at(variant, "metadata", "annotations").get(_ALLOWED_FLAVORS, "")
    return next((name for part in allowed.split(",") if (name := part.strip())), "")


def new_variant(parent: JsonObject, flavor: str, *, short_name: bool) -> JsonObject:
    """Return the variant of a parent for one flavor, ready to create.

    It has no status: an API server drops the status of a new object.

    Args:
        parent: The parent, as an API server stores it.
        flavor: The flavor.
        short_name: At most 63 bytes for its name (gate ShortWorkloadNames).
    """
    namespace, name = workload_key(parent)
    group = text_at(parent, "apiVersion").rpartition("/")[0]
    uid, kind = text_at(parent, "metadata", "uid"), text_at(parent, "kind")
    labels: JsonObject = {
        key: label for key, label in texts_at(parent, "metadata", "labels").items() if key != PARENT_LABEL
    }
    annotations: JsonObject = {**texts_at(parent, "metadata", "annotations"), _ALLOWED_FLAVORS: flavor}
    metadata: JsonObject = {
        "name": variant_name(name, kind=kind, group=group, uid=uid, flavor=flavor, short=short_name),
        "namespace": namespace,
        **({"labels": labels} if labels else {}),
        "annotations": annotations,
        "ownerReferences": [{**owner_reference(parent, controller=True), "apiVersion": KUEUE, "kind": "Workload"}],
    }
    spec = object_at(parent, "spec")
    gates: list[JsonValue] = list_at(spec, "preemptionGates")
    if all(text_at(gate, "name") != VARIANT_GATE for gate in gates):
        gates = [*gates, {"name": VARIANT_GATE}]
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": metadata,
        "spec": {**spec, "preemptionGates": gates},
    }
