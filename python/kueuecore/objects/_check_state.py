"""The state of an admission check."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["CheckState"]


class CheckState(StrEnum):
    """The state of a check of a workload, and what it does while quota is reserved (rules/07 §3)."""

    PENDING = "Pending"
    """The workload waits."""
    READY = "Ready"
    """This check agrees; once all do, the workload is admitted."""
    RETRY = "Retry"
    """The workload is evicted and tried again later."""
    REJECTED = "Rejected"
    """The workload is deactivated."""
