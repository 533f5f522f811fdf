"""Random runs through virtual time, as cases like those that were recorded of Kueue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kueuecore._json import JsonObject, object_at
from kueuecore.testing import Limits
from kueuecore.testing.chance import Chance, SeededChance
from kueuecore.testing.drawn_worlds import Stock, cluster_queues, cohorts, contents, local_queues, stocks, workloads
from kueuecore.testing.history import START, key_of
from kueuecore.times import format_time

READY: tuple[JsonObject, ...] = (
    {"timeout": "5s", "requeuingStrategy": {"backoffBaseSeconds": 4, "backoffLimitCount": 2, "timestamp": "Eviction"}},
    {
        "timeout": "6s",
        "recoveryTimeout": "3s",
        "requeuingStrategy": {"backoffBaseSeconds": 20, "timestamp": "Creation"},
    },
    {"timeout": "8s", "recoveryTimeout": "0s", "blockAdmission": True, "requeuingStrategy": {"backoffLimitCount": 1}},
)


def job(chance: Chance) -> JsonObject:
    """How the job of a workload goes."""
    found: JsonObject = {"runSeconds": chance.one(5, 1, 20, 60)}
    if chance.boolean():
        found["readySeconds"] = [chance.one(1, 2, 5, 9, None), chance.one(0, 4, 7)]
        if chance.rarely(3):
            found |= {"failSeconds": chance.one(1, 4), "recoverSeconds": chance.one(2, 4)}
    return found


def open_to_all(thing: JsonObject) -> JsonObject:
    """Every namespace may use a ClusterQueue: the engine says at once who may not, Kueue when somebody looks again."""
    if thing["kind"] != "ClusterQueue":
        return thing
    return {**thing, "spec": {**object_at(thing, "spec"), "namespaceSelector": {}}}


def may_be_late(workloads: list[JsonObject], config: JsonObject) -> bool:
    """May a workload be evicted because its time is over?"""
    return "waitForPodsReady" in config or any(
        "maximumExecutionTimeSeconds" in object_at(workload, "spec") for workload in workloads
    )


def stopped(chance: Chance, stock: Stock) -> JsonObject:
    """A LocalQueue that stops, or goes on."""
    found = local_queues(chance, stock, chance.one(*stock.queues))
    return {**found, "spec": {**object_at(found, "spec"), "stopPolicy": chance.one("None", "Hold", "HoldAndDrain")}}


def random_run(seed: int) -> dict[str, Any]:
    """A case as recorded runs are."""
    chance = SeededChance(seed)
    # Kueue's heaps are out of order for a while where usage counts, which nobody imitates.
    limits = Limits(edges=False, missing=False, stops=False, running=False, usage_based=False, workloads=9)
    stock = stocks(chance, limits)
    if chance.rarely(4):
        stock = replace(stock, checks=("a1", "a2")[: chance.one(1, 2)])
    found, _, configuration = contents(chance, stock)
    config: dict[str, Any] = {**(configuration or {})}
    gates = config.pop("featureGates", {})
    config.pop("waitForPodsReady", None)
    if chance.boolean():
        config["waitForPodsReady"] = chance.one(*READY)
    events: list[dict[str, Any]] = []
    created = [error for error in found if error["kind"] == "Workload"]
    events += [{"at": chance.integer(0, 9), "op": "create", "object": thing, **job(chance)} for thing in created]
    for number in range(chance.integer(2, 8)):
        at = chance.integer(3, 40)
        late = workloads(chance, stock, f"n{number}", uid=f"uid-n{number}", created=at, priorities=(2, 3, 1, 0))
        if any(event["op"] == "update" and event["object"]["kind"] == "ClusterQueue" for event in events):
            object_at(late, "spec").pop("maximumExecutionTimeSeconds", None)
        events.append({"at": at, "op": "create", "object": late, **job(chance)})
        name = key_of(chance.one(*(event["object"] for event in events if event["op"] == "create")))
        match chance.integer(0, 7):
            case 0:
                events.append({"at": at + 1, "op": "finish", "key": name})
            case 1:
                events.append({"at": at + 2, "op": "delete", "key": name})
            case 6 if trees := cohorts(chance, stock):
                events.append({"at": at, "op": "update", "object": chance.one(*trees)})
            case 7:
                events.append({"at": at, "op": "update", "object": stopped(chance, stock)})
            # The engine looks at all workloads of a changed ClusterQueue at once: it may find that one is late, or has
            # checks that are asked for no longer.
            case 2 if not stock.checks and not may_be_late(
                [event["object"] for event in events if event["op"] == "create"], config
            ):
                changed = open_to_all(cluster_queues(chance, stock, chance.one(*stock.queues)))
                events.append({"at": at, "op": "update", "object": changed})
    config |= {"now": format_time(START), "cycleStepMs": 1000, "maxCycles": 200}
    config |= {"quietCycles": chance.one(None, 1, 2, 3), "evictionSeconds": chance.one(0, 0, 1, 3, 10, 30)}
    config["timers"] = chance.one("WhenDue", "AfterRound")
    return {
        "kind": "trace",
        "id": f"run/{seed}",
        "featureGates": gates,
        "config": config,
        "objects": [open_to_all(error) for error in found if error["kind"] != "Workload"],
        "input": {"events": sorted(events, key=lambda event: event["at"])},
    }
