"""The pages of runs and studies in a real browser: nothing is loaded or cut off, the keyboard goes everywhere."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from kueuecore.cli import main

pytest.importorskip("altair")
pytest.importorskip("vl_convert")
VIEWS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]

EXAMPLE = "examples/scenario/scenario.yaml"
CPU = "ClusterQueue/team-*:spec.resourceGroups[0].flavors[name=default].resources[name=cpu].nominalQuota"
SWEEP = ["sweep", EXAMPLE, "--seeds", "6", "--workers", "2", "--grid", f"{CPU}=[3, 5, 6]"]
TWO_FIELDS = [*SWEEP, "--grid", "cluster.cycle=[100ms, 10s]"]
DRAWN = ["--random", "9", "--range", "work[0].count=20..60", "--range", "work[0].fails.share=0.0..0.4"]
# The command that writes each page, and how many pictures it has.
PAGES = {
    "run": (["simulate", EXAMPLE], 4),
    "racks": (["simulate", "examples/lost-rack/scenario.yaml"], 5),
    "compare": (["compare", EXAMPLE, "--set", f"{CPU}=6", "--workers", "2"], 2),
    "compare three": (
        [
            "compare",
            EXAMPLE,
            "--side",
            "five",
            "--set",
            f"{CPU}=5",
            "--side",
            "six",
            "--set",
            f"{CPU}=6",
            "--seeds",
            "6",
        ],
        3,
    ),
    "fleet": (["simulate", "examples/multikueue/scenario.yaml"], 5),
    "regions": (["simulate", "examples/multikueue-regions/scenario.yaml"], 5),
    "plan": (["plan", EXAMPLE, "--wait", "p95<=5m", "--workers", "2"], 1),
    "curve": (SWEEP, 5),
    "heat map": (TWO_FIELDS, 5),
    "panels": ([*TWO_FIELDS, *DRAWN, "--sort", "fairness"], 7),
}
# The texts of a picture that are seen only in part, or that lie upon one another.
_BAD_TEXTS = """() => [...document.querySelectorAll('svg')].flatMap(svg => {
  const edge = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].filter(it => it.textContent && +getComputedStyle(it).opacity > 0);
  const boxes = texts.map(it => [it.textContent, it.getBoundingClientRect()]);
  const cut = boxes.filter(([, it]) => it.left < edge.left - 1 || it.right > edge.right + 1
    || it.top < edge.top - 1 || it.bottom > edge.bottom + 1).map(([text]) => 'cut off: ' + text);
  const over = boxes.flatMap(([text, it], index) => boxes.slice(index + 1)
    .filter(([, next]) => Math.min(it.right, next.right) - Math.max(it.left, next.left) > 1
      && Math.min(it.bottom, next.bottom) - Math.max(it.top, next.top) > 3)
    .map(([other]) => `overlap: ${text}, ${other}`));
  return [...cut, ...over];
})"""


@pytest.fixture(scope="module", params=PAGES)
def path(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    path = tmp_path_factory.mktemp("report") / "out.html"
    with redirect_stdout(io.StringIO()):
        assert main([*PAGES[request.param][0], "--quiet", "--report", str(path)]) == 0
    return path


@pytest.fixture
def n_pictures(request: pytest.FixtureRequest) -> int:
    return PAGES[request.node.callspec.params["path"]][1]


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
    page.evaluate("document.querySelectorAll('details').forEach(it => { it.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_style_is_taken_and_follows_the_scheme(page: Any) -> None:
    is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(20, 24, 31)" if is_dark else "rgb(255, 255, 255)")
    label = page.evaluate("getComputedStyle(document.querySelector('.role-axis-label text')).fill")
    assert label == ("rgb(230, 234, 240)" if is_dark else "rgb(28, 36, 48)")


def test_every_picture_is_seen_and_has_words(page: Any, n_pictures: int) -> None:
    pictures = page.locator("[role=img]").all()
    assert len(pictures) == n_pictures
    for picture in pictures:
        box = picture.bounding_box()
        assert box["width"] > 300
        assert box["height"] > 60
        assert len(picture.get_attribute("aria-label")) > 20


def test_words_in_pictures_are_whole_apart_and_large_enough_to_read(page: Any) -> None:
    assert page.evaluate(_BAD_TEXTS) == []
    scales = page.evaluate(
        "[...document.querySelectorAll('svg')].map(it => it.getBoundingClientRect().width / it.viewBox.baseVal.width)"
    )
    assert 12 * min(scales) >= 9, "labels have at least nine pixels, on phones too"


def test_words_in_tables_are_not_broken(page: Any) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(it => { it.open = true; })")
    breaks = page.evaluate(
        """() => [...document.querySelectorAll('th, td')].filter(cell => !/\\s/.test(cell.textContent)).filter(cell => {
          const range = document.createRange();
          range.selectNodeContents(cell);
          return new Set([...range.getClientRects()].map(it => Math.round(it.top))).size > 1;
        }).map(it => it.textContent)"""
    )
    # A name may break at its hyphens.
    assert [other for other in breaks if "-" not in other and "/" not in other] == []


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
