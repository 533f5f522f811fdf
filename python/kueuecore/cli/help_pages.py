"""What `--help` and `--help-all` of a command print."""

from __future__ import annotations

import argparse
import re
from textwrap import wrap

from kueuecore.cli.commands import CommandFormatter

__all__ = ["NAMED", "short_help", "whole_help"]

NAMED = frozenset(
    {
        # the cluster
        *("--kubeconfig", "--context", "--server", "--namespace", "--all-namespaces"),
        # how the input is read, and how is decided about it
        *("--recursive", "--config", "--feature-gates", "--kueue", "--now", "--trusted", "--namespace-labels"),
        *("--assume-checks-active", "--strict", "--for", "--allow-code", "--experiment"),
        *("--history-queue", "--history-rules"),
        # how the answer is made and shown
        *("--workers", "--quantiles", "--summary", "--color", "--no-color", "--quiet"),
        # how `serve` runs, for most of which its Configuration has fields
        *("--multikueue-policy", "--forecast-every"),
        *("--leader-elect", "--log-level", "--metrics-address", "--metrics-cert-path", "--metrics-secure"),
        *("--health-address", "--visibility-address", "--visibility-cert-path"),
    }
)
"""Options that the short help only names: most commands take them, or few runs need them."""

_OF_HELP = frozenset({"--help", "--help-all"})
_MOST_EXAMPLES = 2
_END_OF_CLAUSE = re.compile(r"; (?![^(]*\))")


class _Whole(CommandFormatter):
    """Help with everything about each option."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        # As Python 3.13 does it: the value once, after all names.
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


class _Short(_Whole):
    """The first paragraph about the command and the first clause about each option."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34)

    def _expand_help(self, action: argparse.Action) -> str:
        text = " ".join(super()._expand_help(action).split())
        # What stands for a missing argument is to be known: mostly the cluster.
        return _END_OF_CLAUSE.split(text, maxsplit=1)[0] if action.option_strings else text

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        text = text.partition("\n\n")[0]
        return "\n".join(wrap(" ".join(text.split()), width, initial_indent=indent, subsequent_indent=indent))


def whole_help(parser: argparse.ArgumentParser, *, examples: str, exit_codes: str) -> str:
    """Return the help of a command with all that there is to say about each option.

    Args:
        parser: The parser of the command.
        examples: Its examples.
        exit_codes: The lines about its exit codes.
    """
    shape = _Whole(parser.prog)
    shape.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups)
    shape.add_text(parser.description)
    for group in parser._action_groups:
        shape.start_section(group.title)
        shape.add_text(group.description)
        shape.add_arguments(group._group_actions)
        shape.end_section()
    return f"{shape.format_help()}\nexamples:\n{examples}\nexit codes:\n{exit_codes}\n"


def short_help(parser: argparse.ArgumentParser, *, examples: str, exit_codes: str) -> str:
    """Return the help of a command that fits a screen: what it has of its own, and the names of what most take.

    Args:
        parser: The parser of the command.
        examples: Its examples, of which the first are shown.
        exit_codes: The lines about its exit codes.
    """
    shape = _Short(parser.prog)
    shape.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups)
    shape.add_text(parser.description)
    named: dict[str, list[argparse.Action]] = {}
    for group in parser._action_groups:
        own = []
        for action in group._group_actions:
            if NAMED.intersection(action.option_strings):
                named.setdefault((group.title or "").partition(";")[0], []).append(action)
            elif not _OF_HELP.intersection(action.option_strings):
                own.append(action)
        shape.start_section(group.title)
        shape.add_arguments(own)
        shape.end_section()
    everything = f"`{parser.prog} --help-all`"
    more = f"{everything} says more about each option."
    if named:
        more = f"more options; {everything} says what each does:\n{_rows(named, shape._width)}"
    return f"{shape.format_help()}\n{more}\n\nexamples:\n{_first_examples(examples)}\n\nexit codes:\n{exit_codes}\n"


def _rows(named: dict[str, list[argparse.Action]], width: int) -> str:
    """Lines with the names of options, by group."""
    column = max(map(len, named)) + 4
    lines: list[str] = []
    for title, actions in named.items():
        # A name and its short form stay on one line.
        names = ", ".join("/".join(action.option_strings) for action in actions)
        lines += wrap(
            names,
            width,
            initial_indent=f"  {title}".ljust(column),
            subsequent_indent=" " * column,
            break_on_hyphens=False,
            break_long_words=False,
        )
    return "\n".join(lines)


def _first_examples(examples: str) -> str:
    lines: list[str] = []
    n_shown = 0
    for line in examples.rstrip("\n").splitlines():
        # A command may go on in the next lines, which are indented further.
        n_shown += not line.startswith("    ")
        if n_shown > _MOST_EXAMPLES:
            break
        lines.append(line)
    return "\n".join(lines)
