"""Reads what a forecast is asked about: some workloads, and the state of the cluster that they wait in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kueuecore.checks import WorkloadKey
from kueuecore.forecasts.alone import Alone
from kueuecore.forecasts.base_state import State, rows_of
from kueuecore.forecasts.experience import Experience
from kueuecore.forecasts.past_jobs import PastJob, past_jobs_of
from kueuecore.forecasts.present_workloads import (
    PresentWorkload,
    Status,
    found_workload,
    homes_of,
    present_workloads,
    without_ended,
)
from kueuecore.scenarios import Scenario
from kueuecore.scenarios.job_rows import first_uid
from kueuecore.world import is_workload

__all__ = ["Question", "question_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a forecast is asked about.

    Args:
        scenario: The scenario, without Workloads that have ended.
        wanted: The workloads that are asked about, in the order of the request.
        never: Why those of them that wait would not be admitted even alone, by `namespace/name`; empty: they would.
        targets: Those of them that futures are played for, each once.
        state: The present state.
        present: The Workloads of the state, then those that have ended. Empty if there are no targets: then neither the
            past nor the future matters.
        jobs: The same as jobs of the past, in the same order.
        first_uid: The first number that occurs in no UID.
    """

    scenario: Scenario
    wanted: tuple[PresentWorkload, ...]
    never: Mapping[str, str]
    targets: tuple[PresentWorkload, ...]
    state: State
    present: tuple[PresentWorkload, ...]
    jobs: tuple[PastJob, ...]
    first_uid: int

    @property
    def watched(self) -> tuple[WorkloadKey, ...]:
        """Namespace and name of each target."""
        return tuple(target.namespace_and_name for target in self.targets)

    def past_jobs(self, history: Sequence[PastJob]) -> tuple[PastJob, ...]:
        """Return the jobs of the present Workloads, then those of a history that these do not show."""
        if not self.targets:
            return ()
        known = {(workload.local_queue[0], workload.created, workload.started) for workload in self.present}
        return (*self.jobs, *(job for job in history if (job.namespace, job.created, job.started) not in known))


def question_of(
    scenario: Scenario, workloads: Sequence[str] | None, experience: Experience, *, trusted: bool
) -> Question:
    """Read a scenario, and find the workloads in it.

    Args:
        scenario: The current state of a cluster.
        workloads: Names of Workloads or their jobs; None: all that wait.
        experience: What earlier calls have read; what is new is added.
        trusted: Whether the objects are taken as they are.

    Raises:
        ManifestError: The objects are wrong, or a workload does not exist.
    """
    given, ended = without_ended(scenario.cluster.objects, experience.has_ended)
    scenario = replace(scenario, cluster=replace(scenario.cluster, objects=tuple(given)))
    objects = rows_of(scenario, trusted=trusted).objects
    alive = present_workloads(objects)
    gone, gone_jobs = experience.ended(ended, homes_of(objects))
    present = (*alive, *gone)
    if workloads is None:
        wanted = [workload for workload in alive if workload.status is Status.PENDING]
    else:
        wanted = [found_workload(present, workload) for workload in workloads]
    others = tuple(object_ for object_ in objects if not is_workload(object_.object))
    alone = Alone(scenario, others, trusted=trusted)
    waiting = {workload.key: workload for workload in wanted if _waits(workload)}
    never = {key: alone.why_never(workload) for key, workload in waiting.items()}
    targets = tuple(workload for key, workload in waiting.items() if not never[key])
    if not targets:
        present = ()
    remaining = tuple(workload for workload in present if workload.status is not Status.FINISHED)
    return Question(
        scenario=scenario,
        wanted=tuple(wanted),
        never=never,
        targets=targets,
        state=State(scenario=scenario, objects=others, workloads=remaining, trusted=trusted),
        present=present,
        jobs=(*past_jobs_of(alive), *gone_jobs) if targets else (),
        first_uid=first_uid(objects),
    )


def _waits(workload: PresentWorkload) -> bool:
    return workload.status in (Status.PENDING, Status.QUOTA_RESERVED)
