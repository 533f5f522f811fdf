"""Tracks preemptions with open writes, and sets a preemptor's status once all were refused (rules/04 §8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kueuecore._json import JsonObject, JsonValue, list_at, text_at
from kueuecore.checks import WorkloadKey
from kueuecore.controller.workload_records import WorkloadRecords
from kueuecore.decisions import Decision
from kueuecore.engine import Engine
from kueuecore.manifests import to_json_lines

__all__ = ["IssuedPreemptions"]


@dataclass(slots=True)
class _Issued:
    """The victims of one preemptor whose writes are open, and how many were refused."""

    open: dict[WorkloadKey, None] = field(default_factory=dict)
    n_failed: int = 0


class IssuedPreemptions:
    """The victims of recent cycles that are not written yet, by preemptor.

    Args:
        engine: Receives the status of a preemptor.
        workloads: The Workloads as they are stored.
    """

    def __init__(self, engine: Engine, workloads: WorkloadRecords) -> None:
        self._engine = engine
        self._workloads = workloads
        self._issued: dict[WorkloadKey, _Issued] = {}
        self._preemptor_of: dict[WorkloadKey, WorkloadKey] = {}
        # Preemptors none of whose victims could be written, and the number of victims.
        self._failed: dict[WorkloadKey, int] = {}

    def note(self, decision: Decision) -> None:
        """Take in the victims that a cycle has chosen."""
        if decision.preemptions:
            self._forget_gone()
        for preemption in decision.preemptions:
            namespace, _, name = preemption.preemptor.partition("/")
            preemptor, victim = (namespace, name), (preemption.namespace, preemption.name)
            self._preemptor_of[victim] = preemptor
            self._issued.setdefault(preemptor, _Issued()).open[victim] = None

    def answered(self, victim: WorkloadKey, *, is_written: bool) -> None:
        """Take in that a write of a Workload was accepted or refused; only victims matter."""
        preemptor = self._preemptor_of.pop(victim, None)
        issued = self._issued.get(preemptor) if preemptor is not None else None
        if issued is None or preemptor is None:
            return
        if is_written:
            # At least this eviction is on its way.
            del self._issued[preemptor]
            return
        issued.open.pop(victim, None)
        issued.n_failed += 1
        if not issued.open:
            del self._issued[preemptor]
            self._failed[preemptor] = issued.n_failed

    def tell_failures(self, at: int) -> bool:
        """Let preemptors report that they will retry; return whether any did."""
        failed, self._failed = self._failed, {}
        reported = [key for key, n_failed in failed.items() if self._tell(key, n_failed, at)]
        return bool(reported)

    def _forget_gone(self) -> None:
        """Drop a victim that was deleted while its write was open: no answer will come."""
        for victim, preemptor in list(self._preemptor_of.items()):
            if self._workloads.get(victim) is None:
                del self._preemptor_of[victim]
                self._issued.pop(preemptor, None)

    def _tell(self, key: WorkloadKey, n_failed: int, at: int) -> bool:
        record = self._workloads.get(key)
        if record is None or record.write is not None:
            return False
        status = self._engine.workload(key[1], namespace=key[0]).status
        after = _failed_status(status, n_failed)
        if after is None:
            return False
        self._engine.apply(to_json_lines([{**record.data, "status": after}]), now=at, trusted=True)
        self._workloads.mark(key)
        return True


def _failed_status(status: Mapping[str, Any], n_failed: int) -> JsonObject | None:
    """Return the status of a preemptor after its preemptions have failed; `None` if it has changed since."""
    pending = f". Pending the preemption of {n_failed} workload(s)"
    conditions: list[JsonValue] = list(list_at(dict(status), "conditions"))
    for index, condition in enumerate(conditions):
        if not isinstance(condition, dict) or condition.get("type") != "QuotaReserved":
            continue
        message = text_at(condition, "message")
        if message.endswith(pending):
            reported = f"{message.removesuffix(pending)}. Preempting {n_failed} workload(s) failed, will retry."
            conditions[index] = {**condition, "message": reported}
            return {**status, "conditions": conditions}
    return None
