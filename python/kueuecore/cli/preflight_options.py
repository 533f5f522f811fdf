"""The options of `kueuecore serve --preflight`."""

from __future__ import annotations

import argparse

__all__ = ["add_preflight", "check_preflight"]


def add_preflight(add: argparse.ArgumentParser) -> None:
    """Add `--preflight` and what goes with it."""
    looks = add.add_argument_group("preflight")
    help_text = "only say what stands in the way in this cluster; with the commands that mend it; writes nothing"
    looks.add_argument("--preflight", action="store_true", help=help_text)
    help_text = "ask about the rights of this user, such as a service account; by default, of the credentials"
    looks.add_argument("--as", dest="user", metavar="USER", help=help_text)
    help_text = "how to show what it has found; by default as a table"
    looks.add_argument("-o", "--output", choices=["table", "json"], help=help_text)


def check_preflight(options: argparse.Namespace) -> None:
    """Check that the options go together.

    Raises:
        ValueError: They do not.
    """
    if options.preflight and options.dry_run:
        raise ValueError("--preflight looks at what running in Kueue's place needs: leave out --dry-run")
    for name, option in (("--as", options.user), ("--output", options.output)):
        if option is not None and not options.preflight:
            raise ValueError(f"{name} is for --preflight: add that, or leave it out")
