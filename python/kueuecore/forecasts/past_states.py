"""A cluster as it was at earlier moments, by what its present Workloads show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.forecasts.base_state import State
from kueuecore.forecasts.present_workloads import PresentWorkload, Status, since_condition
from kueuecore.manifests import Manifest
from kueuecore.times import SECOND_NS

__all__ = ["PastStates"]

# A cycle takes a second, and one may be under way when a Workload is created.
_FOUND_NO_ROOM = 2 * SECOND_NS
# What a Workload has only once its job has ended, or is being stopped.
_AT_THE_END = ("Finished", "Evicted", "Preempted")


class PastStates:
    """Past states of a cluster.

    Its queues and quotas were as they are. What waited or ran at a moment is what waits or runs now, and what has ended
    since. A Workload that was evicted, or deleted, is only known since its last admission.

    Args:
        present: The present state.
        workloads: All Workloads, ended ones included.
    """

    def __init__(self, present: State, workloads: Sequence[PresentWorkload]) -> None:
        self._scenario = replace(present.scenario, work=(), generated=None, traces=(), timetable=(), until_seconds=None)
        self._objects = present.objects
        self._workloads = workloads
        never = np.iinfo(np.int64).max
        waited = [_waited_since(it) for it in workloads]
        self._created = np.array([never if since is None else since for since in waited], np.int64)
        self._started = np.array([never if it.started is None else it.started for it in workloads], np.int64)
        self._ended = np.array([never if it.ended is None else it.ended for it in workloads], np.int64)
        self._can_run = np.array([_is_placed(it.manifest.object) for it in workloads], bool)
        is_waiting = np.array([it.status is Status.PENDING and it.is_active for it in workloads], bool)
        self._has_waited = (self._started < never) | is_waiting
        # Nobody knows whether one that was evicted waited or ran before it was last admitted.
        self._is_clear = np.array(
            [it.started is None or not _was_evicted(it.manifest.object) for it in workloads], bool
        )
        self._as_running: dict[int, PresentWorkload] = {}
        self._as_waiting: dict[int, PresentWorkload] = {}

    def waiting_at(self, moment: int) -> list[int]:
        """Return which Workloads waited at a moment, by index; in nanoseconds since 1970."""
        return np.flatnonzero((self._created <= moment) & (self._started > moment) & self._has_waited).tolist()

    def clear_waits(self, waiting: Sequence[int]) -> list[int]:
        """Return those of some that waited of which it is known when that wait was over, or that it is not."""
        return [place for place in waiting if self._is_clear[place]]

    def first_wait(self, begin: int, end: int) -> tuple[int, int] | None:
        """Return when the first Workload that found no room was seen to wait, and its index; None: none did.

        Args:
            begin: From when on it may have been created, in nanoseconds since 1970.
            end: By when it must have been seen.
        """
        seen = np.minimum(self._created, end) + _FOUND_NO_ROOM
        is_one = (self._created > begin) & (seen < end) & (self._started > seen) & self._has_waited & self._is_clear
        if not is_one.any():
            return None
        place = int(np.argmin(np.where(is_one, seen, np.iinfo(np.int64).max)))
        return int(seen[place]), place

    def running_at(self, moment: int) -> list[int] | None:
        """Return which ran, by index; None: that is unknown, as the status of one of them does not say where."""
        ran = (self._started <= moment) & (self._ended > moment)
        return np.flatnonzero(ran).tolist() if self._can_run[ran].all() else None

    def state(self, moment: int, running: Sequence[int], waiting: Sequence[int]) -> State:
        """Return the state at a moment; its Workloads are the running ones, then the waiting ones, in that order."""
        workloads = [*(self._running(place) for place in running), *(self._waiting(place) for place in waiting)]
        return State(
            scenario=replace(self._scenario, start=moment),
            objects=self._objects,
            workloads=tuple(workloads),
            trusted=True,
        )

    def _running(self, place: int) -> PresentWorkload:
        if place not in self._as_running:
            workload = self._workloads[place]
            plain = workload.manifest.object
            status = dict(object_at(plain, "status"))
            conditions = list_at(plain, "status", "conditions")
            status["conditions"] = [it for it in conditions if text_at(it, "type") not in _AT_THE_END]
            self._as_running[place] = _with(workload, status, Status.ADMITTED)
        return self._as_running[place]

    def _waiting(self, place: int) -> PresentWorkload:
        if place not in self._as_waiting:
            self._as_waiting[place] = _with(self._workloads[place], None, Status.PENDING)
        return self._as_waiting[place]


def _with(workload: PresentWorkload, status: JsonObject | None, known: Status) -> PresentWorkload:
    plain = {name: value for name, value in workload.manifest.object.items() if name != "status"}
    if status is not None:
        plain["status"] = status
    started = workload.started if known is Status.ADMITTED else None
    return replace(workload, manifest=Manifest(plain), status=known, started=started, ended=None)


def _is_placed(workload: JsonObject) -> bool:
    return bool(list_at(workload, "status", "admission", "podSetAssignments"))


def _was_evicted(workload: JsonObject) -> bool:
    """Whether it was ever evicted: once it is admitted again, its condition is false."""
    return any(text_at(it, "type") == "Evicted" for it in list_at(workload, "status", "conditions")) or bool(
        list_at(workload, "status", "schedulingStats", "evictions")
    )


def _waited_since(workload: PresentWorkload) -> int | None:
    """Return since when a Workload is known to have waited: an evicted one may have run before."""
    evicted = since_condition(workload.manifest.object, "Evicted") if workload.status is Status.PENDING else None
    return workload.created if evicted is None or workload.created is None else max(workload.created, evicted)
