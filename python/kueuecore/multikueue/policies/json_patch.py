"""JSON patches (RFC 6902), by the library `jsonpatch`: it comes with `kueuecore[multikueue]`.

Example:
    >>> apply_json_patch({"image": "a", "args": [1]}, [
    ...     {"op": "replace", "path": "/image", "value": "b"}, {"op": "add", "path": "/args/-", "value": 2}])
    {'image': 'b', 'args': [1, 2]}
"""

from __future__ import annotations

from collections.abc import Sequence

from kueuecore._json import JsonObject

__all__ = ["JsonPatchError", "apply_json_patch", "check_json_patch"]


class JsonPatchError(ValueError):
    """A patch that is none, or can not be applied; the message says why."""


def apply_json_patch(document: JsonObject, operations: Sequence[JsonObject]) -> JsonObject:
    """A document with some operations done, in their order; all or none.

    Raises:
        JsonPatchError: One of them can not be done.
        ImportError: The library is not installed.
    """
    # Nobody else has to have it.
    from jsonpatch import JsonPatchException, apply_patch
    from jsonpointer import JsonPointerException

    try:
        result = apply_patch(document, operations)
    except (JsonPatchException, JsonPointerException) as error:
        raise JsonPatchError(str(error)) from error
    if not isinstance(result, dict):
        raise JsonPatchError("the object is no mapping any more")
    return result


def check_json_patch(operations: Sequence[JsonObject]) -> None:
    """See whether operations are a patch at all, whatever it is of.

    Raises:
        JsonPatchError: They are none, or the library is not installed.
    """
    try:
        from jsonpatch import JsonPatch, JsonPatchException
        from jsonpointer import JsonPointerException
    except ImportError as error:
        raise JsonPatchError("for overrides install 'kueuecore[multikueue]'") from error
    try:
        JsonPatch(operations)
    except (JsonPatchException, JsonPointerException) as error:
        raise JsonPatchError(str(error)) from error
