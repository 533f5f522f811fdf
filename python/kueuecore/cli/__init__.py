"""The `kueuecore` command: shows what Kueue would decide about some manifests, without a cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kueuecore._text import counted, shown
from kueuecore.cli.commands import PROGRAM, parsed
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.streams import OutputError, to_stderr

__all__ = ["ExitCode", "main"]


TYPE_CHECKING = False
if TYPE_CHECKING:
    from kueuecore.cli.state_source import StateSource


def main(
    arguments: Sequence[str] | None = None,
    *,
    source: StateSource | None = None,
    given: str | None = None,
    program: str = PROGRAM,
) -> int:
    """Run the command.

    Args:
        arguments: The arguments; by default `sys.argv[1:]`.
        source: The state of the command, if its arguments name none.
        given: What `-` stands for; by default standard input.
        program: How the user has called it: what usage lines begin with.

    Returns:
        The exit code, one of `ExitCode`.
    """
    try:
        return _main(sys.argv[1:] if arguments is None else arguments, source, given, program)
    except OutputError as error:
        if not error.has_reader:
            return ExitCode.BROKEN_PIPE
        to_stderr(f"kueuecore: cannot write {shown(error.what)}: {error}")
        return ExitCode.UNWRITABLE
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Exception as error:
        return _failed(error)


def _main(arguments: Sequence[str], source: StateSource | None, given: str | None, program: str) -> int:
    try:
        options = parsed(arguments, program)
    except SystemExit as end:  # --help, --version, or wrong usage, which argparse has already reported
        return end.code if isinstance(end.code, int) else ExitCode.OK
    options.source, options.given, options.program = source, given, program
    if source is not None:
        vars(options).update(source.settings)
        # Whoever asks a state that is open has it as a whole.
        options.all_namespaces = not getattr(options, "namespace", "")
    try:
        code: int = options.command(options)
    finally:
        if source is None and options.source is not None:
            options.source.close()
    return code


def _failed(error: Exception) -> ExitCode:
    """Report wrong input, or a bug."""
    import traceback

    from kueuecore.errors import ManifestError

    if isinstance(error, ManifestError):
        to_stderr(
            *map(str, error.problems),
            *(f"warning: {warning}" for warning in error.warnings),
            f"kueuecore: {counted(len(error.problems), 'problem')}, nothing was decided",
        )
        return ExitCode.BAD_INPUT
    to_stderr(*traceback.format_exc().splitlines(), "kueuecore: this is a bug, please report it")
    return ExitCode.BUG
