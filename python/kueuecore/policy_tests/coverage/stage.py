"""Plays one test again and again, each time with another value of one rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

from kueuecore._json import object_at, text_at
from kueuecore.errors import ManifestError, OutOfTimeError, UnsettledError
from kueuecore.manifests import Manifest, object_ref
from kueuecore.policy_tests.coverage.configuration_rules import Settings
from kueuecore.policy_tests.coverage.course import Course, course, differs
from kueuecore.policy_tests.coverage.rule import FoundRule, Owner, Variation
from kueuecore.policy_tests.policy_cluster import MAX_CYCLES
from kueuecore.policy_tests.policy_test import PolicyTest, looks, started
from kueuecore.states import WorkloadState
from kueuecore.world import DEFAULT_NAMESPACE

__all__ = ["Stage"]

_Node: TypeAlias = tuple[str, str]  # kind and name of a ClusterQueue or Cohort

# Of a test that never settles, only the beginning is compared.
_BEGINNING_CYCLES = 1_000
_PARENTS = ("cohortName", "cohort", "parentName")
_QUEUES = ("ClusterQueue", "Cohort", "LocalQueue")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A test that was played as it is, to be played with other values of its rules.

    Args:
        test: The test.
        settings: What its Configuration is read from.
        near: By the index of each object that can matter to a workload how near it is to one, from 1 to 2.
        played: The course of the test.
        most_cycles: The most cycles to compare.
        without: The indices of objects that are left out, as they matter to no workload.
    """

    test: PolicyTest
    settings: Settings
    near: Mapping[int, int]
    played: Course
    most_cycles: int
    without: frozenset[int]

    @classmethod
    def of(cls, test: PolicyTest, settings: Settings) -> Self:
        """Play a test as it is.

        Raises:
            ManifestError: Everything that is wrong with its objects and jobs.
        """
        cluster = started(test)
        with suppress(UnsettledError, OutOfTimeError):
            for _ in looks(test, cluster):
                pass
        n_cycles = cluster.run().n_cycles
        # Who decides the same needs as many cycles.
        most_cycles = 2 * n_cycles + 100 if n_cycles < MAX_CYCLES else _BEGINNING_CYCLES
        played = tuple(course(test, started(test, max_cycles=most_cycles)))
        near = _nearness(test.objects, cluster.all_states())
        if test.timetable:
            # It may join trees, and quota may have been held in a queue that is empty at the end.
            near = {index: near.get(index, 1) for index in range(len(test.objects))}
        stage = cls(
            test=test, settings=settings, near=near, played=played, most_cycles=most_cycles, without=frozenset()
        )
        idle = frozenset(
            index
            for index, manifest in enumerate(test.objects)
            if index not in near and text_at(manifest.object, "kind") in _QUEUES
        )
        # An expectation may still name one of them.
        smaller = replace(stage, without=idle)
        return smaller if idle and not smaller._plays_otherwise(test) else stage

    def nearness(self, found: FoundRule) -> int:
        """Return how near to a rule the workloads of the test are: 0 if it cannot matter to any, 2 for the nearest."""
        return self.near.get(found.index, 0) if found.owner is Owner.OBJECTS else 1

    def is_valid(self, found: FoundRule, variation: Variation) -> bool:
        """Return whether Kueue's validation accepts a variation of an object."""
        try:
            varied = self._varied(found, variation)
            started(replace(varied, objects=(varied.objects[found.index],), work=(), timetable=()))
        except ManifestError:
            return False
        return True

    def differs(self, found: FoundRule, variation: Variation) -> bool | None:
        """Return whether the test decides otherwise with a variation; None if Kueue's validation refuses it."""
        try:
            return self._plays_otherwise(self._varied(found, variation))
        except ManifestError:
            return None

    def _plays_otherwise(self, test: PolicyTest) -> bool:
        objects = tuple(manifest for index, manifest in enumerate(test.objects) if index not in self.without)
        test = replace(test, objects=objects)
        return differs(course(test, started(test, max_cycles=self.most_cycles)), self.played)

    def _varied(self, found: FoundRule, variation: Variation) -> PolicyTest:
        """The test with another value of a rule.

        Raises:
            ConfigurationError: Kueue refuses its Configuration.
        """
        if found.owner is not Owner.OBJECTS:
            return replace(self.test, configuration=self.settings.with_variation(found, variation))
        objects = list(self.test.objects)
        manifest = objects[found.index]
        for edit in variation.edits:
            manifest = replace(manifest, object=edit.apply(manifest.object))
        objects[found.index] = manifest
        return replace(self.test, objects=tuple(objects))


def _nearness(objects: Iterable[Manifest], states: Iterable[WorkloadState]) -> dict[int, int]:
    """How near each object is to a workload: 2 if one is in that queue, 1 if one is in its tree."""
    given, found = list(objects), list(states)
    trees = _trees(given)
    # Quota may be held in another queue than the LocalQueue leads to now.
    busy = {
        name
        for state in found
        for name in (state.cluster_queue, text_at(dict(state.status), "admission", "clusterQueue"))
        if name
    }
    local = {(state.namespace, state.local_queue) for state in found}
    roots = {_root(trees, ("ClusterQueue", name)) for name in busy}
    near: dict[int, int] = {}
    for index, manifest in enumerate(given):
        ref = object_ref(manifest.object)
        node: _Node = (ref.kind, ref.name)
        is_nearest = ref.kind == "ClusterQueue" and ref.name in busy
        if ref.kind == "LocalQueue":
            is_nearest = (ref.namespace or DEFAULT_NAMESPACE, ref.name) in local
            node = ("ClusterQueue", text_at(manifest.object, "spec", "clusterQueue"))
        elif ref.kind in ("PriorityClass", "WorkloadPriorityClass"):
            value = object_at(manifest.object).get("value")
            near[index] = 2 if any(state.priority == value for state in found) else 1
            continue
        if is_nearest or _root(trees, node) in roots:
            near[index] = 2 if is_nearest else 1
    return near


def _trees(objects: Iterable[Manifest]) -> dict[_Node, _Node]:
    """For each ClusterQueue and Cohort another one of its tree, up to one that has none."""
    found: dict[_Node, _Node] = {}
    for node, parent in _edges(objects):
        one, other = _root(found, node), _root(found, parent)
        if one != other:
            found[one] = other
    return found


def _edges(objects: Iterable[Manifest]) -> Iterator[tuple[_Node, _Node]]:
    for manifest in objects:
        kind = text_at(manifest.object, "kind")
        if kind in ("ClusterQueue", "Cohort"):
            for field in _PARENTS:
                if parent := text_at(manifest.object, "spec", field):
                    yield (kind, text_at(manifest.object, "metadata", "name")), ("Cohort", parent)


def _root(found: Mapping[_Node, _Node], node: _Node) -> _Node:
    while node in found:
        node = found[node]
    return node
