"""Which Workloads of the manager something concerns, so that they are looked at (rules/06 §4.7)."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._conditions import has_quota
from kueuecore._json import JsonObject, list_at, text_at, texts_at
from kueuecore.checks import WorkloadKey
from kueuecore.multikueue.adapters import OWNER_GVK, OWNER_NAME, Adapter, adapter_for
from kueuecore.multikueue.configs import parameters_of
from kueuecore.multikueue.object_store import ObjectStore
from kueuecore.multikueue.work_queue import WorkQueue

__all__ = ["AffectedWorkloads", "key_of"]


class AffectedWorkloads:
    """Puts Workloads into the queue of a manager.

    Args:
        store: What was seen of the manager.
        adapters: Adapters by group, version and kind.
        queue: The queue.
    """

    def __init__(self, store: ObjectStore, adapters: Mapping[str, Adapter], queue: WorkQueue[WorkloadKey]) -> None:
        self._store = store
        self._adapters = adapters
        self._queue = queue
        # Those that hold quota here and have not been won by a worker.
        self._waiting: dict[WorkloadKey, None] = {}
        self._of_owner: dict[tuple[str, str, str], dict[WorkloadKey, None]] = {}

    def note(self, before: JsonObject, after: JsonObject | None) -> None:
        """A Workload is there, has changed, or has gone."""
        if before and (owned := self._of_owner.get(self._owner(before))) is not None:
            owned.pop(key_of(before), None)
        self._waiting.pop(key_of(before), None)
        if after is not None and has_quota(after) and not text_at(after, "status", "clusterName"):
            self._waiting[key_of(after)] = None
        if after is not None:
            self._of_owner.setdefault(self._owner(after), {})[key_of(after)] = None

    def by_worker(self, at: int) -> None:
        """Those that wait for a worker: there may be room on one now."""
        for key in self._waiting:
            self._queue.add(key, at)

    def by_config(self, config: str, at: int) -> None:
        """Those whose check names a MultiKueueConfig."""
        checks = self._store.of_kind("AdmissionCheck")
        using = {text_at(it, "metadata", "name") for it in checks if text_at(parameters_of(it), "name") == config}
        self.by_checks(using, at)

    def by_checks(self, names: set[str], at: int) -> None:
        """Those that have one of some checks."""
        for workload in self._store.of_kind("Workload"):
            if any(text_at(it, "name") in names for it in list_at(workload, "status", "admissionChecks")):
                self._queue.add(key_of(workload), at)

    def by_job(self, job: JsonObject, at: int) -> None:
        """Those of a job."""
        self._of_job(text_at(job, "kind"), *key_of(job), at)

    def by_sibling(self, workload: JsonObject | None, at: int) -> None:
        """Those of the same job, if that has several."""
        annotations = texts_at(workload, "metadata", "annotations")
        adapter = self._adapters.get(annotations.get(OWNER_GVK, ""))
        if workload is not None and adapter is not None and (name := annotations.get(OWNER_NAME)):
            self._of_job(adapter.kind, key_of(workload)[0], name, at)

    def _of_job(self, kind: str, namespace: str, name: str, at: int) -> None:
        for key in self._of_owner.get((kind, namespace, name), ()):
            self._queue.add(key, at)

    def _owner(self, workload: JsonObject) -> tuple[str, str, str]:
        """Kind, namespace and name of the job of a Workload."""
        owner = adapter_for(workload, self._adapters)[1]
        return text_at(owner, "kind"), key_of(workload)[0], text_at(owner, "name")


def key_of(manifest: JsonObject) -> WorkloadKey:
    """Namespace and name of an object."""
    return text_at(manifest, "metadata", "namespace"), text_at(manifest, "metadata", "name")
