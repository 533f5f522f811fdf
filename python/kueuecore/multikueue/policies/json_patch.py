"""JSON patches (RFC 6902), applied by the library `jsonpatch`, which comes with `kueuecore[multikueue]`.

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


# The API server's limits: each copy can double the document.
_MAX_COPIED = 3 * 1024 * 1024
_MAX_OPERATIONS = 10_000


class JsonPatchError(ValueError):
    """Raised if a patch is malformed or cannot be applied; the message says why."""


def apply_json_patch(document: JsonObject, operations: Sequence[JsonObject]) -> JsonObject:
    """Return a document with all operations applied in order, or none of them.

    Raises:
        JsonPatchError: An operation cannot be applied, or the copies are too large in total.
        ImportError: The library is not installed.
    """
    # Imported here, so that it is optional.
    from jsonpatch import JsonPatch, JsonPatchException
    from jsonpointer import JsonPointer, JsonPointerException

    result: JsonValue = copy.deepcopy(document)
    n_copied = 0
    try:
        for operation in operations:
            if operation.get("op") == "copy":
                n_copied += len(json.dumps(JsonPointer(text_at(operation, "from")).resolve(result)))
                if n_copied > _MAX_COPIED:
                    raise JsonPatchError(f"unable to copy more than {_MAX_COPIED} characters")
            result = JsonPatch([operation]).apply(result, in_place=True)
    except (JsonPatchException, JsonPointerException) as error:
        raise JsonPatchError(str(error)) from error
    if not isinstance(result, dict):
        raise JsonPatchError("the object is no mapping any more")
    return result


def check_json_patch(operations: Sequence[JsonObject]) -> None:
    """Check whether operations form a valid patch, whatever it applies to.

    Raises:
        JsonPatchError: They do not, or the library is not installed.
    """
    try:
        from jsonpatch import JsonPatch, JsonPatchException
        from jsonpointer import JsonPointerException
    except ImportError as error:
        raise JsonPatchError("for overrides install 'kueuecore[multikueue]'") from error
    try:
        JsonPatch(operations)
        if len(operations) > _MAX_OPERATIONS:
            raise JsonPatchError(f"the patch has more than {_MAX_OPERATIONS} operations")
    except (JsonPatchException, JsonPointerException) as error:
        raise JsonPatchError(str(error)) from error
