"""Kubernetes Events, which `kubectl describe` shows."""

from __future__ import annotations

from dataclasses import dataclass

from kueuecore._json import JsonObject
from kueuecore._keyed import Keyed
from kueuecore._kinds import KUEUE

__all__ = ["Event", "event_manifest"]

_MAX_BYTES, _CUT = 1024, " ..."


@dataclass(frozen=True, slots=True)
class Event(Keyed):
    """A Kubernetes event that Kueue would emit.

    Args:
        type: `Normal` or `Warning`.
        reason: Reason, such as `QuotaReserved`.
        namespace: Namespace of the workload that it is about.
        name: Name of the workload.
        message: Message, at most 1024 bytes.
    """

    type: str
    reason: str
    namespace: str
    name: str
    message: str

    def manifest(self, now: str, *, uid: str) -> JsonObject:
        """Return it as a `v1` Event to create; the API server appends to its name.

        Args:
            now: The time as RFC 3339.
            uid: UID of its workload.
        """
        about: JsonObject = {
            "apiVersion": KUEUE,
            "kind": "Workload",
            "namespace": self.namespace,
            "name": self.name,
            "uid": uid,
        }
        return event_manifest(about, type=self.type, reason=self.reason, message=self.message, now=now)


def event_manifest(about: JsonObject, *, type: str, reason: str, message: str, now: str) -> JsonObject:  # noqa: A002
    """Make a `v1` Event to create; the API server completes its name.

    Args:
        about: The object: apiVersion, kind, namespace, name and uid. Events about objects without a namespace are in
            `default`.
        type: Normal or Warning.
        reason: One word.
        message: A sentence; cut to the API server's 1024 bytes, as in Kueue.
        now: The time as RFC 3339.
    """
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": about["namespace"] or "default", "generateName": f"{about['name']}."},
        "involvedObject": about,
        "type": type,
        "reason": reason,
        "message": _shortened(message),
        "source": {"component": "kueuecore"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def _shortened(message: str) -> str:
    text = message.encode()
    if len(text) <= _MAX_BYTES:
        return message
    # Drop half a character at the cut.
    return text[: _MAX_BYTES - len(_CUT)].decode(errors="ignore") + _CUT
