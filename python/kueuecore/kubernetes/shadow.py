"""Runs next to Kueue without writing: decides on what it watches, and reports where Kueue decides otherwise."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore._text import logged
from kueuecore.checks import WorkloadKey
from kueuecore.configuration import Configuration
from kueuecore.controller import Controller
from kueuecore.errors import ManifestError
from kueuecore.kubernetes.api import Answered, Api
from kueuecore.kubernetes.decided import Decided, decided
from kueuecore.kubernetes.endpoints import ProcessMetrics, serve_health, serve_metrics
from kueuecore.kubernetes.inbox import Inbox
from kueuecore.kubernetes.settings import ServeSettings
from kueuecore.kubernetes.signals import stopped_by_signals
from kueuecore.kubernetes.watches import News
from kueuecore.kubernetes.watching import Watching
from kueuecore.times import SECOND_NS
from kueuecore.writes import Answer, Write

__all__ = ["Difference", "Shadow", "serve_shadow"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
# What Kueue decides; the rest is what only Kueue or a job controller finds out.
_COMPARED = frozenset({"admitted", "evicted"})
_NONE = Decided("")


@dataclass(frozen=True, slots=True)
class Difference:
    """A Workload on which Kueue and this process decided differently.

    Args:
        workload: `namespace/name`.
        kueue: What Kueue did.
        here: What this process would have done.
    """

    workload: str
    kueue: Decided
    here: Decided


@dataclass(slots=True)
class _Expected:
    """A decision made here that waits for Kueue to do the same."""

    write: Write
    here: Decided
    until: int
    is_reported: bool = False


@dataclass(slots=True)
class _Held:
    """The watch events of a Workload since a decision of Kueue that was not made here yet."""

    kueue: Decided
    until: int
    events: list[JsonObject] = field(default_factory=list)


class Shadow:
    """Watches a cluster that runs Kueue, decides by itself, and compares admissions and evictions.

    The first to decide waits some seconds for the other, as each sees a change at its own time. After that Kueue is
    right: its decision counts, and the next decisions here follow from it.

    Args:
        api: The API server; its `kinds` are set here. Nothing is written.
        configuration: The Configuration of that Kueue.
        patience_seconds: How long the first to decide waits for the other.
        differs: Called with each difference.

    Example:
        >>> shadow = Shadow(Api.connect(server="http://127.0.0.1:8001"), differs=print)
        >>> shadow.run()  # doctest: +SKIP
    """

    def __init__(
        self,
        api: Api,
        *,
        configuration: Configuration | None = None,
        patience_seconds: float = 5.0,
        differs: Callable[[Difference], None],
    ) -> None:
        gates = configuration or Configuration()
        with_nodes = gates.is_enabled("TopologyAwareScheduling")
        self.loop = Controller(configuration, status_delay_seconds=None, watches_nodes=with_nodes)
        self._api = api
        api.kinds = dict(self.loop.kinds)
        self._unlisted = set(api.kinds)
        self._patience = round(patience_seconds * SECOND_NS)
        self._differs = differs
        self._inbox = Inbox()
        self._now = self._inbox.now
        self._watching = Watching(api, self.loop.kinds, hear=self._on_news, died=self._inbox.end)
        self._expected: dict[WorkloadKey, _Expected] = {}
        self._held: dict[WorkloadKey, _Held] = {}
        # The last decision made here, even if it was given up since.
        self._opinions: dict[WorkloadKey, Decided] = {}
        self.n_agreed = 0
        """How often both decided the same."""
        self.n_differed = 0
        """How often they did not."""

    # From any thread.

    def run(self) -> None:
        """Watch and compare until `stop`, in this thread.

        Raises:
            BaseException: It cannot go on: a watch has died.
        """
        self._watching.start()
        wake: int | None = None
        try:
            while not self._inbox.is_over:
                self._inbox.take(until=wake)
                if not self._unlisted and not self._inbox.is_over:
                    wake = self._step()
        finally:
            self._watching.stop()
            self._api.close()

    def stop(self) -> None:
        """End `run`."""
        self._inbox.stop()

    @property
    def unready(self) -> dict[str, str]:
        """Why it is not ready: kinds that were not listed yet, and failing watches, with their problems."""
        return {**dict.fromkeys(sorted(self._unlisted), "is not listed yet"), **self._watching.faults}

    @property
    def silent_seconds(self) -> float:
        """How long nothing was compared although something has arrived."""
        return self._inbox.silent_seconds

    # Input.

    def _on_news(self, news: News) -> None:
        self._inbox.put(partial(self._hear, news))

    def _hear(self, news: News) -> None:
        if news.listed is None:
            self._observe(news.event)
            return
        for problem in self.loop.resync(news.kind, news.listed, resource_version=news.version, now=self._now()):
            _LOGGER.warning("not taken in", extra={"problem": logged(problem)})
        self._unlisted.discard(news.kind)

    def _observe(self, event: JsonObject) -> None:
        if event.get("type") == "BOOKMARK" or text_at(event, "object", "kind") != "Workload":
            self._take(event)
            return
        metadata = object_at(event, "object", "metadata")
        key = text_at(metadata, "namespace"), text_at(metadata, "name")
        if (held := self._held.get(key)) is not None:
            held.events.append(event)
            return
        manifest = object_at(event, "object")
        kueue, before = decided(manifest), self._before(key)
        has_decided = event.get("type") == "MODIFIED" and kueue.what in _COMPARED and kueue.what != before.what
        if has_decided and not self._unlisted:
            self._held[key] = _Held(kueue, self._now() + self._patience, [event])
            # Everything that came before it has to be decided on first.
            self._decide()
            return
        self._adopt(key, event)
        if not self._unlisted:
            # Kueue does not wait either for Workloads that might go first.
            self._decide()

    def _before(self, key: WorkloadKey) -> Decided:
        return decided(self.loop.workload(key[1], namespace=key[0]) or {})

    def _adopt(self, key: WorkloadKey, event: JsonObject) -> None:
        """Take in an event of a Workload; give up what was to be written to it."""
        expected = self._expected.get(key)
        if expected is None or event.get("type") == "DELETED":
            self._expected.pop(key, None)
            if event.get("type") == "DELETED":
                self._opinions.pop(key, None)
            self._take(event)
            return
        if expected.here.what in _COMPARED and decided(object_at(event, "object")).what not in _COMPARED:
            # Kueue wrote something else first, for example why it waits; the decision may still come.
            self._take(event)
            return
        del self._expected[key]
        self.loop.done(expected.write, Answer(object_at(event, "object"), "overtaken"), now=self._now())

    def _take(self, event: JsonObject) -> None:
        try:
            self.loop.observe(event, now=self._now())
        except ManifestError as error:
            _LOGGER.warning("not taken in", extra={"problem": logged(error)})

    # Deciding and comparing.

    def _step(self) -> int | None:
        self._decide()
        now = self._now()
        for key, held in [*self._held.items()]:
            if held.until <= now:
                self._settle(key, held, self._opinions.get(key, _NONE))
        for key, expected in [*self._expected.items()]:
            if expected.until <= now:
                self._give_up(key, expected)
        times = [self.loop.next_wake(self._now())]
        times += (held.until for held in self._held.values())
        times += (expected.until for expected in self._expected.values())
        return min((time for time in times if time is not None), default=None)

    def _decide(self) -> None:
        """Take a turn, and compare what Kueue has decided already."""
        for write in self.loop.turn(self._now()).writes:
            key = write.namespace, write.name
            state = self.loop.engine.workload(write.name, namespace=write.namespace)
            here = decided({"status": dict(state.status)})
            self._expected[key] = _Expected(write, here, self._now() + self._patience)
            self._opinions[key] = here
        for key, held in [*self._held.items()]:
            expected = self._expected.get(key)
            if expected is not None and expected.here.what == held.kueue.what:
                self._settle(key, held, expected.here)

    def _settle(self, key: WorkloadKey, held: _Held, here: Decided) -> None:
        """Compare a decision of Kueue, and go on with what it did."""
        if here == held.kueue:
            self.n_agreed += 1
        else:
            self._report(key, held.kueue, here)
        del self._held[key]
        for event in held.events:
            self._adopt(key, event)

    def _give_up(self, key: WorkloadKey, expected: _Expected) -> None:
        """Accept that Kueue has not decided what was decided here: it is right, for now."""
        stored = self.loop.workload(key[1], namespace=key[0])
        if expected.here.what in _COMPARED and stored is not None and decided(stored) != expected.here:
            self._report(key, decided(stored), expected.here)
        del self._expected[key]
        self.loop.done(expected.write, Answer(stored, "given up", 404 if stored is None else 0), now=self._now())

    def _report(self, key: WorkloadKey, kueue: Decided, here: Decided) -> None:
        self.n_differed += 1
        self._differs(Difference("/".join(key), kueue, here))


def serve_shadow(
    connect: Callable[[Answered, float | None, int], Api],
    settings: ServeSettings,
    *,
    configuration: Configuration | None = None,
    started: Callable[[], None] = lambda: None,
) -> None:
    """Run next to Kueue, and log where it decides otherwise, until SIGTERM or SIGINT.

    Args:
        connect: Makes an `Api` that reports its requests and limits their rate.
        settings: Addresses and the rate limit.
        configuration: The Configuration of that Kueue; by default that of its release manifest.
        started: Called before it runs, once it listens.

    Raises:
        ListenError: An address is taken.
        BaseException: A watch has died.
    """

    def differs(it: Difference) -> None:
        extra = {"workload": it.workload, "kueue": str(it.kueue), "here": str(it.here)}
        _LOGGER.warning("would decide otherwise", extra=extra)

    release = (configuration or Configuration()).release
    counted = ProcessMetrics(release)
    shadow = Shadow(
        connect(counted.count_request, settings.qps, settings.burst), configuration=configuration, differs=differs
    )
    counted.compare(lambda: shadow.n_agreed, lambda: shadow.n_differed)
    if settings.metrics is not None:
        serve_metrics(settings.metrics, counted)
    if settings.health is not None:
        serve_health(settings.health, healthy=dict, ready=lambda: shadow.unready)
    with stopped_by_signals(shadow.stop):
        _LOGGER.info("compares", extra={"kueue": release.title})
        started()
        shadow.run()
    _LOGGER.info("stopped", extra={"agreed": shadow.n_agreed, "differed": shadow.n_differed})
