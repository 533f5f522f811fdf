"""Tracks which version of each object was seen, so that outdated events change nothing."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from kueuecore._json import JsonObject, JsonValue, text_at

__all__ = ["Key", "Version", "Versions", "key_of", "newest_of"]

Key: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""
# An API server counts in 64 bits.
_MAX_DIGITS = 20
# How many deletions to remember that no list has confirmed yet.
_MAX_GONE = 10_000


def key_of(manifest: JsonObject) -> Key:
    """Return kind, namespace and name of an object."""
    return text_at(manifest, "kind"), text_at(manifest, "metadata", "namespace"), text_at(manifest, "metadata", "name")


class Version(NamedTuple):
    """A version of an object: its UID and its `resourceVersion`; empty if nobody sets them."""

    uid: str
    text: str

    @classmethod
    def of(cls, manifest: JsonObject) -> Version:
        """Return the version of an object."""
        return cls(text_at(manifest, "metadata", "uid"), text_at(manifest, "metadata", "resourceVersion"))

    @property
    def number(self) -> int | None:
        """The `resourceVersion` as a number, which an API server counts up; `None` if it is not a number."""
        return _number(self.text)

    def is_same_object(self, other: Version) -> bool:
        """Return whether it is the same object, not another one with that name."""
        return self.uid == other.uid or not self.uid or not other.uid

    def is_newer_than(self, other: Version) -> bool:
        """Return whether it was written after another. One without a number is newer, unless the text is the same."""
        number, its = _number(self.text), _number(other.text)
        if number is not None and its is not None:
            return number > its
        return self != other or not self.text


@lru_cache(maxsize=256)  # each is compared several times when its object arrives
def _number(text: str) -> int | None:
    is_number = text.isdecimal() and text.isascii() and len(text) <= _MAX_DIGITS
    return int(text) if is_number else None


def newest_of(manifest: JsonObject, *others: JsonObject | None) -> JsonObject:
    """Return the newest of several versions of an object, those that exist."""
    for other in others:
        if other is not None and Version.of(other).is_newer_than(Version.of(manifest)):
            manifest = other
    return manifest


class Versions:
    """The newest version seen of every object, and the deletions."""

    def __init__(self) -> None:
        self._seen: dict[Key, Version] = {}
        self._gone: dict[Key, Version] = {}
        self._listed: dict[str, Version] = {}
        self._watched: dict[str, Version] = {}

    def __getitem__(self, key: Key) -> Version | None:
        """Return the newest version of an existing object."""
        return self._seen.get(key)

    def is_news(self, key: Key, version: Version) -> bool:
        """Return whether a version of an existing object is new."""
        seen = self._seen.get(key)
        if seen is not None:
            return version.is_newer_than(seen)
        gone, listed = self._gone.get(key), self._listed.get(key[0])
        if gone is not None and ((version.uid and version.uid == gone.uid) or not version.is_newer_than(gone)):
            return False
        # It would have been in the list.
        return listed is None or version.number is None or version.is_newer_than(listed)

    def is_gone(self, key: Key, version: Version) -> bool:
        """Return whether a deletion is new. It is not if it is about an earlier object with that name."""
        seen = self._seen.get(key)
        return seen is not None and (version.is_same_object(seen) or version.is_newer_than(seen))

    def put(self, key: Key, version: Version) -> None:
        """Record the newest version."""
        self._seen[key] = version

    def drop(self, key: Key, version: Version) -> None:
        """Record that an object was deleted; events about it that are on their way are outdated."""
        seen = self._seen.pop(key, None)
        if seen is not None and seen.is_newer_than(version):
            version = seen
        self._gone.pop(key, None)
        self._gone[key] = version
        if len(self._gone) > _MAX_GONE:
            self._gone.pop(next(iter(self._gone)))

    def watched(self, kind: str) -> str:
        """Return up to which version a kind was watched, if its events came in order; empty if unknown."""
        return self._watched.get(kind, Version("", "")).text

    def note_watched(self, kind: str, version: Version) -> None:
        """Record the version of a list or of a watch event."""
        if version.number is not None and version.is_newer_than(self._watched.get(kind, Version("", "0"))):
            self._watched[kind] = Version("", version.text)

    def knows(self, kind: str, until: Version) -> bool:
        """Return whether all objects of a kind were seen that existed when another object was written.

        It compares versions, which a server counts up across all kinds.
        """
        watched = self._watched.get(kind)
        return kind in self._listed and watched is not None and not until.is_newer_than(watched)

    def to_json(self, kinds: Collection[str]) -> JsonObject:
        """Return what is remembered of some kinds besides the objects: lists, watches, and deletions."""
        gone: list[JsonValue] = [[*key, *name] for key, name in self._gone.items() if key[0] in kinds]
        listed: JsonObject = {kind: entry.text for kind, entry in self._listed.items() if kind in kinds}
        watched: JsonObject = {kind: row.text for kind, row in self._watched.items() if kind in kinds}
        return {"listed": listed, "watched": watched, "gone": gone}

    def remember(self, plain: JsonObject) -> None:
        """Restore what `to_json` returned.

        Raises:
            ValueError: It is malformed.
        """
        listed, watched, gone = (plain.get(name) for name in ("listed", "watched", "gone"))
        self._listed, self._watched = _versions(listed), _versions(watched)
        for entry in gone if isinstance(gone, list) else (gone,):
            match entry:
                case [str(kind), str(namespace), str(name), str(uid), str(text)]:
                    self._gone[kind, namespace, name] = Version(uid, text)
                case _:
                    raise ValueError("each entry of gone must be [kind, namespace, name, uid, resourceVersion]")

    def missing(self, kind: str, listed: Collection[Key], at: Version) -> list[Key]:
        """Return the objects missing from a list of all objects of a kind, which were deleted.

        Args:
            kind: The kind.
            listed: The keys in the list.
            at: Version of the list: newer objects were created since.
        """
        return [
            key
            for key, seen in self._seen.items()
            if key[0] == kind and key not in listed and (at.number is None or not seen.is_newer_than(at))
        ]

    def list_taken(self, kind: str, at: Version) -> None:
        """Record that all of a list was put: everything else that is not newer was deleted."""
        self.note_watched(kind, at)
        if at.number is not None:
            self._listed[kind] = at
            self._gone = {key: old for key, old in self._gone.items() if key[0] != kind or old.is_newer_than(at)}


def _versions(plain: JsonValue) -> dict[str, Version]:
    """Return the versions of lists and watches, by kind."""
    if not isinstance(plain, dict):
        raise ValueError("listed and watched must be objects")
    found = {}
    for kind, text in plain.items():
        if not isinstance(text, str):
            raise ValueError(f"the resourceVersion of {kind} must be a string")
        found[kind] = Version("", text)
    return found
