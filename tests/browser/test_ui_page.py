"""The page of `kueuecore ui` in a real browser: for eyes, keyboards and phones, light and dark, and as it changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
from kueuecore.scenarios import read_scenario
from kueuecore.ui.timeline import Timeline
from tests.quota_manifests import flavor, local_queue, namespace, queue, workload
from tests.unit.ui.pages import EXAMPLES, ChangingSource, Page, served, source_at

axe = pytest.importorskip("axe_playwright_python.sync_playwright")

WAITING = "/workloads/team-b/job-benchmark-86330"
PAGES = {
    "cohorts": "/",
    "queues": "/queues",
    "queue": "/queues/team-b",
    "workloads": "/workloads",
    "workload": WAITING,
    "forecast": "/answers/eta/team-b/job-benchmark-86330?runs=1h",
    "what if": "/what-if?queue=team-b&ask=1&edits=ClusterQueue/team-b:spec.stopPolicy=HoldAndDrain",
    "wrong": "/what-if?workload=team-b/job-benchmark-86330&ask=1&priority=high",
    "nodes": "/nodes",
    "play forward": "/timeline?ask=1&runs=1h&waits=2h&at=40",
    "nothing there": "/nope",
}


@pytest.fixture(scope="module")
def teams() -> Iterator[Page]:
    with served(source_at(str(EXAMPLES / "two-teams"))) as page:
        yield page


@pytest.fixture(scope="module")
def racks() -> Iterator[Page]:
    with served(source_at(str(EXAMPLES / "topology"))) as page:
        yield page


def opened(browser: Any, page: Page, *, width: int = 1280, scheme: str = "light", **options: Any) -> Any:
    """A browser that has followed the printed address; `seen` is what it complains about or loads from elsewhere."""
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, **options)
    tab = context.new_page()
    tab.seen = []
    tab.on("console", lambda message: tab.seen.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: tab.seen.append(str(error)))
    tab.on("request", lambda sent: tab.seen.append(sent.url) if page.host not in sent.url else None)
    tab.goto(page.server.address)
    tab.wait_for_url(f"http://{page.host}/")
    return tab


def at(tab: Any, page: Page, path: str) -> Any:
    """The page at a path, with all answers."""
    tab.goto(f"http://{page.host}{path}")
    tab.wait_for_selector("[aria-busy]", state="detached")
    return tab


def test_every_page_is_accessible_fits_and_is_loaded_from_here(browser: Any, teams: Page, racks: Page) -> None:
    checker = axe.Axe()
    for page, paths in ((teams, PAGES), (racks, {"nodes": "/nodes"})):
        tab = opened(browser, page)
        for name, path in paths.items():
            for width, scheme, back in ((1280, "light", "rgb(255, 255, 255)"), (390, "dark", "rgb(20, 24, 31)")):
                tab.set_viewport_size({"width": width, "height": 800})
                tab.emulate_media(color_scheme=scheme)
                if width == 1280:
                    at(tab, page, path)
                    tab.evaluate("document.querySelectorAll('details').forEach(it => { it.open = true; })")
                found = checker.run(tab).response["violations"]
                assert [(it["id"], it["nodes"][0]["html"]) for it in found] == [], (name, scheme)
                assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
                assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == back
        assert [text for text in tab.seen if "404" not in text] == []
        tab.context.close()


def test_the_longest_names_fit_on_a_phone(browser: Any, tmp_path: Any) -> None:
    long, team = "x" * 250, "n" * 60
    objects = [
        namespace(team),
        flavor(long),
        queue(long, flavor=long, cohort=long),
        local_queue("lq", long, namespace=team),
        workload(long, "lq", 9).replace("namespace: team}", f"namespace: {team}}}"),
    ]
    (tmp_path / "state.yaml").write_text("".join(objects))
    with served(source_at(str(tmp_path / "state.yaml"), "--trusted")) as page:
        tab = opened(browser, page, width=390)
        what_if = f"/what-if?queue={long}&ask=1&edits=ClusterQueue/{long}:spec.stopPolicy=Hold"
        for path in ("/", "/queues", f"/queues/{long}", "/workloads", f"/workloads/{team}/{long}", what_if):
            at(tab, page, path)
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        tab.context.close()


def test_the_timeline_of_a_scenario_is_accessible_and_its_slider_moves(browser: Any) -> None:
    scenario = read_scenario(str(EXAMPLES / "scenario" / "scenario.yaml"))
    with served(run=Timeline.of_scenario(scenario, title="scenario.yaml", command="kueuecore simulate s.yaml")) as page:
        tab = opened(browser, page)
        assert axe.Axe().run(tab).response["violations"] == []
        tab.focus("#at")
        for _ in range(3):
            tab.keyboard.press("ArrowRight")
        tab.wait_for_selector("text=step 4 of 161")
        assert tab.evaluate("document.activeElement.id") == "at", "the slider keeps the focus"
        assert tab.get_attribute("#at", "aria-valuetext") == tab.inner_text("#step .moment strong")
        tab.click("#step-before")
        tab.wait_for_selector("text=step 3 of 161")
        tab.click("#play")
        # It goes on while the browser is looked at, so step 5 itself may be missed.
        tab.wait_for_selector(r"text=/step ([5-9]|\d\d+) of 161/")
        tab.click("#play")
        assert tab.get_attribute("#play", "aria-pressed") == "false"
        assert tab.seen == []
        tab.context.close()


def test_the_keyboard_alone_leads_to_a_what_if_answer(browser: Any, teams: Page) -> None:
    tab = opened(browser, teams)

    def tab_to(script: str) -> None:
        for _ in range(80):
            tab.keyboard.press("Tab")
            if tab.evaluate(f"(it => {script})(document.activeElement)"):
                outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", f"{script}: it is seen where the focus is"
                return
        raise AssertionError(f"no Tab leads to {script}")

    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.keyboard.press("Enter")
    tab_to("it.textContent === 'team-b'")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/queues/team-b")
    tab_to("it.textContent === 'team-b/job-benchmark-86330'")
    tab.keyboard.press("Enter")
    tab.wait_for_url(f"**{WAITING}")
    tab.wait_for_selector("[aria-busy]", state="detached")
    tab_to("it.name === 'nominalQuota|ClusterQueue|team-b|default-flavor|cpu'")
    tab.keyboard.type("2x")
    tab_to("it.type === 'submit' && it.textContent === 'Try it'")
    tab.keyboard.press("Enter")
    # The focus is on the field that is wrong, which says so.
    tab.wait_for_selector("[aria-invalid=true]:focus")
    place = tab.get_attribute(":focus", "aria-describedby")
    assert 'Invalid value: "2x"' in tab.inner_text(f"[id='{place}']")
    tab.keyboard.press("Control+a")
    tab.keyboard.type("2")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("h3:focus")
    assert tab.inner_text(":focus") == "What would happen"
    assert "team-b/job-benchmark-86330" in tab.inner_text("#what-if .answer table")
    assert tab.seen == []
    tab.context.close()


def test_slow_answers_come_later_and_can_be_asked_again(browser: Any, teams: Page) -> None:
    tab = opened(browser, teams)
    waiting: list[Any] = []

    def arrived() -> Any:
        """The next request for the answer, which the page makes after those for quick ones."""
        for _ in range(500):
            if waiting:
                return waiting.pop()
            tab.wait_for_timeout(20)
        raise AssertionError("the answer is not asked for")

    tab.route("**/answers/unblock/**", lambda route: waiting.append(route))
    tab.goto(f"http://{teams.host}{WAITING}")
    tab.wait_for_selector("#unblock [role=status]:has-text('Working on it')")
    tab.wait_for_selector("#why .command")
    arrived().continue_()
    tab.wait_for_selector("#unblock table")
    tab.click("#unblock >> text=Ask again")
    tab.wait_for_selector("#unblock .working")
    arrived().abort()
    tab.wait_for_selector("#unblock >> text=There is no answer: the server may have stopped.")
    assert tab.is_visible("#unblock >> text=Ask again")
    tab.context.close()


def test_a_command_is_copied(browser: Any, teams: Page) -> None:
    tab = opened(browser, teams, permissions=["clipboard-read", "clipboard-write"])
    tab.clock.install()
    tab.click("text=Copy the command")
    tab.wait_for_selector("button:has-text('Copied')")
    assert tab.evaluate("navigator.clipboard.readText()") == f"kueuecore run {EXAMPLES / 'two-teams'}"
    tab.clock.run_for(2000)
    tab.wait_for_selector("button:has-text('Copy the command')")
    tab.context.close()


def test_a_change_arrives_without_taking_focus_scroll_or_input_away(browser: Any, tmp_path: Any) -> None:
    first = source_at(str(EXAMPLES / "two-teams"))
    more = tmp_path / "more.yaml"
    job = (EXAMPLES / "two-teams" / "team-a.yaml").read_text().split("---")[0]
    more.write_text(job.replace("nightly-build", "another").replace("release-build", "another"))
    second = source_at(str(EXAMPLES / "two-teams"), str(more))
    source = ChangingSource(first, second, first, second)
    with served(source) as page:
        tab = opened(browser, page, width=390)
        at(tab, page, "/workloads")
        tab.fill("#text", "half written")
        tab.evaluate("document.querySelector('[data-key=\"team-b/job-lint-ae481\"] a').focus()")
        tab.evaluate("document.querySelector('#list .scroll').scrollLeft = 60; scrollTo(0, 300)")
        before = len(tab.query_selector_all("tbody tr"))
        source.change()
        tab.wait_for_selector("#state:has-text('version 2')")
        assert len(tab.query_selector_all("tbody tr")) == before + 1
        assert tab.evaluate("document.activeElement.textContent") == "team-b/job-lint-ae481"
        assert tab.evaluate("document.querySelector('#list .scroll').scrollLeft") == 60
        assert tab.evaluate("scrollY") > 250
        assert tab.input_value("#text") == "half written"
        tab.click("text=Pause updates")
        source.change()
        tab.wait_for_timeout(1500)
        assert "version 2" in tab.inner_text("#state"), "updates can be paused"
        tab.click("text=Updates are paused")
        tab.wait_for_selector("#state:has-text('version 3')")
        assert len(tab.query_selector_all("tbody tr")) == before
        at(tab, page, WAITING)
        tab.fill("#priority", "7")
        source.change()
        tab.wait_for_selector("#why >> text=The state has changed since this was answered.")
        assert tab.input_value("#priority") == "7"
        tab.click("#why >> text=Ask again")
        tab.wait_for_selector("#why .stale", state="detached")
        assert tab.seen == []
        tab.context.close()


def test_links_and_forms_work_without_scripts(browser: Any, teams: Page) -> None:
    tab = opened(browser, teams, java_script_enabled=False)
    tab.goto(f"http://{teams.host}{WAITING}")
    assert not tab.is_visible("text=Copy the command")
    tab.click("#why a")
    assert "ClusterQueue team-b has 200m cpu" in tab.inner_text("#answer")
    tab.goto(f"http://{teams.host}/what-if?queue=team-b")
    tab.fill("[name^=nominalQuota]", "2")
    tab.click("text=Try it")
    assert "Who moves" in tab.inner_text("main")
    tab.goto(f"http://{teams.host}/timeline")
    tab.click("main button")
    tab.click("#step-after")
    assert "step 2 of" in tab.inner_text("main")
    tab.context.close()
