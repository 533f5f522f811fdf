"""Answers to recorded cycles and whole runs. Holds no rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from kueuecore.conformance.reading import configuration_of
from kueuecore.reference import quantity, times
from kueuecore.reference.admission_fair_sharing import Account
from kueuecore.reference.cycle import Cycle
from kueuecore.reference.decision import Decision, PodSetAdmission
from kueuecore.reference.objects import complete, key
from kueuecore.reference.settings import Json
from kueuecore.reference.simulate import Run, SimulatedCycle, simulate
from kueuecore.reference.topology.capacity import add_usage, usage_of
from kueuecore.reference.world import World

__all__ = ["cycle", "cycles", "trace"]

_PARTS = ("name", "count", "flavors", "topologyAssignment", "delayedTopologyRequest")


def _world(case: Json) -> World:
    config = configuration_of(case)
    world = World((), configuration=config, now=case["config"]["now"], trusted=True)
    given = case.get("input", {})
    gone = {(o["kind"], o["key"]) for o in given.get("deletedFromAPI", ())}
    objects = []
    for manifest in case["objects"]:
        if (manifest["kind"], key(complete(manifest))) in gone:
            # The queues still know it, but nobody can look up its weight.
            manifest = {**manifest, "spec": {n: v for n, v in manifest["spec"].items() if n != "fairSharing"}}
        objects.append(manifest)
    for name, used in given.get("localQueueUsage", {}).items():
        consumed = {resource: quantity.parse(written) for resource, written in used["consumed"].items()}
        world.ledger.accounts[name] = Account(times.moment(used["lastUpdate"]), consumed)
    world.apply(objects, trusted=True)
    return world


def cycle(case: Json) -> Json:
    """One cycle."""
    world, given = _world(case), case.get("input", {})
    world.second_passes.advance(times.FOREVER)
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
    decided = []
    for step in case["input"]["steps"]:
        match step["op"]:
            case "cycle":
                decided.append(_state(world, Cycle(world).run()))
            case "update":
                world.cache.set_cluster_queue(complete(step["object"]), ())
            case "delete":
                namespace, _, name = step["key"].partition("/")
                world.delete(step["kind"], name, namespace=namespace)
            case "requeueInadmissible":
                world.flush()
    return {"cycles": decided}


def _state(world: World, decision: Decision) -> Json:
    workloads = sorted(world.kind("Workload").items())
    accounts: Json = {}
    for name, account in world.ledger.accounts.items():
        accounts[name] = {"consumed": _exact(account.consumed)}
        accounts[name] |= {"pendingPenalty": _exact(account.pending)} if account.pending else {}
    return {
        "workloads": [{"key": name, "status": workload.get("status", {})} for name, workload in workloads],
        "admissions": _admissions(world),
        **_places(world),
        "localQueueUsage": accounts,
        "events": [{"type": e.type, "reason": e.reason, "key": e.key, "message": e.message} for e in decision.events],
        "skippedPreemptions": decision.skipped_preemptions,
        "preemptionTargetRecomputations": decision.target_recomputations,
    }


def _admissions(world: World) -> dict[str, Json]:
    """Who holds quota of active ClusterQueues, with the admissions."""
    active = [infos for name, infos in world.cache.workloads.items() if world.cache.is_active(name)]
    return {key: info.workload["status"]["admission"] for infos in active for key, info in infos.items()}


def trace(case: Json) -> Json:
    """A whole run."""
    config = configuration_of(case)
    run = simulate(
        case["objects"],
        case["input"]["events"],
        configuration=config,
        now=config["now"],
        trusted=True,
        cycle_seconds=config["cycleStepMs"] / 1000,
        quiet_cycles=config["quietCycles"],
        max_cycles=config["maxCycles"],
        eviction_seconds=config.get("evictionSeconds", 0),
        after_rounds=config.get("timers") != "WhenDue",
        admission_checks=config.get("admissionChecks"),
        # Runs with a topology were recorded by another loop.
        cuts_at_once=any(manifest["kind"] == "Topology" for manifest in case["objects"]),
    )
    busy: list[Json] = []
    quiet: list[Json] = []
    for each in run.cycles:
        entry = _told(run, each)
        is_busy = any(value for name, value in entry.items() if name not in ("n", "t", "messages"))
        (busy if is_busy else quiet).append(entry)
    return {"cycles": busy, "quietMessages": quiet, "final": _final(run)}


def _seconds(run: Run, time: int) -> float:
    whole, rest = divmod(time - run.start, times.SECOND)
    return whole + rest / times.SECOND if rest else whole


def _told(run: Run, each: SimulatedCycle) -> Json:
    decision = each.decision
    admitted: list[Json] = [
        {
            "key": a.key,
            "clusterQueue": a.cluster_queue,
            "podSets": [_pod_set(p) for p in a.pod_sets],
            **({"t": _seconds(run, a.time)} if a.time != each.time else {}),
        }
        for a in decision.admissions
    ]
    placed: list[Json] = [{"key": a.key, "podSets": [_pod_set(p) for p in a.pod_sets]} for a in decision.placements]
    victims: list[Json] = [{"key": p.key, "reason": p.reason, "preemptor": p.preemptor} for p in decision.preemptions]
    evicted: list[Json] = [{"key": e.key, "reason": e.reason, "again": e.again} for e in decision.evictions]
    ended: list[Json] = [{"key": s.key, "reason": "WorkloadSliceReplaced"} for s in decision.replaced_slices]
    special = {
        "assigned": sorted(placed, key=_by_key),
        "evicted": sorted(evicted, key=_by_key),
        "finished": sorted(ended, key=_by_key),
    }
    return {
        "n": each.number,
        "t": _seconds(run, each.time),
        "admitted": sorted(admitted, key=_by_key),
        "preempting": sorted(victims, key=_by_key),
        "inadmissible": list(each.parked),
        "messages": [{"key": e.key, "type": e.type, "reason": e.reason, "message": e.message} for e in decision.events],
        **{name: value for name, value in special.items() if value},
    }


def _pod_set(given: PodSetAdmission) -> Json:
    pod_set: Json = {"name": given.name, "count": given.count, "flavors": dict(given.flavors)}
    placed = {"topologyAssignment": given.topology, "delayedTopologyRequest": given.delayed}
    return pod_set | {name: value for name, value in placed.items() if value}


def _by_key(entry: Json) -> str:
    return str(entry["key"])


def _final(run: Run) -> Json:
    world = run.world
    usage: dict[str, Json] = {"ClusterQueue": {}, "Cohort": {}}
    for row in world.quota():
        is_told = row["kind"] == "Cohort" or world.cache.is_active(row["name"])
        if row["usage"] and is_told:
            text = quantity.text(row["resource"], row["usage"])
            usage[row["kind"]].setdefault(row["name"], {}).setdefault(row["flavor"], {})[row["resource"]] = text
    final: Json = {
        "t": _seconds(run, world.now),
        "cycles": run.n_cycles,
        "admitted": [
            {
                "key": name,
                "clusterQueue": admission["clusterQueue"],
                "podSets": [{name: p[name] for name in _PARTS if name in p} for p in admission["podSetAssignments"]],
            }
            for name, admission in sorted(_admissions(world).items())
        ],
        "usage": usage["ClusterQueue"],
        "cohortUsage": usage["Cohort"],
        **_places(world),
        "statuses": {
            name: _recorded_status(w.get("status", {}), lambda time: _seconds(run, times.moment(time)))
            for name, w in sorted(world.kind("Workload").items())
        },
    }
    if on_nodes := _topology_usage(world):
        final["topologyUsage"] = on_nodes
    if run.is_cut:
        final["stopped"] = "maxCycles"
    if world.settings.has_admission_fair_sharing:
        final["localQueues"] = {
            name: {
                "consumed": _exact(account.consumed),
                "penalty": _exact(account.pending),
                "lastUpdate": _seconds(run, account.updated),
            }
            for name, account in world.ledger.accounts.items()
        }
    return final


def _topology_usage(world: World) -> Json:
    """What workloads use, by flavor and domain, not pooled."""
    used: dict[str, dict[str, dict[str, int]]] = {}
    for infos in world.cache.workloads.values():
        for info in infos.values():
            for flavor, uses in info.topology.items():
                for use in uses:
                    add_usage(used.setdefault(flavor, {}), usage_of(use))
    return {
        flavor: {
            name: {resource: quantity.text(resource, number) for resource, number in each.items() if number}
            for name, each in domains.items()
        }
        for flavor, domains in used.items()
    }


def _recorded_status(status: Mapping[str, Any], seconds: Callable[[str], float]) -> dict[str, Any]:
    """What a recording keeps of a status; `seconds` counts a time from the beginning of the run."""
    shown = [{name: c[name] for name in ("type", "status", "reason", "message")} for c in status.get("conditions", ())]
    finished = [c for c in shown if c["type"] == "Finished" and c["status"] == "True"]
    result = {
        "conditions": finished or sorted(shown, key=lambda c: str(c["type"])),
        "evictions": status.get("schedulingStats", {}).get("evictions", []),
    }
    if finished:
        return result
    requeue = status.get("requeueState", {})
    if "requeueAt" in requeue:
        result["requeueAt"] = seconds(requeue["requeueAt"])
    if "count" in requeue:
        result["requeueCount"] = requeue["count"]
    checks = status.get("admissionChecks", ())
    result["admissionChecks"] = [{"name": c["name"], "state": c["state"]} for c in checks]
    if nodes := status.get("unhealthyNodes"):
        result["unhealthyNodes"] = [node["name"] for node in nodes]
    result["resourceRequests"] = status.get("resourceRequests", [])
    return result


def _exact(resources: Mapping[str, Fraction]) -> Json:
    return {name: quantity.text_of_exact(total) for name, total in resources.items()}


def _places(world: World) -> Json:
    places: dict[str, Json] = {"active": {}, "inadmissible": {}}
    for name in world.queues:
        for waiting, place in world.pending(name):
            places[place].setdefault(name, []).append(waiting)
    return {"queued": places["active"], "inadmissible": places["inadmissible"]}
