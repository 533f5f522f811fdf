"""The results of a fleet: tables of jobs, where they waited and ran, clusters and quotas; measures; files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kueuecore.results import Column, Table
from kueuecore.results.files import check_suffix, write_folder
from kueuecore.scenarios.fleet_log import StayEnd, StayState, label_column
from kueuecore.scenarios.job_outcomes import JobOutcomes
from kueuecore.scenarios.waits import Waits, waits_by
from kueuecore.times import SECOND_NS

__all__ = ["FleetResults", "FleetSummary"]

SCHEMA = 1
"""Version of `summary.json`: changing or removing a field increments it, adding one does not."""
_Ints = npt.NDArray[np.int64]
_UNLIMITED = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummary:
    """The measures of a fleet; docs/simulate.md defines them.

    Args:
        jobs: How many jobs arrived.
        finished: How many of them ended.
        failed: How many of these failed.
        evictions: How many evictions there were.
        makespan_seconds: From the first creation to the last end; None without both.
        mean_wait_seconds: Mean wait of the admitted jobs; None if there were none.
        outages: A row for each time in which the manager was without a worker.
        copies: How many copies of Workloads were made on workers.
        wasted_copies: How many of these were never admitted.
        copy_wait_seconds: How long copies waited, in all.
        jobs_by_cluster: How many jobs ran last on each cluster, of all clusters.
        utilisation: Used share of the nominal quota over the run, by cluster, flavor and resource.
    """

    jobs: int
    finished: int
    failed: int
    evictions: int
    makespan_seconds: float | None
    mean_wait_seconds: float | None
    copies: int
    wasted_copies: int
    copy_wait_seconds: float
    jobs_by_cluster: dict[str, int]
    utilisation: dict[tuple[str, str, str], float]

    def measures(self) -> dict[str, float]:
        """Return all that is known as numbers by name, such as `utilisation/west/default/cpu` and `jobs/west`."""
        names = ("finished", "makespan_seconds", "mean_wait_seconds", "copies", "wasted_copies", "copy_wait_seconds")
        given = {name: getattr(self, name) for name in names}
        found = {name: float(value) for name, value in given.items() if value is not None}
        found |= {f"jobs/{cluster}": float(n) for cluster, n in self.jobs_by_cluster.items()}
        return found | {f"utilisation/{'/'.join(key)}": share for key, share in self.utilisation.items()}


@dataclass(frozen=True, kw_only=True)  # without slots, as it keeps its tables
class FleetResults:
    """The results of a fleet. Two are equal if the same happened. They can be pickled.

    Args:
        start: The start time, in nanoseconds since 1970.
        end: The end time.
        clusters: The names of the manager, which is `(manager)`, and of the workers.
        releases: The release of Kueue that decides on each of them.
        notices: What is said about rules that Kueue does not have.
        job_outcomes: All jobs.
        stays: A row for each time in which a job waits or runs in a cluster.
        quotas: A row for each change of a quota, its usage or its queue.
        outages: A row for each time in which the manager was without a worker.
        copies: How many copies of Workloads each cluster got, and how many of these were never admitted there.
        metrics: Kueue's metrics at the end, in Prometheus' text format, with a label `cluster`.

    Example:
        >>> from kueuecore.scenarios import run
        >>> results = run("examples/multikueue/scenario.yaml").fleet
        >>> results.summary().jobs_by_cluster
        {'(manager)': 0, 'east': 8, 'west': 4}
        >>> results.utilisation["cluster"].to_list()
        ['(manager)', 'east', 'west']
    """

    start: int
    end: int
    clusters: tuple[str, ...]
    releases: tuple[str, ...]
    notices: tuple[str, ...] = ()
    job_outcomes: JobOutcomes
    stays: Table
    quotas: Table
    outages: Table
    copies: Mapping[str, tuple[int, int]] = field(hash=False)
    metrics: str

    def __repr__(self) -> str:
        return f"FleetResults({len(self.job_outcomes)} jobs, {len(self.clusters) - 1} workers)"

    def _repr_html_(self) -> str:
        """The clusters and how much of their quota was used, for notebooks."""
        from kueuecore.scenarios.outcome_html import fleet_html  # which imports this module

        return fleet_html(self)

    @property
    def jobs(self) -> Table:
        """The jobs, one row each; `cluster` is the last on which it ran."""
        return self.job_outcomes.table()

    @cached_property
    def by_cluster(self) -> Table:
        """The clusters, one row each: the jobs that ran there last, and how copies fared there."""
        waits = {group.name: group for group in waits_by(self.job_outcomes, "cluster")}
        groups = [waits.get(name, Waits.of(name, JobOutcomes.of(()))) for name in self.clusters]
        cluster = self._codes(self.stays)
        is_run = _is(self.stays, "state", StayState.RUNNING)
        seconds = self.stays["seconds"].values

        def sums(values: npt.NDArray[np.float64], rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
            return np.bincount(cluster[rows], values[rows], len(self.clusters)).astype(np.float64)

        def known(values: Sequence[float | None]) -> Column:
            numbers = np.array([0.0 if value is None else value for value in values])
            return Column(values=numbers, is_null=np.array([value is None for value in values], np.bool_))

        return Table(
            {
                "cluster": label_column(self.clusters),
                "kueue": label_column(self.releases),
                "jobs": _ints([it.n_jobs for it in groups]),
                "finished": _ints([it.n_finished for it in groups]),
                "failed": _ints([it.n_failed for it in groups]),
                "mean_wait_seconds": known([it.mean for it in groups]),
                "p95_wait_seconds": known([it.p95 for it in groups]),
                "runs": _ints(np.bincount(cluster[is_run], minlength=len(self.clusters)).tolist()),
                "run_seconds": Column(values=sums(seconds, is_run)),
                "copies": _ints([self.copies[name][0] for name in self.clusters]),
                "wasted_copies": _ints([self.copies[name][1] for name in self.clusters]),
                "wait_seconds": Column(values=sums(seconds, ~is_run)),
            }
        )

    @property
    def lost_seconds(self) -> npt.NDArray[np.float64]:
        """How long each job was admitted in vain: it was evicted, or its copy was removed. Shape (n,)."""
        row_of = {(job.namespace, job.job): row for row, job in enumerate(self.job_outcomes)}
        lost = np.zeros(len(row_of))
        names = ("namespace", "job", "state", "ending", "seconds")
        for namespace, job, state, ending, span in zip(*(self.stays[name].to_list() for name in names), strict=True):
            if state == StayState.RUNNING and ending in (StayEnd.EVICTED, StayEnd.REMOVED):
                lost[row_of[namespace, job]] += span
        return lost

    @cached_property
    def utilisation(self) -> Table:
        """How much of each quota was used: a row per cluster, flavor and resource, over all ClusterQueues there."""
        rows: dict[tuple[int, str, str], list[float]] = {}
        steps = self._steps()
        for (cluster, flavor, resource), (times, nominal, usage) in steps.items():
            spans = np.diff(np.append(times, self.end)) / SECOND_NS
            length = max(float(spans.sum()), 1e-9)
            is_limited = bool((nominal < _UNLIMITED).all())
            quota = float((nominal * spans).sum()) / length if is_limited else np.nan
            mean, most = float((usage * spans).sum()) / length, float(usage.max(initial=0))
            rows[cluster, flavor, resource] = [quota, mean, most, mean / quota if quota else np.nan]
        keys = sorted(rows)
        figures = np.array([rows[key] for key in keys]).reshape(len(keys), 4)
        columns = [(name, figures[:, at].copy()) for at, name in enumerate(("nominal", "mean_usage", "most", "share"))]
        return Table(
            {
                "cluster": label_column([self.clusters[cluster] for cluster, _, _ in keys]),
                "flavor": label_column([flavor for _, flavor, _ in keys]),
                "resource": label_column([resource for *_, resource in keys]),
                **{name: Column(values=np.nan_to_num(it), is_null=np.isnan(it)) for name, it in columns},
            }
        )

    def cluster_queues(self, *, step_seconds: float | None = None) -> Table:
        """Return a row per time, cluster, ClusterQueue, flavor and resource.

        Args:
            step_seconds: The time between rows, from the start; None: a row at each change.

        Raises:
            ValueError: `step_seconds` is not greater than 0.
        """
        if step_seconds is None:
            return self.quotas
        if not 0 < step_seconds < 2**33:
            raise ValueError(f"step_seconds must be greater than 0, not {step_seconds}")
        every = max(1, round(step_seconds * SECOND_NS))
        moments = np.arange(self.start, self.end + 1, every)
        keys = np.stack([self.quotas[name].values for name in ("cluster", "cluster_queue", "flavor", "resource")])
        _, code = np.unique(keys, axis=1, return_inverse=True) if keys.shape[1] else (None, np.zeros(0, np.int64))
        changed = self.quotas["time"].values.astype(np.int64)
        rows: list[_Ints] = []
        times: list[_Ints] = []
        for of in range(int(code.max(initial=-1)) + 1):
            mine = np.flatnonzero(code == of)
            at = np.searchsorted(changed[mine], moments, "right") - 1
            rows.append(mine[at[at >= 0]])
            times.append(moments[at >= 0])
        row, time = (np.concatenate(part) if part else np.zeros(0, np.int64) for part in (rows, times))
        texts = [_texts(self.quotas, name, row) for name in ("resource", "flavor", "cluster_queue", "cluster")]
        order = np.lexsort((*texts, time))
        columns = {name: _rows_of(self.quotas[name], row[order]) for name in self.quotas.names if name != "time"}
        return Table({"time": Column(values=time[order].astype("datetime64[ns]")), **columns})

    @cached_property
    def _summary(self) -> FleetSummary:
        all_jobs, numbers = Waits.of("all", self.job_outcomes), self.job_outcomes.numbers
        ends = numbers["finished"][numbers["finished"] >= 0]
        by_cluster = dict(zip(self.clusters, self.by_cluster["jobs"].to_list(), strict=True))
        columns = [self.utilisation[name].to_list() for name in ("cluster", "flavor", "resource", "share")]
        return FleetSummary(
            jobs=all_jobs.n_jobs,
            finished=all_jobs.n_finished,
            failed=all_jobs.n_failed,
            evictions=all_jobs.n_evictions,
            makespan_seconds=float(ends.max() - numbers["created"].min()) / SECOND_NS if len(ends) else None,
            mean_wait_seconds=all_jobs.mean,
            copies=all_jobs.n_copies,
            wasted_copies=all_jobs.n_wasted_copies,
            copy_wait_seconds=all_jobs.copy_wait,
            jobs_by_cluster=by_cluster,
            utilisation={(a, b, c): share for a, b, c, share in zip(*columns, strict=True) if share is not None},
        )

    def summary(self) -> FleetSummary:
        """Return the whole run in a few numbers."""
        return self._summary

    def write(self, path: str | Path, *, suffix: str = ".csv", step_seconds: float | None = None) -> tuple[Path, ...]:
        """Write everything to a folder: a file for each table, `summary.json`, `metrics.prom`.

        Args:
            path: The folder; it is created if needed, and files in it are replaced.
            suffix: The format of the tables: `.csv`, or with the extra `arrow` `.parquet` or `.arrow`.
            step_seconds: See `cluster_queues`.

        Returns:
            The written files.

        Raises:
            ValueError: The suffix is unknown, or `step_seconds` is not greater than 0.
            ImportError: Parquet and Arrow need the extra `arrow`.
            OSError: A file cannot be written.
        """
        check_suffix(suffix)
        tables = {
            "jobs": self.jobs,
            "stays": self.stays,
            "clusters": self.by_cluster,
            "utilisation": self.utilisation,
            "cluster_queues": self.cluster_queues(step_seconds=step_seconds),
            "outages": self.outages,
        }
        summary = {"schema": SCHEMA, **asdict(self.summary())}
        summary["utilisation"] = {"/".join(key): share for key, share in self.summary().utilisation.items()}
        return write_folder(path, tables, suffix=suffix, summary=summary, metrics=self.metrics)

    def _codes(self, table: Table) -> _Ints:
        """Return the index in `clusters` of each row's cluster."""
        words = table["cluster"].words or ()
        places = np.array([self.clusters.index(word) for word in words], np.int64)
        codes: _Ints = places[table["cluster"].values] if len(words) else np.zeros(0, np.int64)
        return codes

    def _steps(self) -> dict[tuple[int, str, str], tuple[_Ints, npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
        """Return times, nominal quota and usage by cluster, flavor and resource, over all ClusterQueues."""
        columns = [self.quotas[name].to_list() for name in ("cluster_queue", "flavor", "resource", "nominal", "usage")]
        times = self.quotas["time"].values.astype(np.int64).tolist()
        now: dict[tuple[int, str, str], dict[str, tuple[int, int]]] = {}
        found: dict[tuple[int, str, str], list[tuple[int, int, int]]] = {}
        for cluster, time, queue, flavor, resource, nominal, usage in zip(
            self._codes(self.quotas).tolist(), times, *columns, strict=True
        ):
            of = now.setdefault((cluster, flavor, resource), {})
            of[queue] = (nominal, usage)
            sums = [min(sum(part), _UNLIMITED) for part in zip(*of.values(), strict=True)]
            found.setdefault((cluster, flavor, resource), []).append((time, sums[0], sums[1]))
        return {
            key: (
                np.array([time for time, _, _ in rows], np.int64),
                np.array([nominal for _, nominal, _ in rows], np.float64),
                np.array([usage for *_, usage in rows], np.float64),
            )
            for key, rows in found.items()
        }


def _ints(values: Sequence[int]) -> Column:
    return Column(values=np.array(values, np.int64))


def _is(table: Table, name: str, word: str) -> npt.NDArray[np.bool_]:
    words = table[name].words or ()
    codes = [code for code, text in enumerate(words) if text == word]
    return np.isin(table[name].values, codes)


def _texts(table: Table, name: str, rows: _Ints) -> _Ints:
    """Return the rank of each row's text."""
    words = table[name].words or ()
    rank = np.empty(len(words), np.int64)
    rank[sorted(range(len(words)), key=words.__getitem__)] = np.arange(len(words))
    ranks: _Ints = rank[table[name].values[rows]]
    return ranks


def _rows_of(column: Column, rows: _Ints) -> Column:
    is_null = None if column.is_null is None else column.is_null[rows]
    return Column(values=column.values[rows], words=column.words, is_null=is_null)
