"""Supports single pods (rules/10 §2.5, §5.3). `pod_group` has those that are admitted together."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._names import subdomain_problems
from kueuecore.errors import Problem
from kueuecore.jobs.context import (
    MANAGED_LABEL,
    PREFIX,
    JobsConfiguration,
    Surroundings,
    annotations_of,
    labels_of,
    set_annotation,
    set_label,
)
from kueuecore.jobs.field_types import Shape, Type
from kueuecore.jobs.finalizers import without_finalizer
from kueuecore.jobs.injection import TOPOLOGY_GATE, PodSetInfo, StartError
from kueuecore.jobs.integration import Finished, Integration, JobPodSet
from kueuecore.jobs.manifest_shapes import CONDITIONS, POD_SPEC, template_problems
from kueuecore.jobs.owners import controller_of
from kueuecore.jobs.rejections import forbidden, go_error, go_int, immutable, invalid, required
from kueuecore.jobs.role_hash import ROLE_HASH, role_hash
from kueuecore.jobs.scheduling_gates import has_gate, with_gate, without_gate
from kueuecore.jobs.topology import topology_problems
from kueuecore.jobs.validation import prebuilt_workload
from kueuecore.writes import Verb, Write

__all__ = [
    "GROUP_NAME",
    "POD",
    "POD_FIELDS",
    "TOTAL_COUNT",
    "finalize_pod",
    "group_name",
    "pod_pod_set",
    "start_pod",
    "stop_pod",
    "total_count",
]

ADMISSION_GATE = f"{PREFIX}admission"
SUSPENDED_BY_PARENT = f"{PREFIX}pod-suspending-parent"
GROUP_NAME = f"{PREFIX}pod-group-name"
TOTAL_COUNT = f"{PREFIX}pod-group-total-count"
FAST_ADMISSION = f"{PREFIX}pod-group-fast-admission"
SERVING = f"{PREFIX}pod-group-serving"
POD_INDEX_LABEL = f"{PREFIX}pod-group-pod-index"
POD_INDEX_SOURCE = f"{PREFIX}pod-group-pod-index-label"
RETRIABLE = f"{PREFIX}retriable-in-group"

POD_FIELDS: Mapping[str, Shape] = {
    "spec": POD_SPEC,
    "status": {"phase": Type.TEXT, "message": Type.TEXT, "conditions": CONDITIONS},
}
"""The fields of a pod that are read."""

# An API server gives these to every pod (admission plugin DefaultTolerationSeconds).
_UNREACHABLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def group_name(pod: JsonObject, configuration: JobsConfiguration) -> str:
    """Return the group that a pod belongs to; empty if none (rules/10 §2.1)."""
    annotation = (
        annotations_of(pod).get(GROUP_NAME, "") if configuration.enabled("WorkloadIdentifierAnnotations") else ""
    )
    return annotation or labels_of(pod).get(GROUP_NAME, "")


def total_count(pod: JsonObject) -> tuple[int | None, str]:
    """Return how many pods its group has; or None, and why."""
    text = annotations_of(pod).get(TOTAL_COUNT)
    if text is None:
        return None, f"failed to extract '{TOTAL_COUNT}' annotation"
    count, why = go_int(text)
    if count is None:
        return None, go_error("Atoi", text, why)
    if count < 1:
        detail = "group total count should be greater than zero"
        return None, f"incorrect annotation value '{TOTAL_COUNT}={text}': {detail}"
    return count, ""


def pod_pod_set(pod: JsonObject, *, name: str = "main", count: int = 1, path: tuple[str | int, ...] = ()) -> JobPodSet:
    """Return the pod set of pods like this one: its spec alone, with the topology that its annotations request."""
    return JobPodSet(
        name=name,
        count=count,
        template={"spec": object_at(pod, "spec")},
        path=path,
        pod_index_label=POD_INDEX_LABEL,
        topology_annotations=annotations_of(pod),
    )


def is_gated(pod: JsonObject) -> bool:
    """Return whether a pod waits for its admission."""
    return has_gate(object_at(pod, "spec"), ADMISSION_GATE)


def is_terminated(pod: JsonObject) -> bool:
    """Return whether a pod has run to its end."""
    return text_at(pod, "status", "phase") in ("Succeeded", "Failed")


def is_ready(pod: JsonObject) -> bool:
    """Return whether a pod is ready."""
    ready = (condition for condition in list_at(pod, "status", "conditions") if text_at(condition, "type") == "Ready")
    return text_at(next(ready, None), "status") == "True"


def is_suspended(pod: JsonObject) -> bool:
    """Return whether a pod waits, or has run to its end."""
    return is_terminated(pod) or is_gated(pod)


def start_pod(pod: JsonObject, info: PodSetInfo, configuration: JobsConfiguration) -> list[Write]:
    """Return the write that releases a pod to where its flavors say; none if it was released before."""
    if not is_gated(pod):
        return []
    started = info.merged_into(pod, configuration)
    spec = without_gate(object_at(started, "spec"), ADMISSION_GATE)
    if not any(text_at(gate, "name") == TOPOLOGY_GATE for gate in info.scheduling_gates):
        spec = without_gate(spec, TOPOLOGY_GATE)
    return [Write(Verb.UPDATE, {**started, "spec": spec})]


def stop_pod(pod: JsonObject, reason: str, message: str) -> list[Write]:
    """Return the writes that end a pod for good: a pod never starts again.

    The writer sets the time of the condition.
    """
    # When a Workload is deleted, even completed pods are.
    if text_at(pod, "metadata", "deletionTimestamp") or (reason != "WorkloadDeleted" and is_suspended(pod)):
        return []
    target: JsonObject = {"type": "TerminationTarget", "status": "True", "reason": reason, "message": message}
    others = [
        condition
        for condition in list_at(pod, "status", "conditions")
        if text_at(condition, "type") != "TerminationTarget"
    ]
    ended = {**pod, "status": {**object_at(pod, "status"), "conditions": [*others, target]}}
    return [Write(Verb.UPDATE, ended, "status"), Write(Verb.DELETE, ended)]


def _label_uid(pod: JsonObject, surroundings: Surroundings) -> str | None:
    """Return the UID of the Deployment of a pod, whose ReplicaSet is between them."""
    of_deployment = annotations_of(pod).get(SUSPENDED_BY_PARENT) == "deployment"
    if not of_deployment or not surroundings.enabled("DeploymentJobUIDLabel"):
        return None
    between = controller_of(pod)
    namespace = text_at(pod, "metadata", "namespace") or surroundings.configuration.default_namespace
    key = text_at(between, "apiVersion"), text_at(between, "kind"), namespace, text_at(between, "name")
    owner = controller_of(surroundings.by_key.get(key, {}))
    return text_at(owner, "uid") if text_at(owner, "kind") == "Deployment" else None


def finalize_pod(pod: JsonObject) -> list[Write]:
    """Return the write that removes Kueue's finalizer from a pod; none if it has none."""
    after = without_finalizer(pod, MANAGED_LABEL)
    return [] if after is pod else [Write(Verb.UPDATE, after)]


