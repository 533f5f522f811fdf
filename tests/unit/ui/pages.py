"""A page served on loopback, and what a browser would do with it."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from kueuecore._json import JsonObject
from kueuecore.cli.commands import parsed
from kueuecore.cli.state_file import SettledState
from kueuecore.cli.state_source import FileSource, StateSource
from kueuecore.manifests import Manifest
from kueuecore.ui.serving import PageServer
from kueuecore.ui.timeline import Timeline

EXAMPLES = Path(__file__).parents[3] / "examples"


@dataclass(frozen=True, slots=True)
class Got:
    """An answer of the server."""

    status: int
    headers: Mapping[str, str]
    text: str


class Page:
    """A served page, as somebody who has its token."""

    def __init__(self, server: PageServer) -> None:
        self.server = server
        self.port = server.port
        self.host = f"127.0.0.1:{server.port}"
        self.token = server.address.rpartition("=")[2]
        self.cookie = f"kueuecore-{server.port}={self.token}"

    def get(
        self,
        path: str,
        asked: Mapping[str, str] | None = None,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
    ) -> Got:
        """Make a request; by default as a browser that has the cookie."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        given = {"cookie": self.cookie} if headers is None else dict(headers)
        try:
            connection.request(method, path + ("?" + urlencode(asked) if asked else ""), headers=given)
            answer = connection.getresponse()
            text = answer.read().decode()
            return Got(answer.status, {name.lower(): value for name, value in answer.getheaders()}, text)
        finally:
            connection.close()


@contextmanager
def served(source: StateSource | None = None, *, run: Timeline | None = None) -> Iterator[Page]:
    """Serve a page in another thread."""
    server = PageServer(source=source, run=run)
    thread = threading.Thread(target=server.serve_until_stopped, daemon=True)
    thread.start()
    try:
        yield Page(server)
    finally:
        server.stop()
        thread.join(10)
        assert not thread.is_alive(), "a server ends when it is told to"


def source_at(*arguments: str) -> FileSource:
    """The state that the arguments of `kueuecore ui` name."""
    options = parsed(["ui", "-q", *arguments])
    return FileSource(options)


class ChangingSource:
    """A state of which there are several versions, one after the other."""

    def __init__(self, *sources: FileSource) -> None:
        self._sources = sources
        self._changed = threading.Condition()
        self._version = 1
        self.title = "a cluster that changes"
        self.arguments: tuple[str, ...] = ("--context", "test")
        self.settings = sources[0].settings

    @property
    def version(self) -> int:
        return self._version

    def change(self) -> None:
        """Go on to the next version."""
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    def wait(self, version: int, *, seconds: float) -> int:
        with self._changed:
            self._changed.wait_for(lambda: self._version != version, seconds)
            return self._version

    @property
    def _now(self) -> FileSource:
        return self._sources[min(self._version, len(self._sources)) - 1]

    def manifests(self) -> tuple[Manifest, ...]:
        return self._now.manifests()

    def state(self, named: str = "") -> SettledState:
        return self._now.state(named)

    def close(self) -> None:
        """Nothing is open."""

    def events(self, namespace: str, names: Iterable[str]) -> list[JsonObject]:
        return self._now.events(namespace, names)
