"""What may follow in a command line, for kubectl, which completes the arguments of plugins with it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from enum import IntEnum

from kueuecore.cli.commands import alone_parser, command_lines

__all__ = ["FILES", "completion_lines"]

FILES = ("FILE", "PATH", "STATE", "SCENARIO", "DIR", "A", "B")
"""Names of arguments that are files or directories."""


class _Directive(IntEnum):
    """What the shell does beyond the choices; kubectl takes these numbers from Cobra."""

    ALSO_FILES = 0
    NOTHING_ELSE = 4


def completion_lines(words: Sequence[str]) -> list[str]:
    """Return the lines that kubectl reads from `kubectl_complete-kueuecore`: choices, and what the shell adds.

    Args:
        words: The words after `kubectl kueuecore`; the last one is being typed, and may be empty.

    Returns:
        Choices, each with a tab and what it is, where that is known; at the end a colon and a number.
    """
    *before, typed = words or [""]
    if not before:
        choices = [f"{name}\t{line}" for name, line in command_lines().items()]
        return _lines(choices, typed, _Directive.NOTHING_ELSE)
    name, *given = before
    if name not in command_lines():
        return _lines([], typed, _Directive.NOTHING_ELSE)
    parser = alone_parser(name)
    option, equals, value = typed.partition("=")
    if equals and option.startswith("--"):
        choices, directive = _values(_option(parser, option))
        return _lines([f"{option}={choice}" for choice in choices], f"{option}={value}", directive)
    awaited = _option(parser, given[-1]) if given else None
    if awaited is not None and awaited.nargs != 0:
        choices, directive = _values(awaited)
    elif typed.startswith("-"):
        choices, directive = list(_options(parser)), _Directive.NOTHING_ELSE
    else:
        choices, directive = _positional(parser, given)
    return _lines(choices, typed, directive)


def _lines(choices: Sequence[str], typed: str, directive: _Directive) -> list[str]:
    return [*(choice for choice in choices if choice.startswith(typed)), f":{directive.value}"]


def _option(parser: argparse.ArgumentParser, word: str) -> argparse.Action | None:
    return parser._option_string_actions.get(word)


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for name, action in parser._option_string_actions.items():
        if action.help is not argparse.SUPPRESS:
            line = " ".join((action.help or "").split()).replace("%%", "%")
            yield f"{name}\t{line}"


def _values(action: argparse.Action | None) -> tuple[list[str], _Directive]:
    """What the value of an argument may be."""
    if action is None:
        return [], _Directive.NOTHING_ELSE
    choices = list(map(str, action.choices or ()))
    is_file = not choices and action.metavar in FILES
    return choices, _Directive.ALSO_FILES if is_file else _Directive.NOTHING_ELSE


def _positional(parser: argparse.ArgumentParser, given: Sequence[str]) -> tuple[list[str], _Directive]:
    """What the next argument that is no option may be."""
    n_before, is_value = 0, False
    for word in given:
        action = _option(parser, word)
        if not is_value and not word.startswith("-"):
            n_before += 1
        is_value = action is not None and action.nargs != 0
    actions = parser._get_positional_actions()
    choices, directive = _values(actions[min(n_before, len(actions) - 1)] if actions else None)
    # Any number of files may come before the last argument.
    takes_files = any(action.metavar in FILES and action.nargs in ("*", "+") for action in actions)
    return choices, _Directive.ALSO_FILES if takes_files and not choices else directive
