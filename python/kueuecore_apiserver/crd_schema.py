"""Applies a CustomResourceDefinition to objects as an API server does: returns what it stores, or why it refuses.

It works with any definition, Kueue's ([`crds`][kueuecore_apiserver.crds.crds]) or your own, and needs no server.
Unknown fields are dropped and defaults filled in; then types, formats, patterns, bounds, enumerations, required fields
and lists are checked, then the CEL rules, including those for updates (`oldSelf`). As on a server, an update may leave
invalid values as they were. `metadata` is checked as for any object.

The gaps of CEL are listed in [`cel_rules`][kueuecore_apiserver.schemas.cel_rules], and those of schemas in
[`structural_schema`][kueuecore_apiserver.schemas.structural_schema]. Objects are not converted between versions: use
the schema of the version that an object is written in. Errors show only the beginning of values that are longer than
any name.

Example:
    >>> from kueuecore_apiserver.crds import crd
    >>> queues = CrdSchema.of(crd("LocalQueue"), "v1beta2")
    >>> queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
    ...          "metadata": {"name": "jobs", "namespace": "lab"}, "spec": {"clusterQueue": "lab", "color": "red"}}
    >>> stored = queues.stored(queue)
    >>> stored["spec"]
    {'clusterQueue': 'lab', 'stopPolicy': 'None'}
    >>> try:
    ...     queues.stored({**stored, "spec": {"clusterQueue": "other"}}, stored)
    ... except RefusedError as refused:
    ...     print(refused)
    LocalQueue.kueue.x-k8s.io "jobs" is invalid: spec.clusterQueue: Invalid value: "other": field is immutable
    >>> queues.stored({**stored, "status": {"pendingWorkloads": 3}}, stored, subresource="status")["status"]
    {'pendingWorkloads': 3}
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Self, TypeAlias

from kueuecore import _core
from kueuecore._arguments import instance
from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.errors import ManifestError
from kueuecore_apiserver.schemas.cel_rules import Rules, rules_of
from kueuecore_apiserver.schemas.field_errors import WHOLE, ErrorKind, FieldError, refusal, rendered
from kueuecore_apiserver.schemas.schema_compiler import compiled
from kueuecore_apiserver.schemas.structural_schema import ABSENT, Node

__all__ = ["CrdSchema"]

# An object as JSON: the caller knows what it holds.
_Object: TypeAlias = dict[str, Any]

_BLOCKING = {
    ErrorKind.NOT_SUPPORTED,
    ErrorKind.REQUIRED,
    ErrorKind.TOO_LONG,
    ErrorKind.TOO_MANY,
    ErrorKind.TYPE_INVALID,
}
_NOT_CHECKED = FieldError(
    WHOLE,
    ErrorKind.INVALID,
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation",
    "null",
)
_METADATA = {
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
    "managedFields",
}  # fmt: skip


class CrdSchema:
    """One version of a CustomResourceDefinition, compiled once.

    Create one with [`of`][kueuecore_apiserver.crd_schema.CrdSchema.of]. It is immutable, so threads may share it.
    """

    __slots__ = ("_node", "_rules", "_status", "group", "has_status", "is_namespaced", "kind", "version")

    def __init__(self, crd: JsonObject, version: str) -> None:
        spec = object_at(crd, "spec")
        served = {text_at(version, "name"): object_at(version) for version in list_at(spec, "versions")}
        if version not in served:
            raise ManifestError.of(
                f"no version {version!r}", field="spec.versions", remedy=f"one of {', '.join(served)}"
            )
        self.group = text_at(spec, "group")
        self.kind = text_at(spec, "names", "kind")
        self.version = version
        self.is_namespaced = text_at(spec, "scope") == "Namespaced"
        self.has_status = "status" in object_at(served[version], "subresources")
        schema = object_at(served[version], "schema", "openAPIV3Schema")
        where = f"spec.versions[{list(served).index(version)}].schema.openAPIV3Schema"
        self._node: Node = compiled(schema, where=where, is_resource=True)
        # A definition that keeps unknown fields keeps a status of which it says nothing.
        unknown = Node(preserves=self._node.preserves)
        self._status = self._node.properties.get("status", (unknown, ""))[0]
        self._rules: Rules | None = rules_of(self._node, where=where)

    @classmethod
    def of(cls, crd: JsonObject, version: str) -> Self:
        """Compile a version of a definition.

        Args:
            crd: A CustomResourceDefinition, `apiextensions.k8s.io/v1`.
            version: The version, such as `v1beta2`.

        Raises:
            ManifestError: The definition has no such version, or a pattern or rule that cannot be evaluated here.
        """
        return cls(instance("crd", crd, dict), version)

    def stored(self, new: _Object, old: _Object | None = None, *, subresource: str = "") -> _Object:
        """Return an object as a server stores it.

        Parts that an update leaves unchanged may be shared with `old`.

        If the definition has a subresource `status`, the status changes only in an update of that subresource, and
        nothing else changes there. Fields that a server sets itself (`uid`, `resourceVersion`, `generation`, times) are
        taken from `new`; in an update of the status, from `old`.

        Args:
            new: The object as sent, with its `apiVersion` and `kind`; it is not modified.
            old: The stored object, for an update.
            subresource: `status` for an update of the status.

        Raises:
            RefusedError: 422 `Invalid` with a cause for each error; 400 if `metadata` cannot be read.
            ValueError: An unknown subresource, or one of an object that is not stored.
        """
        if subresource and (subresource != "status" or not self.has_status or old is None):
            raise ValueError(f"no subresource {subresource!r} here: a status is updated, where there is one")
        if old is not None and subresource:
            written: _Object = {name: part for name, part in old.items() if name != "status"}
            if (status := new.get("status")) is not None:
                written["status"] = self._status.prepared(status)
            self._require(written, old, self._status_errors(written, old), only="status")
            return written
        prepared: _Object = self._node.prepared(new)
        if self.has_status:
            prepared.pop("status", None)
            if old is not None and "status" in old:
                prepared["status"] = old["status"]
        metadata = self._metadata_errors(prepared)
        errors: list[FieldError] = self._identity_errors(prepared)
        if not errors:
            errors = [*metadata, *self._shape_errors(self._node, prepared, ABSENT if old is None else old)]
        self._require(prepared, old, errors)
        return prepared

    def _status_errors(self, new: _Object, old: _Object) -> list[FieldError]:
        if "status" not in new:
            return []
        errors = self._shape_errors(self._status, new["status"], old.get("status", ABSENT))
        # An error without a path is about the whole status; the others get the prefix.
        return [replace(error, field="status" if error.field == WHOLE else f"status.{error.field}") for error in errors]

    @staticmethod
    def _shape_errors(node: Node, new: _Object, old: object) -> list[FieldError]:
        errors: list[FieldError] = []
        node.check(new, None, errors)
        if errors and old is not ABSENT:
            # Comparing is slower than checking, so it is done only if there are errors to forgive.
            errors.clear()
            node.check(new, None, errors, old)
        return [error if error.field else replace(error, field=WHOLE) for error in errors]

    def _require(self, new: _Object, old: _Object | None, errors: list[FieldError], *, only: str = "") -> None:
        """Check the lists and the rules, too; with `only`, just that field has new lists.

        Raises:
            RefusedError: Something is invalid.
        """
        if self._node.has_lists:
            entries: list[FieldError] = []
            self._node.check_lists({only: new.get(only)} if only else new, None, entries)
            if entries and old is not None:
                before: list[FieldError] = []
                self._node.check_lists(old, None, before)
                # An object that already had a duplicate entry may have any.
                entries = [] if before else entries
            errors += entries
        if self._rules is not None:
            if any(error.kind in _BLOCKING for error in errors):
                errors.append(_NOT_CHECKED)
            else:
                n_before = len(errors)
                self._rules.check(new, ABSENT if old is None else old, None, errors)
                errors[n_before:] = [
                    error if error.field else replace(error, field=WHOLE) for error in errors[n_before:]
                ]
        if errors:
            raise refusal(self.group, self.kind, text_at(new, "metadata", "name"), errors)

    def _identity_errors(self, new: _Object) -> list[FieldError]:
        wanted = {"kind": self.kind, "apiVersion": f"{self.group}/{self.version}"}
        return [
            FieldError(name, ErrorKind.INVALID, f"must be {number}", rendered(new.get(name, "")))
            for name, number in wanted.items()
            if new.get(name) != number
        ]

    def _metadata_errors(self, new: _Object) -> list[FieldError]:
        metadata = new.get("metadata") or {}
        if isinstance(metadata, dict):
            metadata = {name: row for name, row in metadata.items() if name in _METADATA and row is not None}
        written = json.dumps(metadata)
        new["metadata"] = json.loads(written)
        try:
            found = _core.metadata_problems(self.is_namespaced, written.encode())
        except ValueError as error:
            raise RefusedError(400, f"metadata: {error}") from None
        errors: list[FieldError] = []
        for reason, problem in found:
            if reason == ErrorKind.TYPE_INVALID:
                raise RefusedError(400, f"{problem.field}: {problem.message}")
            errors.append(FieldError.reported(problem.field, ErrorKind(reason), problem.message))
        return errors
