"""The playground in a real browser: the same bytes as the command, offline, and safe whatever is pasted into it."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kueuecore.cli import main
from scripts.playground import EXAMPLES, ROOT, example
from tests.quota_manifests import flavor, local_queue, queue, workload

axe = pytest.importorskip("axe_playwright_python.sync_playwright")
PAGE = ROOT / "target" / "playground.html"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the playground is not built: make playground")

MAX_BYTES = 5_000_000
# What Python works out beyond the engine's answer; messages in brackets are its own, too.
_OURS = {"workloads": ("note", "notPlaced"), "preemptions": ("why",)}
_OURS_TO_EXPLAIN = ("obstacles", "notPlaced", "leftOut", "fullNodes", "onNodes")
_OF_WORKLOAD = ("namespace", "name", "status", "clusterQueue", "reason", "message")
OWNER = r'      "owner": .*\n'
_OF_HOLDER = ("namespace", "name", "clusterQueue", "priority", "uses", "verdict")


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    """The page without a network; `seen` is what it complains about or tries to load."""
    context = browser.new_context(accept_downloads=True)
    tab = context.new_page()
    tab.seen = []
    tab.on("console", lambda message: tab.seen.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: tab.seen.append(str(error)))
    tab.on("request", lambda sent: tab.seen.append(sent.url) if sent.url.startswith("http") else None)
    tab.goto(PAGE.as_uri())
    context.set_offline(True)
    yield tab
    context.close()
    assert tab.seen == []


def decided(tab: Any, text: str | None = None) -> str:
    """Ask for a decision about a text, or about what is there; return what the page announces."""
    if text is not None:
        tab.fill("#manifests", text)
    tab.evaluate("document.getElementById('says').textContent = ''")
    tab.click("#decide")
    # The page's policy allows no functions made of text, which `wait_for_function` needs.
    tab.wait_for_selector("#says:not(:empty)")
    return str(tab.inner_text("#says"))


def downloaded(tab: Any) -> str:
    with tab.expect_download() as started:
        tab.click("#download")
    return Path(started.value.path()).read_text("utf-8")


def output_of(*arguments: str) -> str:
    """What the command prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main(arguments)
    return printed.getvalue()


def run_of_command(*arguments: str) -> str:
    """`kueuecore run -o json` without the fields that the page does not have."""
    document = json.loads(output_of("run", *arguments, "-o", "json", "-q"))
    for part, fields in _OURS.items():
        for row in document[part]:
            for field in fields:
                del row[field]
    for row in document["workloads"]:
        if row["message"].startswith("("):
            row["message"] = ""
    del document["admissionChecks"]
    return json.dumps(document, indent=2) + "\n"


def explanation_of_command(*arguments: str) -> str:
    """`kueuecore explain -o json` without the fields that the page does not have."""
    document = json.loads(output_of("explain", *arguments, "-o", "json", "-q"))
    for field in _OURS_TO_EXPLAIN:
        del document[field]
    # Whether somebody is not enough only because of borrowing is worked out in Python, too.
    for search in document["searches"]:
        for holder in search["holders"]:
            holder["verdict"] = holder["verdict"].replace("WouldBorrow", "NotEnough")
    document["workload"] = {field: document["workload"][field] for field in _OF_WORKLOAD}
    for search in document["searches"]:
        search["holders"] = [{field: holder[field] for field in _OF_HOLDER} for holder in search["holders"]]
    return json.dumps(document, indent=2) + "\n"


def nominal(text: str, quota: str) -> str:
    return text.replace("nominalQuota: 200m", f"nominalQuota: {quota}")


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_decides_and_explains_with_the_bytes_of_the_command(tab: Any, tmp_path: Path, name: str) -> None:
    text, folder = tmp_path / "example.yaml", str(ROOT / "examples" / name)
    text.write_text(example(name), "utf-8")
    tab.select_option("#example", name)
    assert tab.input_value("#manifests") == text.read_text("utf-8")
    decided(tab)
    found = downloaded(tab)
    assert found == run_of_command(str(text))
    # The text has Workloads instead of jobs, so that a Deployment that owns a pod is not known.
    assert re.sub(OWNER, "", found) == re.sub(OWNER, "", run_of_command(folder))
    for key in tab.evaluate("shown.run.workloads.map(key)"):
        tab.select_option("#explain", key)
        decided(tab)
        assert tab.evaluate("shown.answer.explain") == explanation_of_command(folder, key), key


def test_it_is_one_small_file_that_loads_nothing(tab: Any) -> None:
    assert PAGE.stat().st_size < MAX_BYTES
    assert "4 Admitted" in decided(tab, example("two-teams"))


def test_it_lists_what_an_edit_changes(tab: Any) -> None:
    text = example("two-teams")
    decided(tab, text)
    tab.click("#pin")
    assert nominal(text, "900m") != text
    decided(tab, nominal(text, "900m"))
    changes = tab.inner_text("#changes tbody")
    assert "team-b/job-benchmark-86330\tPending: couldn't assign flavors" in changes
    assert "\tAdmitted: main: cpu 400m in default-flavor" in changes
    assert "team-b/job-hotfix" not in changes
    decided(tab, text)
    assert "None: every workload fares as before." in tab.inner_text("#changes")
    tab.click("#unpin")
    assert tab.locator("#changes").is_hidden()


