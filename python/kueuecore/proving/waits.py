"""What experiments make workloads wait for while moves are replayed, as it follows from what is seen (rules/13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.decisions import Preemption
from kueuecore.experiments import Experiments
from kueuecore.states import Stage, WorkloadState
from kueuecore.times import SECOND_NS, nanoseconds

__all__ = ["Waits"]

_RECLAIMS = ("InCohortReclamation", "InCohortReclaimWhileBorrowing")


class Waits:
    """The waits of experiments.

    They are computed from what a scheduler shows rather than asked for, so that it does not vouch for itself.

    Args:
        experiments: The experiments that are on.
    """

    def __init__(self, experiments: Experiments) -> None:
        seconds = (experiments.min_run_seconds_before_cross_queue_preemption, experiments.time_share_seconds)
        self._turns = [it * SECOND_NS for it in seconds if it is not None]
        backoff = experiments.reclaim_backoff_seconds
        self._backoff = None if backoff is None else backoff * SECOND_NS
        # Until when a ClusterQueue does not borrow a resource of a flavor.
        self._backoffs: dict[tuple[str, str, str], int] = {}
        # What each workload uses, as far as it was looked at.
        self._used: dict[str, list[tuple[str, str]]] = {}
        self._takes_turns = experiments.time_share_seconds is not None
        self.are_on = bool(experiments)

    def look(self, states: Iterable[WorkloadState]) -> None:
        """Note what workloads use before a cycle, as a victim shows it no longer."""
        if self._backoff is not None:
            self._used = {state.key: list(_used(state.status)) for state in states}

    def note(self, preemptions: Iterable[Preemption], now: int) -> None:
        """Note what is not borrowed for a while after a cycle (rules/13 §3)."""
        for it in preemptions if self._backoff is not None else ():
            if it.reason in _RECLAIMS:
                for flavor, resource in self._used.get(it.key, ()):
                    self._backoffs[it.cluster_queue, flavor, resource] = now + (self._backoff or 0)

    def next(self, states: Iterable[WorkloadState], now: int) -> int | None:
        """Return when the next wait ends, after `now`; None if nobody waits."""
        ends = [since + length for state in states for since in self._since(state) for length in self._turns]
        return min((at for at in (*ends, *self._backoffs.values()) if at > now), default=None)

    def in_queue_since(self, state: WorkloadState, created: int) -> int:
        """Return since when a workload has its place in the queue: an equal whose turn is over goes to its end."""
        if not self._takes_turns or state.stage is not Stage.PENDING:
            return created
        # rules/13 §4: until it has quota again.
        preempted = _true(state).get("Preempted", {})
        if text_at(preempted, "reason") != "InClusterQueue":
            return created
        return nanoseconds(text_at(preempted, "lastTransitionTime"))

    def turn_left(self, state: WorkloadState, now: int) -> list[JsonValue]:
        """Return for how long a workload that runs has still to run, for each experiment that asks."""
        return [max(since + length - now, 0) for since in self._since(state) for length in self._turns]

    def backoffs_left(self, now: int) -> list[str]:
        """Return which ClusterQueues must not borrow what again yet, and for how long."""
        left = ((what, until - now) for what, until in sorted(self._backoffs.items()) if until > now)
        return [f"{'/'.join(what)} {time}" for what, time in left]

    def _since(self, state: WorkloadState) -> Iterator[int]:
        """Since when a workload runs (rules/13 §1)."""
        if self._turns and state.stage is Stage.ADMITTED:
            true = _true(state)
            if "Admitted" in true and "Evicted" not in true:
                yield nanoseconds(text_at(true["Admitted"], "lastTransitionTime"))


def _true(state: WorkloadState) -> dict[str, JsonObject]:
    """The conditions that are True, by type."""
    conditions = map(object_at, list_at(dict(state.status), "conditions"))
    return {text_at(it, "type"): it for it in conditions if text_at(it, "status") == "True"}


def _used(status: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    for it in list_at(object_at(dict(status), "admission"), "podSetAssignments"):
        for resource, flavor in object_at(it, "flavors").items():
            yield str(flavor), resource
