"""The workload that an argument of a command means."""

from __future__ import annotations

from kueuecore._json import text_at
from kueuecore._text import quoted
from kueuecore.cli.state_file import SettledState
from kueuecore.errors import ManifestError

__all__ = ["WORKLOAD_HELP", "named_workload"]

WORKLOAD_HELP = "the workload, as NAMESPACE/NAME or NAME, or its job, as KIND/NAMESPACE/NAME"


def named_workload(state: SettledState, text: str) -> tuple[str, str]:
    """Namespace and name of the workload that is meant.

    Raises:
        ManifestError: There is none, or there are several.
    """
    *before, name = text.split("/")
    if before and before[0][:1].isupper():
        kind, *rest = before
        jobs = ((key, it.object) for key, it in state.world.jobs.items())
        found = [
            key
            for key, job in jobs
            if (text_at(job, "kind"), text_at(job, "metadata", "name")) == (kind, name) and rest in ([], [key[0]])
        ]
        if kind == "Workload":
            before = rest
    else:
        found = []
    if not found:
        keys = ((it.namespace, it.name) for it in state.engine.workloads())
        found = [key for key in keys if key[1] == name and before in ([], [key[0]])]
    if not found:
        raise ManifestError.of(f"there is no workload {quoted(text)}", remedy="write NAMESPACE/NAME, as `run` shows it")
    if len(found) > 1:
        remedy = f"write {'/'.join(found[0])}, say"
        raise ManifestError.of(f"{quoted(text)} may be {len(found)} workloads", remedy=remedy)
    return found[0]
