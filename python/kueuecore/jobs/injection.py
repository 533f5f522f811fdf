"""Writes an admission into the pod templates of a job, and restores them (rules/10 §4.2, §4.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at, texts_at
from kueuecore.errors import KueuecoreError, ObjectRef, UnknownObjectError
from kueuecore.jobs.context import PREFIX, JobsConfiguration, annotations_of, is_elastic, labels_of

__all__ = ["PodSetInfo", "StartError", "infos_of_admission", "infos_of_workload"]

POD_SET_LABEL = f"{PREFIX}podset"
TOPOLOGY_GATE = f"{PREFIX}topology"
WORKLOAD_ANNOTATION = f"{PREFIX}workload"
SLICE_NAME_ANNOTATION = f"{PREFIX}workload-slice-name"
SLICE_REPLACEMENT_ANNOTATION = f"{PREFIX}workload-slice-replacement-for"

_UNCONSTRAINED_ANNOTATION = f"{PREFIX}podset-unconstrained-topology"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class StartError(KueuecoreError):
    """A job can never start with this admission: Kueue finishes its Workload, reason `FailedToStart`."""


@dataclass(frozen=True, slots=True)
class PodSetInfo:
    """What one pod set gets when its job starts, or had before.

    Args:
        name: Name of the pod set.
        count: How many pods.
        annotations: Annotations of the template.
        labels: Labels of the template.
        node_selector: Node selector of the pods.
        tolerations: Their tolerations.
        scheduling_gates: Their scheduling gates.
    """

    name: str
    count: int = 0
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[JsonValue, ...] = ()
    scheduling_gates: tuple[JsonValue, ...] = ()

    @classmethod
    def of_template(cls, name: str, template: JsonObject, *, count: int = 0) -> Self:
        """Read the values of a template."""
        spec = object_at(template, "spec")
        return cls(
            name,
            count,
            annotations_of(template),
            labels_of(template),
            texts_at(spec, "nodeSelector"),
            tuple(list_at(spec, "tolerations")),
            tuple(list_at(spec, "schedulingGates")),
        )

    def merged(self, other: PodSetInfo) -> PodSetInfo:
        """Return this merged with `other`.

        Raises:
            StartError: They have different values for a key.
        """
        return PodSetInfo(
            self.name,
            self.count,
            _merged("annotations", self.annotations, other.annotations),
            _merged("labels", self.labels, other.labels),
            _merged("nodeSelector", self.node_selector, other.node_selector),
            _appended(self.tolerations, other.tolerations, _toleration_key),
            _appended(self.scheduling_gates, other.scheduling_gates, lambda gate: text_at(gate, "name")),
        )

    def merged_into(self, template: JsonObject, configuration: JobsConfiguration) -> JsonObject:
        """Return the template with all of this added.

        Raises:
            StartError: The template has another value for one of the keys.
        """
        before = PodSetInfo.of_template(self.name, template)
        if configuration.enabled("ElasticJobsViaWorkloadSlices") and SLICE_NAME_ANNOTATION in self.annotations:
            # Left over from an earlier admission: a new chain of slices may have other names.
            overwritten = {SLICE_NAME_ANNOTATION, WORKLOAD_ANNOTATION} & self.annotations.keys()
            kept = {key: text for key, text in before.annotations.items() if key not in overwritten}
            before = replace(before, annotations=kept)
        return before.merged(self).written_to(template)

    def written_to(self, template: JsonObject) -> JsonObject:
        """Return the template with these values instead of its own; affinity and everything else stay."""
        metadata = _with(object_at(template, "metadata"), annotations=self.annotations, labels=self.labels)
        spec = _with(
            object_at(template, "spec"),
            nodeSelector=self.node_selector,
            tolerations=self.tolerations,
            schedulingGates=self.scheduling_gates,
        )
        return _with({**template, "spec": spec}, metadata=metadata)


def infos_of_admission(
    workload: JsonObject, flavors: Mapping[str, JsonObject], configuration: JobsConfiguration
) -> list[PodSetInfo]:
    """Return what each pod set gets when the job starts, in the order of the admission (rules/10 §4.2).

    Args:
        workload: The Workload, with `status.admission`.
        flavors: ResourceFlavors by name.
        configuration: Has the feature gates.

    Raises:
        StartError: Admission checks contradict each other or the flavors.
        UnknownObjectError: A flavor of the admission is not among `flavors`; Kueue tries again later.
    """
    name, admission = text_at(workload, "metadata", "name"), object_at(workload, "status", "admission")
    with_topology = configuration.enabled("TopologyAwareScheduling")
    pod_sets = list_at(workload, "spec", "podSets")
    infos = []
    for index, assignment in enumerate(list_at(admission, "podSetAssignments")):
        pod_set = pod_sets[index] if index < len(pod_sets) else None
        pod_set_name = text_at(assignment, "name")
        annotations, labels = {}, {POD_SET_LABEL: pod_set_name}
        gates: list[JsonValue] = []
        if with_topology and object_at(assignment).get("topologyAssignment") is not None:
            request = object_at(pod_set, "topologyRequest")
            if not any(request.get(key) is not None for key in ("required", "preferred", "unconstrained")):
                annotations[_UNCONSTRAINED_ANNOTATION] = "true"
            gates.append({"name": TOPOLOGY_GATE})
        if with_topology:
            annotations[WORKLOAD_ANNOTATION] = name
        if is_elastic(workload, configuration):
            annotations[SLICE_NAME_ANNOTATION] = annotations_of(workload).get(SLICE_NAME_ANNOTATION, name)
        if configuration.has("WorkerPodsAreMarked") and f"{PREFIX}multikueue-origin" in labels_of(workload):
            labels[f"{PREFIX}multikueue-worker-workload-pod"] = "true"
        if configuration.enabled("AssignQueueLabelsForPods"):
            labels[f"{PREFIX}local-queue-name"] = text_at(workload, "spec", "queueName")
            if _LABEL.fullmatch(cluster_queue := text_at(admission, "clusterQueue")):
                labels[f"{PREFIX}cluster-queue-name"] = cluster_queue
        of_workload = f"{pod_set_name} of Workload {name}"
        selector, tolerations = node_needs(of_workload, texts_at(assignment, "flavors"), flavors)
        count = object_at(assignment).get("count", object_at(pod_set).get("count", 1))
        info = PodSetInfo(
            pod_set_name,
            count if isinstance(count, int) else 0,
            annotations,
            labels,
            selector,
            tolerations,
            tuple(gates),
        )
        infos.append(_with_updates(info, workload))
    return infos


def infos_of_workload(workload: JsonObject) -> list[PodSetInfo]:
    """Return what each pod set had before its job started: what the Workload was created with."""
    infos = []
    for pod_set in list_at(workload, "spec", "podSets"):
        count = object_at(pod_set).get("count", 1)
        name, template = text_at(pod_set, "name"), object_at(pod_set, "template")
        infos.append(PodSetInfo.of_template(name, template, count=count if isinstance(count, int) else 1))
    return infos


def node_needs(
    pod_set: str, assigned: Mapping[str, str], flavors: Mapping[str, JsonObject]
) -> tuple[dict[str, str], tuple[JsonValue, ...]]:
    """Return node selector and tolerations of the distinct flavors of a pod set, ordered by resource name.

    Args:
        pod_set: The pod set, for the error.
        assigned: Flavors by resource.
        flavors: ResourceFlavors by name.

    Raises:
        UnknownObjectError: A flavor is not among `flavors`.
    """
    if missing := sorted({flavor for flavor in assigned.values() if flavor not in flavors}):
        remedy = f"pod set {pod_set} got it: give it in flavors, or wait until it is there"
        raise UnknownObjectError(ObjectRef("ResourceFlavor", missing[0]), remedy)
    selector: dict[str, str] = {}
    tolerations: list[JsonValue] = []
    # Kueue uses the random order of a map; sorting by resource name makes it deterministic.
    for name in dict.fromkeys(flavor for _, flavor in sorted(assigned.items())):
        selector |= texts_at(flavors[name], "spec", "nodeLabels")
        tolerations += list_at(flavors[name], "spec", "tolerations")
    return selector, tuple(tolerations)


def _with_updates(info: PodSetInfo, workload: JsonObject) -> PodSetInfo:
    """Return the info with what admission checks add to it."""
    for check in list_at(workload, "status", "admissionChecks"):
        for update in list_at(check, "podSetUpdates"):
            if text_at(update, "name") != info.name:
                continue
            added = PodSetInfo(
                info.name,
                0,
                texts_at(update, "annotations"),
                texts_at(update, "labels"),
                texts_at(update, "nodeSelector"),
                tuple(list_at(update, "tolerations")),
            )
            try:
                info = info.merged(added)
            except StartError as error:
                raise StartError(f'in admission check "{text_at(check, "name")}": {error}') from None
            break
    return info


def _merged(what: str, first: Mapping[str, str], second: Mapping[str, str]) -> Mapping[str, str]:
    for key, value in first.items():
        if second.get(key, value) != value:
            conflict = f"conflict for key={key}, value1={value}, value2={second[key]}"
            raise StartError(f"invalid admission check PodSetUpdate: conflict for {what}: {conflict}")
    return {**first, **second}


def _appended(
    first: tuple[JsonValue, ...], second: tuple[JsonValue, ...], key: Callable[[JsonValue], object]
) -> tuple[JsonValue, ...]:
    result = list(first)
    for value in second:
        if all(key(value) != key(other) for other in result):
            result.append(value)
    return tuple(result)


def _toleration_key(toleration: JsonValue) -> tuple[str, ...]:
    """Return what makes two tolerations the same, which their duration does not."""
    operator = text_at(toleration, "operator") or "Equal"
    return (operator, *(text_at(toleration, key) for key in ("key", "value", "effect")))


def _with(
    parent: JsonObject, **fields: Mapping[str, JsonValue] | Mapping[str, str] | tuple[JsonValue, ...]
) -> JsonObject:
    """Return a copy with these fields; empty ones are left out."""
    result = dict(parent)
    for name, value in fields.items():
        result.pop(name, None)
        if value:
            result[name] = dict(value) if isinstance(value, Mapping) else list(value)
    return result
