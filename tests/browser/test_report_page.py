"""The page of a run in a real browser: nothing is loaded, nothing is cut off, the keyboard goes everywhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kueuecore.report import Report
from kueuecore.scenarios import read_scenario, run_scenario

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium-headless-shell here")
VIEWS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    outcome = run_scenario(read_scenario("examples/lost-rack/scenario.yaml"))
    assert outcome.run is not None
    Report(outcome.run, title="Racks").write(folder / "out.html")
    return folder / "out.html"


@pytest.fixture(params=VIEWS, ids=lambda view: f"{view[0]}-{view[1]}")
def page(browser: Any, path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.seen = []
    page.on("console", lambda message: page.seen.append(message.text))
    page.on("pageerror", lambda error: page.seen.append(str(error)))
    page.on("request", lambda sent: page.seen.append(sent.url) if sent.url != path.as_uri() else None)
    page.goto(path.as_uri())
    yield page
    page.close()


def test_nothing_is_loaded_or_complained_about_and_nothing_is_wider_than_the_window(page: Any) -> None:
    assert page.seen == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_style_is_taken_and_follows_the_scheme(page: Any) -> None:
    is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(20, 24, 31)" if is_dark else "rgb(255, 255, 255)")
    label = page.evaluate("getComputedStyle(document.querySelector('svg text')).fill")
    assert label == ("rgb(230, 234, 240)" if is_dark else "rgb(28, 36, 48)")


def test_every_picture_is_seen_and_has_words(page: Any) -> None:
    pictures = page.locator("[role=img]").all()
    assert len(pictures) == 5
    for picture in pictures:
        box = picture.bounding_box()
        assert box["width"] > 300
        assert box["height"] > 60
        assert len(picture.get_attribute("aria-label")) > 20


def test_the_keyboard_reaches_the_figures_and_opens_their_tables(page: Any) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["x"] >= 0, "it is seen once it has the focus"
    page.keyboard.press("Enter")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    page.keyboard.press("Enter")
    assert page.locator("details[open] table").first.is_visible()
