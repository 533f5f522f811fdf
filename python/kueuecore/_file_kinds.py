"""Says which command a file is for, if it was given to another one."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore._json import JsonObject, text_at

__all__ = ["is_of_command", "use_of"]

_OURS = "kueuecore/"
_USES = {
    "Scenario": "use `kueuecore simulate` for a Scenario",
    "PolicyTest": "use `kueuecore test` for a PolicyTest",
    "TraceRules": "name TraceRules in a scenario, at `traces[].rules`, and use `kueuecore simulate`",
    "Configuration": "pass a Configuration with --config, or name it in a scenario, at `cluster.configuration`",
}
_OF_OBJECTS = "use `kueuecore run` for the objects of a cluster"


def is_of_command(plain: JsonObject) -> bool:
    """Whether a document is for a command of its own, such as a Scenario, rather than an object of a cluster."""
    return text_at(plain, "apiVersion").startswith(_OURS) and text_at(plain, "kind") in _USES


def use_of(documents: Iterable[JsonObject]) -> str:
    """Say which command takes some documents; empty if none does.

    Example:
        >>> use_of([{"apiVersion": "kueuecore/v1", "kind": "PolicyTest"}])
        'use `kueuecore test` for a PolicyTest'
        >>> use_of([{"apiVersion": "v1", "kind": "Node"}]), use_of([{"kind": "Scenariu"}])
        ('use `kueuecore run` for the objects of a cluster', '')
    """
    for it in documents:
        kind, version = text_at(it, "kind"), text_at(it, "apiVersion")
        if version.startswith((_OURS, "config.kueue.x-k8s.io/")):
            return _USES.get(kind, "")
        if version and kind:
            return _OF_OBJECTS
    return ""
