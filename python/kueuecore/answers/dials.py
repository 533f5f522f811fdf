"""Searches for the smallest change of a number, or of several, that admits a workload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from kueuecore._json import JsonObject
from kueuecore.answers.changes import Change, ChangeKind, NotEnough
from kueuecore.answers.state_changes import Deletion
from kueuecore.answers.trials import Step, Trials
from kueuecore.decisions import Outcome
from kueuecore.scenarios.edits import Edit

__all__ = ["Dial", "Failure", "change_of", "failure_of", "least_change", "least_changes", "least_turns"]

_BY_PREEMPTION = (ChangeKind.PRIORITY, ChangeKind.PRIORITY_CLASS, ChangeKind.PREEMPTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dial:
    """A number that can be changed in one direction, step by step. A number of steps is called a turn.

    Args:
        kind: What turning it changes.
        what: The same in words, with names.
        most: The largest turn.
        edits: The edits that make a turn; none for 0.
        shown: The value after a turn, as text.
        weight: How many steps count as a change of size 1.
        hint: A guess at the smallest turn that is enough.
        likely: More guesses, in ascending order.
        unit: Steps between values that matter, counted from `origin`: amounts are mostly multiples of a larger one.
        origin: A turn at which such a value lies.
        base: Edits to make once, before those of any dial, so that the field exists.
        objects: The objects that a turn adds.
        deletions: The objects that a turn deletes.
    """

    kind: ChangeKind
    what: str
    most: int
    edits: Callable[[int], tuple[Edit, ...]]
    shown: Callable[[int], str]
    weight: int
    hint: int = 0
    likely: Sequence[int] = ()
    unit: int = 1
    origin: int = 0
    base: tuple[Edit, ...] = ()
    objects: Callable[[int], tuple[JsonObject, ...]] = lambda turn: ()
    deletions: Callable[[int], tuple[Deletion, ...]] = lambda turn: ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Dials that do not admit the workload even at their largest.

    Args:
        found: The same in words.
        dials: The dials.
    """

    found: NotEnough
    dials: tuple[Dial, ...]

    @property
    def kind(self) -> ChangeKind:
        """What they change."""
        return self.found.kind


def least_changes(trials: Trials, dials: Sequence[Dial]) -> Iterator[Change | Failure]:
    """The smallest turn of each dial by itself; if none is enough, the smallest of all of them together."""
    alone = [found for dial in dials if (found := least_change(trials, [dial])) is not None]
    changes = [found for found in alone if isinstance(found, Change)]
    if changes or len(dials) == 1:
        yield from changes or alone
    elif dials and (found := least_change(trials, dials)) is not None:
        yield found


def least_turns(admits: Callable[[Sequence[int]], bool], dials: Sequence[Dial]) -> tuple[int, ...] | None:
    """Find turns that admit while one step less of any of them does not; `None` if not even the largest admit.

    Bisects each dial between a turn that admits and one that does not until the two are neighbours, so the result
    holds even where a larger turn is not always better. No turns are tried twice.

    Args:
        admits: Tries turns, one per dial.
        dials: The dials.
    """
    known: dict[tuple[int, ...], bool] = {}

    def tried(turns: Sequence[int]) -> bool:
        key = tuple(turns)
        if key not in known:
            known[key] = admits(key)
        return known[key]

    turns = [dial.most for dial in dials]
    if not tried(turns):
        return None
    is_first = is_lower = True
    while is_lower:
        is_lower = False
        for index, dial in enumerate(dials):
            at = _with(tried, turns, index)
            is_least = not is_first and (turns[index] == 0 or not at(turns[index] - 1))
            least = turns[index] if is_least else _least(at, turns[index], dial)
            is_lower = is_lower or least < turns[index]
            turns[index] = least
        is_first = False
    return tuple(turns)


def change_of(
    trials: Trials,
    kind: ChangeKind,
    what: str,
    *,
    before: str,
    after: str,
    step: Step,
    less: Iterable[Step] = (),
    size: Fraction = Fraction(1),
    is_least: bool = True,
) -> Change | None:
    """Make a `Change` with its outcome; `None` if it is rejected, or does not admit after all."""
    verdict = trials.judge(step)
    if verdict is None:
        return None
    outcome = Outcome.PREEMPTS if verdict.preemptions else Outcome.FITS
    seen = verdict.preemptions, verdict.evicted, verdict.moved
    return Change(kind, what, before, after, step, tuple(less), outcome, *seen, size, is_least)


