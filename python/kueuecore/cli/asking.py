"""Asks many questions about one state: runs commands on it in this process, and returns what they print."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from kueuecore._json import JsonObject
from kueuecore.cli import main
from kueuecore.cli.state_source import StateSource
from kueuecore.cli.streams import captured

__all__ = ["Answered", "ask"]


@dataclass(frozen=True, slots=True)
class Answered:
    """What a command has said.

    Args:
        code: Its exit code.
        text: Its standard output.
        lines: Its standard error: notes and warnings, or why there is no answer.
        command: The command that gives the same answer.
    """

    code: int
    text: str
    lines: tuple[str, ...]
    command: str

    @property
    def document(self) -> JsonObject:
        """The standard output as JSON: that of `-o json`; empty if there is none."""
        found = json.loads(self.text) if self.text.startswith("{") else {}
        assert isinstance(found, dict), "a document is an object"
        return found


def ask(source: StateSource | None, command: str, *arguments: str, given: str = "") -> Answered:
    """Run a command on a state that was read before. Safe to call from several threads.

    Args:
        source: The state; `None` for a command without one.
        command: Its name, such as `explain`.
        arguments: Its arguments without those that name the state; with `-o json` the answer has a document.
        given: What `-` stands for among them.

    Returns:
        What it printed, also for wrong arguments and questions without an answer, with the exit code.
    """
    with captured() as said:
        code = main([command, *arguments], source=source, given=given)
    return Answered(code, said.out, tuple(said.err.splitlines()), _command(source, command, arguments))


def _command(source: StateSource | None, command: str, arguments: Sequence[str]) -> str:
    return shlex.join(["kueuecore", command, *(source.arguments if source else ()), *arguments])
