"""Makes an API server in memory as strict as one with Kueue's definitions and webhooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.manifests import ManifestLike, plain_object
from kueuecore.webhooks import Stored, admit
from kueuecore_apiserver.crd_schema import CrdSchema
from kueuecore_apiserver.crds import KINDS, crd

__all__ = ["StrictWebhooks", "kueue_schema"]

_GROUP = "kueue.x-k8s.io"
# Fields that a server sets itself, and that are not part of a write.
_KEPT = ("resourceVersion", "uid", "generation", "creationTimestamp", "managedFields")


class StrictWebhooks:
    """Applies the schemas of Kueue's definitions, including the rules in CEL, and then its webhooks.

    Pass it to an `ApiServer` as `webhooks`. Objects of other kinds are stored as they are.

    Args:
        checked: Counts what was checked, by kind, and status updates separately.
        refused: Collects why each object was refused.

    Example:
        >>> from kueuecore.api_server import ApiServer, RefusedError
        >>> server = ApiServer(webhooks=StrictWebhooks())
        >>> metadata = {"name": "q", "namespace": "lab"}
        >>> queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": metadata}
        >>> try:
        ...     server.create({**queue, "spec": {"clusterQueue": "Large"}})
        ... except RefusedError as refused:
        ...     print(refused.code, str(refused)[:66])
        422 LocalQueue.kueue.x-k8s.io "q" is invalid: spec.clusterQueue: Inval
    """

    def __init__(self, checked: Counter[str] | None = None, refused: list[str] | None = None) -> None:
        self.checked: Counter[str] = Counter() if checked is None else checked
        self.refused: list[str] = [] if refused is None else refused

    def __call__(self, new: ManifestLike, *, old: ManifestLike | None = None, around: Iterable[ManifestLike]) -> Stored:
        """Return an object as it is stored.

        Raises:
            RefusedError: Its schema (422) or a webhook (403) refuses it.
            ValueError: An update changes the status and something else, which no server accepts in one request.
        """
        written, before = plain_object(new), None if old is None else plain_object(old)
        group, _, version = text_at(written, "apiVersion").partition("/")
        kind = text_at(written, "kind")
        if group != _GROUP or kind not in KINDS:
            return Stored(written)
        subresource = _subresource(written, before)
        self.checked[f"{kind}/{subresource}" if subresource else kind] += 1
        try:
            stored = kueue_schema(kind, version).stored(written, before, subresource=subresource)
            return admit(stored, old=before, around=around)
        except RefusedError as error:
            self.refused.append(f"{kind} {text_at(written, 'metadata', 'name')}: {error}")
            raise


@cache
def kueue_schema(kind: str, version: str) -> CrdSchema:
    """Return the schema of one of Kueue's kinds, compiled once."""
    return CrdSchema.of(crd(kind), version)


def _subresource(new: JsonObject, old: JsonObject | None) -> str:
    """Return what an update is of: `status`, or empty for the object itself."""
    if old is None or new.get("status") == old.get("status"):
        return ""
    if _apart(new) != _apart(old):
        raise ValueError(f"{new['kind']} {text_at(new, 'metadata', 'name')}: the status and more change in one request")
    return "status"


def _apart(manifest: JsonObject) -> JsonObject:
    """Return an object without its status, and without the fields that a server sets itself."""
    metadata = {key: entry for key, entry in object_at(manifest, "metadata").items() if key not in _KEPT}
    return {key: row for key, row in manifest.items() if key != "status"} | {"metadata": metadata}
