"""Statuses of Workloads in the shape of recorded runs. Loads neither the engine nor the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["recorded_status"]


def recorded_status(status: Mapping[str, Any], seconds: Callable[[str], float]) -> dict[str, Any]:
    """What a recording keeps of a status; `seconds` counts a time from the beginning of the run."""
    told = [{name: c[name] for name in ("type", "status", "reason", "message")} for c in status.get("conditions", ())]
    finished = [c for c in told if c["type"] == "Finished" and c["status"] == "True"]
    result = {
        "conditions": finished or sorted(told, key=lambda c: str(c["type"])),
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
    result["resourceRequests"] = status.get("resourceRequests", [])
    return result
