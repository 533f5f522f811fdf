"""The state of a replay at a moment, as a dump of the cluster would show it: nothing that comes later is in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benches.forecast.cluster import FLAVOR, namespace_of
from benches.forecast.replay import Replay, job_name, uid_of, workload_spec
from kueuecore._json import JsonObject
from kueuecore._kinds import KUEUE
from kueuecore.forecasts.past_jobs import EXPECTED_RUN_SECONDS
from kueuecore.manifests import Manifest
from kueuecore.scenarios import ClusterPart, Scenario
from kueuecore.times import SECOND_NS, format_time

__all__ = ["KEPT_JOBS", "KEPT_SECONDS", "Dumps", "Seen"]

KEPT_SECONDS = 180 * 86400
"""How long Workloads are kept after their jobs have ended, as `objectRetentionPolicies` would."""
KEPT_JOBS = 10_000
"""How many of them at most: the latest."""


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The rows of a replay that a dump shows, each in the order of the log.

    Args:
        waiting: Those that wait.
        running: Those that run.
        ended: Those that have ended and are still kept.
    """

    waiting: npt.NDArray[np.int64]
    running: npt.NDArray[np.int64]
    ended: npt.NDArray[np.int64]


class Dumps:
    """The states of one replay.

    Args:
        replay: The replay.
    """

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        # A Workload that has ended looks the same in every later dump.
        self._ended: dict[int, Manifest] = {}

    def seen(self, now: int) -> Seen:
        """Return what a dump shows at a time, in nanoseconds since 1970."""
        replay = self._replay
        n_created = int(np.searchsorted(replay.created, now, side="right"))
        admitted, finished = replay.admitted[:n_created], replay.finished[:n_created]
        kept = np.flatnonzero((finished <= now) & (finished > now - KEPT_SECONDS * SECOND_NS))
        latest = kept[np.argsort(finished[kept], kind="stable")[-KEPT_JOBS:]]
        return Seen(
            waiting=np.flatnonzero(admitted > now),
            running=np.flatnonzero((admitted <= now) & (finished > now)),
            ended=np.sort(latest),
        )

    def scenario(self, now: int) -> Scenario:
        """Return the cluster at a time, in nanoseconds since 1970, to forecast from."""
        return Scenario(cluster=ClusterPart(objects=(*self._replay.cluster, *self.workloads(now))), start=now)

    def workloads(self, now: int) -> list[Manifest]:
        """Return the Workloads that are stored at a time, in nanoseconds since 1970."""
        seen = self.seen(now)
        alive = np.sort(np.concatenate([seen.waiting, seen.running]))
        gone = self._ended.keys() - set(seen.ended.tolist())
        for row in gone:
            del self._ended[row]
        for row in seen.ended.tolist():
            if row not in self._ended:
                self._ended[row] = self._workload(row, now)
        return [
            *(self._ended[row] for row in seen.ended.tolist()),
            *(self._workload(row, now) for row in alive.tolist()),
        ]

    def _workload(self, row: int, now: int) -> Manifest:
        replay, log = self._replay, self._replay.log
        queue = log.queue.names[log.queue.codes[row]]
        spec = workload_spec(queue, int(log.pods[row]))
        owner: JsonObject = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": job_name(log, row),
            "uid": f"10000000-0000-0000-0000-{row + 1:012}",
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata: JsonObject = {
            "name": replay.names[row],
            "namespace": namespace_of(log.user.names[log.user.codes[row]]),
            "uid": uid_of(row),
            "creationTimestamp": format_time(int(replay.created[row]) // SECOND_NS * SECOND_NS),
            "generation": 1,
            "ownerReferences": [owner],
        }
        if log.limit[row]:
            # As a time limit Kueue would enforce it, which not all of these machines did.
            metadata["annotations"] = {EXPECTED_RUN_SECONDS: str(int(log.limit[row]))}
        return Manifest(
            {
                "apiVersion": KUEUE,
                "kind": "Workload",
                "metadata": metadata,
                "spec": spec,
                "status": self._status(row, queue, now),
            }
        )

    def _status(self, row: int, queue: str, now: int) -> JsonObject:
        replay = self._replay
        created, admitted, finished = (int(times[row]) for times in (replay.created, replay.admitted, replay.finished))
        if admitted > now:
            waits = _condition("QuotaReserved", "Pending", created, "The workload waits for quota", status="False")
            return {"conditions": [waits]}
        pods = int(replay.log.pods[row])
        assignment: JsonObject = {
            "name": "main",
            "count": pods,
            "flavors": {"cpu": FLAVOR},
            "resourceUsage": {"cpu": str(pods)},
        }
        conditions = [
            _condition("QuotaReserved", "QuotaReserved", admitted, f"Quota reserved in ClusterQueue {queue}"),
            _condition("Admitted", "Admitted", admitted, "The workload is admitted"),
        ]
        if finished <= now:
            reason = "Failed" if replay.log.ends_failed[row] else "Succeeded"
            conditions.append(_condition("Finished", reason, finished, "The job has ended"))
        return {
            "admission": {"clusterQueue": queue, "podSetAssignments": [assignment]},
            "conditions": [*conditions],
        }


def _condition(type_: str, reason: str, since: int, message: str, *, status: str = "True") -> JsonObject:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": format_time(since),
        "observedGeneration": 1,
    }
