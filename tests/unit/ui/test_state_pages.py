"""What the pages of a state show, whoever has written its names and messages."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
from kueuecore._json import JsonValue
from kueuecore.ui.questions import PARTS, Answer
from kueuecore.ui.rendering import rendered
from kueuecore.ui.state_view import WorkloadRow
from tests.unit.ui.pages import EXAMPLES, ChangingSource, Page, served, source_at

KUEUE = "kueue.x-k8s.io/v1beta2"
HOSTILE = "<script>alert('x')</script>\u202e\x1b[31m"
ESCAPED = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;\\u202e\\x1b[31m"
WAITING = "team-b/everything-at-once"


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with served(source_at(str(EXAMPLES / "two-teams"))) as page:
        yield page


def words(text: str) -> str:
    """What a page says, without its elements."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text.partition("<main")[2].partition("</main>")[0])).split())


def command(text: str) -> list[str]:
    return [html.unescape(found) for found in re.findall(r"<pre><code>(.*?)</code></pre>", text, re.DOTALL)]


def rows_of(text: str) -> list[str]:
    return re.findall(r'<tr data-key="([^"]*)"', text)


def test_cohorts_show_what_is_used_borrowed_lent_and_free(page: Page) -> None:
    got = page.get("/")
    said = words(got.text)
    assert "company Cohort cpu in default-flavor 1500m used of 2200m nominal 0 free 700m can still use 700m" in said
    assert "1100m used of 3 lent 1200m free 700m can still use 700m lends up to 2" in said
    assert "1400m used of 200m borrowed 1200m free 0 can still use 300m borrows up to 1500m" in said
    assert 'aria-label="1400m of 200m used, 1200m borrowed, 0 lent, 0 free"' in got.text
    assert command(got.text) == [f"kueuecore run {EXAMPLES / 'two-teams'}"]
    assert page.get("/", {"under": "company"}).status == 200
    assert page.get("/", {"under": "nowhere"}).status == 404


def test_queues_show_their_heads(page: Page) -> None:
    got = page.get("/queues")
    assert rows_of(got.text) == ["team-a", "team-b"]
    assert "team-b 2 team-b/job-benchmark-86330 unknown 2 company yes" in words(got.text)
    assert rows_of(page.get("/queues", {"text": "-B"}).text) == ["team-b"]
    one = words(page.get("/queues/team-b").text)
    assert "1 team-b/job-benchmark-86330" in one
    assert "2 team-b/everything-at-once" in one
    assert page.get("/queues/none").status == 404


def test_a_workload_shows_where_it_stands_and_what_can_be_asked(page: Page) -> None:
    got = page.get(f"/workloads/{WAITING}")
    said = words(got.text)
    assert "Stage Pending" in said
    assert "Place in its queue 2" in said
    assert "ClusterQueue team-b LocalQueue jobs Priority 0" in said
    asked = re.findall(r'data-part="([^"]*)"', got.text)
    assert asked[:3] == [f"/answers/{part}/{WAITING}" for part in ("why", "unblock", "eta")]
    admitted = page.get("/workloads/team-b/job-lint-ae481").text
    assert "/answers/unblock/" not in admitted
    assert "Flavors of main cpu: default-flavor" in words(admitted)


def test_answers_are_those_of_the_commands(page: Page) -> None:
    state = EXAMPLES / "two-teams"
    why = page.get(f"/answers/why/{WAITING}").text
    assert "4 cpu is more than ClusterQueue team-b could get if nothing else ran" in words(why)
    assert command(why) == [f"kueuecore explain {state} {WAITING}"]
    unblock = page.get(f"/answers/unblock/{WAITING}").text
    assert "nominalQuota of ClusterQueue team-b for cpu in default-flavor 200m 5400m Fits 2 nobody Try it" in words(
        unblock
    )
    assert command(unblock) == [f"kueuecore unblock {state} {WAITING}"]
    eta = page.get("/answers/eta/team-b/job-benchmark-86330", {"runs": "1h", "arrivals": "none"}).text
    assert "50 % 1h00m00s 1970-01-01T01:00:00Z" in words(eta)
    assert "--run-seconds=1h --arrivals=none" in command(eta)[0]


