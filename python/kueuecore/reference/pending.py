"""The workloads that wait: order, heads, requeueing, parking (rules/05 §2 to §5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kueuecore.reference import conditions, times
from kueuecore.reference.selectors import matches_labels
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.totals import Info

__all__ = ["PendingQueue", "Preemptor", "RequeueReason"]


class RequeueReason(StrEnum):
    """Why a head goes back to its queue (rules/05 §3)."""

    GENERIC = ""
    NAMESPACE_MISMATCH = "NamespaceMismatch"
    NO_FIT = "NoFit"
    NO_CANDIDATES = "PreemptionNoCandidates"
    GATED = "PreemptionGated"
    PENDING_PREEMPTION = "PendingPreemption"
    PENDING_MIGRATION = "PendingMigration"
    FAILED_AFTER_NOMINATION = "FailedAfterNomination"


_IMMEDIATE = (
    RequeueReason.FAILED_AFTER_NOMINATION,
    RequeueReason.PENDING_PREEMPTION,
    RequeueReason.PENDING_MIGRATION,
)


@dataclass(frozen=True)
class Preemptor:
    """Who waits for the victims of this queue (rules/05 §5)."""

    key: str
    generation: int
    is_sticky: bool


class PendingQueue:
    """The workloads that wait in one ClusterQueue (rules/05 §2).

    Args:
        used: What a LocalQueue has used, if that comes first here (rules/05 §2 0).
    """

    def __init__(self, settings: Settings, used: Callable[[str], float] | None) -> None:
        self.settings = settings
        self.used = used
        self.strategy = ""
        self.namespace_selector: Json | None = None
        self.active: dict[str, Info] = {}
        self.inadmissible: dict[str, Info] = {}
        self.inflight: str | None = None
        self.preemptor: Preemptor | None = None
        self.marked: dict[str, str] = {}
        self.n_pops = 0
        self.flushed_at = -1

    def order(self, info: Info) -> tuple[float, bool, int, int, str]:
        """First come: least used, waiting for victims, priority, time, UID (rules/05 §2)."""
        used = self.used(info.local_queue) if self.used is not None else 0.0
        is_sticky = self.preemptor is not None and self.preemptor.is_sticky and self.preemptor.key == info.key
        return used, not is_sticky, -info.priority, info.queued_at, info.uid

    def find(self, key: str) -> Info | None:
        """A workload that waits here."""
        return self.active.get(key) or self.inadmissible.get(key)

    def is_backed_off(self, info: Info, now: int) -> bool:
        """Does it wait for a moment or a change of its own? (rules/05 §2.1 3)."""
        requeued = conditions.find(info.workload, "Requeued")
        requeue_at = ((info.workload.get("status") or {}).get("requeueState") or {}).get("requeueAt")
        return (requeued is not None and requeued["status"] == "False") or (
            requeue_at is not None and now < times.moment(requeue_at)
        )

    def _is_relevant(self, old: Info, new: Info) -> bool:
        """Could a change let a parked workload in? (rules/05 §2.1 2)."""
        generation = new.workload["metadata"].get("generation", 0)
        if old.last_generation not in (0, generation) or old.workload["spec"] != new.workload["spec"]:
            return True
        statuses = [info.workload.get("status") or {} for info in (old, new)]
        if (statuses[0].get("reclaimablePods") or []) != (statuses[1].get("reclaimablePods") or []):
            return True
        return (
            old.boost != new.boost
            or [t.requests for t in old.totals] != [t.requests for t in new.totals]
            or has_closed_gate(old.workload) != has_closed_gate(new.workload)
            or any(
                conditions.find(old.workload, kind) != conditions.find(new.workload, kind)
                for kind in ("Evicted", "Requeued")
            )
        )

    def push(self, info: Info, now: int) -> None:
        """Add or update a workload (rules/05 §2.1)."""
        key = info.key
        if self.inflight == key:
            return
        parked = self.inadmissible.get(key)
        if parked is not None:
            if not self._is_relevant(parked, info):
                self.inadmissible[key] = info
                return
            del self.inadmissible[key]
        if key not in self.active:
            is_hopeless = self.strategy == "BestEffortFIFO" and info.shape is not None and info.shape in self.marked
            if is_hopeless or self.is_backed_off(info, now):
                self.inadmissible[key] = info
                return
        self.active[key] = info

    def push_if_absent(self, info: Info) -> bool:
        """Add a workload of a LocalQueue that has appeared (rules/05 §2.1)."""
        if info.key in self.active or info.key in self.inadmissible or self.inflight == info.key:
            return False
        self.active[info.key] = info
        return True

    def pop(self) -> Info | None:
        """The head, which is inflight from now on (rules/05 §2.2)."""
        self.n_pops += 1
        self.inflight = None
        if not self.active:
            return None
        head = min(self.active.values(), key=self.order)
        del self.active[head.key]
        self.inflight = head.key
        head.last_generation = head.workload["metadata"].get("generation", 0)
        return head

    def delete(self, key: str) -> None:
        """Forget a workload (rules/05 §5)."""
        self.active.pop(key, None)
        self.inadmissible.pop(key, None)
        if self.inflight == key:
            self.inflight = None
        if self.preemptor is not None and self.preemptor.key == key:
            self.preemptor = None

    def requeue(self, info: Info, reason: RequeueReason, quota_reserved_reason: str, now: int) -> bool:
        """Put a head back, or park it and its equals (rules/05 §3, §4). Says whether it was put anywhere."""
        key = info.key
        if reason in (RequeueReason.PENDING_PREEMPTION, RequeueReason.PENDING_MIGRATION):
            self.preemptor = Preemptor(key, info.last_generation, self.strategy == "BestEffortFIFO")
        if self.inflight == key:
            self.inflight = None
        is_strict = self.strategy == "StrictFIFO"
        immediate = reason != RequeueReason.NAMESPACE_MISMATCH if is_strict else reason in _IMMEDIATE
        is_pending = info.progress is not None and info.progress.has_pending_flavors
        if not self.is_backed_off(info, now) and (immediate or self.flushed_at >= self.n_pops or is_pending):
            if key in self.active:
                return False
            self.active[key] = self.inadmissible.pop(key, info)
            return True
        if key in self.inadmissible or key in self.active:
            return False
        self.inadmissible[key] = info
        if reason in (RequeueReason.NO_FIT, RequeueReason.NO_CANDIDATES) and info.shape is not None:
            self.mark(info.shape, quota_reserved_reason or "PendingEvaluation")
        return True

    def mark(self, shape: str, reason: str) -> int:
        """Park all workloads of a shape that just failed (rules/05 §4)."""
        if self.strategy != "BestEffortFIFO":
            return 0
        self.marked[shape] = reason
        equals = [key for key, info in self.active.items() if info.shape == shape]
        for key in equals:
            self.inadmissible[key] = self.active.pop(key)
        return len(equals)

    def flush(self, namespaces: Mapping[str, Json], now: int) -> int:
        """Try all again that wait for a change (rules/05 §3.1)."""
        self.flushed_at = self.n_pops
        self.marked = {}
        moved = [info for info in self.inadmissible.values() if self._may_return(info, namespaces, now)]
        for info in moved:
            self.active[info.key] = self.inadmissible.pop(info.key)
        return len(moved)

    def _may_return(self, info: Info, namespaces: Mapping[str, Json], now: int) -> bool:
        namespace = namespaces.get(info.workload["metadata"].get("namespace", ""))
        if namespace is None or self.is_backed_off(info, now):
            return False
        return matches_labels(self.namespace_selector, namespace["metadata"].get("labels") or {})

    def in_order(self, infos: Iterable[Info]) -> list[str]:
        """Keys in the order of the queue."""
        return [info.key for info in sorted(infos, key=self.order)]


def has_closed_gate(workload: Json) -> bool:
    """Must it ask before it preempts? A gate without a state is closed (rules/05 §6.4 5)."""
    states = (workload.get("status") or {}).get("preemptionGates") or ()
    is_open = {state["name"]: state.get("position") == "Open" for state in states}
    return any(not is_open.get(gate["name"]) for gate in workload["spec"].get("preemptionGates") or ())
