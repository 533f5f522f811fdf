"""Whether what came of an input is a documented error or an answer, in time and memory in proportion to it."""

from __future__ import annotations

import gc
import re
import resource
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import kueuecore
from kueuecore.errors import EngineBrokenError, KueuecoreError
from tests.attack.case import MAY_BE_LATE, Case, Wrong
from tests.attack.values import Hostile

__all__ = ["Verdict", "judged"]

_PACKAGE = str(Path(kueuecore.__file__).parent)
_SECONDS_OF_A_BYTE = 40e-6
_MAX_GROWTH = 2.5
"""How many times as long double the input may take."""
_LONG = 0.8
"""Seconds from which growth counts: less says little."""
_ROUNDS = 4
_MEMORY = 150 * 2**20
_MEMORY_OF_A_BYTE = 1_000
_MAX_MESSAGE = 100_000
_MESSAGE_OF_A_BYTE = 100
"""Each of many wrong items may have its own line."""
_MAX_WORD = 800
_PARTS = ("an object must be ", "an object is ", "an event must be ")
"""How errors about one item begin: the argument that they mean is the sequence."""
_TIMES = {"now", "since", "until"}
"""Arguments of which an error says that they are no time, if it does not name them."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a case.

    Args:
        taken: Was it taken?
        wrong: What is wrong about that, in at most 8,000 characters; empty if nothing is.
        seconds: CPU time that it took.
    """

    taken: bool
    wrong: str
    seconds: float


def judged(case: Case) -> Verdict:
    """Run a case; a process in which it takes far too long dies by SIGPROF."""
    before = None if case.state is None else case.state()
    memory, start = _memory(), time.process_time()
    allowed = case.seconds + case.size * _SECONDS_OF_A_BYTE
    signal.setitimer(signal.ITIMER_PROF, 2 * allowed + 1)
    error: BaseException | None = None
    try:
        case.act()
    except BaseException as raised:  # whatever it raises is what is judged
        error = raised
    signal.setitimer(signal.ITIMER_PROF, 0)
    seconds, grown = time.process_time() - start, _memory() - memory
    wrong = "" if error is None else _complaint(case, error)
    if not wrong and seconds > allowed:
        wrong = f"took {seconds:.1f} s for {case.size} bytes"
    if not wrong and grown > _MEMORY + case.size * _MEMORY_OF_A_BYTE:
        wrong = f"took {grown >> 20} MiB for {case.size} bytes"
    if not wrong and case.twice is not None:
        wrong = _growth(case.act, case.twice, seconds)
    is_refusal = not wrong and not isinstance(error, (*MAY_BE_LATE, Hostile))
    if error and is_refusal and case.state is not None and not _same(case.state(), before):
        wrong = f"changed by what it refused: {_shown(error)}"
    return Verdict(error is None, wrong[:8000], seconds)


def _growth(once: Callable[[], object], twice: Callable[[], object], seconds: float) -> str:
    """What is wrong with the time at double size: the best of several rounds, as anything may disturb one."""
    least, most = seconds, _seconds(twice)
    for _ in range(_ROUNDS):
        if most <= max(_LONG, _MAX_GROWTH * least):
            return ""
        least, most = min(least, _seconds(once)), min(most, _seconds(twice))
    return f"took {most:.1f} s at double size, {least:.1f} s before"


def _seconds(act: Callable[[], object]) -> float:
    # What another round has left behind is not its work.
    gc.collect()
    start = time.process_time()
    with suppress(KueuecoreError, ValueError, TypeError):
        act()
    return time.process_time() - start


def _complaint(case: Case, error: BaseException) -> str:
    """What is wrong with an error; empty if a user may expect it."""
    if isinstance(error, Wrong):
        return str(error)
    if isinstance(error, Hostile):
        return ""
    try:
        text = str(error)
    except Hostile:  # it quotes an object of the attacker's
        return ""
    is_own = isinstance(error, KueuecoreError) and not isinstance(error, EngineBrokenError)
    is_builtin = type(error) in (TypeError, ValueError)
    if not (is_own or is_builtin) or not text.strip():
        return f"{_shown(error)}\n{''.join(traceback.format_exception(error))}"
    if len(text) > _MAX_MESSAGE + _MESSAGE_OF_A_BYTE * case.size:
        return f"an error of {len(text)} characters: {text[:200]}"
    if (longest := max(map(len, text.split()))) > _MAX_WORD:
        return f"an error with a word of {longest} characters: {text[:200]}"
    if is_builtin and not _names_something(case, text):
        return f"names neither argument nor field: {_shown(error)}\n{''.join(traceback.format_exception(error))}"
    return ""


def _names_something(case: Case, text: str) -> bool:
    names = [name for name in case.names if name and not name.isdigit()]
    if text.startswith(_PARTS):
        return True
    is_time = bool(_TIMES.intersection(names)) and "time" in text
    return is_time or not names or any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names)


def _shown(error: BaseException) -> str:
    frames = [entry for entry in traceback.extract_tb(error.__traceback__) if entry.filename.startswith(_PACKAGE)]
    place = f" at {frames[-1].filename.removeprefix(_PACKAGE)}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}: {str(error)[:300]}"


def _same(one: object, other: object) -> bool:
    return bool(one == other) or repr(one) == repr(other)


def _memory() -> int:
    """The most that the process has held so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
