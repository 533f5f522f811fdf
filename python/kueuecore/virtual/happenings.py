"""What happens from outside in virtual time, as people write it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kueuecore._json import JsonObject
from kueuecore.errors import ManifestError
from kueuecore.manifests import manifest_like
from kueuecore.runs import Happening, Operation
from kueuecore.submissions import Submissions, encode_submissions
from kueuecore.times import format_time, later
from kueuecore.virtual.jobs import JobPlan

__all__ = ["checked_ready_seconds", "happening_of", "job_plan", "submitted"]

_SECOND_NS = 1_000_000_000
_NAMES = {
    "runSeconds": "run_seconds",
    "readySeconds": "ready_seconds",
    "failSeconds": "fail_seconds",
    "recoverSeconds": "recover_seconds",
}


def happening_of(event: Happening | Mapping[str, object], *, start: int) -> tuple[int, Happening]:
    """A happening that may be a dict, and its time in nanoseconds since 1970.

    Args:
        event: The happening.
        start: The time from which its own counts, in nanoseconds since 1970.

    Raises:
        ManifestError: It is none.
        TypeError: It is neither, or a time or a span is no number.
        ValueError: An invalid time or duration, or one that goes past April 2262.
    """
    remedy = "give events as in the documentation"
    if not isinstance(event, Happening):
        if not isinstance(event, Mapping):
            raise TypeError(f"an event must be a Happening or a dict, not {type(event).__name__}")
        fields: dict[str, Any] = {_NAMES.get(name, name): value for name, value in event.items()}
        try:
            event = Happening(**{**fields, "op": Operation(str(fields.get("op")))})
        except (TypeError, ValueError) as error:
            raise ManifestError.of(f"an event is none: {error}", remedy=remedy) from None
    if event.object is not None:
        manifest_like(event.object, "object")
    op: object = event.op
    is_known = isinstance(op, str) and op in tuple(Operation)
    needs_object = is_known and op in (Operation.CREATE, Operation.UPDATE)
    is_key = isinstance(event.key, str) and "/" in event.key
    fits = event.object is not None and event.key is None if needs_object else event.object is None and is_key
    if not (is_known and fits):
        detail = "must be create or update with an object, finish or delete with the key of a Workload"
        raise ManifestError.of(detail, field="op", remedy=remedy)
    at = later(start, event.at, "at")
    job_plan(event, waits_for_pods=True, at=at)
    return at, event


def job_plan(happening: Happening, *, waits_for_pods: bool, at: int) -> JobPlan:
    """What the job of a Workload that appears does.

    Args:
        happening: How it appears.
        waits_for_pods: Does anybody wait for pods to be ready?
        at: The earliest time at which the job may begin, in nanoseconds since 1970.

    Raises:
        TypeError: A span that is no number.
        ValueError: An invalid duration, or one that goes past April 2262.
    """

    def span(seconds: object, name: str) -> int | None:
        return None if seconds is None else later(at, seconds, name) - at

    run = span(happening.run_seconds, "run_seconds")
    fails, recovers = span(happening.fail_seconds, "fail_seconds"), span(happening.recover_seconds, "recover_seconds")
    ready = checked_ready_seconds(happening.ready_seconds)
    spans = None if ready is None else [span(it, "ready_seconds") for it in ready]
    return JobPlan(run) if spans is None or not waits_for_pods else JobPlan(run, spans, fails, recovers)


def checked_ready_seconds(ready: object) -> Sequence[object] | None:
    """When pods are ready after each admission, as a list.

    Raises:
        TypeError: It is none.
    """
    if ready is not None and not isinstance(ready, list | tuple):
        raise TypeError(f"ready_seconds must be a list of numbers of seconds, not {type(ready).__name__}")
    return ready


def submitted(rows: Submissions, *, start: int) -> Iterator[Happening]:
    """Submissions one by one, in the order of their rows.

    Args:
        rows: The submissions.
        start: The time from which theirs count, in nanoseconds since 1970.

    Raises:
        ValueError: Columns that do not fit together, or values that no workload can have.
    """
    namespace, prefix, first, columns, at_bytes, run_bytes = encode_submissions(rows, start=start)
    local_queues, queue, priority, _, count, resources, amounts = columns
    at, run = np.frombuffer(at_bytes, "<i8").tolist(), np.frombuffer(run_bytes, "<i8").tolist()
    queues, priorities = np.frombuffer(queue, "<u4").tolist(), np.frombuffer(priority, "<i4").tolist()
    counts = np.frombuffer(count, "<i4").tolist()
    requested = np.frombuffer(amounts, "<i8").reshape(len(at), len(resources)).tolist()
    for row, time in enumerate(at):
        requests: JsonObject = {
            resource: f"{amount}m" if resource == "cpu" else amount
            for resource, amount in zip(resources, requested[row], strict=True)
            if amount
        }
        if not 0 <= queues[row] < len(local_queues):
            raise ValueError(f"queue[{row}] is {queues[row]}; there are {len(local_queues)} local_queues")
        container: JsonObject = {"name": "main", "resources": {"requests": requests}}
        pods: JsonObject = {"name": "main", "count": counts[row], "template": {"spec": {"containers": [container]}}}
        name = f"{prefix}{first + row}"
        workload: JsonObject = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {
                "namespace": namespace,
                "name": name,
                "uid": name,
                "creationTimestamp": format_time(time),
                "generation": 1,
            },
            "spec": {"queueName": local_queues[queues[row]], "priority": priorities[row], "podSets": [pods]},
        }
        seconds = None if run[row] < 0 else run[row] / _SECOND_NS
        yield Happening(at=(time - start) / _SECOND_NS, op=Operation.CREATE, object=workload, run_seconds=seconds)
