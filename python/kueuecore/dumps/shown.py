"""Decisions that a dump shows, and whether a smaller one shows them, too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kueuecore.dumps.decided import Decided
from kueuecore.errors import ManifestError
from kueuecore.states import Stage, WorkloadState
from kueuecore.steady_state import Ending

__all__ = ["Admits", "KeepsPending", "Preempts", "Showing", "Unsettled"]

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[munkMGTPE]i?)?\b")


class Showing(Protocol):
    """A decision that is to be shown."""

    def as_in(self, decided: Decided) -> Showing:
        """The same with what it came to there: a smaller dump is to come to that, and not to something alike.

        Raises:
            ManifestError: It is not shown there.
        """
        ...

    def is_in(self, decided: Decided) -> bool:
        """Is it shown?"""
        ...

    def about(self, decided: Decided) -> tuple[str, ...]:
        """The workloads that it is about, as `namespace/name`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepsPending:
    """A workload waits.

    Args:
        name: `namespace/name` of the Workload, or of its job.
        message: What Kueue's message has in it, in whatever case; empty: the whole message is to stay, but for numbers.
        whole: Message and reason in the dump, without numbers; empty: none was looked at.
    """

    name: str
    message: str = ""
    whole: tuple[str, str] = ("", "")

    def as_in(self, decided: Decided) -> KeepsPending:
        """The same with the message that it has there."""
        found = [it for it in _states(decided, self.name) if self._is_meant(it)]
        if not found:
            wanted = f' with "{self.message}" in its message' if self.message else ""
            _refuse(decided, self.name, f"is not pending{wanted}")
        whole = ("", "") if self.message else _without_numbers(found[0])
        return KeepsPending(name=self.name, message=self.message, whole=whole)

    def is_in(self, decided: Decided) -> bool:
        """Is it shown?"""
        found = (it for it in _states(decided, self.name) if self._is_meant(it))
        return any(bool(self.message) or self.whole in (("", ""), _without_numbers(it)) for it in found)

    def about(self, decided: Decided) -> tuple[str, ...]:
        """The workload that it is about."""
        return decided.keys(self.name)

    def _is_meant(self, state: WorkloadState) -> bool:
        return state.stage is Stage.PENDING and self.message.casefold() in state.message.casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class Admits:
    """A workload is admitted.

    Args:
        name: `namespace/name` of the Workload, or of its job.
        cluster_queue: The ClusterQueue whose quota it has in the dump; None: any.
        flavors: By pod set and resource, the flavors that it has there; None: any.
    """

    name: str
    cluster_queue: str | None = None
    flavors: tuple[tuple[str, str, str], ...] | None = None

    def as_in(self, decided: Decided) -> Admits:
        """The same with the ClusterQueue and the flavors that it has there."""
        found = [it for it in _states(decided, self.name) if it.stage is Stage.ADMITTED]
        if not found:
            _refuse(decided, self.name, "is not admitted")
        return Admits(name=self.name, cluster_queue=found[0].cluster_queue, flavors=_flavors(found[0]))

    def is_in(self, decided: Decided) -> bool:
        """Is it shown? Pod sets and resources may be fewer."""
        for state in _states(decided, self.name):
            is_home = self.cluster_queue in (None, state.cluster_queue)
            flavors, wanted = _flavors(state), self.flavors
            is_same = wanted is None or (set(flavors) <= set(wanted) and bool(flavors) == bool(wanted))
            if state.stage is Stage.ADMITTED and is_home and is_same:
                return True
        return False

    def about(self, decided: Decided) -> tuple[str, ...]:
        """The workload that it is about."""
        return decided.keys(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempts:
    """A workload preempts another.

    Args:
        preemptor: Who needs the room: `namespace/name` of the Workload, or of its job.
        victim: Who gives way.
        reasons: Kueue's reasons in the dump; empty: any.
    """

    preemptor: str
    victim: str
    reasons: tuple[str, ...] = ()

    def as_in(self, decided: Decided) -> Preempts:
        """The same for the reasons that it has there."""
        reasons = self._reasons(decided)
        if not reasons:
            for name in (self.preemptor, self.victim):
                _states(decided, name, must_be=True)
            by = [f"{it.preemptor} preempts {it.key}" for it in decided.preemptions]
            remedy = f"name two of whom one does: {', '.join(by[:5])}" if by else "nobody preempts anybody here"
            raise ManifestError.of(f"{self.preemptor} does not preempt {self.victim}", remedy=remedy)
        return Preempts(preemptor=self.preemptor, victim=self.victim, reasons=reasons)

    def is_in(self, decided: Decided) -> bool:
        """Is it shown?"""
        found = self._reasons(decided)
        return any(not self.reasons or it in self.reasons for it in found)

    def about(self, decided: Decided) -> tuple[str, ...]:
        """Both workloads."""
        return (*decided.keys(self.preemptor), *decided.keys(self.victim))

    def _reasons(self, decided: Decided) -> tuple[str, ...]:
        preemptors, victims = decided.keys(self.preemptor), decided.keys(self.victim)
        of_them = (it for it in decided.preemptions if it.preemptor in preemptors and it.key in victims)
        return tuple(sorted({it.reason for it in of_them}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """It never settles: workloads evict each other in a circle."""

    def as_in(self, decided: Decided) -> Unsettled:
        """The same."""
        if not self.is_in(decided):
            raise ManifestError.of("it settles", remedy="show something else, such as --pending NAMESPACE/NAME")
        return self

    def is_in(self, decided: Decided) -> bool:
        """Is it shown?"""
        return decided.settled.ending is Ending.REPEATING

    def about(self, decided: Decided) -> tuple[str, ...]:
        """The workloads of the circle."""
        return () if decided.settled.loop is None else decided.settled.loop.keys


def _states(decided: Decided, name: str, *, must_be: bool = False) -> Sequence[WorkloadState]:
    found = [decided.workloads[key] for key in decided.keys(name) if key in decided.workloads]
    if must_be and not found:
        there = ", ".join(list(decided.workloads)[:5])
        remedy = f"write one of {there}" if there else "there are no workloads"
        raise ManifestError.of(f'there is no Workload and no job "{name}"', remedy=remedy)
    return found


def _refuse(decided: Decided, name: str, what: str) -> None:
    """What was to be shown is not.

    Raises:
        ManifestError: Always.
    """
    state = _states(decided, name, must_be=True)[0]
    message = f": {state.message}" if state.message else ""
    raise ManifestError.of(f"{name} {what}", remedy=f"show what it is: {state.stage}{message}")


def _flavors(state: WorkloadState) -> tuple[tuple[str, str, str], ...]:
    return tuple((name, *it) for name, flavors in state.flavors.items() for it in sorted(flavors.items()))


def _without_numbers(state: WorkloadState) -> tuple[str, str]:
    return state.reason, _NUMBER.sub("N", state.message)
