"""Builds parents, variants and ClusterQueues of concurrent admission, and reconciles them."""

from __future__ import annotations

from typing import Any

from kueuecore import Configuration
from kueuecore.concurrent_admission import FamilyReview, reconcile_parent
from kueuecore.times import SECOND_NS, format_time

MINUTE = 60 * SECOND_NS
NOW = 1_767_225_600 * SECOND_NS
KUEUE = "kueue.x-k8s.io/v1beta2"
GATE = "kueue.x-k8s.io/concurrent-admission"
PARENT = "train-0a1b2"
PARENT_UID = "uid-of-train"


def configuration(**gates: bool) -> Configuration:
    text = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}"
    return Configuration.parse(text, feature_gates={"ConcurrentAdmission": True, **gates})


def at(time: int) -> str:
    return format_time(time)


def condition(kind: str, status: bool, reason: str, message: str = "", time: int = NOW - MINUTE) -> dict[str, Any]:
    said = {"type": kind, "status": str(status), "reason": reason, "message": message}
    return {**said, "lastTransitionTime": at(time)}


def is_open(position: str = "Open", since: int = NOW) -> dict[str, Any]:
    return {"preemptionGates": [{"name": GATE, "position": position, "lastTransitionTime": at(since)}]}


BLOCKED = condition("BlockedOnPreemptionGates", True, "PreemptionGated", "Workload requires preemption, but it's gated")
TRIED = condition("QuotaReserved", False, "NoFit", "there is not enough of it")
EVICTED = condition("Evicted", True, "Preempted", "made room for another")


def admission(queue: str, flavor: str) -> dict[str, Any]:
    pods = {"name": "main", "count": 1, "flavors": {"cpu": flavor}, "resourceUsage": {"cpu": "1"}}
    return {"clusterQueue": queue, "podSetAssignments": [pods]}


def running(flavor: str, *more: dict[str, Any], queue: str = "queue") -> dict[str, Any]:
    """The status of a Workload that was admitted a minute ago."""
    reserved = condition("QuotaReserved", True, "QuotaReserved", f"Quota reserved in ClusterQueue {queue}")
    admitted = condition("Admitted", True, "Admitted", "The workload is admitted")
    return {"admission": admission(queue, flavor), "conditions": [reserved, admitted, *more]}


def saying(*conditions: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A status with these conditions."""
    return {"conditions": list(conditions), **more}


def cluster_queue(*flavors: str, mode: str = "TryPreferredFlavors", last: str = "") -> dict[str, Any]:
    migration: dict[str, Any] = {"mode": mode, **({"constraints": {"lastAcceptableFlavorName": last}} if last else {})}
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": flavor} for flavor in flavors]}]
    spec = {"resourceGroups": groups, "concurrentAdmissionPolicy": {"migration": migration}}
    return {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "queue"}, "spec": spec}


def parent(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    labels = {"team": "blue", "kueue.x-k8s.io/concurrent-admission-parent": "true"}
    metadata = {"namespace": "ns", "name": PARENT, "uid": PARENT_UID, "labels": labels}
    made = {"apiVersion": KUEUE, "kind": "Workload", "metadata": metadata, "spec": {"queueName": "jobs", **spec}}
    return {**made, "status": status} if status is not None else made


def variant(flavor: str, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    owner = {"apiVersion": KUEUE, "kind": "Workload", "name": PARENT, "uid": PARENT_UID, "controller": True}
    metadata = {
        "namespace": "ns",
        "name": f"train-{flavor}",
        "uid": f"uid-of-{flavor}",
        "annotations": {"kueue.x-k8s.io/workload-allowed-resource-flavors": flavor},
        "ownerReferences": [owner],
    }
    spec = {"queueName": "jobs", "preemptionGates": [{"name": GATE}], **spec}
    return {"apiVersion": KUEUE, "kind": "Workload", "metadata": metadata, "spec": spec, "status": status or {}}


def look(
    of: dict[str, Any], variants: list[dict[str, Any]], queue: dict[str, Any], *, now: int = NOW, **gates: bool
) -> FamilyReview:
    """What a look comes to; a second one, with all of that done, has nothing to add."""
    review = reconcile_parent(of, variants, queue, now=now, configuration=configuration(**gates))
    done = {other["metadata"]["name"]: other for other in (of, *variants)}
    gone = {delete["metadata"]["name"] for delete in review.deletes}  # type: ignore[index,call-overload]
    done |= {manifest["metadata"]["name"]: manifest for manifest in (*review.changed, *review.creates)}  # type: ignore[index,call-overload]
    rest = [number for name, number in done.items() if name not in gone and name != of["metadata"]["name"]]
    again = reconcile_parent(done[of["metadata"]["name"]], rest, queue, now=now, configuration=configuration(**gates))
    assert (again.creates, again.deletes, again.changed, again.events) == ((), (), (), ())
    return review


def conditions(workload: Any) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message of each condition."""
    return {
        other["type"]: (other["status"], other["reason"], other["message"])
        for other in workload["status"]["conditions"]
    }
