"""Spans of time that are drawn, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import exp, gamma
from pathlib import Path
from random import Random
from statistics import fmean, median, quantiles

import pytest

from kueuecore.scenarios import Empirical, Gamma, InOrder, LogNormal, Span, Spans, Weibull
from kueuecore.scenarios.node_timetable import failure_times
from tests.regressions.scenarios import CLUSTER, Read, problems

N = 20_000


def drawn(spans: Spans, n: int = N) -> list[float]:
    return list(islice(spans.draws(Random(7)), n))


def runs(read: Read, span: str) -> Spans | None:
    return read(CLUSTER + f"work: [{{job: job.yaml, runs: {span}}}]\n").work[0].runs


@pytest.mark.parametrize(
    ("spans", "mean"),
    [
        (LogNormal(median=60, sigma=0.8), 60 * exp(0.32)),
        (Weibull(shape=0.7, scale=60), 60 * gamma(1 + 1 / 0.7)),
        (Gamma(shape=3, scale=20), 60),
        (Empirical(values=(10, 100), weights=(9, 1)), 19),
        (Span(mean=60), 60),
    ],
)
def test_the_mean_is_that_of_the_distribution(spans: Spans, mean: float) -> None:
    assert fmean(drawn(spans)) == pytest.approx(mean, rel=0.03)


def test_a_lognormal_of_mean_and_p95_has_both() -> None:
    seen = drawn(LogNormal.of_mean(300, p95=900))
    assert fmean(seen) == pytest.approx(300, rel=0.03)
    assert quantiles(seen, n=20)[-1] == pytest.approx(900, rel=0.03)


def test_half_of_a_lognormal_is_below_its_median() -> None:
    assert median(drawn(LogNormal(median=60, sigma=2))) == pytest.approx(60, rel=0.05)


@pytest.mark.parametrize("p95", [50, 240])
def test_no_lognormal_has_a_p95_below_its_mean_or_far_above(p95: float) -> None:
    with pytest.raises(ValueError, match="no lognormal distribution"):
        LogNormal.of_mean(60, p95=p95)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("{lognormal: {median: 5m, sigma: 1.5}}", LogNormal(median=300, sigma=1.5)),
        ("{lognormal: {mean: 5m, p95: 15m}}", LogNormal.of_mean(300, p95=900)),
        ("{weibull: {shape: 0.5, scale: 1h}}", Weibull(shape=0.5, scale=3600)),
        ("{gamma: {shape: 2, scale: 30}}", Gamma(shape=2, scale=30)),
        ("{values: [30s, 5m], weights: [3, 1]}", Empirical(values=(30, 300), weights=(3, 1))),
        ("{values: [30s, 5m]}", Empirical(values=(30, 300))),
        ("{values: [30s, 5m], inOrder: true}", InOrder(values=(30, 300))),
        ("{file: x.csv, column: runtime}", Empirical(values=(12.5, 120, 86400))),
        ("{file: x.csv, column: runtime, inOrder: true}", InOrder(values=(12.5, 120, 86400))),
        ("1d12h", Span(129600)),
    ],
)
def test_every_distribution_can_be_read(read: Read, tmp_path: Path, text: str, spans: Spans) -> None:
    (tmp_path / "x.csv").write_text("job,runtime\na,12.5\nb,2m\nc,1d\n", encoding="utf-8")
    assert runs(read, text) == spans


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{lognormal: {median: 5m}}", ["lognormal: not a lognormal distribution"]),
        ("{lognormal: {median: 5m, sigma: 1, p95: 1h}}", ["lognormal: not a lognormal distribution"]),
        ("{lognormal: {median: 5m, sigma: -1}}", ["lognormal.sigma: Invalid value: -1"]),
        ("{lognormal: {mean: 5m, p95: 1m}}", ["lognormal.p95: no lognormal distribution has them"]),
        ("{lognormal: }", ["lognormal: Required value"]),
        ("{lognormal: 5}", ["lognormal: must be a mapping, not a number", "lognormal: Required value"]),
        ("{weibull: {shape: 0.5}}", ["weibull.scale: Required value"]),
        ("{weibull: {shape: 0, scale: 5}}", ["weibull.shape: Invalid value: 0"]),
        ("{gamma: {shape: 1, scale: 0}}", ["gamma.scale: Invalid value: 0"]),
        ("{gamma: {shape: 1, scale: 1, rate: 1}}", ["gamma.rate: unknown field"]),
        ("{values: []}", ["values: Required value"]),
        ("{values: [soon]}", ['values[0]: not a duration: "soon"']),
        ("{values: [1, 2], weights: [1]}", ["weights: 1 weights"]),
        ("{values: [1], weights: [0]}", ["weights: all weights are 0"]),
        ("{values: [1], weights: [-1]}", ["weights[0]: Invalid value: -1"]),
        ("{values: [1], weights: [1], inOrder: true}", ["weights: values in order have no weights"]),
        ("{values: [1], mean: 1}", ["mean: unknown field"]),
        ("{values: [1], gamma: {shape: 1, scale: 1}}", [": both gamma and values are given"]),
        ("{file: x.csv}", ["column: Required value"]),
        ("{file: x.csv, column: walltime}", ['column: Not found: "walltime"']),
        ("{file: none.csv, column: a}", ["there is no such file"]),
        ("{file: '', column: a}", ['file: Invalid value: ""']),
        ("{pareto: {a: 1}}", ["pareto: unknown field", ": not a duration"]),
    ],
)
def test_problems_of_a_distribution_name_the_field(read: Read, tmp_path: Path, text: str, wrong: list[str]) -> None:
    (tmp_path / "x.csv").write_text("job,runtime\na,12.5\n", encoding="utf-8")
    found = problems(read, CLUSTER + f"work: [{{job: job.yaml, runs: {text}}}]\n")
    fields = ["work[0].runs" + (name if name.startswith(":") else f".{name}") for name in wrong]
    assert [problem.removeprefix(": ") for problem in found] == (wrong if "no such file" in wrong[0] else fields)


@pytest.mark.parametrize(("rows", "line"), [("5\nsoon\n", 3), ("5\n\n-1\n", 4), ("5\nnan\n", 3)])
def test_a_row_that_is_no_span_is_named_by_file_and_line(read: Read, tmp_path: Path, rows: str, line: int) -> None:
    (tmp_path / "x.csv").write_text(f"runtime\n{rows}", encoding="utf-8")
    with pytest.raises(Exception, match=rf"x\.csv:{line}: runtime: not a duration"):
        runs(read, "{file: x.csv, column: runtime}")


def times(read: Read, work: str, seed: int = 1) -> Sequence[tuple[float, float | None]]:
    return [time[:2] for time in read(CLUSTER + f"work: [{work}]\n").work[0].times(seed)]


def test_spans_in_order_start_again_after_the_last(read: Read) -> None:
    work = (
        "{job: job.yaml, count: 5, every: {values: [1, 10], inOrder: true}, runs: {values: [7, 8, 9], inOrder: true}}"
    )
    assert times(read, work) == [(0, 7), (1, 8), (11, 9), (12, 7), (22, 8)]


def test_nodes_fail_by_every_distribution(read: Read) -> None:
    nodes = "nodes: [{name: 'n', levels: [{name: node, count: 2}], capacity: {cpu: 1}, failures: [%s]}]"
    failures = (
        "{at: 5, nodes: 1, times: 3, every: {values: [10, 20], inOrder: true}, lasts: {values: [1], inOrder: true}}"
    )
    scenario = read(f"cluster: {{{nodes % failures}}}\n")
    assert list(failure_times(scenario.cluster.nodes[0], 0, 1)) == [(5, 6), (15, 16), (35, 36)]


def test_draws_stay_within_the_range_of_time(read: Read) -> None:
    # Of so wide a distribution some are longer than 292 years.
    (problem,) = problems(
        read, CLUSTER + "work: [{job: job.yaml, count: 1000, runs: {lognormal: {median: 100d, sigma: 10}}}]\n"
    )
    assert problem.startswith("work[0].runs: ")
