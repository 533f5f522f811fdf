"""The workloads that wait: order, heads, requeueing, parking (rules/05 §2 to §5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kueuecore.reference import conditions, times
from kueuecore.reference.selectors import matches_labels
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.totals import Info


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


_PREEMPTS = (RequeueReason.PENDING_PREEMPTION, RequeueReason.PENDING_MIGRATION)


@dataclass(frozen=True)
class Preemptor:
    """The workload for whose victims this queue waits (rules/05 §5)."""

    key: str
    generation: int
    is_sticky: bool


class PendingQueue:
    """The pending workloads of one ClusterQueue (rules/05 §2).

    Args:
        settings: The settings.
        used: Returns the usage of a LocalQueue, if that comes first in the order (rules/05 §2 0).
    """

    def __init__(self, settings: Settings, used: Callable[[str], float] | None) -> None:
        self.settings, self.used = settings, used
        self.strategy = ""
        self.namespace_selector: Json | None = None
        self.active: dict[str, Info] = {}
        self.inadmissible: dict[str, Info] = {}
        self.inflight: str | None = None
        self.preemptor: Preemptor | None = None
        # Shapes that have failed since the last flush, with the reasons (rules/05 §4).
        self.marked: dict[str, str] = {}
        self.n_pops = 0
        self.flushed_at = -1

    def order(self, info: Info) -> tuple[float, bool, int, int, str]:
        """Return the sort key: least usage, waiting for victims, priority, time, UID (rules/05 §2)."""
        used = self.used(info.local_queue) if self.used is not None else 0.0
        is_sticky = self.preemptor is not None and self.preemptor.is_sticky and self.preemptor.key == info.key
        return used, not is_sticky, -info.priority, info.queued_at, info.uid

    def waiting(self) -> dict[str, Info]:
        """Return all workloads that wait here, by key."""
        return {**self.active, **self.inadmissible}

    def push(self, info: Info, now: int) -> None:
        """Add or update a workload (rules/05 §2.1)."""
        key, parked = info.key, self.inadmissible.get(info.key)
        if self.inflight == key:
            return
        is_hopeless = self.strategy == "BestEffortFIFO" and info.shape in self.marked
        if (parked is not None and not _is_relevant(parked, info)) or (
            key not in self.active and (is_hopeless or _is_backed_off(info, now))
        ):
            self.inadmissible[key] = info
        else:
            self.inadmissible.pop(key, None)
            self.active[key] = info

    def push_if_absent(self, info: Info) -> None:
        """Add a workload of a LocalQueue that has appeared (rules/05 §2.1)."""
        if info.key not in self.waiting() and self.inflight != info.key:
            self.active[info.key] = info

    def pop(self) -> Info | None:
        """Remove and return the head, which is inflight from now on (rules/05 §2.2)."""
        self.n_pops += 1
        self.inflight = None
        return self.pop_more()

    def pop_more(self) -> Info | None:
        """Do so once more in the same cycle, for which a flush stays recent (rules/05 §6.3)."""
        head = min(self.active.values(), key=self.order, default=None)
        if head is not None:
            del self.active[head.key]
            self.inflight = head.key
            head.last_generation = head.workload["metadata"]["generation"]
        return head

    def delete(self, key: str) -> None:
        """Forget a workload (rules/05 §5)."""
        self.active.pop(key, None)
        self.inadmissible.pop(key, None)
        if self.inflight == key:
            self.inflight = None
        if self._is_preemptor(key):
            self.preemptor = None

    def _is_preemptor(self, key: str) -> bool:
        return self.preemptor is not None and self.preemptor.key == key

    def requeue(self, info: Info, reason: RequeueReason, quota_reserved_reason: str, now: int) -> None:
        """Put a head back, or park it with all workloads of its shape (rules/05 §3, §4)."""
        key, best_effort = info.key, self.strategy == "BestEffortFIFO"
        if reason in _PREEMPTS and (best_effort or self.settings.has("StrictQueuesNotePreemptors")):
            self.preemptor = Preemptor(key, info.last_generation, best_effort)
        elif self._is_preemptor(key) and self.settings.has("OtherResultsEndStickiness"):
            # rules/05 §5: until 0.20.0, only what left the queue lost its place in front.
            self.preemptor = None
        if self.inflight == key:
            self.inflight = None
        if self.strategy == "StrictFIFO":
            immediate = reason != RequeueReason.NAMESPACE_MISMATCH
        else:
            immediate = reason in (*_PREEMPTS, RequeueReason.FAILED_AFTER_NOMINATION)
        is_hopeless = reason in (RequeueReason.NO_FIT, RequeueReason.NO_CANDIDATES)
        if not self.settings.has("ShapesFailByFit"):
            is_hopeless = not immediate
        immediate |= self.flushed_at >= self.n_pops
        immediate |= info.progress is not None and info.progress.has_pending_flavors
        if key in self.active:
            return
        if immediate and not _is_backed_off(info, now):
            self.active[key] = self.inadmissible.pop(key, info)
        elif key not in self.inadmissible:
            self.inadmissible[key] = info
            if is_hopeless and best_effort and info.shape is not None:
                self._mark(info.shape, quota_reserved_reason or "PendingEvaluation")

    def _mark(self, shape: str, reason: str) -> None:
        """Park all workloads of a shape that has just failed (rules/05 §4)."""
        self.marked[shape] = reason
        for key in [key for key, info in self.active.items() if info.shape == shape]:
            self.inadmissible[key] = self.active.pop(key)

    def flush(self, namespaces: Mapping[str, Json], now: int) -> None:
        """Requeue all parked workloads (rules/05 §3.1)."""
        self.flushed_at, self.marked = self.n_pops, {}
        for key, info in list(self.inadmissible.items()):
            namespace = namespaces.get(info.workload["metadata"]["namespace"])
            if namespace is None or _is_backed_off(info, now):
                continue
            if matches_labels(self.namespace_selector, namespace["metadata"]["labels"]):
                self.active[key] = self.inadmissible.pop(key)


def _is_backed_off(info: Info, now: int) -> bool:
    """Return whether it waits for a time or for a change of its own (rules/05 §2.1 3)."""
    requeue_at = (info.workload["status"].get("requeueState") or {}).get("requeueAt")
    is_early = requeue_at is not None and now < times.moment(requeue_at)
    return is_early or conditions.said(info.workload, "Requeued")[0] == "False"


def _is_relevant(old: Info, new: Info) -> bool:
    """Return whether a change could let a parked workload in (rules/05 §2.1 2)."""
    if old.last_generation not in (0, new.workload["metadata"]["generation"]):
        return True
    was, now = (
        (
            info.workload["spec"],
            info.workload["status"].get("reclaimablePods") or [],
            info.boost,
            [total.requests for total in info.totals],
            has_closed_gate(info.workload),
            [conditions.find(info.workload, kind) for kind in ("Evicted", "Requeued")],
        )
        for info in (old, new)
    )
    return was != now


def has_closed_gate(workload: Json) -> bool:
    """Return whether a gate keeps it from preempting. A gate without a state is closed (rules/05 §6.4 5)."""
    states = workload["status"].get("preemptionGates") or ()
    is_open = {state["name"]: state.get("position") == "Open" for state in states}
    return any(not is_open.get(gate["name"]) for gate in workload["spec"].get("preemptionGates") or ())
