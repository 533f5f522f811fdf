"""Changes to the objects of a cluster in the course of a scenario."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from kueuecore._json import JsonObject
from kueuecore.manifests import Manifest
from kueuecore.scenarios.distributions import Span, Spans

__all__ = [
    "MOST_TIMES",
    "Action",
    "ApplyObjects",
    "DeleteObject",
    "PatchObject",
    "ScaleQuota",
    "Target",
    "TimedChange",
    "change_times",
]

MOST_TIMES = 10_000
"""No change happens more often."""
_AT_ONCE = Span()
_NOWHERE = Manifest({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The object that changes.

    Args:
        kind: Its kind.
        name: Its name.
        namespace: Its namespace; empty if it has none.
    """

    kind: str
    name: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class ApplyObjects:
    """Objects appear, or come in place of those that are there.

    Args:
        objects: What they are from then on.
    """

    objects: tuple[Manifest, ...]


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """An object goes; of a job, its Workload too.

    Args:
        target: The object.
    """

    target: Target


@dataclass(frozen=True, slots=True)
class PatchObject:
    """An object changes as a JSON merge patch says; of a job, its Workload follows.

    Args:
        target: The object.
        patch: The merge patch: mappings go into one another, null removes, lists are replaced.
    """

    target: Target
    patch: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleQuota:
    """The quota of one resource of one flavor changes.

    Args:
        target: The ClusterQueue or the Cohort.
        flavor: The ResourceFlavor.
        resource: The resource.
        amounts: `nominalQuota`, `borrowingLimit`, `lendingLimit`: those that change. None: no limit.
    """

    target: Target
    flavor: str
    resource: str
    amounts: JsonObject


Action: TypeAlias = ApplyObjects | DeleteObject | PatchObject | ScaleQuota
"""What is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedChange:
    """Something is done, once or again and again.

    Args:
        at: When, in seconds from the beginning.
        action: What.
        every: How long after it is done is it done again.
        times: How often; None: until the scenario ends.
        document: The scenario in which it stands, for lines in errors.
    """

    at: float
    action: Action
    every: Spans = _AT_ONCE
    times: int | None = 1
    document: Manifest = _NOWHERE


def change_times(change: TimedChange, index: int, *, seed: int, until: float | None) -> Iterator[float]:
    """When it is done, in seconds from the beginning, no more than `MOST_TIMES` times.

    Args:
        change: The change.
        index: Its place in the timetable.
        seed: Where everything comes from that is drawn.
        until: The end of the scenario, in seconds from its beginning, if it has one.

    Example:
        >>> nightly = TimedChange(at=8, action=ApplyObjects(()), every=Span(24), times=None)
        >>> list(change_times(nightly, 0, seed=1, until=60))
        [8, 32, 56]
    """
    time, every = change.at, change.every.draws(Random(f"{seed}/timetable/{index}"))
    for _ in range(MOST_TIMES if change.times is None else change.times):
        if until is not None and time > until:
            return
        yield time
        time = round(time + next(every), 3)
