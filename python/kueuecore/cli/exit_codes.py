"""Exit codes of the command."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

__all__ = ["ExitCode", "exit_code_help"]


class ExitCode(IntEnum):
    """The exit code of the command."""

    OK = 0
    PENDING = 1
    FOUND = 1
    BAD_INPUT = 2
    UNSETTLED = 3
    UNDECIDED = 4
    UNAVAILABLE = 69
    BUG = 70
    UNWRITABLE = 74
    INTERRUPTED = 130
    BROKEN_PIPE = 141

    @property
    def meaning(self) -> str:
        """What the code means, for each command if not for all."""
        if self in _FOR_ALL:
            return _FOR_ALL[self]
        return "; ".join(f"{', '.join(commands)}: {meaning}" for commands, meaning in _BY_COMMANDS[self].items())

    def meaning_for(self, command: str) -> str:
        """What it means that a command ends with this code, in a few words; empty if it never does.

        Args:
            command: The name of the command.
        """
        if self in _BY_COMMANDS:
            return next((it for commands, it in _BY_COMMANDS[self].items() if command in commands), "")
        if self is ExitCode.BAD_INPUT and command in _WITHOUT_OBJECTS:
            return "wrong usage"
        return "success" if self is ExitCode.OK and command not in _RUNS else _FOR_ALL[self]


_RUNS = ("run", "simulate", "what-if")
_REVISIONS = ("diff", "upgrade")
_WITHOUT_OBJECTS = ("completion", "gates")

_FOR_ALL = {
    ExitCode.OK: "success, even if workloads are pending",
    ExitCode.BAD_INPUT: "wrong usage, or objects that an API server with Kueue would reject",
    ExitCode.BUG: "a bug in kueuecore",
    ExitCode.UNWRITABLE: "the output or a file cannot be written, for example because the disk is full",
    ExitCode.INTERRUPTED: "interrupted with Ctrl-C",
    ExitCode.BROKEN_PIPE: "the reader of the output closed the pipe",
}

_BY_COMMANDS: Mapping[ExitCode, Mapping[tuple[str, ...], str]] = {
    ExitCode.FOUND: {
        (*_RUNS, "explain", "unblock"): "a workload is pending, or a job has no Workload yet (with --fail-on-pending)",
        ("compare", *_REVISIONS): "something differs (with --fail-on-difference)",
        ("check",): "a finding is at least as severe as --fail-on",
        ("test",): "a policy test failed, or too few rules are exercised",
        ("prove",): "a counterexample is at least as severe as --fail-on, or breaks what --property names",
        ("plan",): "no quota meets the target",
        ("anonymise",): "the anonymised dump leads to other decisions",
        ("serve",): "something is in the way (with --preflight)",
    },
    ExitCode.UNSETTLED: {
        (*_RUNS, *_REVISIONS): "it never settles: workloads keep evicting each other, or a fleet keeps changing"
    },
    ExitCode.UNDECIDED: {
        (
            "run",
            "what-if",
            *_REVISIONS,
        ): "a workload is undecided: it uses a feature that kueuecore does not support yet"
    },
    ExitCode.UNAVAILABLE: {
        ("serve",): "an address is in use, the Lease was lost, or a thread died; with --preflight: no API server",
        ("ui", "mcp"): "an address is in use",
    },
}


def exit_code_help(command: str) -> str:
    """Return the lines on exit codes at the end of a command's help.

    Args:
        command: The name of the command.
    """
    meanings = ((code, code.meaning_for(command)) for code in ExitCode)
    return "\n".join(f"  {code.value:<4} {meaning}" for code, meaning in meanings if meaning)
