"""`kueuecore completion`: a script with which a shell completes the command."""

from __future__ import annotations

import argparse
from typing import Any

from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.streams import write
from kueuecore.errors import ManifestError

__all__ = ["add_completion"]

_EPILOG = """\
examples:
  source <(kueuecore completion bash)                                      this shell
  kueuecore completion bash > ~/.local/share/bash-completion/completions/kueuecore
  kueuecore completion zsh > "${fpath[1]}/_kueuecore"
"""
_SHELLS = ("bash", "fish", "powershell", "tcsh", "zsh")


def add_completion(commands: argparse._SubParsersAction[Any], parser: argparse.ArgumentParser) -> None:
    """Add the command to the parser.

    Args:
        commands: Where to.
        parser: The whole parser, with all commands.
    """
    add = commands.add_parser(
        "completion",
        help="a script with which a shell completes the command",
        description="Writes a script for a shell to standard output; takes the extra `completion`.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add.add_argument("shell", choices=_SHELLS, help="the shell")
    add.set_defaults(command=lambda options: completion(parser, options.shell))


def completion(parser: argparse.ArgumentParser, shell: str) -> int:
    """Write the script of a shell; returns the exit code.

    Raises:
        ManifestError: The extra is not there.
    """
    try:
        import shtab
    except ImportError:
        remedy = "pip install 'kueuecore[completion]'"
        raise ManifestError.of("completion takes the extra `completion`", remedy=remedy) from None
    _complete_files(parser, shtab.FILE)
    write(shtab.complete(parser, shell=shell))
    return ExitCode.OK


def _complete_files(parser: argparse.ArgumentParser, file: object) -> None:
    """Let every argument that is a file complete to one."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command, file)
        elif action.metavar in ("FILE", "PATH", "STATE", "SCENARIO", "DIR", "A", "B"):
            action.complete = file  # type: ignore[attr-defined]
