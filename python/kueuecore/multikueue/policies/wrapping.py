"""Helpers for policies that wrap another dispatcher and leave to it what they do not decide themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from kueuecore.multikueue.dispatcher_protocol import (
    Dispatch,
    Dispatcher,
    KnownCluster,
    Nomination,
    Recall,
    RecallingDispatcher,
)

__all__ = ["among", "inner_recall"]


def among(inner: Dispatcher, dispatch: Dispatch, is_kept: Callable[[KnownCluster], bool]) -> Nomination:
    """Return the answer of a dispatcher that sees only some workers."""
    clusters = tuple(cluster for cluster in dispatch.clusters if is_kept(cluster))
    names = {cluster.name for cluster in clusters}
    nominated = tuple(name for name in dispatch.nominated if name in names)
    # If nothing is left of a round, the next one begins.
    begun = dispatch.nominated_at if nominated else None
    return inner.nominate(replace(dispatch, clusters=clusters, nominated=nominated, nominated_at=begun))


class _Wrapping(Protocol):
    @property
    def inner(self) -> Dispatcher: ...


def inner_recall(policy: _Wrapping, dispatch: Dispatch, cluster: str) -> Recall:
    """Return whether the inner dispatcher takes a workload back."""
    return policy.inner.recall(dispatch, cluster) if isinstance(policy.inner, RecallingDispatcher) else Recall()
