"""Kueue's kinds in their newest version."""

from __future__ import annotations

from kueuecore import _core
from kueuecore._json import JsonObject, text_at
from kueuecore._text import shown
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest, to_json_lines

__all__ = ["converted"]

_GROUP = "kueue.x-k8s.io/"


def converted(manifest: Manifest) -> JsonObject:
    """Return an object in the newest version of its kind; the same object if it has that, or is not Kueue's.

    Raises:
        ManifestError: Kueue has no such kind or version.
    """
    plain = manifest.object
    api_version, kind = text_at(plain, "apiVersion"), text_at(plain, "kind")
    if not api_version.startswith(_GROUP):
        return plain
    found = None
    if kind.isascii():
        found = _core.in_preferred_version(api_version, kind, to_json_lines([plain]))
    if found is None:
        message = f'no matches for kind "{shown(kind)}" in version "{shown(api_version)}"'
        remedy = "write v1beta1 or v1beta2, and one of Kueue's kinds"
        raise ManifestError([manifest.problem(message, field="apiVersion", value=api_version, remedy=remedy)])
    return plain if found == plain else found
