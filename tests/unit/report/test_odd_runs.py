"""The page of runs that hardly anybody has: no quota, no time, very long names, very many quotas or nodes."""

from __future__ import annotations

import re

import pytest

from kueuecore import Run, simulate
from kueuecore.report import Report
from kueuecore.scenarios import parse_edit, read_scenario, run_scenario
from kueuecore.submissions import Submissions

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

KUEUE = "apiVersion: kueue.x-k8s.io/v1beta2"


def run_of(quotas: dict[str, str], requests: dict[str, int], *, queue: str = "cq", flavors: int = 1) -> Run:
    """Four jobs of a minute each in one ClusterQueue."""
    names = [f"flavor{n}" for n in range(flavors)]
    amounts = ", ".join(f"{{name: {name}, nominalQuota: {amount}}}" for name, amount in quotas.items())
    given = ", ".join(f"{{name: {name}, resources: [{amounts}]}}" for name in names)
    groups = f"[{{coveredResources: [{', '.join(quotas)}], flavors: [{given}]}}]" if quotas else "[]"
    texts = ["{apiVersion: v1, kind: Namespace, metadata: {name: ns}}"]
    texts += [f"{{{KUEUE}, kind: ResourceFlavor, metadata: {{name: {name}}}}}" for name in names]
    texts += [
        f"{{{KUEUE}, kind: ClusterQueue, metadata: {{name: {queue}}}, "
        f"spec: {{namespaceSelector: {{}}, resourceGroups: {groups}}}}}",
        f"{{{KUEUE}, kind: LocalQueue, metadata: {{name: lq, namespace: ns}}, spec: {{clusterQueue: {queue}}}}}",
    ]
    jobs = Submissions(
        namespace="ns", local_queues=["lq"], queue=[0] * 4, requests=requests, at=[0, 1, 2, 3], run_seconds=60
    )
    return simulate("\n---\n".join(texts), submissions=[jobs], now="2026-01-01T00:00:00Z")


def says(page: str, title: str) -> str:
    (found,) = re.findall(rf'aria-label="{re.escape(title)}: (.*?)"', page)
    return str(found)


def most_used(page: str) -> str:
    (row,) = re.findall(r"<tbody>\s*<tr>(.*?)</tr>", page[: page.index(">Waiting jobs</h2>")], re.DOTALL)
    return str(re.findall(r"<td>(.*?)</td>", row)[2])


def test_a_resource_that_ends_like_cpu_is_counted_whole() -> None:
    page = Report(run_of({"example.com/cpu": "8"}, {"example.com/cpu": 2})).html
    assert most_used(page) == "8"
    assert most_used(Report(run_of({"cpu": "8"}, {"cpu": 2000})).html) == "8"


def test_bytes_are_read_as_gibibytes_in_words_tables_and_the_tree() -> None:
    page = Report(run_of({"memory": "64Gi"}, {"memory": 16 * 2**30})).html
    assert most_used(page) == "64 GiB"
    assert says(page, "Usage of flavor0/memory").startswith("cq uses most, ")
    assert "flavor0/memory, GiB" in page
    assert re.search(r"quota 64Gi, [\d.]+ GiB used on average", page)


def test_an_unused_resource_has_no_heaviest_user() -> None:
    page = Report(run_of({"cpu": "8", "memory": "1Gi"}, {"cpu": 2000})).html
    assert says(page, "Usage of flavor0/memory") == "Not used."


def test_queues_without_quota_have_a_page_without_usage() -> None:
    page = Report(run_of({}, {"cpu": 2000})).html
    assert re.findall(r'<h2 id="f\d+">(.*?)</h2>', page) == ["Waits", "Jobs"]
    assert ">4</td></tr>" in page, "none of the four was admitted"
    assert says(page, "Waits") == "No job was admitted."


def test_long_names_are_whole_in_legends() -> None:
    queue = "team-machine-learning-research-natural-language-production"
    page = Report(run_of({"cpu": "8"}, {"cpu": 2000}, queue=queue)).html
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(pictures) == 4
    assert all(f">{queue}</text>" in picture for picture in pictures)


def test_the_tree_shows_a_limited_number_of_quotas_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of({"cpu": "8"}, {"cpu": 2000}, flavors=5)
    assert Report(run).html.count('<span class="quota">') == 5
    monkeypatch.setattr("kueuecore.report.page._MAX_QUOTAS", 4)
    page = Report(run).html
    assert '<span class="quota">' not in page
    assert "<strong>cq</strong>" in page
    assert "Quotas at the end of the run, of the first 0 of 1 cohorts and ClusterQueues alone." in page


def test_a_job_that_ends_as_it_begins_holds_no_nodes() -> None:
    lost_rack = "examples/lost-rack/scenario.yaml"
    edits = [parse_edit("work[0].runs=0s"), parse_edit("work[0].count=5")]
    run = run_scenario(read_scenario(lost_rack, edits=edits)).run
    assert run is not None
    page = Report(run).html
    rows = re.findall(r"<tr>(.*?)</tr>", page[page.index("<summary>Racks and nodes as a table") :], re.DOTALL)
    cells = [re.findall(r"<td>(.*?)</td>", row) for row in rows]
    most = [row[2] for row in cells if row]
    assert most
    assert set(most) == {"0"}


def test_with_very_many_nodes_those_with_most_pods_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    # Racks are the topmost level.
    monkeypatch.setattr("kueuecore.report.topology._MAX_ROWS", 2)
    run = run_scenario(read_scenario("examples/lost-rack/scenario.yaml")).run
    assert run is not None
    page = Report(run).html
    pods: dict[str, int] = {}
    for domain, n in zip(run.placement_table["domain"].tolist(), run.placement_table["pods"].tolist(), strict=True):
        top = run.domains[domain].values[0]
        pods[top] = pods.get(top, 0) + n
    table = page[page.index("<summary>Racks and nodes as a table") :]
    shown = dict(re.findall(r"<tr><td>(.*?)</td><td>(\d+)</td>", table))
    best = sorted(pods, key=lambda pod: (-pods[pod], pod))[:2]
    assert shown == {name: str(pods[name]) for name in best}
    assert "Shows the 2 with the most pods." in page
