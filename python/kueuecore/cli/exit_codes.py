"""The exit codes of the command."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ExitCode"]


class ExitCode(IntEnum):
    """What the command exits with."""

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
        """What it means, in a few words."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "done, whether workloads are pending or not",
    ExitCode.PENDING: "a workload is pending or a job waits for its Workload in the end (only with --fail-on-pending), "
    "two configurations differ (only with --fail-on-difference), no quota is enough (of plan), there are findings "
    "(of check), a policy test fails, or a dump without names decides otherwise",
    ExitCode.BAD_INPUT: "wrong usage, or objects that an API server with Kueue would refuse",
    ExitCode.UNSETTLED: "it never settles: workloads evict each other in a circle, or a fleet keeps changing",
    ExitCode.UNDECIDED: "nothing is decided on some workload, because it needs what is not built yet",
    ExitCode.UNAVAILABLE: "an address is taken, the Lease is lost, or a thread of it has died (only of serve)",
    ExitCode.BUG: "a bug in kueuecore",
    ExitCode.UNWRITABLE: "the output cannot be written: for example, the disk is full or standard output is closed",
    ExitCode.INTERRUPTED: "interrupted with Ctrl-C",
    ExitCode.BROKEN_PIPE: "the reader of the output went away",
}
