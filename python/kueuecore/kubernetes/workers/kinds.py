"""Knows the plurals of the kinds that a MultiKueue manager watches, also of kinds that only a Configuration names."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._kinds import KINDS

__all__ = ["places_of"]

_PLURALS = {kind.name: kind.plural for kind in KINDS}


def places_of(kinds: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return apiVersion and plural of each kind.

    Args:
        kinds: The apiVersion of each kind.

    Example:
        >>> places_of({"ClusterQueue": "kueue.x-k8s.io/v1beta2", "Policy": "example.com/v1"})
        {'ClusterQueue': ('kueue.x-k8s.io/v1beta2', 'clusterqueues'), 'Policy': ('example.com/v1', 'policies')}
    """
    return {kind: (api_version, _PLURALS.get(kind) or _guessed(kind)) for kind, api_version in kinds.items()}


def _guessed(kind: str) -> str:
    """Return the usual plural, as API machinery guesses it."""
    singular = kind.lower()
    if singular.endswith("s"):
        return f"{singular}es"
    return f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"
