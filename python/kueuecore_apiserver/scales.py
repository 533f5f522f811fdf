"""The subresource `scale`: the replicas of an object, whatever its kind."""

from __future__ import annotations

from typing import Any

from kueuecore._json import object_at, text_at
from kueuecore_apiserver.refusals import no_such_resource
from kueuecore_apiserver.requests import Object
from kueuecore_apiserver.resources import Resource

__all__ = ["scale_of", "scaled"]


def scale_of(resource: Resource, manifest: Object) -> Object:
    """Return the scale of an object.

    Raises:
        RefusedError: The kind cannot be scaled (404).
    """
    if resource.scale is None:
        raise no_such_resource()
    metadata = {
        name: manifest["metadata"][name]
        for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if name in manifest["metadata"]
    }
    status: Object = {"replicas": _at(manifest, resource.scale.status) or 0}
    selector = _at(manifest, resource.scale.selector) if resource.scale.selector else _selector(manifest)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": _at(manifest, resource.scale.spec) or 0},
        "status": {**status, "selector": selector} if selector else status,
    }


def _selector(manifest: Object) -> str:
    labels = object_at(manifest, "spec", "selector", "matchLabels")
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


def scaled(resource: Resource, manifest: Object, scale: Object) -> Object:
    """Return an object with the replicas of a scale.

    Raises:
        RefusedError: The kind cannot be scaled (404).
    """
    if resource.scale is None:
        raise no_such_resource()
    new = _with(manifest, resource.scale.spec, object_at(scale, "spec").get("replicas", 0))
    version = text_at(scale, "metadata", "resourceVersion")
    return {**new, "metadata": {**new["metadata"], **({"resourceVersion": version} if version else {})}}


def _at(manifest: Object, path: tuple[str, ...]) -> Any:
    return object_at(manifest, *path[:-1]).get(path[-1])


def _with(value: Object, path: tuple[str, ...], wanted: Any) -> Object:
    if len(path) == 1:
        return {**value, path[0]: wanted}
    return {**value, path[0]: _with(object_at(value, path[0]), path[1:], wanted)}
