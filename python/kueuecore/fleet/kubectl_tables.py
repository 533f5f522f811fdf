"""Prints objects of a cluster in the columns of `kubectl get`, without their age."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kueuecore._arguments import shown, text
from kueuecore._conditions import condition, is_true
from kueuecore._json import JsonObject, int_at, text_at
from kueuecore.fleet.fleet import Fleet

__all__ = ["table"]


def table(fleet: Fleet, kind: str, *, cluster: str = "") -> str:
    """Return the table that `kubectl get` prints for all objects of a kind.

    Args:
        fleet: The fleet.
        kind: Workload, Job or MultiKueueCluster.
        cluster: Which cluster; the manager by default.

    Returns:
        Lines with columns, headings first; a sentence if there are no objects.

    Raises:
        ValueError: There is no table for this kind.
    """
    columns = _COLUMNS.get(text("kind", kind))
    if columns is None:
        raise ValueError(f"kind: there is no table of {shown(kind)}; give one of {', '.join(_COLUMNS)}")
    objects = fleet.objects(kind, cluster=cluster)
    if not objects:
        return "No resources found"
    found = (
        [text_at(object_, "metadata", "name"), *(show(object_) for show in columns.values())] for object_ in objects
    )
    rows = [["NAME", *columns], *found]
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _condition(kind: str) -> Callable[[JsonObject], str]:
    return lambda manifest: text_at(condition(manifest, kind), "status")


def _job_status(job: JsonObject) -> str:
    for kind in ("Complete", "Failed", "Suspended"):
        if is_true(job, kind):
            return kind
    return "Running"


def _completions(job: JsonObject) -> str:
    wanted = int_at(job, "spec", "completions", default=int_at(job, "spec", "parallelism", default=1))
    return f"{int_at(job, 'status', 'succeeded')}/{wanted}"


_COLUMNS: Mapping[str, Mapping[str, Callable[[JsonObject], str]]] = {
    "Workload": {
        "QUEUE": lambda it: text_at(it, "spec", "queueName"),
        "RESERVED IN": lambda it: text_at(it, "status", "admission", "clusterQueue"),
        "ADMITTED": _condition("Admitted"),
        "FINISHED": _condition("Finished"),
    },
    "Job": {"STATUS": _job_status, "COMPLETIONS": _completions},
    "MultiKueueCluster": {"CONNECTED": _condition("Active")},
}
