"""Searches of whole configurations: loops that were reported to Kueue, and a configuration that keeps its promises."""

from __future__ import annotations

import pytest

from kueuecore import Configuration, parse_manifests
from kueuecore._json import text_at
from kueuecore.findings import Severity
from kueuecore.findings.building import facts_of
from kueuecore.manifests import Manifest
from kueuecore.proving import OwnProperty, Proof, Property, When, prove, severity_of
from kueuecore.proving.explorer import Explorer, Move, MoveKind
from kueuecore.proving.replay import replay
from kueuecore.proving.scope import scopes_of
from kueuecore.proving.search import Found
from kueuecore.proving.shrinking import smallest
from kueuecore.testing.history import START

FAIR = Configuration.parse(
    "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, "
    "fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}}"
)
UNSORTED = Configuration.parse(
    "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, "
    "featureGates: {PrioritySortingWithinCohort: false}}"
)
BOTH = "{withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}"
BORROWING = "{withinClusterQueue: LowerPriority, reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority}}"


def queues(**given: tuple[str, str]) -> list[Manifest]:
    """ClusterQueues of one cohort, each with its cpu and its policies, which may go on with other fields."""
    text = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default}}\n"
    for name, (cpu, preemption) in given.items():
        text += f"""---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: {name}}}
spec:
  cohortName: all
  namespaceSelector: {{}}
  preemption: {preemption}
  resourceGroups:
  - {{coveredResources: [cpu], flavors: [{{name: default, resources: [{{name: cpu, nominalQuota: {cpu}}}]}}]}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: {name}, namespace: team}}
spec: {{clusterQueue: {name}}}
"""
    return list(parse_manifests(text))


REPORTED = {
    # docs/anomalies.md: preemption comes to an end.
    "anomaly": (queues(left=("2", BORROWING), right=("1", "{}")), None),
    # docs/anomalies.md: with fair sharing, the preemptor gets the room.
    "weightless": (
        queues(small=("1", "{}"), weightless=("5", "{reclaimWithinCohort: LowerPriority}\n  fairSharing: {weight: 0}")),
        FAIR,
    ),
    "2821": (queues(a=("3", BOTH), b=("1", BORROWING), c=("2", "{}")), UNSORTED),
    "3779": (queues(first=("150m", BOTH), second=("150m", BOTH), spare=("0", BOTH)), FAIR),
    "7101": (queues(one=("0", BOTH), two=("0", BOTH), reserve=("8", "{}")), FAIR),
    "14543": (queues(a=("2", BOTH), b=("2", BOTH), c=("2", BOTH)), FAIR),
}


def found(proof: Proof) -> dict[str, int]:
    return {str(it.breaks): it.n_workloads for it in proof.counterexamples}


@pytest.mark.parametrize("name", REPORTED)
def test_loops_are_found_from_the_configuration_alone_and_shrunk(name: str) -> None:
    manifests, configuration = REPORTED[name]
    proof = prove(manifests, configuration=configuration, properties=[Property.LOOPS])
    [counterexample] = proof.counterexamples
    assert counterexample.breaks is Property.LOOPS
    assert counterexample.n_workloads <= 5
    assert not counterexample.is_by_chance
    is_partial = name == "weightless"
    assert counterexample.needs_partial_admission is is_partial
    assert severity_of(counterexample) is (Severity.WARNING if is_partial else Severity.ERROR)


def test_queues_that_take_back_no_quota_break_no_promise_but_that_of_their_own_quota() -> None:
    manifests = queues(a=("4", "{}"), b=("4", "{}"))
    proof = prove(manifests, properties=[Property.LOOPS, Property.NOMINAL_QUOTA, Property.GUARANTEE, Property.WASTE])
    assert found(proof) == {"guarantee": 2}
    [tree] = proof.trees
    assert tree.coverage.n_played > 100_000
    assert tree.coverage.depths


def test_reclaiming_restores_the_guarantee() -> None:
    policy = "{reclaimWithinCohort: Any}"
    assert found(prove(queues(a=("4", policy), b=("4", policy)), properties=[Property.GUARANTEE])) == {}


def test_nobody_waits_for_pods_as_they_are_ready_at_once() -> None:
    manifests, _ = REPORTED["anomaly"]
    blocking = Configuration.parse(
        "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, waitForPodsReady: "
        "{timeout: 5m, blockAdmission: true}}"
    )
    [plain], [waiting] = (
        prove(manifests, configuration=it, properties=[Property.LOOPS]).counterexamples for it in (None, blocking)
    )
    assert (waiting.moves, waiting.shapes) == (plain.moves, plain.shapes)
    assert replay(waiting).moves[-1].cycles == replay(plain).moves[-1].cycles


