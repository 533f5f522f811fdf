"""The objects of one cluster as far as a manager has seen them. Outdated events change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kueuecore._json import JsonObject, object_at
from kueuecore.controller.versions import Key, Version, Versions, key_of

__all__ = ["ObjectStore", "is_same"]

# What a server changes with each write, whatever it stores.
_OF_WRITES = ("resourceVersion", "managedFields")


class ObjectStore:
    """Holds the newest version seen of every object of one cluster."""

    def __init__(self) -> None:
        self._versions = Versions()
        self._objects: dict[str, dict[tuple[str, str], JsonObject]] = {}
        self.n_changes = 0
        """How often the store has changed."""

    def get(self, kind: str, name: str, *, namespace: str = "") -> JsonObject | None:
        """Return an object, if it exists."""
        return self._objects.get(kind, {}).get((namespace, name))

    def of_kind(self, kind: str) -> Iterator[JsonObject]:
        """Yield all objects of a kind, by namespace and name."""
        objects = self._objects.get(kind, {})
        for key in sorted(objects):
            yield objects[key]

    def named(self, kind: str) -> Mapping[str, JsonObject]:
        """Return all objects of a cluster-scoped kind, by name."""
        return {name: object_ for (_, name), object_ in self._objects.get(kind, {}).items()}

    def observe(self, event: Mapping[str, Any]) -> JsonObject | None:
        """Take in a watch event.

        Returns:
            The previous version if the event is news, or an empty object if there was none; None if it is outdated.
        """
        manifest: JsonObject = event["object"]
        key, version = key_of(manifest), Version.of(manifest)
        old = self.get(key[0], key[2], namespace=key[1])
        if event["type"] == "DELETED":
            if not self._versions.is_gone(key, version):
                if old is None:
                    self._versions.drop(key, version)
                return None
            self._remove(key, version)
            return old
        if not self._versions.is_news(key, version):
            return None
        self._put(key, version, manifest)
        return old or {}

    def resync(
        self, kind: str, objects: Iterable[JsonObject], resource_version: str
    ) -> list[tuple[JsonObject, JsonObject | None]]:
        """Take in the list of all objects of a kind.

        Returns:
            The changes: each object before, empty if it is new, and after, None if it is gone.
        """
        changed: list[tuple[JsonObject, JsonObject | None]] = []
        listed = {key_of(object_): object_ for object_ in objects}
        at = Version("", resource_version)
        for key in self._versions.missing(kind, listed, at):
            changed.append((self.get(kind, key[2], namespace=key[1]) or {}, None))
            self._remove(key, Version("", ""))
        for key, manifest in listed.items():
            version = Version.of(manifest)
            if self._versions.is_news(key, version):
                changed.append((self.get(kind, key[2], namespace=key[1]) or {}, manifest))
                self._put(key, version, manifest)
        self._versions.list_taken(kind, at)
        return changed

    def put(self, manifest: JsonObject) -> None:
        """Store an object from an answer of the API server, unless a newer version was seen."""
        key, version = key_of(manifest), Version.of(manifest)
        if self._versions.is_news(key, version):
            self._put(key, version, manifest)

    def is_newest(self, manifest: JsonObject) -> bool:
        """Return whether nothing newer was seen of an object."""
        seen = self._versions[key_of(manifest)]
        return seen is not None and seen == Version.of(manifest)

    def assume(self, manifest: JsonObject) -> None:
        """Take an object to be like this until a newer version is seen."""
        self._put(key_of(manifest), Version.of(manifest), manifest)

    def drop(self, kind: str, name: str, *, namespace: str, uid: str) -> None:
        """Remove a deleted object, unless another one has taken its name."""
        key = (kind, namespace, name)
        seen = self._versions[key]
        if seen is not None and seen.is_same_object(Version(uid, "")):
            self._remove(key, seen)

    def _put(self, key: Key, version: Version, manifest: JsonObject) -> None:
        self.n_changes += 1
        self._versions.put(key, version)
        self._objects.setdefault(key[0], {})[key[1:]] = manifest

    def _remove(self, key: Key, version: Version) -> None:
        self.n_changes += 1
        seen = self._versions[key]
        self._versions.drop(key, Version(version.uid or (seen.uid if seen else ""), version.text))
        self._objects.get(key[0], {}).pop(key[1:], None)


def is_same(one: JsonObject, other: JsonObject) -> bool:
    """Return whether two versions of an object say the same."""
    metadata, its = object_at(one, "metadata"), object_at(other, "metadata")
    keys = {*metadata, *its} - {*_OF_WRITES}
    return {**one, "metadata": None} == {**other, "metadata": None} and all(
        metadata.get(key) == its.get(key) for key in keys
    )
