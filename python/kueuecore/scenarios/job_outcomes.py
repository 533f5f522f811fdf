"""The outcomes of a scenario's jobs as columns, with an object per job created lazily."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq
from typing import TYPE_CHECKING, overload

import numpy as np
import numpy.typing as npt

from kueuecore._json import JsonObject, int_at, list_at, text_at

if TYPE_CHECKING:
    from kueuecore.results import Table

__all__ = ["JobNames", "JobOutcome", "JobOutcomes", "Labels", "empty_numbers", "node_evictions", "rows_by_code"]

_NUMBERS = (
    "created",
    "admitted",
    "finished",
    "failed",
    "admissions",
    "evictions",
    "replacements",
    "node_evictions",
    "copies",
    "copy_wait",
)
_NEVER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """The outcome of one job, or of one of its Workloads if it has several.

    Args:
        work: The work that it belongs to.
        job: `Kind/name`.
        namespace: Its namespace.
        workload: Name of its Workload; empty if it got none.
        cluster_queue: The ClusterQueue of its Workload; empty if its LocalQueue does not exist.
        cluster: The last worker that it was on; empty without a fleet, and on the manager.
        created: When it arrived, in nanoseconds since 1970.
        admitted: When it was first admitted; None: never.
        finished: When it ended; None: not yet.
        has_failed: Whether it failed.
        n_admissions: How often it was admitted.
        n_evictions: How often it was evicted.
        n_replacements: How often its pods got other nodes for a failed one, while it ran.
        n_node_evictions: How often it was evicted because a node failed.
        n_copies: How many copies of its Workload were made on workers.
        copy_wait_ns: The total time that copies existed without being admitted.
        message: Why it waits or was refused.
    """

    work: str
    job: str
    namespace: str
    workload: str = ""
    cluster_queue: str = ""
    cluster: str = ""
    created: int
    admitted: int | None = None
    finished: int | None = None
    has_failed: bool = False
    n_admissions: int = 0
    n_evictions: int = 0
    n_replacements: int = 0
    n_node_evictions: int = 0
    n_copies: int = 0
    copy_wait_ns: int = 0
    message: str = ""

    @property
    def n_wasted_copies(self) -> int:
        """Copies that were never admitted: they took a place in a worker's queue for nothing."""
        return max(self.n_copies - self.n_admissions, 0)

    @property
    def has_lost_nodes(self) -> bool:
        """Whether it lost a node."""
        return self.n_replacements + self.n_node_evictions > 0

    @property
    def wait_ns(self) -> int | None:
        """How long it waited for its first admission; None: it still waits."""
        return None if self.admitted is None else self.admitted - self.created


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNames:
    """The names and message of a job.

    Args:
        job: `Kind/name`.
        namespace: Its namespace.
        workload: Name of its Workload; empty if it got none.
        message: Why it waits or was refused.
    """

    job: str
    namespace: str
    workload: str
    message: str


def rows_by_code(codes: npt.NDArray[np.int64]) -> list[tuple[int, npt.NDArray[np.int64]]]:
    """Group rows by code, in order of the codes.

    Args:
        codes: The code of each row, shape (n,).

    Example:
        >>> [(code, rows.tolist()) for code, rows in rows_by_code(np.array([3, 1, 3]))]
        [(1, [1]), (3, [0, 2])]
    """
    order = np.argsort(codes, kind="stable")
    distinct, firsts = np.unique(codes[order], return_index=True)
    # Splitting at no positions still returns one part.
    return list(zip(distinct.tolist(), np.split(order, firsts[1:]), strict=True)) if len(codes) else []


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """A column of strings with few distinct values.

    Args:
        texts: The distinct strings.
        codes: The index of each row's string, shape (n,).
    """

    texts: Sequence[str]
    codes: npt.NDArray[np.int64]

    @classmethod
    def of(cls, values: Sequence[str]) -> Labels:
        """Make a column of strings.

        Example:
            >>> labels = Labels.of(["b", "a", "b"])
            >>> labels.texts, labels.codes.tolist()
            (('b', 'a'), [0, 1, 0])
        """
        codes: dict[str, int] = {}
        rows = np.fromiter((codes.setdefault(value, len(codes)) for value in values), np.int64, len(values))
        return cls(tuple(codes), rows)

    def of_rows(self, rows: npt.NDArray[np.int64]) -> Labels:
        """Return the strings at these rows."""
        return Labels(self.texts, self.codes[rows])

    def __getitem__(self, row: int) -> str:
        return self.texts[int(self.codes[row])]


