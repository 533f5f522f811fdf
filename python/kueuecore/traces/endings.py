"""Says by the words of a status which jobs failed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kueuecore.traces.text_column import TextColumn

__all__ = ["first_words", "has_failed"]

_FAILED = frozenset(
    (
        "aborted",
        "boot_fail",
        "canceled",
        "cancelled",
        "deadline",
        "error",
        "fail",
        "failed",
        "failure",
        "killed",
        "node_fail",
        "out_of_memory",
        "preempted",
        "timeout",
    )
)


def has_failed(status: TextColumn) -> npt.NDArray[np.bool_]:
    """Return which jobs did not succeed, by the first word of their status, in any case.

    Example:
        >>> has_failed(TextColumn.of(["COMPLETED", "CANCELLED by 1000"])).tolist()
        [False, True]
    """
    words = first_words(status)
    return words.renamed([name.lower() for name in words.names]).is_one_of(_FAILED)


def first_words(status: TextColumn) -> TextColumn:
    """Return only the first word of each status: Slurm writes `CANCELLED by 1000`."""
    return status.renamed([next(iter(name.split()), "") for name in status.names])
