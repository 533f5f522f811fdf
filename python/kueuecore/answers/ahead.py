"""Who is ahead of a workload in its ClusterQueue, and by which rule."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kueuecore.times import format_time

__all__ = ["Ahead", "LocalQueueUsage", "Precedence"]


class Precedence(StrEnum):
    """The rule by which a workload is ahead of another one (rules/05 §2, rules/09 §1.5)."""

    USAGE = "Usage"
    """Its LocalQueue has used less (admission fair sharing)."""
    STICKY = "Sticky"
    """It waits for the workloads that it preempts, and stays in front until they are gone."""
    PRIORITY = "Priority"
    """Its priority is higher."""
    TIME = "Time"
    """It has waited longer."""
    UID = "Uid"
    """Its UID comes first, or its name if neither has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQueueUsage:
    """What a LocalQueue has used, by admission fair sharing (rules/09 §1.2).

    Args:
        namespace: Its namespace.
        name: Its name.
        usage: Its usage divided by its weight; None is infinite, for weight 0.
    """

    namespace: str
    name: str
    usage: float | None

    def __str__(self) -> str:
        usage = "infinite (weight 0)" if self.usage is None else f"{self.usage:.6g}"
        return f"LocalQueue {self.namespace}/{self.name} is {usage}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """A workload ahead of another one.

    Args:
        namespace: Its namespace.
        name: Its name.
        place: `active` or `inadmissible`.
        why: The first rule that puts it ahead.
        priority: Its effective priority, if that is why.
        since: Since when it waits, in nanoseconds since 1970, if that is why.
        usages: What its LocalQueue and that of the other workload have used, if that is why.
    """

    namespace: str
    name: str
    place: str
    why: Precedence
    priority: int | None = None
    since: int | None = None
    usages: tuple[LocalQueueUsage, ...] = ()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def sentence(self) -> str:
        """Why it is ahead, without a full stop."""
        match self.why:
            case Precedence.USAGE:
                return f"its LocalQueue has used less: the usage of {', of '.join(map(str, self.usages))}"
            case Precedence.STICKY:
                return "it has workloads preempted, and stays first until it has their quota"
            case Precedence.PRIORITY:
                return f"its priority, {self.priority}, is higher"
            case Precedence.TIME:
                return f"it has waited longer, since {format_time(self.since or 0)}"
            case Precedence.UID:
                return "it has waited as long, and its UID comes first"
