"""The page of a fleet: figures and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np

from kueuecore._numbers import number_text
from kueuecore._text import listed
from kueuecore.releases import Release
from kueuecore.report.axes import color_of, count_axis, inline, time_axis
from kueuecore.report.facts import clock, counted
from kueuecore.report.figure import WIDTH, Figure, svg
from kueuecore.report.fleet_facts import FleetFacts, by_rows
from kueuecore.report.fleet_jobs import fleet_jobs_figure
from kueuecore.report.fleet_usage import fleet_usage_figures
from kueuecore.report.page import render
from kueuecore.report.waits import waits_by_name
from kueuecore.scenarios import FleetResults, ScenarioOutcome
from kueuecore.times import format_time

__all__ = ["fleet_html"]

_MAX_NUMBERS = 12
_MAX_WORKS = 8
_BAR = 30


def fleet_html(outcome: ScenarioOutcome, results: FleetResults, *, title: str) -> str:
    """Render a run of a fleet as one HTML page that needs neither a network nor scripts.

    Args:
        outcome: The outcome.
        results: Its results.
        title: The heading of the page.

    Raises:
        ImportError: The extra `report` is not installed.
    """
    facts = FleetFacts(results)
    figures: list[Figure] = []
    if facts.seconds > 0 and len(results.job_outcomes):
        numbers = outcome.jobs.numbers
        waits = np.where(numbers["admitted"] >= 0, (numbers["admitted"] - numbers["created"]) / 1e9, np.nan)
        homes = [facts.shown(job.cluster) for job in outcome.jobs]
        figures = [_where_figure(facts), *fleet_usage_figures(facts), _waiting_figure(facts)]
        figures += [waits_by_name(waits, homes, facts.bands, what="cluster", note=facts.left_out)]
        figures += [fleet_jobs_figure(facts)]
    figures += [*_tables(outcome, facts)]
    return render(
        title=title,
        subtitle=f"{clock(facts.seconds)} from {format_time(facts.start)}; {outcome.ending.value}. "
        f"A manager and {counted(len(results.clusters) - 1, 'worker')}.",
        figures=figures,
        numbers=[*_numbers(results)],
        releases=[Release.named(name) for name in dict.fromkeys(results.releases)],
        notices=results.notices,
    )


def _numbers(results: FleetResults) -> Iterator[tuple[str, str]]:
    summary = results.summary()
    yield "jobs", f"{summary.jobs:,}"
    yield "finished", f"{summary.finished:,}"
    if summary.failed:
        yield "failed", f"{summary.failed:,}"
    yield "evictions", f"{summary.evictions:,}"
    for name, value in (("makespan", summary.makespan_seconds), ("mean wait", summary.mean_wait_seconds)):
        yield name, "-" if value is None else clock(value)
    yield "copies on workers", f"{summary.copies:,}"
    yield "wasted copies", f"{summary.wasted_copies:,}"
    yield "wait of copies", clock(summary.copy_wait_seconds)
    for at, (key, share) in enumerate(summary.utilisation.items()):
        if at < _MAX_NUMBERS:
            yield f"utilisation of {'/'.join(key)}", f"{share:.1%}"


def _where_figure(facts: FleetFacts) -> Figure:
    """Show how many jobs ran in each cluster, by work."""
    jobs = [(job.work, facts.shown(job.cluster)) for job in facts.results.job_outcomes]
    by_work: dict[str, int] = {}
    for work, _ in jobs:
        by_work[work] = by_work.get(work, 0) + 1
    works = sorted(sorted(by_work, key=lambda work: (-by_work[work], work))[:_MAX_WORKS])
    names = (*works, *(["all other work"] if len(by_work) > len(works) else []))
    counts: dict[tuple[str, str], int] = {}
    for work, cluster in jobs:
        key = (cluster, work if work in works else "all other work")
        counts[key] = counts.get(key, 0) + 1
    data = [
        {"cluster": cluster, "work": work, "n": counts.get((cluster, work), 0)}
        for cluster in facts.bands
        for work in names
    ]
    most = max((sum(counts.get((cluster, work), 0) for work in names) for cluster in facts.bands), default=0)
    chart = (
        alt.Chart(inline(data), width=WIDTH - 160, height=_BAR * len(facts.bands))
        .mark_bar()
        .encode(
            x=alt.X("n:Q", axis=count_axis(most, "jobs"), stack="zero"),
            y=alt.Y("cluster:N", sort=[*facts.bands], title=None),
            color=color_of(names, "work"),
        )
    )
    ran = {cluster: n for cluster, n in facts.results.summary().jobs_by_cluster.items() if n}
    busiest = [name for name, n in ran.items() if n == max(ran.values())]
    says = "No job has run."
    if busiest:
        n_most, each = f"{ran[busiest[0]]:,} of {len(jobs):,}", " each" if len(busiest) > 1 else ""
        says = f"Jobs ran in {counted(len(ran), 'cluster')}, most in {listed(busiest)}: {n_most}{each}."
    table = facts.results.by_cluster
    columns = ("cluster", "kueue", "jobs", "finished", "failed", "mean_wait_seconds", "p95_wait_seconds")
    rows = by_rows(table, *columns, "run_seconds", "copies", "wasted_copies", "wait_seconds")
    spans = (5, 6, 7, 10)
    return Figure(
        title="Where jobs ran",
        says=says,
        note="A job counts in the last cluster that ran it. Copies are those of Workloads on a worker; wasted are "
        f"those that were never admitted there. {facts.left_out}",
        picture=svg(chart, name="where"),
        header=(
            *("cluster", "Kueue", "jobs", "finished", "failed", "mean wait", "95 %", "time run", "copies", "wasted"),
            "time waited there",
        ),
        rows=[[_cell(value, is_span=at in spans) for at, value in enumerate(row)] for row in rows],
    )


def _cell(value: Any, *, is_span: bool) -> str:
    if value is None:
        return "-"
    return clock(value) if is_span else str(value)


def _waiting_figure(facts: FleetFacts) -> Figure:
    """Show how many Workloads and copies wait in each cluster over time."""
    stays = facts.results.stays
    begins, ends = facts.seconds_of(stays, "begin"), facts.seconds_of(stays, "end")
    is_wait = np.array([state == "Waiting" for state in stays["state"].to_list()], np.bool_)
    homes = np.array([facts.shown(cluster) for cluster in stays["cluster"].to_list()], dtype=object)
    edges = np.arange(0, facts.seconds + facts.step / 2, facts.step)
    bands = tuple(name for name in facts.bands if name != facts.shown(""))
    data, rows = [], []
    longest: tuple[int, str, float] = (0, "", 0.0)
    for name in bands:
        mine = is_wait & (homes == name)
        begun = np.searchsorted(np.sort(begins[mine]), edges, "right")
        waiting = begun - np.searchsorted(np.sort(ends[mine]), edges, "right")
        data += [{"t": round(float(t), 3), "cluster": name, "n": int(n)} for t, n in zip(edges, waiting, strict=True)]
        most, at = int(waiting.max(initial=0)), float(edges[int(waiting.argmax())])
        longest = max(longest, (most, name, at), key=lambda it: it[0])
        rows.append([name, str(most), facts.when(at) if most else "-", str(int(waiting[-1]))])
    chart = (
        alt.Chart(inline(data), width=WIDTH, height=200)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=time_axis("t", facts.seconds, dates=facts.dates),
            y=alt.Y("n:Q", axis=count_axis(longest[0], "waiting")),
            color=color_of(bands, "cluster"),
        )
    )
    says = "Nothing waits."
    if longest[0]:
        says = f"Most wait in {longest[1]}: {longest[0]:,} {facts.happens(longest[2])}."
    return Figure(
        title="Who waits where",
        says=says,
        note="On the manager these are jobs, those with copies on workers included; on a worker they are copies. "
        f"{facts.left_out}",
        picture=svg(chart, name="waiting"),
        header=("cluster", "most at once", "when", "at the end"),
        rows=rows,
    )


def _tables(outcome: ScenarioOutcome, facts: FleetFacts) -> Iterator[Figure]:
    """Yield what is best read as a table: quotas of manager and workers, and outages."""
    if outcome.quotas:
        rows = []
        for quota in outcome.quotas:
            amounts = [
                "unlimited" if it is None else number_text(float(it))
                for it in (quota.manager, quota.workers, *quota.by_worker.values())
            ]
            each = ", ".join(f"{name} {amount}" for name, amount in zip(quota.by_worker, amounts[2:], strict=True))
            rows.append([quota.cluster_queue, quota.resource, *amounts[:2], each, quota.verdict])
        yield Figure(
            title="Quota of the manager and of its workers",
            says="What each dispatching ClusterQueue may use if everything is idle, and what the workers have for it.",
            header=("ClusterQueue", "resource", "manager", "workers", "each", "which is"),
            rows=rows,
        )
    outages = facts.results.outages
    if len(outages):
        columns = (outages["cluster"].to_list(), facts.seconds_of(outages, "begin").tolist())
        ends = zip(facts.seconds_of(outages, "end").tolist(), outages["end"].to_list(), strict=True)
        backs = ["not back" if back is None else facts.when(end) for end, back in ends]
        spans = map(clock, outages["seconds"].to_list())
        rows = [
            [cluster, facts.when(lost), back, span]
            for cluster, lost, back, span in zip(*columns, backs, spans, strict=True)
        ]
        yield Figure(
            title="Outages",
            says=f"The manager was without a worker {counted(len(rows), 'time')}.",
            header=("worker", "lost", "back", "lasted"),
            rows=rows,
        )