def test_the_result_is_the_same_with_any_number_of_threads() -> None:
    manifests, configuration = REPORTED["2821"]
    one, two = (prove(manifests, configuration=configuration, n_threads=n, seed=7) for n in (1, 2))
    assert [it.moves for it in one.counterexamples] == [it.moves for it in two.counterexamples]


def test_a_flavor_that_no_node_and_no_selector_fits_is_found_by_placement() -> None:
    manifests = queues(a=("4", "{}"))
    taint = "[{key: gpu, value: 'true', effect: NoSchedule}]"
    tainted = parse_manifests(
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default}, "
        f"spec: {{nodeTaints: {taint}}}}}"
    )
    assert found(prove([*tainted, *manifests[1:]], properties=[Property.PLACEMENT])) == {"placement": 1}
    assert found(prove(manifests, properties=[Property.PLACEMENT])) == {}


@pytest.mark.parametrize(
    ("when", "text", "is_broken"),
    [
        (When.NEVER, 'queues["a"].borrowed["default/cpu"] > 3.0', True),
        (When.NEVER, 'queues["a"].borrowed["default/cpu"] > 4.0', False),
        (When.ALWAYS, 'workloads.all(w, w.admitted || w.status == "Pending")', False),
        (When.EVENTUALLY, "workloads.all(w, w.admitted)", False),
    ],
)
def test_properties_of_your_own_are_searched(when: When, text: str, *, is_broken: bool) -> None:
    pytest.importorskip("cel")
    own = OwnProperty.parse(when, text)
    proof = prove(queues(a=("4", "{}"), b=("4", "{}")), properties=[], own=[own], spent=lambda n: n / 400)
    assert bool(proof.counterexamples) is is_broken
    assert proof.trees[0].n_own_states > 50 or is_broken


def loses_a_node(explorer: Explorer, moves: tuple[Move, ...]) -> bool:
    """Whether one more waits after the last move, which is no arrival."""
    if not moves or moves[-1].kind is not MoveKind.LOSE:
        return False
    states = explorer.engine_after(moves[:-1]), explorer.engine_after(moves)
    n_pending = [sum(it.stage == "Pending" for it in state[0].workloads()) for state in states if state is not None]
    return len(n_pending) == 2 and n_pending[1] == n_pending[0] + 1


def test_who_only_took_the_room_of_a_node_that_is_left_out_does_not_arrive() -> None:
    policy = "{reclaimWithinCohort: Any}"
    node = """---
apiVersion: v1
kind: Node
metadata: {name: NAME, labels: {pool: a, rack: NAME, kubernetes.io/hostname: NAME}}
status: {allocatable: {cpu: 2, pods: 9}, conditions: [{type: Ready, status: "True"}]}
"""
    topology = """
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default},
  spec: {topologyName: t, nodeLabels: {pool: a}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: t}
spec: {levels: [{nodeLabel: kubernetes.io/hostname}]}
"""
    placed = parse_manifests(topology + node.replace("NAME", "n1") + node.replace("NAME", "n2"))
    manifests = [*placed, *queues(a=("2", policy), b=("2", policy))[1:]]
    # No policy gives back what a lost node had.
    assert not prove(manifests, properties=[Property.GUARANTEE], spent=lambda n: n / 3_000).counterexamples
    (scope,) = scopes_of(facts_of(manifests, configuration=Configuration(), now=START))
    shapes = [next(it for it in scope.shapes if it.name.startswith(f"{queue}-2-cpu")) for queue in "ab"]
    moves = (Move(MoveKind.ARRIVE, 0), Move(MoveKind.ARRIVE, 1), Move(MoveKind.LOSE, 0))
    counterexample = smallest(scope, Found("somebody loses a node", tuple(shapes), moves), breaks=loses_a_node)
    assert [move.kind for move in counterexample.moves] == [MoveKind.ARRIVE, MoveKind.LOSE]
    kinds = [text_at(it.object, "kind") for it in counterexample.manifests]
    assert sorted(kinds) == ["ClusterQueue", "LocalQueue", "Node", "ResourceFlavor", "Topology"]


def test_the_most_severe_counterexample_comes_first() -> None:
    manifests, configuration = REPORTED["anomaly"]
    found = prove(manifests, configuration=configuration, spent=lambda n_moves: n_moves / 5_000).counterexamples
    severities = [severity_of(it).rank for it in found]
    assert len({*severities}) == 3
    assert severities == sorted(severities, reverse=True)
