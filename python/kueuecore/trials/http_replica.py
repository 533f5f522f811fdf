"""A process of `kueuecore serve` without threads and clock, to be driven step by step and to be killed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping

from kueuecore._json import JsonObject, text_at
from kueuecore.api_server import ApiServer
from kueuecore.configuration import Configuration
from kueuecore.controller import WATCHED
from kueuecore.kubernetes import Api, LateKinds, News, follow
from kueuecore.kubernetes.decider import Decider
from kueuecore.kubernetes.requests import Emission
from kueuecore.kubernetes.sender import Task
from kueuecore.trials.faults import Replica

__all__ = ["DiedError", "HttpReplica", "MortalApi"]

_SECOND_NS = 1_000_000_000


class DiedError(BaseException):
    """The process ends here."""


class _Patience(LateKinds):
    """Waits for nothing, as time is virtual."""

    def wait(self, pause_ns: int, *, for_kinds: bool) -> None:
        pass


class MortalApi(Api):
    """Ends the process before or after a write, when somebody says so, and shows each write of a Workload."""

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
    """One process in virtual time: it hears what watches say when it is asked to, and sends what it decides at once.

    Args:
        api: Its client.
        cluster: Whose clock it goes by; a pause between two attempts moves it.
        configuration: Kueue's Configuration.
        creates_events: Are Events created? Otherwise they are kept in `events`.
    """

    def __init__(
        self, api: Api, cluster: ApiServer, configuration: Configuration, *, creates_events: bool = False
    ) -> None:
        def carry_out(_: Hashable, task: Task) -> None:
            while (pause := task()) is not None:
                cluster.now += round(pause * _SECOND_NS)

        self.api = api
        self.events: list[JsonObject] = []

        def emit(lane: Hashable, event: JsonObject) -> None:
            self.events.append(event)
            if creates_events:
                carry_out(lane, Emission(api, event))

        self.decider = Decider(
            api,
            requests=carry_out,
            emit=emit,
            call=lambda call: call(),
            now=lambda: cluster.now,
            configuration=configuration,
        )
        super().__init__(self.decider.loop, cluster.version, self.decider.jobs)
        self._cluster = cluster
        self._feeds: dict[str, Iterator[News | None]] = {}
        # By kind the newest version that there is, as far as anybody knows, and up to which it was heard of.
        self._newest: dict[str, int] = {}
        self._heard: dict[str, int] = {}

    def relist(self) -> None:
        """Begin anew, with lists."""
        self._feeds.clear()
        self._heard.clear()

    def hear(self) -> None:
        """Hear what watches have to say by now, of each kind up to where its watch ends or fails."""
        if not self._feeds:
            patience = _Patience()
            for kind in self.decider.jobs.kinds:
                self._feeds[kind] = follow(self.api, kind, is_needed=kind in WATCHED, late=patience)
        self._look_for_news()
        for kind, feed in self._feeds.items():
            # Watches without news are not asked: there are many, and each is a request.
            if self._heard.get(kind, -1) < self._newest.get(kind, 0):
                self._hear(kind, feed)

    def _look_for_news(self) -> None:
        cluster = self._cluster
        if cluster.compacted > self.version:
            # Nobody knows what has happened.
            self._newest = dict.fromkeys(self._feeds, cluster.compacted)
        for version, event in cluster.history:
            if version > self.version:
                self._newest[event["object"]["kind"]] = version
        self.version = cluster.version

    def _hear(self, kind: str, feed: Iterator[News | None]) -> None:
        for news in feed:
            if news is None:
                return
            version = news.version or text_at(news.event, "object", "metadata", "resourceVersion")
            self._heard[kind] = max(self._heard.get(kind, 0), int(version or 0))
            self.decider.hear(news)
