"""Answers to recorded cycles and whole runs. Holds no rule."""

from __future__ import annotations

from kueuecore.reference import quantity, times
from kueuecore.reference.cycle import Cycle
from kueuecore.reference.decision import Decision
from kueuecore.reference.objects import key
from kueuecore.reference.settings import Json
from kueuecore.reference.world import World

__all__ = ["cycle", "cycles", "trace"]


def _world(case: Json) -> World:
    config = {**case["config"], "featureGates": case.get("featureGates", {})}
    world = World((), configuration=config, now=case["config"]["now"], trusted=True)
    given = case.get("input", {})
    gone = {(o["kind"], o["key"]) for o in given.get("deletedFromAPI", ())}
    objects = []
    for manifest in case["objects"]:
        if (manifest["kind"], key(manifest)) in gone:
            # The queues still know it, but nobody can look up its weight.
            manifest = {**manifest, "spec": {n: v for n, v in manifest["spec"].items() if n != "fairSharing"}}
        objects.append(manifest)
    for name, used in given.get("localQueueUsage", {}).items():
        world.ledger.restore(name, used["consumed"], times.moment(used["lastUpdate"]))
    world.apply(objects, trusted=True)
    return world


def cycle(case: Json) -> Json:
    """One cycle."""
    world, given = _world(case), case.get("input", {})
    if "secondPass" in given:
        raise NotImplementedError("second passes")
    world.flush()
    decision = Cycle(world, given.get("admissionError")).run()
    result = _state(world, decision)
    if "concurrentUpdate" in given:
        # Somebody else writes labels while the scheduler writes the status: both are in the object afterwards.
        update = given["concurrentUpdate"]
        next(w for w in result["workloads"] if w["key"] == update["key"])["labels"] = update["labels"]
    return result


def cycles(case: Json) -> Json:
    """Several cycles, and what happens in between."""
    world = _world(case)
    told = []
    for step in case["input"]["steps"]:
        match step["op"]:
            case "cycle":
                told.append(_state(world, Cycle(world).run()))
            case "update":
                world.cache.set_cluster_queue(step["object"], ())
            case "delete":
                namespace, _, name = step["key"].partition("/")
                world.delete(step["kind"], name, namespace=namespace)
            case "requeueInadmissible":
                world.flush()
    return {"cycles": told}


def _state(world: World, decision: Decision) -> Json:
    places: dict[str, Json] = {"active": {}, "inadmissible": {}}
    for name in world.queues:
        for waiting, place in world.pending(name):
            places[place].setdefault(name, []).append(waiting)
    workloads = sorted(world.kind("Workload").items())
    accounts: Json = {}
    for name, account in world.ledger.accounts.items():
        pending = {n: quantity.text_of_exact(v) for n, v in account.pending.items()}
        accounts[name] = {"consumed": {n: quantity.text_of_exact(v) for n, v in account.consumed.items()}}
        accounts[name] |= {"pendingPenalty": pending} if pending else {}
    return {
        "workloads": [{"key": name, "status": workload.get("status", {})} for name, workload in workloads],
        "admissions": world.admissions(),
        "queued": places["active"],
        "inadmissible": places["inadmissible"],
        "localQueueUsage": accounts,
        "events": [{"type": e.type, "reason": e.reason, "key": e.key, "message": e.message} for e in decision.events],
        "skippedPreemptions": decision.skipped_preemptions,
        "preemptionTargetRecomputations": decision.target_recomputations,
    }


def trace(case: Json) -> Json:
    """A whole run."""
    raise NotImplementedError("whole runs")
