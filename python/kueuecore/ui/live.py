"""Tells open pages that the state has changed, as server-sent events."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator

from kueuecore.cli.state_source import StateSource
from kueuecore.errors import ManifestError
from kueuecore.ui.state_view import Views

__all__ = ["Live"]

_WAIT_SECONDS = 1.0
# A proxy or browser may give up on a stream that says nothing.
_BEAT_SECONDS = 15.0


class Live:
    """Follows a source while pages are open.

    Args:
        source: The source.
        views: Where a new version is collected before pages ask for it.
    """

    def __init__(self, source: StateSource, views: Views) -> None:
        self._source = source
        self._views = views
        self._pages: set[asyncio.Event] = set()
        self._thread: threading.Thread | None = None
        self._is_over = False

    def close(self) -> None:
        """End all streams, so that the server can stop."""
        self._is_over = True
        for page in self._pages:
            page.set()

    async def stream(self) -> AsyncIterator[str]:
        """Yield the version now and whenever it changes, until the page is closed."""
        changed = asyncio.Event()
        self._pages.add(changed)
        self._follow(asyncio.get_running_loop())
        try:
            yield f"retry: 2000\ndata: {self._source.version}\n\n"
            while not self._is_over:
                try:
                    await asyncio.wait_for(changed.wait(), _BEAT_SECONDS)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                changed.clear()
                if not self._is_over:
                    yield f"data: {self._source.version}\n\n"
        finally:
            self._pages.discard(changed)

    def _follow(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._wait, args=(loop,), daemon=True, name="kueuecore-ui-live")
            self._thread.start()

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        version = self._source.version
        while not self._is_over and not loop.is_closed():
            try:
                found = self._source.wait(version, seconds=_WAIT_SECONDS)
            except ManifestError:
                time.sleep(_WAIT_SECONDS)
                continue
            is_new, version = found != version, found
            if not is_new or not self._pages:
                continue
            try:
                self._views.newest()
            except ManifestError:
                continue  # the pages say it when they are asked for
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        for page in self._pages:
            page.set()