def test_what_is_tried_is_what_would_admit_it(page: Page) -> None:
    unblock = page.get(f"/answers/unblock/{WAITING}").text
    tried = [html.unescape(link) for link in re.findall(r'href="(/what-if\?[^"]*)"', unblock)]
    assert len(tried) == 2
    for link in tried:
        assert f"{WAITING} admitted" in words(page.get(link).text), link


def test_a_forecast_without_run_times_says_where_to_write_them(page: Page) -> None:
    got = page.get("/answers/eta/team-b/job-benchmark-86330")
    assert "write a run time, such as 30m" in words(got.text)
    assert "never be" in words(page.get(f"/answers/eta/{WAITING}").text) or "Never" in words(
        page.get(f"/answers/eta/{WAITING}").text
    )
    wrong = page.get(f"/answers/eta/{WAITING}", {"runs": "soon"}).text
    assert "not a duration: &#34;soon&#34;" in wrong
    assert 'id="eta-runs" name="runs" value="soon"' in wrong
    assert 'aria-invalid="true"' in wrong


@pytest.mark.parametrize(
    "path",
    ["/workloads/a/b", "/answers/why/a/b", f"/answers/nope/{WAITING}", "/what-if?workload=a/b", "/nodes?flavor=x"],
)
def test_what_is_not_there_is_said_with_what_to_do(page: Page, path: str) -> None:
    got = page.get(path)
    assert got.status == 404
    assert "Go back, or choose a page above" in got.text
    assert '<nav aria-label="Pages">' in got.text


def test_nodes_are_a_map_with_the_pods_on_them() -> None:
    with served(source_at(str(EXAMPLES / "topology"))) as page:
        said = words(page.get("/nodes").text)
        assert "gpu-nodes topology data-hall, 8 nodes Nothing is used of cpu, memory. block-1" in said
        assert "gpu-1 kubernetes.io/hostname nvidia.com/gpu 3 of 4 free 1 pods 3 of 110 free 107" in said
        assert "research/job-notebooks-ceb8e 3 pods" in said
        one = words(page.get("/nodes?flavor=gpu-nodes&under=block-2&under=rack-4").text)
        assert "gpu-8" in one
        assert "gpu-1 " not in one
        place = words(page.get("/workloads/research/job-tune-563f1").text)
        assert "main runs on gpu-3 (4 pods), gpu-4 (4 pods)." in place


def test_without_a_topology_nodes_are_a_table_and_without_nodes_nothing(tmp_path: Path) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4"}}}
    (tmp_path / "node.json").write_text(json.dumps({**node, "spec": {"unschedulable": True}}))
    with served(source_at(str(tmp_path / "node.json"))) as page:
        assert "n1 no 4 cpu" in words(page.get("/nodes").text)
        assert "no quota" in words(page.get("/").text)
    with served(source_at(str(EXAMPLES / "two-teams"))) as page:
        assert "kubectl get nodes" in words(page.get("/nodes").text)


