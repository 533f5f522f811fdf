"""`kueuecore gates`: lists the feature gates of a release of Kueue."""

from __future__ import annotations

import argparse

from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.kueue_release import add_kueue, asked_release
from kueuecore.cli.streams import output, write
from kueuecore.cli.table import Style, table
from kueuecore.releases import DEFAULT_RELEASE, Release

__all__ = ["add_gates"]


def add_gates(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add.set_defaults(command=gates_command)
    add_kueue(add, sources="")
    add.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="use colours; by default only on a terminal",
    )


def gates_command(options: argparse.Namespace) -> int:
    """Run `kueuecore gates`; returns the exit code."""
    release = asked_release(options.kueue) or Release.named(DEFAULT_RELEASE)
    rows = [[gate.name, "on" if gate.default else "off", gate.stage, gate.what] for gate in release.feature_gates()]
    write(table(["GATE", "DEFAULT", "STAGE", "WHAT IT DOES"], rows, Style.of(output(), options.color)) + "\n")
    return ExitCode.OK
