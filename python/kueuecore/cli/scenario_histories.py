"""Finds the workloads of a scenario that are meant, and what happened to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kueuecore._json import JsonObject
from kueuecore._near_names import near_names
from kueuecore._text import quoted
from kueuecore.cli.history_output import timeline_document, timelines_text
from kueuecore.cli.table import Style
from kueuecore.errors import ManifestError, Problem
from kueuecore.histories.runs import history_of_run
from kueuecore.histories.timeline import Timeline
from kueuecore.histories.versions import history_of_versions
from kueuecore.scenarios import ScenarioOutcome

__all__ = ["histories_of"]


def histories_of(
    outcome: ScenarioOutcome, names: Sequence[str], style: Style, *, is_wide: bool
) -> tuple[JsonObject, str]:
    """Return what happened to the workloads or jobs of these names: for a JSON document, and as text.

    Raises:
        ManifestError: A name means none of them.
    """
    timelines = _timelines(outcome, names)
    return {"histories": [*map(timeline_document, timelines)]}, timelines_text(timelines, style, is_wide=is_wide)


def _timelines(outcome: ScenarioOutcome, names: Sequence[str]) -> tuple[Timeline, ...]:
    known = set(outcome.versions) if outcome.run is None else {key for key in outcome.run.workload_keys if key}
    jobs: dict[str, list[str]] = {}
    job_of: dict[str, str] = {}
    if any(_plain(name) not in known for name in names):
        for key, job_names in _jobs(outcome):
            job_of[key] = job_names[-1].replace("/", " ", 1)
            for name in job_names:
                jobs.setdefault(name, []).append(key)
    keys: list[str] = []
    problems: list[Problem] = []
    for name in names:
        found = [_plain(name)] if _plain(name) in known else [key for key in jobs.get(name, ()) if key in known]
        keys += found
        if not found:
            problems.append(_unknown(name, [*known, *jobs]))
    if problems:
        raise ManifestError(problems)
    return tuple(_timeline(outcome, key, job_of.get(key, "")) for key in dict.fromkeys(keys))


def _timeline(outcome: ScenarioOutcome, key: str, job: str) -> Timeline:
    if outcome.run is not None:
        return history_of_run(outcome.run, key, job=job)
    return history_of_versions(outcome.versions[key], keys=outcome.workload_keys)


def _jobs(outcome: ScenarioOutcome) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the Workload of each job, and the names of the job."""
    for job in outcome.jobs:
        kind, _, name = job.job.partition("/")
        yield f"{job.namespace}/{job.workload}", (f"{job.namespace}/{name}", f"{kind}/{job.namespace}/{name}")


def _plain(name: str) -> str:
    return name.removeprefix("Workload/")


def _unknown(name: str, known: Iterable[str]) -> Problem:
    near = near_names(name, sorted({*known}))
    remedy = f"did you mean {near[0]}?" if near else "give it as NAMESPACE/NAME; -o wide lists the jobs"
    return Problem(f"the run has no workload or job {quoted(name)}", remedy=remedy)
