"""Loads objects from manifests, by the rules of a request."""

from __future__ import annotations

from kueuecore._json import object_at, text_at
from kueuecore_apiserver.handler import Handler
from kueuecore_apiserver.refusals import bad_request
from kueuecore_apiserver.requests import Object, Request
from kueuecore_apiserver.store import encoded

__all__ = ["in_order", "load_object"]

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


def in_order(manifests: list[Object]) -> list[Object]:
    """Sort manifests so that what others need comes first: kinds, then namespaces."""
    ranks = {kind: rank for rank, kind in enumerate(_FIRST)}
    return sorted(manifests, key=lambda manifest: ranks.get(text_at(manifest, "kind"), len(_FIRST)))
