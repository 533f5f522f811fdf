"""Replay a log by Kueue's rules: when each of its jobs is admitted and ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benches.forecast.cluster import cluster_of, namespace_of
from benches.forecast.logs import Log
from kueuecore._json import JsonObject
from kueuecore._kinds import KUEUE
from kueuecore.jobs.workload_names import workload_name
from kueuecore.manifests import Manifest
from kueuecore.simulation import Copies, Happening, Operation, simulate
from kueuecore.simulation.copies import joined_names
from kueuecore.times import SECOND_NS

__all__ = ["Replay", "copies_of", "job_name", "replay", "uid_of", "workload_spec"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replay:
    """What happened to each job of a log, n rows. Times are in nanoseconds since 1970.

    Args:
        log: The log.
        cluster: All objects except Workloads.
        names: The name of each Workload.
        created: When it was created, shape (n,).
        admitted: When it was admitted.
        finished: When its job ended.
    """

    log: Log
    cluster: tuple[Manifest, ...]
    names: tuple[str, ...]
    created: npt.NDArray[np.int64]
    admitted: npt.NDArray[np.int64]
    finished: npt.NDArray[np.int64]

    @property
    def wait_seconds(self) -> npt.NDArray[np.float64]:
        """How long each waited, shape (n,)."""
        return (self.admitted - self.created) / SECOND_NS

    def key(self, row: int) -> str:
        """Return `namespace/name` of a Workload."""
        return f"{namespace_of(self.log.user.names[self.log.user.codes[row]])}/{self.names[row]}"


def replay(log: Log, *, progress: Callable[[int, int, int], object] | None = None) -> Replay:
    """Run a log through the engine until all of its jobs have ended.

    Args:
        log: The log.
        progress: Called now and then, as `simulate` does.
    """
    cluster = cluster_of(log)
    names = tuple(workload_name(job_name(log, row), kind="Job", group="batch") for row in range(len(log)))
    copies = copies_of(log, np.arange(len(log)), names, log.at, log.run_seconds)
    run = simulate(
        cluster, copies=copies, now=log.start, max_cycles=None, cycles=False, finished=False, progress=progress
    )
    table = run.outcome_table
    if (table["admissions"] != 1).any() or (table["finished"] < 0).any():
        raise RuntimeError(f"{log.name}: {int((table['admissions'] != 1).sum())} jobs were not admitted exactly once")
    return Replay(
        log=log,
        cluster=cluster,
        names=names,
        created=table["created"].copy(),
        admitted=table["admitted"].copy(),
        finished=table["finished"].copy(),
    )


def copies_of(
    log: Log,
    rows: npt.NDArray[np.int64],
    names: Sequence[str],
    at: npt.NDArray[np.float64],
    run_seconds: npt.NDArray[np.float64],
    *,
    first_uid: int = 1,
) -> Copies:
    """Return jobs like those of some rows of a log, as they arrive.

    Args:
        log: The log.
        rows: The rows, shape (n,).
        names: The name of each Workload.
        at: When each arrives, in seconds after the start of the simulation.
        run_seconds: How long it runs.
        first_uid: The number in the UID of the first.
    """
    columns = np.stack([log.user.codes[rows], log.queue.codes[rows], log.pods[rows]])
    shapes, template = np.unique(columns, axis=1, return_inverse=True)
    text, ends = joined_names(names)
    return Copies(
        templates=[Happening(at=0, op=Operation.CREATE, object=_template(log, *shape)) for shape in shapes.T.tolist()],
        template=template.reshape(-1).astype(np.uint32),
        names=text,
        ends=ends,
        at=at,
        run_seconds=run_seconds,
        first_uid=first_uid,
    )


def job_name(log: Log, row: int) -> str:
    """Return the name of a job: its executable, and its number."""
    return f"app-{log.app.names[log.app.codes[row]]}-{row + 1}"


def uid_of(row: int) -> str:
    """Return the UID of a Workload. Of two that were created together, that of the first in the log is first."""
    return f"00000000-0000-0000-0000-{row + 1:012}"


def workload_spec(queue: str, pods: int) -> JsonObject:
    """Return the spec of a Workload with a pod for each processor."""
    container: JsonObject = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    template: JsonObject = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {
        "active": True,
        "priority": 0,
        "queueName": queue,
        "podSets": [{"name": "main", "count": pods, "template": template}],
    }


def _template(log: Log, user: int, queue: int, pods: int) -> Manifest:
    return Manifest(
        {
            "apiVersion": KUEUE,
            "kind": "Workload",
            "metadata": {"name": "template", "namespace": namespace_of(log.user.names[user])},
            "spec": workload_spec(log.queue.names[queue], pods),
        }
    )
