"""Runs the controllers of `kueuecore.controller` in a cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import TypeAlias

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore._text import logged
from kueuecore.checks import CheckController
from kueuecore.configuration import Configuration
from kueuecore.controller import Controller, JobController, JobWork, Metrics
from kueuecore.decisions import Event
from kueuecore.errors import ManifestError, ObjectRef
from kueuecore.jobs import JobsConfiguration
from kueuecore.kubernetes.api import Api
from kueuecore.kubernetes.requests import Sending
from kueuecore.kubernetes.sender import Stream, Task
from kueuecore.kubernetes.watches import News
from kueuecore.kubernetes.webhooks.objections import WebhookObjections
from kueuecore.manifests import object_ref
from kueuecore.provisioning import ProvisioningController
from kueuecore.times import SECOND_NS, format_time
from kueuecore.writes import Answer, Write

__all__ = ["Decider", "Submit"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
_ASKS_AFTER_SECONDS = 5.0
# Kinds that are written and not watched.
_WRITTEN = {"Event": ("v1", "events"), "PodTemplate": ("v1", "podtemplates")}

Submit: TypeAlias = Callable[[Hashable, Task, Stream], None]
"""Adds a task to a lane of a stream; the tasks of a lane run one after the other."""


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
        self._objections = WebhookObjections(self.loop, configuration)
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
            _LOGGER.warning("not taken in", extra={"problem": logged(problem)})
        self._unlisted.discard(news.kind)
        _LOGGER.debug("listed", extra={"kind": news.kind, "objects": len(news.listed)})

    def _observe(self, news: News) -> None:
        try:
            self.jobs.observe(news.event, now=self._now(), data=news.data)
        except ManifestError as error:
            _LOGGER.warning("not taken in", extra={"problem": logged(error)})

    # Output.

    def step(self, *, decides: bool = True) -> int | None:
        """Look at the jobs, take a turn, and hand over the writes.

        Args:
            decides: Take a turn? Without it, jobs only start and stop.

        Returns:
            When to call it again if no news arrives before; None: never.
        """
        self._object()
        for work in self.jobs.take_due(self._now()):
            self._carry_out(work)
        if not decides:
            return self.jobs.next_wake(self._now())
        began = time.perf_counter()
        turn = self.loop.turn(self._now())
        if self._metrics is not None:
            self._metrics.time_attempt(turn.decision, seconds=time.perf_counter() - began)
        for lane, writes in groupby(turn.writes, key=_lane):
            self._send(lane, writes, self._done, Stream.WORKLOADS)
        for lane, writes in groupby(turn.objects, key=_lane):
            self._send(lane, writes, self._done, Stream.OBJECTS)
        self.emit(event.manifest(self._time, uid=self._uid(event)) for event in turn.events)
        now = self._now()
        times = [self.loop.next_wake(now), self.jobs.next_wake(now)]
        return min((other for other in times if other is not None), default=None)

    def _object(self) -> None:
        """Warn of objects that a webhook would have refused, once for each version."""
        for objection in self._objections.take():
            extra = {"object": str(object_ref(objection.object)), "problem": logged(objection.message)}
            _LOGGER.warning("used, though Kueue's webhooks would refuse it", extra=extra)
            self.emit([objection.event.manifest(self._time)])

    def _carry_out(self, work: JobWork) -> None:
        if work.waits_for:
            _LOGGER.info("job waits", extra={"job": str(work.job), "for": logged(work.waits_for)})
        if not work.requests:
            # Without requests it is done: a late report would be mistaken for that of the job's next requests.
            self.emit(event.manifest(self._time) for event in work.events)
            return
        self._send(work.job, work.requests, partial(self._request_done, work), Stream.JOBS)

    def _send(
        self,
        lane: Hashable,
        writes: Iterable[Write],
        done: Callable[[Write, Answer], None],
        stream: Stream,
        *,
        asks_after: float = 0,
    ) -> None:
        """Hand over writes; how each went is reported in the deciding thread."""

        def sent(write: Write, answer: Answer) -> None:
            self._call(partial(done, write, answer))

        self._requests(lane, Sending(self.api, tuple(writes), sent, asks_after), stream)

    def emit(self, manifests: Iterable[JsonObject]) -> None:
        """Create Events, those about one object in order."""
        for event in manifests:
            # Clusters keep Events for an hour; `kueuecore history` finds them here after that.
            _LOGGER.info("event", extra=_logged(event))
            self._create_event(text_at(event, "involvedObject", "uid"), event)

    # Outcomes.

    def _done(self, write: Write, answer: Answer) -> None:
        try:
            self.loop.done(write, answer, now=self._now())
        except (ManifestError, ValueError) as error:
            # The answer was not that Workload, so the outcome is unknown.
            _LOGGER.warning("answer not understood", extra={"workload": write.object.key, "error": logged(error)})
            self._send(_lane(write), (write,), self._done, Stream.WORKLOADS, asks_after=_ASKS_AFTER_SECONDS)
            return
        self.take_answer(answer)
        if answer.is_accepted:
            self.emit(write.event_manifests(self._time))

    def _request_done(self, work: JobWork, request: Write, answer: Answer) -> None:
        self.take_answer(answer)
        if not answer.is_accepted or request is work.requests[-1]:
            self.jobs.done(work.job, answer, now=self._now())
        if answer.is_accepted and request is work.requests[-1]:
            self.emit(event.manifest(self._time) for event in work.events)

    def take_answer(self, answer: Answer) -> None:
        """Take in the object of an answer before a watch shows it; not of this decider's own writes of Workloads."""
        if answer.object is None:
            return
        try:
            self.jobs.take_answer(answer.object, now=self._now())
        except ManifestError as error:
            _LOGGER.warning("not taken in", extra={"problem": logged(error)})

    @property
    def _time(self) -> str:
        return format_time(self._now() // SECOND_NS * SECOND_NS)

    def _uid(self, event: Event) -> str:
        return text_at(self.loop.workload(event.name, namespace=event.namespace), "metadata", "uid")


def _logged(event: JsonObject) -> dict[str, str]:
    about = object_at(event, "involvedObject")
    ref = ObjectRef(text_at(about, "kind"), text_at(about, "name"), text_at(about, "namespace"))
    said = {"type": text_at(event, "type"), "reason": text_at(event, "reason"), "note": text_at(event, "message")}
    return {"object": str(ref), "uid": text_at(about, "uid"), **said}


def _lane(write: Write) -> Hashable:
    """Return what must be written in order: the objects of a workload's check, or the writes of one object."""
    return (write.workload, write.check) if write.check else write.object
