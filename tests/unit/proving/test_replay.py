"""A counterexample is played step by step, with the same end in engine and reference."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import Move, MoveKind, Property
from kueuecore.proving.replay import replay
from kueuecore.proving.replayed import Preempted, ReplayEnding
from tests.unit.proving.counterexamples import fair_sharing_loop, of_moves, preemption_loop, reference

LOOPS = (preemption_loop, fair_sharing_loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_engine_and_reference_do_the_same(loop: Callable[[], Counterexample]) -> None:
    found = loop()
    assert replay(found) == replay(found, reference(found.facts))


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_is_the_one_that_the_search_has_seen(loop: Callable[[], Counterexample]) -> None:
    found = loop()
    played = replay(found)
    (seen,) = found.explorer().play([found.moves], [Property.LOOPS])
    assert seen.broken == {Property.LOOPS: len(played.moves)}
    assert seen.n_preemptions == sum(len(list(move.preempted)) for move in played.moves)
    assert played.ending is ReplayEnding.REPEATS


def test_a_turn_is_what_happens_again_and_again() -> None:
    (small, guest, large) = replay(preemption_loop()).moves
    assert [admitted.key for cycle in small.cycles for admitted in cycle.admitted] == ["team/small-0"]
    assert guest.ending is ReplayEnding.REST
    assert list(guest.waiting) == ["team/guest-1"]
    preempted = [it for cycle in large.turn for it in cycle.preempted]
    assert sorted(preempted, key=lambda it: it.key) == [
        Preempted("team/guest-1", "right", "team/small-0", "InCohortReclamation"),
        Preempted("team/small-0", "left", "team/large-2", "InClusterQueue"),
    ]
    assert large.subject == "team/large-2"


def test_moves_that_are_impossible_are_left_out() -> None:
    found = preemption_loop()
    end, arrive = Move(MoveKind.END, 0), Move(MoveKind.ARRIVE, 0)
    played = replay(found, moves=[end, arrive, end, Move(MoveKind.LOSE, 0)])
    assert [move.move for move in played.moves] == [arrive, end]
    assert played.left_out == (end, Move(MoveKind.LOSE, 0))
    assert [move.at for move in played.moves] == [1, 4]
    assert played.moves[1].waiting == {}


def test_who_arrives_in_a_burst_is_not_seen_by_a_cycle_of_its_own() -> None:
    found = preemption_loop()
    small, guest, large = found.moves
    burst = replay(found, moves=[Move(MoveKind.BURST, small.number), Move(MoveKind.BURST, guest.number), large])
    assert [bool(move.cycles) for move in burst.moves] == [False, False, True]
    assert [move.at for move in burst.moves] == [1, 2, 3]


TWO_FLAVORS = """
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Topology, metadata: {name: hosts}, spec: {levels: [{nodeLabel: host}]}}
---
apiVersion: v1
kind: Node
metadata: {name: one, labels: {host: one}}
status: {allocatable: {cpu: 1, pods: 9}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: large}
spec: {topologyName: hosts, nodeLabels: {host: one}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: small}
spec: {topologyName: hosts, nodeLabels: {host: one}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - {name: large, resources: [{name: cpu, nominalQuota: 4}]}
    - {name: small, resources: [{name: cpu, nominalQuota: 1}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: team}
spec: {clusterQueue: team}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: wide, namespace: team}
spec:
  queueName: team
  podSets:
  - {name: main, count: 1, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 2}}}]}}}
"""


@pytest.mark.parametrize("by", ["engine", "reference"])
@pytest.mark.parametrize("keeps", [True, False])
def test_what_is_written_to_a_head_makes_it_start_over(by: str, *, keeps: bool) -> None:
    # As Kueue 0.19.2 does: without the gate, the write of the first message loses the progress.
    gates = f"featureGates: {{FlavorFungibilityPreserveScanProgress: {str(keeps).lower()}}}"
    text = f"{{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, {gates}}}"
    found = of_moves(TWO_FLAVORS, [(MoveKind.ARRIVE, "wide")], configuration=text)
    (move,) = replay(found, None if by == "engine" else reference(found.facts)).moves
    flavors = ["small" if "small" in it.message else "large" for cycle in move.cycles for it in cycle.waiting]
    assert flavors == (["large", "small"] if keeps else ["large", "large", "small"])
