"""The options of `kueuecore test` for coverage."""

from __future__ import annotations

import argparse
import os
import re
from fractions import Fraction
from pathlib import Path

from kueuecore.cli.study_options import count
from kueuecore.errors import ManifestError

__all__ = ["add_coverage", "check_coverage_options"]

# As pytest-cov names it.
_LCOV = "coverage.lcov"


def add_coverage(add: argparse.ArgumentParser) -> None:
    """Add `--coverage` and what goes with it."""
    group = add.add_argument_group("coverage")
    help_text = "show which rules of the configuration the tests depend on; by file and line"
    group.add_argument("--coverage", action="store_true", help=help_text)
    help_text = f"write it as LCOV too, as pytest-cov's --cov-report does; FILE is by default {_LCOV}"
    group.add_argument("--coverage-report", metavar="lcov[:FILE]", type=_report, help=help_text)
    help_text = "exit with 1 if less than this part of the rules is exercised"
    group.add_argument("--fail-under", metavar="PERCENT", type=_percent, help=help_text)
    help_text = "number of processes for coverage; by default one per core"
    group.add_argument("--workers", metavar="N", type=count, default=os.cpu_count() or 1, help=help_text)


def check_coverage_options(options: argparse.Namespace) -> None:
    """Check that no option asks for something about coverage that is not measured.

    Raises:
        ManifestError: One does.
    """
    given = {"--coverage-report": options.coverage_report, "--fail-under": options.fail_under}
    for option, value in given.items():
        if value is not None and not options.coverage:
            raise ManifestError.of("coverage is not measured", field=option, remedy="add --coverage")


def _report(text: str) -> Path:
    kind, _, file = text.partition(":")
    if kind != "lcov":
        raise argparse.ArgumentTypeError(f"{text!r} is not lcov or lcov:FILE; for JSON write -o json")
    return Path(file or _LCOV)


def _percent(text: str) -> Fraction:
    if re.fullmatch(r"[0-9]{1,3}(?:\.[0-9]{1,6})?%?", text, re.ASCII):
        percent = Fraction(text.removesuffix("%"))
        if percent <= 100:
            return percent
    raise argparse.ArgumentTypeError(f"{text!r} is not a percentage from 0 to 100")
