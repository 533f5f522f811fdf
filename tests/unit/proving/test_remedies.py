"""What would stop a counterexample: one field of one ClusterQueue, tried on the same workloads in every order."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from kueuecore.findings.remedies import Change
from kueuecore.findings.smallest_world import with_objects
from kueuecore.manifests import Manifest, object_ref
from kueuecore.proving import remedies_of
from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import MoveKind, Property
from kueuecore.proving.replay import replay
from kueuecore.proving.replayed import ReplayEnding
from kueuecore.scenarios.edits import Edit
from tests.unit.proving.counterexamples import fair_sharing_loop, of_moves, preemption_loop
from tests.unit.proving.test_story import TWO_QUEUES


def texts(counterexample: Counterexample) -> list[str]:
    return list(map(str, remedies_of(counterexample)))


def test_a_loop_stops_without_one_of_its_preemptions() -> None:
    # Kueue refuses `reclaimWithinCohort: Never` beside `borrowWithinCohort`.
    assert texts(preemption_loop()) == [
        "preemption.withinClusterQueue: Never in ClusterQueue left",
        "preemption.borrowWithinCohort.policy: Never in ClusterQueue left",
    ]
    assert texts(fair_sharing_loop()) == ["preemption.reclaimWithinCohort: Never in ClusterQueue weightless"]


def test_whoever_is_denied_its_own_quota_may_reclaim() -> None:
    moves = [(MoveKind.ARRIVE, "wide"), (MoveKind.ARRIVE, "own")]
    denied = of_moves(TWO_QUEUES, moves, property_=Property.GUARANTEE)
    assert texts(denied) == ["preemption.reclaimWithinCohort: Any in ClusterQueue b"]


def test_what_no_policy_decides_has_no_remedy() -> None:
    assert remedies_of(replace(preemption_loop(), breaks=Property.ORDER)) == ()
    assert remedies_of(replace(preemption_loop(), breaks="never true")) == ()


def test_after_a_remedy_the_same_workloads_come_to_rest_in_every_order() -> None:
    found = preemption_loop()
    remedies = remedies_of(found)
    assert remedies
    for change in remedies:
        facts = with_objects(found.facts, [_changed(manifest, change) for manifest in found.manifests])
        assert facts is not None
        for moves in permutations(found.moves):
            assert replay(replace(found, facts=facts, moves=moves)).ending is ReplayEnding.REST


def _changed(manifest: Manifest, change: Change) -> Manifest:
    ref = object_ref(manifest.object)
    if (ref.kind, ref.name) != (change.queue.kind, change.queue.name):
        return manifest
    return replace(manifest, object=Edit(path=f"spec.{change.field}", value=change.value).apply(manifest.object))
