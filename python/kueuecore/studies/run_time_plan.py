"""Chooses run times for the jobs of a cluster: given ones, or those of enough similar jobs that have ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from kueuecore.errors import ManifestError
from kueuecore.scenarios import Present, Spans
from kueuecore.studies.present_workloads import JobKind, PresentWorkload, Status
from kueuecore.studies.run_times import FittedRunTimes, GivenRunTimes, LeftRunTimes, RunTimes

__all__ = ["LEAST_FINISHED", "RunTimeNote", "RunTimePlan"]

LEAST_FINISHED = 10
"""The least number of finished jobs to predict how long similar ones run."""
_LEAST_WINDOW = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimeNote:
    """Where the run times of some jobs come from.

    Args:
        local_queue: The LocalQueue of the jobs as `namespace/name`; empty: jobs that run now.
        priority: Their priority; None: any.
        source: The jobs that the run times come from: `Priority` (the same LocalQueue and priority), `LocalQueue`,
            `ClusterQueue` or `All`. `Given`: from the caller.
        n_finished: How many of these have ended.
        n_running: How many of them run.
        median_seconds: The median of those that have ended; None: given.
    """

    local_queue: str
    priority: int | None
    source: str
    n_finished: int = 0
    n_running: int = 0
    median_seconds: float | None = None


class RunTimePlan:
    """The run times of each kind of job.

    Args:
        workloads: The Workloads of the cluster.
        coming: Kinds of jobs that will arrive.
        now: The present, in nanoseconds since 1970.
        present: What a scenario says about existing jobs.
        given: The caller's run times by LocalQueue, by ClusterQueue, or for all others.

    Raises:
        ManifestError: Nothing says how long jobs run, or a named queue has no Workloads.
    """

    def __init__(
        self,
        workloads: Sequence[PresentWorkload],
        coming: Sequence[JobKind],
        *,
        now: int,
        present: Present,
        given: Mapping[str, Spans],
    ) -> None:
        self.run_times: dict[str, RunTimes] = {}
        self.group_of: dict[JobKind, str] = {}
        self.group_of_running: dict[JobKind, str] = {}
        self.warnings: list[str] = []
        self._notes: dict[RunTimeNote, None] = {}
        self._ended = [(workload, workload.run_seconds) for workload in workloads if workload.run_seconds is not None]
        running = [
            workload for workload in workloads if workload.status is Status.ADMITTED and workload.started is not None
        ]
        self._running = [(workload, max(now - (workload.started or 0), 0) / 1e9) for workload in running]
        _check_queues(given, workloads)
        alive = [workload for workload in workloads if workload.status is not Status.FINISHED]
        running_kinds = {workload.kind for workload in alive if workload.status is not Status.PENDING}
        waiting_kinds = {workload.kind for workload in alive if workload.status is Status.PENDING}
        homes = {workload.local_queue: workload.cluster_queue for workload in workloads}
        for kind in sorted({*running_kinds, *waiting_kinds, *coming}):
            queue, home = f"{kind[0]}/{kind[1]}", homes.get(kind[:2], "")
            key = next((entry for entry in (queue, home, "") if entry in given), None)
            if key is not None:
                self.group_of[kind] = self._given(queue, f"given/{key}", GivenRunTimes(given[key]))
                continue
            if present.runs is not None and kind in running_kinds:
                self.group_of_running[kind] = self._given("", "present.runs", LeftRunTimes(present.runs))
            if present.waiting_runs is not None:
                spans = GivenRunTimes(present.waiting_runs)
                self.group_of[kind] = self._given(queue, "present.waitingRuns", spans)
            elif kind in {*waiting_kinds, *coming} or kind not in self.group_of_running:
                self.group_of[kind] = self._fitted(kind, home)

    @property
    def notes(self) -> tuple[RunTimeNote, ...]:
        """Return where they come from, each once."""
        return tuple(self._notes)

    @property
    def typical_seconds(self) -> float:
        """Return how long jobs typically run; at least a minute."""
        return max([_LEAST_WINDOW, *(note.median_seconds for note in self._notes if note.median_seconds is not None)])

    def _given(self, queue: str, group: str, run_times: RunTimes) -> str:
        """Return the group of jobs with given run times."""
        self.run_times[group] = run_times
        self._notes[RunTimeNote(local_queue=queue, priority=None, source="Given")] = None
        return group

    def _fitted(self, kind: JobKind, home: str) -> str:
        """Return the group of the most similar jobs of which enough have ended."""
        queue, priority = f"{kind[0]}/{kind[1]}", kind[2]
        choices: list[tuple[str, str, Callable[[PresentWorkload], bool]]] = [
            ("Priority", f"{queue} of priority {priority}", lambda it: it.kind == kind),
            ("LocalQueue", queue, lambda it: it.local_queue == kind[:2]),
            ("ClusterQueue", home, lambda it: bool(home) and it.cluster_queue == home),
            ("All", "all queues", lambda it: True),
        ]
        for source, name, is_alike in choices:
            ended = [seconds for entry, seconds in self._ended if is_alike(entry)]
            if len(ended) < (1 if source == "All" else LEAST_FINISHED):
                continue
            running = [seconds for manifest, seconds in self._running if is_alike(manifest)]
            group = f"{source}/{name}"
            if group not in self.run_times:
                self.run_times[group] = FittedRunTimes.of(ended, running)
                self._warn(name, ended, running)
            note = RunTimeNote(
                local_queue=queue,
                priority=priority if source == "Priority" else None,
                source=source,
                n_finished=len(ended),
                n_running=len(running),
                median_seconds=median(ended),
            )
            self._notes[note] = None
            return group
        remedy = "assume a run time, such as --run-seconds '{mean: 30m}'"
        raise ManifestError.of("no Workload has finished, so nothing says how long jobs run", remedy=remedy)

    def _warn(self, name: str, ended: Sequence[float], running: Sequence[float]) -> None:
        if len(ended) < LEAST_FINISHED:
            finished = "1 Workload" if len(ended) == 1 else f"{len(ended)} Workloads"
            self.warnings.append(f"only {finished} of {name} finished: run times are a guess")
        n_longer = sum(value > max(ended) for value in running)
        if n_longer:
            jobs = "1 job" if n_longer == 1 else f"{n_longer} jobs"
            reported = "has run longer than any that finished: it" if n_longer == 1 else "have run longer: they"
            self.warnings.append(f"{jobs} of {name} {reported} will end at the rate of the longest fifth")


def _check_queues(given: Mapping[str, Spans], workloads: Sequence[PresentWorkload]) -> None:
    names = {"/".join(workload.local_queue) for workload in workloads} | {
        workload.cluster_queue for workload in workloads
    } - {""}
    for queue in given:
        if queue and queue not in names:
            remedy = f"write one of {', '.join(sorted(names))}" if names else "pass dumps with Workloads"
            raise ManifestError.of(f"no Workload is in a queue {queue}", field="--run-seconds", remedy=remedy)
