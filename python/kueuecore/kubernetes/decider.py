"""Runs the controllers of `kueuecore.controller` in a cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import TypeAlias

from kueuecore._json import JsonObject, text_at
from kueuecore.api_server import RefusedError
from kueuecore.checks import CheckController, ObjectWrite
from kueuecore.configuration import Configuration
from kueuecore.controller import Controller, JobController, JobWork, Metrics, WorkloadWrite
from kueuecore.controller.writes import workload_event
from kueuecore.decisions import Event
from kueuecore.errors import ManifestError
from kueuecore.jobs import JobsConfiguration
from kueuecore.kubernetes.api import Api
from kueuecore.kubernetes.requests import JobTask, ObjectsTask, WorkloadTask
from kueuecore.kubernetes.sender import Task
from kueuecore.kubernetes.watches import News
from kueuecore.provisioning import ProvisioningController
from kueuecore.times import format_time

__all__ = ["Decider", "Submit"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
_SECOND_NS = 1_000_000_000
_ASKS_AFTER_SECONDS = 5.0
# Kinds that are written and not watched.
_WRITTEN = {"Event": ("v1", "events"), "PodTemplate": ("v1", "podtemplates")}

Submit: TypeAlias = Callable[[Hashable, Task], None]
"""Adds a task to a lane; the tasks of a lane run one after the other."""


class Decider:
    """Decides for a cluster, without threads of its own: news comes in, requests go out.

    Args:
        api: The API server; its `kinds` are set here.
        requests: Carries out a request: takes a lane and a task. The tasks of a lane run one after the other.
        emit: Creates an Event, after the earlier ones of its lane.
        call: Makes a call in the deciding thread; outcomes of requests come back that way.
        now: Returns the time, in nanoseconds since 1970; it never goes back.
        configuration: Kueue's Configuration; by default that of Kueue's release manifest.
        metrics: Counts what is decided and written.
        checks: The controllers of AdmissionChecks; by default, one for ProvisioningRequests.
    """

    def __init__(
        self,
        api: Api,
        *,
        requests: Submit,
        emit: Callable[[Hashable, JsonObject], None],
        call: Callable[[Callable[[], None]], None],
        now: Callable[[], int],
        configuration: Configuration | None = None,
        metrics: Metrics | None = None,
        checks: Sequence[CheckController] | None = None,
    ) -> None:
        self.api = api
        self._requests, self._create_event, self._call, self._now = requests, emit, call, now
        self._metrics = metrics
        gates = configuration or Configuration()
        self.loop = Controller(
            configuration,
            models_readiness=True,
            metrics=metrics,
            checks=(ProvisioningController.of(configuration),) if checks is None else tuple(checks),
            watches_nodes=gates.is_enabled("TopologyAwareScheduling"),
        )
        self.jobs = JobController(self.loop, configuration=JobsConfiguration.of(configuration), metrics=metrics)
        self._unlisted = set(self.jobs.kinds)
        api.kinds = {**self.jobs.kinds, **_WRITTEN}

    @property
    def unlisted(self) -> frozenset[str]:
        """The kinds that were not listed yet: nothing may be decided before they are."""
        return frozenset(self._unlisted)

    # Input.

    def hear(self, news: News) -> None:
        """Take in a list or an event. What cannot be read is logged and skipped."""
        if news.listed is None:
            self._observe(news)
            return
        problems = self.jobs.resync(news.kind, news.listed, resource_version=news.version, now=self._now())
        for problem in problems:
            _LOGGER.warning("not taken in", extra={"problem": str(problem)})
        self._unlisted.discard(news.kind)
        _LOGGER.debug("listed", extra={"kind": news.kind, "objects": len(news.listed)})

    def _observe(self, news: News) -> None:
        try:
            self.jobs.observe(news.event, now=self._now(), data=news.data)
        except ManifestError as error:
            _LOGGER.warning("not taken in", extra={"problem": str(error)})

    # Output.

    def step(self) -> int | None:
        """Look at the jobs, take a turn, and hand over the writes.

        Returns:
            When to call it again if no news arrives before; None: never.
        """
        for work in self.jobs.take_due(self._now()):
            self._carry_out(work)
        began = time.perf_counter()
        turn = self.loop.turn(self._now())
        if self._metrics is not None:
            self._metrics.time_attempt(turn.decision, seconds=time.perf_counter() - began)
        for write in turn.writes:
            self._write_workload(write)
        self._store(turn.objects)
        self._emit(workload_event(it, uid=self._uid(it), now=self._time) for it in turn.events)
        now = self._now()
        times = [self.loop.next_wake(now), self.jobs.next_wake(now)]
        return min((it for it in times if it is not None), default=None)

    def _write_workload(self, write: WorkloadWrite, *, asks_after: float | None = None) -> None:
        task = WorkloadTask(self.api, write, self._confirmed, self._refused, asks_after)
        self._requests(("Workload", write.namespace, write.name), task)

    def _carry_out(self, work: JobWork) -> None:
        if work.waits_for:
            _LOGGER.info("job waits", extra={"job": str(work.job), "for": work.waits_for})
        if not work.requests:
            # Without requests it is done: a late report would be mistaken for that of the job's next requests.
            self._emit(event.manifest(self._time) for event in work.events)
            return
        task = JobTask(
            self.api,
            work,
            answered=self._answered,
            done=lambda it: self._call(partial(self._job_done, it)),
            failed=lambda it: self._call(lambda: self.jobs.failed(it.job, now=self._now())),
        )
        self._requests(work.job, task)

    def _job_done(self, work: JobWork) -> None:
        self.jobs.done(work.job)
        self._emit(event.manifest(self._time) for event in work.events)

    def _store(self, writes: Sequence[ObjectWrite]) -> None:
        for lane, of_lane in groupby(writes, key=_lane):
            task = ObjectsTask(self.api, tuple(of_lane), answered=self._answered, refused=self._object_refused)
            self._requests(lane, task)

    def _emit(self, manifests: Iterable[JsonObject]) -> None:
        for event in manifests:
            # Events about one object are kept in order.
            self._create_event(text_at(event, "involvedObject", "uid"), event)

    # Outcomes; called in the sending threads.

    def _confirmed(self, write: WorkloadWrite, answer: JsonObject) -> None:
        def confirm() -> None:
            try:
                self.loop.confirm(write, answer, now=self._now())
            except (ManifestError, ValueError) as error:
                self._ask_again(write, error)
                return
            self._take_answer(answer)
            self._emit(write.event_manifests(self._time))

        self._call(confirm)

    def _refused(self, write: WorkloadWrite, newest: JsonObject | None) -> None:
        def refuse() -> None:
            try:
                self.loop.refuse(write, newest, gone=newest is None, now=self._now())
            except (ManifestError, ValueError) as error:
                self._ask_again(write, error)
                return
            if newest is not None:
                self._take_answer(newest)

        self._call(refuse)

    def _ask_again(self, write: WorkloadWrite, error: Exception) -> None:
        """Read a Workload again: the answer to its write was not that Workload, so the outcome is unknown."""
        _LOGGER.warning("answer not understood", extra={"workload": write.key, "error": str(error)})
        self._write_workload(write, asks_after=_ASKS_AFTER_SECONDS)

    def _answered(self, manifest: JsonObject) -> None:
        self._call(partial(self._take_answer, manifest))

    def _take_answer(self, manifest: JsonObject) -> None:
        try:
            self.jobs.take_answer(manifest, now=self._now())
        except ManifestError as error:
            _LOGGER.warning("not taken in", extra={"problem": str(error)})

    def _object_refused(self, write: ObjectWrite, error: Exception) -> None:
        is_there = isinstance(error, RefusedError) and error.code == 409
        self._call(lambda: self.loop.refuse_object(write, str(error), is_there=is_there, now=self._now()))

    @property
    def _time(self) -> str:
        return format_time(self._now() // _SECOND_NS * _SECOND_NS)

    def _uid(self, event: Event) -> str:
        return text_at(self.loop.workload(event.name, namespace=event.namespace), "metadata", "uid")


def _lane(write: ObjectWrite) -> Hashable:
    """Return what must be written in order: the objects of a workload's check, or the writes of one object."""
    return (write.workload, write.check) if write.check else write.object
