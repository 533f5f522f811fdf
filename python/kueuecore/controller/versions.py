"""Which objects have been seen, in which version: what is old news changes nothing."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple, TypeAlias

from kueuecore._json import JsonObject, JsonValue, text_at

__all__ = ["Key", "Version", "Versions", "key_of", "newest_of"]

Key: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""
# An API server counts in 64 bits.
_NUMBER = re.compile(r"[0-9]{1,20}")
# What is remembered of deletions that no list has confirmed yet.
_MOST_GONE = 10_000


def key_of(manifest: JsonObject) -> Key:
    """Kind, namespace and name of an object."""
    return text_at(manifest, "kind"), text_at(manifest, "metadata", "namespace"), text_at(manifest, "metadata", "name")


class Version(NamedTuple):
    """A version of an object: which object of that name, and its `resourceVersion`; empty where nobody gives any."""

    uid: str
    text: str

    @classmethod
    def of(cls, manifest: JsonObject) -> Version:
        """The version of an object."""
        return cls(text_at(manifest, "metadata", "uid"), text_at(manifest, "metadata", "resourceVersion"))

    @property
    def number(self) -> int | None:
        """The `resourceVersion` as a number, which an API server counts up; `None` if it is none."""
        return int(self.text) if _NUMBER.fullmatch(self.text) else None

    def is_same_object(self, other: Version) -> bool:
        """Is it the same object, and not another of that name?"""
        return self.uid == other.uid or not self.uid or not other.uid

    def is_newer_than(self, other: Version) -> bool:
        """Has it been written after another? What has no number is newer, unless it is the same text."""
        if self.number is not None and other.number is not None:
            return self.number > other.number
        return self != other or not self.text


def newest_of(manifest: JsonObject, *others: JsonObject | None) -> JsonObject:
    """The newest version of an object among those that there are."""
    for other in others:
        if other is not None and Version.of(other).is_newer_than(Version.of(manifest)):
            manifest = other
    return manifest


class Versions:
    """The newest version that was seen of every object, and what has gone."""

    def __init__(self) -> None:
        self._seen: dict[Key, Version] = {}
        self._gone: dict[Key, Version] = {}
        self._listed: dict[str, Version] = {}
        self._watched: dict[str, Version] = {}

    def __getitem__(self, key: Key) -> Version | None:
        """The newest version of an object that is there."""
        return self._seen.get(key)

    def is_news(self, key: Key, version: Version) -> bool:
        """Does a version of an object that exists say anything new?"""
        seen = self._seen.get(key)
        if seen is not None:
            return version.is_newer_than(seen)
        gone, listed = self._gone.get(key), self._listed.get(key[0])
        if gone is not None and ((version.uid and version.uid == gone.uid) or not version.is_newer_than(gone)):
            return False
        # It would have been in the list.
        return listed is None or version.number is None or version.is_newer_than(listed)

    def is_gone(self, key: Key, version: Version) -> bool:
        """Is a deletion news? It is not if it is about another object that had that name before."""
        seen = self._seen.get(key)
        return seen is not None and (version.is_same_object(seen) or version.is_newer_than(seen))

    def put(self, key: Key, version: Version) -> None:
        """This is the newest version now."""
        self._seen[key] = version

    def drop(self, key: Key, version: Version) -> None:
        """The object has gone; what was on its way of it is old."""
        seen = self._seen.pop(key, None)
        if seen is not None and seen.is_newer_than(version):
            version = seen
        self._gone.pop(key, None)
        self._gone[key] = version
        if len(self._gone) > _MOST_GONE:
            self._gone.pop(next(iter(self._gone)))

    def watched(self, kind: str) -> str:
        """Up to which version a kind was watched, if its events came in order; empty if nobody knows."""
        return self._watched.get(kind, Version("", "")).text

    def note_watched(self, kind: str, version: Version) -> None:
        """A list or an event of a watch had this version."""
        if version.number is not None and version.is_newer_than(self._watched.get(kind, Version("", "0"))):
            self._watched[kind] = Version("", version.text)

    def knows(self, kind: str, until: Version) -> bool:
        """Have all objects of a kind been heard of that were there when another object was written?

        That goes by versions, which a server counts up for all kinds together.
        """
        watched = self._watched.get(kind)
        return kind in self._listed and watched is not None and not until.is_newer_than(watched)

    def to_json(self) -> JsonObject:
        """What is remembered beside the objects: lists, watches, and what has gone."""
        gone: list[JsonValue] = [[*key, *it] for key, it in self._gone.items()]
        listed: JsonObject = {kind: it.text for kind, it in self._listed.items()}
        watched: JsonObject = {kind: it.text for kind, it in self._watched.items()}
        return {"listed": listed, "watched": watched, "gone": gone}

    def remember(self, plain: JsonObject) -> None:
        """What was remembered once.

        Raises:
            ValueError: It is something else.
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
        """What has gone, because it is not in a list of all objects of a kind.

        Args:
            kind: The kind.
            listed: What was listed.
            at: Version of the list: what is newer has come since.
        """
        return [
            key
            for key, seen in self._seen.items()
            if key[0] == kind and key not in listed and (at.number is None or not seen.is_newer_than(at))
        ]

    def list_taken(self, kind: str, at: Version) -> None:
        """Everything in a list has been put: whatever else is not newer has gone."""
        self.note_watched(kind, at)
        if at.number is not None:
            self._listed[kind] = at
            self._gone = {key: old for key, old in self._gone.items() if key[0] != kind or old.is_newer_than(at)}


def _versions(plain: JsonValue) -> dict[str, Version]:
    """The versions of lists and watches, by kind."""
    if not isinstance(plain, dict):
        raise ValueError("listed and watched must be objects")
    found = {}
    for kind, text in plain.items():
        if not isinstance(text, str):
            raise ValueError(f"the resourceVersion of {kind} must be a string")
        found[kind] = Version("", text)
    return found
