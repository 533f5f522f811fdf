"""Supports groups of pods that are admitted together (rules/10 §5.4).

A group is a `v1` PodList with a name, and the labels and annotations of its first pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kueuecore._arguments import each, text
from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.jobs.context import (
    MANAGED_LABEL,
    PREFIX,
    QUEUE_LABEL,
    JobsConfiguration,
    Surroundings,
    annotations_of,
    labels_of,
    set_annotation,
)
from kueuecore.jobs.field_types import Items, Shape, Type, check_fields
from kueuecore.jobs.injection import PodSetInfo, StartError
from kueuecore.jobs.integration import Finished, Integration, JobPodSet, NoWorkload, WorkloadIdentity
from kueuecore.jobs.manifest_shapes import METADATA
from kueuecore.jobs.pod import (
    FAST_ADMISSION,
    POD_FIELDS,
    SERVING,
    TOTAL_COUNT,
    finalize_pod,
    is_gated,
    is_ready,
    is_suspended,
    is_terminated,
    is_unretriable,
    pod_pod_set,
    start_pod,
    stop_pod,
    total_count,
)
from kueuecore.jobs.rejections import go_int
from kueuecore.jobs.role_hash import ROLE_HASH, role_hash, shape_hash
from kueuecore.jobs.workload_names import owner_reference
from kueuecore.writes import Write

__all__ = [
    "IS_GROUP_WORKLOAD",
    "POD_GROUP",
    "by_precedence",
    "has_left",
    "is_fast",
    "is_runnable_or_succeeded",
    "pod_group",
]

MAX_NOT_READY = f"{PREFIX}pod-group-max-not-ready-count"
IS_GROUP_WORKLOAD = f"{PREFIX}is-group-workload"

_FIELDS: Mapping[str, Shape] = {"items": Items({"metadata": METADATA, **POD_FIELDS})}


def pod_group(name: str, pods: Sequence[JsonObject]) -> JsonObject:
    """Return the group of some pods, all of which name it.

    Args:
        name: Name of the group, and of its Workload.
        pods: At least one; the first represents the group.

    Raises:
        ManifestError: There is no pod, or a field of one has the wrong type.
    """
    name = text("name", name)
    group = ObjectRef("PodList", name)
    members: list[JsonValue] = []
    for pod in each("pods", pods):
        # If many are not pods, reporting the first is enough.
        check_fields(pod, Type.OBJECT, group, ("items", len(members)))
        members.append(pod)
    if not members:
        raise ManifestError([Problem("Required value", field="items", object=group, remedy="give its pods")])
    check_fields({"items": members}, _FIELDS, group)
    metadata = {**object_at(members[0], "metadata"), "name": name}
    # The Workload is created when the last pod exists.
    if created := max(text_at(pod, "metadata", "creationTimestamp") for pod in members):
        metadata["creationTimestamp"] = created
    return {"apiVersion": "v1", "kind": "PodList", "metadata": metadata, "items": members}


def _pods(group: JsonObject) -> list[JsonObject]:
    return [object_at(pod) for pod in list_at(group, "items")]


def has_left(pod: JsonObject, configuration: JobsConfiguration) -> bool:
    """Return whether a pod of a serving group is being deleted and has ended: its group goes on without it."""
    is_going = bool(text_at(pod, "metadata", "deletionTimestamp")) and _is_set(pod, SERVING)
    return is_going and is_terminated(pod) and configuration.has("EndedServingPodsAreLetGo")


def is_runnable_or_succeeded(pod: JsonObject, configuration: JobsConfiguration) -> bool:
    """Return whether a pod can run to its end, or has done so."""
    if has_left(pod, configuration):
        return False
    is_lost = bool(text_at(pod, "metadata", "deletionTimestamp")) and not text_at(pod, "spec", "nodeName")
    return not is_lost and text_at(pod, "status", "phase") != "Failed"


def _is_set(group: JsonObject, key: str) -> bool:
    return annotations_of(group).get(key) == "true"


def is_fast(group: JsonObject, configuration: JobsConfiguration) -> bool:
    """Return whether a group is admitted before all of its pods are there."""
    return _is_set(group, FAST_ADMISSION) or (
        FAST_ADMISSION in annotations_of(group) and not configuration.has("FastAdmissionNeedsTrue")
    )


def _pod_sets(group: JsonObject, surroundings: Surroundings) -> list[JobPodSet]:
    n_expected, why = total_count(group)
    if n_expected is None:
        raise NoWorkload(why)
    at_once = is_fast(group, surroundings.configuration)
    kept = _kept_pods(group, n_expected, surroundings.configuration, needs_all=not at_once)
    _check_agreement(group, n_expected)
    if at_once:
        index, pod = kept[0]
        return [pod_pod_set(pod, name=role_hash(pod), count=n_expected, path=("items", index))]
    by_role: dict[str, list[tuple[int, JsonObject]]] = {}
    for index, pod in kept:
        by_role.setdefault(role_hash(pod), []).append((index, pod))
    if len(by_role) > (most := surroundings.configuration.most_pod_sets):
        raise NoWorkload(f"pod group can't include more than {most} roles")
    return [
        pod_pod_set(pods[0][1], name=role, count=len(pods), path=("items", pods[0][0]))
        for role, pods in _in_order(by_role, surroundings.configuration)
    ]


def _in_order(
    by_role: Mapping[str, list[tuple[int, JsonObject]]], configuration: JobsConfiguration
) -> list[tuple[str, list[tuple[int, JsonObject]]]]:
    """Return the roles in the order of their pod sets; roles of one shape in the order of their pods' names."""
    if not configuration.enabled("PodGroupSchedulingShapeOrdering"):
        return sorted(by_role.items())
    first = {role: min(text_at(pod, "metadata", "name") for _, pod in pods) for role, pods in by_role.items()}
    return sorted(by_role.items(), key=lambda item: (shape_hash(item[1][0][1]), first[item[0]], item[0]))