def hostile_objects() -> list[dict[str, Any]]:
    """A dump in which everything that a stranger can name is hostile."""
    condition = {"type": "QuotaReserved", "status": "False", "reason": HOSTILE, "message": HOSTILE}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    pods: dict[str, Any] = {"name": "main", "count": 1, "template": {"spec": {"containers": [{"name": "c"}]}}}
    pods["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "9"}}
    flavor = {"name": HOSTILE, "resources": [{"name": "cpu", "nominalQuota": "1"}]}
    queue: dict[str, Any] = {"cohortName": HOSTILE, "namespaceSelector": {}}
    queue["resourceGroups"] = [{"coveredResources": ["cpu"], "flavors": [flavor]}]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}},
        {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": HOSTILE}},
        {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": HOSTILE}, "spec": queue},
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": "lq", "namespace": "ns"},
            "spec": {"clusterQueue": HOSTILE},
        },
        {
            "apiVersion": KUEUE,
            "kind": "Workload",
            "metadata": {"name": HOSTILE, "namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"queueName": "lq", "podSets": [pods]},
            "status": {"conditions": [condition]},
        },
    ]


def test_hostile_names_and_messages_are_text(tmp_path: Path) -> None:
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": hostile_objects()}))
    with served(source_at(str(path), "--trusted")) as page:
        listed = page.get("/workloads").text
        (link,) = set(re.findall(r'href="(/workloads/ns/[^"]*)"', listed))
        queue = re.findall(r'href="(/queues/[^"]*)"', listed)[0]
        asks = [link.replace("/workloads/", f"/answers/{part}/") for part in ("why", "unblock", "eta")]
        asked = {
            "ask": "1",
            "job": HOSTILE,
            "edits": HOSTILE,
            "deletions": HOSTILE,
            "priority": HOSTILE,
            "queue": HOSTILE,
        }
        seen = [page.get(path) for path in ("/", "/queues", queue, "/workloads", link, *asks)]
        seen += [page.get("/what-if", asked), page.get("/workloads", {"text": HOSTILE, "queue": HOSTILE})]
        seen += [page.get("/timeline", {"ask": "1", "runs": HOSTILE}), page.get("/queues", {"text": HOSTILE})]
        for got in seen:
            assert got.status == 200, got.text[-2000:]
            assert ESCAPED in got.text
            assert "<script>" not in got.text
            assert not re.search("[\u202e\x1b]", got.text)
        assert page.get("/nope/" + link).status == 404


def test_a_state_that_cannot_be_read_any_more_is_said_and_the_last_one_stays() -> None:
    good = source_at(str(EXAMPLES / "two-teams"))
    source = ChangingSource(good)
    with served(source) as page:
        assert "It is not the newest" not in page.get("/").text

        class Gone:
            def state(self, named: str = "") -> object:
                from kueuecore.errors import ManifestError

                raise ManifestError.of("the cluster does not answer", remedy="see if it runs")

        source._sources = (good, Gone())  # type: ignore[assignment] # what a cluster that is gone does
        source.change()
        got = page.get("/workloads")
        assert got.status == 200
        assert "It is not the newest: the cluster does not answer; see if it runs" in got.text
        assert len(rows_of(got.text)) == 7
        assert command(got.text) == ["kueuecore run --context test -A -o wide"]


def test_a_bug_is_a_page_too(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr("kueuecore.ui.state_pages.WorkloadPage.of", fails)
    with served(source_at(str(EXAMPLES / "two-teams"))) as page:
        got = page.get("/workloads")
        assert got.status == 500
        assert "please report it with what the command has printed" in got.text
        assert "a mistake of ours" not in got.text
        assert "default-src 'none'" in got.headers["content-security-policy"]
        assert page.get("/queues").status == 200
        monkeypatch.setattr("kueuecore.ui.app.Views.newest", fails)
        assert "This page has failed" in page.get("/queues").text
    assert "RuntimeError: a mistake of ours" in capfd.readouterr().err


def test_a_history_is_shown_step_by_step() -> None:
    row = source_at(str(EXAMPLES / "two-teams")).state().engine.workload("everything-at-once", namespace="team-b")
    steps: list[JsonValue] = [
        {"at": "2026-01-01T00:00:00Z", "before": None, "what": "Queued", "rule": None, "sentence": HOSTILE, "count": 1},
        {
            "at": None,
            "before": "2026-01-02T00:00:00Z",
            "what": "Evicted",
            "rule": "04 \u00a72",
            "sentence": "by x",
            "count": 3,
        },
    ]
    answer = Answer({"steps": steps, "notRecorded": ["who queued it"]}, "kueuecore history x y")
    part = next(part for part in PARTS if part.name == "history")
    facts = {
        "row": WorkloadRow(row, None),
        "part": part,
        "answer": answer,
        "asked": {},
        "version": 1,
        "command": "",
    }
    page = {"title": "t", "path": "/", "has_state": True, "is_live": False, "view": None}
    text = bytes(rendered("part", {**page, **facts}).body).decode()
    said = words(text)
    assert "2026-01-01T00:00:00Z Queued <script>alert('x')</script>\\u202e" in said
    assert "before 2026-01-02T00:00:00Z Evicted 3 times by x 04 \u00a72" in said
    assert "Not recorded any more: who queued it" in said
    assert ESCAPED in text


def test_the_history_is_asked_if_there_is_such_a_command(page: Page) -> None:
    has_command = find_spec("kueuecore.cli.commands.history") is not None
    assert (f"/answers/history/{WAITING}" in page.get(f"/workloads/{WAITING}").text) == has_command
    assert page.get(f"/answers/history/{WAITING}").status == (200 if has_command else 404)
