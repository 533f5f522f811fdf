"""JSON patches (RFC 6902), by the library `jsonpatch`: it comes with `kueuecore[multikueue]`.

Example:
    >>> apply_json_patch({"image": "a", "args": [1]}, [
    ...     {"op": "replace", "path": "/image", "value": "b"}, {"op": "add", "path": "/args/-", "value": 2}])
    {'image': 'b', 'args': [1, 2]}
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence

from kueuecore._json import JsonObject, JsonValue, text_at

__all__ = ["JsonPatchError", "apply_json_patch", "check_json_patch"]


# As the API server limits them: each copy can double what there is.
_MOST_COPIED = 3 * 1024 * 1024
_MOST_OPERATIONS = 10_000


class JsonPatchError(ValueError):
    """A patch that is none, or cannot be applied; the message says why."""


def apply_json_patch(document: JsonObject, operations: Sequence[JsonObject]) -> JsonObject:
    """A document with some operations done, in their order; all or none.

    Raises:
        JsonPatchError: One of them cannot be done, or all that they copy is too large.
        ImportError: The library is not installed.
    """
    # Nobody else has to have it.
    from jsonpatch import JsonPatch, JsonPatchException
    from jsonpointer import JsonPointer, JsonPointerException

    result: JsonValue = copy.deepcopy(document)
    n_copied = 0
    try:
        for operation in operations:
            if operation.get("op") == "copy":
                n_copied += len(json.dumps(JsonPointer(text_at(operation, "from")).resolve(result)))
                if n_copied > _MOST_COPIED:
                    raise JsonPatchError(f"unable to copy more than {_MOST_COPIED} characters")
            result = JsonPatch([operation]).apply(result, in_place=True)
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
        if len(operations) > _MOST_OPERATIONS:
            raise JsonPatchError(f"the patch has more than {_MOST_OPERATIONS} operations")
    except (JsonPatchException, JsonPointerException) as error:
        raise JsonPatchError(str(error)) from error
