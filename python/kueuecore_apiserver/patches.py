"""The patches that an API server accepts: JSON patch, JSON merge patch, and strategic merge patch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jsonpatch
import jsonpointer

from kueuecore._patches import patched
from kueuecore.api_server import RefusedError
from kueuecore_apiserver.refusals import bad_request, unsupported_media_type
from kueuecore_apiserver.requests import Object
from kueuecore_apiserver.shapes import Shape

__all__ = ["APPLY", "JSON_PATCH", "MERGE", "STRATEGIC", "patched_by"]

_Json: TypeAlias = Any  # Any JSON value; checked where the type matters.

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

_DIRECTIVE, _RETAINED = "$patch", "$retainKeys"
_DELETED_VALUES, _ORDER = "$deleteFromPrimitiveList/", "$setElementOrder/"


def patched_by(content_type: str, live: Object, patch: _Json, shape: Shape, *, is_custom: bool) -> Object:
    """Return an object after a patch.

    Args:
        content_type: The type of the patch.
        live: The current object.
        patch: The patch.
        shape: How the kind merges.
        is_custom: Whether its kind is custom. Custom kinds accept no strategic merge patch.

    Raises:
        RefusedError: The server does not accept such a patch (415), it is malformed (400), or it does not fit (422).
    """
    accepted = (JSON_PATCH, MERGE, APPLY) if is_custom else (JSON_PATCH, MERGE, STRATEGIC, APPLY)
    if content_type not in accepted:
        raise unsupported_media_type(accepted)
    if content_type == JSON_PATCH:
        return _json_patched(live, patch)
    if not isinstance(patch, dict):
        raise bad_request("json: cannot unmarshal the patch into Go value of type map[string]interface {}")
    return patched(live, patch) if content_type == MERGE else strategically_merged(live, patch, shape)


def _json_patched(live: Object, patch: _Json) -> Object:
    if not isinstance(patch, list):
        raise bad_request("json: cannot unmarshal the patch into Go value of type jsonpatch.Patch")
    try:
        result = jsonpatch.apply_patch(live, patch)
    except jsonpatch.InvalidJsonPatch as error:
        raise bad_request(f"error decoding patch: {error}") from None
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException):
        # A server reports no more, either.
        raise RefusedError(422, "the server rejected our request due to an error in our request") from None
    if not isinstance(result, dict):
        raise bad_request("the patch leaves no object")
    return result


def strategically_merged(live: Object, patch: Object, shape: Shape) -> Object:
    """Return an object after a strategic merge patch.

    Example:
        >>> from kueuecore_apiserver.shapes import built_in_shape
        >>> pod = {"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]}}
        >>> patch = {"spec": {"containers": [{"name": "a", "image": "y"}]}}
        >>> strategically_merged(pod, patch, built_in_shape("", "Pod"))
        {'spec': {'containers': [{'name': 'a', 'image': 'y'}, {'name': 'b'}]}}
    """
    directive = patch.get(_DIRECTIVE)
    if directive == "delete":
        return {}
    plain = {name: row for name, row in patch.items() if not name.startswith("$")}
    if directive == "replace":
        return plain
    result = dict(live)
    if _RETAINED in patch:
        result = {name: other for name, other in result.items() if name in patch[_RETAINED]}
    for name, value in plain.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            there = result.get(name)
            result[name] = strategically_merged(there if isinstance(there, dict) else {}, value, shape.at(name))
        elif isinstance(value, list):
            result[name] = _list_merged(result.get(name), value, shape.at(name))
        else:
            result[name] = value
    _direct_lists(result, patch, shape)
    return result


def _direct_lists(result: Object, patch: Object, shape: Shape) -> None:
    """Apply the directives of a patch beside lists: which values to delete, and how to order the rest."""
    for name, values in patch.items():
        if name.startswith(_DELETED_VALUES):
            field = name.removeprefix(_DELETED_VALUES)
            result[field] = [other for other in result.get(field) or () if other not in values]
    for name, values in patch.items():
        if name.startswith(_ORDER):
            field = name.removeprefix(_ORDER)
            if isinstance(result.get(field), list):
                result[field] = _ordered(result[field], values, _identity(shape.at(field)))


def _list_merged(live: _Json, patch: list[_Json], shape: Shape) -> list[_Json]:
    there = list(live) if isinstance(live, list) else []
    if any(isinstance(other, dict) and other.get(_DIRECTIVE) == "replace" for other in patch):
        return [other for other in patch if not (isinstance(other, dict) and _DIRECTIVE in other)]
    if shape.patches_set:
        return [*there, *(other for other in patch if other not in there)]
    if not shape.patch_key:
        return patch
    for change in patch:
        if not isinstance(change, dict) or shape.patch_key not in change:
            raise bad_request(f"map: {json.dumps(change)} does not contain declared merge key: {shape.patch_key}")
        same = [index for index, row in enumerate(there) if row.get(shape.patch_key) == change[shape.patch_key]]
        if change.get(_DIRECTIVE) == "delete":
            there = [row for index, row in enumerate(there) if index not in same]
        elif same:
            there[same[0]] = strategically_merged(there[same[0]], change, shape.items)
        else:
            there.append(strategically_merged({}, change, shape.items))
    return there


def _identity(shape: Shape) -> Callable[[_Json], _Json]:
    """Return a function that returns what identifies an item of this list."""

    def identity(item: _Json) -> _Json:
        return item.get(shape.patch_key) if isinstance(item, Mapping) else item

    return identity


def _ordered(items: list[_Json], order: list[_Json], identity: Callable[[_Json], _Json]) -> list[_Json]:
    """Order items as requested; an unnamed item stays behind the one that it followed."""
    places = {json.dumps(identity(other), sort_keys=True): index for index, other in enumerate(order)}
    ranked = []
    last = -1
    for index, item in enumerate(items):
        own = places.get(json.dumps(identity(item), sort_keys=True))
        last = last if own is None else own
        ranked.append(((last, own is None, index), item))
    return [item for _, item in sorted(ranked, key=lambda entry: entry[0])]
