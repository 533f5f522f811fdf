"""Finds objects that are given twice, for the rule and for each command that reads a state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kueuecore._json import text_at
from kueuecore.errors import ObjectRef, Problem
from kueuecore.manifests import Manifest
from kueuecore.object_batch import identity

__all__ = ["repeated"]


def repeated(manifests: Iterable[Manifest]) -> Iterator[tuple[Manifest, Problem]]:
    """Objects that are given twice with different contents."""
    seen: dict[tuple[str, ObjectRef], Manifest] = {}
    for manifest in manifests:
        if not text_at(manifest.object, "metadata", "name"):
            continue
        key = identity(manifest.object)
        before = seen.get(key)
        if before is not None and before.object != manifest.object:
            yield manifest, manifest.problem(f"it is also in {before.source}; the last one counts")
        seen[key] = manifest