def with_defaults(pod: JsonObject) -> JsonObject:
    """Return a copy of a pod with the API server's defaults that matter, for example to its role hash."""
    result = copy.deepcopy(pod)
    spec: JsonObject = {"priority": 0, **object_at(result, "spec")}
    for key in ("containers", "initContainers"):
        if key in spec:
            spec[key] = [_container(object_at(value)) for value in list_at(spec, key)]
    tolerations = list_at(spec, "tolerations")
    for key in _UNREACHABLE:
        if not any(
            text_at(toleration, "key") in ("", key) and text_at(toleration, "effect") in ("", "NoExecute")
            for toleration in tolerations
        ):
            toleration: JsonObject = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            tolerations = [*tolerations, toleration]
    result["spec"] = {**spec, "tolerations": tolerations}
    return result


def _container(container: JsonObject) -> JsonObject:
    """Return a container with its requests as missing limits."""
    resources = object_at(container, "resources")
    if limits := object_at(resources, "limits"):
        container = {
            **container,
            "resources": {**resources, "requests": {**limits, **object_at(resources, "requests")}},
        }
    if ports := list_at(container, "ports"):
        container = {**container, "ports": [{"protocol": "TCP", **object_at(port)} for port in ports]}
    return container


def hold_back(pod: JsonObject, configuration: JobsConfiguration) -> JsonObject:
    """Return a pod as the webhook leaves it when Kueue manages it: behind gates, with its role (rules/10 §2.5)."""
    result = dict(pod)
    if SUSPENDED_BY_PARENT not in annotations_of(pod):
        set_label(result, MANAGED_LABEL, "true")
        metadata = object_at(result, "metadata")
        finalizers: list[JsonValue] = [
            finalizer for finalizer in list_at(metadata, "finalizers") if finalizer != MANAGED_LABEL
        ]
        result["metadata"] = {**metadata, "finalizers": [*finalizers, MANAGED_LABEL]}
    spec = with_gate(object_at(pod, "spec"), ADMISSION_GATE)
    if configuration.enabled("TopologyAwareScheduling"):
        if source := annotations_of(pod).get(POD_INDEX_SOURCE):
            set_label(result, POD_INDEX_LABEL, labels_of(pod).get(source, ""))
        spec = with_gate(spec, TOPOLOGY_GATE)
    set_annotation(result, ROLE_HASH, role_hash(pod))
    result["spec"] = spec
    return result


