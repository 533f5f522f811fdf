"""The dashboards in deploy/dashboards: what Grafana takes, and only metrics and labels that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kueuecore.controller.metric_families import FAMILIES, full_name
from kueuecore.kubernetes.endpoints import ProcessMetrics
from kueuecore.kubernetes.forecasting import Outlook
from kueuecore.releases import Release
from kueuecore.version import DEFAULT_RELEASE
from tests.unit.deploy.promql import PromqlError, Selector, parsed

Json = dict[str, Any]
FOLDER = Path("deploy/dashboards")
BOARDS: dict[str, Json] = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}
# What Prometheus adds to each series.
OF_TARGETS = frozenset({"job", "instance"})
VALUES = {"status": {"active", "inadmissible", "pending", "terminating"}, "verdict": {"agreed", "differed", "unjudged"}}
KINDS_OF_PANELS = {"row", "stat", "table", "timeseries"}
UNITS = {"short", "s", "bytes", "percentunit"}


def known_metrics() -> dict[str, tuple[str, frozenset[str]]]:
    """Type and labels of each series: Kueue's families, and what a process of serve shows besides."""
    known: dict[str, tuple[str, frozenset[str]]] = {}
    for family, it in FAMILIES.items():
        labels = frozenset(it.labels) | {"replica_role"}
        if it.type == "histogram":
            known[f"{full_name(family)}_bucket"] = ("counter", labels | {"le"})
            known |= {f"{full_name(family)}_{end}": ("counter", labels) for end in ("sum", "count")}
        else:
            known[full_name(family)] = (it.type, labels)
    metrics = ProcessMetrics(Release.named(DEFAULT_RELEASE), lease="lease")
    metrics.lead()
    metrics.count_request("GET", "https://host", 200)
    metrics.compare(lambda: 1, lambda: 1)
    metrics.judged(known=lambda: 0, failed=lambda: 0)("admission", "agreed")
    metrics.forecast(lambda: Outlook(waits={"main": (1.0,)}, held_ratio=0.5, until=0), (0.5,))
    for metric in metrics.registry.collect():
        for sample in metric.samples:
            type_, labels = known.get(sample.name, (metric.type, frozenset[str]()))
            known[sample.name] = (type_, labels | frozenset(sample.labels))
    return known


KNOWN = known_metrics()


def panels(board: Json) -> list[Json]:
    found: list[Json] = board["panels"]
    return found


def targets(board: Json) -> Iterator[tuple[str, str, str]]:
    """Panel, expression and legend."""
    for panel in panels(board):
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"], target["legendFormat"]


def filled_in(board: Json, text: str) -> str:
    """With a value for each variable, as Grafana does before it asks Prometheus."""
    names = [variable["name"] for variable in board["templating"]["list"]]
    text = text.replace("$__rate_interval", "5m")
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"\$(?:{name}\b|\{{{name}\}})", "a|b", text)
    assert "$" not in text, f"a variable that does not exist: {text}"
    return text


def problems_of(selector: Selector) -> Iterator[str]:
    """What is wrong with a metric and its matchers."""
    if selector.metric not in KNOWN:
        yield f"no metric {selector.metric}"
        return
    type_, labels = KNOWN[selector.metric]
    for label, operator, value in selector.matchers:
        if label not in labels | OF_TARGETS:
            yield f"{selector.metric} has no label {label}"
        # A value that is written out exists; `status` of other families has other values.
        elif operator in ("=", "!=") and value not in VALUES.get(label, {value}):
            yield f"{selector.metric} has no {label} {value}"
    if (type_ == "counter") is not (selector.function in ("rate", "increase")):
        yield f"{selector.function or 'no function'} of {selector.metric}, a {type_}"


def problems_in(board: Json, expression: str, legend: str) -> list[str]:
    """What is wrong with an expression and its legend."""
    try:
        part = parsed(filled_in(board, expression))
    except PromqlError as error:
        return [str(error)]
    problems = [problem for selector in part.selectors for problem in problems_of(selector)]
    if problems:
        return problems
    each = [KNOWN[selector.metric][1] | OF_TARGETS for selector in part.selectors]
    left = frozenset.intersection(*each) if part.labels is None else part.labels
    if not left <= frozenset.intersection(*each):
        problems.append(f"no such labels: {sorted(left - frozenset.intersection(*each))}")
    shown = {*re.findall(r"\{\{(\w+)\}\}", legend)}
    return problems + [f"the legend shows {label}, which is gone" for label in sorted(shown - left)]


def test_there_is_one_for_serve_and_one_for_kueues_own_metrics() -> None:
    assert [*BOARDS] == ["kueue-queues", "kueuecore-serve"]
    uids = [board["uid"] for board in BOARDS.values()]
    assert uids == [*BOARDS], "addresses of dashboards name their files"
    for board in BOARDS.values():
        assert {link["url"] for link in board["links"]} == {f"/d/{uid}" for uid in uids if uid != board["uid"]}


