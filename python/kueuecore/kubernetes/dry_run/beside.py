"""Looks at the Kueue in a cluster."""

from __future__ import annotations

from urllib.parse import quote

from kueuecore.api_server import RefusedError
from kueuecore.kubernetes.api import Api, UnansweredError
from kueuecore.manifests import Manifest

__all__ = ["kueue_beside"]

_NAME = "kueue-controller-manager"
_SECONDS = 5.0


def kueue_beside(api: Api, *, namespace: str) -> tuple[Manifest, ...]:
    """Return Kueue's Deployment, which shows its release and its gates; nothing if it cannot be read.

    Args:
        api: The API server.
        namespace: The namespace of Kueue.
    """
    try:
        found = api.send(
            "GET", f"/apis/apps/v1/namespaces/{quote(namespace, safe='')}/deployments/{_NAME}", seconds=_SECONDS
        )
    except (RefusedError, UnansweredError):
        return ()
    return (Manifest(found),)
