"""Turns writes into requests to an API server: creates, merge patches and deletes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from kueuecore._arguments import each, instance
from kueuecore._json import JsonObject, object_at, text_at
from kueuecore._patches import merge_patch
from kueuecore.errors import ObjectRef
from kueuecore.jobs.integration import Write, WriteKind
from kueuecore.manifests import object_ref

__all__ = ["Request", "Verb", "requests_of"]


class Verb(StrEnum):
    """The verb of a request, as in RBAC roles."""

    CREATE = "create"
    PATCH = "patch"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Request:
    """One request to an API server.

    Args:
        verb: Create, patch (a JSON merge patch, RFC 7386) or delete.
        api_version: Group and version of the object.
        object: Kind, name and namespace of the object.
        subresource: `status`, or empty for the object itself.
        body: The object to create, the patch, or the options of a deletion. It has the `resourceVersion` that it was
            made for, so that a server refuses it with a conflict (409) if somebody else wrote first.
    """

    verb: Verb
    api_version: str
    object: ObjectRef
    subresource: str
    body: JsonObject

    def following(self, answer: JsonObject) -> Request:
        """Return the request with the `resourceVersion` of an object that a server has just returned.

        Without it, the request would undo what somebody else writes in between: a patch replaces whole lists, such as
        conditions. A request that already has a `resourceVersion` is returned unchanged.

        Args:
            answer: The object as stored by the previous request.

        Raises:
            TypeError: `answer` is not plain data.

        Example:
            >>> pod = ObjectRef("Pod", "a", "lab")
            >>> request = Request(Verb.PATCH, "v1", pod, "", {"metadata": {"labels": {"b": "c"}}})
            >>> request.following({"kind": "Pod", "metadata": {"name": "a", "resourceVersion": "8"}}).body
            {'metadata': {'resourceVersion': '8', 'labels': {'b': 'c'}}}
        """
        version = text_at(instance("answer", answer, dict), "metadata", "resourceVersion")
        if self.verb is Verb.CREATE or not version:
            return self
        part = "preconditions" if self.verb is Verb.DELETE else "metadata"
        return replace(self, body={**self.body, part: {"resourceVersion": version, **object_at(self.body, part)}})


def requests_of(writes: Iterable[Write], stored: Callable[[ObjectRef], JsonObject | None]) -> tuple[Request, ...]:
    """Return the requests for writes, in their order.

    Of several for one object, each builds on the one before, so only the first has a `resourceVersion`: send the others
    as [`following`][kueuecore.jobs.Request.following] the answer.

    Args:
        writes: The writes.
        stored: Returns an object as it was when the writes were made; None if it did not exist.

    Raises:
        TypeError: `writes` are not `Write`s of plain data, or `stored` is not a function that returns plain data.

    Example:
        >>> job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "namespace": "lab",
        ...        "uid": "u1", "resourceVersion": "7"}, "spec": {"suspend": True}}
        >>> (request,) = requests_of([Write({**job, "spec": {"suspend": False}})], lambda ref: job)
        >>> request.verb.value, request.body
        ('patch', {'spec': {'suspend': False}, 'metadata': {'uid': 'u1', 'resourceVersion': '7'}})
    """
    if not callable(stored):
        raise TypeError(f"stored must be a function, not {type(stored).__name__}")
    newest: dict[ObjectRef, JsonObject] = {}
    requests = []
    sent: set[ObjectRef] = set()
    for index, write in enumerate(each("writes", writes)):
        instance(f"writes[{index}].manifest", instance(f"writes[{index}]", write, Write).manifest, dict)
        after, ref = write.manifest, object_ref(write.manifest)
        api_version = text_at(after, "apiVersion")
        if write.kind is WriteKind.CREATE:
            requests.append(Request(Verb.CREATE, api_version, ref, "", after))
            continue
        before = newest.get(ref) or _known(stored(ref)) or after
        metadata = object_at(before, "metadata")
        guard: JsonObject = {key: metadata[key] for key in ("uid", "resourceVersion") if key in metadata}
        if ref in sent:
            guard.pop("resourceVersion", None)
        newest[ref] = after
        if write.kind is WriteKind.DELETE:
            options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
            requests.append(Request(Verb.DELETE, api_version, ref, "", {**options, "preconditions": guard}))
            continue
        subresource = "status" if write.kind is WriteKind.UPDATE_STATUS else ""
        patch = merge_patch(_part(before, subresource), _part(after, subresource))
        if patch:
            sent.add(ref)
            patch["metadata"] = {**object_at(patch, "metadata"), **guard}
            requests.append(Request(Verb.PATCH, api_version, ref, subresource, patch))
    return tuple(requests)


def _known(found: JsonObject | None) -> JsonObject | None:
    return None if found is None else instance("what stored returns", found, dict)


def _part(manifest: JsonObject, subresource: str) -> JsonObject:
    """Return the part of an object that a request to it, or to its status, can change."""
    if subresource:
        return {"status": manifest.get("status", {})}
    kept = {key: it for key, it in manifest.items() if key != "status"}
    # Only the server sets these.
    given = ("resourceVersion", "uid", "generation", "creationTimestamp", "managedFields")
    metadata = {key: it for key, it in object_at(manifest, "metadata").items() if key not in given}
    return {**kept, "metadata": metadata}
