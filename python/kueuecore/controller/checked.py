"""Whether an object can be taken in at all, before anything is changed by it."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import JsonObject, object_at
from kueuecore.controller.versions import key_of
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import object_ref, to_json_lines

_LONGEST_VERSION = 253


def plain_object(manifest: object) -> JsonObject:
    """An object, if it is plain data."""
    if not isinstance(manifest, dict):
        raise TypeError(
            f"an object is plain data (a dict as JSON gives it), not {type(manifest).__name__}; "
            "the events of the kubernetes client have it as raw_object"
        )
    return manifest


def event_of(event: object) -> tuple[object, JsonObject]:
    """Type and object of a watch event."""
    if not isinstance(event, Mapping):
        raise TypeError(f"a watch event is plain data with type and object, not {type(event).__name__}")
    if missing := [name for name in ("type", "object") if name not in event]:
        remedy = "hand over the event of the watch as it came: type and object"
        raise ManifestError(Problem("Required value", field=name, remedy=remedy) for name in missing)
    return event["type"], plain_object(event["object"])


def check_version(manifest: JsonObject) -> None:
    """Refuse a version that no API server counts, of which none could be the newer one."""
    for name in ("uid", "resourceVersion"):
        value = object_at(manifest, "metadata").get(name)
        if value is not None and not (isinstance(value, str) and len(value) <= _LONGEST_VERSION):
            message = f"Invalid value: it is no text of at most {_LONGEST_VERSION} characters"
            field, remedy = f"metadata.{name}", "hand the object over as the API server sends it"
            raise ManifestError([Problem(message, field=field, remedy=remedy, object=object_ref(manifest))])


def check(manifest: JsonObject, at: int) -> None:
    """Refuse what an engine would refuse, before anything is changed."""
    Engine().apply(to_json_lines([manifest]), now=at, trusted=True)


def checked_answer(answer: JsonObject, stored: JsonObject, at: int) -> JsonObject:
    """What the API server said of a stored object."""
    found, expected = key_of(plain_object(answer)), key_of(stored)
    if found != expected:
        raise ValueError(f"the answer is {' '.join(found)!r}, and the write was to {' '.join(expected)!r}")
    check(answer, at)
    return answer
