"""Field ownership: `managedFields` after updates, and server-side apply with its conflicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kueuecore._json import JsonValue, list_at, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore_apiserver.field_sets import (
    FieldSet,
    compared,
    difference,
    fields_of,
    intersection,
    paths,
    union,
    without,
)
from kueuecore_apiserver.merging import merged, removed
from kueuecore_apiserver.requests import Object
from kueuecore_apiserver.shapes import Shape

__all__ = ["Writer", "applied", "with_owners"]

_APPLY, _UPDATE = "Apply", "Update"
# Fields set by the server, and the names of the object, have no owner.
_UNOWNED_METADATA = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
    "generation",
    "selfLink",
    "managedFields",
)


@dataclass(frozen=True, slots=True)
class Writer:
    """The writer of a request.

    Args:
        manager: Its name.
        api_version: The API version in which it writes.
        subresource: The subresource to which it writes.
        time: The time of the write.
    """

    manager: str
    api_version: str
    subresource: str
    time: str

    def entry(self, operation: str, fields: FieldSet) -> Object:
        """Return an entry of `managedFields`."""
        entry = {
            "manager": self.manager,
            "operation": operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        return {**entry, "subresource": self.subresource} if self.subresource else entry

    def owns(self, entry: Object, operation: str) -> bool:
        """Return whether an entry belongs to this writer. The version matters only for updates."""
        return (
            text_at(entry, "manager") == self.manager
            and text_at(entry, "operation") == operation
            and text_at(entry, "subresource") == self.subresource
            and (operation == _APPLY or text_at(entry, "apiVersion") == self.api_version)
        )


def _owned_part(manifest: Object) -> Object:
    """Return an object without the fields that have no owner."""
    metadata = {name: entry for name, entry in object_at(manifest, "metadata").items() if name not in _UNOWNED_METADATA}
    parts = {name: row for name, row in manifest.items() if name not in ("apiVersion", "kind", "metadata")}
    return {"metadata": metadata, **parts}


def _entries(manifest: Object) -> list[Object]:
    return [object_at(field) for field in list_at(manifest, "metadata", "managedFields")]


def _with_entries(manifest: Object, entries: Iterable[Object]) -> Object:
    metadata = {name: row for name, row in manifest["metadata"].items() if name != "managedFields"}
    listed = list(entries)
    return {**manifest, "metadata": {**metadata, "managedFields": listed} if listed else metadata}


def _taken(entries: Iterable[Object], changed: FieldSet | None, gone: FieldSet | None) -> list[Object]:
    """Return the entries of others, without what was changed or removed."""
    result = []
    for entry in entries:
        fields: FieldSet | None = entry.get("fieldsV1") or {}
        if fields and changed:
            fields = difference(fields, changed)
        if fields and gone:
            fields = without(fields, gone)
        if fields:
            result.append(entry if fields == entry["fieldsV1"] else {**entry, "fieldsV1": fields})
    return result


def with_owners(
    old: Object | None, new: Object, writer: Writer, shape: Shape, *, given: Sequence[JsonValue] = ()
) -> Object:
    """Return an object after a create, update or patch, with entries for the owners of its fields.

    Args:
        old: The object before; `None` for a new one.
        new: The object after; its own `managedFields` are ignored.
        writer: The writer.
        shape: How the kind merges.
        given: The entries that the client sends, which replace those of the object. One empty entry drops all owners;
            if there are none, or malformed ones, those of the object stay.
    """
    before = _owned_part(old) if old is not None else {"metadata": {}}
    changed, gone = compared(before, _owned_part(new), shape)
    entries = _entries(old) if old is not None else []
    if list(given) == [{}]:
        entries = []
    elif given and all(map(_is_entry, given)):
        entries = [object_at(value) for value in given]
    if not changed and not gone:
        return _with_entries(new, entries)
    mine = next((entry for entry in entries if writer.owns(entry, _UPDATE)), None)
    own: FieldSet | None = mine["fieldsV1"] if mine is not None else None
    if own and gone:
        own = without(own, gone)
    own = union(own, changed)
    others = _taken((entry for entry in entries if entry is not mine), changed, gone)
    if not own:
        return _with_entries(new, others)
    return _with_entries(new, [*others, writer.entry(_UPDATE, own)])


def _is_entry(value: JsonValue) -> bool:
    """Return whether a value is an entry of `managedFields`."""
    return (
        text_at(value, "operation") in (_APPLY, _UPDATE)
        and bool(text_at(value, "apiVersion"))
        and _is_set(object_at(value).get("fieldsV1"))
    )


def _is_set(value: JsonValue) -> bool:
    if not isinstance(value, dict):
        return False
    return all(_is_step(step) and _is_set(row) for step, row in value.items())


def _is_step(step: str) -> bool:
    kind, text = step[:2], step[2:]
    if kind not in ("k:", "v:"):
        return step == "." or kind == "f:"
    try:
        plain = json.loads(text)
    except ValueError:
        return False
    return kind == "v:" or isinstance(plain, dict)


class _Conflict(NamedTuple):
    manager: str
    path: str


def applied(live: Object | None, config: Object, writer: Writer, shape: Shape, *, force: bool) -> Object:
    """Return an object after server-side apply.

    Args:
        live: The current object; `None` if there is none.
        config: The configuration to apply.
        writer: The writer.
        shape: How the kind merges.
        force: Whether to take fields over from others.

    Raises:
        RefusedError: Fields that would change belong to others (409).
    """
    names = {name: object_at(config, "metadata").get(name) for name in ("name", "namespace", "generateName")}
    there = (
        live
        if live is not None
        else {
            "apiVersion": config["apiVersion"],
            "kind": config["kind"],
            "metadata": {name: value for name, value in names.items() if value},
        }
    )
    wanted = _owned_part(config)
    entries = _entries(there)
    if live is not None and not entries:
        entries = [_before_first_apply(live, writer, shape)]
    mine = next((entry for entry in entries if writer.owns(entry, _APPLY)), None)
    others = [entry for entry in entries if entry is not mine]
    own = fields_of({name: number for name, number in wanted.items() if number or name != "metadata"}, shape)
    result = merged(there, wanted, shape)
    if mine is not None:
        result = _pruned(result, mine["fieldsV1"], own, others, shape)
    changed, gone = compared(_owned_part(there), _owned_part(result), shape)
    conflicts = list(_conflicts(others, changed))
    if conflicts and not force:
        raise _refusal(conflicts)
    others = _taken(others, changed, gone)
    if mine is not None and mine["fieldsV1"] == own and not changed and not gone:
        return _with_entries(result, [*others, mine])
    return _with_entries(result, [*others, writer.entry(_APPLY, own)] if own else others)


def _before_first_apply(live: Object, writer: Writer, shape: Shape) -> Object:
    fields = fields_of(_owned_part(live), shape, is_new=True)
    return {**writer.entry(_UPDATE, fields), "manager": "before-first-apply"}


def _pruned(result: Object, before: FieldSet, own: FieldSet, others: Iterable[Object], shape: Shape) -> Object:
    """Remove what was applied before, is no longer applied, and belongs to nobody else."""
    dropped = difference(before, own)
    claimed: FieldSet = own
    for fields in (own, *(entry["fieldsV1"] for entry in others)):
        if not dropped:
            return result
        dropped = _unclaimed(dropped, fields)
        claimed = union(claimed, fields) or {}
    pruned: Object = removed(result, dropped, claimed, shape) if dropped else result
    return pruned


def _unclaimed(dropped: FieldSet, claimed: FieldSet) -> FieldSet | None:
    """Return what is dropped and not claimed by others, who also keep the maps and items around their fields."""
    result: FieldSet = {}
    for step, number in dropped.items():
        if step == ".":
            continue
        rest = _unclaimed(number, claimed[step]) if step in claimed else number
        if rest is not None:
            result[step] = rest
    if result:
        return result
    return None if claimed or not dropped else {}


def _conflicts(others: Iterable[Object], changed: FieldSet | None) -> Iterable[_Conflict]:
    for entry in others:
        both = intersection(entry["fieldsV1"], changed) if changed else None
        for path in sorted(paths(both)) if both else ():
            yield _Conflict(_described(entry), path)


def _described(entry: Object) -> str:
    name = f'"{text_at(entry, "manager")}"'
    if text_at(entry, "operation") == _APPLY:
        return name
    subresource = text_at(entry, "subresource")
    within = f' with subresource "{subresource}"' if subresource else ""
    return f"{name}{within} using {text_at(entry, 'apiVersion')}"


def _refusal(conflicts: list[_Conflict]) -> RefusedError:
    causes: list[JsonValue] = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {conflict.manager}", "field": conflict.path}
        for conflict in conflicts
    ]
    if len(conflicts) == 1:
        message = f"Apply failed with 1 conflict: conflict with {conflicts[0].manager}: {conflicts[0].path}"
    else:
        lines = []
        for manager in sorted({conflict.manager for conflict in conflicts}):
            lines.append(f"conflicts with {manager}:")
            lines += [f"- {conflict.path}" for conflict in conflicts if conflict.manager == manager]
        message = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
    return RefusedError(409, message, details={"causes": causes})
