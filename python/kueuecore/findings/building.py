"""Builds facts about objects by loading them into an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.findings.facts import Facts
from kueuecore.findings.topology_objects import KUEUE_GROUP
from kueuecore.manifests import Manifest
from kueuecore.times import format_time
from kueuecore.world import World

__all__ = ["facts_of"]


def facts_of(
    given: Sequence[Manifest], *, configuration: Configuration | None, now: int | None = None, trusted: bool = False
) -> Facts:
    """Load objects into an engine, and return the facts about them.

    Args:
        given: The objects.
        configuration: Kueue's Configuration.
        now: The current time; by default the newest time in the objects.
        trusted: Whether they are a dump, which an API server has validated.

    Raises:
        ManifestError: An API server with Kueue would reject an object; lists everything that is wrong.
    """
    world = World.of(given, configuration=configuration, trusted=trusted)
    newest = world.newest_time()
    at = now if now is not None else newest if newest is not None else 0
    world = replace(world, manifests=tuple(_with_active_check(it, at) for it in world.manifests))
    engine = Engine(configuration)
    warnings = world.apply_to(engine, now=at).warnings
    return Facts(world, engine, given=given, configuration=configuration, now=at, warnings=warnings)


def _with_active_check(manifest: Manifest, now: int) -> Manifest:
    """Mark an AdmissionCheck as active, as its controller would: manifests have no status, and need none."""
    plain = manifest.object
    if text_at(plain, "kind") != "AdmissionCheck" or not text_at(plain, "apiVersion").startswith(KUEUE_GROUP):
        return manifest
    conditions = list_at(plain, "status", "conditions")
    if any(text_at(it, "type") == "Active" for it in conditions):
        return manifest
    active: JsonObject = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "",
        "lastTransitionTime": format_time(now),
    }
    status: JsonObject = {**object_at(plain, "status"), "conditions": [*conditions, active]}
    changed: dict[str, JsonValue] = {**plain, "status": status}
    return replace(manifest, object=changed)
