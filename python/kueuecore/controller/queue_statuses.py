"""Writes the statuses of ClusterQueues, LocalQueues and Cohorts, as Kueue's queue controllers do (rules/02 §7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._patches import whole_seconds
from kueuecore.controller.object_store import ObjectStore
from kueuecore.controller.sent_writes import SentWrites
from kueuecore.controller.side_controllers import SideController
from kueuecore.controller.versions import Key
from kueuecore.engine import Engine
from kueuecore.times import SECOND_NS, format_time
from kueuecore.writes import Answer, Verb, Write

__all__ = ["QueueStatuses", "is_answer", "with_status"]

_OF_VERSION = frozenset({"resourceVersion", "managedFields"})
_KINDS = frozenset({"ClusterQueue", "LocalQueue", "Cohort"})


def is_answer(manifest: JsonObject, before: JsonObject | None) -> bool:
    """Return whether two versions of a queue or cohort differ only in status, as after a status write."""
    if before is None or text_at(manifest, "kind") not in _KINDS:
        return False
    return _without_status(manifest) == _without_status(before)


def _without_status(manifest: JsonObject) -> JsonObject:
    metadata = {name: entry for name, entry in object_at(manifest, "metadata").items() if name not in _OF_VERSION}
    return {**manifest, "metadata": metadata, "status": None}


class QueueStatuses(SideController):
    """Writes the statuses of queues and cohorts that differ from the stored ones.

    It looks only at those that have changed since last time, in the engine or as stored.

    Args:
        engine: Has the statuses to store.
        objects: The objects as the API server has them.
        delay_ns: How long a change waits for others, in nanoseconds.
    """

    def __init__(self, engine: Engine, objects: ObjectStore, *, delay_ns: int) -> None:
        self._engine = engine
        self._objects = objects
        self._delay_ns = delay_ns
        # What may have to be written, and since when.
        self._open: dict[Key, int] = {}
        self._sent = SentWrites()
        engine._core._take_changed_queues(None)

    def note(self, key: Key, manifest: JsonObject | None, at: int) -> None:
        """Take in the stored version of an object; `None` if it was deleted."""
        if key[0] not in _KINDS:
            return
        if manifest is None:
            self._drop(key)
            return
        self._open.setdefault(key, at)
        # Our own writes come back, mostly agreeing with the engine: not worth a turn.
        if self._sent.has(key) and with_status(manifest, self._rendered(key), now=at) is manifest:
            self._drop(key)

    def take_writes(self, at: int) -> list[Write]:
        """Return the writes that are due: at most one for each version of an object."""
        for kind, namespace, name in self._engine._core._take_changed_queues(None):
            self._open.setdefault((kind, namespace, name), at)
        writes: list[Write] = []
        for key, since in list(self._open.items()):
            stored = self._objects.get(key)
            if stored is None:
                # Only named, or not seen yet.
                self._drop(key)
            elif at >= since + self._delay_ns and self._sent.may_send(key, stored, at):
                after = with_status(stored, self._rendered(key), now=at)
                if after is stored:
                    self._drop(key)
                    continue
                self._sent.send(key, stored, at)
                self._open[key] = at
                writes.append(Write(Verb.UPDATE, after, "status"))
        return writes

    def refused(self, write: Write, answer: Answer, *, at: int) -> bool:
        """Retry a refused write after a pause, or as soon as a watch shows another version."""
        ref = write.object
        is_own = ref.kind in _KINDS
        if is_own:
            self._sent.refuse((ref.kind, ref.namespace, ref.name), at)
        return is_own

    def next_wake(self) -> int | None:
        """Return when the next write is due; `None`: none is."""
        times = (
            max(since + self._delay_ns, self._sent.next_time(key, stored))
            for key, since in self._open.items()
            if (stored := self._objects.get(key)) is not None
        )
        return min(times, default=None)

    def _drop(self, key: Key) -> None:
        self._open.pop(key, None)
        self._sent.forget(key)

    def _rendered(self, key: Key) -> Mapping[str, Any]:
        kind, namespace, name = key
        core = self._engine._core
        if kind == "ClusterQueue":
            return core.cluster_queue_status(name)
        return core.cohort_status(name) if kind == "Cohort" else core.local_queue_status(namespace, name)


def with_status(stored: JsonObject, rendered: Mapping[str, Any], *, now: int) -> JsonObject:
    """Return an object with its status as the engine has it; other writers' fields and conditions stay.

    Args:
        stored: A ClusterQueue, LocalQueue or Cohort as the API server has it.
        rendered: Its status as the engine has it.
        now: The time for changed conditions, in nanoseconds since 1970.

    Returns:
        The object; the same one if nothing differs.

    Example:
        >>> with_status({"kind": "Cohort", "status": {"x": 1}}, {"fairSharing": {"weightedShare": 7}}, now=0)["status"]
        {'x': 1, 'fairSharing': {'weightedShare': 7}}
    """
    before = object_at(stored, "status")
    after: JsonObject = {**before, **{name: row for name, row in rendered.items() if name not in _SPECIAL}}
    # Empty lists are not written, nor is a share while fair sharing is off.
    for name in ("flavorsReservation", "flavorsUsage"):
        if not after.get(name):
            after.pop(name, None)
    if "conditions" in rendered:
        after["conditions"] = _conditions(stored, rendered["conditions"], now)
    if text_at(stored, "kind") != "LocalQueue":
        after.pop("fairSharing", None)
        if "fairSharing" in rendered:
            after["fairSharing"] = rendered["fairSharing"]
    elif "fairSharing" in rendered:
        # A LocalQueue keeps its usage even while it is not sampled.
        used = whole_seconds(rendered["fairSharing"])
        assert isinstance(used, dict)
        after["fairSharing"] = {**used, **object_at(before, "fairSharing"), **_sampled(used)}
    return stored if _without_zeros(after) == _without_zeros(before) else {**stored, "status": after}


_SPECIAL = frozenset({"conditions", "fairSharing"})
_COUNTS = frozenset({"pendingWorkloads", "reservingWorkloads", "admittedWorkloads"})


def _sampled(used: JsonObject) -> JsonObject:
    return {"admissionFairSharingStatus": used["admissionFairSharingStatus"]}


def _without_zeros(status: JsonObject) -> JsonObject:
    """Prepare a status for comparison: a missing count equals 0, an empty list equals none."""
    return {name: row for name, row in status.items() if not (row == 0 and name in _COUNTS) and row != []}


def _conditions(stored: JsonObject, rendered: list[JsonObject], now: int) -> list[JsonValue]:
    """Return the conditions of a status; the time of one changes only with its status."""
    entries = list_at(stored, "status", "conditions")
    for condition in rendered:
        old = next(
            (entry for entry in entries if isinstance(entry, dict) and entry.get("type") == condition["type"]), None
        )
        time = format_time(now // SECOND_NS * SECOND_NS)
        if old is not None and old.get("status") == condition["status"]:
            time = text_at(old, "lastTransitionTime") or time
        new: JsonObject = {"lastTransitionTime": time, **condition}
        generation = object_at(stored, "metadata").get("generation")
        if isinstance(generation, int) and generation:
            new["observedGeneration"] = generation
        entries = [*entries, new] if old is None else [new if entry is old else entry for entry in entries]
    return entries
