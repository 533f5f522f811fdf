"""The application: the addresses of the page, and what each answers."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.resources import files

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kueuecore.cli.state_source import FileSource, StateSource
from kueuecore.errors import ManifestError, UnknownObjectError
from kueuecore.ui.guard import Guard
from kueuecore.ui.live import Live
from kueuecore.ui.rendering import Shown, rendered
from kueuecore.ui.run_pages import RunPages
from kueuecore.ui.slow_answers import GoneError
from kueuecore.ui.state_pages import StatePages
from kueuecore.ui.state_view import Views
from kueuecore.ui.timeline import Timeline

__all__ = ["application"]

_ASSETS = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
_GONE = "Go back, or choose a page above: what you look for may be gone since the link was made."
_Endpoint = Callable[[Request], Awaitable[Response]]
_Handler = Callable[[Request], Shown | Response] | Callable[[Request], Awaitable[Shown | Response]]


def application(
    *, token: str, port: int, source: StateSource | None = None, run: Timeline | None = None
) -> tuple[Guard, Callable[[], None]]:
    """Return the page of a state, or of a run, and what to call before the server stops.

    Args:
        token: What a browser needs to see it.
        port: The port that is listened on.
        source: The state.
        run: The run, if there is no state.

    Raises:
        ManifestError: The state cannot be read.
    """
    handlers: dict[str, _Handler] = {"/assets/{name}": _asset}
    if source is not None:
        views = Views(source)
        views.newest()  # what is wrong with the state is said in the terminal, and no reader waits for the lists
        live = Live(source, views)
        pages = _Pages(source.title, views, is_live=not isinstance(source, FileSource))
        close = live.close
        handlers |= StatePages(source, views, live).handlers()
        handlers |= RunPages(source=source, views=views).handlers()
    else:
        assert run is not None, "there is a state or a run"
        pages = _Pages(run.title)
        close = _nothing
        handlers |= RunPages(run=run).handlers()
        handlers["/"] = handlers["/timeline"]
    found = Starlette(
        routes=[Route(path, pages.endpoint(handler), methods=["GET"]) for path, handler in handlers.items()],
        exception_handlers={HTTPException: pages.not_found, Exception: pages.bug},
    )
    # Around everything, so that pages about failures are guarded too.
    return Guard(found, token=token, port=port), close


class _Pages:
    """Turns what a handler shows into a page, and failures into pages that say what to do."""

    def __init__(self, title: str, views: Views | None = None, *, is_live: bool = False) -> None:
        self._title = title
        self._views = views
        self._is_live = is_live

    def endpoint(self, handler: _Handler) -> _Endpoint:
        """Return an endpoint; a handler that is no coroutine runs in a thread."""

        async def answer(request: Request) -> Response:
            try:
                if inspect.iscoroutinefunction(handler):
                    shown = await handler(request)
                else:
                    shown = await run_in_threadpool(handler, request)
                if isinstance(shown, Response):
                    return shown
                return await run_in_threadpool(self._page, request, shown)
            except GoneError:
                return Response(status_code=204)
            except UnknownObjectError as error:
                return self._failure(request, 404, "Not there", [str(error)], _GONE)
            except ManifestError as error:
                says = "Correct what the lines name, and load this page again."
                return self._failure(request, 503, "The state cannot be read", list(map(str, error.problems)), says)

        return answer

    def not_found(self, request: Request, error: Exception) -> Response:
        """Answer a request for what is not there."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        return self._failure(request, status, "No such page", [f"Nothing is at {request.url.path}."], _GONE)

    def bug(self, request: Request, error: Exception) -> Response:
        """Answer a request that has failed by a mistake of ours."""
        says = "This is a bug in kueuecore: please report it with what the command has printed. Other pages work."
        return self._failure(request, 500, "This page has failed", [type(error).__name__], says)

    def _page(self, request: Request, shown: Shown) -> Response:
        return rendered(shown.template, {**self._facts(request), **shown.facts})

    def _failure(self, request: Request, status: int, title: str, problems: list[str], remedy: str) -> Response:
        facts = {"heading": title, "problems": problems, "remedy": remedy, "command": ""}
        return rendered("error", self._facts(request) | facts, status=status)

    def _facts(self, request: Request) -> dict[str, object]:
        """What every page shows."""
        facts: dict[str, object] = {
            "title": self._title,
            "path": request.url.path,
            "has_state": self._views is not None,
            "is_live": self._is_live,
            "view": None,
        }
        if self._views is not None:
            # Whatever is wrong with it, the page says so itself, also the one about that.
            with suppress(Exception):
                facts["view"] = self._views.newest()
        return facts


def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _ASSETS:
        raise HTTPException(404)
    content = (files("kueuecore.ui") / "assets" / name).read_bytes()
    return Response(content, media_type=_ASSETS[name])


def _nothing() -> None:
    """A run needs no end."""
