"""Runs next to Kueue without writing: judges what it decides, and reports where the engine decides otherwise."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from kueuecore._text import logged
from kueuecore.configuration import Configuration
from kueuecore.errors import ManifestError
from kueuecore.kubernetes.api import Api
from kueuecore.kubernetes.dry_run.judge import Judge, Judged, Verdict
from kueuecore.kubernetes.inbox import Inbox
from kueuecore.kubernetes.watches import News
from kueuecore.kubernetes.watching import Watching
from kueuecore.times import SECOND_NS

__all__ = ["Shadow"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
_TICK_NS = 5 * SECOND_NS


class Shadow:
    """Watches a cluster that runs Kueue, and judges each of its decisions. Nothing is written.

    Args:
        api: The API server; its `kinds` are set here.
        configuration: The Configuration of that Kueue.
        settle_seconds: How long a decision that is not the expected one waits for what shows later.
        missing_seconds: How long Kueue may take for a decision that is due.
        judged: Called with each decision that was judged, in the thread of `run`.
        noted: Called with what happened to Kueue or the watches, and the time, in the thread of `run`.
        tick: Called at least every few seconds, in the thread of `run`, with the time.

    Example:
        >>> shadow = Shadow(Api.connect(server="http://127.0.0.1:8001"), judged=print)
        >>> shadow.run()  # doctest: +SKIP
    """

    def __init__(
        self,
        api: Api,
        *,
        configuration: Configuration | None = None,
        settle_seconds: float = 3.0,
        missing_seconds: float = 10.0,
        judged: Callable[[Judged], None],
        noted: Callable[..., None] = lambda _, **__: None,
        tick: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.judge = Judge(
            configuration or Configuration(),
            settle_ns=round(settle_seconds * SECOND_NS),
            missing_ns=round(missing_seconds * SECOND_NS),
        )
        self._api = api
        api.kinds = dict(self.judge.view.kinds)
        self._say, self._note, self._tick = judged, noted, tick
        # Why nothing can be judged, as far as Kueue is concerned; and in all.
        self._away = self._blind = ""
        self._inbox = Inbox()
        self._now = self._inbox.now
        self._watching = Watching(api, self.judge.view.kinds, hear=self._on_news, died=self._inbox.end)
        self._counts: Counter[Verdict] = Counter()

    @property
    def n_agreed(self) -> int:
        """How many decisions the engine makes too."""
        return self._counts[Verdict.AGREED]

    @property
    def n_differed(self) -> int:
        """How many it does not."""
        return self._counts[Verdict.DIFFERED]

    # From any thread.

    def run(self) -> None:
        """Watch and judge until `stop`, in this thread.

        Raises:
            BaseException: It cannot go on: a watch has died.
        """
        self._watching.start()
        wake: int | None = None
        try:
            while not self._inbox.is_over:
                latest = self._now() + _TICK_NS
                self._inbox.take(until=latest if wake is None else min(wake, latest))
                if not self._inbox.is_over:
                    wake = self._step()
        finally:
            self._watching.stop()
            self._api.close()

    def stop(self) -> None:
        """End `run`."""
        self._inbox.stop()

    def restart(self, configuration: Configuration, why: str) -> None:
        """Judge another Kueue from now on, with the same objects.

        Args:
            configuration: The Configuration of that Kueue.
            why: What has happened.
        """

        def restart() -> None:
            self._note(why, now=self._now())
            self.judge.restart(configuration, why, now=self._now())

        self._inbox.put(restart)

    def pause(self, why: str) -> None:
        """Judge nothing while Kueue is away; an empty reason ends that."""
        self._inbox.put(partial(setattr, self, "_away", why))

    @property
    def unready(self) -> dict[str, str]:
        """Why it is not ready: kinds that were not listed yet, and failing watches, with their problems."""
        return {**dict.fromkeys(sorted(self.judge.unlisted), "is not listed yet"), **self._watching.faults}

    @property
    def silent_seconds(self) -> float:
        """How long nothing was judged although something has arrived."""
        return self._inbox.silent_seconds

    # In the thread of `run`.

    def _on_news(self, news: News) -> None:
        # Events wait here while others are judged.
        self._inbox.put(partial(self._hear, news, time.time_ns()))

    def _hear(self, news: News, at: int) -> None:
        if news.listed is not None:
            if not self.judge.unlisted and not self._blind:
                self._note(f"{news.kind} was listed anew: what was decided meanwhile is not judged", now=self._now())
            self.judge.take_list(news.kind, news.listed, version=news.version, now=self._now())
            return
        self._note_faults()
        try:
            self.judge.observe(news.event, now=at)
        except ManifestError as error:
            _LOGGER.warning("not taken in", extra={"problem": logged(error)})

    def _note_faults(self) -> None:
        faults = [kind for kind in self._watching.faults if kind in self.judge.view.kinds]
        why = f"the watch of {', '.join(sorted(faults))} fails" if faults else self._away
        if bool(why) != bool(self._blind):
            self._note(f"nothing is judged: {why}" if why else "decisions are judged again", now=self._now())
        self._blind = why
        self.judge.blind(why, now=self._now())

    def _step(self) -> int | None:
        self._note_faults()
        wake = self.judge.tick(self._now())
        for judged in self.judge.take():
            self._counts[judged.verdict] += 1
            self._say(judged)
        self._tick(self._now())
        return wake
