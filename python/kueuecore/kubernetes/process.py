"""Runs a controller: threads watch, one thread decides, and others send what it decided."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Sequence
from functools import partial

from kueuecore._json import JsonObject, JsonValue
from kueuecore.api_server import RefusedError
from kueuecore.checks import CheckController
from kueuecore.configuration import Configuration
from kueuecore.controller import Metrics
from kueuecore.kubernetes.api import Answered, Api, UnansweredError
from kueuecore.kubernetes.decider import Decider
from kueuecore.kubernetes.event_correlator import EventCorrelator
from kueuecore.kubernetes.inbox import Inbox
from kueuecore.kubernetes.requests import Emission, pause_after
from kueuecore.kubernetes.sender import Sender, Stream
from kueuecore.kubernetes.snapshots import FORECAST_KINDS, Snapshot
from kueuecore.kubernetes.visibility.pending_pages import PendingPages, PendingQuery
from kueuecore.kubernetes.watches import News, list_all
from kueuecore.kubernetes.watching import Watching
from kueuecore.kubernetes.workers.connecting import WorkerConnecting
from kueuecore.kubernetes.workers.multikueue_decider import MultiKueueDecider
from kueuecore.multikueue import Dispatcher

__all__ = ["Process"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
_N_WRITERS = 16
_N_EMITTERS = 2
# Decisions about Workloads that may wait to be written while others are made.
_MAX_UNWRITTEN = _N_WRITERS
# Events waiting to be sent; any more are dropped, as by Kueue's recorder.
_MAX_EVENTS = 10_000
# How long a client of the visibility API waits for the deciding thread.
_ANSWER_SECONDS = 5.0


class Process:
    """Watches a cluster and does there what Kueue would do, until `stop`.

    Only the thread that called `run` decides. Other threads make the requests; those about one object run one after the
    other.

    Args:
        api: The API server; its `kinds` are set here.
        configuration: Kueue's Configuration; by default that of Kueue's release manifest.
        metrics: Counts what is decided and written.
        checks: The controllers of AdmissionChecks; by default, one for ProvisioningRequests.
        leads: Whether it decides from the start. If not, it only watches until `lead` is called.
        emits: Sends the Events; by default `api`. Another `Api` has its own rate limit.
        dispatcher: Decides which workers of MultiKueue get copies; by default the one that the Configuration names.
        answered: Called after each request to a worker.

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
        checks: Sequence[CheckController] | None = None,
        leads: bool = True,
        emits: Api | None = None,
        dispatcher: Dispatcher | None = None,
        answered: Answered | None = None,
    ) -> None:
        self.api = api
        self._metrics = metrics
        self._inbox = Inbox()
        self._confirm: Callable[[], None] = lambda: None
        self._sender = Sender("write", n_threads=_N_WRITERS, failed=self._inbox.end, before=lambda: self._confirm())
        self._correlator = EventCorrelator()
        self._emitter = Sender("event", n_threads=_N_EMITTERS, failed=self._inbox.end)
        self._decider = Decider(
            api,
            requests=self._sender.submit,
            emit=self._emit,
            call=self._inbox.put,
            now=self._inbox.now,
            configuration=configuration,
            metrics=metrics,
            checks=checks,
        )
        self._pages = PendingPages(self._decider.loop)
        self._emits = emits or api
        self._emits.kinds = api.kinds
        kinds = self._decider.jobs.kinds
        self._watching = Watching(api, kinds, hear=self._on_news, died=self._inbox.end)
        self._leads = leads
        self._multikueue = self._dispatching(configuration or Configuration(), dispatcher, answered)
        self._hearers: list[Callable[[News], None]] = []

    def also_hear(self, hear: Callable[[News], None]) -> None:
        """Have all news passed on to somebody else, too, in the threads of the watches. Call it before `run`."""
        self._hearers.append(hear)

    def run(self) -> None:
        """Watch, decide and write until `stop`, in this thread.

        Raises:
            BaseException: It cannot go on: a watching or sending thread has died, or `end` was called.
        """
        self._watching.start()
        if self._multikueue is not None:
            self._watching.add(self._multikueue.kinds)
        wake: int | None = None
        # Requests on their way are completed, so that their outcome is known; unless another process may write by now.
        patience = 0.0
        try:
            while not self._inbox.is_over:
                self._inbox.take(until=wake)
                if self._leads and not self._decider.unlisted and not self._inbox.is_over:
                    self._confirm()
                    # Decisions that wait to be written would hold up all that come later, of any queue.
                    wake = self._decider.step(decides=self._sender.n_of(Stream.WORKLOADS) < _MAX_UNWRITTEN)
                    if self._multikueue is not None and (dispatch := self._multikueue.step()) is not None:
                        wake = dispatch if wake is None else min(wake, dispatch)
            patience = 5.0
        finally:
            self._watching.stop()
            if self._multikueue is not None:
                self._multikueue.close()
            all_sent = self._sender.close(seconds=patience)
            all_sent &= self._emitter.close(seconds=patience / 2)
            if not all_sent:
                _LOGGER.warning("some writes were given up")
            self.api.close()
            self._emits.close()

    # From any thread.

    def lead(self, *, confirm: Callable[[], None] = lambda: None) -> None:
        """Decide from now on, after taking in all that the previous leader has written.

        Args:
            confirm: Called before each decision and write; raises an error if another process may decide by now.
        """
        self._confirm = confirm
        n_failed = 0
        while not self._inbox.is_over:
            try:
                # A watch may not have shown the last admissions yet.
                news = News("Workload", *list_all(self.api, "Workload"))
            except (RefusedError, UnansweredError) as error:
                n_failed += 1
                time.sleep(pause_after(n_failed, error))
            else:
                self._on_news(news)
                self._inbox.put(partial(setattr, self, "_leads", True))
                return

    def stop(self) -> None:
        """End `run` once the requests on their way are done."""
        self._inbox.stop()

    def end(self, error: BaseException) -> None:
        """End `run` with an error."""
        self._inbox.end(error)

    def metrics_text(self) -> str:
        """Return the metrics in the Prometheus text format.

        Raises:
            queue.Empty: The deciding thread was too busy to answer.
        """
        metrics = self._metrics
        return "" if metrics is None else self._inbox.ask(lambda: metrics.text(self._decider.loop.engine))

    def pending(self, asked: PendingQuery) -> list[JsonValue] | None:
        """Return a page of the pending workloads of a queue; None if there is no such queue.

        Raises:
            queue.Empty: The deciding thread was too busy to answer.
        """
        return self._inbox.ask(lambda: self._pages.page(asked), seconds=_ANSWER_SECONDS)

    def snapshot(self) -> Snapshot | None:
        """Return the cluster as its watches have shown it; None if this process does not decide, or not yet.

        Raises:
            queue.Empty: The deciding thread was too busy to answer.
        """

        def taken() -> Snapshot | None:
            if not self._leads or self._decider.unlisted:
                return None
            return Snapshot(self._inbox.now(), self._decider.loop.objects(FORECAST_KINDS))

        return self._inbox.ask(taken, seconds=_ANSWER_SECONDS)

    def confirm(self) -> None:
        """Raise an error if another process may decide by now."""
        self._confirm()

    @property
    def unlisted(self) -> dict[str, str]:
        """The kinds that were not listed yet, with what is wrong about them."""
        return dict.fromkeys(sorted(self._decider.unlisted), "is not listed yet")

    @property
    def unready(self) -> dict[str, str]:
        """Why it is not ready: kinds that were not listed yet, and failing watches, with their problems."""
        return {**self.unlisted, **self._watching.faults}

    @property
    def silent_seconds(self) -> float:
        """How long nothing was decided although something has arrived."""
        return self._inbox.silent_seconds

    @property
    def n_open(self) -> int:
        """How many requests are on their way or wait to be retried, not counting Events."""
        return self._sender.n_tasks

    def _on_news(self, news: News) -> None:
        for hear in self._hearers:
            hear(news)
        self._inbox.put(partial(self._hear, news))

    # From the deciding thread.

    def _hear(self, news: News) -> None:
        if news.kind in self._decider.jobs.kinds:
            self._decider.hear(news)
        if self._multikueue is not None:
            self._multikueue.hear(news)

    def _dispatching(
        self, configuration: Configuration, dispatcher: Dispatcher | None, answered: Answered | None
    ) -> MultiKueueDecider | None:
        if not configuration.is_enabled("MultiKueue"):
            return None
        died, confirm = self._inbox.end, lambda: self._confirm()
        return MultiKueueDecider(
            self._decider,
            requests=self._sender.submit,
            call=self._inbox.put,
            now=self._inbox.now,
            open_link=WorkerConnecting(configuration, confirm=confirm, died=died, answered=answered).open,
            watch=self._watching.add,
            fault_of=self._watching.fault_of,
            configuration=configuration,
            dispatcher=dispatcher,
            metrics=self._metrics,
        )

    def _emit(self, lane: Hashable, event: JsonObject) -> None:
        if self._emitter.n_tasks >= _MAX_EVENTS:
            _LOGGER.warning("an event was dropped: too many wait to be created")
            return
        written = self._correlator.correlate(event, now=self._inbox.now())
        if written is not None:
            self._emitter.submit(lane, Emission(self._emits, written))
