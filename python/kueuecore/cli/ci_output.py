"""What commands write for CI systems: annotations, and a summary in Markdown that is appended to a file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kueuecore.cli.streams import OutputError, write
from kueuecore.errors import ManifestError, Problem

__all__ = ["add_summary", "append_summary", "problems_in_ci", "report_in_ci"]

_HELP = "append a summary in Markdown to this file; such as $GITHUB_STEP_SUMMARY"


def add_summary(out: argparse._ArgumentGroup) -> None:
    """Add `--summary`."""
    out.add_argument("--summary", type=Path, metavar="FILE", help=_HELP)


def append_summary(path: Path, text: str) -> None:
    """Append Markdown to a file, which others may have written to.

    Args:
        path: The file.
        text: The Markdown.

    Raises:
        OutputError: It cannot be written.
    """
    try:
        with path.open("ab") as file:
            file.write(f"{text.rstrip()}\n\n".encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise OutputError(error.strerror or str(error), what=str(path)) from None


def report_in_ci(options: argparse.Namespace, what: str, text: str, report: Callable[[], str]) -> None:
    """Write the output of a command, and its report as a summary.

    Args:
        options: `output` and `summary`.
        what: The command, as in `kueuecore upgrade`.
        text: The output; with `-o github` it is the first line of the report that is written.
        report: Makes the report: plain text whose first line says it all.

    Raises:
        OutputError: The output or the summary cannot be written.
    """
    if options.output != "github" and options.summary is None:
        write(text)
        return
    from kueuecore.cli.github import github_command
    from kueuecore.cli.markdown import report_summary
    from kueuecore.cli.output_files import write_with_files

    said = report()
    first, _, rest = said.partition("\n")
    if options.output == "github":
        text = github_command("notice", first, title=what) + "\n"
    summary = report_summary(f"{what}: {first}", rest.strip("\n"))
    path: Path | None = options.summary
    write_with_files(text, [] if path is None else [lambda: append_summary(path, summary)])


@contextmanager
def problems_in_ci(options: argparse.Namespace, what: str) -> Iterator[None]:
    """Annotate and summarise what is wrong with the input of a command, which is then reported as everywhere.

    Args:
        options: `output` and `summary`.
        what: The command, as in `kueuecore check`.

    Raises:
        ManifestError: The summary cannot be written, which is tried first; or the command has raised it.
    """
    if options.summary is not None:
        _check_summary(options.summary)
    try:
        yield
    except ManifestError as error:
        if options.output == "github":
            from kueuecore.cli.github import github_command

            # Its place is that of the annotation.
            lines = (
                github_command("error", _without_place(problem), title=what, file=problem.file, line=problem.line)
                for problem in error.problems
            )
            write("".join(f"{line}\n" for line in lines))
        if options.summary is not None:
            append_summary(options.summary, _summary(what, error.problems))
        raise


def _check_summary(path: Path) -> None:
    """Check before a long run that a summary can be written."""
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        message = f"--summary: cannot be written: {error.strerror or error}"
        raise ManifestError.of(message, remedy="name a file in a writable folder", file=str(path)) from None


def _without_place(problem: Problem) -> str:
    return str(problem).removeprefix(f"{problem.place}: ")


def _summary(what: str, problems: Sequence[Problem]) -> str:
    from kueuecore._text import counted
    from kueuecore.cli.markdown import MAX_ROWS, more_rows, report_summary

    lines = [str(problem) for problem in problems[:MAX_ROWS]]
    more = more_rows(len(problems))
    title = f"{what}: {counted(len(problems), 'problem')}, nothing was decided"
    return report_summary(title, "\n".join([*lines, more] if more else lines))
