"""Options that all studies share: seeds, processes, and the look of the output."""

from __future__ import annotations

import argparse
import os

__all__ = ["add_look", "add_study", "count"]


def add_study(command: argparse.ArgumentParser, *, seeds: int) -> None:
    """Add `--seeds`, `--workers` and `--allow-code`.

    Args:
        command: The command.
        seeds: The default number of seeds.
    """
    help_text = f"how many seeds, counting up from the first scenario's; by default {seeds}"
    command.add_argument("--seeds", metavar="N", type=count, default=seeds, help=help_text)
    command.add_argument(
        "--workers",
        metavar="N",
        type=count,
        default=os.cpu_count() or 1,
        help="number of processes; by default one per core",
    )
    command.add_argument("--allow-code", action="store_true", help="run the program that fleet.policy.use names")


def add_look(out: argparse._ArgumentGroup) -> None:
    """Add `--color` and `--quiet`."""
    out.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="use colours; by default only on a terminal",
    )
    out.add_argument("-q", "--quiet", action="store_true", help="no warnings and no progress on stderr")


def count(text: str) -> int:
    """Parse the whole number of an option, at least 1."""
    if not (text.isascii() and text.isdigit() and int(text[:9]) >= 1 and len(text) < 7):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 999999")
    return int(text)
