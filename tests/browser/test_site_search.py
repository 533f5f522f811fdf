"""The search of the built documentation in a real browser: `make docs-search` builds it, which takes half a minute."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

SITE = os.environ.get("SITE", "")
pytestmark = pytest.mark.skipif(not SITE, reason="no SITE: `make docs-search` runs this")
RESULTS = "ul.search > li"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *_: object) -> None:  # noqa: A002
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of the built site."""
    assert (Path(SITE) / "search.html").exists(), f"{SITE} is no built site"
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=SITE)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def page(browser: Any, site: str) -> Iterator[Any]:
    """A page of which any error and any request to another host fails the test."""
    context = browser.new_context(base_url=site)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(site) else wrong.append(request.url))
    yield page
    context.close()
    assert wrong == []


def found(page: Any, query: str) -> list[str]:
    """The pages of the results, the best first."""
    page.goto(f"/search.html?q={query.replace(' ', '+')}")
    # Results come one by one; the summary counts them when all have come.
    page.wait_for_function("() => /found|did not match/.test(document.querySelector('.search-summary')?.textContent)")
    links = page.locator(f"{RESULTS} > a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    return [link.partition("#")[0].partition("?")[0].removesuffix(".html") for link in links]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("explain", "docs/explain"),
        ("kueuecore prove", "docs/prove"),
        ("unblock", "docs/unblock"),
        ("topology", "docs/topology"),
        ("scenario", "docs/scenarios"),
    ],
)
def test_the_page_about_it_comes_first(page: Any, query: str, first: str) -> None:
    assert found(page, query)[0] == first


@pytest.mark.parametrize("query", ["preemption", "borrowing limit", "cohort", "fair sharing"])
def test_pages_come_before_rules(page: Any, query: str) -> None:
    names = found(page, query)
    rules = [index for index, name in enumerate(names) if name.startswith("docs/rules/")]
    pages = [index for index, name in enumerate(names) if name.startswith("docs/") and index not in rules]
    assert rules
    assert pages[0] < rules[0]


@pytest.mark.parametrize(("typed", "meant"), [("preemtion", "preemption"), ("exlpain", "explain"), ("chort", "cohort")])
def test_a_typo_is_forgiven_and_said(page: Any, typed: str, meant: str) -> None:
    best = found(page, typed)[:3]
    note = page.get_by_text(f"No page has “{typed}”; these have “{meant}”.")
    assert note.count() == 1
    assert note.is_visible()
    assert best == found(page, meant)[:3] != []


def test_no_result_says_so(page: Any) -> None:
    assert found(page, "zzyzxqwv") == []
    summary = page.locator(".search-summary")
    assert "did not match any documents" in summary.inner_text()
    assert page.get_by_text("these have").count() == 0


def test_the_keyboard_goes_from_the_first_page_to_a_result(page: Any) -> None:
    page.goto("/docs/index.html")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "q"
    page.keyboard.type("explain")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=explain*")
    page.locator(RESULTS).first.wait_for()
    at = "document.activeElement.closest('ul.search') !== null"
    for _ in range(200):
        if page.evaluate(at):
            break
        page.keyboard.press("Tab")
    assert page.evaluate(at)
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/explain.html*")
    assert "explain" in page.locator("h1").first.inner_text()
