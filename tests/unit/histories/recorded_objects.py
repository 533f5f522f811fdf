"""Workloads and Events as Kueue writes them."""

from __future__ import annotations

from typing import Any

KUEUE = "kueue.x-k8s.io/v1beta2"
UID, OTHER_UID, JOB_UID = "0a1b", "0c2d", "0e3f"
# rules/04 §8, as Kueue 0.16 to 0.20 write it.
PREEMPTED = (
    f"Preempted to accommodate a workload (UID: {OTHER_UID}, JobUID: {JOB_UID}) due to reclamation within the cohort; "
    "preemptor path: /all/b; preemptee path: /all/a"
)
PRIORITIES = (
    "; preemptor effective priority: 100 (base: 100, boost: 0); preemptee effective priority: 0 (base: 0, boost: 0)"
)


def at(second: int) -> str:
    """A time of the day on which everything happens here."""
    return f"2026-03-02T09:{second // 60:02}:{second % 60:02}Z"


def condition(kind: str, status: str, reason: str, second: int, message: str = "") -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": at(second),
        "observedGeneration": 1,
    }


def workload(*conditions: dict[str, Any], name: str = "w", uid: str = UID, **status: Any) -> dict[str, Any]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "4a5b", "controller": True}
    metadata = {"name": name, "namespace": "lab", "uid": uid, "creationTimestamp": at(0), "ownerReferences": [owner]}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    pod_sets = [{"name": "main", "count": 1, "template": template}]
    spec = {"queueName": "lq", "priority": 0, "active": True, "podSets": pod_sets}
    found = {"conditions": [*conditions], **status}
    return {"apiVersion": KUEUE, "kind": "Workload", "metadata": metadata, "spec": spec, "status": found}


def admission(queue: str = "a", flavor: str = "spot") -> dict[str, Any]:
    assigned = {"name": "main", "count": 1, "flavors": {"cpu": flavor, "memory": flavor}}
    return {"clusterQueue": queue, "podSetAssignments": [assigned]}


def preempted_at(second: int, released: int) -> list[dict[str, Any]]:
    """The conditions after a preemption, once the job has stopped."""
    return [
        condition("QuotaReserved", "False", "PendingEvaluation", released, PREEMPTED),
        condition("Admitted", "False", "NoReservation", released, "The workload has no reservation"),
        condition("Evicted", "True", "Preempted", second, PREEMPTED),
        condition("Preempted", "True", "InCohortReclamation", second, PREEMPTED),
        condition("Requeued", "True", "Preempted", released, PREEMPTED),
    ]


def event(
    reason: str,
    message: str,
    second: int,
    *,
    last: int | None = None,
    count: int = 1,
    name: str = "w",
    uid: str = UID,
    kind: str = "Workload",
    version: int = 0,
) -> dict[str, Any]:
    """An Event of `v1`, as client-go's recorder and `kueuecore serve` write it."""
    place = str(version or second + 1)
    metadata = {"name": f"{name}.18{second:04x}", "namespace": "lab", "resourceVersion": place}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": {"apiVersion": KUEUE, "kind": kind, "namespace": "lab", "name": name, "uid": uid},
        "type": "Normal",
        "reason": reason,
        "message": message,
        "source": {"component": "kueue-admission"},
        "firstTimestamp": at(second),
        "lastTimestamp": at(second if last is None else last),
        "count": count,
    }


def new_event(reason: str, note: str, second: int, *, series: tuple[int, int] | None = None) -> dict[str, Any]:
    """An Event of `events.k8s.io/v1`; `series` is how often it happened, and when last."""
    found: dict[str, Any] = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"w.18{second:04x}", "namespace": "lab", "resourceVersion": str(second + 1)},
        "regarding": {"apiVersion": KUEUE, "kind": "Workload", "namespace": "lab", "name": "w", "uid": UID},
        "type": "Normal",
        "reason": reason,
        "note": note,
        "eventTime": at(second).replace("Z", ".000000Z"),
        "reportingController": "kueue",
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }
    if series is not None:
        found["series"] = {"count": series[0], "lastObservedTime": at(series[1]).replace("Z", ".000000Z")}
    return found
