"""Refusals in the words of the API server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kueuecore._json import JsonObject, JsonValue
from kueuecore.api_server import RefusedError

__all__ = [
    "Cause",
    "NoSuchPathError",
    "already_exists",
    "bad_request",
    "conflict",
    "expired",
    "forbidden",
    "invalid",
    "method_not_allowed",
    "mistyped",
    "no_such_resource",
    "not_found",
    "unsupported_media_type",
]

_REASONS = {
    "Forbidden": "FieldValueForbidden",
    "Required value": "FieldValueRequired",
    "Unsupported value": "FieldValueNotSupported",
    "Duplicate value": "FieldValueDuplicate",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
    "Not found": "FieldValueNotFound",
}


class Cause(NamedTuple):
    """What is wrong with one field: its path, and the message, which starts with the kind of mistake."""

    field: str
    message: str


def _words(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def _details(group: str, resource: str, name: str, causes: Iterable[JsonValue] = ()) -> JsonObject:
    details: JsonObject = {"name": name, "group": group, "kind": resource}
    listed = list(causes)
    if listed:
        details["causes"] = listed
    return {key: value for key, value in details.items() if value}


def not_found(group: str, resource: str, name: str) -> RefusedError:
    """Return a refusal: there is no such object."""
    return RefusedError(404, f'{_words(resource, group)} "{name}" not found', details=_details(group, resource, name))


class NoSuchPathError(RefusedError):
    """A path of which no part of the server knows anything: it is answered with plain text."""

    def __init__(self) -> None:
        super().__init__(404, "404 page not found", details={})


def no_such_resource(group: str | None = None) -> RefusedError:
    """Return a refusal: the server has no such kind or subresource, or no such path.

    Args:
        group: The group of the kind, if the kind is missing: of its own groups the server knows what they lack, others
            are paths that do not exist.
    """
    if group is not None and "." in group and not group.endswith((".k8s.io", "-api.k8s.io")):
        return NoSuchPathError()
    return RefusedError(404, "the server could not find the requested resource", details={})


def already_exists(group: str, resource: str, name: str) -> RefusedError:
    """Return a refusal: the name is taken."""
    message = f'{_words(resource, group)} "{name}" already exists'
    return RefusedError(409, message, reason="AlreadyExists", details=_details(group, resource, name))


def conflict(group: str, resource: str, name: str, why: str) -> RefusedError:
    """Return a refusal: the object is not in the state that the client expects."""
    message = f'Operation cannot be fulfilled on {_words(resource, group)} "{name}": {why}'
    return RefusedError(409, message, details=_details(group, resource, name))


def forbidden(group: str, resource: str, name: str, why: str, causes: Iterable[JsonValue] = ()) -> RefusedError:
    """Return a refusal: a rule of the server, or its access control, forbids it."""
    about = f'{_words(resource, group)} "{name}"' if name else _words(resource, group)
    return RefusedError(403, f"{about} is forbidden: {why}", details=_details(group, resource, name, causes))


def invalid(group: str, kind: str, name: str, causes: Iterable[Cause]) -> RefusedError:
    """Return a refusal: fields have values that are not allowed.

    Example:
        >>> error = invalid("batch", "Job", "sum", [Cause("spec.completions", "Invalid value: 3: field is immutable")])
        >>> error.code, str(error)
        (422, 'Job.batch "sum" is invalid: spec.completions: Invalid value: 3: field is immutable')
    """
    causes = list(causes)
    listed: list[JsonValue] = [
        {
            "reason": _REASONS.get(message.partition(":")[0], "FieldValueInvalid"),
            "message": message,
            "field": place,
        }
        for place, message in causes
    ]
    texts = [f"{place}: {message}" for place, message in causes]
    what = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f'{_words(kind, group)} "{name}" is invalid: {what}'
    return RefusedError(422, message, details=_details(group, kind, name, listed))


def bad_request(why: str) -> RefusedError:
    """Return a refusal: the request itself is malformed."""
    return RefusedError(400, why)


def mistyped(kind: str, version: str, field: str, value: JsonValue, wanted: str) -> RefusedError:
    """Return a refusal: a field has a type that the server cannot decode."""
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return bad_request(
        f'{kind} in version "{version}" cannot be handled as a {kind}: json: cannot unmarshal '
        f"{names.get(type(value), 'null')} into Go struct field {field} of type {wanted}"
    )


def expired(why: str) -> RefusedError:
    """Return a refusal: what is requested is too old."""
    return RefusedError(410, why, reason="Expired")


def method_not_allowed() -> RefusedError:
    """Return a refusal: the path exists, but not for this verb."""
    return RefusedError(
        405, "the server does not allow this method on the requested resource", reason="MethodNotAllowed", details={}
    )


def unsupported_media_type(accepted: Iterable[str]) -> RefusedError:
    """Return a refusal: the server does not accept this type of body."""
    listed = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return RefusedError(415, message, reason="UnsupportedMediaType")
