"""Finds a cluster and its context, with an error of our own if there is none."""

from __future__ import annotations

from pathlib import Path

from kubernetes.config import ConfigException

from kueuecore.errors import KueuecoreError
from kueuecore.kubernetes.api import Api
from kueuecore.kubernetes.credentials import Context, context_at

__all__ = ["NoClusterError", "connected"]


class NoClusterError(KueuecoreError):
    """There is no cluster, or no credentials for it."""


def connected(
    *, server: str = "", kubeconfig: str | Path | None = None, context: str | None = None
) -> tuple[Api, Context]:
    """Return a connection, and the context it is for.

    Args:
        server: As for `Api.connect`.
        kubeconfig: As for `Api.connect`.
        context: As for `Api.connect`.

    Raises:
        NoClusterError: Credentials cannot be found or read.
    """
    try:
        api = Api.connect(server=server, kubeconfig=kubeconfig, context=context)
    except ConfigException as error:
        raise NoClusterError(str(error)) from None
    return api, context_at(server=server, kubeconfig=kubeconfig, context=context)
