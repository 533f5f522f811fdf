"""The release of Kueue that a command decides as: `--kueue`, or else the environment variable KUEUECORE_KUEUE."""

from __future__ import annotations

import argparse
import os

from kueuecore.errors import ConfigurationError
from kueuecore.releases import DEFAULT_RELEASE, Release, UnknownReleaseError

__all__ = ["VARIABLE", "add_kueue", "asked_release"]

VARIABLE = "KUEUECORE_KUEUE"
"""The environment variable that says as which release to decide where no option does."""


def add_kueue(
    given: argparse.ArgumentParser | argparse._ArgumentGroup, *, over: str = "", sources: str = "the objects"
) -> None:
    """Add `--kueue`.

    Args:
        given: Where to add it.
        over: The field of a file that says the same, and that it replaces.
        sources: What else may say it, if nothing is asked for.
    """
    defaults = filter(None, (f"`{over}`" if over else "", f"${VARIABLE}", sources))
    help_text = (
        "decide as this release of Kueue, such as 0.17 or 0.17.3; by default that of "
        f"{', else of '.join(defaults)}, else {DEFAULT_RELEASE}; `kueuecore --version` lists all"
    )
    given.add_argument("--kueue", metavar="VERSION", type=_release, help=help_text)


def asked_release(option: Release | None) -> Release | None:
    """Return the release of `--kueue`, or else of the environment variable; `None` if neither says one.

    Raises:
        ConfigurationError: The environment variable names none that is known.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if option is not None or not text:
        return option
    try:
        return Release.named(text)
    except UnknownReleaseError as error:
        raise ConfigurationError.of(str(error), field=VARIABLE) from None


def _release(text: str) -> Release:
    try:
        return Release.named(text)
    except UnknownReleaseError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
