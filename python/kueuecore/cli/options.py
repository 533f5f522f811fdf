"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import argparse

from kueuecore._text import quoted
from kueuecore.cli.state_file import add_state
from kueuecore.times import duration_ns

__all__ = ["HISTORY_HELP", "add_inputs", "add_style", "seed", "step_seconds"]


HISTORY_HELP = "also show what happened to this job, step by step; as NAMESPACE/NAME of it or its Workload; repeatable"


def add_inputs(add: argparse.ArgumentParser, *, takes_engines: bool = True, asks_release: bool = True) -> None:
    """Add the input options of every command that decides about manifests.

    Args:
        add: The command.
        takes_engines: Accept a saved engine, which has no manifests?
        asks_release: Add `--kueue`?
    """
    given = add_state(add, paths="PATH", takes_engines=takes_engines, asks_release=asks_release)
    given.add_argument(
        "--for",
        dest="span",
        metavar="DURATION",
        type=_duration,
        default=0,
        help="let this much time pass, such as 10s or 1h30m, with cycles whenever a backoff ends, a failed node is "
        "replaced, or anything else is due; by default time stands still",
    )


def add_style(shown: argparse._ArgumentGroup) -> None:
    """Add the options on colours, warnings and pending workloads."""
    shown.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="use colours; by default only on a terminal",
    )
    shown.add_argument("--no-color", dest="color", action="store_const", const="never", help="same as --color=never")
    shown.add_argument("-q", "--quiet", action="store_true", help="no notes and warnings on stderr")
    shown.add_argument(
        "--fail-on-pending",
        action="store_true",
        help="exit with 1 if a workload is still pending at the end; or a job still waits for its Workload",
    )


def seed(text: str) -> int:
    """Parse the seed of an option."""
    from kueuecore.scenarios.scenario import MAX_SEED  # slow

    is_short = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_SEED))
    if not is_short or int(text) > MAX_SEED:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a whole number from 0 to {MAX_SEED}")
    return int(text)


def step_seconds(text: str) -> float:
    """Parse the duration of an option, which is greater than 0."""
    found = _duration(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not greater than 0")
    return found / 1e9


def _duration(text: str) -> int:
    try:
        found = duration_ns(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if found < 0:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is less than 0")
    return found
