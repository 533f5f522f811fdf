"""Answers of the engine to recorded cases of the real Kueue. Holds no rule.

Cases that a world can show go through `kueuecore.Engine`, as a program would use it; `kueuecore._proof` answers the
others, which ask about a part of a decision or of the cache.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from kueuecore.conformance import shapes
from kueuecore.conformance.runs_by_engine import scale, trace
from kueuecore.conformance.seen_engine import SeenEngine
from kueuecore.conformance.worlds import begun, key_of, preempting, with_checks
from kueuecore.errors import UnknownObjectError

__all__ = ["answer"]

_Json = dict[str, Any]
# A second pass is due this long after the engine has seen that one is needed.
_SECOND_PASS_SECONDS = 1


def answer(case: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a recorded case by the engine.

    Raises:
        NotImplementedError: What the case needs is not built yet.
    """
    shown: dict[str, Callable[[_Json], _Json]] = {
        "cycle": _cycle,
        "cycles": _cycles,
        "preempt": _find_victims,
        "readiness": _readiness,
        "scale": scale,
        "trace": trace,
        "usage": _usage,
    }
    if case["kind"] in shown:
        return shown[case["kind"]](dict(case))
    from kueuecore import _proof

    found = _proof.answer(json.dumps(case).encode())
    if found is None:
        raise NotImplementedError(f"cases of kind {case['kind']}")
    answered: dict[str, Any] = json.loads(found)
    return answered


def _readiness(case: _Json) -> _Json:
    seen = SeenEngine(case, with_checks(case))
    try:
        state = seen.engine.cluster_queue(case["input"]["clusterQueue"])
        reason, message = state.reason, state.message
    except UnknownObjectError:
        reason, message = "NotFound", "ClusterQueue not found"
    return shapes.readiness(reason, message, terminates=case["input"].get("terminate", False))


def _usage(case: _Json) -> _Json:
    engine, given = SeenEngine(case, case["objects"]).engine, case["input"]
    if "clusterQueue" in given:
        status = engine.cluster_queue(given["clusterQueue"]).status
    else:
        namespace, _, name = given["localQueue"].partition("/")
        status = engine.local_queue(name, namespace=namespace).status
    return {
        "reservedResources": status["flavorsReservation"],
        "reservingWorkloads": status["reservingWorkloads"],
        "admittedResources": status["flavorsUsage"],
        "admittedWorkloads": status["admittedWorkloads"],
    }


def _find_victims(case: _Json) -> _Json:
    *objects, workload = preempting(case)
    seen = SeenEngine(case, objects)
    # A cycle does not tell who was evicted before.
    found = seen.engine.what_if(workload, now=seen.now, trusted=True)
    seen.apply([workload])
    seen.engine.cycle(seen.now)
    targets = ((each.key, each.reason, each.cluster_queue) for each in found.preemptions)
    return shapes.victims(targets, seen.statuses())


def _begin(case: _Json) -> SeenEngine:
    """The engine before the first cycle."""
    given = case.get("input", {})
    # A restarted Kueue reads the usage of LocalQueues from their statuses.
    used = given.get("localQueueUsage", {})
    objects = [
        each | {"status": _usage_status(used[key_of(each)])}
        if each["kind"] == "LocalQueue" and key_of(each) in used
        else each
        for each in begun(case)
    ]
    return SeenEngine(case, objects, seconds_before=_SECOND_PASS_SECONDS if given.get("secondPass") else 0)


def _usage_status(used: _Json) -> _Json:
    status = {"consumedResources": used["consumed"], "lastUpdate": used["lastUpdate"]}
    return {"fairSharing": {"admissionFairSharingStatus": status}}


def _cycle(case: _Json) -> _Json:
    given = case.get("input", {})
    seen = _begin(case)
    answered = _decided(seen, given.get("admissionError"))
    update = given.get("concurrentUpdate")
    if update is None:
        return answered
    # Someone else writes labels while the scheduler writes the status: the object ends up with both.
    written = next(each for each in case["objects"] if each["kind"] == "Workload" and key_of(each) == update["key"])
    written = {**written, "metadata": written["metadata"] | {"labels": update["labels"]}}
    seen.apply([written | {"status": seen.statuses()[update["key"]]}])
    statuses = seen.statuses()
    for workload in answered["workloads"]:
        workload["status"] = statuses[workload["key"]]
        if workload["key"] == update["key"]:
            workload["labels"] = update["labels"]
    return answered


def _cycles(case: _Json) -> _Json:
    seen = _begin(case)
    decided = []
    for step in case["input"]["steps"]:
        match step["op"]:
            case "cycle":
                decided.append(_decided(seen))
            case "update":
                seen.apply([step["object"]])
            case "delete":
                namespace, _, name = step["key"].partition("/")
                seen.engine.delete(step["kind"], name, namespace=namespace, now=seen.now)
    return {"cycles": decided}


def _decided(seen: SeenEngine, error: str | None = None) -> _Json:
    """Run a cycle, whose reservations cannot be written if there is an error."""
    decision = seen.engine.cycle(seen.now)
    refused = [*decision.admissions, *decision.placed, *decision.evictions] if error else []
    for each in refused:
        seen.engine.forget(each.name, namespace=each.namespace, now=seen.now, gone=error == "NotFound")
    answered = shapes.after_cycle(seen, decision)
    for ended in decision.replaced_slices:
        # Kueue's cache sees only through the watch, after the cycle, that the slice is finished.
        answered["admissions"][ended.key] = seen.statuses()[ended.key]["admission"]
    if refused:
        keys = {each.key for each in refused}
        answered["events"] = [event for event in answered["events"] if event["key"] not in keys]
    if refused and error != "NotFound":
        said = {"type": "Warning", "reason": "SecondPassFailed"}
        answered["events"] += [said | {"key": each.key, "message": each.unwritten} for each in decision.evictions]
    return answered
