"""Changes to a cluster's objects during a scenario."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from kueuecore._json import JsonObject
from kueuecore.manifests import Manifest
from kueuecore.scenarios.distributions import Span, Spans

__all__ = [
    "MAX_TIMES",
    "Action",
    "ApplyObjects",
    "DeleteObject",
    "PatchObject",
    "ScaleQuota",
    "Target",
    "TimedChange",
    "change_times",
]

MAX_TIMES = 10_000
"""The most times that changes can happen, all of a timetable together."""
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
    """Create or replace objects.

    Args:
        objects: The objects.
    """

    objects: tuple[Manifest, ...]


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Delete an object; for a job, its Workload too.

    Args:
        target: The object.
    """

    target: Target


@dataclass(frozen=True, slots=True)
class PatchObject:
    """Apply a JSON merge patch to an object; for a job, its Workload follows.

    Args:
        target: The object.
        patch: The merge patch: mappings are merged, null removes a field, lists are replaced.
    """

    target: Target
    patch: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleQuota:
    """Change the quota of one resource in one flavor.

    Args:
        target: The ClusterQueue or the Cohort.
        flavor: The ResourceFlavor.
        resource: The resource.
        amounts: The new values of `nominalQuota`, `borrowingLimit` and `lendingLimit`. None: no limit.
    """

    target: Target
    flavor: str
    resource: str
    amounts: JsonObject


Action: TypeAlias = ApplyObjects | DeleteObject | PatchObject | ScaleQuota
"""What a change does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedChange:
    """A change at a given time, once or repeatedly.

    Args:
        at: When, in seconds from the start.
        action: What to do.
        every: The time until it is repeated.
        times: How often; None: until the scenario ends.
        document: The document in which it is written, for lines in errors.
        path: Its field there.
    """

    at: float
    action: Action
    every: Spans = _AT_ONCE
    times: int | None = 1
    document: Manifest = _NOWHERE
    path: str = ""


def change_times(change: TimedChange, index: int, *, seed: int, until: float | None) -> Iterator[float]:
    """Yield when a change happens, in seconds from the start, at most `MAX_TIMES` times.

    Args:
        change: The change.
        index: Its index in the timetable.
        seed: The seed of all random draws.
        until: The end of the scenario, in seconds from its start, if it has one.

    Example:
        >>> nightly = TimedChange(at=8, action=ApplyObjects(()), every=Span(24), times=None)
        >>> list(change_times(nightly, 0, seed=1, until=60))
        [8, 32, 56]
    """
    time, every = change.at, change.every.draws(Random(f"{seed}/timetable/{index}"))
    for _ in range(MAX_TIMES if change.times is None else change.times):
        if until is not None and time > until:
            return
        yield time
        time = round(time + next(every), 3)
