"""Runs code of the user's: not for ever, without what it prints in the output, and with errors that name its lines."""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NoReturn, TypeVar

from kueuecore.errors import ManifestError

__all__ = ["LONGEST_SECONDS", "ran"]

LONGEST_SECONDS = 10.0
"""How long one call may take."""

_Answer = TypeVar("_Answer")


class _TooLongError(BaseException):
    """It takes too long; no `except Exception` of the user's catches it."""


def ran(run: Callable[[], _Answer], what: str, *, file: str, remedy: str) -> _Answer:
    """Run code of the user's.

    What it prints goes to standard error. Where no signals are to be had, as in threads, it may run for ever.

    Args:
        run: The code.
        what: What it means if it fails.
        file: The file in which it is.
        remedy: What to do if it fails.

    Raises:
        ManifestError: It raised something, with the line in its file, or took longer than `LONGEST_SECONDS`.
        KeyboardInterrupt: Somebody pressed Ctrl-C.
    """
    try:
        with redirect_stdout(sys.stderr or StringIO()), _limited():
            return run()
    except KeyboardInterrupt:
        raise
    except _TooLongError as error:
        message, remedy = f"{what}: it took longer than {LONGEST_SECONDS:g} s", "have it return sooner"
        raise ManifestError.of(message, file=file, line=_line_in(file, error), remedy=remedy) from None
    except BaseException as error:
        message = f"{what}: {traceback.format_exception_only(error)[-1].strip()}"
        raise ManifestError.of(message, file=file, line=_line_in(file, error), remedy=remedy) from error


def _line_in(file: str, error: BaseException) -> int | None:
    """The line of the file that was running, or that cannot be read."""
    path = str(Path(file).absolute())
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    if isinstance(error, SyntaxError) and error.filename == path:
        lines.append(error.lineno)
    return lines[-1] if lines else None


@contextmanager
def _limited() -> Iterator[None]:
    """Raise `_TooLongError` in what takes too long."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, _stop)
    try:
        # Again and again, as it may be caught.
        signal.setitimer(signal.ITIMER_REAL, LONGEST_SECONDS, 1.0)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)


def _stop(*_: object) -> NoReturn:
    raise _TooLongError
