"""Kubernetes Events, which `kubectl describe` shows."""

from __future__ import annotations

from kueuecore._json import JsonObject

__all__ = ["event_manifest"]

_MOST_BYTES, _CUT = 1024, " ..."


def event_manifest(about: JsonObject, *, type: str, reason: str, message: str, now: str) -> JsonObject:  # noqa: A002
    """Make a `v1` Event to create; the API server completes its name.

    Args:
        about: The object: apiVersion, kind, namespace, name and uid.
        type: Normal or Warning.
        reason: One word.
        message: A sentence; cut to the API server's 1024 bytes, as in Kueue.
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
    # Drop half a character at the cut.
    return text[: _MOST_BYTES - len(_CUT)].decode(errors="ignore") + _CUT
