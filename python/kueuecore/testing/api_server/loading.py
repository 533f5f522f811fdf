"""Loads objects from manifests and files, by the rules of a request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from kueuecore._json import list_at, object_at, text_at
from kueuecore.testing.api_server.handler import Handler
from kueuecore.testing.api_server.refusals import bad_request
from kueuecore.testing.api_server.requests import Object, Request
from kueuecore.testing.api_server.store import encoded

__all__ = ["in_order", "load_object", "read_files"]

_SUFFIXES = (".yaml", ".yml", ".json")
# Kinds that others need come first.
_FIRST = ("CustomResourceDefinition", "Namespace")


def load_object(handler: Handler, manifest: Object) -> None:
    """Create an object with its status.

    Raises:
        RefusedError: The server refuses it.
    """
    api_version, kind = text_at(manifest, "apiVersion"), text_at(manifest, "kind")
    resource = handler.store.registry.of_kind(api_version, kind)
    if resource is None:
        raise bad_request(f'no matches for kind "{kind}" in version "{api_version}": load its definition first')
    path = f"/apis/{api_version}" if resource.group else f"/api/{api_version}"
    if resource.namespaced:
        path += f"/namespaces/{text_at(manifest, 'metadata', 'namespace') or 'default'}"
    path += f"/{resource.plural}"
    headers = {"user-agent": "kueuecore-load", "content-type": "application/json"}
    handler.answer(Request.of("POST", path, headers), encoded(manifest))
    if resource.has_status and object_at(manifest, "status"):
        headers = {**headers, "content-type": "application/merge-patch+json"}
        path += f"/{text_at(manifest, 'metadata', 'name')}/status"
        handler.answer(Request.of("PATCH", path, headers), encoded({"status": manifest["status"]}))


def read_files(path: Path) -> Iterator[Object]:
    """Yield the manifests in a file, or in the files of a folder in the order of their names.

    Raises:
        OSError: A file cannot be read.
        ValueError: A document is not an object.
    """
    files = sorted(it for it in path.rglob("*") if it.suffix in _SUFFIXES) if path.is_dir() else [path]
    for file in files:
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            if document is None:
                continue
            if not isinstance(document, dict) or not text_at(document, "kind"):
                raise ValueError(f"{file}: each document must be an object with a kind")
            if text_at(document, "kind") == "List":
                yield from (dict(object_at(it)) for it in list_at(document, "items"))
            else:
                yield document


def in_order(manifests: list[Object]) -> list[Object]:
    """Sort manifests so that what others need comes first: kinds, then namespaces."""
    ranks = {kind: rank for rank, kind in enumerate(_FIRST)}
    return sorted(manifests, key=lambda it: ranks.get(text_at(it, "kind"), len(_FIRST)))
