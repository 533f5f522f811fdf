"""Leaves out what cannot matter to some Workloads: cohorts that share nothing with theirs.

Quota, fair shares and preemption end at the root of a cohort tree, and retries are requested per tree. Each
ClusterQueue has one head per cycle, and all cycles take the same time, so others neither go first nor slow anything
down; cycles of futures begin on a fixed beat (`Stepper`), so others do not shift them either. Trees that something
couples stay together; where anything may couple all of them, nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.checks import WorkloadKey
from kueuecore.forecasts.base_state import State
from kueuecore.forecasts.present_workloads import LocalQueueName, PresentWorkload
from kueuecore.manifests import Manifest

__all__ = ["local_queues_of", "relevant_part"]

_Place: TypeAlias = tuple[str, str]
"""Kind and name."""
_TOPOLOGIES: _Place = ("Topology", "")


def relevant_part(state: State, targets: Sequence[WorkloadKey]) -> State:
    """Return a state without ClusterQueues that cannot matter to when the targets are admitted, and their Workloads.

    The targets are admitted at the same times in both, as long as equal Workloads arrive and run equally long.

    Args:
        state: The whole state.
        targets: The Workloads.
    """
    if _has_all_in_common(state):
        return state
    trees = _Trees(state)
    asked = set(targets)
    kept = {trees.root(_home(it)) for it in state.workloads if it.namespace_and_name in asked}
    return replace(
        state,
        objects=tuple(object_ for object_ in state.objects if _is_kept(object_.object, trees, kept)),
        workloads=tuple(workload for workload in state.workloads if trees.root(_home(workload)) in kept),
    )


def local_queues_of(objects: Iterable[Manifest]) -> frozenset[LocalQueueName]:
    """Return namespace and name of each LocalQueue among some objects."""
    rows = (object_.object for object_ in objects if text_at(object_.object, "kind") == "LocalQueue")
    return frozenset((text_at(row, "metadata", "namespace"), text_at(row, "metadata", "name")) for row in rows)


def _has_all_in_common(state: State) -> bool:
    """Whether something may couple any ClusterQueue with any other."""
    scenario, configuration = state.scenario, state.scenario.cluster.configuration
    settings = configuration.to_dict()
    return bool(
        # What is yet to come may join cohorts, or go anywhere.
        scenario.timetable
        or scenario.work
        or scenario.generated is not None
        or scenario.traces
        or scenario.cluster.nodes
        or scenario.cluster.capacity
        # Pods that are not ready block all admissions.
        or object_at(settings, "waitForPodsReady").get("blockAdmission")
        or settings.get("admissionFairSharing")
        or configuration.is_enabled("ConcurrentAdmission")
    )


class _Trees:
    """Which ClusterQueues have something in common."""

    def __init__(self, state: State) -> None:
        self._above: dict[_Place, _Place] = {}
        plain = [object_.object for object_ in state.objects]
        # Pods of topology-aware flavors run on nodes, which flavors may share.
        flavors = {
            text_at(row, "metadata", "name")
            for row in plain
            if text_at(row, "kind") == "ResourceFlavor" and text_at(row, "spec", "topologyName")
        }
        for row in plain:
            place = text_at(row, "kind"), text_at(row, "metadata", "name")
            match place[0]:
                case "ClusterQueue":
                    self._join(place, _cohort(text_at(row, "spec", "cohortName") or text_at(row, "spec", "cohort")))
                    if flavors.intersection(_flavors(row)):
                        self._join(place, _TOPOLOGIES)
                case "Cohort":
                    self._join(place, _cohort(text_at(row, "spec", "parentName") or text_at(row, "spec", "parent")))
                case "LocalQueue":
                    self._join(_local(row), ("ClusterQueue", text_at(row, "spec", "clusterQueue")))
        for workload in state.workloads:
            # It may hold quota where it no longer belongs.
            if workload.cluster_queue:
                self._join(_home(workload), ("ClusterQueue", workload.cluster_queue))

    def root(self, place: _Place) -> _Place:
        """Return what stands for all that a place has something in common with."""
        while place in self._above:
            place = self._above[place]
        return place

    def _join(self, one: _Place, other: _Place | None) -> None:
        if other is not None and self.root(one) != self.root(other):
            self._above[self.root(one)] = self.root(other)


def _is_kept(plain: JsonObject, trees: _Trees, kept: set[_Place]) -> bool:
    kind = text_at(plain, "kind")
    if kind in ("ClusterQueue", "Cohort"):
        return trees.root((kind, text_at(plain, "metadata", "name"))) in kept
    return kind != "LocalQueue" or trees.root(_local(plain)) in kept


def _cohort(name: str) -> _Place | None:
    return ("Cohort", name) if name else None


def _local(plain: JsonObject) -> _Place:
    return "LocalQueue", f"{text_at(plain, 'metadata', 'namespace')}/{text_at(plain, 'metadata', 'name')}"


def _home(workload: PresentWorkload) -> _Place:
    return "LocalQueue", "/".join(workload.local_queue)


def _flavors(queue: JsonObject) -> Iterable[str]:
    for group in list_at(queue, "spec", "resourceGroups"):
        for flavor in list_at(group, "flavors"):
            yield text_at(flavor, "name")
