"""Checks whether an object can be taken in, before it changes anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kueuecore._arguments import each, shown
from kueuecore._json import JsonObject, int_at, object_at, text_at
from kueuecore._text import quoted
from kueuecore.controller.versions import Key, Version, key_of
from kueuecore.engine import Engine
from kueuecore.errors import KueuecoreError, ManifestError, Problem
from kueuecore.jobs.context import group_of
from kueuecore.manifests import object_ref

_MAX_VERSION = 253
_EVENT_TYPES = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")


class WatchError(KueuecoreError):
    """A watch ended with an error, most often 410 Gone: list again (`Controller.resync`), and watch from there.

    Args:
        code: The code of the API server's status.
        message: Its message.
    """

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"the watch ended with {code}: {message}")


def plain_object(manifest: object, name: str = "an object") -> JsonObject:
    """Return an object if it is plain data; `name` says what it was passed as."""
    if not isinstance(manifest, dict):
        raise TypeError(
            f"{name} must be plain data (a dict, as JSON gives it), not {type(manifest).__name__}; "
            "in events of the kubernetes client it is raw_object"
        )
    return manifest


def event_of(event: object) -> tuple[object, JsonObject]:
    """Return type and object of a watch event.

    Raises:
        WatchError: The event is an error.
        ManifestError: One of them is missing, or the object's version is not an API server's.
        TypeError: The event is not plain data.
        ValueError: The type does not exist.
    """
    if not isinstance(event, Mapping):
        raise TypeError(f"a watch event must be plain data with type and object, not {type(event).__name__}")
    if missing := [name for name in ("type", "object") if name not in event]:
        remedy = "hand over the event of the watch as it came: type and object"
        raise ManifestError(Problem("Required value", field=name, remedy=remedy) for name in missing)
    kind = event["type"]
    if kind is not None and (not isinstance(kind, str) or kind not in _EVENT_TYPES):
        raise ValueError(f"a watch event's type is one of {', '.join(_EVENT_TYPES)} or None, not {shown(kind)}")
    manifest = plain_object(event["object"], "the object of the event")
    if kind == "ERROR":
        raise WatchError(int_at(manifest, "code", default=500), text_at(manifest, "message"))
    check_version(manifest)
    return kind, manifest


def listed_objects(kind: str, api_version: str, objects: Iterable[object]) -> dict[Key, tuple[JsonObject, int]]:
    """Return the objects of a list with their positions, and with the kind that an API server leaves out.

    Raises:
        TypeError: An object is not plain data.
        ValueError: An object is of another kind.
    """
    listed: dict[Key, tuple[JsonObject, int]] = {}
    for index, object_ in enumerate(each("objects", objects)):
        plain = plain_object(object_, f"objects[{index}]")
        whole: JsonObject = plain if "kind" in plain else {"apiVersion": api_version, "kind": kind, **plain}
        if whole["kind"] != kind:
            raise ValueError(f"in a list of {kind} there is a {whole['kind']}: {'/'.join(key_of(whole)[1:])}")
        listed[key_of(whole)] = whole, index
    return listed


def check_version(manifest: JsonObject) -> None:
    """Refuse a `uid` or `resourceVersion` that is not a short string, as API servers send them."""
    for name in ("uid", "resourceVersion"):
        value = object_at(manifest, "metadata").get(name)
        if value is not None and not (isinstance(value, str) and len(value) <= _MAX_VERSION):
            message = f"Invalid value: must be a string of at most {_MAX_VERSION} characters"
            field, remedy = f"metadata.{name}", "hand the object over as the API server sends it"
            raise ManifestError([Problem(message, field=field, remedy=remedy, object=object_ref(manifest))])


def checked_answer(name: str, answer: JsonObject, stored: JsonObject, engine: Engine, at: int) -> JsonObject:
    """Return the API server's answer about a stored object; `name` says what it was passed as."""
    check_key(name, answer, key_of(stored))
    api_version = text_at(answer, "apiVersion")
    if group_of(api_version) != group_of(text_at(stored, "apiVersion")):
        message, remedy = f"Invalid value: {quoted(api_version)}: it is of another API group", "hand over the Workload"
        raise ManifestError([Problem(message, field="apiVersion", remedy=remedy, object=object_ref(answer))])
    engine._check(answer, now=at, trusted=True)
    return answer


def confirmed_answer(key: str, answer: JsonObject, stored: JsonObject, engine: Engine, at: int) -> JsonObject:
    """Return the API server's answer about a Workload that it has written; `key` names it in errors."""
    after = checked_answer("answer", answer, stored, engine, at)
    version, before = Version.of(after), Version.of(stored)
    if not version.is_same_object(before):
        raise ValueError(f"{key}: the answer is another Workload of that name")
    if before.is_newer_than(version) and version.number is not None:
        raise ValueError(f"{key}: the answer is older than what was written to")
    return after


def check_key(name: str, answer: JsonObject, expected: Key) -> None:
    """Refuse an answer that is not an object, or is about another one."""
    found = key_of(plain_object(answer, name))
    if found != expected:
        raise ValueError(f"{name} is about {shown(' '.join(found))}, but the write was to {' '.join(expected)!r}")
    check_version(answer)
