"""Names jobs that leave their name to the API server."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.manifests import Manifest

__all__ = ["GeneratedNames"]


class GeneratedNames:
    """Gives namespaces and names to jobs that leave them to the API server.

    To a `generateName` the server appends five random characters; here it is the lowest unused number, so that the same
    manifests give the same names.
    """

    def __init__(self, manifests: Iterable[Manifest], default_namespace: str) -> None:
        self._default_namespace = default_namespace
        self._taken = {self._key(it.object, text_at(it.object, "metadata", "name")) for it in manifests}
        self._numbers: dict[tuple[str, str, str], int] = {}

    def _key(self, job: JsonObject, name: str) -> tuple[str, str, str]:
        namespace = text_at(job, "metadata", "namespace") or self._default_namespace
        return text_at(job, "kind"), namespace, name

    def complete(self, job: JsonObject) -> JsonObject:
        """Return the job with a namespace and a name."""
        metadata = dict(object_at(job, "metadata"))
        metadata["namespace"] = text_at(job, "metadata", "namespace") or self._default_namespace
        prefix = text_at(job, "metadata", "generateName")
        if prefix and not text_at(job, "metadata", "name"):
            number = self._numbers.get(self._key(job, prefix), 1)
            while self._key(job, f"{prefix}{number:05}") in self._taken:
                number += 1
            self._numbers[self._key(job, prefix)] = number + 1
            metadata["name"] = f"{prefix}{number:05}"
        return {**job, "metadata": metadata}
