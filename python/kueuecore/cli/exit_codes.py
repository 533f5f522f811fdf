"""Exit codes of the command."""

from __future__ import annotations

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
        """What the code means, in a few words."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "success, even if workloads are pending",
    ExitCode.PENDING: "a workload is pending, or a job has no Workload yet (with --fail-on-pending); two "
    "configurations differ (with --fail-on-difference); no quota meets the target (plan); there are findings (check); "
    "a policy test failed (test); the anonymised dump leads to other decisions (anonymise)",
    ExitCode.BAD_INPUT: "wrong usage, or objects that an API server with Kueue would reject",
    ExitCode.UNSETTLED: "it never settles: workloads keep evicting each other, or a fleet keeps changing",
    ExitCode.UNDECIDED: "a workload is undecided: it uses a feature that kueuecore does not support yet",
    ExitCode.UNAVAILABLE: "an address is in use (serve, ui), the Lease was lost, or a thread died (serve)",
    ExitCode.BUG: "a bug in kueuecore",
    ExitCode.UNWRITABLE: "the output, or a file after a run, cannot be written, for example because the disk is full",
    ExitCode.INTERRUPTED: "interrupted with Ctrl-C",
    ExitCode.BROKEN_PIPE: "the reader of the output closed the pipe",
}


def exit_code_help() -> str:
    """Return the lines on exit codes at the end of a command's help."""
    return "\n".join(f"  {code.value:<4} {code.meaning}" for code in ExitCode)
