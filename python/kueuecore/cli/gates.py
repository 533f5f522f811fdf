"""`kueuecore gates`: lists Kueue's feature gates."""

from __future__ import annotations

import argparse

from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.streams import output, write
from kueuecore.cli.table import Style, table
from kueuecore.configuration import feature_gates

__all__ = ["add_gates"]


def add_gates(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add.set_defaults(command=gates_command)
    add.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="use colours; by default only on a terminal",
    )


def gates_command(options: argparse.Namespace) -> int:
    """Run `kueuecore gates`; returns the exit code."""
    rows = [[gate.name, "on" if gate.default else "off", gate.stage, gate.what] for gate in feature_gates()]
    write(table(["GATE", "DEFAULT", "STAGE", "WHAT IT DOES"], rows, Style.of(output(), options.color)) + "\n")
    return ExitCode.OK
