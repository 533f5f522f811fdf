"""Chooses run times for the jobs of a cluster: given ones, or those of similar jobs; and says which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from kueuecore._text import counted
from kueuecore.errors import ManifestError
from kueuecore.forecasts.fitted_draws import GivenDraws
from kueuecore.forecasts.given_run_times import GivenRunTimes, LeftRunTimes, RunTimes
from kueuecore.forecasts.past_jobs import PastJob
from kueuecore.forecasts.present_workloads import Status
from kueuecore.forecasts.similar_jobs import JobsAt
from kueuecore.scenarios import Present, Spans

__all__ = ["LEAST_FINISHED", "RunTimeNote", "RunTimePlan", "UnknownRunTimesError"]

LEAST_FINISHED = 10
"""With fewer, run times are a guess."""
_LEAST_WINDOW = 60.0

_JobKind: TypeAlias = tuple[str, str, int]
"""Namespace and name of the LocalQueue, and the priority."""


class UnknownRunTimesError(ManifestError):
    """Nothing says how long jobs run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimeNote:
    """Where the run times of some jobs come from.

    Args:
        local_queue: The LocalQueue of the jobs as `namespace/name`; empty: jobs that run now.
        priority: Their priority; None: any.
        source: The jobs that weigh most: those of the same `Program` (LocalQueue, name, size, time limit and priority),
            `LocalQueue` or `ClusterQueue`, or `All`. `Limit`: nothing has finished, and they run to their limits.
            `Given`: from the caller.
        n_finished: How many jobs of the LocalQueue have ended.
        n_running: How many of them run.
        median_seconds: The median of those that have ended; None: given, or unknown.
    """

    local_queue: str
    priority: int | None
    source: str
    n_finished: int = 0
    n_running: int = 0
    median_seconds: float | None = None


class RunTimePlan:
    """The run times of the present workloads and of those that will arrive.

    Args:
        past: The past jobs, as they are known now.
        jobs: The same.
        present: The index of each present workload among them, and its status.
        coming: The index of the job that each arrival is like.
        given_present: What a scenario says about existing jobs.
        given: The caller's run times by LocalQueue, by ClusterQueue, or for all others.

    Raises:
        UnknownRunTimesError: Nothing says how long jobs run.
        ManifestError: A named queue has no Workloads.
    """

    def __init__(
        self,
        past: JobsAt,
        jobs: Sequence[PastJob],
        present: Sequence[tuple[int, Status]],
        coming: Sequence[int],
        *,
        given_present: Present,
        given: Mapping[str, Spans],
    ) -> None:
        self.warnings: list[str] = []
        self._past, self._jobs = past, jobs
        self._given_present, self._given = given_present, given
        self._run_times: dict[str, RunTimes] = {}
        self._notes: dict[RunTimeNote, None] = {}
        _check_queues(given, jobs)
        of_present = {place: self._group(job, status) for place, (job, status) in enumerate(present)}
        of_arrivals = {place: self._group(job, Status.PENDING) for place, job in enumerate(coming)}
        self.draws = GivenDraws(
            self._run_times,
            {place: group for place, group in of_present.items() if group is not None},
            {place: group for place, group in of_arrivals.items() if group is not None},
        )
        kinds: dict[_JobKind, list[int]] = {}
        for place, (job, _) in enumerate(present):
            if of_present[place] is None:
                kinds.setdefault(_kind_of(jobs[job]), []).append(job)
        for kind, places in sorted(kinds.items()):
            self._note(kind, places)

    @property
    def is_fitted(self) -> bool:
        """Whether all run times come from the past."""
        return not self._run_times

    @property
    def notes(self) -> tuple[RunTimeNote, ...]:
        """Return where they come from, each once."""
        return tuple(sorted(self._notes, key=lambda note: (note.local_queue, note.priority or 0)))

    @property
    def typical_seconds(self) -> float:
        """Return how long jobs typically run; at least a minute."""
        return max([_LEAST_WINDOW, *(note.median_seconds for note in self._notes if note.median_seconds is not None)])

    def _group(self, place: int, status: Status) -> str | None:
        """Return the group of a job with given run times; None: they are fitted."""
        job = self._jobs[place]
        queue = f"{job.namespace}/{job.local_queue}"
        key = next((entry for entry in (queue, job.cluster_queue, "") if entry in self._given), None)
        if key is not None:
            return self._note_given(queue, f"given/{key}", GivenRunTimes(self._given[key]))
        present = self._given_present
        if present.runs is not None and status is not Status.PENDING:
            return self._note_given("", "present.runs", LeftRunTimes(present.runs))
        if present.waiting_runs is not None:
            return self._note_given(queue, "present.waitingRuns", GivenRunTimes(present.waiting_runs))
        if not self._past.n_ended and job.limit_seconds is None:
            remedy = "assume a run time, such as --run-seconds '{mean: 30m}'"
            raise UnknownRunTimesError.of("no Workload has finished, so nothing says how long jobs run", remedy=remedy)
        return None

    def _note_given(self, queue: str, group: str, run_times: RunTimes) -> str:
        self._run_times[group] = run_times
        self._notes[RunTimeNote(local_queue=queue, priority=None, source="Given")] = None
        return group

    def _note(self, kind: _JobKind, places: Sequence[int]) -> None:
        """Note where the run times of some jobs of one LocalQueue and priority come from."""
        queue, priority = f"{kind[0]}/{kind[1]}", kind[2]
        if not self._past.n_ended:
            self.warnings.append(f"no Workload has finished: jobs of {queue} are assumed to run to their limits")
            self._notes[RunTimeNote(local_queue=queue, priority=priority, source="Limit")] = None
            return
        # Jobs with the same prospects have the same source.
        alike = Counter(map(self._past.kind_of, places))
        first = {self._past.kind_of(place): place for place in reversed(places)}
        sources: Counter[str] = Counter()
        for number, n_alike in alike.items():
            sources[self._past.source(first[number])] += n_alike
        ended, running = self._past.of_queue(places[0])
        if len(ended) < LEAST_FINISHED:
            self.warnings.append(f"only {counted(len(ended), 'job')} of {queue} finished: run times are a guess")
        n_longer = int(np.count_nonzero(running > ended.max(initial=0.0)))
        if n_longer and len(ended):
            have = "has" if n_longer == 1 else "have"
            self.warnings.append(f"{counted(n_longer, 'job')} of {queue} {have} run longer than any that finished")
        note = RunTimeNote(
            local_queue=queue,
            priority=priority,
            source=max(sources, key=lambda source: (sources[source], source)),
            n_finished=len(ended),
            n_running=len(running),
            median_seconds=float(np.median(ended)) if len(ended) else None,
        )
        self._notes[note] = None


def _kind_of(job: PastJob) -> _JobKind:
    return job.namespace, job.local_queue, job.priority


def _check_queues(given: Mapping[str, Spans], jobs: Sequence[PastJob]) -> None:
    names = {f"{job.namespace}/{job.local_queue}" for job in jobs} | {job.cluster_queue for job in jobs} - {""}
    for queue in given:
        if queue and queue not in names:
            remedy = f"write one of {', '.join(sorted(names))}" if names else "pass dumps with Workloads"
            raise ManifestError.of(f"no Workload is in a queue {queue}", field="--run-seconds", remedy=remedy)
