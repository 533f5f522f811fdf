"""Notes beyond the table of waits: queues that admit nothing, and other evicted Workloads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TypeAlias

import numpy as np

from kueuecore.engine import Engine
from kueuecore.errors import UnknownObjectError
from kueuecore.scenarios.job_outcomes import JobOutcomes
from kueuecore.simulation.run import Run

__all__ = ["LocalQueueName", "evictions_beside", "missing_queues"]

LocalQueueName: TypeAlias = tuple[str, str]
"""Namespace and name."""

_MAX_NAMES = 3


def missing_queues(
    jobs: JobOutcomes, named: Counter[LocalQueueName], queues: Mapping[LocalQueueName, str], engine: Engine
) -> Iterator[str]:
    """Describe queues that do not exist or admit nothing, in sentences.

    Args:
        jobs: The outcomes of the jobs.
        named: How many of them name each LocalQueue.
        queues: The ClusterQueue of each existing LocalQueue.
        engine: The engine at the end.
    """
    has_queues = bool(engine.cluster_queues())
    if not has_queues:
        yield "there is no ClusterQueue, so nothing is admitted; add one to `cluster.objects`"
    missing = {
        f"{namespace}/{name}": n for (namespace, name), n in named.items() if n and (namespace, name) not in queues
    }
    if missing:
        names = _some(sorted(missing))
        yield f"{_waiting(sum(missing.values()))} for LocalQueues that do not exist: {names}; add them to the objects"
    waits = (jobs.numbers["admitted"] < 0) & (jobs.numbers["finished"] < 0)
    homes = jobs.labels["cluster_queue"]
    n_waiting = np.bincount(homes.codes[waits], minlength=len(homes.texts)).tolist()
    for name, n in sorted(zip(homes.texts, n_waiting, strict=True)):
        if not (n and name and has_queues):
            continue
        try:
            queue = engine.cluster_queue(name)
        except UnknownObjectError:
            yield f"{_waiting(n)} for ClusterQueue {name}, which does not exist; add it to the objects"
            continue
        if not queue.is_active:
            yield f"{_waiting(n)} in ClusterQueue {name}, which is inactive: {queue.message}"


def _waiting(n_jobs: int) -> str:
    return "1 job waits" if n_jobs == 1 else f"{n_jobs} jobs wait"


def evictions_beside(jobs: JobOutcomes, run: Run) -> Iterator[str]:
    """Say how often Workloads that are not jobs of the scenario were evicted."""
    every, of_jobs = run.outcome_table["evictions"], jobs.numbers["evictions"]
    n_evictions = int(every.sum()) - int(of_jobs.sum())
    if n_evictions:
        n_evicted = int((every > 0).sum()) - int((of_jobs > 0).sum())
        yield (
            f"{n_evicted} initial Workloads that are not in these tables were evicted, {n_evictions} times in all; "
            "--results has a row for each"
        )


def _some(names: list[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(islice(names, _MAX_NAMES)) + (f" and {more} more" if more > 0 else "")
