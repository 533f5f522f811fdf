"""Experiments: rules that people ask Kueue for and that it does not have (rules/13). All are off by default."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore.reference.objects import FlavorResource
from kueuecore.reference.settings import Settings
from kueuecore.reference.totals import Info

RECLAIMS = ("InCohortReclamation", "InCohortReclaimWhileBorrowing")


def ends(info: Info, settings: Settings) -> Iterator[int]:
    """Yield when a workload will have run for the time of an experiment, if it runs (rules/13 §1)."""
    for length in (settings.min_run, settings.time_share):
        if length is not None and info.running_since is not None:
            yield info.running_since + length


def has_just_started(info: Info, settings: Settings, now: int) -> bool:
    """Return whether other ClusterQueues may not preempt it yet (rules/13 §2)."""
    if settings.min_run is None or info.running_since is None:
        return False
    return now < info.running_since + settings.min_run


def turn_is_over(preemptor: Info, candidate: Info, policy: str, settings: Settings, now: int) -> bool | None:
    """Return whether an equal of the same ClusterQueue gives way; None: Kueue's rule decides (rules/13 §4)."""
    is_equal = policy == "LowerOrNewerEqualPriority" and preemptor.priority == candidate.priority
    if settings.time_share is None or not is_equal:
        return None
    if candidate.is_evicted:
        return True
    return None if candidate.running_since is None else now >= candidate.running_since + settings.time_share


def by_turn(preemptor: Info, candidate: Info) -> tuple[bool, int, int]:
    """Return the sort key of a candidate: of W's priority, who has run for longest goes first (rules/13 §4)."""
    is_equal = candidate.priority == preemptor.priority
    return not candidate.is_evicted, candidate.priority, (candidate.reserved_at or 0) if is_equal else 0


def borrowing_waits(fr: FlavorResource) -> str:
    """Return why something is not borrowed (rules/13 §3)."""
    flavor, resource = fr
    return (
        f"{resource} in flavor {flavor} was reclaimed and is not borrowed again yet "
        "(experiment reclaimBackoffSeconds, not in Kueue)"
    )
