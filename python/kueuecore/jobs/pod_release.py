"""Releases pods behind the topology gate, each to a domain of its workload's assignment (rules/08 §12)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kueuecore._arguments import each, instance
from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at, texts_at
from kueuecore.errors import ManifestError
from kueuecore.jobs.context import JobsConfiguration, annotations_of, configuration_or_default, labels_of
from kueuecore.jobs.elastic_pods import slice_name
from kueuecore.jobs.injection import POD_SET_LABEL, SLICE_NAME_ANNOTATION, TOPOLOGY_GATE, WORKLOAD_ANNOTATION
from kueuecore.jobs.job_status import has_condition
from kueuecore.jobs.pod import is_terminated
from kueuecore.jobs.rejections import go_int, invalid
from kueuecore.jobs.scheduling_gates import has_gate, without_gate
from kueuecore.jobs.topology import POD_INDEX_OFFSET
from kueuecore.jobs.topology_assignment import Domain, TopologyAssignment
from kueuecore.manifests import object_ref

__all__ = [
    "PodRelease",
    "healthy_places",
    "is_behind_topology_gate",
    "is_placed_by_topology",
    "release_pods",
    "workload_of_pod",
]


@dataclass(frozen=True, slots=True)
class PodRelease:
    """A pod and the domain where it may run now.

    Args:
        pod: The pod, still behind its gate.
        node_selector: What to add to its node selector: the domain's value at each level.
    """

    pod: JsonObject
    node_selector: Mapping[str, str]

    @property
    def manifest(self) -> JsonObject:
        """The released pod: without the gate `kueue.x-k8s.io/topology`, bound to its domain."""
        spec = without_gate(object_at(self.pod, "spec"), TOPOLOGY_GATE)
        selector = {**object_at(spec, "nodeSelector"), **self.node_selector}
        return {**self.pod, "spec": {**spec, "nodeSelector": selector}}


def release_pods(
    workload: JsonObject, pods: Iterable[JsonObject], *, configuration: JobsConfiguration | None = None
) -> tuple[PodRelease, ...]:
    """Return the pods of a workload that may go now, each with its domain (rules/08 §12).

    A pod of rank r gets the r-th slot of the assignment. If the ranks of a pod set cannot be used, gated pods fill the
    domains in order, next to those released before. Pods whose node is unhealthy stay gated until the scheduler has
    replaced it (§12.5).

    Args:
        workload: The Workload as stored; no pod is released before it is Admitted.
        pods: The pods of its namespace; those of other workloads are left alone. After sending releases, wait until you
            see these pods released before you call this again (§12.1).
        configuration: How jobs are managed.

    Raises:
        ManifestError: The annotation `kueue.x-k8s.io/pod-index-offset` of a pod is not a number; no pod may go.
        TypeError: An argument is not plain data.

    Example:
        >>> place = {"levels": ["rack"], "slices": [{"domainCount": 1, "valuesPerLevel": [{"universal": "r1"}],
        ...          "podCounts": {"universal": 1}}]}
        >>> assigned = {"name": "main", "count": 1, "topologyAssignment": place}
        >>> workload = {"kind": "Workload", "metadata": {"name": "w"}, "spec": {"podSets": [{"name": "main"}]},
        ...             "status": {"conditions": [{"type": "Admitted", "status": "True"}],
        ...                        "admission": {"podSetAssignments": [assigned]}}}
        >>> pod = {"kind": "Pod", "metadata": {"name": "p", "labels": {"kueue.x-k8s.io/podset": "main"},
        ...        "annotations": {"kueue.x-k8s.io/workload": "w"}},
        ...        "spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/topology"}]}}
        >>> (release,) = release_pods(workload, [pod])
        >>> release.manifest["spec"]
        {'nodeSelector': {'rack': 'r1'}}
    """
    instance("workload", workload, dict)
    everything = [instance(f"pods[{index}]", pod, dict) for index, pod in enumerate(each("pods", pods))]
    if not has_condition(workload, "Admitted"):
        return ()
    # The order in which an API server lists pods; Kueue uses that of its cache, which is random.
    mine = sorted(
        (pod for pod in everything if workload_of_pod(pod) == slice_name(workload) and not is_terminated(pod)),
        key=lambda pod: text_at(pod, "metadata", "name"),
    )
    unhealthy = _unhealthy_nodes(workload, configuration_or_default(configuration))
    releases: list[PodRelease] = []
    for pod_set in _pod_sets(workload):
        its_pods = [pod for pod in mine if labels_of(pod).get(POD_SET_LABEL) == pod_set.name]
        place = pod_set.place
        by_rank = _by_rank(pod_set, its_pods)
        for pod, domain in _greedily(place, its_pods) if by_rank is None else by_rank:
            if not _is_lost(place, domain, unhealthy):
                releases.append(PodRelease(pod, place.selector(domain)))
    return tuple(releases)


def healthy_places(workload: JsonObject, configuration: JobsConfiguration) -> list[dict[str, str]]:
    """Return the node selectors that pods of an Admitted workload may be released with; none before it is Admitted."""
    if not has_condition(workload, "Admitted"):
        return []
    unhealthy = _unhealthy_nodes(workload, configuration)
    places = (pod_set.place for pod_set in _pod_sets(workload))
    return [
        place.selector(domain) for place in places for domain in place.domains if not _is_lost(place, domain, unhealthy)
    ]


def workload_of_pod(pod: JsonObject) -> str:
    """Return the name of the Workload that a pod belongs to; for an elastic job, the first slice; empty if none."""
    annotations = annotations_of(pod)
    return annotations.get(SLICE_NAME_ANNOTATION) or annotations.get(WORKLOAD_ANNOTATION, "")


def is_behind_topology_gate(pod: JsonObject) -> bool:
    """Return whether a pod waits to be released to a domain."""
    return has_gate(object_at(pod, "spec"), TOPOLOGY_GATE)


def is_placed_by_topology(workload: JsonObject) -> bool:
    """Return whether a workload is Admitted with a topology assignment, so that its pods may be released."""
    assignments = list_at(workload, "status", "admission", "podSetAssignments")
    is_placed = any(object_at(assignment).get("topologyAssignment") is not None for assignment in assignments)
    return is_placed and has_condition(workload, "Admitted")


def _unhealthy_nodes(workload: JsonObject, configuration: JobsConfiguration) -> set[str]:
    """Return the nodes that no pod may be released to."""
    if not configuration.has("NoUngateOntoFailedNode"):
        return set()
    return {text_at(node, "name") for node in list_at(workload, "status", "unhealthyNodes")}


def _is_lost(place: TopologyAssignment, domain: Domain, unhealthy: Container[str]) -> bool:
    """Return whether a domain is a node that has to be replaced (§12.5)."""
    return place.are_nodes and domain.values[-1] in unhealthy


@dataclass(frozen=True, slots=True)
class _PodSet:
    """A pod set with assigned places.

    Args:
        name: Its name.
        count: How many pods it has.
        request: Its topology request: which labels hold the ranks of pods.
        place: Where its pods have to run.
        offset: The index of its first pod (§12.2).
        bound: Every index is smaller.
    """

    name: str
    count: int
    request: JsonObject
    place: TopologyAssignment
    offset: int
    bound: int


def _pod_sets(workload: JsonObject) -> Iterator[_PodSet]:
    """Yield the pod sets of a workload that have places."""
    spec = {text_at(pod_set, "name"): object_at(pod_set) for pod_set in list_at(workload, "spec", "podSets")}
    assignments = [
        object_at(assignment) for assignment in list_at(workload, "status", "admission", "podSetAssignments")
    ]
    counts = {
        (name := text_at(assignment, "name")): int_at(
            assignment, "count", default=int_at(spec.get(name, {}), "count", default=1)
        )
        for assignment in assignments
    }
    requests = {name: object_at(spec.get(name, {}), "topologyRequest") for name in counts}
    smaller = _smaller_of_each_group(counts, requests)
    for assignment in assignments:
        name, plain = text_at(assignment, "name"), assignment.get("topologyAssignment")
        if isinstance(plain, dict):
            # The larger pod set of a group continues the count of the smaller one (§12.2).
            offset = counts[smaller[name]] if name in smaller else 0
            place = TopologyAssignment.of(plain)
            yield _PodSet(name, counts[name], requests[name], place, offset, offset + counts[name])


def _smaller_of_each_group(counts: Mapping[str, int], requests: Mapping[str, JsonObject]) -> dict[str, str]:
    """Return the smaller pod set of each group, by the larger one; of two equal ones the first counts as smaller."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in counts:
        if group := text_at(requests[name], "podSetGroupName"):
            groups[group].append(name)
    pairs = (sorted(group[:2], key=lambda name: counts[name]) for group in groups.values() if len(group) > 1)
    return {larger: smaller for smaller, larger in pairs}


