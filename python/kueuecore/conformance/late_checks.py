"""Admission checks that take time in recorded runs. They are asked like any controller of checks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from kueuecore import _core
from kueuecore.conformance.seen_engine import SeenEngine
from kueuecore.times import SECOND_NS, format_time, nanoseconds

__all__ = ["LateChecks"]

_Json = dict[str, Any]


class LateChecks:
    """What a case says about checks; they decide on all of its checks.

    Args:
        plans: What it says, by name.
        controllers: Whom to ask.
        seen: The engine.
    """

    def __init__(self, plans: _Json, controllers: list[str], seen: SeenEngine) -> None:
        self.controllers = controllers
        self._plans, self._seen = plans, seen
        # When the next one is ready.
        self._wake: int | None = None

    @classmethod
    def of(cls, case: _Json, seen: SeenEngine) -> Self | None:
        """Return the checks of a case; `None`: all of them are ready at once."""
        plans = case["config"].get("admissionChecks")
        checks = [each for each in case["objects"] if each["kind"] == "AdmissionCheck"]
        return cls(plans, [each["spec"]["controllerName"] for each in checks], seen) if plans else None

    def answer(self, simulation: _core.Simulation, asked: Iterable[tuple[str, str]]) -> None:
        """Make all checks of a workload ready once the longest of their times has passed since it got quota.

        A check due while cycles follow one another waits, unless something happens to the workload.
        """
        now, due = simulation.now, set(asked)
        rung = self._wake if simulation.wake is None else None
        self._wake = None
        answered = []
        workloads: Iterable[_Json] = self._seen.engine.objects("Workload")
        for workload in workloads:
            at = self._ready_at(workload)
            if at is None:
                continue
            key = workload["metadata"].get("namespace", ""), workload["metadata"]["name"]
            if at <= now and (key in due or (rung is not None and at <= rung)):
                answered.append(self._answered(workload, now))
            else:
                self._wake = at if self._wake is None else min(self._wake, at)
        if answered:
            self._seen.engine.apply(answered, now=now, trusted=True)
        simulation.answered(self._wake, bool(answered))

    def _ready_at(self, workload: _Json) -> int | None:
        status = workload.get("status", {})
        true = {each["type"]: each for each in status.get("conditions", ()) if each["status"] == "True"}
        waiting = [check for check in status.get("admissionChecks", ()) if check["state"] == "Pending"]
        if "QuotaReserved" not in true or true.keys() & {"Evicted", "Finished"} or not waiting:
            return None
        longest = max(self._plans.get(check["name"], {}).get("seconds", 0) for check in waiting)
        return nanoseconds(true["QuotaReserved"]["lastTransitionTime"]) + int(longest * SECOND_NS)

    def _answered(self, workload: _Json, now: int) -> _Json:
        names = [pod_set["name"] for pod_set in workload["spec"]["podSets"]]
        checks = []
        for check in workload["status"]["admissionChecks"]:
            if check["state"] == "Pending":
                check = check | {"state": "Ready", "message": "Ready at once", "lastTransitionTime": format_time(now)}
                if selector := self._plans.get(check["name"], {}).get("nodeSelector"):
                    check["podSetUpdates"] = [{"name": name, "nodeSelector": selector} for name in names]
            checks.append(check)
        return workload | {"status": workload["status"] | {"admissionChecks": checks}}
