"""Runs with waiting for pods whose nodes fail and come back go by the engine as they go by the reference."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kueuecore.conformance import answer
from kueuecore.testing.chance import Chance, SeededChance
from kueuecore.testing.history import START
from kueuecore.testing.play import first_difference
from kueuecore.times import format_time
from tests.differential.test_runs import reported
from tests.property.worlds import times
from tests.random_runs import READY, job
from tests.topologies import BLOCK, HOST, RACK, flavor, namespace, node, pod_set, queue, topology, workload

Json = dict[str, Any]

NODES = ("a", "b", "c", "d")


def host(name: str, *, at: int = 0, ready: str = "True", is_tainted: bool = False) -> Json:
    """A node as it is from a moment on, in seconds."""
    taints: Json = {"taints": [{"key": "down", "effect": "NoExecute"}]} if is_tainted else {}
    made = node(name, "b1", "r1" if name in "ab" else "r2", cpu=2, ready=ready, **taints)
    made["metadata"]["labels"]["pool"] = "tas"
    made["status"]["conditions"][0]["lastTransitionTime"] = format_time(START + at * 10**9)
    return made


def change(chance: Chance) -> Json:
    """A node that fails in some way, or comes back."""
    at, name = chance.integer(2, 60), chance.one(*NODES[:2], *NODES)
    match chance.integer(0, 5):
        case 0:
            return {"at": at, "op": "delete", "kind": "Node", "key": name}
        case 1:
            return {"at": at, "op": "update", "object": host(name, at=at, is_tainted=True)}
        case 2 | 3:
            return {"at": at, "op": "update", "object": host(name, at=at, ready=chance.one("False", "Unknown"))}
        case _:
            return {"at": at, "op": chance.one("update", "create"), "object": host(name, at=at)}


def arrival(chance: Chance, number: int) -> Json:
    at = chance.integer(0, 20)
    asks: Json = {chance.one("required", "preferred"): chance.one(RACK, HOST, BLOCK)}
    pods = pod_set(count=chance.one(1, 2, 3), **asks)
    made = workload(f"w{number}", pods, priority=chance.one(0, 0, 1), creationTimestamp=format_time(START + at * 10**9))
    return {"at": at, "op": "create", "object": made, "lingerSeconds": chance.one(0, 3, 15, 40), **job(chance)}


def run_with_failures(seed: int) -> Json:
    """A case as recorded runs are."""
    chance = SeededChance(seed)
    events = [arrival(chance, number) for number in range(chance.integer(1, 4))]
    events += [change(chance) for _ in range(chance.integer(1, 6))]
    objects = [namespace(), topology(BLOCK, RACK, HOST), flavor(nodeLabels={"pool": "tas"}), *queue()]
    config = {"now": format_time(START), "cycleStepMs": 1000, "maxCycles": 200, "waitForPodsReady": chance.one(*READY)}
    config |= {"quietCycles": None, "evictionSeconds": chance.one(0, 1, 5)}
    config["timers"] = chance.one("WhenDue", "AfterRound")
    gates = {"TASReplaceNodeOnPodTermination": chance.boolean()} if chance.boolean() else {}
    return {
        "kind": "trace",
        "id": f"lost-pods/{seed}",
        "featureGates": gates,
        "config": config,
        "objects": [*objects, *map(host, NODES)],
        "input": {"events": sorted(events, key=lambda event: event["at"])},
    }


def compared(run: Json) -> Json:
    """What is compared: only the reference says of an eviction in a cycle that it is the first one."""
    found = reported(run)
    for cycle in found["cycles"]:
        cycle["evicted"] = [
            {k: v for k, v in entry.items() if (k, v) != ("again", False)} for entry in cycle.get("evicted", ())
        ]
    return found


@times(1)
@given(st.integers(min_value=0, max_value=2**40))
def test_runs_with_lost_pods(seed: int) -> None:
    case = run_with_failures(seed)
    difference = first_difference(compared(answer(case)), compared(answer(case, by="reference")))
    assert difference is None, f"the engine and the reference differ in run {seed}: {difference}"