@pytest.mark.parametrize("name", BOARDS)
def test_grafana_takes_it(name: str) -> None:
    board = BOARDS[name]
    assert (FOLDER / f"{name}.json").read_text("utf-8") == json.dumps(board, indent=2, ensure_ascii=False) + "\n"
    assert "id" not in board, "a number of one Grafana, which another refuses"
    assert board["schemaVersion"] >= 39
    assert {"title", "description", "tags", "time", "refresh", "templating", "annotations"} <= board.keys()
    ids = [panel["id"] for panel in panels(board)]
    assert len({*ids}) == len(ids) > 10
    assert {panel["type"] for panel in panels(board)} <= KINDS_OF_PANELS
    for panel in panels(board):
        assert panel["title"]
        if panel["type"] == "row":
            assert panel["panels"] == []
            continue
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        references = [target["refId"] for target in panel["targets"]]
        assert len({*references}) == len(references) > 0
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)
    # Links of panels and rows are by title.
    titles = [panel["title"] for panel in panels(board)]
    assert len({*titles}) == len(titles)


@pytest.mark.parametrize("name", BOARDS)
def test_panels_fit_and_do_not_overlap(name: str) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in panels(BOARDS[name]):
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                taken[x, y] = panel["title"]
    # No holes that Grafana would close, which would then show as changes.
    assert {y for _, y in taken} == {*range(max(y for _, y in taken) + 1)}


@pytest.mark.parametrize(
    ("name", "panel", "expression", "legend"),
    [(name, *target) for name, board in BOARDS.items() for target in targets(board)],
)
def test_an_expression_asks_for_what_exists(name: str, panel: str, expression: str, legend: str) -> None:
    assert problems_in(BOARDS[name], expression, legend) == []


@pytest.mark.parametrize("name", BOARDS)
def test_variables_ask_for_what_exists_and_are_used(name: str) -> None:
    board = BOARDS[name]
    source, *others = board["templating"]["list"]
    assert (source["name"], source["type"], source["query"]) == ("datasource", "datasource", "prometheus")
    assert [variable["name"] for variable in others][:2] == ["job", "cluster_queue"]
    used = {found for _, expression, _ in targets(board) for found in re.findall(r"\$(\w+)", expression)}
    for variable in others:
        found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
        assert found is not None
        assert variable["query"]["query"] == variable["definition"]
        (selector,) = parsed(filled_in(board, found[1])).selectors
        assert [*problems_of(selector)] == []
        assert found[2] in KNOWN[selector.metric][1] | OF_TARGETS
        assert variable["name"] in used


@pytest.mark.parametrize("name", BOARDS)
def test_gauges_of_followers_are_left_out_and_each_queue_can_be_chosen(name: str) -> None:
    # Both replicas watch, so that a sum over both would count every workload twice.
    for _, expression, _ in targets(BOARDS[name]):
        for selector in parsed(filled_in(BOARDS[name], expression)).selectors:
            type_, labels = KNOWN[selector.metric]
            matched = {label for label, _, _ in selector.matchers}
            if type_ == "gauge" and "replica_role" in labels:
                assert ("replica_role", "!=", "follower") in selector.matchers
            assert {"cluster_queue", "cohort"} & labels & matched or not {"cluster_queue", "cohort"} & labels


def test_what_people_ask_for_is_shown() -> None:
    shown = {
        name: {
            selector.metric for _, text, _ in targets(board) for selector in parsed(filled_in(board, text)).selectors
        }
        for name, board in BOARDS.items()
    }
    own = {metric for metric in KNOWN if metric.startswith("kueuecore_") and not metric.endswith("_created")}
    assert own <= shown["kueuecore-serve"]
    assert {"kueuecore_forecast_wait_seconds"} == shown["kueue-queues"] & own
    for metric in ("pending_workloads", "admitted_active_workloads", "evicted_workloads_total", "cohort_subtree_quota"):
        assert full_name(metric) in shown["kueue-queues"]


@pytest.mark.parametrize(
    ("expression", "legend", "problem"),
    [
        ("sum(kueue_pending_workload)", "", "no metric kueue_pending_workload"),
        ('kueue_pending_workloads{queue="a"}', "", "kueue_pending_workloads has no label queue"),
        ('kueue_pending_workloads{status="waiting"}', "", "kueue_pending_workloads has no status waiting"),
        ("sum by (flavor) (kueue_pending_workloads)", "", "no such labels: ['flavor']"),
        ("sum(kueue_pending_workloads)", "{{status}}", "the legend shows status, which is gone"),
        ("rate(kueue_pending_workloads[5m])", "", "rate of kueue_pending_workloads, a gauge"),
        ("sum(kueue_admitted_workloads_total)", "", "no function of kueue_admitted_workloads_total, a counter"),
    ],
)
def test_a_metric_or_label_that_does_not_exist_is_found(expression: str, legend: str, problem: str) -> None:
    assert problems_in(BOARDS["kueue-queues"], expression, legend) == [problem]


@pytest.mark.parametrize(
    "text",
    [
        "sum(a",
        "sum(a))",
        "rate(a)",
        "sum(a[5m])",
        "a[5m]",
        "mean(a)",
        'a{b="c}',
        "a{b=c}",
        "a{b}",
        "clamp_min(a)",
        "histogram_quantile(0.5, sum by (b) (rate(a[5m])))",
        "sum by (c) (sum by (b) (a))",
        "sum by (b) (a) / sum by (c) (a)",
        "a b",
        "",
        "a +",
        "#",
    ],
)
def test_what_prometheus_refuses_is_refused(text: str) -> None:
    with pytest.raises(PromqlError):
        parsed(text)
