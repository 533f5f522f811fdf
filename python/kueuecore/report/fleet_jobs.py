"""When the jobs of a fleet waited and ran, and in which cluster; many jobs as counts."""

from __future__ import annotations

import numpy as np

from kueuecore.report.facts import clock, counted
from kueuecore.report.figure import Figure, svg
from kueuecore.report.fleet_facts import FleetFacts, by_rows
from kueuecore.report.gantt import bars_chart, counts_chart, is_too_many, row_axis, why_counts

__all__ = ["fleet_jobs_figure"]


def fleet_jobs_figure(facts: FleetFacts) -> Figure:
    """Draw a bar for each run of each job in the colour of its cluster; with too many, how many run at once."""
    stays = facts.results.stays
    begins, ends = facts.seconds_of(stays, "begin"), facts.seconds_of(stays, "end")
    clusters = stays["cluster"].to_list()
    is_run = np.array([state == "Running" for state in stays["state"].to_list()], np.bool_)
    jobs = facts.results.job_outcomes
    moved = sum(n > 1 for n in _runs_of(facts).values())
    says = f"{counted(len(jobs), 'job')}; {moved:,} of them admitted by several clusters, or more than once."
    if is_too_many(len(jobs), len(stays)):
        homes = np.array([facts.shown(cluster) for cluster in clusters], dtype=object)
        chart, rows = counts_chart(facts, begins[is_run], ends[is_run], homes[is_run], _ran(facts))
        return Figure(
            title="Jobs",
            says=says,
            note=f"{why_counts(len(jobs))} {facts.left_out}",
            picture=svg(chart, name="jobs"),
            header=("cluster", "runs", "most at once"),
            rows=rows,
        )
    names = [f"{job.namespace}/{job.job.partition('/')[2]}" for job in jobs]
    row_of = {(job.namespace, job.job): row for row, job in enumerate(jobs)}
    manager = facts.results.clusters[0]
    data, table = [], []
    for at, (job, namespace, cluster, ending) in enumerate(by_rows(stays, "job", "namespace", "cluster", "ending")):
        row, runs, begin, end = row_of[namespace, job], bool(is_run[at]), float(begins[at]), float(ends[at])
        if runs:
            table.append([names[row], cluster, facts.when(begin), clock(end - begin), ending or "still runs"])
        # Copies wait while their job does on the manager.
        elif cluster != manager:
            continue
        verb = f"ran in {cluster}" if runs else "waited"
        title = f"{names[row]} {verb} {clock(end - begin)}, from {facts.when(begin)}"
        data.append(
            {
                "row": row,
                "t": round(begin, 3),
                "u": round(end, 3),
                "queue": facts.shown(cluster),
                "runs": runs,
                "title": title,
            }
        )
    chart = bars_chart(facts, data, names, _ran(facts), row_axis(len(names)))
    return Figure(
        title="Jobs",
        says=says,
        note="A row for each job, in order of arrival: a thin line while it waits on the manager, a bar in the colour "
        f"of the cluster while it is admitted there; point at one to see which it is. {facts.left_out}",
        picture=svg(chart, name="jobs", has_titles=True),
        header=("job", "cluster", "from", "ran", "ended"),
        rows=table,
    )


def _ran(facts: FleetFacts) -> tuple[str, ...]:
    """Return the bands of clusters."""
    return tuple(band for band in facts.bands if band != facts.shown(""))


def _runs_of(facts: FleetFacts) -> dict[tuple[str, str], int]:
    """Return how often each job ran."""
    found: dict[tuple[str, str], int] = {}
    for namespace, job, state in by_rows(facts.results.stays, "namespace", "job", "state"):
        if state == "Running":
            found[namespace, job] = found.get((namespace, job), 0) + 1
    return found
