"""Implements `kueuecore serve --preflight`: looks for what stands in the way of running in Kueue's place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kueuecore.configuration import Configuration
from kueuecore.kubernetes.api import Api
from kueuecore.kubernetes.election import LeaseSettings
from kueuecore.kubernetes.preflight.leftovers import dead_conversions, dead_visibility, dead_webhooks, stuck_deletions
from kueuecore.kubernetes.preflight.look import Look
from kueuecore.kubernetes.preflight.needs import kueue_beside_it, lacking_kinds, lacking_rights, nobody_suspends
from kueuecore.kubernetes.preflight.obstacles import Level, Obstacle
from kueuecore.kubernetes.preflight.rights import needed_rights, watched_kinds

__all__ = ["Preflight", "preflight"]

_ORDER = (*Level,)


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a look at a cluster has found.

    Args:
        server_version: The version of the API server.
        n_rights: How many rights were asked about.
        obstacles: What was found, the worst first.
    """

    server_version: str
    n_rights: int
    obstacles: Sequence[Obstacle]

    @property
    def is_clear(self) -> bool:
        """Whether nothing stands in the way."""
        return not any(obstacle.level is Level.ERROR for obstacle in self.obstacles)


def preflight(api: Api, configuration: Configuration, lease: LeaseSettings | None, *, user: str = "") -> Preflight:
    """Look for what stands in the way of `serve` in a cluster. Nothing is written there.

    Args:
        api: The API server, with the credentials of `serve`.
        configuration: The Configuration of `serve`.
        lease: The Lease of its election; `None`: there is none.
        user: Whose rights to ask about; empty: those of the credentials.

    Raises:
        RefusedError: The server refuses to answer, such as for want of valid credentials.
        UnansweredError: It does not answer.
    """
    watched = watched_kinds(api, configuration)
    rights = needed_rights(api, configuration, lease)
    look = Look(api)
    version = look.version
    found = [
        *lacking_kinds(look, watched, configuration.release),
        *lacking_rights(api, rights, user=user),
        *dead_webhooks(look, rights),
        *dead_conversions(look),
        *dead_visibility(look),
        *stuck_deletions(look, watched.keys()),
        *kueue_beside_it(look, configuration.release, lease),
        *nobody_suspends(look),
    ]
    found += _unread(look)
    return Preflight(version, len(rights), sorted(found, key=lambda obstacle: _ORDER.index(obstacle.level)))


def _unread(look: Look) -> Iterator[Obstacle]:
    """Name what could not be looked at, as it may stand in the way."""
    for resource in sorted(look.unread):
        message = "cannot be looked at: the credentials may not read them"
        yield Obstacle(Level.ERROR, "reading", resource, message, ("kubectl apply -f deploy/preflight.yaml",))
