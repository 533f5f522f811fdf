"""Turns the writes of a reconcile into what a server is sent: each change as a merge patch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from kueuecore._arguments import each, instance
from kueuecore._json import JsonObject, object_at
from kueuecore._patches import merge_patch
from kueuecore.errors import ObjectRef
from kueuecore.writes import Verb, Write, patch_of, reference

__all__ = ["requests_of"]


def requests_of(writes: Iterable[Write], stored: Callable[[ObjectRef], JsonObject | None]) -> tuple[Write, ...]:
    """Return the requests for writes, in their order: updates as merge patches.

    Of several for one object, each builds on the one before, so only the first has a `resourceVersion`: send the others
    as [`following`][kueuecore.writes.Write.following] the answer.

    Args:
        writes: The writes.
        stored: Returns an object as it was when the writes were made; None if it did not exist.

    Raises:
        TypeError: `writes` are not `Write`s of plain data, or `stored` is not a function that returns plain data.

    Example:
        >>> job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "namespace": "lab",
        ...        "uid": "u1", "resourceVersion": "7"}, "spec": {"suspend": True}}
        >>> (request,) = requests_of([Write(Verb.UPDATE, {**job, "spec": {"suspend": False}})], lambda ref: job)
        >>> request.verb.value, request.manifest["spec"], request.preconditions
        ('patch', {'suspend': False}, {'uid': 'u1', 'resourceVersion': '7'})
    """
    if not callable(stored):
        raise TypeError(f"stored must be a function, not {type(stored).__name__}")
    newest: dict[ObjectRef, JsonObject] = {}
    requests: list[Write] = []
    sent: set[ObjectRef] = set()
    for index, write in enumerate(each("writes", writes)):
        after = instance(f"writes[{index}].manifest", instance(f"writes[{index}]", write, Write).manifest, dict)
        if write.verb is Verb.CREATE:
            requests.append(write)
            continue
        ref = write.object
        before, is_first = newest.get(ref) or _known(stored(ref)) or after, ref not in sent
        newest[ref] = after
        if write.verb is Verb.DELETE:
            requests.append(replace(write, manifest=reference(before, is_of_version=is_first)))
        elif patch := merge_patch(_part(before, write.subresource), _part(after, write.subresource)):
            sent.add(ref)
            patch = patch_of(before, patch, is_of_version=is_first)
            requests.append(replace(write, verb=Verb.PATCH, manifest=patch))
    return tuple(requests)


def _known(found: JsonObject | None) -> JsonObject | None:
    return None if found is None else instance("what stored returns", found, dict)


def _part(manifest: JsonObject, subresource: str) -> JsonObject:
    """Return the part of an object that a request to it, or to its status, can change."""
    if subresource:
        return {"status": manifest.get("status", {})}
    kept = {key: value for key, value in manifest.items() if key != "status"}
    # Only the server sets these.
    given = ("resourceVersion", "uid", "generation", "creationTimestamp", "managedFields")
    metadata = {key: value for key, value in object_at(manifest, "metadata").items() if key not in given}
    return {**kept, "metadata": metadata}
