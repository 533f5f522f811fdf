"""`--watch`: asks again whenever the cluster changes, and prints answers that differ."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.state_source import UnreadableError
from kueuecore.cli.streams import to_stderr, write
from kueuecore.errors import ManifestError
from kueuecore.times import format_time

__all__ = ["Answer", "add_watch", "answer_or_watch"]

_WAIT_SECONDS = 3600.0
_RETRY_SECONDS = 5.0


class Answer(NamedTuple):
    """What a command answers.

    Args:
        text: What to print.
        code: The exit code.
        essence: What is compared with the answer before: without times, which always change.
    """

    text: str
    code: int
    essence: str


def add_watch(out: argparse._ArgumentGroup) -> None:
    """Add `--watch`."""
    help_text = "follow the cluster, and print the answer whenever it changes; until Ctrl-C"
    out.add_argument("-w", "--watch", action="store_true", help=help_text)


def answer_or_watch(options: argparse.Namespace, answer: Callable[[], Answer], *, pause_seconds: float = 0.0) -> int:
    """Print an answer; with `--watch` also every later one that differs, until the reader closes the pipe.

    Args:
        options: The options of the command, with `watch` and those that name a state.
        answer: Answers, from the newest state.
        pause_seconds: The least time between answers.

    Returns:
        The exit code of the last answer.

    Raises:
        ManifestError: There is no answer, or no cluster to watch.
    """
    if options.watch and options.paths:
        raise ManifestError.of("--watch follows a cluster", remedy="leave out the files, or --watch")
    last = answer()
    write(last.text)
    is_lost = False
    while options.watch:
        source = options.source
        version = source.version
        try:
            while not is_lost and source.wait(version, seconds=_WAIT_SECONDS) == version:
                pass
            found = answer()
            is_lost = False
        except UnreadableError as error:
            # Servers restart: once this one answers, so does the question.
            if not is_lost:
                to_stderr(f"{format_time(time.time_ns())}:", *map(str, error.problems))
            is_lost = True
            time.sleep(_RETRY_SECONDS)
            continue
        except ManifestError as error:
            # It was there before, so it has been deleted.
            to_stderr(f"{format_time(time.time_ns())}:", *map(str, error.problems))
            return ExitCode.OK
        if found.essence != last.essence:
            write(f"\n{format_time(time.time_ns())}\n\n{found.text}")
        last = found
        time.sleep(pause_seconds)
    return last.code
