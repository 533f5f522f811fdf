"""A process of `kueuecore serve` without threads and clock, to be driven step by step and killed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping

from kueuecore._json import JsonObject, text_at
from kueuecore.api_server import ApiServer, RefusedError
from kueuecore.configuration import Configuration
from kueuecore.controller import WATCHED
from kueuecore.kubernetes import Api, LateKinds, News, UnansweredError, follow, list_all
from kueuecore.kubernetes.decider import Decider
from kueuecore.kubernetes.event_correlator import EventCorrelator
from kueuecore.kubernetes.requests import Emission
from kueuecore.kubernetes.sender import Stream, Task
from kueuecore.times import SECOND_NS
from kueuecore.trials.faults import Replica

__all__ = ["DiedError", "HttpReplica", "MortalApi"]

_MAX_ATTEMPTS = 1000


class DiedError(BaseException):
    """Raised where the process ends."""


class _Patience(LateKinds):
    """Does not wait, as time is virtual."""

    def wait(self, pause_ns: int, *, for_kinds: bool) -> None:
        pass


class MortalApi(Api):
    """Ends the process before or after a write on demand, and reports each write of a Workload."""

    dies: Callable[[], str]
    compares: Callable[[str], Callable[[], None]]

    def send(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        seconds: float = 30.0,
    ) -> JsonObject:
        dies = self.dies() if method != "GET" else ""
        if dies == "dies before":
            raise DiedError
        compare = self.compares(path)
        try:
            answer = super().send(method, path, body, query=query, content_type=content_type, seconds=seconds)
        finally:
            compare()
        if dies == "dies after":
            raise DiedError
        return answer


class HttpReplica(Replica):
    """One process in virtual time: it hears watches when asked to, and sends its decisions at once.

    With `holds_requests`, its decisions wait for `send`, and with `holds_answers`, the results of requests wait for
    `take_answers`, as in a process whose threads are slow.

    Args:
        api: Its client.
        cluster: The cluster whose clock it uses; a pause between two attempts advances it.
        configuration: Kueue's Configuration.
        creates_events: Whether Events are created. Otherwise they are kept in `events`.
    """

    def __init__(
        self, api: Api, cluster: ApiServer, configuration: Configuration, *, creates_events: bool = False
    ) -> None:
        self.api = api
        self.holds_requests = self.holds_answers = False
        self.events: list[JsonObject] = []
        self._creates_events = creates_events
        self._correlator = EventCorrelator()
        self._cluster = cluster
        self._tasks: deque[Task] = deque()
        self._answers: deque[Callable[[], None]] = deque()
        self._feeds: dict[str, Iterator[News | None]] = {}
        # By kind, the newest known version, and the version up to which it has heard.
        self._newest: dict[str, int] = {}
        self._heard: dict[str, int] = {}
        self.decider = Decider(
            api,
            requests=self._take_task,
            emit=self._emit,
            call=self._call,
            now=lambda: cluster.now,
            configuration=configuration,
        )
        super().__init__(self.decider.loop, cluster.version, self.decider.jobs)

    # Outgoing.

    def lead(self) -> None:
        """Begin to lead as `Process.lead` does: with the Workloads as they are stored now.

        Raises:
            AssertionError: The server does not list them, even after many attempts.
        """
        for _ in range(_MAX_ATTEMPTS):
            try:
                news = News("Workload", *list_all(self.api, "Workload"))
            except (RefusedError, UnansweredError):
                continue
            self.decider.hear(news)
            return
        raise AssertionError("the Workloads are never listed")

    def send(self) -> None:
        """Send what was held back, in order."""
        while self._tasks:
            self._carry_out(self._tasks.popleft())

    def take_answers(self) -> None:
        """Deliver the results of requests that were held back to the decider, in order."""
        while self._answers:
            self._answers.popleft()()

    def _take_task(self, _: Hashable, task: Task, _stream: Stream) -> None:
        if self.holds_requests or self._tasks:
            self._tasks.append(task)
        else:
            self._carry_out(task)

    def _carry_out(self, task: Task) -> None:
        while (pause := task()) is not None:
            self._cluster.now += round(pause * SECOND_NS)

    def _call(self, call: Callable[[], None]) -> None:
        if self.holds_answers or self._answers:
            self._answers.append(call)
        else:
            call()

    def _emit(self, _: Hashable, event: JsonObject) -> None:
        self.events.append(event)
        written = self._correlator.correlate(event, now=self._cluster.now) if self._creates_events else None
        if written is not None:
            self._carry_out(Emission(self.api, written))

    # Incoming.

    def hear(self) -> None:
        """Hear what watches have to report by now, for each kind up to where its watch ends or fails."""
        if not self._feeds:
            patience = _Patience()
            for kind in self.decider.jobs.kinds:
                self._feeds[kind] = follow(self.api, kind, is_needed=kind in WATCHED, late=patience)
        self._look_for_news()
        for kind, feed in self._feeds.items():
            # Watches without news are not read: there are many, and each costs a request.
            if self._heard.get(kind, -1) < self._newest.get(kind, 0):
                self._hear(kind, feed)

    def _look_for_news(self) -> None:
        cluster = self._cluster
        if cluster.compacted > self.version:
            # It is unknown what has happened.
            self._newest = dict.fromkeys(self._feeds, cluster.compacted)
        for version, event in cluster.history:
            if version > self.version:
                self._newest[event["object"]["kind"]] = version
        self.version = cluster.version

    def _hear(self, kind: str, feed: Iterator[News | None]) -> None:
        for news in feed:
            if news is None:
                return
            # A missing kind is listed without a version, and asked for again.
            if version := news.version or text_at(news.event, "object", "metadata", "resourceVersion"):
                self._heard[kind] = max(self._heard.get(kind, 0), int(version))
            self.decider.hear(news)
            if news.listed is not None and self._heard.get(kind, -1) >= self._newest.get(kind, 0):
                return
