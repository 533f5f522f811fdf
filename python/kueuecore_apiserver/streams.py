"""Sends the events of a watch, line by line, until its time is over or a fault ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web
from aiohttp.web_request import BaseRequest

from kueuecore_apiserver.faults import Fault
from kueuecore_apiserver.watches import Watcher

__all__ = ["WatchStream", "broken"]

# How soon a client that is gone is noticed if nothing happens.
_LOOK_SECONDS = 1.0


def broken(http: BaseRequest) -> web.Response:
    """Break the connection of a request; the returned response reaches nobody."""
    if http.transport is not None:
        http.transport.abort()
    return web.Response()


@dataclass(slots=True)
class WatchStream:
    """One watch on its connection.

    Args:
        watcher: Holds what is to be sent.
        ready: Set when there is something to send, or the server stops.
        is_stopping: Returns whether the server stops.
        seconds: How long the watch lasts.
        bookmark: Creates a bookmark; `None` if the client wants none.
        bookmark_seconds: How often it gets one.
        fault: The fault of the request.
    """

    watcher: Watcher
    ready: asyncio.Event
    is_stopping: Callable[[], bool]
    seconds: float
    bookmark: Callable[[], bytes] | None
    bookmark_seconds: float
    fault: Fault

    async def run(self, http: BaseRequest) -> web.StreamResponse:
        """Send until the watch ends."""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        try:
            await response.prepare(http)
            ends_well = await self._send(http, response)
            if not ends_well:
                return broken(http)
            await response.write_eof()
        except ConnectionError:
            pass  # The client is gone.
        return response

    async def _send(self, http: BaseRequest, response: web.StreamResponse) -> bool:
        """Send what happens until the watch ends. Does it end as it should?"""
        loop = asyncio.get_running_loop()
        end, next_bookmark = loop.time() + self.seconds, loop.time() + self.bookmark_seconds
        left = self.fault.watch_ends_after
        while http.transport is not None and not http.transport.is_closing():
            self.ready.clear()
            lines = self.watcher.take()
            if left is not None:
                lines, left = lines[:left], left - len(lines[:left])
            if lines:
                await response.write(b"".join(lines))
            if left == 0 or (self.fault.watch_ends_when_idle and not self.watcher.lines):
                return not self.fault.watch_breaks
            is_over = loop.time() >= end
            if self.bookmark is not None and (is_over or loop.time() >= next_bookmark):
                await response.write(self.bookmark())
                next_bookmark = loop.time() + self.bookmark_seconds
            if is_over or self.is_stopping():
                return True
            if not self.watcher.lines:
                await self._wait(min(end, next_bookmark, loop.time() + _LOOK_SECONDS))
        return False

    async def _wait(self, until: float) -> None:
        try:
            async with asyncio.timeout_at(until):
                await self.ready.wait()
        except TimeoutError:
            pass
