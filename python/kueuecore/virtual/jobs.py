"""The jobs behind the workloads in virtual time: how long they run, and when their pods are ready."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

__all__ = ["Job", "JobPlan", "Jobs", "TimerKind"]


class TimerKind(IntEnum):
    """What a timer is for; of the same instant the first goes first."""

    STOPPED = 0
    """The job of an evicted workload has stopped."""
    FINISHED = 1
    """It has run its time."""
    PODS_READY = 2
    """All pods are ready."""
    POD_FAILED = 3
    """A pod fails."""


@dataclass(frozen=True, slots=True)
class JobPlan:
    """What a job does once it may start, in nanoseconds.

    Args:
        run_ns: How long it runs; `None`: for ever.
        ready_ns: When its pods are ready after its n-th admission, the last entry for all later ones; `None`: at once.
        fails_ns: So long after they are first ready in an admission, one fails; `None`: never.
        recovers_ns: So long after the failure all are ready again; `None`: never.
    """

    run_ns: int | None = None
    ready_ns: Sequence[int | None] | None = None
    fails_ns: int | None = None
    recovers_ns: int | None = None


@dataclass(slots=True, eq=False)
class Job:
    """A job as it stands.

    Args:
        key: `namespace/name` of its workload.
        plan: What it does.
        is_running: May it run?
        n_admissions: How often its workload was admitted.
        are_pods_ready: Are its pods ready?
        was_ready: Were they ever, since the last admission?
        timers: The timers that are set.
    """

    key: str
    plan: JobPlan = JobPlan()
    is_running: bool = False
    n_admissions: int = 0
    are_pods_ready: bool = False
    was_ready: bool = False
    timers: dict[TimerKind, int] = field(default_factory=dict)


class Jobs:
    """All jobs and their timers."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        # Timers that are void stay in the heap until their time.
        self._heap: list[tuple[int, TimerKind, str, int, Job]] = []
        self._n_set = 0

    def add(self, key: str, plan: JobPlan) -> None:
        """A workload with a job appears."""
        self._jobs[key] = Job(key, plan)

    def get(self, key: str) -> Job:
        """The job of a workload; one that runs for ever if nobody said anything else."""
        return self._jobs.setdefault(key, Job(key))

    def remove(self, key: str) -> None:
        """A workload has gone. Its job, if it is stopping, stops at its time all the same."""
        job = self._jobs.pop(key, None)
        if job is not None:
            for kind in (TimerKind.FINISHED, TimerKind.PODS_READY, TimerKind.POD_FAILED):
                job.timers.pop(kind, None)

    def set(self, job: Job, kind: TimerKind, at: int | None) -> None:
        """Sets the timer of one kind; `None` makes it void."""
        if job.timers.get(kind) == at:
            return
        if at is None:
            del job.timers[kind]
            return
        job.timers[kind] = at
        self._n_set += 1
        heapq.heappush(self._heap, (at, kind, job.key, self._n_set, job))

    def next_time(self) -> int | None:
        """When the next timer is due."""
        while self._heap:
            time, kind, _, _, job = self._heap[0]
            if job.timers.get(kind) == time:
                return time
            heapq.heappop(self._heap)
        return None

    def take_due(self, time: int) -> tuple[TimerKind, Job, bool] | None:
        """Takes out the next timer of exactly this time, if there is one; and is there still the workload?"""
        if self.next_time() != time:
            return None
        _, kind, key, _, job = heapq.heappop(self._heap)
        del job.timers[kind]
        return kind, job, self._jobs.get(key) is job
