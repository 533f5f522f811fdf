"""Finds objects that are given twice, for the rule and for each command that reads a state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from kueuecore._json import text_at
from kueuecore.errors import ObjectRef, Problem
from kueuecore.manifests import API_VERSIONS, Manifest
from kueuecore.object_batch import identity

__all__ = ["repeated"]


def repeated(manifests: Iterable[Manifest], *, unread: Collection[str]) -> Iterator[tuple[Manifest, Problem]]:
    """Objects that are given twice with different contents.

    Args:
        manifests: The objects.
        unread: Kinds that are not read: it does not matter which of their objects counts, and the overlays of a tree
            repeat them.
    """
    seen: dict[tuple[str, ObjectRef], Manifest] = {}
    for manifest in manifests:
        kind = text_at(manifest.object, "kind")
        if not text_at(manifest.object, "metadata", "name") or (kind in unread and kind not in API_VERSIONS):
            continue
        key = identity(manifest.object)
        before = seen.get(key)
        if before is not None and before.object != manifest.object:
            yield manifest, manifest.problem(f"it is also in {before.source}; the last one counts")
        seen[key] = manifest
