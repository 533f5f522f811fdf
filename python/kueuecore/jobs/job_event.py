"""Events about jobs, as shown by `kubectl describe`."""

from __future__ import annotations

from dataclasses import dataclass

from kueuecore._events import event_manifest
from kueuecore._json import JsonObject, text_at

__all__ = ["JobEvent"]


@dataclass(frozen=True, slots=True)
class JobEvent:
    """An event that Kueue emits about a job, a pod or a Workload.

    Args:
        object: The object that the event is about.
        type: Normal or Warning.
        reason: A word, such as `CreatedWorkload`.
        message: A sentence.
    """

    object: JsonObject
    type: str
    reason: str
    message: str

    def manifest(self, now: str) -> JsonObject:
        """Return it as a `v1` Event to create.

        Args:
            now: The time as RFC 3339.
        """
        about: JsonObject = {key: text_at(self.object, key) for key in ("apiVersion", "kind")}
        about |= {key: text_at(self.object, "metadata", key) for key in ("namespace", "name", "uid")}
        return event_manifest(about, type=self.type, reason=self.reason, message=self.message, now=now)
