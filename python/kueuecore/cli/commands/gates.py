"""`kueuecore gates`: lists the feature gates of a release of Kueue."""

from __future__ import annotations

import argparse

from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.kueue_release import add_kueue, asked_release
from kueuecore.cli.streams import output, write
from kueuecore.cli.table import Style, table
from kueuecore.releases import DEFAULT_RELEASE, Release

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = "Lists Kueue's feature gates: their defaults, their stages and what they do."

EXAMPLES = """\
  kueuecore gates
  kueuecore gates --kueue 0.17                those of another release
"""


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_kueue(add, sources="")
    add.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="use colours; by default only on a terminal",
    )


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore gates`; returns the exit code."""
    release = asked_release(options.kueue) or Release.named(DEFAULT_RELEASE)
    rows = [[gate.name, "on" if gate.default else "off", gate.stage, gate.what] for gate in release.feature_gates()]
    write(table(["GATE", "DEFAULT", "STAGE", "WHAT IT DOES"], rows, Style.of(output(), options.color)) + "\n")
    return ExitCode.OK
