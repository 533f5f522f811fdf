"""Reads the work of a scenario: jobs that arrive."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kueuecore._fields import Fields, shown
from kueuecore._json import JsonValue, text_at
from kueuecore.manifests import Manifest
from kueuecore.scenarios.arrival_reader import metadata_problems, read_early_ends, read_hourly_arrivals
from kueuecore.scenarios.distributions import Span
from kueuecore.scenarios.job_variants import NUMBER
from kueuecore.scenarios.spans import read_spans
from kueuecore.scenarios.variation_reader import read_variations
from kueuecore.scenarios.work import Work
from kueuecore.simulation import JobPlan, NodeLoss

__all__ = ["check_count", "read_work"]

_MAX_JOBS = 1_000_000


def read_work(
    section: Fields,
    index: int,
    objects: Callable[[Fields, str, JsonValue], tuple[Manifest, ...]],
    *,
    start: int,
    until: float | None,
    in_fleet: bool,
) -> Work:
    """Read jobs that arrive one after the other, and record what is wrong with them.

    Args:
        section: Their part of the file.
        index: Its index, which names jobs without a name.
        objects: Reads the objects that a field names.
        start: When the scenario starts, in nanoseconds since 1970.
        until: When it ends, in seconds from its start.
        in_fleet: Whether it has several clusters.
    """
    given, n_problems = section.value("job"), len(section.problems)
    found = objects(section, "job", given) if given is not None else ()
    if given is None:
        section.complain("job", "Required value", "name a file with a job, or write the job itself")
    elif len(found) != 1 and n_problems == len(section.problems):
        section.complain("job", f"{len(found)} objects", "name a file with one job")
    job = found[0] if found else Manifest({})
    section.problems += metadata_problems(job)
    name = section.text("name") or text_at(job.object, "metadata", "name")
    if found and not name:
        section.complain("name", "Required value", "write a name for the jobs")
    if NUMBER in name:
        remedy = "jobs get their number at the end of their name: write the name alone"
        section.complain("name", f"Invalid value: {shown(name)}", remedy)
    work = Work(
        name=name or str(index),
        job=job,
        count=section.whole("count", 1, least=1, most=_MAX_JOBS),
        at=section.seconds("at", 0.0) or 0.0,
        every=read_spans(section, "every") or Span(),
        runs=read_spans(section, "runs"),
        by_hour=read_hourly_arrivals(section, start=start, until=until, most=_MAX_JOBS),
        fails=read_early_ends(section),
        varies=read_variations(section, job.object, most=_MAX_JOBS),
        plan=JobPlan(
            linger_seconds=section.seconds("lingers"),
            save_seconds=section.seconds("saves"),
            node_loss=NodeLoss(section.text("nodeLoss", NodeLoss.STARTS_OVER, one_of=[*NodeLoss])),
        ),
    )
    if work.plan.save_seconds == 0:
        section.complain("saves", "Invalid value: 0", "write the work between two checkpoints, such as 10m")
    for name in ("lingers", "nodeLoss", "saves") if in_fleet else ():
        if section.value(name) is not None:
            section.complain(name, "only applies in a scenario of one cluster", "remove it")
    section.end()
    return work


def check_count(top: Fields, work: Sequence[Work]) -> None:
    """Check that all work together is no more than one entry may be."""
    n_jobs = sum(part.n_expected for part in work)
    if len(work) > 1 and n_jobs > _MAX_JOBS:
        top.complain("work", f"{n_jobs} jobs are too many", f"write counts that make at most {_MAX_JOBS} of them")
