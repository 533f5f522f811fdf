"""How long groups of jobs waited, and what happened to them meanwhile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kueuecore.scenarios.job_outcomes import JobOutcomes, rows_by_code
from kueuecore.times import SECOND_NS

__all__ = ["Waits", "waits_by", "within_which"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """The waits of a group of jobs. Times are in seconds and cover admitted jobs.

    Args:
        name: The name of the group.
        n_jobs: How many jobs there are.
        n_admitted: How many were admitted.
        n_finished: How many have ended.
        n_failed: How many of these failed.
        least: The shortest wait.
        mean: The mean wait.
        p95: The wait within which 95 % were admitted.
        most: The longest wait.
        n_evictions: The number of evictions.
        n_replacements: How often pods got other nodes for a failed one.
        n_node_evictions: The number of evictions because a node failed.
        n_copies: How many copies were made on workers.
        n_wasted_copies: How many of these were never admitted.
        copy_wait: The total seconds that copies existed without being admitted.
    """

    name: str
    n_jobs: int
    n_admitted: int
    n_finished: int
    least: float | None
    mean: float | None
    p95: float | None
    most: float | None
    n_evictions: int
    n_failed: int = 0
    n_replacements: int = 0
    n_node_evictions: int = 0
    n_copies: int = 0
    n_wasted_copies: int = 0
    copy_wait: float = 0.0

    @classmethod
    def of(cls, name: str, jobs: JobOutcomes) -> Waits:
        """Compute the waits of some jobs.

        Example:
            >>> from kueuecore.scenarios import JobOutcome, JobOutcomes
            >>> jobs = [JobOutcome(work="w", job="j", namespace="n", created=0, admitted=s * 10**9) for s in (1, 2, 9)]
            >>> waits = Waits.of("all", JobOutcomes.of(jobs))
            >>> waits.least, waits.mean, waits.p95
            (1.0, 4.0, 9.0)
        """
        return cls._of(name, jobs.numbers, slice(None))

    @classmethod
    def _of(cls, name: str, numbers: npt.NDArray[np.void], rows: npt.NDArray[np.int64] | slice) -> Waits:
        # Column by column: a million rows as a whole are 80 MB.
        def total(column: str) -> int:
            return int(numbers[column][rows].sum())

        created, admitted = numbers["created"][rows], numbers["admitted"][rows]
        is_admitted = admitted >= 0
        # A view yields floats of Python without a list of them.
        waits = np.sort((admitted[is_admitted] - created[is_admitted]) / SECOND_NS).data
        n = len(waits)
        wasted = np.maximum(numbers["copies"][rows] - numbers["admissions"][rows], 0)
        return cls(
            name=name,
            n_jobs=len(admitted),
            n_admitted=n,
            n_finished=int((numbers["finished"][rows] >= 0).sum()),
            least=waits[0] if n else None,
            mean=math.fsum(waits) / n if n else None,
            p95=within_which(waits, 0.95),
            most=waits[-1] if n else None,
            n_evictions=total("evictions"),
            n_failed=total("failed"),
            n_replacements=total("replacements"),
            n_node_evictions=total("node_evictions"),
            n_copies=total("copies"),
            n_wasted_copies=int(wasted.sum()),
            copy_wait=total("copy_wait") / SECOND_NS,
        )


def within_which(ordered: Sequence[float], part: float) -> float | None:
    """Return the shortest wait within which a share of the jobs was admitted; None without jobs.

    Args:
        ordered: Waits, the shortest first.
        part: The share, above 0 and at most 1.

    Example:
        >>> within_which([1.0, 2.0, 9.0], 0.5)
        2.0
    """
    # Products such as 0.07 * 100 are slightly above the exact whole number.
    return ordered[max(math.ceil(round(part * len(ordered), 6)), 1) - 1] if len(ordered) else None


def waits_by(jobs: JobOutcomes, column: str) -> tuple[Waits, ...]:
    """Compute the waits of groups of jobs, sorted by name.

    Args:
        jobs: The jobs.
        column: The column to group by: `work`, `cluster_queue` or `cluster`.
    """
    labels = jobs.labels[column]
    named = {labels.texts[code]: rows for code, rows in rows_by_code(labels.codes)}
    return tuple(Waits._of(name, jobs.numbers, named[name]) for name in sorted(named))
