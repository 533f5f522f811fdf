"""Numbers of a state that can be turned, and the least turn that admits a workload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from kueuecore.answers.changes import Change, ChangeKind
from kueuecore.answers.trials import Step, Trials
from kueuecore.decisions import Outcome
from kueuecore.scenarios.edits import Edit

__all__ = ["Dial", "change_of", "least_changes", "least_turns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dial:
    """A number that can be turned in one direction, a step at a time.

    Args:
        kind: What turning it changes.
        what: The same in words, with names.
        most: The furthest turn.
        edits: What a turn by so many steps changes; 0 steps: nothing.
        shown: What stands there after so many steps.
        weight: How many steps are a change of the size 1.
        hint: A turn that may be the least.
        base: Edits that must come before those of all dials, once: what makes room for the number.
    """

    kind: ChangeKind
    what: str
    most: int
    edits: Callable[[int], tuple[Edit, ...]]
    shown: Callable[[int], str]
    weight: int
    hint: int = 0
    base: tuple[Edit, ...] = ()


def least_changes(trials: Trials, dials: Sequence[Dial]) -> Iterator[Change]:
    """The least turn of each dial by itself; if none is enough, that of all of them together."""
    alone = [change for dial in dials if (change := _turned(trials, [dial])) is not None]
    if alone or len(dials) == 1:
        yield from alone
    elif dials and (change := _turned(trials, dials)) is not None:
        yield change


def least_turns(admits: Callable[[Sequence[int]], bool], dials: Sequence[Dial]) -> tuple[int, ...] | None:
    """Turns that admit, such that one step less of any of them does not; `None`: not even the furthest do.

    Each dial is turned back between a turn that admits and one that does not, until the two are neighbours. So the
    claim holds whether more of a turn is always better or not.

    Args:
        admits: Tries turns, one for each dial.
        dials: The dials.
    """
    turns = [dial.most for dial in dials]
    if not admits(turns):
        return None
    is_lower = True
    while is_lower:
        is_lower = False
        for index, dial in enumerate(dials):
            least = _least(_with(admits, turns, index), turns[index], dial.hint)
            is_lower = is_lower or least < turns[index]
            turns[index] = least
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
    """A change with what it comes to; `None`: it is refused, or does not admit after all."""
    verdict = trials.judge(step)
    if verdict is None:
        return None
    outcome = Outcome.PREEMPTS if verdict.preemptions else Outcome.FITS
    seen = verdict.preemptions, verdict.evicted, verdict.moved
    return Change(kind, what, before, after, step, tuple(less), outcome, *seen, size, is_least)


def _turned(trials: Trials, dials: Sequence[Dial]) -> Change | None:
    turns = least_turns(lambda turns: trials.admits(_step(dials, turns)), dials)
    if turns is None:
        return None
    # What needs no turn is left as it is.
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
        less=[step for turns in lower if (step := _step(dials, turns)).edits],
        size=sum((Fraction(turn, max(1, dial.weight)) for dial, turn in used), Fraction(0)),
    )


def _step(dials: Sequence[Dial], turns: Sequence[int]) -> Step:
    turned = [(dial, turn) for dial, turn in zip(dials, turns, strict=True) if turn]
    base: list[Edit] = []
    for dial, _ in turned:
        base += [edit for edit in dial.base if edit not in base]
    return Step((*base, *(edit for dial, turn in turned for edit in dial.edits(turn))))


def _with(admits: Callable[[Sequence[int]], bool], turns: Sequence[int], index: int) -> Callable[[int], bool]:
    return lambda turn: admits([turn if n == index else it for n, it in enumerate(turns)])


def _least(admits: Callable[[int], bool], high: int, hint: int) -> int:
    """The lower end of some turns that admit, from one that does, down to 0."""
    if high == 0 or admits(0):
        return 0
    low = 0
    for guess in (hint, hint - 1):
        if low < guess < high:
            if admits(guess):
                high = guess
            else:
                low = guess
    while high - low > 1:
        middle = (low + high) // 2
        if admits(middle):
            high = middle
        else:
            low = middle
    return high
