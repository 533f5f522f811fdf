"""Whether an object can be taken in at all, before anything is changed by it."""

from __future__ import annotations

from kueuecore._json import JsonObject
from kueuecore.controller.versions import key_of
from kueuecore.engine import Engine
from kueuecore.manifests import to_json_lines


def plain_object(manifest: object) -> JsonObject:
    """An object, if it is plain data."""
    if not isinstance(manifest, dict):
        raise TypeError(
            f"an object is plain data (a dict as JSON gives it), not {type(manifest).__name__}; "
            "the events of the kubernetes client have it as raw_object"
        )
    return manifest


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
