"""Runs a state under mixtures of two releases, to find the smallest set of switches that explains a difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from kueuecore.configuration import Configuration
from kueuecore.shrinking import shrunk
from kueuecore.upgrades.switches import Switch, SwitchKind

__all__ = ["MAX_RUNS", "Mixtures", "OutOfRunsError"]

MAX_RUNS = 1_000
"""How many mixtures are run by default. Counted, not timed, so that an answer is the same on every machine."""

_Found = TypeVar("_Found")


class OutOfRunsError(Exception):
    """All runs are used up."""


class Mixtures(Generic[_Found]):
    """The old release with some switches as in the new one; each mixture runs once.

    Args:
        old: The Configuration for the old release.
        new: The Configuration for the new release.
        switches: What differs between them.
        with_old_settings: The same for the new release with the settings that the old one ships with, if one of the
            switches is about these.
        run: What is done under a Configuration.
        most: How many mixtures may run; each further one raises `OutOfRunsError`.
        progress: Called with the number of mixtures run so far, before each of them.
    """

    def __init__(
        self,
        old: Configuration,
        new: Configuration,
        switches: Iterable[Switch],
        run: Callable[[Configuration], _Found],
        *,
        with_old_settings: Configuration | None = None,
        most: int = MAX_RUNS,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.switches = tuple(switches)
        self.n_runs = 0
        self._new = new
        self._with_old_settings = with_old_settings or new
        self._run = run
        self._most = most
        self._progress = progress
        self._causes: list[tuple[Switch, ...]] = []
        self.before = run(old)
        self.after = run(new)
        self._found = {frozenset(self.switches): self.after}

    def with_new(self, switches: Iterable[Switch]) -> _Found:
        """Return what comes of the old release with some switches as in the new one.

        Raises:
            OutOfRunsError: All runs are used up.
        """
        key = frozenset(switches)
        if key not in self._found:
            as_old = [switch for switch in self.switches if switch not in key]
            is_old = any(switch.kind is SwitchKind.SETTING for switch in as_old)
            base = self._with_old_settings if is_old else self._new
            values = {switch.name: switch.before for switch in as_old if switch.kind is not SwitchKind.SETTING}
            self._found[key] = self._ran(base.switched(values))
        return self._found[key]

    def new_with(self, gates: Mapping[str, bool]) -> _Found:
        """Return what comes of the new release with some gates set.

        Raises:
            OutOfRunsError: All runs are used up.
        """
        as_new = [switch for switch in self.switches if gates.get(switch.name, switch.after) == switch.after]
        others = gates.keys() - {switch.name for switch in self.switches}
        return self._ran(self._new.switched(gates)) if others else self.with_new(as_new)

    def cause(self, is_new: Callable[[_Found], bool], *, among: Sequence[Switch] | None = None) -> tuple[Switch, ...]:
        """Return the smallest set of switches that makes the old release do as the new one; without any it does not.

        None of them can be left out alone.

        Args:
            is_new: Whether the new release's answer is there.
            among: Switches that are enough for it; by default all. Only then the answer is tried first in later calls.

        Returns:
            The switches in their order; none if not they make the difference.

        Raises:
            OutOfRunsError: All runs are used up.
        """
        if is_new(self.with_new(())):
            return ()
        enough = self.switches if among is None else tuple(among)
        # Differences of one cause are many, and its runs are done.
        known = next(
            (cause for cause in self._causes if {*cause} <= {*enough} and is_new(self.with_new(cause))), enough
        )
        found = shrunk(known, lambda some: is_new(self.with_new(some)))
        if among is not None and found not in self._causes:
            self._causes.append(found)
        return found

    def _ran(self, configuration: Configuration) -> _Found:
        if self.n_runs >= self._most:
            raise OutOfRunsError
        if self._progress is not None:
            self._progress(self.n_runs)
        self.n_runs += 1
        return self._run(configuration)
