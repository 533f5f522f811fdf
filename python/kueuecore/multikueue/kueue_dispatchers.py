"""Kueue's own dispatchers (rules/06 §5)."""

from __future__ import annotations

from dataclasses import dataclass

from kueuecore.multikueue.dispatcher_protocol import Dispatch, Dispatcher, Nomination
from kueuecore.multikueue.settings import ALL_AT_ONCE, INCREMENTAL, MultiKueueSettings

__all__ = ["AllAtOnce", "External", "Incremental", "dispatcher_of", "is_kueues"]


@dataclass(frozen=True, slots=True)
class AllAtOnce:
    """Nominates all connected clusters, sorted by name (rules/06 §5)."""

    waits_for_checks: bool = True

    def nominate(self, dispatch: Dispatch) -> Nomination:
        """Nominate all clusters that are connected."""
        return Nomination(tuple(sorted(cluster.name for cluster in dispatch.clusters if cluster.is_connected)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Incremental:
    """Nominates a few more clusters each round (rules/06 §5.1).

    Args:
        step_size: How many clusters a round adds.
        round_ns: How long a round lasts.
        respects_config_order: Whether to follow the order of the MultiKueueConfig instead of sorting by name.
        waits_for_checks: Whether rounds begin only once other checks are Ready; Kueue's does not wait.
    """

    step_size: int = 3
    round_ns: int = 300_000_000_000
    respects_config_order: bool = True
    waits_for_checks: bool = False

    def nominate(self, dispatch: Dispatch) -> Nomination:
        """Keep what is nominated, and add the next clusters if the round is over, connected or not."""
        nominated, begun = dispatch.nominated, dispatch.nominated_at
        if begun is not None and dispatch.now - begun < self.round_ns:
            return Nomination(nominated, begun + self.round_ns)
        left = [cluster.name for cluster in dispatch.clusters if cluster.name not in nominated]
        if not left:
            return Nomination(nominated, problem="no more workers to nominate")
        if not self.respects_config_order:
            left.sort()
        return Nomination((*nominated, *left[: self.step_size]))


@dataclass(frozen=True, slots=True)
class External:
    """Leaves the nomination to an external controller, which writes it into the Workload (rules/06 §5.2)."""

    waits_for_checks: bool = True

    def nominate(self, dispatch: Dispatch) -> Nomination:
        """Return the nomination that the Workload already has."""
        return Nomination(dispatch.nominated)


def dispatcher_of(settings: MultiKueueSettings) -> Dispatcher:
    """Return the dispatcher that `dispatcherName` names; any name that Kueue does not know means an external one."""
    match settings.dispatcher_name:
        case name if name == ALL_AT_ONCE:
            return AllAtOnce()
        case name if name == INCREMENTAL:
            return Incremental(
                step_size=settings.step_size,
                round_ns=settings.round_ns,
                respects_config_order=settings.respects_config_order,
            )
        case _:
            return External()


def is_kueues(dispatcher: Dispatcher) -> bool:
    """Return whether it is one of Kueue's own; with these, nothing is written that Kueue would not write."""
    return isinstance(dispatcher, AllAtOnce | Incremental | External)
