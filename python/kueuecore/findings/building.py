"""Builds facts about objects by loading them into an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.findings.active_checks import as_active
from kueuecore.findings.facts import Facts
from kueuecore.manifests import Manifest
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
    # Manifests have no status, and need none.
    world = replace(world, manifests=tuple(as_active(manifest, now=at) for manifest in world.manifests))
    engine = Engine(configuration)
    applied = world.apply_to(engine, now=at)
    return Facts(
        world,
        engine,
        given=given,
        configuration=configuration,
        now=at,
        warnings=applied.warnings,
        unread=frozenset(applied.unread),
    )
