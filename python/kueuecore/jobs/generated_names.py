"""Names objects that leave their name to the API server."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.manifests import Manifest

__all__ = ["GeneratedNames"]


class GeneratedNames:
    """Gives names and namespaces to objects that leave them to the API server.

    To a `generateName` the server appends five random characters; here it is the lowest unused number, so that the same
    manifests give the same names.

    Args:
        manifests: All objects; their names are taken.
        default_namespace: The namespace of objects that name none.
    """

    def __init__(self, manifests: Iterable[Manifest], default_namespace: str) -> None:
        self._default_namespace = default_namespace
        self._taken = {
            self._key(manifest.object, text_at(manifest.object, "metadata", "name")) for manifest in manifests
        }
        self._numbers: dict[tuple[str, str, str], int] = {}

    def named(self, plain: JsonObject) -> JsonObject:
        """Return an object with a name, if it has a `generateName`."""
        prefix = text_at(plain, "metadata", "generateName")
        if not prefix or text_at(plain, "metadata", "name"):
            return plain
        number = self._numbers.get(self._key(plain, prefix), 1)
        while self._key(plain, f"{prefix}{number:05}") in self._taken:
            number += 1
        self._numbers[self._key(plain, prefix)] = number + 1
        return {**plain, "metadata": {**object_at(plain, "metadata"), "name": f"{prefix}{number:05}"}}

    def complete(self, plain: JsonObject) -> JsonObject:
        """Return an object with a name and a namespace."""
        named = self.named(plain)
        namespace = text_at(plain, "metadata", "namespace") or self._default_namespace
        return {**named, "metadata": {**object_at(named, "metadata"), "namespace": namespace}}

    def _key(self, plain: JsonObject, name: str) -> tuple[str, str, str]:
        namespace = text_at(plain, "metadata", "namespace") or self._default_namespace
        return text_at(plain, "kind"), namespace, name
