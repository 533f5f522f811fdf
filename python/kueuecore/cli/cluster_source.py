"""The state of a command from a cluster: listed on first use, followed once a caller waits for changes."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._text import counted
from kueuecore.api_server import RefusedError
from kueuecore.cli.configured import configured
from kueuecore.cli.state_file import SettledState
from kueuecore.cli.state_source import UnreadableError, arguments_of, events_about
from kueuecore.cli.streams import to_stderr
from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.findings.active_checks import as_active
from kueuecore.held_manifests import HeldManifests
from kueuecore.manifests import Manifest, Source
from kueuecore.steady_state import settle
from kueuecore.world import NAMESPACE_NAME_LABEL, World

if TYPE_CHECKING:
    from kueuecore.kubernetes.api import Api
    from kueuecore.kubernetes.credentials import Context
    from kueuecore.kubernetes.live_cluster import LiveCluster

__all__ = ["ClusterSource"]

_NOWHERE = "give the objects in files, or name a cluster with --kubeconfig, --context or --server"


class ClusterSource:
    """The state of a cluster. Nothing is written to it.

    Args:
        options: The options of `add_state`, without paths.

    Raises:
        ManifestError: There is no cluster, it does not answer, or its objects are invalid.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._api, context = _connected(options)
        self.namespace: str = options.namespace or context.namespace
        self.title = context.name or self._api.host
        # Some commands take no time, Configuration or gates.
        self._now: int | None = getattr(options, "now", None)
        self._asked: dict[str, Any] = {name: getattr(options, name, None) for name in ("config", "kueue")}
        self._gates: Sequence[tuple[str, bool]] = getattr(options, "feature_gates", ())
        place = (("--kubeconfig", options.kubeconfig), ("--context", options.context), ("--server", options.server))
        named = (text for name, value in place if value for text in (name, str(value)))
        self.arguments = (*named, *arguments_of({**self.settings, "trusted": False, "now": self._now}))
        self._lock = threading.RLock()
        self._cluster: LiveCluster | None = None
        self._state: SettledState | None = None
        self._settled_version = 0
        # Jobs without a Workload that a question named.
        self._jobs: dict[str, tuple[JsonObject, ...]] = {}
        self._notes: Sequence[str] = ()
        self.unlisted: Sequence[object] = ()
        """The kinds that may not be listed, each as a sentence."""

    @property
    def settings(self) -> Mapping[str, object]:
        """Options of `add_state` by their names, which are those of every command on this state."""
        return {"trusted": True, "now": self._time(), "feature_gates": [*self._gates], **self._asked}

    @property
    def version(self) -> int:
        """A number that grows whenever the state changes."""
        return self._live.version

    def wait(self, version: int, *, seconds: float) -> int:
        """Wait until something has changed, or this long; returns the version."""
        with self._explained():
            return self._live.wait(version, seconds=seconds)

    def manifests(self) -> tuple[Manifest, ...]:
        """Return the objects; of Workloads only the fields that decisions read."""
        return tuple(self.state().world.manifests)

    def dumped(self, *, with_events: bool) -> list[JsonObject]:
        """List everything again, unchanged.

        Args:
            with_events: List Events too.
        """
        from kueuecore.kubernetes.cluster_objects import EVENT, known_kinds, list_objects

        with self._explained():
            self._api.kinds = {**known_kinds(self._api), **(EVENT if with_events else {})}
            listing = list_objects(self._api, self._api.kinds, self.namespace)
        self.unlisted = listing.unlisted
        return [*listing.objects]

    def state(self, named: str = "") -> SettledState:
        """Return the newest state, after cycles ran until nothing changed. Shared: fork its engine to change it.

        Args:
            named: The job in question, which is read too if it has no Workload.

        Raises:
            UnreadableError: The cluster does not answer, or has reported no changes for some time.
        """
        with self._lock, self._explained():
            live = self._live
            engine = live.engine
            if live.problem:
                raise self._unreadable(live.problem)
            if self._state is None or self._settled_version != live.version:
                self._settled_version = live.version
                self._state = self._settled(live, engine, ())
            jobs = self._jobs_named(named, self._state)
            return self._settled(live, engine, jobs) if jobs else self._state

    def events(self, namespace: str, names: Iterable[str]) -> list[JsonObject]:
        """Return the Events about the objects of these names in a namespace, oldest first."""
        found: list[JsonObject] = []
        wanted = list(dict.fromkeys(names))
        for name in wanted:
            with self._explained(f"the events of {namespace}/{name} cannot be read"):
                path = f"/api/v1/namespaces/{quote(namespace, safe='')}/events"
                answer = self._api.get(path, {"fieldSelector": f"involvedObject.name={name}"})
                found += ({"kind": "Event", **object_at(event)} for event in list_at(answer, "items"))
        return events_about(found, namespace, wanted)

    def close(self) -> None:
        """Keep what was listed for the next question, and end all watches."""
        if self._cluster is not None:
            self._cluster.close()

    @property
    def _live(self) -> LiveCluster:
        if self._cluster is None:
            from kueuecore.kubernetes.cluster_cache import ClusterCache
            from kueuecore.kubernetes.live_cluster import LiveCluster

            is_kept = not getattr(self._options, "no_cache", False)
            cache = ClusterCache(self._api.host, self.title, self.namespace) if is_kept else None
            with self._explained():
                self._cluster = LiveCluster(self._api, self._configured, namespace=self.namespace, cache=cache)
            if not self._options.quiet:
                to_stderr(*self._notes, *(f"warning: {unlisted}" for unlisted in self._cluster.unlisted))
                to_stderr(*(f"warning: left out: {problem}" for problem in self._cluster.problems))
        return self._cluster

    def _time(self) -> int:
        return max(time.time_ns(), self._now or 0)

    def _configured(self, objects: Sequence[JsonObject]) -> Configuration:
        manifests = [Manifest(plain, Source(self.title)) for plain in objects]
        found = configured(self._asked["config"], self._gates, manifests, kueue=self._asked["kueue"])
        self._notes = found.notes
        return found.configuration

    def _settled(self, live: LiveCluster, engine: Engine, jobs: Sequence[JsonObject]) -> SettledState:
        source = Source(self.title)
        now = max(self._time(), engine.now)
        fork = engine.fork()
        unknown = tuple(_unknown_namespaces(live, engine))
        fork.apply(unknown, now=now)
        others = tuple(Manifest(plain, source) for plain in (*unknown, *live.others, *jobs))
        world = World.of(others, configuration=engine.configuration, trusted=True)
        world = replace(world, added=tuple(text_at(plain, "metadata", "name") for plain in unknown))
        if getattr(self._options, "assume_checks_active", False):
            active = tuple(as_active(manifest, now=now) for manifest in world.manifests)
            fork.apply([check for check, before in zip(active, world.manifests, strict=True) if check is not before])
            world = replace(world, manifests=active)
        fork.apply(world.made, now=now)
        held = fork.fork()
        others = tuple(manifest for manifest in world.manifests if manifest not in world.made)
        world = replace(world, manifests=HeldManifests(others, held, source))

        def after_cycles(n_cycles: int) -> Engine:
            again = held.fork()
            settle(again, now=now, max_cycles=n_cycles)
            return again

        return SettledState(fork, world, settle(fork, now=now), now, (), after_cycles)

    def _jobs_named(self, named: str, state: SettledState) -> tuple[JsonObject, ...]:
        """Read the jobs that an argument names and that own no Workload."""
        from kueuecore.cli.job_names import jobs_with_workloads

        *place, name = named.split("/")
        kind = place.pop(0) if place and place[0][:1].isupper() else ""
        # Dots in a path would lead to something else.
        if not name or kind == "Workload" or {name, *place} & {".", ".."}:
            return ()
        known = {key[1] for key in state.engine._core.workload_keys() if key is not None}
        if name in known or any(job.name == name for job in jobs_with_workloads(state.world, ())):
            return ()
        from kueuecore.kubernetes.named_jobs import named_jobs

        namespace = place[0] if place else self.namespace
        found, forbidden = named_jobs(self._api, state.engine.configuration, name, namespace=namespace, kind=kind)
        if forbidden and not found and not self._options.quiet:
            others = f" and {counted(len(forbidden) - 1, 'other kind')}" if len(forbidden) > 1 else ""
            to_stderr(f"warning: you may not get {forbidden[0]}{others}, so it is not known whether one has this name")
        return found

    @contextmanager
    def _explained(self, what: str = "") -> Iterator[None]:
        """Turn errors of the server into errors of the command."""
        from kueuecore.kubernetes.api import UnansweredError

        try:
            yield
        except (RefusedError, UnansweredError) as error:
            raise self._unreadable(str(error), what) from None

    def _unreadable(self, why: str, what: str = "") -> UnreadableError:
        return UnreadableError.of(f"{what or f'{self.title} cannot be read'}: {why}", remedy=_NOWHERE)


