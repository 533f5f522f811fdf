"""`kueuecore completion`: prints a shell completion script."""

from __future__ import annotations

import argparse

from kueuecore.cli.commands import whole_parser
from kueuecore.cli.completions import FILES
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.streams import write
from kueuecore.errors import ManifestError

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Writes a completion script to standard output; needs the extra `completion`. `kubectl-kueuecore completion bash`
writes that of kubectl-kueuecore. `kubectl kueuecore` needs none: kubectl asks kubectl_complete-kueuecore."""

EXAMPLES = """\
  source <(kueuecore completion bash)                                      for this shell only
  kueuecore completion bash > ~/.local/share/bash-completion/completions/kueuecore
  kueuecore completion zsh > "${fpath[1]}/_kueuecore"
"""
_SHELLS = ("bash", "fish", "powershell", "tcsh", "zsh")


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add.add_argument("shell", choices=_SHELLS, help="the shell")


def run(options: argparse.Namespace) -> int:
    """Write the completion script for a shell; returns the exit code.

    Raises:
        ManifestError: The extra `completion` is not installed.
    """
    try:
        import shtab
    except ImportError:
        remedy = "pip install 'kueuecore[completion]'"
        raise ManifestError.of("completion needs the extra `completion`", remedy=remedy) from None
    parser = whole_parser(options.program.replace(" ", "-"))
    _complete_files(parser, shtab.FILE)
    write(shtab.complete(parser, shell=options.shell))
    return ExitCode.OK


def _complete_files(parser: argparse.ArgumentParser, file: object) -> None:
    """Make every argument that is a file complete to file names."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command, file)
        elif action.metavar in FILES:
            action.complete = file  # type: ignore[attr-defined]
