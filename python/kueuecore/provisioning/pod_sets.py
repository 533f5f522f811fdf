"""Decides which pods to request capacity for, and describes them (rules/07 §4.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at, texts_at
from kueuecore._quantities import number
from kueuecore.jobs import JobsConfiguration, PodSetInfo
from kueuecore.jobs.injection import node_needs
from kueuecore.objects import PodSetMergePolicy, ProvisioningRequestConfig

__all__ = [
    "RequestedPods",
    "UnassignedPodSetError",
    "is_request_needed",
    "is_same_request",
    "requested_pods",
    "template_of",
]


class UnassignedPodSetError(Exception):
    """A pod set of the workload is not in its admission."""


@dataclass(frozen=True, slots=True)
class RequestedPods:
    """Pods that are requested as one.

    Args:
        pod_set: The first pod set among them, whose template and flavors represent all.
        assignment: What it was admitted with.
        count: How many pods.
    """

    pod_set: JsonObject
    assignment: JsonObject
    count: int

    @property
    def name(self) -> str:
        """The name of that pod set."""
        return text_at(self.pod_set, "name")


def is_request_needed(workload: JsonObject, config: ProvisioningRequestConfig, *, skips_empty: bool = True) -> bool:
    """Return whether capacity must be requested: some pods need resources that are managed.

    Args:
        workload: The workload.
        config: Which resources are managed.
        skips_empty: Whether pod sets without pods need none (change ProvisioningSkipsEmptyPodSets).

    Raises:
        UnassignedPodSetError: A pod set before the first one that needs some is not in the admission.
    """
    assignments, users = _assignments(workload), _users(workload, config.managed_resources, skips_empty=skips_empty)
    if not skips_empty:
        return bool(users)
    for pod_set in users:
        name = text_at(pod_set, "name")
        if name not in assignments:
            raise UnassignedPodSetError(f'missing assignment for PodSet "{name}"')
        if _count(pod_set, assignments[name]) > 0:
            return True
    return False


def requested_pods(
    workload: JsonObject, config: ProvisioningRequestConfig, *, skips_empty: bool = True
) -> tuple[RequestedPods, ...]:
    """Return the pods to request, by pod set in the order of the spec; pod sets that the policy merges are one.

    Args:
        workload: The workload.
        config: Which resources are managed, and which pod sets are merged.
        skips_empty: Whether pod sets without pods are left out (change ProvisioningSkipsEmptyPodSets).

    Raises:
        UnassignedPodSetError: A pod set that needs capacity is not in the admission.
    """
    assignments, merged = _assignments(workload), list[RequestedPods]()
    for pod_set in _users(workload, config.managed_resources, skips_empty=skips_empty):
        name = text_at(pod_set, "name")
        if name not in assignments:
            raise UnassignedPodSetError(f'missing assignment for PodSet "{name}"')
        count = _count(pod_set, assignments[name])
        if count <= 0 and skips_empty:
            continue
        policy = config.pod_set_merge_policy
        alike = (
            at for at, text in enumerate(merged) if policy is not None and _are_alike(text.pod_set, pod_set, policy)
        )
        if (found := next(alike, None)) is not None:
            merged[found] = replace(merged[found], count=merged[found].count + count)
        else:
            merged.append(RequestedPods(pod_set, assignments[name], count))
    return tuple(merged)


def template_of(pods: RequestedPods, flavors: Mapping[str, JsonObject]) -> JsonObject:
    """Return the pod template to request: with what the flavors demand, and limits as missing requests.

    Args:
        pods: The pods.
        flavors: ResourceFlavors by name.

    Raises:
        StartError: The template and the flavors contradict each other.
        UnknownObjectError: A flavor is missing.
    """
    selector, tolerations = node_needs(pods.name, texts_at(pods.assignment, "flavors"), flavors)
    info = PodSetInfo(pods.name, node_selector=selector, tolerations=tolerations)
    template = info.merged_into(object_at(pods.pod_set, "template"), JobsConfiguration())
    spec = dict(object_at(template, "spec"))
    for kind in ("initContainers", "containers"):
        if kind in spec:
            spec[kind] = [_with_requests(value) if isinstance(value, dict) else value for value in list_at(spec, kind)]
    return {**template, "spec": _with_requests(spec)}


def is_same_request(stored: JsonObject, wanted: JsonObject) -> bool:
    """Return whether two PodTemplates ask for the same pods, as a job and its Workload do (rules/10 §3.4)."""
    from kueuecore.jobs.workload_matching import have_same_pods  # few PodTemplates are there before

    # Only releases that compare PodTemplates ask, and they compare all parts of pods.
    return have_same_pods(object_at(stored, "template"), object_at(wanted, "template"), JobsConfiguration())


def _assignments(workload: JsonObject) -> dict[str, JsonObject]:
    entries = list_at(workload, "status", "admission", "podSetAssignments")
    return {text_at(entry, "name"): entry for entry in entries if isinstance(entry, dict)}


def _count(pod_set: JsonObject, assignment: JsonObject) -> int:
    return int_at(assignment, "count", default=int_at(pod_set, "count", default=1))


def _users(workload: JsonObject, resources: Collection[str], *, skips_empty: bool) -> list[JsonObject]:
    """Return the pod sets that use a managed resource; if none are listed, all are managed."""
    pod_sets = [pod_set for pod_set in list_at(workload, "spec", "podSets") if isinstance(pod_set, dict)]
    return [
        pod_set
        for pod_set in pod_sets
        if (not skips_empty or int_at(pod_set, "count", default=1) > 0)
        and (not resources or _uses(object_at(pod_set, "template", "spec"), resources))
    ]


def _uses(pod: JsonObject, resources: Collection[str]) -> bool:
    containers = (*list_at(pod, "initContainers"), *list_at(pod, "containers"))
    amounts = (object_at(container, "resources", kind) for container in containers for kind in ("requests", "limits"))
    return any(name in resources for each in amounts for name in each)


def _with_requests(holder: JsonObject) -> JsonObject:
    """Return a container or pod spec that requests its limits where requests are missing."""
    resources = object_at(holder, "resources")
    limits = object_at(resources, "limits")
    if not limits:
        return holder
    return {**holder, "resources": {**resources, "requests": {**limits, **object_at(resources, "requests")}}}


def _are_alike(one: JsonObject, other: JsonObject, policy: PodSetMergePolicy) -> bool:
    if policy is PodSetMergePolicy.IDENTICAL_POD_TEMPLATES:
        return _plain(one.get("template")) == _plain(other.get("template"))
    first, second = object_at(one, "template", "spec"), object_at(other, "template", "spec")
    return all(_requests(first, kind) == _requests(second, kind) for kind in ("containers", "initContainers")) and all(
        _plain(first.get(name)) == _plain(second.get(name))
        for name in ("resources", "nodeSelector", "tolerations", "affinity", "resourceClaims")
    )


def _requests(pod: JsonObject, kind: str) -> Sequence[JsonValue]:
    """Return what the containers of a kind request, in order."""
    requests = (object_at(value, "resources", "requests") for value in list_at(pod, kind))
    return [_plain(request, are_quantities=True) for request in requests]


def _plain(value: JsonValue, *, are_quantities: bool = False) -> JsonValue:
    """Normalize for comparison: nothing equals an empty list or object, and a quantity `1` equals `1000m`."""
    if isinstance(value, dict):
        plain = {
            name: _plain(row, are_quantities=are_quantities or name in ("requests", "limits"))
            for name, row in value.items()
        }
        return {name: json_value for name, json_value in plain.items() if json_value not in (None, [], {})}
    if isinstance(value, list):
        return [_plain(row) for row in value]
    amount = number(value) if are_quantities else None
    return value if amount is None else str(amount)
