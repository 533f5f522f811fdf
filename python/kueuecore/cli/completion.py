"""`kueuecore completion`: prints a shell completion script."""

from __future__ import annotations

import argparse
from typing import Any

from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.streams import write
from kueuecore.errors import ManifestError

__all__ = ["add_completion"]

_EPILOG = """\
examples:
  source <(kueuecore completion bash)                                      for this shell only
  kueuecore completion bash > ~/.local/share/bash-completion/completions/kueuecore
  kueuecore completion zsh > "${fpath[1]}/_kueuecore"
"""
_SHELLS = ("bash", "fish", "powershell", "tcsh", "zsh")


def add_completion(commands: argparse._SubParsersAction[Any], parser: argparse.ArgumentParser) -> None:
    """Add the command to the parser.

    Args:
        commands: The subcommands to add it to.
        parser: The whole parser, with all commands.
    """
    add = commands.add_parser(
        "completion",
        help="print a shell completion script",
        description="Writes a completion script to standard output; needs the extra `completion`.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add.add_argument("shell", choices=_SHELLS, help="the shell")
    add.set_defaults(command=lambda options: completion(parser, options.shell))


def completion(parser: argparse.ArgumentParser, shell: str) -> int:
    """Write the completion script for a shell; returns the exit code.

    Raises:
        ManifestError: The extra `completion` is not installed.
    """
    try:
        import shtab
    except ImportError:
        remedy = "pip install 'kueuecore[completion]'"
        raise ManifestError.of("completion needs the extra `completion`", remedy=remedy) from None
    _complete_files(parser, shtab.FILE)
    write(shtab.complete(parser, shell=shell))
    return ExitCode.OK


def _complete_files(parser: argparse.ArgumentParser, file: object) -> None:
    """Make every argument that is a file complete to file names."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command, file)
        elif action.metavar in ("FILE", "PATH", "STATE", "SCENARIO", "DIR", "A", "B"):
            action.complete = file  # type: ignore[attr-defined]
