"""Answers of the engine to recorded cases of the real Kueue. Holds no rule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kueuecore import _proof
from kueuecore.configuration import Configuration
from kueuecore.conformance.statuses import recorded_status
from kueuecore.decisions import WorkloadAdmission
from kueuecore.engine import Engine
from kueuecore.jobs.lifecycle import limited_to_pod_sets
from kueuecore.simulation import Run, RunEnding, SimulatedCycle, StepKind, simulate
from kueuecore.times import nanoseconds

__all__ = ["answer"]


def answer(case: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a recorded case by the engine.

    Raises:
        NotImplementedError: What the case needs is not built yet.
    """
    kind = case["kind"]
    if kind == "cycle":
        return _cycle(case)
    if kind == "cycles":
        return _cycles(case)
    if kind == "trace":
        return _trace(case)
    if kind == "scale":
        return _scale(case)
    if kind == "reclaimable_pods_limit":
        return _reclaimable_pods_limit(case)
    found = _proof.answer(json.dumps(case).encode())
    if found is None:
        raise NotImplementedError(f"cases of kind {kind}")
    answered: dict[str, Any] = json.loads(found)
    return answered


def _reclaimable_pods_limit(case: Mapping[str, Any]) -> dict[str, Any]:
    pods = {it["name"]: it["count"] for it in case["input"]["reclaimablePods"]}
    limited = limited_to_pod_sets(pods, case["input"]["workload"])
    return {"reclaimablePods": [{"name": name, "count": count} for name, count in limited.items()]}


def _engine(case: Mapping[str, Any]) -> tuple[Engine, str]:
    config = dict(case.get("config", {}))
    now = config.pop("now")
    configuration = Configuration.trusted(config, feature_gates=case.get("featureGates"))
    engine = Engine(configuration)
    used = case.get("input", {}).get("localQueueUsage", {})
    engine.apply([_with_usage(o, used) for o in case.get("objects", ())], now=now, trusted=True)
    deleted = {(o["kind"], o["key"]) for o in case.get("input", {}).get("deletedFromAPI", ())}
    for manifest in case.get("objects", ()):
        if (manifest["kind"], _key(manifest)) in deleted:
            # The queues still know it, but nobody can look up its weight.
            spec = {name: value for name, value in manifest["spec"].items() if name != "fairSharing"}
            engine.apply({**manifest, "spec": spec}, now=now, trusted=True)
    return engine, now


def _with_usage(manifest: Mapping[str, Any], used: Mapping[str, Any]) -> Mapping[str, Any]:
    # A restarted Kueue learns what LocalQueues have used from their statuses.
    if manifest["kind"] != "LocalQueue" or _key(manifest) not in used:
        return manifest
    status = {"consumedResources": used[_key(manifest)]["consumed"], "lastUpdate": used[_key(manifest)]["lastUpdate"]}
    return {**manifest, "status": {"fairSharing": {"admissionFairSharingStatus": status}}}


def _cycle(case: Mapping[str, Any]) -> dict[str, Any]:
    engine, now = _engine(case)
    given = case.get("input", {})
    if "secondPass" in given:
        raise NotImplementedError("second passes")
    result = _run(engine, now, given.get("admissionError"))
    if "concurrentUpdate" in given:
        # Somebody else writes labels while the scheduler writes the status: both are in the object afterwards.
        update = given["concurrentUpdate"]
        workload = next(w for w in result["workloads"] if w["key"] == update["key"])
        written = next(o for o in case["objects"] if o["kind"] == "Workload" and _key(o) == update["key"])
        metadata = {**written["metadata"], "labels": update["labels"]}
        engine.apply({**written, "metadata": metadata, "status": workload["status"]}, now=now, trusted=True)
        result |= {k: v for k, v in _state(engine).items() if k != "events"}
        next(w for w in result["workloads"] if w["key"] == update["key"])["labels"] = update["labels"]
    return result


def _key(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['metadata'].get('namespace', '')}/{manifest['metadata']['name']}"


