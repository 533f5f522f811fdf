"""The entry point: one object for all results of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import FrozenInstanceError, asdict
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from kueuecore.results.job_runs import JobRuns
from kueuecore.results.jobs import JobTimes, job_table
from kueuecore.results.queues import node_table
from kueuecore.results.summary import Summary, summarize
from kueuecore.results.table import Table
from kueuecore.results.usage_log import UsageLog
from kueuecore.simulation.left_out import LeftOut
from kueuecore.simulation.run import Run

__all__ = ["Results"]


class Results:
    """The results of a run, without a Python object per job except the strings of names.

    Two are equal if their runs are. They can be pickled.

    Example:
        >>> from kueuecore import World, read_manifests, simulate
        >>> from kueuecore.submissions import Submissions
        >>> queues = World.of(read_manifests("examples/scenario/queues.yaml")).manifests
        >>> jobs = Submissions(
        ...     namespace="team-a", local_queues=["lq"], queue=[0, 0], requests={"cpu": 5000}, at=[0, 0], run_seconds=60
        ... )
        >>> results = Results.of(simulate(queues, submissions=[jobs], now="2026-01-01T00:00:00Z"))
        >>> results.jobs["wait_seconds"].to_list(), results.jobs["slowdown"].to_list()
        ([0.0, 60.0], [1.0, 2.0])
        >>> results.cluster_queues(step_seconds=60)["usage"].to_list()
        [5000, 0, 5000, 0, 0, 0]
        >>> results.summary().utilisation
        {('default', 'cpu'): 0.625}
    """

    _run: Run
    _left_out: tuple[LeftOut, ...]

    def __init__(self, run: Run, left_out: Sequence[LeftOut] = ()) -> None:
        vars(self)["_run"], vars(self)["_left_out"] = run, tuple(left_out)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Results):
            return NotImplemented
        return (self._run, self._left_out) == (other._run, other._left_out)

    def __hash__(self) -> int:
        return hash(self._run)

    def __reduce__(self) -> tuple[object, ...]:
        return Results, (self._run, self._left_out)

    def __repr__(self) -> str:
        run = self._run
        return f"Results({len(self.jobs)} jobs, {run.n_cycles} cycles, {run.ending})"

    def _repr_html_(self) -> str:
        """The first jobs, for notebooks."""
        return self.jobs._repr_html_()

    @classmethod
    def of(cls, run: Run, *, left_out: Sequence[LeftOut] = ()) -> Results:
        """Make the results of a run.

        Args:
            run: What `simulate` or `VirtualCluster.run` returned.
            left_out: The jobs of traces that it leaves out, for the summary: `ScenarioOutcome.left_out`.
        """
        return cls(run, left_out)

    @cached_property
    def _log(self) -> UsageLog:
        return UsageLog.of(self._run)

    @cached_property
    def _times(self) -> JobTimes:
        return JobTimes.of(self._run, self._runs)

    @cached_property
    def _runs(self) -> JobRuns:
        return JobRuns.of(self._run)

    @cached_property
    def jobs(self) -> Table:
        """The jobs, one row each."""
        return job_table(self._run, self._log, self._times, self._runs)

    @property
    def lost_seconds(self) -> npt.NDArray[np.float64]:
        """Return how much work each workload lost, by its number in the run, shape (n,)."""
        return self._runs.lost_seconds

    def cluster_queues(self, *, step_seconds: float | None = None) -> Table:
        """Return a row per time, ClusterQueue, flavor and resource.

        Args:
            step_seconds: The time between rows, from the start; `None`: a row at each change.

        Raises:
            ValueError: `step_seconds` is not greater than 0.
        """
        return node_table(self._run, self._log, is_queue=True, step_seconds=step_seconds)

    def cohorts(self, *, step_seconds: float | None = None) -> Table:
        """Return a row per time, cohort, flavor and resource: sums over all ClusterQueues below.

        Args:
            step_seconds: The time between rows, from the start; `None`: a row at each change.

        Raises:
            ValueError: `step_seconds` is not greater than 0.
        """
        return node_table(self._run, self._log, is_queue=False, step_seconds=step_seconds)

    def summary(self) -> Summary:
        """Return the whole run in a few numbers."""
        return summarize(self._run, self._log, self._times, self._runs, left_out=self._left_out)

    def prometheus(self) -> str:
        """Return metrics at the end of the run in Prometheus' text format, with Kueue's names."""
        from kueuecore.results.prometheus import metrics_text  # few runs are asked for them

        return metrics_text(self._run, self._log)

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
        from kueuecore.results.files import check_suffix, write_folder  # few runs are written

        check_suffix(suffix)
        tables = {
            "jobs": self.jobs,
            "cluster_queues": self.cluster_queues(step_seconds=step_seconds),
            "cohorts": self.cohorts(step_seconds=step_seconds),
        }
        summary = asdict(self.summary())
        summary["utilisation"] = {f"{flavor}/{resource}": n for (flavor, resource), n in summary["utilisation"].items()}
        summary["left_out"] = [out.to_dict() for out in self._left_out]
        return write_folder(path, tables, suffix=suffix, summary=summary, metrics=self.prometheus())
