"""Answers ConversionReviews: Kueue's objects of `v1beta1` become `v1beta2`, and never the other way round."""

from __future__ import annotations

import json

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._text import logged
from kueuecore.errors import KueuecoreError
from kueuecore.kubernetes.https.messages import Request, Response
from kueuecore.manifests import as_manifest
from kueuecore.preferred_versions import converted

__all__ = ["CONVERTED", "PATH", "convert"]

PATH = "/convert"
"""The path, which is Kueue's."""
CONVERTED = tuple(
    f"{plural}.kueue.x-k8s.io"
    for plural in ("clusterqueues", "cohorts", "localqueues", "multikueueclusters", "resourceflavors", "workloads")
)
"""The CustomResourceDefinitions whose versions Kueue converts."""
_REVIEW: JsonObject = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1"}
_NEWEST = "kueue.x-k8s.io/v1beta2"


def convert(request: Request) -> Response:
    """Answer a review: with all objects converted, or with why that is not possible."""
    uid = ""
    try:
        review = json.loads(request.body)
        if not isinstance(review, dict) or {name: review.get(name) for name in _REVIEW} != _REVIEW:
            return Response.text(400, "send a ConversionReview of apiextensions.k8s.io/v1\n")
        asked = object_at(review, "request")
        uid = text_at(asked, "uid")
        wanted = text_at(asked, "desiredAPIVersion")
        objects: list[JsonValue] = [_converted(object_at(row), wanted) for row in list_at(asked, "objects")]
    except (ValueError, RecursionError, KueuecoreError) as error:
        failed: JsonObject = {"status": "Failure", "message": logged(error)}
        return Response.json(200, {**_REVIEW, "response": {"uid": uid, "result": failed, "convertedObjects": []}})
    done: JsonObject = {"uid": uid, "result": {"status": "Success"}, "convertedObjects": objects}
    return Response.json(200, {**_REVIEW, "response": done})


def _converted(row: JsonObject, wanted: str) -> JsonObject:
    if text_at(row, "apiVersion") == wanted:
        return row
    if wanted != _NEWEST:
        raise ValueError(f"kueuecore converts to {_NEWEST} alone, not to {wanted}: write and read {_NEWEST}")
    return converted(as_manifest(row, "object"))
