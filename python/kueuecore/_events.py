"""Events of Kubernetes: what people read with `kubectl describe`."""

from __future__ import annotations

from kueuecore._json import JsonObject

__all__ = ["event_manifest"]

_MOST_BYTES, _CUT = 1024, " ..."


def event_manifest(about: JsonObject, *, type: str, reason: str, message: str, now: str) -> JsonObject:  # noqa: A002
    """A `v1` Event to create; the API server appends to its name.

    Args:
        about: The object: apiVersion, kind, namespace, name and uid.
        type: Normal or Warning.
        reason: A word.
        message: A sentence; an API server takes 1024 bytes, so the rest is cut off as Kueue does it.
        now: The time as RFC 3339.
    """
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": about["namespace"], "generateName": f"{about['name']}."},
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
    if len(text) <= _MOST_BYTES:
        return message
    # Half a character goes, too.
    return text[: _MOST_BYTES - len(_CUT)].decode(errors="ignore") + _CUT
