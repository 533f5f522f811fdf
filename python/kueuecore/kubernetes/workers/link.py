"""Keeps up one connection to a worker cluster of MultiKueue: its watches and its writes, in threads of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kueuecore._json import text_at
from kueuecore._text import logged
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes.api import Api, UnansweredError
from kueuecore.kubernetes.watches import News, check_event, list_all
from kueuecore.kubernetes.workers.credentials import WorkerCredentials
from kueuecore.kubernetes.workers.requests import WorkerWriters, answer_to
from kueuecore.multikueue.settings import ORIGIN_LABEL
from kueuecore.writes import Answer, Write

__all__ = ["OF_WORKERS", "LinkReports", "WorkerLink", "selector_of"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
OF_WORKERS = ("ClusterQueue", "LocalQueue", "Workload")
"""The kinds that every worker has; of these, only Workloads come from the manager."""
# A kind of jobs counts as absent after so many answers, as a starting server may not know its own kinds yet.
_ABSENT_AFTER = 3
_ABSENCE_PAUSE = 1.0
_LOOKS_AGAIN_AFTER = 60.0
# A watch that ends sooner was not worth opening.
_SHORT_SECONDS = 1.0
_MAX_SHORT_PAUSE = 5.0


@dataclass(frozen=True, slots=True)
class LinkReports:
    """What a connection reports, from any thread.

    Args:
        heard: A list or an event has come.
        up: All kinds were listed and are watched.
        down: It has ended, or did not come up; with the reason. Nothing else comes after that.
        answered: A write was answered.
    """

    heard: Callable[[News], None]
    up: Callable[[], None]
    down: Callable[[str], None]
    answered: Callable[[Write, Answer], None]


class WorkerLink:
    """One connection. It comes up once, and goes down once; then the manager decides when to open the next.

    A watch that ends is resumed where it was. If that fails at the first attempt, the connection is down.

    Args:
        cluster: The MultiKueueCluster.
        api: Its API server.
        credentials: Its credentials, which are given up with the connection.
        kinds: What to watch: apiVersion and plural, by kind.
        origin: The value of the origin label.
        reports: Gets what comes.
        confirm: Called before each write; raises an error if another process may decide by now.
        died: Called with that error.
    """

    def __init__(
        self,
        cluster: str,
        api: Api,
        credentials: WorkerCredentials,
        *,
        kinds: Mapping[str, tuple[str, str]],
        origin: str,
        reports: LinkReports,
        confirm: Callable[[], None],
        died: Callable[[BaseException], None],
    ) -> None:
        self._cluster, self._api, self._credentials = cluster, api, credentials
        self._origin, self._reports = origin, reports
        self._confirm, self._died = confirm, died
        self._over = threading.Event()
        self._state = threading.Lock()
        self._opening = set(kinds)
        api.kinds = dict(kinds)
        self._writers = WorkerWriters(f"write-{cluster}", self._write)
        for kind in kinds:
            threading.Thread(target=self._run, args=(kind,), name=f"watch-{cluster}-{kind}", daemon=True).start()

    def send(self, write: Write) -> None:
        """Send a write; its answer is reported."""
        self._writers.submit(write)

    def close(self) -> None:
        """End it without a report. What is on its way is not waited for."""
        self._closed()

    def _closed(self) -> bool:
        """End it; return whether it was not over yet."""
        with self._state:
            if self._over.is_set():
                return False
            self._over.set()
        self._writers.close()
        self._api.close()
        self._credentials.close()
        return True

    # In threads of its own.

    def _write(self, write: Write) -> None:
        try:
            self._confirm()
        except BaseException as error:
            self._died(error)
            return
        try:
            answer = answer_to(self._api, write)
        except Exception as error:  # whatever a worker makes the client do must not end the process
            answer = Answer(error=logged(error) or type(error).__name__)
        if not answer.is_accepted:
            extra = {"cluster": self._cluster, "object": str(write.object), "error": answer.error}
            _LOGGER.info("write not accepted by a worker", extra=extra)
        self._reports.answered(write, answer)

    def _run(self, kind: str) -> None:
        try:
            self._follow(kind)
        except (RefusedError, UnansweredError) as error:
            self._end(logged(error))
        except Exception as error:  # as above
            self._end(f"{type(error).__name__}: {logged(error)}")

    def _follow(self, kind: str) -> None:
        version = self._listed(kind)
        n_failed = n_short = 0
        while not self._over.is_set():
            opened: float | None = None
            error: RefusedError | UnansweredError | None = None
            try:
                watch = self._api.watch(self._api.path(kind), since=version, selector=selector_of(kind, self._origin))
                opened = time.monotonic()
                self._is_up(kind)
                for event, data in watch:
                    if self._over.is_set():
                        return
                    check_event(event, kind)
                    version = text_at(event, "object", "metadata", "resourceVersion") or version
                    self._reports.heard(News(kind, event=event, data=data))
            except (RefusedError, UnansweredError) as caught:
                error = caught
            is_short = opened is None or time.monotonic() - opened < _SHORT_SECONDS
            n_short = n_short + 1 if is_short else 0
            n_failed = n_failed * is_short + (error is not None)
            if error is not None and (n_failed > 1 or kind in self._opening):
                raise error
            if isinstance(error, RefusedError) and error.code == 410:
                version = self._listed(kind)
            elif n_short > 1:
                self._over.wait(min(0.1 * 2.0 ** min(n_short, 8), _MAX_SHORT_PAUSE))

    def _listed(self, kind: str) -> str:
        """List a kind, report it, and return the version of the list. Waits for a kind that the worker lacks."""
        n_absent = 0
        while True:
            try:
                objects, version = list_all(self._api, kind, selector=selector_of(kind, self._origin))
            except RefusedError as error:
                if error.code != 404 or kind in OF_WORKERS:
                    raise
                n_absent += 1
                if n_absent == _ABSENT_AFTER:
                    _LOGGER.info("not on this worker", extra={"cluster": self._cluster, "kind": kind})
                    self._reports.heard(News(kind, []))
                    self._is_up(kind)
                if self._over.wait(_ABSENCE_PAUSE if n_absent < _ABSENT_AFTER else _LOOKS_AGAIN_AFTER):
                    raise
            else:
                self._reports.heard(News(kind, objects, version))
                return version

    def _is_up(self, kind: str) -> None:
        with self._state:
            if kind not in self._opening:
                return
            self._opening.discard(kind)
            is_up = not self._opening and not self._over.is_set()
        if is_up:
            self._reports.up()

    def _end(self, message: str) -> None:
        if self._closed():
            self._reports.down(message)


def selector_of(kind: str, origin: str) -> str:
    """Return the labels of the objects to watch on a worker; empty: all of that kind."""
    return "" if kind in ("ClusterQueue", "LocalQueue") else f"{ORIGIN_LABEL}={origin}"
