"""Finds files that look like Kubernetes objects but are parts of charts and kustomizations."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kueuecore._documents import documents
from kueuecore._file_kinds import KUSTOMIZATION, PATCH, TEMPLATE
from kueuecore._files import read_file
from kueuecore._json import JsonValue, list_at, text_at
from kueuecore.errors import ManifestError

__all__ = ["parts_of_tools"]

_GROUP = "kustomize.config.k8s.io/"


def parts_of_tools(files: Sequence[Path]) -> Mapping[Path, tuple[str, str]]:
    """Return the templates of the charts, and the kustomizations and their patches, among some files.

    Args:
        files: All files of a tree.

    Returns:
        What each is, and what to do with it.
    """
    charts = {file.parent for file in files if file.stem == "Chart"}
    found = {file: TEMPLATE for file in files if charts and _is_template(file, charts)}
    patches: set[str] = set()
    for file in files:
        if file.stem == "kustomization":
            for value in _values(file):
                patches |= {os.path.normpath(file.parent / name) for name in _patches(value)}
                if text_at(value, "apiVersion").startswith(_GROUP):
                    found[file] = KUSTOMIZATION
    return {**found, **{file: PATCH for file in files if os.path.normpath(file) in patches}}


def _is_template(file: Path, charts: set[Path]) -> bool:
    return any(parent.name == "templates" and parent.parent in charts for parent in file.parents)


def _values(file: Path) -> list[JsonValue]:
    """The documents of a file; none if it cannot be read, which is reported elsewhere."""
    try:
        return [document.value for document in documents(read_file(file), str(file))]
    except (OSError, ManifestError):
        return []


def _patches(kustomization: JsonValue) -> Iterator[str]:
    """Yield the files that a kustomization names as patches."""
    for key in ("patches", "patchesJson6902"):
        yield from filter(None, (text_at(value, "path") for value in list_at(kustomization, key)))
    # Each is the name of a file, or a patch itself.
    merged = list_at(kustomization, "patchesStrategicMerge")
    yield from (value for value in merged if isinstance(value, str) and "\n" not in value)
