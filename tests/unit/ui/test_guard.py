"""Nobody but the reader sees the page: the token, the Host header, the headers of answers, and only reading."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
from tests.unit.ui.pages import EXAMPLES, Page, served, source_at

PATHS = ("/", "/workloads", "/answers/why/team-b/everything-at-once", "/assets/page.js", "/events", "/nope")


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with served(source_at(str(EXAMPLES / "two-teams"))) as page:
        yield page


def test_it_listens_on_loopback_alone(page: Page) -> None:
    assert page.server.socket.getsockname()[0] == "127.0.0.1"
    other = socket.gethostbyname(socket.gethostname())
    if not other.startswith("127."):
        with pytest.raises((ConnectionError, TimeoutError)):
            socket.create_connection((other, page.port), timeout=2)


def test_the_address_with_the_token_leads_to_the_page_without_it(page: Page) -> None:
    got = page.get(f"/workloads?stage=Pending&token={page.token}", headers={})
    assert got.status == 200
    assert 'content="0; url=/workloads?stage=Pending"' in got.text
    assert page.token not in got.text
    cookie = got.headers["set-cookie"]
    assert cookie == f"kueuecore-{page.port}={page.token}; HttpOnly; Path=/; SameSite=strict"
    assert page.get("/workloads", headers={"cookie": cookie.partition(";")[0]}).status == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", ["", "x", "%C3%A4"])
def test_without_the_token_there_is_nothing(page: Page, path: str, token: str) -> None:
    wrong = page.get(f"{path}?token={token}")
    assert wrong.status == 403, "the cookie does not make up for a wrong token"
    none = page.get(path, headers={"cookie": f"kueuecore-{page.port}={token}"} if token else {})
    assert none.status == 403
    assert "Open the address that kueuecore ui has printed" in none.text
    assert "two-teams" not in none.text


def test_a_token_does_not_lead_to_another_host(page: Page) -> None:
    got = page.get(f"//evil.example/x?token={page.token}", headers={})
    assert "url=/evil.example/x" in got.text


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "evil.example:{port}", "127.0.0.1:1", "localhost.evil:{port}"]
)
def test_another_name_of_the_host_is_refused(page: Page, host: str) -> None:
    got = page.get("/", headers={"cookie": page.cookie, "host": host.format(port=page.port)})
    assert got.status == 403
    assert f"Open http://127.0.0.1:{page.port}/" in got.text


def test_localhost_is_this_host(page: Page) -> None:
    assert page.get("/", headers={"cookie": page.cookie, "host": f"localhost:{page.port}"}).status == 200


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_other_pages_cannot_ask_even_with_the_cookie(page: Page, site: str) -> None:
    got = page.get("/workloads", headers={"cookie": page.cookie, "sec-fetch-site": site})
    assert got.status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_but_reading_is_served(page: Page, method: str) -> None:
    for path in ("/", "/what-if", "/events"):
        got = page.get(path, method=method)
        assert got.status == 405
        assert got.headers["allow"] == "GET, HEAD"


def test_heads_are_answered(page: Page) -> None:
    got = page.get("/workloads", method="HEAD")
    assert (got.status, got.text) == (200, "")


@pytest.mark.parametrize("path", ["/", "/nope", "/assets/page.css", "/answers/why/team-b/everything-at-once"])
def test_every_answer_keeps_to_itself(page: Page, path: str) -> None:
    strangers: dict[str, str] = {}
    for headers in (None, strangers):
        found = page.get(path, headers=headers).headers
        policy = dict(part.strip().partition(" ")[::2] for part in found["content-security-policy"].split(";"))
        assert policy == {
            "default-src": "'none'",
            "script-src": "'self'",
            "style-src": "'self'",
            "img-src": "'self'",
            "connect-src": "'self'",
            "form-action": "'self'",
            "base-uri": "'none'",
            "frame-ancestors": "'none'",
        }
        assert found["cache-control"] == "no-store"
        assert found["referrer-policy"] == "no-referrer"
        assert found["x-content-type-options"] == "nosniff"
        assert found["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in found


def test_pages_have_neither_style_nor_script_of_their_own(page: Page) -> None:
    for path in ("/", "/workloads", "/workloads/team-b/everything-at-once", "/what-if?queue=team-a", "/timeline"):
        text = page.get(path).text
        assert "style=" not in text
        assert "<style" not in text
        assert text.count("<script") == 1
        assert '<script src="/assets/page.js" defer></script>' in text
        assert " onclick" not in text
