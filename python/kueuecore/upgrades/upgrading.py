"""Finds what an upgrade of Kueue changes about a state, and which of Kueue's changes cause it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, TypeVar

from kueuecore.configuration import Configuration
from kueuecore.dumps import Deciding
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.manifests import Manifest
from kueuecore.releases import Release
from kueuecore.shrinking import shrunk
from kueuecore.upgrades.differences import Difference, differences_between
from kueuecore.upgrades.fates import Fate, Outcome, Subject, outcome_of, problems_by_object, without
from kueuecore.upgrades.mixtures import MAX_RUNS, Mixtures, OutOfRunsError
from kueuecore.upgrades.switches import (
    Switch,
    SwitchKind,
    kinds_switch,
    settable_gates,
    switches_between,
    with_dependent_gates,
)
from kueuecore.world import World

__all__ = ["Cause", "Kept", "Refusal", "Upgrade", "upgrade"]

_Refused: TypeAlias = Mapping[ObjectRef, tuple[Problem, ...]]
_Checked: TypeAlias = tuple[_Refused, tuple[Problem, ...]]
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Kept:
    """What keeps the old behaviour in the new release, as a run has shown.

    Args:
        gates: `featureGates` of the Configuration.
        n_kept: For how many of a cause's differences the old decision is kept.
    """

    gates: Mapping[str, bool]
    n_kept: int


@dataclass(frozen=True, slots=True)
class Cause:
    """Gates and changes that together make differences. None of them can be left out.

    Args:
        switches: The gates and changes; none if the cause was not found.
        differences: The differences, by kind and key.
        kept: What keeps the old decisions; `None`: nothing in the Configuration does, or only texts differ.
    """

    switches: tuple[Switch, ...]
    differences: tuple[Difference, ...]
    kept: Kept | None = None

    @property
    def is_of_text(self) -> bool:
        """Whether the decisions are the same, and only reasons or messages differ."""
        return self.differences[0].is_of_text

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the gates and changes."""
        return tuple(switch.name for switch in self.switches)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An object that the new release refuses, or of which it drops a field, and the old one did not.

    Args:
        problem: What is wrong.
        is_warning: Whether the object is accepted without the field.
        switches: The gates and changes that make the difference; none if they were not found.
    """

    problem: Problem
    is_warning: bool = False
    switches: tuple[Switch, ...] = ()


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What an upgrade of Kueue changes about a state.

    Args:
        old: The old release.
        new: The new release.
        switches: All gates and changes that differ.
        before: The state at rest under the old release.
        after: The state at rest under the new release.
        causes: The decisions that change, by their causes: those of most differences first.
        texts: The messages that change while the decision is the same, likewise.
        refusals: The objects that the new release refuses, and fields that it drops.
        n_runs: How many mixtures of the two releases were run.
        is_stopped: Whether runs ran out before all causes were found.
    """

    old: Release
    new: Release
    switches: tuple[Switch, ...]
    before: Outcome
    after: Outcome
    causes: tuple[Cause, ...]
    texts: tuple[Cause, ...]
    refusals: tuple[Refusal, ...]
    n_runs: int
    is_stopped: bool

    @property
    def is_any(self) -> bool:
        """Whether anything changes, messages included."""
        return bool(self.causes or self.texts or self.refusals)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """The decisions that change."""
        return tuple(difference for cause in self.causes for difference in cause.differences)

    @property
    def n_workloads(self) -> int:
        """How many workloads there are under the old release."""
        return sum(kind == "Workload" for kind, _ in self.before.fates)


