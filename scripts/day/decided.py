"""Reads the decision from a Workload's status, in a form that lets two schedulers be compared."""

from __future__ import annotations

from dataclasses import dataclass

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from kueuecore._text import counted
from kueuecore.controller.writes import conditions_that_hold

__all__ = ["Decided", "decided"]


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision on a Workload.

    Args:
        what: `admitted` (quota is reserved), `evicted` (and not stopped yet), `pending`, or empty if it was never
            considered.
        where: For an admission, the ClusterQueue, and count, flavors and nodes by pod set; for an eviction, the reason;
            if pending, the message.
    """

    what: str
    where: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as a sentence for a log."""
        return " ".join(filter(None, (self.what or "not looked at", ", ".join(self.where))))


def decided(workload: JsonObject) -> Decided:
    """Return the decision in a Workload's status.

    Example:
        >>> condition = {"type": "QuotaReserved", "status": "True"}
        >>> assignment = {"name": "main", "count": 2, "flavors": {"cpu": "spot"}}
        >>> admission = {"clusterQueue": "lab", "podSetAssignments": [assignment]}
        >>> str(decided({"status": {"conditions": [condition], "admission": admission}}))
        'admitted in lab, main: 2 pods, cpu on spot'
    """
    holds = conditions_that_hold(workload)
    if "QuotaReserved" in holds and "Evicted" in holds:
        return Decided("evicted", (text_at(holds["Evicted"], "reason"),))
    if "QuotaReserved" in holds:
        admission = object_at(workload, "status", "admission")
        sets = (_pod_set(object_at(assignment)) for assignment in list_at(admission, "podSetAssignments"))
        return Decided("admitted", (f"in {text_at(admission, 'clusterQueue')}", *sets))
    for condition in list_at(workload, "status", "conditions"):
        if text_at(condition, "type") == "QuotaReserved":
            return Decided("pending", (text_at(condition, "message"),))
    return Decided("")


def _pod_set(assignment: JsonObject) -> str:
    flavors = sorted(object_at(assignment, "flavors").items())
    parts = [counted(int_at(assignment, "count"), "pod"), *(f"{resource} on {flavor}" for resource, flavor in flavors)]
    nodes = object_at(assignment, "topologyAssignment")
    if nodes:
        parts.append(f"nodes {nodes}")
    return f"{text_at(assignment, 'name')}: {', '.join(parts)}"
