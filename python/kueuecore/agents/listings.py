"""Pages of ClusterQueues and of waiting workloads: as `kueuecore run -o json` shows them, but a few at a time."""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import inf
from threading import Lock
from typing import TypeVar

from kueuecore._json import JsonObject, JsonValue, text_at
from kueuecore.agents.cutting import size_of
from kueuecore.cli.documents import cluster_queue_document, document_head, workload_document
from kueuecore.cli.outcome import RunOutcome
from kueuecore.cli.state_file import SettledState
from kueuecore.errors import ManifestError
from kueuecore.states import QuotaRow, Stage, WorkloadState
from kueuecore.times import format_time

__all__ = ["DEFAULT_ROWS", "MAX_ROWS", "Listings"]

DEFAULT_ROWS = 50
MAX_ROWS = 500

_Thing = TypeVar("_Thing")
_Key = tuple[str | float, ...]
# For the fields around the rows.
_FRAME_BYTES = 2000


class Listings:
    """Lists what is in the newest state. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._state: SettledState | None = None
        self._outcome: RunOutcome | None = None

    def queues(self, state: SettledState, asked: JsonObject, *, most_bytes: int) -> JsonObject:
        """Return a page of ClusterQueues.

        Args:
            state: The state.
            asked: `name`, `cohort`, `limit` and `cursor`.
            most_bytes: How large the page may be; it has at least one row.

        Raises:
            ManifestError: The cursor is none.
        """
        outcome = self._outcome_of(state)
        quota = _quota_by_node(outcome.quota)
        parents = {(row.kind, row.name): row.parent for row in outcome.quota}
        plain = _cluster_queues(state)
        cohorts = {
            queue.name: parents.get(("ClusterQueue", queue.name)) or plain.get(queue.name) or None
            for queue in outcome.cluster_queues
        }
        local = _local_queues(state)
        name, cohort = text_at(asked, "name"), text_at(asked, "cohort")
        chosen = [
            queue
            for queue in outcome.cluster_queues
            if name in ("", queue.name) and cohort in ("", *_above(cohorts[queue.name], parents))
        ]

        def row(queue_index: int) -> JsonObject:
            queue = chosen[queue_index]
            return {
                **_named_first(cluster_queue_document(queue), cohorts[queue.name]),
                "localQueues": list[JsonValue](local.get(queue.name, ())),
                "quota": quota.get(("ClusterQueue", queue.name), []),
            }

        order: list[_Key] = [(queue.name,) for queue in chosen]
        rows, cursor = _page(range(len(chosen)), order, row, asked, most_bytes)
        shown = dict.fromkeys(above for plain_row in rows for above in _above(text_at(plain_row, "cohort"), parents))
        above_rows: list[JsonValue] = [
            {"name": above, "parent": parents.get(("Cohort", above)), "quota": quota.get(("Cohort", above), [])}
            for above in sorted(shown)
        ]
        return {
            **_head(state),
            "total": len(chosen),
            "clusterQueues": list[JsonValue](rows),
            "cohorts": above_rows,
            "nextCursor": cursor,
        }

    def pending(self, state: SettledState, asked: JsonObject, *, most_bytes: int) -> JsonObject:
        """Return a page of the workloads that wait, by ClusterQueue and in the order of its queue.

        Args:
            state: The state.
            asked: `cluster_queue`, `namespace`, `limit` and `cursor`.
            most_bytes: How large the page may be; it has at least one row.

        Raises:
            ManifestError: The cursor is none.
        """
        outcome = self._outcome_of(state)
        queue, namespace = text_at(asked, "cluster_queue"), text_at(asked, "namespace")
        chosen = [
            workload
            for workload in state.engine.workloads()
            if workload.stage is Stage.PENDING
            and queue in ("", workload.cluster_queue)
            and namespace in ("", workload.namespace)
        ]
        queued = outcome.queued

        def key(workload: WorkloadState) -> _Key:
            place = queued.get(workload.key)
            position = inf if place is None else place.position_in_cluster_queue
            return (workload.cluster_queue or "", position, workload.key)

        chosen.sort(key=key)
        rows, cursor = _page(
            chosen,
            list(map(key, chosen)),
            lambda workload: workload_document(outcome.rows([workload])[0]),
            asked,
            most_bytes,
        )
        reasons = Counter(workload.reason for workload in chosen)
        return {
            **_head(state),
            "total": len(chosen),
            "reasons": {reason: reasons[reason] for reason in sorted(reasons)},
            "workloads": list[JsonValue](rows),
            "nextCursor": cursor,
        }

    def _outcome_of(self, state: SettledState) -> RunOutcome:
        """What was worked out for one page serves the next ones, too."""
        with self._lock:
            if self._outcome is None or self._state is not state:
                self._state = state
                self._outcome = RunOutcome(state.engine, state.world, state.settled, state.now, state.after_cycles)
            return self._outcome


def _head(state: SettledState) -> JsonObject:
    return {**document_head(state.engine.configuration.release), "now": format_time(state.now)}


def _page(
    things: Sequence[_Thing],
    order: Sequence[_Key],
    row: Callable[[_Thing], JsonObject],
    asked: JsonObject,
    most_bytes: int,
) -> tuple[list[JsonObject], str | None]:
    """Make the rows of a page, and the cursor of the next one.

    The cursor is the place of the last row in the order, not its number: pages stay in step while others come and go.
    """
    after = _read_cursor(text_at(asked, "cursor"))
    limit = asked.get("limit", DEFAULT_ROWS)
    assert isinstance(limit, int), "the schema says so"
    begin = 0 if after is None else sum(place <= after for place in order)
    rows: list[JsonObject] = []
    left = most_bytes - _FRAME_BYTES
    for thing in things[begin : begin + limit]:
        made = row(thing)
        left -= size_of(made) + 1
        if rows and left < 0:
            break
        rows.append(made)
    end = begin + len(rows)
    return rows, _cursor(order[end - 1]) if rows and end < len(things) else None


def _cursor(place: _Key) -> str:
    text = json.dumps([None if part == inf else part for part in place])
    return base64.urlsafe_b64encode(text.encode()).decode()


def _read_cursor(cursor: str) -> _Key | None:
    if not cursor:
        return None
    try:
        parts = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        place = tuple(inf if part is None else part for part in parts)
        kinds = [type(part) for part in place]
    except (ValueError, TypeError, binascii.Error):
        place, kinds = (), []
    if kinds not in ([str], [str, int, str], [str, float, str]):
        raise ManifestError.of("it is no cursor", field="cursor", remedy="pass nextCursor of the page before, as it is")
    return place


def _quota_by_node(rows: Iterable[QuotaRow]) -> dict[tuple[str, str], list[JsonValue]]:
    found: dict[tuple[str, str], list[JsonValue]] = {}
    for row in rows:
        found.setdefault((row.kind, row.name), []).append(
            {
                "flavor": row.flavor,
                "resource": row.resource,
                "nominal": row.nominal,
                "borrowingLimit": row.borrowing_limit,
                "lendingLimit": row.lending_limit,
                "subtreeQuota": row.subtree_quota,
                "usage": row.usage,
                "available": row.available,
                "potentialAvailable": row.potential_available,
                "borrowed": row.borrowed,
            }
        )
    return found


def _cluster_queues(state: SettledState) -> dict[str, str]:
    """ClusterQueues with the cohorts that their objects name: one without quota has no row that says so."""
    objects = (manifest.object for manifest in state.world.of_kind("ClusterQueue"))
    return {
        text_at(plain, "metadata", "name"): text_at(plain, "spec", "cohortName") or text_at(plain, "spec", "cohort")
        for plain in objects
    }


def _local_queues(state: SettledState) -> dict[str, list[str]]:
    """LocalQueues by their ClusterQueue."""
    found: dict[str, list[str]] = {}
    for manifest in state.world.of_kind("LocalQueue"):
        plain = manifest.object
        name = f"{text_at(plain, 'metadata', 'namespace')}/{text_at(plain, 'metadata', 'name')}"
        found.setdefault(text_at(plain, "spec", "clusterQueue"), []).append(name)
    return {queue: sorted(names) for queue, names in found.items()}


def _above(cohort: str | None, parents: dict[tuple[str, str], str | None]) -> list[str]:
    """A cohort and those above it."""
    found: list[str] = []
    while cohort and cohort not in found:
        found.append(cohort)
        cohort = parents.get(("Cohort", cohort))
    return found


def _named_first(row: JsonObject, cohort: str | None) -> JsonObject:
    return {"name": row["name"], "cohort": cohort, **row}
