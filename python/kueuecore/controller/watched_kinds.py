"""The kinds to list and watch."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import JsonObject, text_at
from kueuecore._kinds import KINDS, Watched
from kueuecore.jobs.context import group_of

__all__ = ["OF_NODES", "SOMETIMES_WATCHED", "WATCHED", "is_of_another_group"]


def _watched(*when: Watched) -> dict[str, tuple[str, str]]:
    return {kind.name: (kind.api_version, kind.plural) for kind in KINDS if kind.watched in when}


WATCHED: Mapping[str, tuple[str, str]] = _watched(Watched.ALWAYS)
"""What to list and watch, by kind: apiVersion and the plural in the path. List in this order: references come first."""
OF_NODES: Mapping[str, tuple[str, str]] = _watched(Watched.WITH_NODES)
"""The kinds that decide where pods run, if flavors name a topology."""
SOMETIMES_WATCHED: Mapping[str, tuple[str, str]] = _watched(Watched.SOMETIMES, Watched.WITH_NODES)
"""The kinds that are also taken in: they matter if pods claim devices, or flavors name a topology."""


def is_of_another_group(manifest: JsonObject, kinds: Mapping[str, tuple[str, str]]) -> bool:
    """Return whether an object's kind has the same name but belongs to another API group."""
    api_version, _ = kinds.get(text_at(manifest, "kind"), ("", ""))
    return bool(api_version) and group_of(text_at(manifest, "apiVersion") or api_version) != group_of(api_version)
