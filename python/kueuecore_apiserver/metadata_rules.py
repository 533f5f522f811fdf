"""The rules for names, labels and finalizers of any kind."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from kueuecore._json import list_at, object_at, text_at
from kueuecore._names import label_key_problems, label_problems, subdomain_problems
from kueuecore_apiserver.refusals import Cause, bad_request, invalid
from kueuecore_apiserver.requests import Object
from kueuecore_apiserver.resources import Resource

__all__ = ["check", "without_empty"]

_LABEL_VALUE = re.compile("(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_MAX_VALUE = 63
_LEFT_OUT = ("annotations", "finalizers", "labels", "ownerReferences")
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_RBAC = "rbac.authorization.k8s.io"


def check(resource: Resource, new: Object, old: Object | None) -> None:
    """Check the metadata of an object.

    Args:
        resource: Its kind.
        new: The object.
        old: The object before; `None` for a new one.

    Raises:
        RefusedError: A field is of another type (400), or something in it is not allowed (422).
    """
    for field, wanted in _mistyped(new):
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: json: cannot '
            f"unmarshal the value of {field} into a Go value of type {wanted}"
        )
    causes = list(_causes(resource, new, old))
    if causes:
        raise invalid(resource.group, resource.kind, text_at(new, "metadata", "name"), causes)


def without_empty(new: Object) -> Object:
    """Return an object without empty lists and maps in its metadata, which a server leaves out."""
    metadata = new["metadata"]
    empty = [name for name in _LEFT_OUT if name in metadata and not metadata[name]]
    return {**new, "metadata": {k: v for k, v in metadata.items() if k not in empty}} if empty else new


def _mistyped(new: Object) -> Iterator[tuple[str, str]]:
    """Yield fields that no decoder can read, and what they should be."""
    for name in ("spec", "status"):
        if not isinstance(new.get(name), dict | None):
            yield name, "struct"
    metadata = new["metadata"]
    for name in ("name", "generateName", "namespace"):
        if not isinstance(metadata.get(name), str | None):
            yield f"metadata.{name}", "string"
    for name in ("labels", "annotations"):
        texts = metadata.get(name)
        if not isinstance(texts, dict | None) or not all(isinstance(text, str) for text in (texts or {}).values()):
            yield f"metadata.{name}", "map[string]string"
    for name, kind, words in (("finalizers", str, "[]string"), ("ownerReferences", dict, "[]v1.OwnerReference")):
        items = metadata.get(name)
        if not isinstance(items, list | None) or not all(isinstance(item, kind) for item in items or ()):
            yield f"metadata.{name}", words


def _causes(resource: Resource, new: Object, old: Object | None) -> Iterator[Cause]:
    metadata = object_at(new, "metadata")
    if old is None:
        yield from _name_causes(resource, metadata)
    labels = object_at(metadata, "labels")
    if old is None or labels != object_at(old, "metadata", "labels"):
        for key, value in labels.items():
            yield from (Cause("metadata.labels", _bad(key, problem)) for problem in label_key_problems(key))
            if len(text_at(labels, key)) > _MAX_VALUE:
                yield Cause("metadata.labels", _bad(value, f"must be no more than {_MAX_VALUE} bytes"))
            elif not _LABEL_VALUE.fullmatch(text_at(labels, key)):
                yield Cause("metadata.labels", _bad(value, _LABEL_RULE))
    for key in object_at(metadata, "annotations"):
        yield from (Cause("metadata.annotations", _bad(key, problem)) for problem in label_key_problems(key.lower()))
    yield from _finalizer_causes(resource, metadata)
    yield from _owner_causes(metadata)
    if old is not None and "deletionTimestamp" in old["metadata"]:
        before = list_at(old, "metadata", "finalizers")
        more = [finalizer for finalizer in list_at(metadata, "finalizers") if finalizer not in before]
        if more:
            listed = ", ".join(f'"{finalizer}"' for finalizer in more)
            yield Cause(
                "metadata.finalizers",
                "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{listed}}}",
            )


def _name_causes(resource: Resource, metadata: Object) -> Iterator[Cause]:
    name = text_at(metadata, "name")
    if not name:
        yield Cause("metadata.name", "Required value: name or generateName is required")
        return
    if resource.group == _RBAC:
        problems = [] if "/" not in name and "%" not in name and name not in (".", "..") else ["may not contain '/'"]
    elif resource.kind in ("Namespace", "Service"):
        problems = label_problems(name)
    else:
        problems = subdomain_problems(name)
    yield from (Cause("metadata.name", _bad(name, problem)) for problem in problems)


def _finalizer_causes(resource: Resource, metadata: Object) -> Iterator[Cause]:
    """Yield the finalizers that are no qualified names; core kinds want a domain, too."""
    for index, finalizer in enumerate(map(str, list_at(metadata, "finalizers"))):
        problems = list(label_key_problems(finalizer))
        yield from (Cause("metadata.finalizers", _bad(finalizer, problem)) for problem in problems)
        if not resource.group and not problems and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield Cause(f"metadata.finalizers[{index}]", _bad(finalizer, why))


def _owner_causes(metadata: Object) -> Iterator[Cause]:
    refs = [object_at(reference) for reference in list_at(metadata, "ownerReferences")]
    for ref in refs:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not text_at(ref, name):
                yield Cause(f"metadata.ownerReferences.{name}", 'Invalid value: "": must not be empty')
        if (text_at(ref, "apiVersion"), text_at(ref, "kind")) == ("v1", "Event"):
            shown = json.dumps(ref, separators=(",", ":"))
            why = "/v1, Kind=Event is disallowed from being an owner"
            yield Cause("metadata.ownerReferences", f"Invalid value: {shown}: {why}")
    controllers = [f"{ref.get('kind')}/{ref.get('name')}" for ref in refs if ref.get("controller") is True]
    if len(controllers) > 1:
        shown = json.dumps(refs, separators=(",", ":"))
        yield Cause(
            "metadata.ownerReferences",
            f"Invalid value: {shown}: Only one reference can have Controller set to true. "
            f'Found "true" in references for {controllers[0]} and {controllers[1]}',
        )


def _bad(value: object, problem: str) -> str:
    return f"Invalid value: {json.dumps(value)}: {problem}"


_LABEL_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
