"""A counterexample is told step by step, with amounts, reasons and rules."""

from __future__ import annotations

import json
from dataclasses import replace

from kueuecore.proving.explorer import MoveKind, Property
from kueuecore.proving.story import story_of
from tests.unit.proving.counterexamples import fair_sharing_loop, of_moves, preemption_loop

TWO_QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: a}
spec:
  namespaceSelector: {}
  cohortName: both
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 2}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: b}
spec:
  namespaceSelector: {}
  cohortName: both
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 2}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: a, namespace: team}
spec: {clusterQueue: a}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: b, namespace: team}
spec: {clusterQueue: b}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: wide, namespace: team}
spec:
  queueName: a
  podSets:
  - {name: main, count: 4, minCount: 1, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: own, namespace: team}
spec:
  queueName: b
  podSets:
  - {name: main, count: 1, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}
"""


def test_a_loop_is_told_up_to_its_first_turn() -> None:
    assert story_of(preemption_loop()).lines == [
        "1. team/small-0 arrives in left and is admitted: 2 cpu of default, left uses 2 of its 2 (rules/05 §6.6).",
        "2. team/guest-1 arrives in right with priority 2 and waits: couldn't assign flavors to pod set main: "
        "insufficient unused quota for cpu in flavor default, 1 more needed (rules/03 §7).",
        "3. team/large-2 arrives in left with priority 1 and preempts team/small-0: team/large-2 goes first in left: "
        "its priority is 1, that of team/small-0 0 (InClusterQueue, rules/04 §2).",
        "4. team/guest-1 is admitted: 2 cpu of default, right borrows 1 (rules/05 §6.6).",
        "5. team/small-0 preempts team/guest-1: left takes back quota of its own that right has borrowed "
        "(InCohortReclamation, rules/04 §4.1).",
        "6. team/small-0 is admitted: 2 cpu of default, left uses 2 of its 2 (rules/05 §6.6).",
        "Steps 3 to 6 follow again and again, every 5 cycles.",
    ]


def test_the_words_for_a_preemption_are_those_of_a_run() -> None:
    told = story_of(fair_sharing_loop())
    assert "weightless takes back quota of its own that small has borrowed" in told.lines[1]
    assert told.lines[-1] == "Steps 2 to 3 follow again and again, every 2 cycles."


def test_whoever_is_denied_its_own_quota_is_named() -> None:
    found = of_moves(
        TWO_QUEUES,
        [(MoveKind.ARRIVE, "wide"), (MoveKind.ARRIVE, "own")],
        property_=Property.GUARANTEE,
    )
    assert story_of(found).lines == [
        "1. team/wide-0 arrives in a and is admitted: 4 cpu of default, a borrows 2 (rules/05 §6.6).",
        "2. team/own-1 arrives in b and waits: couldn't assign flavors to pod set main: insufficient unused quota for "
        "cpu in flavor default, 1 more needed (rules/03 §7).",
        "team/own-1 waits, although b uses 0 of its own 2 cpu of default.",
    ]


def test_partial_admission_and_ends_are_told() -> None:
    found = of_moves(
        TWO_QUEUES,
        [(MoveKind.ARRIVE, "own"), (MoveKind.ARRIVE, "wide"), (MoveKind.END, 0), (MoveKind.ARRIVE, "own")],
        property_=Property.STARVATION,
    )
    assert [line.partition(" (")[0] for line in story_of(found).lines] == [
        "1. team/own-0 arrives in b and is admitted: 1 cpu of default, b uses 1 of its 2",
        "2. team/wide-1 arrives in a and is admitted with 3 of 4 pods: 3 cpu of default, a borrows 1",
        "3. team/own-0 ends.",
        "4. team/own-2 arrives in b and is admitted: 1 cpu of default, b uses 1 of its 2",
        "starvation holds here.",
    ]


def test_who_arrives_at_once_is_told_in_one_step() -> None:
    found = of_moves(TWO_QUEUES, [(MoveKind.BURST, "wide"), (MoveKind.ARRIVE, "own")], property_=Property.WASTE)
    first, second, end = (line.partition(" (")[0] for line in story_of(found).lines)
    assert first == (
        "1. team/wide-0 arrives in a; team/own-1 arrives in b and is admitted: 1 cpu of default, b uses 1 of its 2"
    )
    assert second == "2. team/wide-0 is admitted with 3 of 4 pods: 3 cpu of default, a borrows 1"
    assert end == "In use before the last move: nothing; at the end: 4 cpu of default."


def test_two_orders_are_told_one_after_the_other() -> None:
    found = of_moves(TWO_QUEUES, [(MoveKind.ARRIVE, "wide"), (MoveKind.ARRIVE, "own")], property_=Property.ORDER)
    told = story_of(replace(found, instead=found.moves[::-1]))
    assert told.lines[2] == "In another order:"
    assert told.lines[-1] == "The first order serves a, the second a and b."


def test_a_story_is_data_too() -> None:
    data = story_of(preemption_loop()).data()
    steps = data["steps"]
    assert isinstance(steps, list)
    assert json.loads(json.dumps(data)) == data
    assert steps[4] == {
        "number": 5,
        "at": 11,
        "events": [
            {
                "kind": "preempts",
                "subject": "team/small-0",
                "sentence": "preempts team/guest-1: left takes back quota of its own that right has borrowed",
                "rule": "04 §4.1",
                "reason": "InCohortReclamation",
            }
        ],
    }
