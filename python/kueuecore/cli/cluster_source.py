"""The state of a command from a cluster: listed when it is asked for, followed once somebody waits for changes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kueuecore._json import JsonObject, list_at, object_at
from kueuecore.cli.state_file import SettledState, settled_of
from kueuecore.cli.state_source import arguments_of, events_about
from kueuecore.cli.streams import to_stderr
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest, Source

if TYPE_CHECKING:
    from kueuecore.kubernetes.api import Api
    from kueuecore.kubernetes.cluster_objects import Listing
    from kueuecore.kubernetes.credentials import Context

__all__ = ["ClusterSource"]

_NOWHERE = "give the objects in files, or name a cluster with --kubeconfig, --context or --server"


class ClusterSource:
    """The state of a cluster. Nothing is written to it.

    Args:
        options: The options of `add_state`, without paths.

    Raises:
        ManifestError: There is no cluster, it does not answer, or its objects make no state.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._api, context = _connected(options)
        self.namespace = options.namespace or context.namespace
        self.title = context.name or options.server or "the cluster"
        # Some commands have no use for a time.
        now: int | None = getattr(options, "now", None)
        self.settings: Mapping[str, object] = {
            "trusted": True,
            "config": options.config,
            "kueue": options.kueue,
            "now": now if now is not None else time.time_ns(),
            "feature_gates": getattr(options, "feature_gates", []),
        }
        named = (("--kubeconfig", options.kubeconfig), ("--context", options.context), ("--server", options.server))
        asked = {**self.settings, "trusted": False, "now": now}
        self.arguments = (
            *(text for name, value in named if value for text in (name, str(value))),
            *arguments_of(asked),
        )
        self._listing: Listing | None = None
        self._state: SettledState | None = None

    @property
    def version(self) -> int:
        """How often the state has changed, from 1."""
        return 1

    def wait(self, version: int, *, seconds: float) -> int:
        """Wait until something has changed, or this long; returns the version."""
        time.sleep(seconds)
        return self.version

    def manifests(self) -> tuple[Manifest, ...]:
        """Return the objects, as they were listed."""
        listing = self._listed()
        return tuple(Manifest(plain, Source(self.title)) for plain in listing.objects)

    def state(self) -> SettledState:
        """Return the state."""
        if self._state is None:
            options = argparse.Namespace(**{**vars(self._options), **self.settings})
            self._state = settled_of(self.manifests(), options)
        return self._state

    def events(self, namespace: str, names: Iterable[str]) -> list[JsonObject]:
        """Return the Events about the objects of these names in a namespace, oldest first."""
        from kueuecore.api_server import RefusedError
        from kueuecore.kubernetes.api import UnansweredError

        found: list[JsonObject] = []
        for name in dict.fromkeys(names):
            try:
                answer = self._api.get(
                    f"/api/v1/namespaces/{namespace}/events", {"fieldSelector": f"involvedObject.name={name}"}
                )
            except (RefusedError, UnansweredError) as error:
                raise ManifestError.of(f"the events of {namespace}/{name} cannot be read: {error}") from None
            found += ({"kind": "Event", **object_at(event)} for event in list_at(answer, "items"))
        return events_about(found, namespace, names)

    def _listed(self) -> Listing:
        if self._listing is None:
            from kueuecore._kinds import KINDS
            from kueuecore.api_server import RefusedError
            from kueuecore.kubernetes.api import UnansweredError
            from kueuecore.kubernetes.cluster_objects import known_kinds, list_objects

            try:
                self._api.kinds = known_kinds(self._api)
                self._listing = list_objects(self._api, [kind.name for kind in KINDS], namespace=self.namespace)
            except (RefusedError, UnansweredError) as error:
                raise ManifestError.of(f"{self.title} cannot be read: {error}", remedy=_NOWHERE) from None
            if not self._options.quiet:
                to_stderr(*(f"warning: {unlisted}" for unlisted in self._listing.unlisted))
        return self._listing


def _connected(options: argparse.Namespace) -> tuple[Api, Context]:
    try:
        from kubernetes.config import ConfigException

        from kueuecore.kubernetes.api import Api
        from kueuecore.kubernetes.credentials import context_at
    except ImportError:
        message = "no files are given, and reading a cluster needs the extra `kubernetes`"
        remedy = "give files, or pip install 'kueuecore[kubernetes]'"
        raise ManifestError.of(message, remedy=remedy) from None
    place = {"server": options.server, "kubeconfig": options.kubeconfig, "context": options.context}
    try:
        return Api.connect(**place), context_at(**place)
    except ConfigException as error:
        raise ManifestError.of(f"no files are given, and no cluster is found: {error}", remedy=_NOWHERE) from None
