"""Jobs from one source as rows: templates and arrival times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kueuecore._json import JsonObject
from kueuecore._kinds import KUEUE
from kueuecore.manifests import plain_object
from kueuecore.simulation import Happening, JobPlan, Operation
from kueuecore.simulation.copies import Copies
from kueuecore.submissions import Submissions

if TYPE_CHECKING:
    from kueuecore.scenarios.trace_part import TracePart

__all__ = ["JobPart", "generated_part", "trace_parts"]


@dataclass(frozen=True, slots=True)
class JobPart:
    """Rows of one work, trace or generator.

    Args:
        templates: The Workloads that rows are copied from.
        works: The name of each template's work.
        template: The template of each row.
        names: The name of each row's Workload.
        at: When each arrives, in seconds.
        runs: How long each runs, in seconds; infinite: forever.
        job: The index of each row's job.
        job_name: Returns kind and name of a job by its index.
    """

    templates: Sequence[Happening]
    works: Sequence[str]
    template: npt.NDArray[np.int64]
    names: Sequence[str]
    at: npt.NDArray[np.float64]
    runs: npt.NDArray[np.float64]
    job: npt.NDArray[np.int64]
    job_name: Callable[[int], tuple[str, str]]


def generated_part(copies: Copies) -> JobPart:
    """Return the Workloads from a file of Kueue's performance tests."""
    from kueuecore.scenarios.generator_reader import work_class  # few scenarios have such a file

    return JobPart(
        templates=copies.templates,
        works=[
            work_class({} if template.object is None else plain_object(template.object))
            for template in copies.templates
        ],
        template=copies.template.astype(np.int64),
        names=[copies.name(row) for row in range(len(copies))],
        at=copies.at,
        runs=copies.run_seconds,
        job=np.arange(len(copies)),
        job_name=lambda index: ("Workload", copies.name(index)),
    )


def trace_parts(trace: TracePart) -> Iterator[JobPart]:
    """Return the jobs of a trace. Those with the same LocalQueue, requests and kind of end are copies of one Workload.

    Raises:
        ManifestError: The rules do not fit the trace.
    """
    return (_trace_part(trace.name, rows) for rows in trace.submissions())


def _trace_part(work: str, rows: Submissions) -> JobPart:
    n, resources = len(np.atleast_1d(rows.queue)), list(rows.requests)
    columns = (rows.queue, rows.priority, rows.count, rows.ends_failed, *rows.requests.values())
    table = np.stack([np.broadcast_to(np.asarray(column, np.int64), (n,)) for column in columns], axis=1)
    kinds, template = np.unique(table, axis=0, return_inverse=True)
    at, runs = (np.broadcast_to(np.asarray(entry, np.float64), (n,)) for entry in (rows.at, rows.run_seconds))

    def workload(queue: int, priority: int, count: int, ends_failed: int, *amounts: int) -> Happening:
        requests: JsonObject = {
            resource: f"{amount}m" if resource == "cpu" else amount
            for resource, amount in zip(resources, amounts, strict=True)
            if amount
        }
        pod: JsonObject = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
        spec: JsonObject = {
            "queueName": rows.local_queues[queue],
            "priority": priority,
            "podSets": [{"name": "main", "count": count, "template": {"spec": pod}}],
        }
        metadata: JsonObject = {"name": "template", "namespace": rows.namespace}
        plain: JsonObject = {"apiVersion": KUEUE, "kind": "Workload", "metadata": metadata, "spec": spec}
        return Happening(at=0, op=Operation.CREATE, object=plain, plan=JobPlan(ends_failed=bool(ends_failed)))

    def name(row: int) -> str:
        return f"{rows.prefix}{rows.first + row}"

    return JobPart(
        templates=[workload(*kind) for kind in kinds.tolist()],
        works=[work] * len(kinds),
        template=template.reshape(n),
        names=[name(row) for row in range(n)],
        at=at,
        runs=runs,
        job=np.arange(n),
        job_name=lambda index: ("Workload", name(index)),
    )