def _by_rank(pod_set: _PodSet, pods: Sequence[JsonObject]) -> list[tuple[JsonObject, Domain]] | None:
    """Return each gated pod with the slot of its rank (§12.3); None if the ranks cannot be used (§12.4)."""
    slots = [domain for domain in pod_set.place.domains for _ in range(domain.count)]
    # The first pod represents all.
    extra = _offset_of(pods[0]) if pods else 0
    offset, bound = pod_set.offset + extra, pod_set.bound + extra
    by_rank: dict[int, JsonObject] = {}
    for pod in pods:
        rank = _rank(pod_set, pod, offset, bound)
        if rank is None or rank in by_rank or rank >= len(slots):
            return None
        released_to = pod_set.place.place_of(texts_at(pod, "spec", "nodeSelector"))
        if not is_behind_topology_gate(pod) and released_to != slots[rank].values:
            return None
        by_rank[rank] = pod
    return [(pod, slots[rank]) for rank, pod in by_rank.items() if is_behind_topology_gate(pod)]


def _rank(pod_set: _PodSet, pod: JsonObject, offset: int, bound: int) -> int | None:
    """Return the rank of a pod in its pod set; None if its labels do not have it."""
    index_label = text_at(pod_set.request, "podIndexLabel")
    index = _index(pod, index_label) if index_label else None
    if index is None or index >= bound:
        return None
    rank = index - offset
    if group_label := text_at(pod_set.request, "subGroupIndexLabel"):
        n_groups = int_at(pod_set.request, "subGroupCount")
        group = _index(pod, group_label)
        if n_groups <= 0 or group is None or group >= n_groups or index >= (size := pod_set.count // n_groups):
            return None
        rank += group * size
    return rank if 0 <= rank < pod_set.count else None


def _index(pod: JsonObject, label: str) -> int | None:
    """Return a label that is an unsigned number."""
    text = labels_of(pod).get(label, "")
    return go_int(text)[0] if text.isascii() and text.isdigit() else None


def _offset_of(pod: JsonObject) -> int:
    """Return the first index of a pod's set."""
    if (text := annotations_of(pod).get(POD_INDEX_OFFSET)) is None:
        return 0
    offset, why = go_int(text, bits=32)
    if offset is None:
        problem = invalid(
            f"metadata.annotations[{POD_INDEX_OFFSET}]",
            text,
            f"must be a number: {why}",
            remedy='give the index of the first pod, such as "1", or leave the annotation out',
        )
        raise ManifestError([replace(problem, object=object_ref(pod))])
    return offset


def _greedily(place: TopologyAssignment, pods: Sequence[JsonObject]) -> Iterator[tuple[JsonObject, Domain]]:
    """Yield gated pods one by one, with the domains that still have room, in their order (§12.4)."""
    released = (pod for pod in pods if not is_behind_topology_gate(pod))
    n_released = Counter(place.place_of(texts_at(pod, "spec", "nodeSelector")) for pod in released)
    free = (domain for domain in place.domains for _ in range(domain.count - n_released[domain.values]))
    yield from zip(filter(is_behind_topology_gate, pods), free, strict=False)