def _kept_pods(
    group: JsonObject, n_expected: int, configuration: JobsConfiguration, *, needs_all: bool
) -> list[tuple[int, JsonObject]]:
    """Return the pods that count, with their positions."""
    active = [(index, pod) for index, pod in enumerate(_pods(group)) if is_runnable_or_succeeded(pod, configuration)]
    if not active or (len(active) < n_expected and needs_all):
        name = text_at(group, "metadata", "name")
        reason = f"'{name}' group has fewer runnable pods than expected"
        raise NoWorkload(reason, warning="ErrWorkloadCompose")
    if len(active) <= n_expected:
        return active

    return sorted(active, key=lambda pod: by_precedence(pod[1]))[:n_expected]


def by_precedence(pod: JsonObject) -> tuple[bool, bool, str]:
    """Return the order in which to keep pods if there are too many: with the finalizer, released, older first."""
    has_finalizer = MANAGED_LABEL in list_at(pod, "metadata", "finalizers")
    return not has_finalizer, is_gated(pod), text_at(pod, "metadata", "creationTimestamp")


def _check_agreement(group: JsonObject, n_expected: int) -> None:
    """Check that all pods name one queue and one size."""
    queue = labels_of(group).get(QUEUE_LABEL, "")
    first = text_at(_pods(group)[0], "metadata", "name")
    for pod in _pods(group):
        if text_at(pod, "status", "phase") == "Failed":
            continue
        pods = f"pods '{first}' and '{text_at(pod, 'metadata', 'name')}' has different"
        if (other := labels_of(pod).get(QUEUE_LABEL, "")) != queue:
            raise NoWorkload(f"{pods} queue names: {queue}!={other}")
        count, _ = total_count(pod)
        if count != n_expected:
            raise NoWorkload(f"{pods} '{TOTAL_COUNT}' values: {n_expected}!={count}")


def _identity(group: JsonObject, _index: int, configuration: JobsConfiguration) -> WorkloadIdentity:
    pods = _pods(group)
    labels = _common([labels_of(pod) for pod in pods], configuration.label_keys_to_copy, "label")
    annotations = _common([annotations_of(pod) for pod in pods], configuration.annotation_keys_to_copy, "annotation")
    return WorkloadIdentity(
        name=text_at(group, "metadata", "name"),
        owner_references=[owner_reference(pod, controller=False) for pod in pods],
        annotations={**annotations, IS_GROUP_WORKLOAD: "true"},
        labels=labels,
    )