def upgrade(
    manifests: Iterable[Manifest],
    deciding: Deciding,
    old: Configuration,
    new: Configuration,
    *,
    with_old_kinds: Configuration | None = None,
    most_runs: int = MAX_RUNS,
    progress: Callable[[int, int, int], None] | None = None,
) -> Upgrade:
    """Run a state to rest under two releases of Kueue, compare, and find what causes each difference.

    The cause of a difference is the smallest set of gates and changes with which the old release decides as the new
    one; it is found by delta debugging over runs of mixtures of the two.

    Args:
        manifests: The objects.
        deciding: How to decide about them; its Configuration is not used.
        old: The Configuration for the old release.
        new: The same for the new release.
        with_old_kinds: The same for the new release with the kinds of jobs that the old one ships with, if the two
            Configurations are those that Kueue ships, and differ in that.
        most_runs: How many mixtures to run at most.
        progress: Called with the number of mixtures run so far, of differences explained, and of all differences.

    Raises:
        ManifestError: Something is wrong with the objects that is not about one of them.
    """
    given = tuple(manifests)
    n_explained = n_differences = 0
    subjects: set[Subject] | None = None

    def note(n_runs: int) -> None:
        if progress is not None:
            progress(n_runs, n_explained, n_differences)

    def outcome(configuration: Configuration) -> Outcome:
        return outcome_of(given, replace(deciding, configuration=configuration), subjects=subjects)

    kinds = None if with_old_kinds is None else kinds_switch(old.release, new.release)
    switches = (*([kinds] if kinds else []), *switches_between(old, new))
    mixtures = Mixtures(old, new, switches, outcome, with_old_settings=with_old_kinds, most=most_runs, progress=note)
    _raise_for(mixtures.before.refused, mixtures.after.refused)
    # Decisions first: runs that they need explain messages, too.
    unsorted = differences_between(mixtures.before, mixtures.after)
    differences = sorted(unsorted, key=lambda difference: difference.is_of_text)
    # All that the mixtures are asked about, as there may be many of both.
    n_differences, subjects = len(differences), {(difference.kind, difference.key) for difference in differences}
    found: dict[tuple[bool, tuple[Switch, ...]], list[Difference]] = {}
    is_stopped = False
    # What makes all differences is found first: each of them then needs few runs more, and many share these.
    enough = _cause(mixtures, partial(_is_all_as_after, differences=differences)) if differences else ()
    for difference in differences:
        cause = None
        if enough is not None:
            cause = _cause(mixtures, partial(_is_as_after, difference=difference), among=enough)
        is_stopped |= cause is None
        found.setdefault((difference.is_of_text, cause or ()), []).append(difference)
        n_explained += 1
    causes = [Cause(cause, tuple(of_cause)) for (_, cause), of_cause in found.items()]
    causes.sort(key=_rank)
    return Upgrade(
        old.release,
        new.release,
        switches,
        mixtures.before,
        mixtures.after,
        tuple(_with_kept(cause, mixtures, new) for cause in causes if not cause.is_of_text),
        tuple(cause for cause in causes if cause.is_of_text),
        tuple(_refusals(given, deciding, mixtures, old, new)),
        mixtures.n_runs,
        is_stopped,
    )


def _cause(
    mixtures: Mixtures[_Found], is_new: Callable[[_Found], bool], *, among: Sequence[Switch] | None = None
) -> tuple[Switch, ...] | None:
    """Return the cause of a difference; `None` if runs ran out."""
    try:
        return mixtures.cause(is_new, among=among)
    except OutOfRunsError:
        return None


def _raise_for(before: _Refused, after: _Refused) -> None:
    """Raise what is wrong with objects that both releases refuse, if there are any."""
    problems = [problem for ref in before if ref in after for problem in before[ref]]
    if problems:
        raise ManifestError(problems)


def _is_all_as_after(outcome: Outcome, differences: Sequence[Difference]) -> bool:
    return all(_is_as_after(outcome, difference) for difference in differences)


def _is_as_after(outcome: Outcome, difference: Difference) -> bool:
    return _is_as(difference.after, outcome, difference)


def _is_as(fate: Fate | None, outcome: Outcome, difference: Difference) -> bool:
    """Return whether the subject of a difference has a fate; if only texts differ, with its texts."""
    found = outcome.fates.get((difference.kind, difference.key))
    if not difference.is_of_text:
        return found == fate
    return found is not None and fate is not None and found.said == fate.said