def _cycles(case: Mapping[str, Any]) -> dict[str, Any]:
    engine, now = _engine(case)
    given = case["input"]
    cycles = []
    for step in given["steps"]:
        match step["op"]:
            case "cycle":
                cycles.append(_run(engine, now))
            case "update":
                engine._core._update_in_cache(json.dumps(step["object"]).encode(), engine.now)
            case "delete":
                namespace, _, name = step["key"].partition("/")
                engine.delete(step["kind"], name, namespace=namespace)
            case "requeueInadmissible":
                engine._core._flush(engine.now)
    return {"cycles": cycles}


def _run(engine: Engine, now: str, admission_error: str | None = None) -> dict[str, Any]:
    decision = engine.cycle(now)
    refused = set()
    if admission_error is not None:
        for admission in decision.admissions:
            refused.add(admission.key)
            gone = admission_error == "NotFound"
            engine.forget(admission.name, namespace=admission.namespace, now=now, gone=gone)
    state = _state(engine)
    for slice_ in decision.replaced_slices:
        # Kueue's cache learns that the slice is finished from the watch, after the cycle.
        status = engine.workload(slice_.name, namespace=slice_.namespace).status
        state["admissions"][slice_.key] = status["admission"]
    return {
        **state,
        "events": [
            {"type": e.type, "reason": e.reason, "key": e.key, "message": e.message}
            for e in decision.events
            if e.key not in refused
        ],
        "skippedPreemptions": dict(decision.skipped_preemptions),
        "preemptionTargetRecomputations": {name: dict(n) for name, n in decision.target_recomputations.items()},
    }


def _state(engine: Engine) -> dict[str, Any]:
    workloads = engine.workloads()
    active = {name for name in engine.cluster_queues() if engine.cluster_queue(name).is_active}
    queues: dict[str, dict[str, list[str]]] = {"active": {}, "inadmissible": {}}
    for name in engine.cluster_queues():
        for workload in engine.pending(name):
            queues[workload.place].setdefault(name, []).append(workload.key)
    return {
        "workloads": [{"key": w.key, "status": w.status} for w in workloads],
        "admissions": {
            w.key: w.status["admission"]
            for w in workloads
            if "admission" in w.status and w.cluster_queue in active and w.stage in ("QuotaReserved", "Admitted")
        },
        "queued": queues["active"],
        "localQueueUsage": {
            key: {name: value for name, value in account.items() if name != "lastUpdate"}
            for key, account in engine._core._local_queue_accounts().items()
        },
        "inadmissible": queues["inadmissible"],
    }


def _simulate(case: Mapping[str, Any], messages: bool) -> Run:
    config = dict(case["config"])
    options = {name: config.pop(name, None) for name in ("cycleStepMs", "quietCycles", "maxCycles", "evictionSeconds")}
    if config.pop("requeueBatchMs", None):
        raise NotImplementedError("trying again once a second")
    now = config.pop("now")
    return simulate(
        case["objects"],
        case["input"]["events"],
        configuration=Configuration.trusted(config, feature_gates=case.get("featureGates")),
        now=now,
        trusted=True,
        cycle_seconds=options["cycleStepMs"] / 1000,
        quiet_cycles=options["quietCycles"],
        max_cycles=options["maxCycles"],
        eviction_seconds=options["evictionSeconds"] or 0,
        messages=messages,
    )


def _trace(case: Mapping[str, Any]) -> dict[str, Any]:
    run = _simulate(case, messages=True)
    cycles: list[dict[str, Any]] = []
    quiet: list[dict[str, Any]] = []
    for cycle in run.cycles:
        entry = _told(run, cycle)
        entry["admitted"] = sorted((_granted(run, cycle, a) for a in cycle.decision.admissions), key=_by_key)
        entry["inadmissible"] = list(cycle.parked)
        entry["messages"] = [
            {"key": e.key, "type": e.type, "reason": e.reason, "message": e.message} for e in cycle.decision.events
        ]
        happened = entry["admitted"] or entry["preempting"] or entry["inadmissible"]
        (cycles if happened else quiet).append(entry)
    return {
        "cycles": cycles,
        "quietMessages": [{"n": entry["n"], "t": entry["t"], "messages": entry["messages"]} for entry in quiet],
        "final": _final(run),
    }


