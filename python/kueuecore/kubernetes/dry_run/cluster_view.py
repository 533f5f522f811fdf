"""What a dry run has seen of a cluster: an engine that follows it, and the states of the last seconds."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kueuecore._json import JsonObject, text_at
from kueuecore._text import logged
from kueuecore.checks import WorkloadKey
from kueuecore.configuration import Configuration
from kueuecore.controller import WATCHED, validation
from kueuecore.controller.check_reviews import CheckReviews
from kueuecore.controller.idle_cycles import IdleCycles
from kueuecore.controller.object_intake import ObjectIntake
from kueuecore.controller.object_store import ObjectStore
from kueuecore.controller.versions import Key, Version, key_of
from kueuecore.controller.watched_kinds import OF_NODES, SOMETIMES_WATCHED
from kueuecore.controller.workload_records import WorkloadRecords
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.times import SECOND_NS

__all__ = ["ClusterView", "Moment"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
_KINDS = {**WATCHED, **SOMETIMES_WATCHED}
# Copies share what neither changes, but the first change after one copies a part of the engine.
_SNAPSHOT_NS = SECOND_NS // 50
_MOST_MOMENTS = 4_000
_MOST_GONE = 1_000


@dataclass(slots=True)
class Moment:
    """An event of the last seconds.

    Args:
        number: Its number; numbers have no gaps.
        at: When it arrived, in nanoseconds since 1970.
        key: The object.
        before: The object as it was; None: it did not exist.
        after: The object as it is since; None: it was deleted.
        version: The number of the `resourceVersion` that it made; None: unknown.
        engine: The engine as it was before; None: the copy of an earlier moment has to be brought up to date.
    """

    number: int
    at: int
    key: Key
    before: JsonObject | None
    after: JsonObject | None
    version: int | None
    engine: Engine | None


class ClusterView:
    """Follows the objects of a cluster, and decides nothing about them but what has no consequences.

    Args:
        configuration: The Configuration of the Kueue that decides.
        window_ns: How far back states are kept, in nanoseconds.
    """

    def __init__(self, configuration: Configuration, *, window_ns: int) -> None:
        with_nodes = configuration.is_enabled("TopologyAwareScheduling")
        self.kinds: Mapping[str, tuple[str, str]] = {**(OF_NODES if with_nodes else {}), **WATCHED}
        """What to list and watch, by kind: apiVersion and the plural in the path."""
        self._window_ns = window_ns
        self._moments: deque[Moment] = deque()
        self._n_moments = 0
        self.kept_since = 0
        """The number of the first moment that is still needed, however old."""
        self._uids: dict[str, WorkloadKey] = {}
        self._gone: deque[str] = deque()
        self._copied_at = 0
        self._follow(configuration)

    def _follow(self, configuration: Configuration) -> None:
        self.engine = Engine(configuration, batches_retries=True)
        """The engine that follows the cluster, for reading."""
        self._store = ObjectStore(_KINDS)
        idle, workloads = IdleCycles(self.engine), WorkloadRecords()
        self._intake = ObjectIntake(self.engine, self._store, workloads, CheckReviews(()), idle, (), None)

    # Watching.

    def observe(self, event: JsonObject, *, now: int) -> Moment | None:
        """Take in a watch event.

        Args:
            event: The event.
            now: The time, in nanoseconds since 1970.

        Raises:
            ManifestError, WatchError, TypeError, ValueError: As `Controller.observe`. Nothing has changed.

        Returns:
            The moment; None if it changed nothing.
        """
        happened, manifest = validation.event_of(event)
        key = key_of(manifest)
        moment = self._moment(key, None if happened == "DELETED" else manifest, Version.of(manifest).number, now)
        n_changes = self.engine._core._n_cluster_changes()
        if not self._intake.observe(happened, manifest, now):
            return None
        if key[0] in OF_NODES and moment.before is not None and n_changes == self.engine._core._n_cluster_changes():
            # Nodes send heartbeats.
            return None
        if key[0] == "Workload":
            self._note_uid(moment)
        self._moments.append(moment)
        self._n_moments += 1
        self._forget_old(now)
        return moment

    def resync(self, kind: str, objects: Iterable[JsonObject], *, version: str, now: int) -> None:
        """Take in the list of all objects of a kind. The states before it are dropped: events are missing there.

        Args:
            kind: The kind.
            objects: All objects.
            version: `resourceVersion` of the list.
            now: The time, in nanoseconds since 1970.
        """
        listed = validation.listed_objects(kind, _KINDS[kind][0], objects)
        at = Version("", version)
        for key in self._store.versions.missing(kind, listed.keys(), at):
            self._intake.delete(key, at, now)
        for manifest, _ in listed.values():
            try:
                self._intake.observe(*validation.event_of({"type": "ADDED", "object": manifest}), now)
            except ManifestError as error:
                _LOGGER.warning("not taken in", extra={"problem": logged(error)})
        self._store.list_taken(kind, at, now)
        self._moments.clear()
        if kind == "Workload":
            self._note_uids()

    def restart(self, configuration: Configuration, *, now: int) -> None:
        """Begin as a Kueue that has just started: with the same objects, and no memory of earlier cycles.

        Args:
            configuration: The Configuration of that Kueue.
            now: The time, in nanoseconds since 1970.
        """
        store = self._store
        self._follow(configuration)
        for kind in _KINDS:
            for manifest in store.of_kinds({kind}):
                self._intake.take(key_of(manifest), Version.of(manifest), manifest, now)
            self._store.versions.list_taken(kind, Version("", store.versions.watched(kind)))
        self._moments.clear()

    # States.

    @property
    def next_number(self) -> int:
        """The number that the next moment will have."""
        return self._n_moments

    def moments(self, *, since: int, until: int | None = None) -> list[Moment]:
        """Return the recent moments from one number up to, but without, another."""
        end = self._n_moments if until is None else until
        return [moment for moment in self._moments if since <= moment.number < end]

    def numbers(self) -> range:
        """Return the numbers of the states that are known: each is the state before that moment; the last is now."""
        return range(self._n_moments - len(self._moments), self._n_moments + 1)

    def state(self, number: int, *, without: Collection[int] = (), then: Iterable[Moment] = ()) -> Engine:
        """Return a copy of the engine as it was before a moment.

        Args:
            number: The number of the moment.
            without: Numbers of earlier moments that are left out.
            then: Later moments that are added.
        """
        first = min(without, default=number)
        base: Engine | None = self.engine if number == self._n_moments and not without else None
        start = number
        if base is None:
            for moment in reversed(self._moments):
                if moment.number <= min(first, number) and moment.engine is not None:
                    base, start = moment.engine, moment.number
                    break
        if base is None:
            # The oldest moment always has a copy.
            base, start = self._moments[0].engine or self.engine, self._moments[0].number
        engine = base.fork()
        for moment in self.moments(since=start, until=number):
            if moment.number not in without:
                _replay(engine, moment)
        for moment in then:
            _replay(engine, moment)
        return engine

    def objects(self, number: int) -> list[dict[str, Any]]:
        """Return all objects as they were before a moment, for a file."""
        found: dict[Key, JsonObject] = {key_of(manifest): manifest for manifest in self._store.of_kinds(_KINDS)}
        for moment in reversed(self.moments(since=number)):
            if moment.before is None:
                found.pop(moment.key, None)
            else:
                found[moment.key] = moment.before
        return [found[key] for key in sorted(found)]

    def workload_of(self, uid: str) -> WorkloadKey | None:
        """Return namespace and name of the Workload with a UID, if it exists or was deleted a moment ago."""
        return self._uids.get(uid)

    def _note_uid(self, moment: Moment) -> None:
        _, namespace, name = moment.key
        if moment.after is None:
            self._gone.append(text_at(moment.before or {}, "metadata", "uid"))
            if len(self._gone) > _MOST_GONE:
                self._uids.pop(self._gone.popleft(), None)
        else:
            self._uids[text_at(moment.after, "metadata", "uid")] = namespace, name

    def _note_uids(self) -> None:
        self._gone.clear()
        self._uids = {
            text_at(other, "metadata", "uid"): key_of(other)[1:] for other in self._store.of_kinds({"Workload"})
        }

    def get(self, key: Key) -> JsonObject | None:
        """Return an object as it is now."""
        return self._store.get(key)

    def _moment(self, key: Key, after: JsonObject | None, version: int | None, now: int) -> Moment:
        is_due = not self._moments or now >= self._copied_at + _SNAPSHOT_NS
        engine = self.engine.fork() if is_due else None
        if is_due:
            self._copied_at = now
        return Moment(self._n_moments, now, key, self._store.get(key), after, version, engine)

    def _forget_old(self, now: int) -> None:
        while len(self._moments) > 1 and (
            (self._moments[0].at < now - self._window_ns and self._moments[0].number < self.kept_since)
            or len(self._moments) > _MOST_MOMENTS
        ):
            old = self._moments.popleft()
            if self._moments[0].engine is None:
                engine = old.engine or self.engine
                _replay(engine, old)
                self._moments[0].engine = engine


def _replay(engine: Engine, moment: Moment) -> None:
    kind, namespace, name = moment.key
    if kind not in _KINDS:
        return
    if moment.after is None:
        engine.delete(kind, name, namespace=namespace, now=moment.at)
    else:
        engine.apply(moment.after, now=moment.at, trusted=True)