def least_change(trials: Trials, dials: Sequence[Dial]) -> Change | Failure | None:
    """The smallest turns of dials that admit the workload together; `None` if an API server rejects them."""
    turns = least_turns(lambda turns: trials.admits(_step(dials, turns)), dials)
    if turns is None:
        return failure_of(trials, dials)
    # Dials that need no turn are left out.
    used = [(dial, turn) for dial, turn in zip(dials, turns, strict=True) if turn]
    if not used:
        return None
    dials, turns = [dial for dial, _ in used], tuple(turn for _, turn in used)
    lower = [[turn - (n == index) for n, turn in enumerate(turns)] for index in range(len(turns))]
    return change_of(
        trials,
        dials[0].kind,
        " and ".join(dial.what for dial in dials),
        before=", ".join(dial.shown(0) for dial in dials),
        after=", ".join(dial.shown(turn) for dial, turn in used),
        step=_step(dials, turns),
        less=[step for turns in lower if not (step := _step(dials, turns)).is_nothing],
        size=sum((Fraction(turn, max(1, dial.weight)) for dial, turn in used), Fraction(0)),
    )


def failure_of(trials: Trials, dials: Sequence[Dial]) -> Failure:
    """Say why the largest turns, which were tried last, are not enough."""
    found = NotEnough(
        kind=dials[0].kind,
        what=" and ".join(dial.what for dial in dials),
        before=", ".join(dial.shown(0) for dial in dials),
        most=", ".join(dial.shown(dial.most) for dial in dials),
        why=trials.what_binds(by_preemption=dials[0].kind in _BY_PREEMPTION),
    )
    return Failure(found=found, dials=tuple(dials))


def _step(dials: Sequence[Dial], turns: Sequence[int]) -> Step:
    turned = [(dial, turn) for dial, turn in zip(dials, turns, strict=True) if turn]
    base: list[Edit] = []
    for dial, _ in turned:
        base += [edit for edit in dial.base if edit not in base]
    return Step(
        (*base, *(edit for dial, turn in turned for edit in dial.edits(turn))),
        tuple(deletion for dial, turn in turned for deletion in dial.deletions(turn)),
        objects=tuple(object_ for dial, turn in turned for object_ in dial.objects(turn)),
    )


def _with(admits: Callable[[Sequence[int]], bool], turns: Sequence[int], index: int) -> Callable[[int], bool]:
    return lambda turn: admits([turn if n == index else other for n, other in enumerate(turns)])


def _least(admits: Callable[[int], bool], high: int, dial: Dial) -> int:
    """Narrow down from `high`, which admits, to a turn that admits while one less does not: likely values first."""
    if high == 0 or admits(0):
        return 0
    low = 0
    for guess in (dial.hint, dial.hint - 1):
        if low < guess < high:
            if admits(guess):
                high = guess
            else:
                low = guess
    low, high = _narrowed(admits, low, high, [number for number in dial.likely if low < number < high])
    if dial.unit > 1:
        first = low + 1 + (dial.origin - low - 1) % dial.unit
        low, high = _narrowed(admits, low, high, range(first, high, dial.unit))
        if high - low > 1 and not admits(high - 1):
            return high
    return _narrowed(admits, low, high, range(low + 1, high))[1]


def _narrowed(admits: Callable[[int], bool], low: int, high: int, values: Sequence[int]) -> tuple[int, int]:
    """Bisect ascending values between `low`, which does not admit, and `high`, which does."""
    before, after = -1, _count(values)
    while after - before > 1:
        middle = (before + after) // 2
        if admits(values[middle]):
            high, after = values[middle], middle
        else:
            low, before = values[middle], middle
    return low, high


def _count(values: Sequence[int]) -> int:
    # `len` refuses a range of 2^63 values, which an amount in thousandths can have.
    if isinstance(values, range):
        return max(0, -(-(values.stop - values.start) // values.step))
    return len(values)
