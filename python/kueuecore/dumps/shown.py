"""Decisions that a shrunk dump must still show."""

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

_NUMBER = re.compile(r"(?<!\d)\d+(?:\.\d+)?(?:[munkMGTPE]i?)?\b")


class Showing(Protocol):
    """A decision that a dump must show."""

    def as_in(self, decided: Decided) -> Showing:
        """Fill in the details of the decision from a dump, so that a smaller one must show exactly that decision.

        Raises:
            ManifestError: The dump does not show it.
        """
        ...

    def is_in(self, decided: Decided) -> bool:
        """Whether the decision is shown."""
        ...

    def about(self, decided: Decided) -> tuple[str, ...]:
        """The workloads involved, as `namespace/name`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepsPending:
    """A workload is pending.

    Args:
        name: `namespace/name` of the Workload, or of its job.
        message: A text that Kueue's message must contain, ignoring case; empty to keep the message except for numbers.
        whole: Reason and message in the dump, without numbers; empty if not known yet.
    """

    name: str
    message: str = ""
    whole: tuple[str, str] = ("", "")

    def as_in(self, decided: Decided) -> KeepsPending:
        """Fill in the reason and message from a dump."""
        found = [state for state in _states(decided, self.name) if self._is_meant(state)]
        if not found:
            wanted = f' with "{self.message}" in its message' if self.message else ""
            _refuse(decided, self.name, f"is not pending{wanted}")
        whole = ("", "") if self.message else _without_numbers(found[0])
        return KeepsPending(name=self.name, message=self.message, whole=whole)

    def is_in(self, decided: Decided) -> bool:
        """Whether the decision is shown."""
        found = (state for state in _states(decided, self.name) if self._is_meant(state))
        return any(bool(self.message) or self.whole in (("", ""), _without_numbers(state)) for state in found)

    def about(self, decided: Decided) -> tuple[str, ...]:
        """The workload."""
        return decided.keys(self.name)

    def _is_meant(self, state: WorkloadState) -> bool:
        return state.stage is Stage.PENDING and self.message.casefold() in state.message.casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class Admits:
    """A workload is admitted.

    Args:
        name: `namespace/name` of the Workload, or of its job.
        cluster_queue: The ClusterQueue whose quota it holds in the dump; None for any.
        flavors: Its flavors there, as pod set, resource and flavor; None for any.
    """

    name: str
    cluster_queue: str | None = None
    flavors: tuple[tuple[str, str, str], ...] | None = None

    def as_in(self, decided: Decided) -> Admits:
        """Fill in the ClusterQueue and flavors from a dump."""
        found = [state for state in _states(decided, self.name) if state.stage is Stage.ADMITTED]
        if not found:
            _refuse(decided, self.name, "is not admitted")
        return Admits(name=self.name, cluster_queue=found[0].cluster_queue, flavors=_flavors(found[0]))

    def is_in(self, decided: Decided) -> bool:
        """Whether the decision is shown, possibly with fewer pod sets and resources."""
        for state in _states(decided, self.name):
            is_home = self.cluster_queue in (None, state.cluster_queue)
            flavors, wanted = _flavors(state), self.flavors
            is_same = wanted is None or (set(flavors) <= set(wanted) and bool(flavors) == bool(wanted))
            if state.stage is Stage.ADMITTED and is_home and is_same:
                return True
        return False

    def about(self, decided: Decided) -> tuple[str, ...]:
        """The workload."""
        return decided.keys(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempts:
    """A workload preempts another.

    Args:
        preemptor: The workload that preempts: `namespace/name` of the Workload, or of its job.
        victim: The workload that is preempted.
        reasons: Kueue's reasons in the dump; empty for any.
    """

    preemptor: str
    victim: str
    reasons: tuple[str, ...] = ()

    def as_in(self, decided: Decided) -> Preempts:
        """Fill in the reasons from a dump."""
        reasons = self._reasons(decided)
        if not reasons:
            for name in (self.preemptor, self.victim):
                _states(decided, name, must_be=True)
            by = [f"{preemption.preemptor} preempts {preemption.key}" for preemption in decided.preemptions]
            remedy = f"choose one of: {', '.join(by[:5])}" if by else "there are no preemptions here"
            raise ManifestError.of(f"{self.preemptor} does not preempt {self.victim}", remedy=remedy)
        return Preempts(preemptor=self.preemptor, victim=self.victim, reasons=reasons)

    def is_in(self, decided: Decided) -> bool:
        """Whether the decision is shown."""
        found = self._reasons(decided)
        return any(not self.reasons or reason in self.reasons for reason in found)

    def about(self, decided: Decided) -> tuple[str, ...]:
        """Both workloads."""
        return (*decided.keys(self.preemptor), *decided.keys(self.victim))

    def _reasons(self, decided: Decided) -> tuple[str, ...]:
        preemptors, victims = decided.keys(self.preemptor), decided.keys(self.victim)
        of_them = (
            preemption
            for preemption in decided.preemptions
            if preemption.preemptor in preemptors and preemption.key in victims
        )
        return tuple(sorted({preemption.reason for preemption in of_them}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """The dump never settles: workloads keep evicting each other."""

    def as_in(self, decided: Decided) -> Unsettled:
        """Check that a dump shows it."""
        if not self.is_in(decided):
            raise ManifestError.of("it settles", remedy="keep another decision, such as --pending NAMESPACE/NAME")
        return self

    def is_in(self, decided: Decided) -> bool:
        """Whether the decision is shown."""
        return decided.settled.ending is Ending.REPEATING

    def about(self, decided: Decided) -> tuple[str, ...]:
        """The workloads in the loop."""
        return () if decided.settled.loop is None else decided.settled.loop.keys


def _states(decided: Decided, name: str, *, must_be: bool = False) -> Sequence[WorkloadState]:
    found = [decided.workloads[key] for key in decided.keys(name) if key in decided.workloads]
    if must_be and not found:
        there = ", ".join(list(decided.workloads)[:5])
        remedy = f"write one of {there}" if there else "there are no workloads"
        raise ManifestError.of(f'there is no Workload and no job "{name}"', remedy=remedy)
    return found


def _refuse(decided: Decided, name: str, what: str) -> None:
    """Report that a decision is not shown.

    Raises:
        ManifestError: Always.
    """
    state = _states(decided, name, must_be=True)[0]
    message = f": {state.message}" if state.message else ""
    raise ManifestError.of(f"{name} {what}", remedy=f"it is {state.stage}{message}")


def _flavors(state: WorkloadState) -> tuple[tuple[str, str, str], ...]:
    return tuple((name, *item) for name, flavors in state.flavors.items() for item in sorted(flavors.items()))


def _without_numbers(state: WorkloadState) -> tuple[str, str]:
    return state.reason, _NUMBER.sub("N", state.message)