def _scale(case: Mapping[str, Any]) -> dict[str, Any]:
    run = _simulate(case, messages=False)
    cycles = []
    for cycle in run.cycles:
        entry = _told(run, cycle)
        entry["admitted"] = sorted(admission.key for admission in cycle.decision.admissions)
        entry["newlyInadmissible"] = cycle.n_parked
        cycles.append(entry)
    return {
        "cycles": cycles,
        "final": {
            "t": _seconds(run, run.end),
            "cycles": run.n_cycles,
            "admissions": sum(len(cycle["admitted"]) for cycle in cycles),
            "preemptions": sum(len(cycle["preempting"]) for cycle in cycles),
            "finished": sum(step.kind is StepKind.FINISHED for step in run.steps),
        },
    }


def _by_key(entry: Mapping[str, Any]) -> str:
    return str(entry["key"])


def _seconds(run: Run, time: int) -> float:
    whole, rest = divmod(time - run.start, 10**9)
    return whole + rest / 10**9 if rest else whole


def _told(run: Run, cycle: SimulatedCycle) -> dict[str, Any]:
    preempting = [
        {"key": victim.key, "reason": victim.reason, "preemptor": victim.preemptor}
        for victim in cycle.decision.preemptions
    ]
    return {"n": cycle.number, "t": _seconds(run, cycle.time), "preempting": sorted(preempting, key=_by_key)}


def _granted(run: Run, cycle: SimulatedCycle, admission: WorkloadAdmission) -> dict[str, Any]:
    pod_sets = [{"name": p.name, "count": p.count, "flavors": dict(p.flavors)} for p in admission.pod_sets]
    granted: dict[str, Any] = {"key": admission.key, "clusterQueue": admission.cluster_queue, "podSets": pod_sets}
    if admission.time != cycle.time:
        granted["t"] = _seconds(run, admission.time)
    return granted


def _final(run: Run) -> dict[str, Any]:
    engine = run.engine
    workloads = engine.workloads()
    # What stands in a snapshot, where there is no inactive ClusterQueue.
    active = {name for name in engine.cluster_queues() if engine.cluster_queue(name).is_active}
    usage: dict[str, dict[str, dict[str, dict[str, str | None]]]] = {"ClusterQueue": {}, "Cohort": {}}
    for row in engine.quota():
        if row.usage != "0" and (row.kind == "Cohort" or row.name in active):
            usage[row.kind].setdefault(row.name, {}).setdefault(row.flavor, {})[row.resource] = row.usage
    queues: dict[str, dict[str, list[str]]] = {"active": {}, "inadmissible": {}}
    for name in engine.cluster_queues():
        for waiting in engine.pending(name):
            queues[waiting.place].setdefault(name, []).append(waiting.key)
    final: dict[str, Any] = {
        "t": _seconds(run, run.end),
        "cycles": run.n_cycles,
        "admitted": [],
        "usage": usage["ClusterQueue"],
        "cohortUsage": usage["Cohort"],
        "queued": queues["active"],
        "inadmissible": queues["inadmissible"],
        "statuses": {
            w.key: recorded_status(w.status, lambda time: _seconds(run, nanoseconds(time))) for w in workloads
        },
        "localQueues": {
            key: {
                "consumed": account["consumed"],
                "penalty": account.get("pendingPenalty"),
                "lastUpdate": _seconds(run, nanoseconds(account["lastUpdate"])),
            }
            for key, account in engine._core._local_queue_accounts().items()
        },
    }
    for workload in workloads:
        if workload.stage in ("QuotaReserved", "Admitted") and workload.cluster_queue in active:
            admission = workload.status["admission"]
            final["admitted"].append(
                {
                    "key": workload.key,
                    "clusterQueue": admission["clusterQueue"],
                    "podSets": [
                        {"name": p["name"], "count": p["count"], "flavors": p.get("flavors", {})}
                        for p in admission["podSetAssignments"]
                    ],
                }
            )
    if run.ending is RunEnding.CYCLE_LIMIT:
        final["stopped"] = "maxCycles"
    return final
