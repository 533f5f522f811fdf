"""Runs Kueue's job controllers without their I/O: when each job is due, and what to send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kueuecore._arguments import instance, mapping, shown, text
from kueuecore._json import JsonObject, text_at
from kueuecore.controller.job_counts import JobCounts
from kueuecore.controller.job_store import JobKey, JobStore, linked_by
from kueuecore.controller.loop import Controller
from kueuecore.controller.metrics import Metrics
from kueuecore.controller.object_store import Follower
from kueuecore.controller.versions import Key
from kueuecore.controller.watched_kinds import OF_NODES, WATCHED
from kueuecore.errors import ManifestError, Problem
from kueuecore.jobs import (
    INTEGRATIONS,
    Integration,
    JobEvent,
    JobsConfiguration,
    Reconciliation,
    pod_group,
    reconcile_job,
)
from kueuecore.jobs.context import QUEUE_LABEL, configuration_or_default, labels_of
from kueuecore.jobs.deployment import DEPLOYMENT
from kueuecore.jobs.leader_worker_set import LEADER_WORKER_SET
from kueuecore.jobs.pod import POD
from kueuecore.jobs.pod_group import POD_GROUP
from kueuecore.jobs.requests import requests_of
from kueuecore.jobs.stateful_set import STATEFUL_SET
from kueuecore.jobs.train_job import RUNTIMES
from kueuecore.times import SECOND_NS, TimeLike, backoff_ns, nanoseconds
from kueuecore.writes import Answer, Write

__all__ = ["JobController", "JobWork"]

# As in Kueue's work queues: each failure doubles the pause.
_MAX_PAUSE_NS = 300 * SECOND_NS
_PRIORITIES: Mapping[str, tuple[str, str]] = {"PriorityClass": ("scheduling.k8s.io/v1", "priorityclasses")}
# What jobs may wait for.
_AROUND: Mapping[str, tuple[str, str]] = {**WATCHED, **_PRIORITIES}
# Frameworks whose objects are watched because another framework needs them.
_BROUGHT: Mapping[str, tuple[str, ...]] = {
    DEPLOYMENT.framework: (POD.framework,),
    STATEFUL_SET.framework: (POD.framework,),
    LEADER_WORKER_SET.framework: (POD.framework, STATEFUL_SET.framework),
}
_TRAINER = "trainer.kubeflow.org/v1alpha1"


@dataclass(frozen=True, slots=True)
class JobWork:
    """The result of one reconcile of a job.

    Args:
        job: Kind, name and namespace of the job; for pods in a group, those of the group, with kind PodList.
        requests: What to send, in this order; after a refusal skip the rest. If there are none, report no outcome: it
            could be mistaken for that of the job's next requests.
        events: The events to create once all requests were accepted.
        waits_for: Why the job gets no Workload or cannot start; empty if it only waits for its turn.
    """

    job: JobKey
    requests: tuple[Write, ...]
    events: tuple[JobEvent, ...]
    waits_for: str


class JobController:
    """Runs the job controllers of all kinds, without I/O and without a clock.

    Pass it the watch events of all `kinds` (`observe`, `resync`). Then carry out what `take_due` returns: send the
    requests of each `JobWork`, pass the answers to `take_answer`, and report the outcome (`done`). What jobs
    have done is reported to the loop. Not safe to use from several threads at a time.

    Args:
        loop: The controller that schedules the Workloads. Both have one store of objects: what either observes, both
            know, also what the loop has seen before.
        configuration: How jobs are managed.
        integrations: The kinds of jobs.
        metrics: Counts new Workloads and gates removed from pods; usually those of the loop.

    Raises:
        TypeError: An argument has the wrong type.

    Example:
        >>> jobs = JobController(Controller())
        >>> jobs.kinds["Job"]
        ('batch/v1', 'jobs')
        >>> job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sum", "namespace": "lab",
        ...        "uid": "u1", "resourceVersion": "1", "labels": {"kueue.x-k8s.io/queue-name": "jobs"}},
        ...        "spec": {"suspend": True, "template": {"spec": {"containers": [{"name": "c"}]}}}}
        >>> jobs.observe({"type": "ADDED", "object": job}, now=0)
        True
        >>> (work,) = jobs.take_due(0)
        >>> [(request.verb.value, request.kind) for request in work.requests]
        [('create', 'Workload')]
    """

    def __init__(
        self,
        loop: Controller,
        *,
        configuration: JobsConfiguration | None = None,
        integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS,
        metrics: Metrics | None = None,
    ) -> None:
        if metrics is not None:
            instance("metrics", metrics, Metrics)
        for key, integration in mapping("integrations", integrations).items():
            instance(f"integrations[{shown(key)}]", integration, Integration)
        self._loop = instance("loop", loop, Controller)
        self._configuration = configuration_or_default(configuration)
        self._integrations = integrations
        self._kinds = self._watched_kinds()
        objects = loop._objects.store
        # Nodes, which change all the time, do not matter to jobs.
        kinds = {kind: other for kind, other in self._kinds.items() if kind not in OF_NODES or kind == POD.kind}
        self._store = JobStore(objects, kinds, self._configuration, integrations)
        self._counts = JobCounts(metrics, self._store.get)
        # When each job is due.
        self._due: dict[JobKey, int] = {}
        # Consecutive refusals.
        self._failures: dict[JobKey, int] = {}
        # What is being sent, and what to report once it is accepted.
        self._open: dict[JobKey, Reconciliation] = {}
        # Deleted jobs, as they were last seen.
        self._gone: dict[JobKey, JsonObject] = {}
        # Jobs that wait for something, and what for.
        self._waiting: dict[JobKey, str] = {}
        objects.follow(Follower(kinds, self._check, self._note, self._note_watched), loop.engine.now)

    @property
    def kinds(self) -> Mapping[str, tuple[str, str]]:
        """What to list and watch, in this order, by kind: apiVersion and the plural in the path."""
        return self._kinds

    def _watched_kinds(self) -> Mapping[str, tuple[str, str]]:
        found = {**self._loop.kinds, **_PRIORITIES}
        enabled = {*self._configuration.frameworks}
        for framework in self._configuration.frameworks:
            # Serving kinds bring pods that wait, even if pods by themselves are not enabled.
            enabled.update(_BROUGHT.get(framework, ()))
        for integration in self._integrations.values():
            is_known = INTEGRATIONS.get((integration.group, integration.kind)) is integration
            if integration is not POD_GROUP and (integration.framework in enabled or not is_known):
                found[integration.kind] = integration.api_version, f"{integration.kind.lower()}s"
                if integration.kind == "TrainJob":
                    found |= {kind: (_TRAINER, f"{kind.lower()}s") for kind in RUNTIMES}
                if integration.supports_elastic and self._configuration.enabled("ElasticJobsViaWorkloadSlices"):
                    # Their pods wait behind a gate.
                    found["Pod"] = POD.api_version, "pods"
        return found

    # Watching: the loop does, and passes on what matters to jobs.

    def observe(self, event: Mapping[str, Any], *, now: TimeLike, data: bytes = b"") -> bool:
        """Take in a watch event, as `Controller.observe`. A pod that would spoil its group is refused, too."""
        return self._loop.observe(event, now=now, data=data)

    def take_answer(self, manifest: JsonObject, *, now: TimeLike) -> bool:
        """Take in the answer to a request before a watch shows it, as `Controller.take_answer`."""
        return self._loop.take_answer(instance("manifest", manifest, dict), now=now)

    def resync(
        self, kind: str, objects: Iterable[JsonObject], *, now: TimeLike, resource_version: str = ""
    ) -> tuple[Problem, ...]:
        """Take in the list of all objects of one of its `kinds`, as `Controller.resync`."""
        if text("kind", kind) not in self.kinds:
            raise ValueError(f"{shown(kind)} is not watched: the kinds are {', '.join(self.kinds)}")
        return self._loop.resync(kind, objects, now=now, resource_version=resource_version)

    # From the store of objects.

    def _check(self, manifest: JsonObject) -> None:
        """Refuse a pod that would spoil its group."""
        if self._store.is_job(manifest) and (key := self._store.job_key(manifest)).kind == POD_GROUP.kind:
            pod_group(key.name, [manifest])

    def _note(self, key: Key, before: JsonObject | None, after: JsonObject | None, at: int) -> None:
        if before is not None and (after is None or linked_by(before) != linked_by(after)):
            self._touch(before, at)
        if before is not None and after is None and self._store.is_job(before):
            job = self._store.job_key(before)
            # A group matters once its last pod is gone.
            self._gone[job] = pod_group(job.name, [before]) if job.kind == POD_GROUP.kind else before
        self._store.note(key, before, after)
        if after is not None:
            self._counts.see(key, after)
            self._touch(after, at)

    def _note_watched(self, kind: str, at: int) -> None:
        """Note that a watch of a kind has come further: jobs that may have been missed are known by then."""
        self._due |= dict.fromkeys(self._store.take_unsure(kind), at)

    def _touch(self, manifest: JsonObject, at: int) -> None:
        """Make the jobs due that the change of an object affects."""
        if self._store.is_job(manifest) or text_at(manifest, "kind") == "Workload":
            self._due |= dict.fromkeys(self._store.touched_by(manifest), at)
        elif text_at(manifest, "kind") in _AROUND or text_at(manifest, "kind") in RUNTIMES:
            self._due |= dict.fromkeys(self._waiting, at)

    # Work.

    def take_due(self, now: TimeLike) -> tuple[JobWork, ...]:
        """Reconcile the jobs that are due, and return the work. Jobs with nothing to do or to report are left out.

        Args:
            now: The time.
        """
        at = nanoseconds(now)
        works = []
        for key in [key for key, due in self._due.items() if due <= at and key not in self._open]:
            del self._due[key]
            gone, job = self._gone.pop(key, None), self._store.job(key)
            if (last := job or gone or self._store.missed(key)) is None:
                self._waiting.pop(key, None)
                self._failures.pop(key, None)
                continue
            found = self._look(last, at, gone=job is None)
            self._counts.note(key, last, found, at)
            if (work := self._work_of(key, last, found, at)) is not None:
                works.append(work)
        return tuple(works)

    def _look(self, job: JsonObject, at: int, *, gone: bool) -> Reconciliation:
        surroundings = self._store.surroundings(job)
        try:
            return reconcile_job(
                job,
                list(surroundings.workloads.values()),
                now=at,
                around=surroundings,
                integrations=self._integrations,
                gone=gone,
            )
        except ManifestError as error:
            return Reconciliation(waits_for=str(error))

    def _work_of(self, key: JobKey, job: JsonObject, found: Reconciliation, at: int) -> JobWork | None:
        # Most pods of a cluster have nothing to do with Kueue.
        is_meant = self._configuration.manage_jobs_without_queue_name or QUEUE_LABEL in labels_of(job)
        waits_for, before = found.waits_for if is_meant else "", self._waiting.pop(key, "")
        if waits_for:
            self._waiting[key] = waits_for
        if found.wake is not None:
            self._due.setdefault(key, max(found.wake, at))
        requests = requests_of(found.writes, lambda ref: self._store.get((ref.kind, ref.namespace, ref.name)))
        self._open[key] = found
        if not requests:
            self._close(key)
        # Report only once what it waits for.
        if not requests and not found.events and waits_for == before:
            return None
        return JobWork(key, requests, found.events, waits_for if waits_for != before else "")

    def done(self, job: JobKey, answer: Answer, *, now: TimeLike) -> None:
        """Report how the requests of a `JobWork` went; without open requests of the job nothing happens.

        After a refusal, or without an answer, the job is retried after a growing pause. A watch event about the job
        makes it due at once.

        Args:
            job: The job.
            answer: The answer to the last request that was sent: the last of all, or the first that was refused.
            now: The time.

        Raises:
            TypeError, ValueError: An argument is of the wrong type, or `now` is not a time.
        """
        at = nanoseconds(now)
        instance("job", job, JobKey)
        if instance("answer", answer, Answer).is_accepted:
            self._close(job)
            return
        self._counts.drop(job)
        if self._open.pop(job, None) is None:
            return
        self._failures[job] = n_failed = self._failures.get(job, 0) + 1
        pause_ns = backoff_ns(n_failed, first_ns=SECOND_NS, longest_ns=_MAX_PAUSE_NS)
        self._due.setdefault(job, at + pause_ns)

    def _close(self, job: JobKey) -> None:
        """Take in that all requests of a job were accepted."""
        found = self._open.pop(job, None)
        self._failures.pop(job, None)
        self._counts.count(job)
        for (namespace, name), report in found.reports.items() if found is not None else ():
            self._loop.report(name, namespace=namespace, report=report)

    def next_wake(self, now: TimeLike) -> int | None:
        """Return when to call `take_due` if nothing is observed before, in nanoseconds since 1970; `None`: never."""
        at = nanoseconds(now)
        return min((max(at, due) for key, due in self._due.items() if key not in self._open), default=None)