def test_a_link_holds_the_state(browser: Any, tab: Any) -> None:
    decided(tab, f"# Grüße, 世界\n{example('two-teams')}")
    tab.select_option("#explain", "team-b/job-benchmark-86330")
    tab.fill("#now", "2026-03-01T00:00:00Z")
    tab.click("#link")
    tab.wait_for_selector("#says:has-text('The link is')")
    other = browser.new_page()
    other.goto(tab.url)
    other.wait_for_selector("#outcome:not([hidden])")
    for field in ("manifests", "now", "explain"):
        assert other.input_value(f"#{field}") == tab.input_value(f"#{field}")
    assert other.inner_text("#says").startswith("At 2026-03-01T00:00:00Z")
    assert "Contested" not in other.inner_text("#explanation")
    assert "ClusterQueue team-b" in other.inner_text("#explanation")
    packed = base64.urlsafe_b64decode(tab.url.partition("#1.")[2] + "===")
    assert json.loads(zlib.decompress(packed, -15))["now"] == "2026-03-01T00:00:00Z"
    other.goto(tab.url[:-40])
    other.wait_for_selector("#says:has-text('cut off')")
    other.close()


def test_bad_input_is_refused_as_by_an_api_server_and_kept(tab: Any) -> None:
    bad = flavor() + queue("team-a", "nominalQuota: much")
    assert "nothing was decided" in decided(tab, f"{bad}---\napiVersion: v1\n")
    assert "document 3: it has no apiVersion and kind" in tab.inner_text("#errors")
    decided(tab, bad)
    assert tab.inner_text("#errors").startswith(
        'ClusterQueue "team-a" is invalid: spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: Invalid value'
    )
    assert tab.input_value("#manifests") == bad
    assert "One problem" in decided(tab, "a: [")
    assert tab.inner_text("#errors").startswith("line 2, column 1: ")
    assert "4 Admitted" in decided(tab, example("two-teams")), "it goes on"


def test_jobs_are_named_with_the_remedy(tab: Any) -> None:
    decided(tab, (ROOT / "examples" / "two-teams" / "team-a.yaml").read_text("utf-8"))
    notes = tab.inner_text("#notes")
    assert "Job team-a/nightly-build is left out" in notes
    assert "kueuecore run FILE -o yaml" in notes
    remedied = output_of("run", str(ROOT / "examples" / "two-teams"), "-o", "yaml", "-q")
    assert "3 Pending, 4 Admitted" in decided(tab, remedied)
    assert "left out" not in tab.inner_text("#notes")


def test_names_are_never_html(tab: Any) -> None:
    attack = "<img src=x onerror=document.title='owned'>"
    decided(tab, flavor() + queue("cq") + local_queue("main", "cq") + workload(json.dumps(attack), "main", 1))
    assert "<img" in tab.inner_text("#errors")
    tab.goto(f"{PAGE.as_uri()}#1.{attack}")
    decided(tab, json.dumps([{"apiVersion": f"</script>{attack}/v1", "kind": attack, "metadata": {"name": attack}}]))
    assert attack in tab.inner_text("#notes")
    assert tab.locator("img").count() == 0
    assert tab.title() == "Playground - kueuecore"


def test_yaml_means_what_it_means_to_kubectl(tab: Any) -> None:
    recorded = (ROOT / "tests" / "yaml_scalars" / "recorded.jsonl").read_text("utf-8").splitlines()
    cases = [json.loads(line) for line in recorded]
    read = """cases => cases.map((text) => {
        try { return toJson(jsyaml.load(text, { schema, json: true })); } catch (error) { return null; }
    })"""
    answers = tab.evaluate(read, [case["yaml"] for case in cases])
    for case, answer in zip(cases, answers, strict=True):
        # It refuses rare keys and tags that nobody needs, but never reads something else.
        is_rare = case["as"] == "key" or "!" in case["yaml"] or case.get("json") is None
        assert (answer is None and is_rare) or json.loads(answer) == case.get("json"), case


def test_it_is_accessible_in_light_and_dark_and_on_a_phone(browser: Any) -> None:
    checker = axe.Axe()
    for width, scheme in ((1280, "light"), (390, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True)
        tab = context.new_page()
        tab.goto(PAGE.as_uri())
        tab.select_option("#example", "two-teams")
        tab.wait_for_selector("#outcome:not([hidden])")
        tab.click("#pin")
        tab.get_by_role("button", name="Explain team-b/job-benchmark-86330").press("Enter")
        tab.wait_for_selector("#explanation table")
        found = checker.run(tab).response["violations"]
        assert [(it["id"], [node["html"] for node in it["nodes"]]) for it in found] == [], (width, scheme)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        context.close()


def test_large_texts_are_pasted_at_once(tab: Any) -> None:
    text = flavor() + queue("cq") + local_queue("cq") + "".join(workload(f"w-{n}", "cq", 1) for n in range(1000))
    paste = """text => {
        const data = new DataTransfer();
        data.setData('text/plain', text);
        const box = document.getElementById('manifests');
        const event = new ClipboardEvent('paste', { clipboardData: data, cancelable: true });
        if (box.dispatchEvent(event)) throw new Error('it was left to the browser');
    }"""
    tab.evaluate(paste, text)
    assert tab.input_value("#manifests") == text
    assert "996 Pending, 4 Admitted" in decided(tab)


def test_the_keyboard_decides(tab: Any) -> None:
    tab.fill("#manifests", example("two-teams"))
    tab.press("#manifests", "Control+Enter")
    tab.wait_for_selector("#outcome:not([hidden])")
    assert "4 Admitted" in tab.inner_text("#says")
