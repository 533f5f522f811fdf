"""Who may see the page: browsers on this machine that have the token which the command printed; and only reading."""

from __future__ import annotations

import html
import secrets
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["HEADERS", "Guard"]

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_READS = ("GET", "HEAD")
# What a browser says of requests that another page makes.
_FROM_OTHERS = ("same-site", "cross-site")


class Guard:
    """Refuses requests of strangers, and adds the headers that keep pages to themselves.

    Args:
        app: What it guards.
        token: What a request has to know.
        port: The port that is listened on.
    """

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        # Browsers share cookies among the ports of a host.
        self.cookie = f"kueuecore-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            assert scope["type"] == "lifespan", "nothing else is served: uvicorn has no WebSockets here"
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
            await send(message)

        answer = self._refused(Request(scope)) or self._app
        await answer(scope, receive, guarded)

    def _refused(self, request: Request) -> Response | None:
        """Return the answer to a request that does not get a page; None if it does."""
        if request.headers.get("host") not in self._hosts:
            says = f"Open http://{self._hosts[0]}/ with the token that kueuecore ui has printed."
            return _page(403, "Not this address", says)
        if request.method not in _READS:
            answer = _page(405, "Only reading", "This page changes nothing: use GET.")
            answer.headers["allow"] = ", ".join(_READS)
            return answer
        given = request.query_params.get("token")
        if given is not None:
            return self._entered(request) if self._knows(given) else _forbidden()
        is_foreign = request.headers.get("sec-fetch-site") in _FROM_OTHERS
        if is_foreign or not self._knows(request.cookies.get(self.cookie, "")):
            return _forbidden()
        return None

    def _knows(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self._token.encode())

    def _entered(self, request: Request) -> Response:
        """Keep the token as a cookie, and go on without it: it should not stay in the address."""
        rest = urlencode([(name, value) for name, value in request.query_params.multi_items() if name != "token"])
        # A path with two slashes would lead to another host.
        path = "/" + request.url.path.lstrip("/") + (f"?{rest}" if rest else "")
        # Not a redirect: a browser would leave out the cookie if another page has the link.
        answer = _page(200, "Opening", "", goes_to=path)
        answer.set_cookie(self.cookie, self._token, path="/", httponly=True, samesite="strict")
        return answer


def _forbidden() -> Response:
    says = "Open the address that kueuecore ui has printed, with its token. A new start of the command has a new one."
    return _page(403, "This needs a token", says)


def _page(status: int, title: str, says: str, *, goes_to: str = "") -> Response:
    """A page without style or script, as those need the token too."""
    to = html.escape(goes_to)
    refresh = f'<meta http-equiv="refresh" content="0; url={to}">' if goes_to else ""
    body = f'<p><a href="{to}">Open the page</a></p>' if goes_to else f"<p>{html.escape(says)}</p>"
    return HTMLResponse(
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}: kueuecore</title>'
        f'<meta name="color-scheme" content="light dark">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">{refresh}</head>'
        f"<body><main><h1>{title}</h1>{body}</main></body></html>",
        status,
    )
