"""Reads the state of an engine into gauges (rules/09 §10)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kueuecore._json import object_at
from kueuecore.controller.metric_objects import MetricObjects
from kueuecore.controller.metric_series import Labels
from kueuecore.engine import Engine

__all__ = ["gauges_of"]

_STATUSES = ("pending", "active", "terminating")
_PLACES = ("active", "inadmissible")


def gauges_of(engine: Engine, objects: MetricObjects) -> Mapping[str, Mapping[Labels, float]]:
    """Return the current state: family to labels to value.

    Args:
        engine: The engine to read.
        objects: Which LocalQueues have metrics, and custom labels.
    """
    lists_workloads = objects.labels.has("Workload")
    rows = engine._core._gauges(lists_workloads)
    has_resources = object_at(engine.configuration.to_dict(), "metrics").get("enableClusterQueueResources") is True
    gauges = _Gauges(objects)
    for row in rows["clusterQueues"]:
        gauges.put_cluster_queue(row)
        if has_resources:
            gauges.put_resources(row)
    for row in rows["localQueues"]:
        if objects.exposes(row["name"], row["namespace"]):
            gauges.put_local_queue(row)
    for row in rows["cohorts"]:
        gauges.put_cohort(row)
    gauges.put_admitted_below(rows["clusterQueues"], rows["cohorts"])
    gauges.count_unadmitted(rows["unadmitted"])
    if lists_workloads:
        gauges.count_workloads(rows["workloads"])
    return gauges.families


class _Gauges:
    def __init__(self, objects: MetricObjects) -> None:
        self._objects = objects
        self._splits_workloads = objects.labels.has("Workload")
        self.families: dict[str, dict[Labels, float]] = {}

    def _put(self, family: str, labels: Labels, value: float) -> None:
        self.families.setdefault(family, {})[labels] = value

    def _count(self, family: str, labels: Labels, n: float = 1) -> None:
        counts = self.families.setdefault(family, {})
        counts[labels] = counts.get(labels, 0) + n

    def put_cluster_queue(self, row: Mapping[str, Any]) -> None:
        name, custom = row["name"], self._objects.custom("ClusterQueue", row["name"])

        def put(family: str, *labels: str, value: float) -> None:
            self._put(family, (name, *labels, *custom), value)

        for place, n in zip(_PLACES, row["pending"], strict=True):
            if not self._splits_workloads:
                put("pending_workloads", place, value=n)
        for place, n in zip(_PLACES, row.get("shapes", ()), strict=False):
            put("pending_scheduling_hashes", place, value=n)
        put("reserving_active_workloads", value=row["reserving"])
        if not self._splits_workloads:
            put("admitted_active_workloads", value=row["admitted"])
        put("finished_workloads", value=row["finished"])
        for status in _STATUSES:
            put("cluster_queue_status", status, value=float(status == row["status"]))
        put("cluster_queue_info", row["parent"], row["root"], value=1)

    def put_resources(self, row: Mapping[str, Any]) -> None:
        """Set the gauges that `metrics.enableClusterQueueResources` switches on."""
        name, custom = row["name"], self._objects.custom("ClusterQueue", row["name"])
        cohort = row["cohort"]
        for flavor, resource, nominal, borrowing, lending, reserved, used in row["quotas"]:
            labels = (name, cohort, flavor, resource, *custom)
            self._put("cluster_queue_nominal_quota", labels, _or(nominal, math.inf))
            self._put("cluster_queue_borrowing_limit", labels, _or(borrowing, math.inf))
            self._put("cluster_queue_lending_limit", labels, _or(lending, math.inf))
            self._put("cluster_queue_resource_reservation", labels, _or(reserved, math.inf))
            self._put("cluster_queue_resource_usage", labels, _or(used, math.inf))
        for resource, pending in row["pendingResources"].items():
            self._put("cluster_queue_resource_pending", (name, resource, *custom), pending)
        if "weightedShare" in row:
            share = _or(row["weightedShare"], math.nan)
            self._put("cluster_queue_weighted_share", (name, cohort, *custom), share)

    def put_local_queue(self, row: Mapping[str, Any]) -> None:
        own = row["name"], row["namespace"]
        custom = self._objects.custom("LocalQueue", *own)

        def put(family: str, *labels: str, value: float) -> None:
            self._put(f"local_queue_{family}", (*own, *labels, *custom), value)

        for place, n in zip(_PLACES, row.get("pending", ()), strict=False):
            put("pending_workloads", place, value=n)
        if "finished" in row:
            put("finished_workloads", value=row["finished"])
        if "fairSharingUsage" in row:
            usage = _or(row["fairSharingUsage"], math.inf)
            put("admission_fair_sharing_usage", row["clusterQueue"], value=usage)
        for status in ("True", "False", "Unknown"):
            put("status", status, value=float(status == str(row["isActive"])))
        if "reserving" in row:
            put("reserving_active_workloads", value=row["reserving"])
            if not self._splits_workloads:
                put("admitted_active_workloads", value=row["admitted"])
        for flavor, resource, reserved, used in row.get("usage", ()):
            put("resource_reservation", flavor, resource, value=_or(reserved, math.inf))
            put("resource_usage", flavor, resource, value=_or(used, math.inf))

    def put_cohort(self, row: Mapping[str, Any]) -> None:
        name, custom = row["name"], self._objects.custom("Cohort", row["name"])
        self._put("cohort_info", (name, row["parent"], row["root"], *custom), 1)
        if "weightedShare" in row:
            # Kueue makes NaN of it for ClusterQueues only.
            self._put("cohort_weighted_share", (name, *custom), _or(row["weightedShare"], math.inf))
        for key, family in (("quotas", "cohort_subtree_quota"), ("reserved", "cohort_subtree_resource_reservations")):
            for flavor, resource, amount in row[key]:
                self._put(family, (name, flavor, resource, *custom), _or(amount, math.inf))

    def put_admitted_below(self, queues: Iterable[Mapping[str, Any]], cohorts: Iterable[Mapping[str, Any]]) -> None:
        """Set the admitted workloads below cohorts: all of them under the labels of each ClusterQueue below."""
        above = {row["name"]: row["parent"] for row in cohorts}
        admitted: dict[str, int] = {}
        customs: dict[str, set[Labels]] = {}
        for row in queues:
            cohort = row["parent"]
            while cohort:
                admitted[cohort] = admitted.get(cohort, 0) + row["admitted"]
                customs.setdefault(cohort, set()).add(self._objects.custom("ClusterQueue", row["name"]))
                cohort = above[cohort]
        for cohort, of_cohort in customs.items():
            for custom in of_cohort:
                self._put("cohort_subtree_admitted_active_workloads", (cohort, *custom), admitted[cohort])

    def count_unadmitted(self, rows: Iterable[tuple[str, str, str, str, str, int]]) -> None:
        """Count workloads that are not admitted by the ClusterQueue in their LocalQueue, even a missing one."""
        for namespace, name, queue, reason, cause, n in rows:
            custom = self._objects.custom("ClusterQueue", queue)
            self._count("unadmitted_workloads", (queue, reason, cause, *custom), n)
            if self._objects.exposes(name, namespace):
                own = self._objects.custom("LocalQueue", name, namespace)
                self._count("local_queue_unadmitted_workloads", (name, namespace, queue, reason, cause, *own), n)

    def count_workloads(self, rows: Iterable[Sequence[str]]) -> None:
        """Count workloads in the families that take labels from them."""
        for namespace, workload, local_queue, queue, place in rows:
            own = self._objects.custom("Workload", namespace, workload)
            custom = (*self._objects.custom("ClusterQueue", queue), *own)
            if place != "admitted":
                self._count("pending_workloads", (queue, place, *custom))
                continue
            self._count("admitted_active_workloads", (queue, *custom))
            if self._objects.exposes(local_queue, namespace, cluster_queue=queue):
                custom = (*self._objects.custom("LocalQueue", local_queue, namespace), *own)
                self._count("local_queue_admitted_active_workloads", (local_queue, namespace, *custom))


def _or(value: float | None, infinite: float) -> float:
    return infinite if value is None else value
