"""Shows objects as tables, for `kubectl get`, or as metadata only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeAlias

from kueuecore._json import list_at, object_at, text_at
from kueuecore.times import nanoseconds
from kueuecore_apiserver.requests import Object, Request
from kueuecore_apiserver.resources import Resource

__all__ = ["View", "view_of"]

_Json: TypeAlias = Any  # Any JSON value; checked where the type matters.
_META = "meta.k8s.io/v1"
_NAME = {
    "name": "Name",
    "type": "string",
    "format": "name",
    "description": "Name must be unique within a namespace.",
    "priority": 0,
}
_AGE = {
    "name": "Age",
    "type": "date",
    "format": "",
    "description": "Time since the object was created.",
    "priority": 0,
    "jsonPath": ".metadata.creationTimestamp",
}
_STEP = re.compile(
    r"""\.(?P<field>[A-Za-z0-9_\-$/]+(?:\\\.[A-Za-z0-9_\-$/]+)*)
      | \[(?P<index>-?[0-9]+)\] | \[(?P<all>\*)\] | \['(?P<quoted>[^']+)'\]
      | \[\?\(@\.(?P<key>[A-Za-z0-9_.\-]+)\s*==\s*(?P<quote>["'])(?P<value>[^"']*)(?P=quote)\)\]""",
    re.VERBOSE,
)


class View(Enum):
    """The form in which objects are requested."""

    PLAIN = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"

    def of_one(self, resource: Resource, manifest: Object, request: Request, now: int) -> Object:
        """Return one object in this view."""
        if self is View.TABLE:
            return _table(resource, [manifest], object_at(manifest, "metadata"), request, now)
        return {**_metadata_alone(manifest), "kind": "PartialObjectMetadata", "apiVersion": _META}

    def of_many(self, resource: Resource, items: list[Object], metadata: Object, request: Request, now: int) -> Object:
        """Return a list in this view."""
        if self is View.TABLE:
            return _table(resource, items, metadata, request, now)
        listed = [{**_metadata_alone(item), "kind": "PartialObjectMetadata", "apiVersion": _META} for item in items]
        return {"kind": "PartialObjectMetadataList", "apiVersion": _META, "metadata": metadata, "items": listed}


def view_of(accept: str) -> View:
    """Return the first view that a client accepts and this server supports.

    Example:
        >>> view_of("application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
        <View.TABLE: 'Table'>
    """
    if "as=" not in accept:
        return View.PLAIN
    for option in accept.split(","):
        media_type, *parameters = (part.strip() for part in option.split(";"))
        settings = dict(parameter.partition("=")[::2] for parameter in parameters)
        if media_type == "application/json" and settings.get("v", "v1") == "v1":
            try:
                return View(settings.get("as", ""))
            except ValueError:
                continue
        if media_type in ("application/json", "*/*") and "as" not in settings:
            return View.PLAIN
    return View.PLAIN


def _metadata_alone(manifest: Object) -> Object:
    return {"metadata": manifest["metadata"]}


def _table(resource: Resource, items: list[Object], metadata: Object, request: Request, now: int) -> Object:
    columns = _columns(resource)
    included = request.query.get("includeObject", "Metadata")
    rows = []
    for item in items:
        if "creationTimestamp" not in item["metadata"] or item["metadata"]["creationTimestamp"] is None:
            # A bookmark has no cells.
            rows.append({"cells": [], "object": _included(item, resource, "Metadata")})
            continue
        cells = [item["metadata"]["name"], *(_cell(item, column, now) for column in columns)]
        row: Object = {"cells": cells}
        if included != "None":
            row["object"] = _included(item, resource, included)
        rows.append(row)
    named = {name: metadata[name] for name in ("resourceVersion", "continue", "remainingItemCount") if name in metadata}
    definitions = [_NAME, *({k: v for k, v in column.items() if k != "jsonPath"} for column in columns)]
    return {
        "kind": "Table",
        "apiVersion": _META,
        "metadata": named,
        "columnDefinitions": definitions,
        "rows": rows,
    }


def _included(item: Object, resource: Resource, included: str) -> Object:
    if included == "Object":
        return {**item, "kind": resource.kind, "apiVersion": resource.api_version}
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, **_metadata_alone(item)}


def _columns(resource: Resource) -> list[Object]:
    """Return the columns after the name: those of the CustomResourceDefinition, or else the age."""
    versions = map(object_at, list_at(resource.crd, "spec", "versions")) if resource.crd is not None else ()
    found = next((version for version in versions if text_at(version, "name") == resource.version), {})
    columns: list[Object] = [
        {
            "name": text_at(column, "name"),
            "type": text_at(column, "type"),
            "format": text_at(column, "format"),
            "description": text_at(column, "description"),
            "priority": column.get("priority", 0),
            "jsonPath": text_at(column, "jsonPath"),
        }
        for column in map(object_at, list_at(found, "additionalPrinterColumns"))
    ]
    return columns or [_AGE]


def _cell(item: Object, column: Mapping[str, _Json], now: int) -> _Json:
    values = values_at(item, column["jsonPath"])
    if column["type"] == "date":
        return _age(values[0], now) if values else "<unknown>"
    if not values:
        return None
    value = values[0]
    if column["type"] == "string":
        return ",".join(map(str, values)) if len(values) > 1 else _text(value)
    return value


def _text(value: _Json) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def values_at(value: _Json, path: str) -> list[_Json]:
    """Return the values at a JSONPath of fields, indices, `[*]` and `[?(@.type=="Ready")]`.

    Example:
        >>> values_at({"a": [{"t": "x", "v": 1}, {"t": "y", "v": 2}]}, '.a[?(@.t=="y")].v')
        [2]
    """
    found = [value]
    for match in _STEP.finditer(path):
        found = [json for one in found for json in _step(one, match)]
    return found


def _step(value: _Json, match: re.Match[str]) -> list[_Json]:
    field = match["field"] or match["quoted"]
    if field is not None:
        it = value.get(field.replace("\\.", ".")) if isinstance(value, dict) else None
        return [] if it is None else [it]
    if not isinstance(value, list):
        return []
    if match["index"] is not None:
        index = int(match["index"])
        return [value[index]] if -len(value) <= index < len(value) else []
    if match["all"] is not None:
        return list(value)
    return [row for row in value if values_at(row, f".{match['key']}") == [match["value"]]]


def _age(time: _Json, now: int) -> str:
    """Return how long ago a time is, in the format of kubectl."""
    try:
        seconds = (now - nanoseconds(str(time))) // 10**9
    except ValueError:
        return "<invalid>"
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    return f"{days // 365}y{days % 365}d" if days < 2920 and days % 365 else f"{days // 365}y"
