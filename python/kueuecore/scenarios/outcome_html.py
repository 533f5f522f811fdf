"""Shows the outcome of a scenario as tables of HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence

from kueuecore._html_tables import MAX_ROWS, html_table, html_text
from kueuecore._numbers import number_text
from kueuecore._spans import seconds, span
from kueuecore._text import counted
from kueuecore.results import Table
from kueuecore.scenarios.fleet_results import FleetResults
from kueuecore.scenarios.job_outcomes import JobOutcomes
from kueuecore.scenarios.outcomes import ScenarioOutcome
from kueuecore.scenarios.waits import Waits, waits_by

__all__ = ["fleet_html", "jobs_html", "outcome_html"]


def outcome_html(outcome: ScenarioOutcome) -> str:
    """Show what became of the jobs, and how long they waited."""
    ended = f"{counted(len(outcome.jobs), 'job')}; {outcome.ending.value} after {span(outcome.end - outcome.start)}"
    waits = [*waits_by(outcome.jobs, "cluster_queue"), outcome.all]
    tables = _waits_html(waits, "waits by ClusterQueue")
    if outcome.fleet is not None:
        tables += fleet_html(outcome.fleet)
    return html_text(ended) + tables + jobs_html(outcome.jobs)


def fleet_html(results: FleetResults) -> str:
    """Show the clusters of a fleet, and how much of their quota was used."""
    spans = ("mean_wait_seconds", "p95_wait_seconds", "run_seconds", "wait_seconds")
    clusters = results.by_cluster
    columns = [_span_texts(clusters, name) if name in spans else _texts(clusters, name) for name in clusters.names]
    names = [name.removesuffix("_seconds").replace("_", " ") for name in clusters.names]
    found = html_table(names, [*zip(*columns, strict=True)], caption="clusters")
    used = results.utilisation
    names = [name.replace("_", " ") for name in used.names]
    return found + html_table(names, _used_rows(used), caption="quota in use")


def jobs_html(jobs: JobOutcomes) -> str:
    """Show the first jobs."""
    first = JobOutcomes.of(jobs[:MAX_ROWS]).table()
    return html_table(first.names, zip(*first.texts(0, MAX_ROWS), strict=True), n_rows=len(jobs))


def _texts(table: Table, name: str) -> list[str]:
    return ["-" if value is None else str(value) for value in table[name].to_list()]


def _span_texts(table: Table, name: str) -> list[str]:
    return [*map(seconds, table[name].to_list())]


def _used_rows(used: Table) -> list[list[str]]:
    """Return the rows of the utilisation, with cpu in whole cores."""
    rows = []
    for values in zip(*(used[name].to_list() for name in used.names), strict=True):
        cluster, flavor, resource, *amounts, share = values
        unit = 1000 if resource == "cpu" else 1
        texts = ["unlimited" if amount is None else number_text(amount / unit) for amount in amounts]
        rows.append([cluster, flavor, resource, *texts, "-" if share is None else f"{share:.1%}"])
    return rows


def _waits_html(groups: Sequence[Waits], caption: str) -> str:
    header = ["group", "jobs", "admitted", "finished", "failed", "min wait", "mean", "p95", "max", "evictions"]
    rows = [
        [
            group.name or "-",
            *map(str, (group.n_jobs, group.n_admitted, group.n_finished, group.n_failed)),
            *map(seconds, (group.least, group.mean, group.p95, group.most)),
            str(group.n_evictions),
        ]
        for group in groups
    ]
    return html_table(header, rows, caption=caption)
