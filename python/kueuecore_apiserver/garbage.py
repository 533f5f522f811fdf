"""Collects garbage: objects without owners, dependents of foreground deletions, contents of ending namespaces."""

from __future__ import annotations

from typing import TypeAlias

from kueuecore._json import list_at, object_at, text_at
from kueuecore_apiserver.deletes import CRD_FINALIZER, FOREGROUND, ORPHAN, Deletes
from kueuecore_apiserver.requests import Object
from kueuecore_apiserver.store import Store

__all__ = ["Garbage"]

_Key: TypeAlias = tuple[str, str, str]
"""The stored kind, namespace and name."""


class Garbage:
    """Knows the owners of objects, and what must be deleted. It looks only at changes since its last run.

    Args:
        store: The objects.
        deletes: Deletes them.
    """

    def __init__(self, store: Store, deletes: Deletes) -> None:
        self._store, self._deletes = store, deletes
        self._alive: dict[str, _Key] = {}
        self._dependents: dict[str, set[_Key]] = {}
        # Dicts, to keep the order.
        self._suspects: dict[_Key, None] = {}
        self._ending: dict[_Key, None] = {}
        for resource in store.registry:
            for row in store.api.list(resource.stored_as)[0]:
                self._note(resource.stored_as, row)
        store.api.listeners.append(self._heard)

    def _heard(self, kind: str, event: Object, before: Object | None) -> None:
        manifest = event["object"]
        if before is not None:
            self._forget(kind, before)
        if event["type"] == "DELETED":
            uid = manifest["metadata"]["uid"]
            self._alive.pop(uid, None)
            self._suspects |= dict.fromkeys(sorted(self._dependents.get(uid, ())))
            self._ending.pop(_key(kind, manifest), None)
        else:
            self._note(kind, manifest)

    def _forget(self, kind: str, manifest: Object) -> None:
        for uid in _owners(manifest):
            dependents = self._dependents.get(uid)
            if dependents is not None:
                dependents.discard(_key(kind, manifest))
                if not dependents:
                    del self._dependents[uid]

    def _note(self, kind: str, manifest: Object) -> None:
        key = _key(kind, manifest)
        self._alive[manifest["metadata"]["uid"]] = key
        owners = _owners(manifest)
        for uid in owners:
            self._dependents.setdefault(uid, set()).add(key)
        if any(uid not in self._alive for uid in owners):
            self._suspects[key] = None
        if "deletionTimestamp" in manifest["metadata"]:
            self._ending[key] = None

    def collect(self) -> int:
        """Delete what must be deleted, until nothing is left to delete.

        Returns:
            The number of objects that were deleted or changed.
        """
        before = self._store.api.version
        while True:
            version = self._store.api.version
            suspects, self._suspects = self._suspects, {}
            for key in suspects:
                self._look_at(key)
            for key in list(self._ending):
                self._go_on_with(key)
            if self._store.api.version == version:
                return version - before

    def _look_at(self, key: _Key) -> None:
        """Delete an object whose owners are all gone; if some are left, only remove the references to the others."""
        found = self._find(key)
        owners = _owners(found) if found is not None else []
        if found is None or not owners:
            return
        left = [uid for uid in owners if uid in self._alive]
        if not left:
            self._delete(key, {})
        elif len(left) < len(owners):
            refs = [reference for reference in found["metadata"]["ownerReferences"] if reference["uid"] in self._alive]
            self._replace(key, {**found, "metadata": {**found["metadata"], "ownerReferences": refs}})

    def _go_on_with(self, key: _Key) -> None:
        """Do what a deleted object waits for."""
        found = self._find(key)
        if found is None:
            return
        finalizers = list_at(found, "metadata", "finalizers")
        if key[0] == "Namespace":
            self._empty_namespace(key, found)
        elif key[0] == "CustomResourceDefinition" and CRD_FINALIZER in finalizers:
            self._deletes.finish_crd(key[2])
        elif ORPHAN in finalizers:
            self._orphan(key, found)
        elif FOREGROUND in finalizers:
            self._delete_dependents(key, found)

    def _orphan(self, key: _Key, found: Object) -> None:
        uid = found["metadata"]["uid"]
        for dependent in sorted(self._dependents.get(uid, ())):
            it = self._find(dependent)
            if it is not None:
                refs = [ref for ref in it["metadata"]["ownerReferences"] if ref["uid"] != uid]
                metadata = {name: value for name, value in it["metadata"].items() if name != "ownerReferences"}
                self._replace(dependent, {**it, "metadata": metadata | ({"ownerReferences": refs} if refs else {})})
        self._without_finalizer(key, found, ORPHAN)

    def _delete_dependents(self, key: _Key, found: Object) -> None:
        """Delete what an object owns; the object goes once no dependent is left that blocks its deletion."""
        uid = found["metadata"]["uid"]
        for dependent in sorted(self._dependents.get(uid, ())):
            it = self._find(dependent)
            if it is not None and "deletionTimestamp" not in it["metadata"]:
                self._delete(dependent, {"propagationPolicy": "Foreground"} if self._dependents_of(it) else {})
        left = [self._find(dependent) for dependent in self._dependents.get(uid, ())]
        if not any(_blocks(dependent, uid) for dependent in left if dependent is not None):
            self._without_finalizer(key, found, FOREGROUND)

    def _dependents_of(self, manifest: Object) -> bool:
        return bool(self._dependents.get(manifest["metadata"]["uid"]))

    def _empty_namespace(self, key: _Key, found: Object) -> None:
        """Delete the contents of a namespace, and then the namespace."""
        name = key[2]
        for resource in list(self._store.registry):
            if resource.namespaced and resource.version == resource.storage_version:
                self._deletes.delete_all(resource, name)
        is_empty = not any(self._store.objects(entry, name) for entry in self._store.registry if entry.namespaced)
        if is_empty and not list_at(found, "metadata", "finalizers"):
            spec = {**object_at(found, "spec"), "finalizers": []}
            self._replace(key, {**found, "spec": spec})

    def _find(self, key: _Key) -> Object | None:
        return self._store.api.find(key[0], key[2], namespace=key[1])

    def _delete(self, key: _Key, options: Object) -> None:
        resource, found = self._store.registry.stored(key[0]), self._find(key)
        if resource is not None and found is not None:
            self._deletes.delete_found(resource, found, options)

    def _replace(self, key: _Key, manifest: Object) -> None:
        self._store.api.replace(manifest, kind=key[0])

    def _without_finalizer(self, key: _Key, found: Object, name: str) -> None:
        finalizers = [finalizer for finalizer in list_at(found, "metadata", "finalizers") if finalizer != name]
        self._replace(key, {**found, "metadata": {**found["metadata"], "finalizers": finalizers}})


def _key(kind: str, manifest: Object) -> _Key:
    return kind, manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]


def _owners(manifest: Object) -> list[str]:
    return [text_at(object_at(reference), "uid") for reference in list_at(manifest, "metadata", "ownerReferences")]


def _blocks(manifest: Object, uid: str) -> bool:
    refs = map(object_at, list_at(manifest, "metadata", "ownerReferences"))
    return any(ref.get("uid") == uid and ref.get("blockOwnerDeletion") is True for ref in refs)