def _common(maps: Iterable[Mapping[str, str]], keys: Sequence[str], what: str) -> dict[str, str]:
    """Return the values of these keys, on which all pods of a group must agree."""
    found: dict[str, str] = {}
    for map_ in maps:
        for key in keys:
            if key in map_ and found.setdefault(key, map_[key]) != map_[key]:
                raise NoWorkload(f"constructing workload: pods have different {what} values")
    return found


def _start(group: JsonObject, infos: Sequence[PodSetInfo], configuration: JobsConfiguration) -> list[Write]:
    by_role = {info.name: info for info in infos}
    writes = []
    for pod in _pods(group):
        role = role_hash(pod)
        info = by_role.get(role)
        if info is None and is_gated(pod):
            raise StartError(f"invalid podset infos: podSetInfo with the name '{role}' is not found")
        writes += start_pod(_of_role(pod, role), info, configuration) if info else []
    return writes


def _of_role(pod: JsonObject, role: str) -> JsonObject:
    """Return a pod that names its role, as the webhook leaves it: what its flavors add would change the hash."""
    named = dict(pod)
    set_annotation(named, ROLE_HASH, role)
    return named


def _finished(group: JsonObject) -> Finished | None:
    n_expected, _ = total_count(group)
    if n_expected is None or _is_set(group, SERVING):
        return None
    pods = _pods(group)
    n_succeeded = sum(text_at(pod, "status", "phase") == "Succeeded" for pod in pods)
    given_up = all(map(is_terminated, pods)) and any(map(is_unretriable, pods))
    if n_succeeded == n_expected or given_up:
        return Finished(f"Pods succeeded: {n_succeeded}/{n_expected}.")
    return None


def _pods_ready(group: JsonObject, configuration: JobsConfiguration) -> bool:
    n_expected, _ = total_count(group)
    pods = _pods(group)
    done = "Succeeded" if configuration.enabled("PodIntegrationCountSucceededPodsAsReady") else None
    n_ready = sum(is_ready(pod) or text_at(pod, "status", "phase") == done for pod in pods)
    if n_expected is None or len(pods) < n_expected:
        return False
    return len(pods) - n_ready <= _most_not_ready(pods, n_expected, configuration)


def _most_not_ready(pods: Sequence[JsonObject], n_expected: int, configuration: JobsConfiguration) -> int:
    """Return how many pods need not be ready: the least that one of them allows (rules/10 §4.4)."""
    if not configuration.enabled("WaitForPodsReadyMaxNotReady"):
        return 0
    allowed = (go_int(annotations_of(pod).get(MAX_NOT_READY, ""))[0] for pod in pods)
    return min(number if number is not None and 0 <= number < n_expected else 0 for number in allowed)


def _reclaimable_pods(group: JsonObject, _configuration: JobsConfiguration) -> dict[str, int]:
    if _is_set(group, SERVING):
        return {}
    return dict(Counter(role_hash(pod) for pod in _pods(group) if text_at(pod, "status", "phase") == "Succeeded"))


POD_GROUP = Integration(
    framework="pod",
    api_version="v1",
    kind="PodList",
    pod_sets=_pod_sets,
    fields=_FIELDS,
    suspend_field=None,
    supports_prebuilt=True,
    is_top_level=lambda _: True,
    identify=_identity,
    custom_is_suspended=lambda group: any(map(is_suspended, _pods(group))),
    custom_start=_start,
    custom_stop=lambda group, _infos, reason, message: [
        write for pod in _pods(group) for write in stop_pod(pod, reason, message)
    ],
    finalize=lambda group: [write for pod in _pods(group) for write in finalize_pod(pod)],
    # To Kueue a pod past its deletion grace period is inactive; that takes a clock, so here it is active until gone.
    is_active=lambda group: any(text_at(pod, "status", "phase") == "Running" for pod in _pods(group)),
    finished=_finished,
    custom_pods_ready=_pods_ready,
    reclaimable_pods=_reclaimable_pods,
)
