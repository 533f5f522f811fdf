"""Loops that end once Kueue decides a tie by chance otherwise are told from those that nothing ends."""

from __future__ import annotations

from dataclasses import replace

from kueuecore import Configuration, parse_manifests
from kueuecore._json import text_at
from kueuecore.findings import Severity
from kueuecore.findings.building import facts_of
from kueuecore.findings.facts import Facts
from kueuecore.manifests import Manifest
from kueuecore.proving import Property, severity_of
from kueuecore.proving.explorer import Explorer, Move, MoveKind
from kueuecore.proving.scope import Scope, scopes_of
from kueuecore.proving.shapes import Shape
from kueuecore.proving.ties import in_opposite_order
from tests.unit.proving.counterexamples import preemption_loop
from tests.unit.proving.test_prove import FAIR, REPORTED

BY_CHANCE = ("a-extra-2-cpu", "c-extra-10-cpu", "a-own-2-cpu")
PRIORITIES = ("left-2-cpu", "right-2-cpu-priority-1", "left-3-cpu-priority-1")
OWN = "{withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}"


def tree() -> list[Manifest]:
    """Three teams, of which each has one ClusterQueue that does not borrow, or one that does nothing else, or both."""
    text = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default}}\n"
    for team, name, quota in (
        ("team-a", "a-own", "2, borrowingLimit: 0"),
        ("team-a", "a-extra", "0"),
        ("team-b", "b-own", "2, borrowingLimit: 0"),
        ("team-c", "c-own", "8, borrowingLimit: 0"),
        ("team-c", "c-extra", "0"),
    ):
        text += f"""---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {{name: {team}}}
spec: {{parentName: root}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: {name}}}
spec:
  cohortName: {team}
  namespaceSelector: {{}}
  preemption: {OWN}
  resourceGroups:
  - {{coveredResources: [cpu], flavors: [{{name: default, resources: [{{name: cpu, nominalQuota: {quota}}}]}}]}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: {name}, namespace: team}}
spec: {{clusterQueue: {name}}}
"""
    found = {(it.object["kind"], text_at(it.object, "metadata", "name")): it for it in parse_manifests(text)}
    return list(found.values())


def scope_of(manifests: list[Manifest], configuration: Configuration | None) -> Scope:
    (scope,) = scopes_of(facts_of(manifests, configuration=configuration))
    return scope


def arriving(scope: Scope, *names: str) -> tuple[tuple[Shape, ...], Explorer, tuple[Move, ...]]:
    """These shapes, their explorer, and their arrival one after the other."""
    shapes = tuple(next(shape for shape in scope.shapes if shape.name == name) for name in names)
    return shapes, scope.explorer(shapes), tuple(Move(MoveKind.ARRIVE, number) for number in range(len(shapes)))


def test_a_loop_of_siblings_with_equal_shares_ends_by_chance() -> None:
    # Kueue takes back what either of two siblings has borrowed; the engine always that of the last one by name.
    _, explorer, moves = arriving(scope_of(tree(), FAIR), *BY_CHANCE)
    (played,) = explorer.play([moves], [Property.LOOPS])
    assert Property.LOOPS in played.broken
    assert explorer.loops_by_chance(moves)


def test_a_loop_that_chance_ends_is_no_error() -> None:
    assert severity_of(preemption_loop()) is Severity.ERROR
    assert severity_of(replace(preemption_loop(), is_by_chance=True)) is Severity.WARNING


def test_no_chance_ends_a_loop_of_priorities() -> None:
    manifests, configuration = REPORTED["anomaly"]
    _, explorer, moves = arriving(scope_of(manifests, configuration), *PRIORITIES)
    (played,) = explorer.play([moves], [Property.LOOPS])
    assert Property.LOOPS in played.broken
    assert not explorer.loops_by_chance(moves)


def test_names_sort_in_the_opposite_order_and_say_the_same() -> None:
    scope = scope_of(tree(), FAIR)
    found = in_opposite_order(scope.facts, scope.shapes, scope.queues)
    assert found is not None
    facts, shapes, queues = found
    assert sorted(queues, reverse=True) == list(queues)
    assert [queues[scope.queues.index(shape.cluster_queue)] for shape in scope.shapes] == [
        shape.cluster_queue for shape in shapes
    ]
    new_names = dict(zip(scope.queues, queues, strict=True))
    assert _paths(facts, new_names) == _paths(scope.facts, {name: name for name in scope.queues})


def _paths(facts: Facts, names: dict[str, str]) -> dict[str, list[str]]:
    """Of each ClusterQueue, the others that have the same parent, by their names before."""
    parents = {name: text_at(facts.cluster_queues[new].object, "spec", "cohortName") for name, new in names.items()}
    return {name: sorted(other for other, it in parents.items() if it == parent) for name, parent in parents.items()}
