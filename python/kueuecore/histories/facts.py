"""What a source knows about a step, before it is put into words."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Self

from kueuecore.histories.timeline import What

__all__ = ["Facts", "Found"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The parts of a step's sentence, each empty if it is unknown.

    Args:
        queue: The ClusterQueue whose quota it is about.
        flavors: The flavors, such as `main: cpu on spot`.
        waited: How long the step before took, in seconds.
        by: The other workload: the preemptor, the victim, the slice that takes over.
        by_uid: Its UID.
        by_job_uid: The UID of its job.
        by_owner: Its job, as `Kind namespace/name`, if the Workload itself is gone.
        by_queue: Its ClusterQueue.
        by_priority: Its priority.
        priority: The workload's own priority.
        why: The reason of a preemption, such as `InClusterQueue`.
        cause: The cause behind a reason, such as `WaitForStart`.
        check: The name of an admission check.
        state: Its state; or the status of a condition.
        until: When it may be tried again.
        attempt: How often it was put back with a delay.
        owner: The job, as `Kind namespace/name`.
        local_queue: Its LocalQueue.
        place: The cluster of a fleet on which it happened.
    """

    queue: str = ""
    flavors: str = ""
    waited: str = ""
    by: str = ""
    by_uid: str = ""
    by_job_uid: str = ""
    by_owner: str = ""
    by_queue: str = ""
    by_priority: str = ""
    priority: str = ""
    why: str = ""
    cause: str = ""
    check: str = ""
    state: str = ""
    until: str = ""
    attempt: str = ""
    owner: str = ""
    local_queue: str = ""
    place: str = ""

    def filled(self, other: Self) -> Self:
        """Return these facts, with those of another source where one is unknown."""
        known = {name: value for name in _NAMES if not getattr(self, name) and (value := getattr(other, name))}
        return replace(self, **known) if known else self


_NAMES = tuple(field.name for field in fields(Facts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A step as one source has it. The arguments are those of `Step`, with facts in place of its sentence.

    Args:
        orders: Its place among the steps of a source that knows their order: the source, and a number.
    """

    at: int | None
    before: int | None = None
    what: What
    facts: Facts = field(default_factory=Facts)
    reason: str = ""
    message: str = ""
    count: int = 1
    until: int | None = None
    sources: tuple[str, ...] = ()
    orders: tuple[tuple[str, int], ...] = ()

    @property
    def time(self) -> int:
        """The time by which it is sorted."""
        return self.at if self.at is not None else self.before or 0

    def joined(self, other: Self) -> Self:
        """Return what two sources say of the same step; this one has the better time."""
        return replace(
            self,
            facts=self.facts.filled(other.facts),
            reason=self.reason or other.reason,
            message=max(self.message, other.message, key=len),
            count=max(self.count, other.count),
            until=self.until if self.until is not None else other.until,
            sources=(*self.sources, *(source for source in other.sources if source not in self.sources)),
            orders=tuple({**dict(other.orders), **dict(self.orders)}.items()),
        )