def _unknown_namespaces(live: LiveCluster, engine: Engine) -> Iterator[JsonObject]:
    """Namespaces in use that may not be listed: without them, their workloads could not be admitted."""
    if not any(unlisted.kind == "Namespace" for unlisted in live.unlisted):
        return
    known = {text_at(plain, "metadata", "name") for plain in live.others if plain.get("kind") == "Namespace"}
    used = {key[0] for key in engine._core.workload_keys() if key is not None}
    used |= {text_at(plain, "metadata", "namespace") for plain in live.others if plain.get("kind") == "LocalQueue"}
    for name in sorted(used - known):
        labels: JsonObject = {NAMESPACE_NAME_LABEL: name}
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _connected(options: argparse.Namespace) -> tuple[Api, Context]:
    try:
        from kueuecore.kubernetes.connecting import NoClusterError, connected
    except ImportError:
        message = "no files are given, and reading a cluster needs the extra `kubernetes`"
        remedy = "give files, or pip install 'kueuecore[kubernetes]'"
        raise ManifestError.of(message, remedy=remedy) from None
    try:
        return connected(server=options.server, kubeconfig=options.kubeconfig, context=options.context)
    except NoClusterError as error:
        why = str(error).removesuffix("; give --kubeconfig, or --server")
        raise ManifestError.of(f"no files are given, and no cluster is found: {why}", remedy=_NOWHERE) from None
