"""Fails pods that wait in vain for a node, as Kueue's node controller does (rules/08 §13.4)."""

from __future__ import annotations

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.controller.sent_writes import SentWrites
from kueuecore.controller.side_controllers import SideController
from kueuecore.controller.versions import Key
from kueuecore.engine import Engine
from kueuecore.writes import Answer, Verb, Write

__all__ = ["PodFailures"]


class PodFailures(SideController):
    """The pods that the engine has failed, until the API server has that too.

    Args:
        engine: Decides which pods fail.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # The pods that may fail, as the API server has them.
        self._waiting: dict[Key, JsonObject] = {}
        # The engine's version of those that it has failed.
        self._failed: dict[Key, JsonObject] = {}
        self._sent = SentWrites()

    def note(self, key: Key, manifest: JsonObject | None, at: int) -> None:
        """Take in the stored version of an object; `None` if it was deleted."""
        if key[0] != "Pod":
            return
        if manifest is not None and _waits(manifest):
            self._waiting[key] = manifest
            return
        self._waiting.pop(key, None)
        self._failed.pop(key, None)
        self._sent.forget(key)

    def take_writes(self, at: int) -> list[Write]:
        """Return the writes that are due: at most one for each version of a pod."""
        for namespace, name, condition in self._engine._core._take_failed_pods(None):
            key = ("Pod", namespace, name)
            if key in self._waiting:
                self._failed[key] = condition
        writes: list[Write] = []
        for key, condition in self._failed.items():
            stored = self._waiting[key]
            if self._sent.may_send(key, stored, at):
                self._sent.send(key, stored, at)
                writes.append(Write(Verb.UPDATE, _as_failed(stored, condition), "status"))
        return writes

    def refused(self, write: Write, answer: Answer, *, at: int) -> bool:
        """Retry a refused write after a pause, or as soon as a watch shows another version."""
        ref = write.object
        is_own = ref.kind == "Pod" and write.subresource == "status"
        if is_own:
            self._sent.refuse((ref.kind, ref.namespace, ref.name), at)
        return is_own

    def next_wake(self) -> int | None:
        """Return when the next write is due; `None`: none is."""
        return min((self._sent.next_time(key, self._waiting[key]) for key in self._failed), default=None)


def _waits(pod: JsonObject) -> bool:
    """Return whether a pod still has no node."""
    return text_at(pod, "status", "phase") == "Pending" and not text_at(pod, "spec", "nodeName")


def _as_failed(pod: JsonObject, condition: JsonObject) -> JsonObject:
    others = [other for other in list_at(pod, "status", "conditions") if not _is_of_type(other, condition["type"])]
    status: JsonObject = {**object_at(pod, "status"), "phase": "Failed", "conditions": [*others, condition]}
    return {**pod, "status": status}


def _is_of_type(condition: JsonValue, kind: JsonValue) -> bool:
    return isinstance(condition, dict) and condition.get("type") == kind
