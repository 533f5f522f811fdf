"""Options that all studies have: seeds, processes, and how the answer looks."""

from __future__ import annotations

import argparse
import os

__all__ = ["add_look", "add_study", "count"]


def add_study(command: argparse.ArgumentParser, *, seeds: int) -> None:
    """Add how a study runs: `--seeds`, `--workers` and `--allow-code`.

    Args:
        command: The command.
        seeds: How many seeds there are by default.
    """
    help_text = f"how many seeds, from that of the first scenario on; by default {seeds}"
    command.add_argument("--seeds", metavar="N", type=count, default=seeds, help=help_text)
    command.add_argument(
        "--workers", metavar="N", type=count, default=os.cpu_count() or 1, help="processes; by default one a core"
    )
    command.add_argument("--allow-code", action="store_true", help="run the program that fleet.policy.use names")


def add_look(out: argparse._ArgumentGroup) -> None:
    """Add how the answer looks: `--color` and `--quiet`."""
    out.add_argument("--color", choices=["auto", "always", "never"], default="auto", help="by default on a terminal")
    out.add_argument("-q", "--quiet", action="store_true", help="no warnings and no progress on stderr")


def count(text: str) -> int:
    """A whole number of an option, from 1."""
    if not (text.isascii() and text.isdigit() and int(text[:9]) >= 1 and len(text) < 7):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 999999")
    return int(text)
