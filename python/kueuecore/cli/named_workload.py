"""Finds the workload that an argument of a command names."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore._near_names import near_names
from kueuecore._text import quoted, shown
from kueuecore.cli.job_names import JobName, jobs_with_workloads
from kueuecore.cli.jobs_without_workload import why_without
from kueuecore.cli.state_file import SettledState
from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import Manifest
from kueuecore.world import DEFAULT_NAMESPACE, World

__all__ = ["WORKLOAD_HELP", "find_workload", "named_workload"]

WORKLOAD_HELP = "the workload or its job, as NAMESPACE/NAME or NAME; or the job as KIND/NAMESPACE/NAME"
_MAX_NAMED = 5
_FILE_ENDINGS = (".yaml", ".yml", ".json", ".gz", ".engine")


def named_workload(state: SettledState, text: str, *, namespace: str = "") -> tuple[str, str]:
    """Return the namespace and name of the workload of a state that is meant.

    Args:
        state: The state.
        text: The name, in one of the forms of `WORKLOAD_HELP`.
        namespace: Where a name without a namespace is looked for first.

    Raises:
        ManifestError: None matches, with the reason, or several do.
    """
    keys = (key for key in state.engine._core.workload_keys() if key is not None)
    return find_workload(text, state.world, given=state.given, keys=keys, namespace=namespace)


def find_workload(
    text: str, world: World, *, given: Iterable[Manifest], keys: Iterable[tuple[str, str]], namespace: str = ""
) -> tuple[str, str]:
    """Return the namespace and name of the workload that is meant; names of Workloads win over names of jobs.

    Args:
        text: The name, in one of the forms of `WORKLOAD_HELP`.
        world: All objects.
        given: The objects as they were given.
        keys: Namespaces and names of all Workloads.
        namespace: Where a name without a namespace is looked for first.

    Raises:
        ManifestError: None matches, with the reason, or several do.
    """
    *place, name = text.split("/")
    kind = place.pop(0) if place and place[0][:1].isupper() else ""
    there = dict.fromkeys(sorted(keys))
    found = [key for key in there if key[1] == name and place in ([], [key[0]])] if kind in ("", "Workload") else []
    jobs: list[JobName] = []
    if not found:
        jobs = list(dict.fromkeys(job for job in jobs_with_workloads(world, given) if job.workload in there))
        mine = [job for job in jobs if job.name == name and kind in ("", job.kind) and place in ([], [job.workload[0]])]
        found = list(dict.fromkeys(job.workload for job in mine))
    found = [key for key in found if key[0] == namespace] or found
    if len(found) > 1:
        raise ManifestError([_several(text, found)])
    if not found:
        reasons = why_without(world, given, kind=kind, place=place, name=name)
        raise ManifestError(reasons or [_unknown(world, text, there, jobs)])
    return found[0]


def _several(text: str, found: list[tuple[str, str]]) -> Problem:
    """The problem that a name means several workloads: in several namespaces, or all those of a job."""
    message = f"{quoted(text)} means {len(found)} workloads"
    if len({namespace for namespace, _ in found}) == len(found):
        return Problem(message, remedy=f"give the namespace too, such as {'/'.join(found[0])}")
    named = ", ".join("/".join(row) for row in found[:_MAX_NAMED])
    more = f" or {len(found) - _MAX_NAMED} more, which `kueuecore run` lists" if len(found) > _MAX_NAMED else ""
    return Problem(message, remedy=f"name one of them: {named}{more}")


def _unknown(world: World, text: str, keys: Iterable[tuple[str, str]], jobs: list[JobName]) -> Problem:
    """The problem that there is no such workload, with similar names."""
    written: dict[str, str] = {}
    for namespace, name in keys:
        full = f"{namespace}/{name}"
        written |= {full: full, f"Workload/{full}": full, name: full}
    without = [
        (ignored.job.kind, ignored.job.namespace or DEFAULT_NAMESPACE, ignored.job.name) for ignored in world.ignored
    ]
    for kind, namespace, name in [*((job.kind, job.workload[0], job.name) for job in jobs), *without]:
        full = f"{kind}/{namespace}/{name}"
        written |= dict.fromkeys((full, f"{namespace}/{name}", f"{kind}/{name}", name), full)
    # The kind may be the mistake.
    bare = text.partition("/")[2] if text[:1].isupper() else text
    near = dict.fromkeys(
        written[near_name] for near_name in near_names(text, written, n=3) or near_names(bare, written, n=3)
    )
    otherwise = "write NAMESPACE/NAME, as `run -A` shows it" if written else "give a state with Workloads or jobs"
    # Without a STATE the cluster is asked. By the name alone: agents must not learn which files there are.
    if text.endswith(_FILE_ENDINGS):
        otherwise = f"to ask about the file, name the workload too: {shown(text)} NAMESPACE/NAME"
    remedy = f"write {' or '.join(near)}" if near else otherwise
    return Problem(f"there is no workload {quoted(text)}", remedy=remedy)
