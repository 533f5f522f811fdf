"""One run of a scenario, reduced to what studies compare: small enough to send between processes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kueuecore.results import Results
from kueuecore.scenarios import Scenario, ScenarioEnding, run_scenario
from kueuecore.scenarios.job_outcomes import Labels
from kueuecore.scenarios.waits import within_which
from kueuecore.times import SECOND_NS

__all__ = ["Trial", "run_trial"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """The outcome of one run. Columns have a row per job, in order of arrival, shape (n,).

    Args:
        seed: The seed of the run.
        ending: Why it ended.
        works: The work of each job.
        cluster_queues: Its ClusterQueue.
        created: When it arrived, in nanoseconds from the start.
        wait_seconds: How long it waited for its first admission; NaN: it was never admitted.
        failed: Whether it failed.
        evictions: How often it was evicted.
        lost_seconds: How much of its work was lost (docs/simulate.md).
        measures: The summary of the run by name (docs/simulate.md); utilisation and goodput as
            `utilisation/FLAVOR/RESOURCE` and `goodput/RESOURCE`. For a fleet, utilisation is that of
            `CLUSTER/FLAVOR/RESOURCE`, and there are `jobs/CLUSTER`, `copies`, `wasted_copies` and `copy_wait_seconds`.
        warnings: What is odd about the objects, and the jobs of traces that are left out.
    """

    seed: int
    ending: ScenarioEnding
    works: Labels
    cluster_queues: Labels
    created: npt.NDArray[np.int64]
    wait_seconds: npt.NDArray[np.float64]
    failed: npt.NDArray[np.bool_]
    evictions: npt.NDArray[np.int64]
    lost_seconds: npt.NDArray[np.float64]
    measures: dict[str, float]
    warnings: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.created)

    def figures(self, rows: npt.NDArray[np.int64], admitted: npt.NDArray[np.int64]) -> dict[str, float]:
        """Return figures of some jobs.

        They are `never_admitted`, `failed`, `evictions`, `evicted_jobs`, `lost_seconds`, and, if any were admitted,
        `mean_wait_seconds` and `p95_wait_seconds`.

        Args:
            rows: The jobs.
            admitted: Those of them whose waits count; all were admitted.
        """
        figures = {}
        if len(admitted):
            waits = np.sort(self.wait_seconds[admitted])
            figures["mean_wait_seconds"] = float(waits.mean())
            figures["p95_wait_seconds"] = float(within_which(waits.tolist(), 0.95) or 0.0)
        evictions = self.evictions[rows]
        return {
            **figures,
            "never_admitted": float(np.isnan(self.wait_seconds[rows]).sum()),
            "failed": float(self.failed[rows].sum()),
            "evictions": float(evictions.sum()),
            "evicted_jobs": float((evictions > 0).sum()),
            "lost_seconds": float(self.lost_seconds[rows].sum()),
        }

    @property
    def is_cut_off(self) -> bool:
        """Whether the run was cut off, so that its figures say little."""
        return self.ending is not ScenarioEnding.COMPLETE

    def all_figures(self) -> dict[str, float]:
        """Return the figures of all jobs, `measures`, and `cut_off`: 1 if the run was cut off."""
        rows = np.arange(len(self))
        figures = self.figures(rows, rows[np.isfinite(self.wait_seconds)])
        return self.measures | figures | {"cut_off": float(self.is_cut_off)}


def run_trial(scenario: Scenario, seed: int) -> Trial:
    """Run a scenario with a seed.

    Args:
        scenario: The scenario.
        seed: The seed of all random draws, instead of the scenario's own.

    Raises:
        ManifestError: See `kueuecore.scenarios.run_scenario`.
        KeyboardInterrupt: Ctrl-C was pressed.

    Example:
        >>> from kueuecore.scenarios import read_scenario
        >>> trial = run_trial(read_scenario("examples/scenario/scenario.yaml"), 1)
        >>> len(trial), trial.ending.value, trial.measures["finished"]
        (60, 'Complete', 60.0)
    """
    outcome = run_scenario(replace(scenario, seed=seed))
    if outcome.ending is ScenarioEnding.INTERRUPTED:
        # A partial run cannot be compared with whole ones.
        raise KeyboardInterrupt
    jobs = outcome.jobs
    numbers, rows = jobs.numbers, jobs.rows
    waits = (numbers["admitted"] - numbers["created"]) / SECOND_NS
    lost, measures = np.zeros(len(jobs)), {}
    if outcome.run is not None and rows is not None:
        results = Results.of(outcome.run)
        lost = results.lost_seconds[rows]
        measures = _flat(results)
    elif outcome.fleet is not None:
        lost = outcome.fleet.lost_seconds
        measures = outcome.fleet.summary().measures()
    return Trial(
        seed=seed,
        ending=outcome.ending,
        works=jobs.labels["work"],
        cluster_queues=jobs.labels["cluster_queue"],
        created=numbers["created"] - outcome.start,
        wait_seconds=np.where(numbers["admitted"] >= 0, waits, np.nan),
        failed=numbers["failed"] != 0,
        evictions=numbers["evictions"].copy(),
        lost_seconds=lost,
        measures=measures,
        warnings=(*outcome.warnings, *map(str, outcome.left_out)),
    )


def _flat(results: Results) -> dict[str, float]:
    summary = results.summary()
    names = ("finished", "makespan_seconds", "mean_wait_seconds", "mean_slowdown", "fairness")
    given = {name: getattr(summary, name) for name in names}
    measures = {name: float(value) for name, value in given.items() if value is not None}
    measures |= {f"utilisation/{flavor}/{resource}": n for (flavor, resource), n in summary.utilisation.items()}
    return measures | {f"goodput/{resource}": n for resource, n in summary.goodput.items()}
