"""Configurations that stand in folders, files and pages, each with the objects that `kueuecore prove` searches."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kueuecore._json import text_at
from kueuecore.configuration import Configuration
from kueuecore.errors import KueuecoreError
from kueuecore.manifests import Manifest, parse_manifests

__all__ = ["Given", "configurations"]

_BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.S | re.M)
_OTHERS = ("Namespace", "Node", "PriorityClass")
_FILES = (".json", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Given:
    """A configuration.

    Args:
        name: Where it stands.
        manifests: Its objects, without workloads: those that are given would only be more shapes.
        configuration: Kueue's Configuration, if there is one.
    """

    name: str
    manifests: tuple[Manifest, ...]
    configuration: Configuration | None


def configurations(path: Path) -> Iterator[Given]:
    """Yield what has a ClusterQueue: a folder with all below it, a file, or each YAML block of a page.

    What cannot be read is left out: folders also hold traces, and pages parts of objects.
    """
    if path.suffix == ".md":
        blocks = _BLOCK.findall(path.read_text(encoding="utf-8"))
        texts = {f"{path}#{number}": [block] for number, block in enumerate(blocks, start=1)}
    else:
        files = sorted(it for it in path.rglob("*") if it.suffix in _FILES) if path.is_dir() else [path]
        texts = {str(path): [it.read_text(encoding="utf-8", errors="replace") for it in files]}
    for name, each in texts.items():
        found = _given(name, each)
        if any(text_at(it.object, "kind") == "ClusterQueue" for it in found.manifests):
            yield found


def _given(name: str, texts: Iterable[str]) -> Given:
    configuration: Configuration | None = None
    found: dict[tuple[str, str, str], Manifest] = {}
    for manifest in _read(texts):
        kind = text_at(manifest.object, "kind")
        if kind == "Configuration":
            configuration = Configuration.parse(json.dumps(manifest.object))
        elif kind != "Workload" and (kind in _OTHERS or "kueue" in text_at(manifest.object, "apiVersion")):
            namespace, own = (text_at(manifest.object, "metadata", part) for part in ("namespace", "name"))
            # A folder may hold a queue before and after a change.
            found.setdefault((kind, namespace, own), manifest)
    return Given(name, tuple(found.values()), configuration)


def _read(texts: Iterable[str]) -> Iterator[Manifest]:
    for text in texts:
        try:
            yield from parse_manifests(text)
        except KueuecoreError:
            continue