def _validate(pod: JsonObject, _pod_sets: Sequence[JobPodSet], surroundings: Surroundings) -> list[Problem]:
    configuration = surroundings.configuration
    problems = []
    if labels_of(pod).get(MANAGED_LABEL, "true") != "true":
        problems.append(forbidden(f"metadata.labels[{MANAGED_LABEL}]", "managed label value can only be 'true'"))
    problems += _group_problems(pod, configuration)
    problems += topology_problems("metadata.annotations", annotations_of(pod), configuration)
    group = group_name(pod, configuration)
    prebuilt, path = prebuilt_workload(pod, configuration)
    if group and prebuilt and prebuilt != group:
        problems.append(invalid(path, prebuilt, "prebuilt workload and pod group should be equal"))
    return problems


def _validate_update(old: JsonObject, new: JsonObject, surroundings: Surroundings) -> list[Problem]:
    """Return what may not change in a pod of a group."""
    configuration, problems = surroundings.configuration, []
    if group_name(new, configuration) and is_unretriable(old) and not is_unretriable(new):
        detail = "unretriable pod group can't be converted to retriable"
        problems.append(forbidden(f"metadata.annotations[{RETRIABLE}]", detail))
    if group := group_name(old, configuration):
        problems += immutable(_group_path(new, configuration), group_name(new, configuration), group)
    return problems


def is_unretriable(pod: JsonObject) -> bool:
    """Return whether the group of a pod ends with its pods, without waiting for replacements."""
    return annotations_of(pod).get(RETRIABLE) == "false"


def _group_path(pod: JsonObject, configuration: JobsConfiguration) -> str:
    """Return the path of the name of its group."""
    by_annotation = configuration.enabled("WorkloadIdentifierAnnotations") and annotations_of(pod).get(GROUP_NAME)
    return f"metadata.{'annotations' if by_annotation else 'labels'}[{GROUP_NAME}]"


def _group_problems(pod: JsonObject, configuration: JobsConfiguration) -> list[Problem]:
    count_path = f"metadata.annotations[{TOTAL_COUNT}]"
    name_path = _group_path(pod, configuration)
    where = "annotation" if "annotations" in name_path else "label"
    detail = f"both the '{TOTAL_COUNT}' annotation and the '{GROUP_NAME}' {where} should be set"
    problems = []
    name, has_count = group_name(pod, configuration), TOTAL_COUNT in annotations_of(pod)
    if not name and has_count:
        return [required(name_path, detail)]
    if name:
        if details := subdomain_problems(name):
            problems.append(invalid(name_path, name, ",".join(details)))
        if not has_count:
            return [*problems, required(count_path, detail)]
    if has_count:
        count, why = total_count(pod)
        if count is None:
            problems.append(invalid(count_path, annotations_of(pod)[TOTAL_COUNT], why))
    return problems


def _start(pod: JsonObject, infos: Sequence[PodSetInfo], configuration: JobsConfiguration) -> list[Write]:
    if len(infos) != 1:
        raise StartError(f"invalid podset infos: expecting 1 pod set got {len(infos)}")
    return start_pod(pod, infos[0], configuration)


def _finished(pod: JsonObject) -> Finished | None:
    if not is_terminated(pod):
        return None
    return Finished(text_at(pod, "status", "message"), success=text_at(pod, "status", "phase") == "Succeeded")


POD = Integration(
    framework="pod",
    api_version="v1",
    kind="Pod",
    pod_sets=lambda pod, _: [pod_pod_set(pod)],
    suspend_field=None,
    supports_prebuilt=True,
    supports_multikueue=True,
    # The webhook ignores pods with a managed ancestor, except when the ancestor has its pods suspended.
    is_top_level=lambda pod: SUSPENDED_BY_PARENT in annotations_of(pod),
    with_defaults=with_defaults,
    hold_back=hold_back,
    fields=POD_FIELDS,
    shape_problems=lambda pod: template_problems(pod, ()),
    validate=_validate,
    validate_update=_validate_update,
    custom_is_suspended=is_suspended,
    custom_start=_start,
    custom_stop=lambda pod, _infos, reason, message: stop_pod(pod, reason, message),
    finalize=finalize_pod,
    finished=_finished,
    pods_ready=is_ready,
    label_uid=_label_uid,
)
