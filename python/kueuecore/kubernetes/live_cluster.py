"""Holds what decisions depend on in a cluster in an engine: listed once, then kept up to date."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore._kinds import KINDS
from kueuecore.api_server import RefusedError
from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.kubernetes.api import Api, UnansweredError
from kueuecore.kubernetes.cluster_cache import CachedCluster, ClusterCache, is_of
from kueuecore.kubernetes.cluster_objects import Listed, Unlisted, known_kinds, kueue_objects, list_objects
from kueuecore.kubernetes.lost_kinds import LostKinds
from kueuecore.kubernetes.watches import LateKinds, News, follow
from kueuecore.manifests import object_ref

__all__ = ["LiveCluster"]

_Key: TypeAlias = tuple[str, str]
"""Namespace and name."""
Configure: TypeAlias = Callable[[Sequence[JsonObject]], Configuration]

_WORKLOAD = "Workload"
_KEPT = frozenset(kind.name for kind in KINDS if kind.is_kept)
# Listing fewer is as fast as asking for their changes.
_MANY = 500
# A server sends past changes at once.
_IDLE_SECONDS = 0.1
# Threads that were kept from listening, as by a long call, catch up in this time.
_LEAST_IDLE_SECONDS = 0.03
_PATIENCE_SECONDS = 10.0
# Changes come in bursts: a cycle writes many workloads.
_BURST_SECONDS = 0.2
# Older, and a server may soon forget the changes since then, or replaying them takes long.
_OLD_SECONDS = 120.0
_FAR_BEHIND = 300
_LOOK_SECONDS = 60.0
# Servers restart; nobody has to know of a pause that is shorter.
_LOST_SECONDS = 15.0


class LiveCluster:
    """The objects of a cluster. It only reads. Safe to use from several threads.

    Args:
        api: The server; its `kinds` are set here.
        configure: Returns Kueue's Configuration, which may be among the objects that are not Workloads.
        namespace: The namespace to list where all namespaces are forbidden.
        cache: Where large lists are kept; by default nowhere.

    Raises:
        RefusedError: The server refuses.
        UnansweredError: The server does not answer.
        ManifestError: The Configuration is wrong.
    """

    def __init__(
        self, api: Api, configure: Configure, *, namespace: str = "", cache: ClusterCache | None = None
    ) -> None:
        self._api, self._configure, self._namespace, self._cache = api, configure, namespace, cache
        self._lock = threading.RLock()
        self._late = LateKinds()
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._has_news = threading.Event()
        self._followed: set[str] = set()
        self._opened: dict[str, threading.Event] = {}
        self._heard_at = 0.0
        self._lost = LostKinds()
        self._was_lost = False
        self.version = 0
        """Grows with each change."""
        self._begin()

    @property
    def engine(self) -> Engine:
        """A fork of the engine that holds the objects, before any cycle."""
        with self._lock:
            self._take_news()
            return self._engine.fork()

    @property
    def others(self) -> tuple[JsonObject, ...]:
        """All objects but Workloads, with Kueue's own."""
        with self._lock:
            return (*self._kueue, *(plain for objects in self._objects.values() for plain in objects.values()))

    @property
    def problem(self) -> str:
        """Why changes have not come for some time, so that what is known may be old; empty if they come."""
        return self._lost.problem(_LOST_SECONDS)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the objects that the engine refuses, and so leaves out."""
        with self._lock:
            return tuple(problem for problems in self._refused.values() for problem in problems)

    @property
    def unlisted(self) -> tuple[Unlisted, ...]:
        """The kinds that may not be listed."""
        return self._unlisted

    def wait(self, version: int, *, seconds: float) -> int:
        """Follow all kinds; return the version once it is another one, or after this long.

        Args:
            version: The version that is known.
            seconds: How long to wait at most.
        """
        self.follow()
        until = time.monotonic() + seconds
        while True:
            with self._lock:
                self._look_at_kueue()
                self._take_news()
                if self._was_lost != bool(self.problem):
                    self._was_lost = not self._was_lost
                    self.version += 1
                if self.version != version:
                    return self.version
            left = until - time.monotonic()
            if left <= 0 or self._late.is_over:
                return self.version
            if self._has_news.wait(min(left, _LOST_SECONDS)):
                time.sleep(min(_BURST_SECONDS, left))

    def follow(self) -> None:
        """Follow all kinds that were listed."""
        with self._lock:
            self._follow_all()

    def close(self) -> None:
        """End all watches, and write the cache."""
        self._late.end()
        self.keep()
        self._api.close()

    def keep(self) -> None:
        """Write the cache, if there is one and enough has changed."""
        with self._lock:
            self._take_news()
            large = {kind: n for kind, n in self._counts().items() if n >= _MANY and kind in self._versions}
            # Of those only one namespace is known, and not from where to follow it.
            large = {kind: n for kind, n in large.items() if all(entry.kind != kind for entry in self._unlisted)}
            is_fresh = time.time() - self._cached_at < _OLD_SECONDS and self._n_changes < _FAR_BEHIND
            if self._cache is None or not large or is_fresh:
                return
            objects = {kind: [*of_kind.values()] for kind, of_kind in self._objects.items()}
            versions = {kind: self._versions[kind] for kind in large}
            refused = tuple(problem for problem in self.problems if problem.object and problem.object.kind in large)
            self._cache.write(CachedCluster(versions, objects, self._engine.save(), time.time(), refused))

    # Reading.

    def _begin(self, *, uses_cache: bool = True) -> None:
        """List everything, or what has changed since the cache was written."""
        self._api.kinds = known_kinds(self._api)
        cached = self._cache.read(now=time.time()) if self._cache is not None and uses_cache else None
        large = {kind for kind in cached.versions if kind in self._api.kinds} if cached else set()
        listing = list_objects(self._api, [kind for kind in self._api.kinds if kind not in large], self._namespace)
        others = [plain for kind, listed in listing.kinds.items() if kind != _WORKLOAD for plain in listed.objects]
        configuration = self._configure([*listing.kueue, *others])
        engine = None
        if cached is not None and is_of(cached, listing, self._api):
            # What has changed comes in while the engine is loaded.
            self._follow(large, cached.versions, listing.unlisted)
            engine = _loaded(cached, configuration)
        if cached is not None and engine is None:
            self._stop_following()
            more = list_objects(self._api, large, self._namespace)
            unlisted = (*listing.unlisted, *more.unlisted)
            listing = type(listing)({**more.kinds, **listing.kinds}, listing.kueue, unlisted)
        # Nothing is set before all is read: what is known stays if the server stops answering.
        self._kueue, self._unlisted = listing.kueue, listing.unlisted
        self._objects: dict[str, dict[_Key, JsonObject]] = {}
        self._versions: dict[str, str] = {}
        self._refused: dict[ObjectRef, list[Problem]] = {}
        self._cached_at, self._n_changes = 0.0, 0
        self._looked_at = time.monotonic()
        self._engine = engine or Engine(configuration)
        if cached is not None and engine is not None:
            self._objects = {kind: _by_key(objects) for kind, objects in cached.objects.items()}
            self._versions, self._cached_at = dict(cached.versions), cached.written_at
            self._note_refused(cached.refused)
        # In the order in which objects can be applied one by one.
        for kind in [kind.name for kind in KINDS if kind.name in listing.kinds]:
            self._replace(listing.kinds[kind])
        if engine is not None:
            # What is absent now, or forbidden, is as unknown as without a cache.
            for kind in {*self._objects, _WORKLOAD} - large - {*listing.kinds}:
                self._replace(Listed(kind, (), ""))
            if not self._catch_up():
                self._stop_following()
                self._begin(uses_cache=False)
                return
        self.version += 1

    def _look_at_kueue(self) -> None:
        """Start over if Kueue has restarted with another Configuration."""
        if time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        try:
            found = kueue_objects(self._api)
        except (RefusedError, UnansweredError):
            return  # the watches say it too
        if found != self._kueue:
            self._stop_following()
            self._begin()
            self._follow_all()

    def _counts(self) -> dict[str, int]:
        return {kind: len(objects) for kind, objects in self._objects.items()} | {_WORKLOAD: len(self._engine)}

    def _replace(self, listed: Listed) -> None:
        """Replace all objects of a kind by a list."""
        kind, found = listed.kind, _by_key(listed.objects)
        self._refused = {ref: problems for ref, problems in self._refused.items() if ref.kind != kind}
        if kind == _WORKLOAD:
            before: Mapping[_Key, object] = dict.fromkeys(filter(None, self._engine._core.workload_keys()))
        else:
            before = self._objects.get(kind, {})
            self._objects[kind] = found
        if listed.version:
            self._versions[kind] = listed.version
        else:
            self._versions.pop(kind, None)
        gone = [key for key in before if key not in found]
        for namespace, name in gone:
            self._delete(kind, namespace, name)
        changed = [plain for key, plain in found.items() if not _is_same(before.get(key), plain)]
        self._apply(changed)
        self._n_changes += len(gone) + len(changed)

    def _delete(self, kind: str, namespace: str, name: str) -> None:
        if kind in _KEPT:
            self._engine.delete(kind, name, namespace=namespace, now=self._now())

    def _apply(self, objects: Sequence[JsonObject]) -> None:
        """Apply objects; leave out those that the engine refuses, which are reported."""
        if not objects:
            return
        try:
            self._engine.apply(objects, now=self._now(), trusted=True)
        except ManifestError as error:
            refused = {problem.object for problem in error.problems if problem.object is not None}
            left = [plain for plain in objects if _ref(plain) not in refused]
            if len(left) == len(objects):
                raise
            self._note_refused(error.problems)
            # Where one has been changed into what is refused, nothing of it stays.
            for ref in refused:
                self._delete(ref.kind, ref.namespace, ref.name)
                self._objects.get(ref.kind, {}).pop((ref.namespace, ref.name), None)
            self._apply(left)

    def _note_refused(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            if problem.object is not None:
                self._refused.setdefault(problem.object, []).append(problem)

    def _now(self) -> int:
        return max(time.time_ns(), self._engine.now)

    # Following.

    def _stop_following(self) -> None:
        self._late.end()
        self._late, self._lost, self._followed, self._opened = LateKinds(), LostKinds(), set(), {}
        self._news = queue.SimpleQueue()

    def _follow_all(self) -> None:
        self._follow((kind for kind, version in self._versions.items() if version), self._versions, self._unlisted)

    def _follow(self, kinds: Iterable[str], versions: Mapping[str, str], unlisted: Sequence[Unlisted]) -> None:
        for kind in sorted({*kinds} - self._followed):
            self._followed.add(kind)
            self._opened[kind] = threading.Event()
            namespace = next((entry.namespace for entry in unlisted if entry.kind == kind), "")
            arguments = (kind, versions[kind], namespace, self._late, self._news, self._lost, self._opened[kind])
            threading.Thread(target=self._hear, args=arguments, name=f"watch-{kind}", daemon=True).start()

    def _hear(
        self,
        kind: str,
        since: str,
        namespace: str,
        late: LateKinds,
        news: queue.SimpleQueue[News],
        lost: LostKinds,
        opened: threading.Event,
    ) -> None:
        def fault(_: str, error: Exception | None) -> None:
            if error is None:
                lost.found(kind)
            else:
                lost.lost(kind, error)
            self._heard_at = time.monotonic()
            opened.set()

        for entry in follow(self._api, kind, since=since, namespace=namespace, late=late, fault=fault):
            if late.is_over:
                return
            if entry is not None:
                news.put(entry)
                self._heard_at = time.monotonic()
                self._has_news.set()
            else:
                lost.lost(kind, None)

    def _catch_up(self) -> bool:
        """Apply past changes; return whether the server has reported those of all kinds."""
        until = time.monotonic() + _PATIENCE_SECONDS
        for opened in self._opened.values():
            opened.wait(max(0.0, until - time.monotonic()))
        while time.monotonic() < until:
            silent = time.monotonic() - self._heard_at
            if not self._take_news(wait=max(_LEAST_IDLE_SECONDS, _IDLE_SECONDS - silent)):
                break
        return not self._lost.kinds and all(opened.is_set() for opened in self._opened.values())

    def _take_news(self, *, wait: float = 0.0) -> bool:
        """Apply the events received; returns whether there were any.

        Args:
            wait: Seconds to wait for the first.
        """
        self._has_news.clear()
        taken: list[News] = []
        while True:
            try:
                taken.append(self._news.get(timeout=wait) if wait and not taken else self._news.get_nowait())
            except queue.Empty:
                break
        # Only the last event of each object counts, so a burst is applied at once.
        changed: dict[tuple[str, str, str], JsonObject] = {}
        for entry in taken:
            if entry.listed is not None:
                self._apply([*changed.values()])
                changed.clear()
                self._replace(Listed(entry.kind, tuple(_whole(self._api, entry.kind, entry.listed)), entry.version))
                self.version += 1
                continue
            self._take_event(entry, changed)
        self._apply([*changed.values()])
        return bool(taken)

    def _take_event(self, news: News, changed: dict[tuple[str, str, str], JsonObject]) -> None:
        kind, plain = news.kind, object_at(news.event, "object")
        self._versions[kind] = text_at(plain, "metadata", "resourceVersion") or self._versions.get(kind, "")
        happened = text_at(news.event, "type")
        if happened == "BOOKMARK":
            return
        namespace, name = key = _key(plain)
        changed.pop((kind, *key), None)
        self._refused.pop(_ref(plain), None)
        if happened == "DELETED":
            self._delete(kind, namespace, name)
            self._objects.get(kind, {}).pop(key, None)
        else:
            changed[kind, namespace, name] = plain
            if kind != _WORKLOAD:
                self._objects.setdefault(kind, {})[key] = plain
        self._n_changes += 1
        self.version += 1


def _loaded(cached: CachedCluster, configuration: Configuration) -> Engine | None:
    """Return the cached engine; None if it had another Configuration, or is of another version."""
    try:
        return Engine.load(cached.engine, configuration=configuration)
    except ValueError:
        return None


def _whole(api: Api, kind: str, objects: Iterable[JsonObject]) -> Iterable[JsonObject]:
    """Objects of a list with their kind, which lists of built-in kinds omit."""
    api_version = api.kinds[kind][0]
    return (plain if "kind" in plain else {"apiVersion": api_version, "kind": kind, **plain} for plain in objects)


def _by_key(objects: Iterable[JsonObject]) -> dict[_Key, JsonObject]:
    return {_key(plain): plain for plain in objects}


def _key(plain: JsonObject) -> _Key:
    return text_at(plain, "metadata", "namespace"), text_at(plain, "metadata", "name")


def _is_same(before: object, plain: JsonObject) -> bool:
    version = text_at(plain, "metadata", "resourceVersion")
    return isinstance(before, dict) and bool(version) and text_at(before, "metadata", "resourceVersion") == version


def _ref(plain: JsonObject) -> ObjectRef:
    return object_ref(plain)
