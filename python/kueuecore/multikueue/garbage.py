"""What is on a worker and has nothing here any more (rules/06 §4.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kueuecore._json import JsonObject, text_at
from kueuecore.multikueue.adapters import Adapter, gvk_text, is_owned, owner_of
from kueuecore.multikueue.stores import Store

__all__ = ["garbage_on"]


def garbage_on(store: Store, local: Store, adapters: Mapping[str, Adapter], origin: str) -> Iterator[JsonObject]:
    """Jobs and Workloads to delete on a worker: ours, and whose Workload here is not there or is being deleted.

    Args:
        store: What was seen of the worker.
        local: What was seen of the manager.
        adapters: Adapters by group, version and kind.
        origin: The origin of the manager.
    """
    for copy in store.of_kind("Workload"):
        namespace = text_at(copy, "metadata", "namespace")
        original = local.get("Workload", text_at(copy, "metadata", "name"), namespace=namespace)
        is_needed = original is not None and not text_at(original, "metadata", "deletionTimestamp")
        if is_needed or not is_owned(copy, origin):
            continue
        owner = owner_of(copy)
        if owner is not None and owner.get("controller") is True:
            adapter = adapters.get(gvk_text(text_at(owner, "apiVersion"), text_at(owner, "kind")))
            job = store.get(adapter.kind, text_at(owner, "name"), namespace=namespace) if adapter else None
            if job is not None and is_owned(job, origin):
                yield job
        if not text_at(copy, "metadata", "deletionTimestamp"):
            yield copy
