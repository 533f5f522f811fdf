"""The memory of a million jobs, and of all that is read of their run from Python: python benches/million/peak.py."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path

from kueuecore.results import Results
from kueuecore.scenarios import read_scenario, run_scenario

SCENARIO = Path(__file__).with_name("scenario.yaml")
KIBIBYTES_OF_A_GIBIBYTE = 2**20


def main() -> None:
    """Run the scenario, read everything and keep it, and print the peak of memory after each step."""
    begin = time.monotonic()
    run = run_scenario(read_scenario(SCENARIO)).run
    assert run is not None, "it has one cluster"
    results = Results.of(run)
    steps: dict[str, Callable[[], object]] = {
        "the run": lambda: run,
        "jobs": lambda: results.jobs,
        "ClusterQueues by the minute": lambda: results.cluster_queues(step_seconds=60),
        "cohorts by the minute": lambda: results.cohorts(step_seconds=60),
        "summary": results.summary,
        "metrics": results.prometheus,
        "ClusterQueues at each change": results.cluster_queues,
        "cohorts at each change": results.cohorts,
    }
    kept = []
    for name, step in steps.items():
        kept.append(step())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIBIBYTES_OF_A_GIBIBYTE
        print(f"{name:30} {time.monotonic() - begin:6.1f} s {peak:5.2f} GiB at most", flush=True)


if __name__ == "__main__":
    main()
