"""How things stand in an engine, as gauges (rules/09 §10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from kueuecore._json import object_at
from kueuecore._quantities import number
from kueuecore.controller.metric_queues import MetricQueues
from kueuecore.engine import Engine
from kueuecore.states import QuotaRow, Stage

__all__ = ["gauges_of"]

_Gauges: TypeAlias = dict[str, dict[tuple[str, ...], float]]


def gauges_of(engine: Engine, queues: MetricQueues) -> Mapping[str, Mapping[tuple[str, ...], float]]:
    """How things stand: family to labels to value.

    Args:
        engine: What it holds.
        queues: Which queues and cohorts there are.
    """
    gauges: _Gauges = {}

    def put(name: str, *labels: str, value: float) -> None:
        gauges.setdefault(name, {})[labels] = value

    rows = engine.quota()
    cohorts = {row.name: row.parent or "" for row in rows if row.kind == "ClusterQueue"}
    admitted: dict[tuple[str, str, str], float] = {}
    for name, namespace, _, _ in queues.local_queues():
        for place in ("active", "inadmissible"):
            put("local_queue_pending_workloads", name, namespace, place, value=0)
    for queue in engine.cluster_queues():
        state = engine.cluster_queue(queue)
        waiting = {"active": 0, "inadmissible": 0}
        local: dict[tuple[str, str, str], int] = {}
        for pending in engine.pending(queue):
            # What waits in an inactive ClusterQueue counts as inadmissible.
            place = pending.place if state.is_active else "inadmissible"
            waiting[place] += 1
            key = pending.local_queue, pending.namespace, place
            local[key] = local.get(key, 0) + 1
        for place, n in waiting.items():
            put("pending_workloads", queue, place, value=n)
        for key, n in local.items():
            put("local_queue_pending_workloads", *key, value=n)
        put("reserving_active_workloads", queue, value=state.reserving_workloads)
        put("admitted_active_workloads", queue, value=state.admitted_workloads)
        holds = "active" if state.is_active else "terminating" if state.reason == "Terminating" else "pending"
        for status in ("pending", "active", "terminating"):
            put("cluster_queue_status", queue, status, value=float(status == holds))
        if "fairSharing" in state.status:
            share = state.status["fairSharing"]["weightedShare"]
            put("cluster_queue_weighted_share", queue, cohorts.get(queue, ""), value=share)
        admitted |= _admitted(queue, state.status)
        upwards = queues.ancestors(queue)
        put("cluster_queue_info", queue, *(upwards[:1] or [""]), *(upwards[-1:] or [""]), value=1)
        for cohort in upwards:
            below = gauges.setdefault("cohort_subtree_admitted_active_workloads", {})
            below[cohort,] = below.get((cohort,), 0) + state.admitted_workloads
    if object_at(engine.configuration.to_dict(), "metrics").get("enableClusterQueueResources"):
        for row in rows:
            if row.kind == "ClusterQueue":
                _put_resources(gauges, row, admitted)
    for row in rows:
        if row.kind == "Cohort":
            cell = row.name, row.flavor, row.resource
            put("cohort_subtree_quota", *cell, value=_units(row.subtree_quota))
            put("cohort_subtree_resource_reservations", *cell, value=_units(row.usage))
    for place_of_cohort in queues.cohorts():
        put("cohort_info", *place_of_cohort, value=1)
    _put_local_queues(gauges, engine, queues)
    _put_workloads(gauges, engine, queues)
    return gauges


def _put_local_queues(gauges: _Gauges, engine: Engine, queues: MetricQueues) -> None:
    there = set(engine.cluster_queues())
    for name, namespace, queue, is_stopped in queues.local_queues():
        state = engine.local_queue(name, namespace=namespace)
        own = name, namespace
        gauges.setdefault("local_queue_reserving_active_workloads", {})[own] = state.reserving_workloads
        gauges.setdefault("local_queue_admitted_active_workloads", {})[own] = state.admitted_workloads
        is_active = not is_stopped and queue in there and engine.cluster_queue(queue).is_active
        for status in ("True", "False", "Unknown"):
            holds = float(status == str(is_active))
            gauges.setdefault("local_queue_status", {})[*own, status] = holds
        for family, key in (("reservation", "flavorsReservation"), ("usage", "flavorsUsage")):
            for (_, flavor, resource), value in _admitted("", state.status, key=key).items():
                gauges.setdefault(f"local_queue_resource_{family}", {})[*own, flavor, resource] = value


def _put_workloads(gauges: _Gauges, engine: Engine, queues: MetricQueues) -> None:
    """Workloads that have finished, and why others are not admitted."""
    known = {(name, namespace) for name, namespace, _, _ in queues.local_queues()}
    for queue in engine.cluster_queues():
        gauges.setdefault("finished_workloads", {})[queue,] = 0
    for own in known:
        gauges.setdefault("local_queue_finished_workloads", {})[own] = 0

    def count(family: str, *labels: str) -> None:
        counts = gauges.setdefault(family, {})
        counts[labels] = counts.get(labels, 0) + 1

    for it in engine.workloads():
        local, holder = (it.local_queue, it.namespace), it.cluster_queue
        if holder is None:
            continue
        if it.stage is Stage.FINISHED:
            count("finished_workloads", holder)
            if local in known:
                count("local_queue_finished_workloads", *local)
        elif it.stage is not Stage.ADMITTED:
            reasons = {condition["type"]: condition for condition in it.status.get("conditions", ())}
            reason = reasons.get("Admitted", {}).get("reason", "NoReservation")
            reserved = reasons.get("QuotaReserved", {"status": "", "reason": "PendingEvaluation"})
            cause = "" if reserved["status"] == "True" else reserved["reason"]
            count("unadmitted_workloads", holder, reason, cause)
            if local in known:
                count("local_queue_unadmitted_workloads", *local, holder, reason, cause)


def _put_resources(gauges: _Gauges, row: QuotaRow, admitted: Mapping[tuple[str, str, str], float]) -> None:
    for name, value in {
        "nominal_quota": _units(row.nominal),
        "borrowing_limit": _units(row.borrowing_limit),
        "lending_limit": _units(row.lending_limit),
        "resource_reservation": _units(row.usage),
        "resource_usage": admitted.get((row.name, row.flavor, row.resource), 0.0),
    }.items():
        cell = row.parent or "", row.name, row.flavor, row.resource
        gauges.setdefault(f"cluster_queue_{name}", {})[cell] = value


def _admitted(queue: str, status: Mapping[str, Any], *, key: str = "flavorsUsage") -> dict[tuple[str, str, str], float]:
    return {
        (queue, flavor["name"], resource["name"]): _units(resource["total"])
        for flavor in status.get(key, ())
        for resource in flavor["resources"]
    }


def _units(quantity: str | None) -> float:
    """A quantity in whole units; infinity for one without a limit."""
    units = float("inf") if quantity is None else number(quantity)
    assert units is not None, "the engine writes quantities"
    return float(units)
