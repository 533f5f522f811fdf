"""A rule about Kueue's labels and annotations: misspelt, or in the wrong place."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at, texts_at
from kueuecore._near_names import near_names
from kueuecore._text import quoted
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.topology_objects import KUEUE_GROUP, levels_of_topology
from kueuecore.releases import Release

__all__ = ["unknown_marks"]

# fmt: off
_LABELS = frozenset((
    "auto-generated", "cluster-queue-name", "concurrent-admission-parent", "job-uid", "local-queue-name", "managed",
    "max-exec-time-seconds", "multikueue-origin", "multikueue-worker-workload-pod", "pod-group-name",
    "pod-group-pod-index", "podset", "prebuilt-workload-name", "priority-class", "queue-name", "tas",
    "workload-slice-name",
))
_ANNOTATIONS = frozenset((
    "admission-gated-by", "component-workload-index", "elastic-job", "is-group-workload",
    "job-completions-equal-parallelism", "job-min-parallelism", "job-owner-gvk", "job-owner-name",
    "multikueue-origin-uid", "pod-group-fast-admission", "pod-group-name", "pod-group-pod-index-label",
    "pod-group-serving", "pod-group-total-count", "pod-index-offset", "pod-suspending-parent", "podset-group-name",
    "podset-preferred-topology", "podset-required-topology", "podset-slice-required-topology",
    "podset-slice-required-topology-constraints", "podset-slice-size", "podset-unconstrained-topology",
    "prebuilt-workload-name", "priority-boost", "raycluster-generation", "raycluster-podset-replica-sizes",
    "retriable-in-group", "role-hash", "safe-to-forcefully-delete", "stopping", "workload",
    "workload-allowed-resource-flavors", "workload-slice-name", "workload-slice-replacement-for",
))
_ANNOTATIONS_OF_0_20 = frozenset((
    "elastic-job-scale-up-strategy", "pod-group-max-not-ready-count", "podset-topology-spreading",
    "preemption-config-name", "wait-for-pods-ready",
))
# fmt: on
# Those that people write; of the others nobody cares where they are.
_ONLY_LABELS = {"queue-name", "priority-class"}
_ONLY_ANNOTATIONS = {annotation for annotation in _ANNOTATIONS if annotation.startswith("podset-")} | {
    "pod-group-total-count",
    "elastic-job",
}
# Read by others: OpenShift's operator has Kueue manage the namespaces that have it.
_OF_OTHERS = {"kueue.openshift.io/managed"}


@rule("KC005", "unknown-label", Severity.WARNING, "a label or annotation of kueue.x-k8s.io/ that Kueue does not know")
def unknown_marks(facts: Facts) -> Iterator[Hit]:
    """Kueue ignores it, so a job with a misspelt queue-name runs outside of all quota."""
    used = _used_keys(facts) | _OF_OTHERS
    if not facts.engine.configuration.release < Release.named("0.20.0"):
        used |= {f"{KUEUE_GROUP}{name}" for name in _ANNOTATIONS_OF_0_20}
    kinds = {kind for _, kind in facts.world.integrations} | {"CronJob", "Node", "Namespace"}
    for manifest in facts.given:
        kind, api_version = text_at(manifest.object, "kind"), text_at(manifest.object, "apiVersion")
        if kind not in kinds and not api_version.startswith(KUEUE_GROUP):
            continue
        for path, metadata in _metadata_of(manifest.object):
            for place in ("labels", "annotations"):
                for key in texts_at(metadata, place):
                    if key not in used and (wrong := _wrong(key, place)):
                        yield hit(manifest, wrong[0], field=f"{path}.{place}[{key}]", remedy=wrong[1])


def _wrong(key: str, place: str) -> tuple[str, str] | None:
    """What is wrong with a label or annotation, and what to do; `None` if nothing is."""
    prefix, _, name = key.rpartition("/")
    known = _LABELS if place == "labels" else _ANNOTATIONS
    if f"{prefix}/" != KUEUE_GROUP:
        is_meant = "kueue" in prefix and not prefix.endswith(f".{KUEUE_GROUP[:-1]}") and name in _LABELS | _ANNOTATIONS
        return (f"Not found: {quoted(key)}: Kueue ignores it", f"write {KUEUE_GROUP}{name}") if is_meant else None
    if (place == "annotations" and name in _ONLY_LABELS) or (place == "labels" and name in _ONLY_ANNOTATIONS):
        other = "labels" if place == "annotations" else "annotations"
        return f"Kueue reads {key} among the {other}, and ignores it here", f"move it to the {other}"
    if name in _LABELS or name in _ANNOTATIONS:
        return None
    near = near_names(name, sorted(known)) or near_names(name, sorted(_LABELS | _ANNOTATIONS))
    what = "label" if place == "labels" else "annotation"
    remedy = f"did you mean {KUEUE_GROUP}{near[0]}?" if near else f"remove it: Kueue has no such {what}"
    return f"Not found: {quoted(key)}: Kueue knows no such {what}, and ignores it", remedy


def _metadata_of(plain: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """The metadata of an object and of the pods and jobs that it creates, with their paths."""
    left: list[tuple[str, JsonValue]] = [("", plain)]
    while left:
        path, value = left.pop()
        if isinstance(value, dict):
            if metadata := object_at(value, "metadata"):
                yield f"{path}metadata", metadata
            left += [(f"{path}{key}.", row) for key, row in value.items() if key not in ("metadata", "status")]
        elif isinstance(value, list):
            left += [(f"{path.removesuffix('.')}[{index}].", row) for index, row in enumerate(value)]


def _used_keys(facts: Facts) -> set[str]:
    """Labels of nodes and namespaces that a flavor, a topology or a selector asks for: they may have any name."""
    used = {level for fact in facts.of_kind("Topology").values() for level in levels_of_topology(fact)}
    for flavor in facts.flavors.values():
        used |= texts_at(flavor.object, "spec", "nodeLabels").keys()
    for queue in facts.cluster_queues.values():
        selector = object_at(queue.object, "spec", "namespaceSelector")
        used |= texts_at(selector, "matchLabels").keys()
        used |= {text_at(expression, "key") for expression in list_at(selector, "matchExpressions")}
    return used | _selected_by(facts)


def _selected_by(facts: Facts) -> set[str]:
    """The labels of namespaces that the Configuration selects by."""
    selector = object_at(facts.engine.configuration.to_dict(), "managedJobsNamespaceSelector")
    return set(texts_at(selector, "matchLabels")) | {
        text_at(expression, "key") for expression in list_at(selector, "matchExpressions")
    }