def _rank(cause: Cause) -> tuple[bool, int, tuple[str, ...]]:
    """Return the place of a cause: those of most differences first, and at the end those that were not found."""
    return not cause.switches, -len(cause.differences), cause.names


def _with_kept(cause: Cause, mixtures: Mixtures[Outcome], new: Configuration) -> Cause:
    """Add the gates that keep the old behaviour, if a run shows that they do."""
    settable = settable_gates(new.release)
    own = tuple(switch for switch in cause.switches if switch.kind is SwitchKind.GATE and switch.name in settable)
    if not own:
        return cause

    def n_kept(switches: Iterable[Switch]) -> int:
        outcome = mixtures.new_with(_gates_back(switches, new))
        return sum(_is_as(difference.before, outcome, difference) for difference in cause.differences)

    def keeps_all(switches: Iterable[Switch]) -> bool:
        return n_kept(switches) == len(cause.differences)

    # With a gate off, another may do something new: then it has to be off, too.
    others = [
        switch
        for switch in mixtures.switches
        if switch.kind is SwitchKind.GATE and switch.name in settable and switch not in own
    ]
    try:
        kept = own
        if not keeps_all(own) and keeps_all((*own, *others)):
            kept = (*own, *shrunk(others, lambda some: keeps_all((*own, *some)), max_tries=MAX_RUNS))
        n = n_kept(kept)
    except OutOfRunsError:
        return cause
    return replace(cause, kept=Kept(_gates_back(kept, new), n)) if n else cause


def _gates_back(switches: Iterable[Switch], new: Configuration) -> dict[str, bool]:
    """Return gates as in the old release, and those off that need one of them on."""
    gates = {switch.name: switch.before for switch in switches}
    off = with_dependent_gates([name for name, is_on in gates.items() if not is_on], new)
    return gates | dict.fromkeys(off, False)


def _refusals(
    manifests: Sequence[Manifest],
    deciding: Deciding,
    mixtures: Mixtures[Outcome],
    old: Configuration,
    new: Configuration,
) -> Iterator[Refusal]:
    """List what the new release refuses or drops and the old one does not; objects of a dump are checked for that."""
    if not deciding.trusted:
        yield from _refusals_by(mixtures, lambda entry: (entry.refused, entry.warnings))
        return

    def checked(configuration: Configuration) -> _Checked:
        return _checked(manifests, configuration, deciding.now)

    others = [switch for switch in mixtures.switches if switch.kind is not SwitchKind.SETTING]
    yield from _refusals_by(Mixtures(old, new, others, checked), lambda entry: entry)


def _refusals_by(mixtures: Mixtures[_Found], checked_of: Callable[[_Found], _Checked]) -> Iterator[Refusal]:
    (old, old_warnings), (new, new_warnings) = checked_of(mixtures.before), checked_of(mixtures.after)
    for ref, problems in new.items():
        if ref not in old:
            cause = _cause(mixtures, partial(_refuses, checked_of, ref))
            yield from (Refusal(problem, switches=cause or ()) for problem in problems)
    for warning in new_warnings:
        if warning not in old_warnings:
            cause = _cause(mixtures, partial(_warns, checked_of, warning))
            yield Refusal(warning, is_warning=True, switches=cause or ())


def _refuses(checked_of: Callable[[_Found], _Checked], ref: ObjectRef, found: _Found) -> bool:
    return ref in checked_of(found)[0]


def _warns(checked_of: Callable[[_Found], _Checked], warning: Problem, found: _Found) -> bool:
    return warning in checked_of(found)[1]


def _checked(manifests: Sequence[Manifest], configuration: Configuration, now: int) -> _Checked:
    """Return what an API server with Kueue says if some objects are created."""
    refused: dict[ObjectRef, tuple[Problem, ...]] = {}
    left = tuple(manifests)
    while True:
        try:
            applied = World.of(left, configuration=configuration).apply_to(Engine(configuration), now=now, dry_run=True)
        except ManifestError as error:
            of_objects = problems_by_object(left, error)
            if not of_objects:
                return refused, ()
            refused |= of_objects
            left = without(left, of_objects)
        else:
            return refused, applied.warnings
