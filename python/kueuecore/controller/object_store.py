"""Stores the objects of a cluster, as far as a controller has seen them, and tells those who follow them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from kueuecore._json import JsonObject
from kueuecore.controller.versions import Key, Version, Versions
from kueuecore.controller.watched_kinds import is_of_another_group

__all__ = ["Follower", "ObjectStore"]


@dataclass(frozen=True, slots=True)
class Follower:
    """Somebody who follows the objects as the API server has them, such as the job controllers.

    Args:
        kinds: What to tell of, by kind: apiVersion and plural.
        check: Refuses an object of any kind before anything changes, with a ManifestError.
        note: Takes in a change: the key, the object as it was, `None` if it is new, and as it is, `None` if it is gone,
            and the time.
        note_watched: Takes in that a watch of a kind has come further, and the time.
    """

    kinds: Mapping[str, tuple[str, str]]
    check: Callable[[JsonObject], None]
    note: Callable[[Key, JsonObject | None, JsonObject | None, int], None]
    note_watched: Callable[[str, int], None]


class ObjectStore:
    """The newest version seen of every object. What is in it is not copied.

    Args:
        kinds: What to store whether or not anybody follows it, by kind: apiVersion and plural.
    """

    def __init__(self, kinds: Mapping[str, tuple[str, str]]) -> None:
        self._followers: list[Follower] = []
        self._objects: dict[Key, JsonObject] = {}
        self.own_kinds = self.kinds = kinds
        """What is stored, by kind: apiVersion and plural; and as much of that as nobody has to follow."""
        self.versions = Versions()
        """Which versions were seen, and what was deleted."""

    def follow(self, follower: Follower, at: int) -> None:
        """Tell somebody of all objects, now and from now on."""
        self._followers.append(follower)
        self.kinds = {**follower.kinds, **self.kinds}
        for key, manifest in self._objects.items():
            if key[0] in follower.kinds:
                follower.note(key, None, manifest, at)

    def is_stored(self, key: Key, manifest: JsonObject) -> bool:
        """Return whether it is of a stored kind."""
        return key[0] in self.kinds and not is_of_another_group(manifest, self.kinds)

    def check(self, manifest: JsonObject) -> None:
        """Refuse what a follower refuses.

        Raises:
            ManifestError: A follower cannot take it in.
        """
        for follower in self._followers:
            follower.check(manifest)

    def get(self, key: Key) -> JsonObject | None:
        """Return an object, if it exists."""
        return self._objects.get(key)

    def of_kinds(self, kinds: Collection[str]) -> Iterator[JsonObject]:
        """Yield all objects of some kinds, in order of arrival."""
        return (manifest for key, manifest in self._objects.items() if key[0] in kinds)

    def put(self, key: Key, version: Version, manifest: JsonObject, at: int) -> None:
        """Store a version of an object. Followers hear of it if it is the newest."""
        before, is_news = self._objects.get(key), self.versions.is_news(key, version)
        self.versions.put(key, version)
        self._objects[key] = manifest
        if not is_news:
            return
        if before is not None and not version.is_same_object(Version.of(before)):
            # Its deletion was missed.
            self._tell(key, before, None, at)
            before = None
        self._tell(key, before, manifest, at)

    def drop(self, key: Key, version: Version, at: int) -> None:
        """Remove a deleted object."""
        seen = self.versions[key]
        self.versions.drop(key, Version(seen.uid if seen is not None else version.uid, version.text))
        if (before := self._objects.pop(key, None)) is not None:
            self._tell(key, before, None, at)

    def note_watched(self, kind: str, version: Version, at: int) -> None:
        """Record the version of a watch event: all before it were seen."""
        self.versions.note_watched(kind, version)
        for follower in self._followers:
            if kind in follower.kinds:
                follower.note_watched(kind, at)

    def list_taken(self, kind: str, version: Version, at: int) -> None:
        """Record that all of a list was stored."""
        self.versions.list_taken(kind, version)
        self.note_watched(kind, version, at)

    def _tell(self, key: Key, before: JsonObject | None, after: JsonObject | None, at: int) -> None:
        for follower in self._followers:
            if key[0] in follower.kinds:
                follower.note(key, before, after, at)
