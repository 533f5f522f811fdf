"""Encodes the scheduled events of a run for the extension."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kueuecore._arguments import text
from kueuecore._json import JsonObject
from kueuecore._kinds import KUEUE
from kueuecore.errors import ManifestError, ObjectRef
from kueuecore.manifests import Manifest, located, to_json_lines
from kueuecore.simulation.copies import Copies
from kueuecore.simulation.job_plan import plan_fields
from kueuecore.simulation.run import Happening, Operation
from kueuecore.submissions import TimedBatch
from kueuecore.times import format_time

__all__ = ["Coming", "Happened", "event_line", "located_events"]

_WORKLOAD = "Workload"


def event_line(event: Happening | Mapping[str, object]) -> bytes:
    """Encode an event as a line of JSON, which the extension checks.

    Raises:
        TypeError: It is neither a Happening nor a dict, or one of its values has the wrong type.
        ManifestError: JSON cannot represent it.
    """
    if not isinstance(event, Happening):
        return _dumped(event)
    head = {
        "at": event.at,
        "op": text("op", event.op),
        "key": event.key,
        **plan_fields(event.plan),
    }
    if event.kind != _WORKLOAD:
        head["kind"] = text("kind", event.kind)
    line = _dumped(head)
    if event.object is None:
        return line
    return line[:-1] + b', "object": ' + to_json_lines((event.object,)).strip() + b"}"


def located_events(error: ManifestError, events: Sequence[Happening | Mapping[str, object]]) -> ManifestError:
    """Add file and line of the events' objects to an error."""
    if any(problem.object is None for problem in error.problems):
        # If the problem is about an event, its index counts events; otherwise, events with an object.
        return error
    objects = [event.object if isinstance(event, Happening) else event.get("object") for event in events]
    return located(
        error, [object_ if isinstance(object_, Manifest) else {} for object_ in objects if object_ is not None]
    )


def _dumped(event: Mapping[str, object]) -> bytes:
    remedy = "pass events as documented for `simulate`"
    if not isinstance(event, Mapping):
        raise TypeError(f"an event must be a Happening or a dict, not {type(event).__name__}")
    try:
        return json.dumps(dict(event), allow_nan=False).encode()
    except RecursionError:
        raise ManifestError.of("an event is nested too deeply", remedy=remedy) from None
    except (TypeError, ValueError) as error:
        odd = next((name for name, value in event.items() if _is_no_number(value)), "")
        raise ManifestError.of(f"an event is not JSON: {error}", field=odd, remedy=remedy) from None


def _is_no_number(value: object) -> bool:
    values = value if isinstance(value, list) else [value]
    return any(isinstance(value, float) and not math.isfinite(value) for value in values)


@dataclass(frozen=True, slots=True)
class Happened:
    """A scheduled event that has happened to an object.

    Args:
        manifest: The object that was created or updated.
        is_update: Whether it was updated.
        deleted: The object that was deleted.
    """

    manifest: Manifest | None = None
    is_update: bool = False
    deleted: ObjectRef | None = None


class Coming:
    """The scheduled events, to look up their effect on objects once they have happened; read lazily."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._parts: list[_Rows | _CopyRows | list[bytes]] = []
        self._n = 0

    def copied(self) -> Coming:
        """Return an independent copy."""
        twin = Coming()
        twin._firsts, twin._n = list(self._firsts), self._n
        twin._parts = [list(part) if isinstance(part, list) else part for part in self._parts]
        return twin

    def add(self, batches: Sequence[TimedBatch], lines: list[bytes]) -> None:
        """Add scheduled events, the rows of the batches before the lines."""
        for batch in batches:
            self._add(_Rows(batch))
        self._add(lines)

    def add_copies(self, copies: Copies, *, start: int) -> None:
        """Add scheduled copies; their times count from `start`."""
        self._add(_CopyRows(copies, start))

    def _add(self, part: _Rows | _CopyRows | list[bytes]) -> None:
        self._firsts.append(self._n)
        self._parts.append(part)
        self._n += len(part)

    def take(self, number: int) -> Happened:
        """Return the scheduled event with a number, counted from the first, and forget it."""
        # Parts without rows share their number with the next one.
        place = bisect_right(self._firsts, number) - 1
        part, row = self._parts[place], number - self._firsts[place]
        if not isinstance(part, list):
            return Happened(part.manifest(row))
        event = json.loads(part[row])
        part[row] = b""
        match event["op"]:
            case Operation.CREATE | Operation.UPDATE as op:
                return Happened(Manifest(event["object"]), op == Operation.UPDATE)
            case Operation.DELETE:
                namespace, _, name = event["key"].rpartition("/")
                return Happened(deleted=ObjectRef(event.get("kind") or _WORKLOAD, name, namespace))
        return Happened()


class _CopyRows:
    """Workloads that are copies."""

    def __init__(self, copies: Copies, start: int) -> None:
        self._copies, self._start = copies, start

    def __len__(self) -> int:
        return len(self._copies)

    def manifest(self, row: int) -> Manifest:
        """Return a row's Workload, as the extension makes it."""
        return self._copies.manifest(row, start=self._start)


class _Rows:
    """Workloads that are rows of columns."""

    def __init__(self, batch: TimedBatch) -> None:
        self._namespace, self._prefix, self._first, columns, at, _, _ = batch
        self._local_queues, queue, priority, _, count, self._resources, amounts = columns
        self._at: npt.NDArray[np.int64] = np.frombuffer(at, "<i8")
        self._queue, self._priority = np.frombuffer(queue, "<u4"), np.frombuffer(priority, "<i4")
        self._count = np.frombuffer(count, "<i4")
        self._amounts = np.frombuffer(amounts, "<i8").reshape(len(self._at), len(self._resources))

    def __len__(self) -> int:
        return len(self._at)

    def manifest(self, row: int) -> Manifest:
        """Return a row's Workload, as the extension makes it."""
        requests: JsonObject = {
            resource: f"{amount}m" if resource == "cpu" else amount
            for resource, amount in zip(self._resources, self._amounts[row].tolist(), strict=True)
            if amount
        }
        container: JsonObject = {"name": "main", "resources": {"requests": requests}}
        count = int(self._count[row])
        pods: JsonObject = {"name": "main", "count": count, "template": {"spec": {"containers": [container]}}}
        name = f"{self._prefix}{self._first + row}"
        return Manifest(
            {
                "apiVersion": KUEUE,
                "kind": "Workload",
                "metadata": {
                    "namespace": self._namespace,
                    "name": name,
                    "uid": name,
                    "creationTimestamp": format_time(int(self._at[row])),
                    "generation": 1,
                },
                "spec": {
                    "queueName": self._local_queues[self._queue[row]],
                    "priority": int(self._priority[row]),
                    "podSets": [pods],
                },
            }
        )
