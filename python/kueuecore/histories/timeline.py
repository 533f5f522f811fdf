"""The steps in the life of one workload, in order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kueuecore._keyed import Keyed

__all__ = ["Step", "Timeline", "What"]


class What(StrEnum):
    """The kinds of steps."""

    CREATED = "Created"
    """The Workload was created, and is queued from then on."""
    WAITING = "Waiting"
    """It waits for quota, and Kueue says why."""
    QUOTA_RESERVED = "QuotaReserved"
    """It holds quota of its ClusterQueue from then on."""
    CHECK = "AdmissionCheck"
    """An admission check changed its state."""
    ADMITTED = "Admitted"
    """Its job may start."""
    STARTED = "JobStarted"
    """Its job was started."""
    SCHEDULED = "PodsScheduled"
    """All pods have nodes, or one has none."""
    READY = "PodsReady"
    """All pods are ready."""
    NOT_READY = "PodsNotReady"
    """Not all pods are ready."""
    PREEMPTS = "PreemptsOther"
    """Another workload gave way to it."""
    REPLACED = "NodesReplaced"
    """Its pods got other nodes while it ran."""
    PREEMPTED = "Preempted"
    """It had to give way to another workload."""
    EVICTED = "Evicted"
    """It lost its admission for another reason."""
    STOPPED = "JobStopped"
    """Its job was stopped."""
    RELEASED = "QuotaReleased"
    """The quota that it held is free again."""
    HELD_BACK = "HeldBack"
    """It is not queued until something happens, or until a time."""
    REQUEUED = "Requeued"
    """It is queued again."""
    DEACTIVATED = "Deactivated"
    """It is switched off: `spec.active` is false, or is about to be."""
    FINISHED = "Finished"
    """Its job has ended."""
    DELETED = "Deleted"
    """It is gone."""
    OTHER = "Other"
    """Anything else that was recorded about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step in the life of a workload.

    Args:
        at: When, in nanoseconds since 1970; `None`: the time is no longer recorded.
        before: A time before which it happened, if `at` is unknown.
        what: What happened.
        by: The workload that caused it, as `namespace/name`; empty if none did, or if it cannot be found any more.
        cluster: The worker of a fleet on which it happened to the copy there; empty for the Workload itself.
        rule: The section of docs/rules, such as `04 §4.1`; empty if no rule is behind it.
        sentence: What happened, without a full stop.
        reason: Kueue's reason, if there is one.
        message: Kueue's message, if there is one.
        count: How often it happened, if several of its kind were recorded as one.
        until: When the last of these was, in nanoseconds since 1970; `at` is the first.
        sources: Where it is recorded, such as `condition Preempted`, `event Preempted` or `cycle 3`.
    """

    at: int | None
    before: int | None = None
    what: What
    by: str = ""
    cluster: str = ""
    rule: str = ""
    sentence: str
    reason: str = ""
    message: str = ""
    count: int = 1
    until: int | None = None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline(Keyed):
    """What has happened to a workload.

    Args:
        namespace: Its namespace.
        name: Its name.
        stage: Where it is now: `Pending`, `QuotaReserved`, `Admitted`, `Finished`, or `Deleted`; empty if unknown.
        steps: The steps, in order of time.
        missing: What was not recorded, or is no longer, in sentences.
    """

    namespace: str
    name: str
    stage: str
    steps: tuple[Step, ...]
    missing: tuple[str, ...] = ()

    def count(self, *kinds: What) -> int:
        """Return how many of the Workload's own steps are of these kinds, each as often as it happened."""
        return sum(step.count for step in self.steps if step.what in kinds and not step.cluster)
