"""A controller that runs: watches come in, one thread decides, and others carry out what it decided."""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from itertools import groupby

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.checks import CheckController, ObjectWrite
from kueuecore.configuration import Configuration
from kueuecore.controller import Controller, JobController, JobWork, Metrics, WorkloadWrite
from kueuecore.controller.writes import workload_event
from kueuecore.decisions import Event
from kueuecore.errors import ManifestError
from kueuecore.jobs import JobsConfiguration
from kueuecore.kubernetes.api import Api, UnansweredError
from kueuecore.kubernetes.inbox import Inbox
from kueuecore.kubernetes.requests import Emission, JobTask, ObjectsTask, WorkloadTask, pause_after
from kueuecore.kubernetes.sender import Sender
from kueuecore.kubernetes.watches import News, list_all
from kueuecore.kubernetes.watching import Watching
from kueuecore.provisioning import ProvisioningController
from kueuecore.times import format_time

__all__ = ["Process"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
_SECOND_NS = 1_000_000_000
_N_WRITERS = 16
_N_EMITTERS = 2
# Events that are not sent yet; what comes beyond is dropped, as by Kueue's recorder.
_MOST_EVENTS = 10_000


class Process:
    """Watches a cluster and carries out what Kueue would do there, until `stop`.

    What is heard comes through an inbox to the thread in which `run` was called, which alone touches the controllers.
    Requests are made in other threads, those about one object one after the other; how they went comes back through
    the inbox.

    Args:
        api: The API server; its `kinds` are set here.
        configuration: Kueue's Configuration; by default that of Kueue's release manifest.
        metrics: Counts what is decided and written.
        checks: Who decides on AdmissionChecks; by default on those of ProvisioningRequests.
        leads: Does it decide from the start? Otherwise once `lead` is called; until then it only watches.
        emits: Sends the Events; by default `api`. Another one has a pace of its own.

    Example:
        >>> process = Process(Api.connect(server="http://127.0.0.1:8001"))
        >>> "ClusterQueue" in process.api.kinds
        True
        >>> process.run()  # doctest: +SKIP
    """

    def __init__(
        self,
        api: Api,
        *,
        configuration: Configuration | None = None,
        metrics: Metrics | None = None,
        checks: Iterable[CheckController] | None = None,
        leads: bool = True,
        emits: Api | None = None,
    ) -> None:
        self.api = api
        self._metrics = metrics
        gates = configuration or Configuration()
        deletes = gates.is_enabled("CleanupProvisioningRequestsOnEviction")
        self.loop = Controller(
            configuration,
            models_readiness=True,
            metrics=metrics,
            checks=(ProvisioningController(deletes_on_eviction=deletes),) if checks is None else tuple(checks),
            watches_nodes=gates.is_enabled("TopologyAwareScheduling"),
        )
        self.jobs = JobController(self.loop, configuration=JobsConfiguration.of(configuration), metrics=metrics)
        api.kinds = dict(self.jobs.kinds)
        self._kinds = frozenset(api.kinds)
        self._emits = emits or api
        for it in (api, self._emits):
            it.kinds["Event"] = ("v1", "events")
        self._watched = Api(api.client, kinds=self.jobs.kinds)
        self._inbox = Inbox()
        self._now = self._inbox.now
        self._watching = Watching(self._watched, hear=self._on_news, died=self.end)
        self._sender = Sender("write", n_threads=_N_WRITERS, failed=self.end)
        self._emitter = Sender("event", n_threads=_N_EMITTERS, failed=self.end)
        self._unlisted = set(self._kinds)
        self._leads = leads

    # What others ask of it, from any thread.

    def run(self) -> None:
        """Watch, decide and write until `stop`, in this thread.

        Raises:
            BaseException: Why it cannot go on: a watch or a thread that writes has died, or `end` was called.
        """
        self._watching.start()
        wake: int | None = None
        try:
            while not self._inbox.is_over:
                self._inbox.take(until=wake)
                if self._leads and not self._unlisted and not self._inbox.is_over:
                    wake = self._step()
        finally:
            self._watching.stop()
            # What is on its way comes to an end, so that nobody has to wonder.
            all_sent = self._sender.close(seconds=5)
            all_sent &= self._emitter.close(seconds=2)
            if not all_sent:
                _LOGGER.warning("some writes were given up")

    def lead(self) -> None:
        """Decide from now on, with all that the leader before has written."""
        n_failed = 0
        while not self._inbox.is_over:
            try:
                # A watch may not have shown the last admissions yet.
                news = News("Workload", *list_all(self.api, "Workload"))
            except (RefusedError, UnansweredError) as error:
                n_failed += 1
                time.sleep(pause_after(n_failed, error))
            else:
                self._inbox.put(partial(self._hear, news))
                self._inbox.put(partial(setattr, self, "_leads", True))
                return

    def stop(self) -> None:
        """End `run` after what is on its way."""
        self._inbox.stop()

    def end(self, error: BaseException) -> None:
        """End `run` with an error."""
        self._inbox.end(error)

    def metrics_text(self) -> str:
        """The metrics in the text form of Prometheus.

        Raises:
            queue.Empty: The deciding thread has had no time for it.
        """
        metrics = self._metrics
        return "" if metrics is None else self._inbox.ask(lambda: metrics.text(self.loop.engine))

    @property
    def unready(self) -> dict[str, str]:
        """Why it is not ready: kinds that were not listed yet, and watches that do not work, with what is wrong."""
        return {**dict.fromkeys(sorted(self._unlisted), "is not listed yet"), **self._watching.faults}

    @property
    def silent_seconds(self) -> float:
        """For how long nothing was decided although something has come in."""
        return self._inbox.silent_seconds

    @property
    def n_open(self) -> int:
        """How many requests are on their way, or wait to be made again; Events are not counted."""
        return self._sender.n_tasks

    # What comes in.

    def _on_news(self, news: News) -> None:
        self._inbox.put(partial(self._hear, news))

    def _hear(self, news: News) -> None:
        if news.listed is None:
            self._observe(news.event)
            return
        problems = self.jobs.resync(news.kind, news.listed, resource_version=news.version, now=self._now())
        for problem in problems:
            _LOGGER.warning("not taken in", extra={"problem": str(problem)})
        self._unlisted.discard(news.kind)
        if not self._unlisted:
            _LOGGER.debug("listed", extra={"kind": news.kind, "objects": len(news.listed)})

    def _observe(self, event: JsonObject) -> None:
        try:
            self.jobs.observe(event, now=self._now())
        except ManifestError as error:
            _LOGGER.warning("not taken in", extra={"problem": str(error)})

    # What goes out.

    def _step(self) -> int | None:
        """Look at the jobs, take a turn, and hand over what is to be written. Returns when to do so again."""
        for work in self.jobs.take_due(self._now()):
            self._carry_out(work)
        began = time.perf_counter()
        turn = self.loop.turn(self._now())
        if self._metrics is not None:
            self._metrics.time_attempt(turn.decision, seconds=time.perf_counter() - began)
        for write in turn.writes:
            task = WorkloadTask(self.api, write, confirmed=self._confirmed, refused=self._refused)
            self._sender.submit(("Workload", write.namespace, write.name), task)
        self._store(turn.objects)
        self._emit(workload_event(it, uid=self._uid(it), now=self._time) for it in turn.events)
        now = self._now()
        times = [self.loop.next_wake(now), self.jobs.next_wake(now)]
        return min((it for it in times if it is not None), default=None)

    def _carry_out(self, work: JobWork) -> None:
        if work.waits_for:
            _LOGGER.info("job waits", extra={"job": str(work.job), "for": work.waits_for})
        task = JobTask(
            self.api,
            work,
            answered=self._answered,
            done=lambda it: self._inbox.put(partial(self._job_done, it)),
            failed=lambda it: self._inbox.put(lambda: self.jobs.failed(it.job, now=self._now())),
        )
        self._sender.submit(work.job, task)

    def _job_done(self, work: JobWork) -> None:
        self.jobs.done(work.job)
        self._emit(event.manifest(self._time) for event in work.events)

    def _store(self, writes: Sequence[ObjectWrite]) -> None:
        for lane, of_lane in groupby(writes, key=_lane):
            task = ObjectsTask(self.api, tuple(of_lane), answered=self._answered, refused=self._object_refused)
            self._sender.submit(lane, task)

    def _emit(self, events: Iterable[JsonObject]) -> None:
        for event in events:
            if self._emitter.n_tasks >= _MOST_EVENTS:
                _LOGGER.warning("events were dropped, as too many wait to be created")
                return
            # Those about one object in their order.
            about = object_at(event, "involvedObject")
            self._emitter.submit(text_at(about, "uid"), Emission(self._emits, event))

    # How it went; called in the threads that send.

    def _confirmed(self, write: WorkloadWrite, answer: JsonObject) -> None:
        def confirm() -> None:
            self.loop.confirm(write, answer, now=self._now())
            self._observe({"type": "MODIFIED", "object": answer})
            self._emit(write.event_manifests(self._time))

        self._inbox.put(confirm)

    def _refused(self, write: WorkloadWrite, newest: JsonObject | None) -> None:
        def refuse() -> None:
            self.loop.refuse(write, newest, gone=newest is None, now=self._now())
            if newest is not None:
                self._observe({"type": "MODIFIED", "object": newest})

        self._inbox.put(refuse)

    def _answered(self, manifest: JsonObject) -> None:
        self._inbox.put(partial(self._observe, {"type": "MODIFIED", "object": manifest}))

    def _object_refused(self, write: ObjectWrite, error: Exception) -> None:
        is_there = isinstance(error, RefusedError) and error.code == 409
        self._inbox.put(lambda: self.loop.refuse_object(write, str(error), is_there=is_there, now=self._now()))

    @property
    def _time(self) -> str:
        return format_time(self._now() // _SECOND_NS * _SECOND_NS)

    def _uid(self, event: Event) -> str:
        return text_at(self.loop.workload(event.name, namespace=event.namespace), "metadata", "uid")


def _lane(write: ObjectWrite) -> Hashable:
    """What has to be written in order: the objects of a workload for its check, or the writes of one object."""
    return (write.workload, write.check) if write.check else write.object
