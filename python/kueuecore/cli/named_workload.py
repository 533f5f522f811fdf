"""Finds the workload that an argument of a command names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kueuecore._json import text_at
from kueuecore._near_names import near_names
from kueuecore._text import quoted
from kueuecore.cli.jobs_without_workload import why_without
from kueuecore.cli.state_file import SettledState
from kueuecore.errors import ManifestError, Problem
from kueuecore.scenarios.present import job_of
from kueuecore.world import DEFAULT_NAMESPACE, is_workload

__all__ = ["WORKLOAD_HELP", "JobName", "jobs_with_workloads", "named_workload"]

WORKLOAD_HELP = "the workload or its job, as NAMESPACE/NAME or NAME, or the job as KIND/NAMESPACE/NAME"


class JobName(NamedTuple):
    """A job, and the namespace and name of one of its Workloads."""

    kind: str
    name: str
    workload: tuple[str, str]


def named_workload(state: SettledState, text: str) -> tuple[str, str]:
    """Return the namespace and name of the workload that is meant; names of Workloads win over names of jobs.

    Raises:
        ManifestError: None matches, with the reason, or several do.
    """
    *place, name = text.split("/")
    kind = place.pop(0) if place and place[0][:1].isupper() else ""
    keys = [(it.namespace, it.name) for it in state.engine.workloads()]
    found = [key for key in keys if key[1] == name and place in ([], [key[0]])] if kind in ("", "Workload") else []
    there = set(keys)
    jobs = list(dict.fromkeys(it for it in jobs_with_workloads(state) if it.workload in there))
    if not found:
        mine = [it for it in jobs if it.name == name and kind in ("", it.kind) and place in ([], [it.workload[0]])]
        found = list(dict.fromkeys(it.workload for it in mine))
    if len(found) > 1:
        remedy = f"give the namespace too, such as {'/'.join(found[0])}"
        raise ManifestError.of(f"{quoted(text)} matches {len(found)} workloads", remedy=remedy)
    if not found:
        raise ManifestError(why_without(state, kind, place, name) or [_unknown(state, text, keys, jobs)])
    return found[0]


def jobs_with_workloads(state: SettledState) -> Iterator[JobName]:
    """The jobs of Workloads that were created from them here, and of Workloads that name their job as owner."""
    for key, job in state.world.jobs.items():
        yield JobName(text_at(job.object, "kind"), text_at(job.object, "metadata", "name"), key)
    for workload in filter(lambda it: is_workload(it.object), state.world.manifests):
        owner = job_of(workload)
        if owner is not workload:
            metadata = owner.object["metadata"]
            key = text_at(workload.object, "metadata", "namespace"), text_at(workload.object, "metadata", "name")
            yield JobName(text_at(owner.object, "kind"), text_at(metadata, "name"), key)


def _unknown(state: SettledState, text: str, keys: list[tuple[str, str]], jobs: list[JobName]) -> Problem:
    """The problem that there is no such workload, with similar names."""
    written: dict[str, str] = {}
    for namespace, name in keys:
        full = f"{namespace}/{name}"
        written |= {full: full, f"Workload/{full}": full, name: full}
    without = [(it.job.kind, it.job.namespace or DEFAULT_NAMESPACE, it.job.name) for it in state.world.ignored]
    for kind, namespace, name in [*((it.kind, it.workload[0], it.name) for it in jobs), *without]:
        full = f"{kind}/{namespace}/{name}"
        written |= dict.fromkeys((full, f"{namespace}/{name}", f"{kind}/{name}", name), full)
    # The kind may be the mistake.
    bare = text.partition("/")[2] if text[:1].isupper() else text
    near = dict.fromkeys(written[it] for it in near_names(text, written, n=3) or near_names(bare, written, n=3))
    otherwise = "write NAMESPACE/NAME, as `run` shows it" if written else "give a state with Workloads or jobs"
    remedy = f"write {' or '.join(near)}" if near else otherwise
    return Problem(f"there is no workload {quoted(text)}", remedy=remedy)