class JobOutcomes(Sequence[JobOutcome]):
    """The outcomes of jobs, in order of arrival. Two are equal if all jobs are; pickling keeps their names.

    Args:
        labels: The columns `work`, `cluster_queue` and `cluster`.
        numbers: A structured array of shape (n,), of i8: `created`, `admitted` and `finished` in nanoseconds since
            1970, -1 for never; `failed`, 1 if it failed; the counts `admissions`, `evictions`, `replacements`,
            `node_evictions` and `copies`; `copy_wait` in nanoseconds.
        names: Returns the names and message of one row.
        rows: The number of each in the run of its cluster, shape (n,); None: there were several clusters.
    """

    def __init__(
        self,
        labels: Mapping[str, Labels],
        numbers: npt.NDArray[np.void],
        names: Callable[[int], JobNames],
        rows: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self.labels = labels
        self.numbers = numbers
        self.rows = rows
        self.names = names

    @classmethod
    def of(cls, jobs: Sequence[JobOutcome]) -> JobOutcomes:
        """Make outcomes from objects."""
        numbers = empty_numbers(len(jobs))
        for row, job in enumerate(jobs):
            times = (job.created, job.admitted, job.finished)
            counts = (job.n_admissions, job.n_evictions, job.n_replacements, job.n_node_evictions, job.n_copies)
            known = (_NEVER if time is None else time for time in times)
            numbers[row] = (*known, job.has_failed, *counts, job.copy_wait_ns)
        labels = {
            "work": Labels.of([job.work for job in jobs]),
            "cluster_queue": Labels.of([job.cluster_queue for job in jobs]),
            "cluster": Labels.of([job.cluster for job in jobs]),
        }

        def names(row: int) -> JobNames:
            it = jobs[row]
            return JobNames(job=it.job, namespace=it.namespace, workload=it.workload, message=it.message)

        return cls(labels, numbers, names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JobOutcomes):
            return NotImplemented
        return np.array_equal(self.numbers, other.numbers) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(self.numbers.tobytes())

    def __reduce__(self) -> tuple[object, ...]:
        names = tuple(map(self.names, range(len(self))))
        return _unpickled, (self.labels, self.numbers, names, self.rows)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> JobOutcome: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[JobOutcome, ...]: ...
    def __getitem__(self, index: int | slice) -> JobOutcome | tuple[JobOutcome, ...]:
        if isinstance(index, slice):
            return tuple(self[row] for row in range(*index.indices(len(self))))
        row = range(len(self))[index]
        names, numbers = self.names(row), dict(zip(_NUMBERS, self.numbers[row].tolist(), strict=True))
        times = {name: numbers[name] if numbers[name] >= 0 else None for name in ("admitted", "finished")}
        return JobOutcome(
            work=self.labels["work"][row],
            job=names.job,
            namespace=names.namespace,
            workload=names.workload,
            cluster_queue=self.labels["cluster_queue"][row],
            cluster=self.labels["cluster"][row],
            created=numbers["created"],
            admitted=times["admitted"],
            finished=times["finished"],
            has_failed=bool(numbers["failed"]),
            n_admissions=numbers["admissions"],
            n_evictions=numbers["evictions"],
            n_replacements=numbers["replacements"],
            n_node_evictions=numbers["node_evictions"],
            n_copies=numbers["copies"],
            copy_wait_ns=numbers["copy_wait"],
            message=names.message,
        )

    def table(self) -> Table:
        """Return a row for each job, in order of arrival, for polars, pandas, DuckDB or a notebook.

        It has the names, times and counts of `JobOutcome`, with null for what is empty or has not happened.

        Example:
            >>> jobs = [JobOutcome(work="w", job="Job/a", namespace="n", created=0, admitted=s * 10**9) for s in (1, 2)]
            >>> JobOutcomes.of(jobs).table()["wait_seconds"].to_list()
            [1.0, 2.0]
        """
        from kueuecore.scenarios.job_table import job_table  # imports results, and this module

        return job_table(self)

    def _repr_html_(self) -> str:
        """The first jobs, for notebooks."""
        from kueuecore.scenarios.outcome_html import jobs_html  # which imports this module

        return jobs_html(self)


def _unpickled(
    labels: Mapping[str, Labels],
    numbers: npt.NDArray[np.void],
    names: tuple[JobNames, ...],
    rows: npt.NDArray[np.int64] | None,
) -> JobOutcomes:
    return JobOutcomes(labels, numbers, names.__getitem__, rows)


def empty_numbers(n: int) -> npt.NDArray[np.void]:
    """Return the figures of n jobs, all zero."""
    return np.zeros(n, dtype=[(name, "<i8") for name in _NUMBERS])


def node_evictions(status: JsonObject) -> int:
    """Return how often a Workload was evicted because a node failed (rules/08 §13), by its `status.schedulingStats`.

    Example:
        >>> node_evictions({"schedulingStats": {"evictions": [{"reason": "NodeFailures", "count": 2}]}})
        2
    """
    evictions = list_at(status, "schedulingStats", "evictions")
    return sum(int_at(eviction, "count") for eviction in evictions if text_at(eviction, "reason") == "NodeFailures")
