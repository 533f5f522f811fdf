"""The commands, a file each, and the reader of arguments, which imports only the one that they name."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from importlib import import_module

from kueuecore._near_names import near_names
from kueuecore._text import shown
from kueuecore.cli.exit_codes import ExitCode, exit_code_help
from kueuecore.cli.streams import to_stderr, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, Protocol

    from _typeshed import SupportsWrite

    class _Command(Protocol):
        """The module of a command."""

        DESCRIPTION: str
        EXAMPLES: str

        def add_arguments(self, add: argparse.ArgumentParser) -> None: ...

        def run(self, options: argparse.Namespace) -> int:
            """Run the command; returns its exit code."""


__all__ = ["PROGRAM", "CommandFormatter", "alone_parser", "command_lines", "parsed", "whole_parser"]

PROGRAM = "kueuecore"
"""How the command is called, unless kubectl calls it."""

_DESCRIPTION = """\
Shows what Kueue would decide about manifests or about a cluster: which workloads get quota, from
which flavors, and why the others wait. It only reads; `serve` alone writes."""

# Each command with its line in the help. Its module beside this one has its name.
_COMMANDS = {
    "run": "show what Kueue would do with the workloads of a cluster or of manifests",
    "simulate": "run a scenario in virtual time and show how long jobs wait",
    "check": "find mistakes that an API server accepts",
    "test": "run policy tests",
    "prove": "search a configuration for workloads that loop, starve, or break a promise",
    "diff": "show which decisions a change of manifests changes",
    "upgrade": "show which decisions another release of Kueue changes, and why",
    "compare": "compare how long jobs wait under two or more configurations",
    "sweep": "run one scenario under many configurations: a grid, or random points",
    "explain": "explain why a workload waits, or why it is where it is",
    "history": "show what has happened to a workload, step by step",
    "what-if": "show what would happen to a job, or what a change would move",
    "unblock": "find the smallest changes that would admit a waiting workload",
    "eta": "forecast when waiting workloads will be admitted",
    "plan": "find the smallest quota that keeps waits short",
    "ui": "show a state in the browser",
    "dump": "write the state of a cluster to one file",
    "anonymise": "remove names from a dump without changing its decisions",
    "shrink": "shrink a dump to the smallest that still shows a decision",
    "convert": "write manifests with Kueue's own kinds in the newest version",
    "serve": "schedule the jobs of a cluster",
    "mcp": "answer agents over the Model Context Protocol",
    "completion": "print a shell completion script",
    "gates": "list Kueue's feature gates, their defaults and what they do",
}


def parsed(arguments: Sequence[str], program: str = PROGRAM) -> argparse.Namespace:
    """Read the arguments; `command` of the result runs the command.

    Args:
        arguments: The arguments.
        program: What usage lines begin with.

    Raises:
        SystemExit: They ask for help or the version, which has been printed, or are wrong, which has been reported.
    """
    if arguments and arguments[0] == "help":
        arguments = (*arguments[1:2], "--help")
    first = next((index for index, argument in enumerate(arguments) if not argument.startswith("-")), len(arguments))
    name = arguments[first] if first < len(arguments) else ""
    if first or name not in _COMMANDS:
        # Prints help or the version, or reports what is wrong.
        front = _front(program)
        front.parse_known_args(arguments[: first + 1])
        if first:
            front.refuse(arguments[:first])
        front.error("the following arguments are required: COMMAND")
    return alone_parser(name, program).parse_anywhere(arguments[first + 1 :])


def whole_parser(program: str = PROGRAM) -> argparse.ArgumentParser:
    """Return the parser with all commands and their arguments.

    Args:
        program: Its name.
    """
    return _front(program, with_arguments=True)


def alone_parser(name: str, program: str = PROGRAM) -> _CommandParser:
    """Return the parser of what follows a command.

    Args:
        name: The command.
        program: What usage lines begin with.
    """
    parser = _CommandParser(prog=f"{program} {name}")
    _define(name, parser)
    return parser


def command_lines() -> dict[str, str]:
    """Return the commands, each with its line in the help."""
    return dict(_COMMANDS)


class CommandFormatter(argparse.RawDescriptionHelpFormatter):
    """A usage that leaves options to their own lines: with dozens of them it says little."""

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[argparse._MutuallyExclusiveGroup],
        prefix: str | None = None,
    ) -> None:
        """Add the usage, with the arguments and the options that have to be given."""
        needed = [group for group in groups if group.required]
        in_groups = [action for group in needed for action in group._group_actions]
        shown = [it for it in actions if not it.option_strings or it.required or it in in_groups]
        super().add_usage(usage, shown, needed, prefix)

    def _format_usage(self, usage: str | None, *arguments: Any) -> str:
        text = super()._format_usage(usage, *arguments)
        return text.replace(self._prog, f"{self._prog} [OPTION ...]", 1) if usage is None else text


class _Parser(argparse.ArgumentParser):
    """A parser that copes with closed streams, escapes what the user typed, and suggests what may be meant."""

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        if file is not None:
            super().print_help(file)
        else:
            write(self.format_help())

    def error(self, message: str) -> NoReturn:
        to_stderr(*self.format_usage().splitlines(), f"{self.prog}: error: {shown(message)}")
        raise SystemExit(ExitCode.BAD_INPUT)

    def parse_anywhere(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse arguments in which options may stand between positional ones."""
        options, unknown = self.parse_known_intermixed_args(arguments)
        if unknown:
            self.refuse(unknown)
        return options

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Report arguments that nothing takes."""
        known = [action for action in self._option_string_actions if action.startswith("--")]
        given = (name.partition("=")[0] for name in unknown if name.startswith("-"))
        hint = next(filter(None, (_meant(name, known) for name in given)), "")
        self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        # Python 3.11 drops `--` even as the value of an option: `--delete=--`.
        if action.option_strings and action.nargs is None and arg_strings == ["--"]:
            value = self._get_value(action, "--")
            self._check_value(action, value)
            return value
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            choices = list(map(str, action.choices))
            message = f"invalid choice: {value!r} (choose from {', '.join(map(repr, choices))})"
            raise argparse.ArgumentError(action, message + _meant(str(value), choices))


class _CommandParser(_Parser):
    """The parser of what follows a command, with a short help and a whole one, which few runs have to make."""

    def __init__(self, *, prog: str, **others: Any) -> None:
        # Python 3.14 passes more.
        super().__init__(prog=prog, add_help=False, formatter_class=CommandFormatter, **others)
        self.examples, self.exit_codes = "", ""
        self.add_argument("-h", "--help", action=_ShowHelp, nargs=0, help="show a short help and exit")
        self.add_argument(
            "--help-all", action=_ShowHelp, nargs=0, help="show this help, with all about each option, and exit"
        )

    def format_help(self) -> str:
        """Return the whole help."""
        from kueuecore.cli.help_pages import whole_help

        return whole_help(self, examples=self.examples, exit_codes=self.exit_codes)

    def format_short_help(self) -> str:
        """Return the help that fits a screen."""
        from kueuecore.cli.help_pages import short_help

        return short_help(self, examples=self.examples, exit_codes=self.exit_codes)


class _ShowHelp(argparse.Action):
    def __call__(
        self, parser: argparse.ArgumentParser, _: object, __: object, option_string: str | None = None
    ) -> None:
        if isinstance(parser, _CommandParser) and option_string != "--help-all":
            write(parser.format_short_help())
        else:
            write(parser.format_help())
        parser.exit()


def _meant(given: str, known: Iterable[str]) -> str:
    near = near_names(given, known)
    return f"; did you mean {near[0]}?" if near else ""


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from kueuecore.version import DEFAULT_RELEASE, release_rows, version

        lines: dict[str, list[str]] = {}
        at = ""
        for row in release_rows():
            lines.setdefault(row["line"], []).append(row["name"])
            if row["name"] == DEFAULT_RELEASE and row["commit"]:
                at = f" at commit {row['commit']}"
        write(f"kueuecore {version()}, which decides as Kueue v{DEFAULT_RELEASE}{at}; with --kueue as one of\n")
        write("".join(f"  {', '.join(names)}\n" for names in reversed(lines.values())))
        parser.exit()


def _front(program: str, *, with_arguments: bool = False) -> _Parser:
    """The parser of what stands before the command, which knows the names of all commands.

    Args:
        program: Its name.
        with_arguments: Add the arguments of the commands, for which their modules are imported?
    """
    parser = _Parser(prog=program, description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="show this version, and the releases of Kueue that it decides as"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_CommandParser)
    for name, what in _COMMANDS.items():
        add = commands.add_parser(name, help=what)
        if with_arguments:
            _define(name, add)
    return parser


def _define(name: str, add: _CommandParser) -> None:
    """Import a command, and add its arguments to a parser."""
    command: _Command = import_module(f"kueuecore.cli.commands.{name.replace('-', '_')}")
    add.description = command.DESCRIPTION
    add.examples, add.exit_codes = command.EXAMPLES, exit_code_help(name)
    add.set_defaults(command=command.run, source=None, given=None)
    command.add_arguments(add)
