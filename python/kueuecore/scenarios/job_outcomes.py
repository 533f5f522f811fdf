"""What became of the jobs of a scenario, as columns; one of them as an object when somebody looks at it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt

from kueuecore._json import JsonObject, int_at, list_at, text_at

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
    """What became of one job, or of one of its Workloads if it has several.

    Args:
        work: The work that it belongs to.
        job: `Kind/name`.
        namespace: Its namespace.
        workload: Name of its Workload; empty if it got none.
        cluster_queue: The ClusterQueue of its Workload; empty if its LocalQueue is not there.
        cluster: The worker that it was on last; empty without a fleet, and on the manager.
        created: When it came, in nanoseconds since 1970.
        admitted: When it was admitted for the first time; None: never.
        finished: When it ended; None: not yet.
        has_failed: Did it fail then?
        n_admissions: How often it was admitted.
        n_evictions: How often it was evicted.
        n_replacements: How often its pods got other nodes in place of one that had failed, while it ran.
        n_node_evictions: How often it was evicted as a node had failed.
        n_copies: How many copies of its Workload were made on workers.
        copy_wait_ns: How long copies were there without being admitted, all together.
        message: Why it waits, or what it was refused for.
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
        """Copies that led to no admission: they took a place in the queue of a worker for nothing."""
        return max(self.n_copies - self.n_admissions, 0)

    @property
    def has_lost_nodes(self) -> bool:
        """Has a node failed under it?"""
        return self.n_replacements + self.n_node_evictions > 0

    @property
    def wait_ns(self) -> int | None:
        """How long it waited for its first admission; None: it still waits."""
        return None if self.admitted is None else self.admitted - self.created


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNames:
    """What there is to say of a job in words.

    Args:
        job: `Kind/name`.
        namespace: Its namespace.
        workload: Name of its Workload; empty if it got none.
        message: Why it waits, or what it was refused for.
    """

    job: str
    namespace: str
    workload: str
    message: str


def rows_by_code(codes: npt.NDArray[np.int64]) -> list[tuple[int, npt.NDArray[np.int64]]]:
    """The rows of each code, by code.

    Args:
        codes: The code of each row, shape (n,).

    Example:
        >>> [(code, rows.tolist()) for code, rows in rows_by_code(np.array([3, 1, 3]))]
        [(1, [1]), (3, [0, 2])]
    """
    order = np.argsort(codes, kind="stable")
    distinct, firsts = np.unique(codes[order], return_index=True)
    # What is split at no place is one part still.
    return list(zip(distinct.tolist(), np.split(order, firsts[1:]), strict=True)) if len(codes) else []


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """A column of texts of which there are few.

    Args:
        texts: The texts.
        codes: The index of each row's text, shape (n,).
    """

    texts: Sequence[str]
    codes: npt.NDArray[np.int64]

    @classmethod
    def of(cls, values: Sequence[str]) -> Labels:
        """A column of these texts.

        Example:
            >>> labels = Labels.of(["b", "a", "b"])
            >>> labels.texts, labels.codes.tolist()
            (('b', 'a'), [0, 1, 0])
        """
        codes: dict[str, int] = {}
        rows = np.fromiter((codes.setdefault(it, len(codes)) for it in values), np.int64, len(values))
        return cls(tuple(codes), rows)

    def of_rows(self, rows: npt.NDArray[np.int64]) -> Labels:
        """The texts at these places."""
        return Labels(self.texts, self.codes[rows])

    def __getitem__(self, row: int) -> str:
        return self.texts[int(self.codes[row])]


class JobOutcomes(Sequence[JobOutcome]):
    """What became of jobs, in the order in which they came.

    Args:
        labels: The columns `work`, `cluster_queue` and `cluster`.
        numbers: A structured array of shape (n,), of i8: `created`, `admitted` and `finished` in nanoseconds since
            1970, -1 for never; `failed`, 1 if it failed; the counts `admissions`, `evictions`, `replacements`,
            `node_evictions` and `copies`; `copy_wait` in nanoseconds.
        names: The words about one row.
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
        self._names = names

    @classmethod
    def of(cls, jobs: Sequence[JobOutcome]) -> JobOutcomes:
        """Jobs that are there as objects."""
        numbers = empty_numbers(len(jobs))
        for row, it in enumerate(jobs):
            times = (it.created, it.admitted, it.finished)
            counts = (it.n_admissions, it.n_evictions, it.n_replacements, it.n_node_evictions, it.n_copies)
            known = (_NEVER if time is None else time for time in times)
            numbers[row] = (*known, it.has_failed, *counts, it.copy_wait_ns)
        labels = {
            "work": Labels.of([it.work for it in jobs]),
            "cluster_queue": Labels.of([it.cluster_queue for it in jobs]),
            "cluster": Labels.of([it.cluster for it in jobs]),
        }

        def names(row: int) -> JobNames:
            it = jobs[row]
            return JobNames(job=it.job, namespace=it.namespace, workload=it.workload, message=it.message)

        return cls(labels, numbers, names)

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
        names, numbers = self._names(row), dict(zip(_NUMBERS, self.numbers[row].tolist(), strict=True))
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


def empty_numbers(n: int) -> npt.NDArray[np.void]:
    """The figures of this many jobs, all zero."""
    return np.zeros(n, dtype=[(name, "<i8") for name in _NUMBERS])


def node_evictions(status: JsonObject) -> int:
    """How often a Workload was evicted as a node had failed (rules/08 §13), by its `status.schedulingStats`.

    Example:
        >>> node_evictions({"schedulingStats": {"evictions": [{"reason": "NodeFailures", "count": 2}]}})
        2
    """
    evictions = list_at(status, "schedulingStats", "evictions")
    return sum(int_at(it, "count") for it in evictions if text_at(it, "reason") == "NodeFailures")
