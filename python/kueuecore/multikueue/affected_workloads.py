"""Finds the Workloads of the manager that a change affects, so that they are reconciled (rules/06 §4.7)."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._conditions import has_quota
from kueuecore._json import JsonObject, list_at, text_at, texts_at
from kueuecore._nested import remove
from kueuecore.checks import WorkloadKey
from kueuecore.multikueue.adapters import OWNER_GVK, OWNER_NAME, Adapter, adapter_for
from kueuecore.multikueue.configs import parameters_of
from kueuecore.multikueue.object_store import ObjectStore
from kueuecore.multikueue.work_queue import WorkQueue

__all__ = ["AffectedWorkloads", "key_of"]


class AffectedWorkloads:
    """Adds affected Workloads to the queue of a manager.

    Args:
        store: Objects seen on the manager.
        adapters: Adapters by group, version and kind.
        queue: The queue.
    """

    def __init__(self, store: ObjectStore, adapters: Mapping[str, Adapter], queue: WorkQueue[WorkloadKey]) -> None:
        self._store = store
        self._adapters = adapters
        self._queue = queue
        # Workloads that hold quota here and that no worker has won yet.
        self._waiting: dict[WorkloadKey, None] = {}
        self._of_owner: dict[tuple[str, str, str], dict[WorkloadKey, None]] = {}

    def note(self, before: JsonObject, after: JsonObject | None) -> None:
        """Note that a Workload was created, changed or deleted."""
        if before:
            remove(self._of_owner, self._owner(before), key_of(before))
        self._waiting.pop(key_of(before), None)
        if after is not None and has_quota(after) and not text_at(after, "status", "clusterName"):
            self._waiting[key_of(after)] = None
        if after is not None:
            self._of_owner.setdefault(self._owner(after), {})[key_of(after)] = None

    def by_worker(self, at: int) -> None:
        """Queue the Workloads that wait for a worker: one may have room now."""
        for key in self._waiting:
            self._queue.add(key, at)

    def by_config(self, config: str, at: int) -> None:
        """Queue the Workloads whose check names a MultiKueueConfig."""
        checks = self._store.of_kind("AdmissionCheck")
        using = {
            text_at(check, "metadata", "name") for check in checks if text_at(parameters_of(check), "name") == config
        }
        self.by_checks(using, at)

    def by_checks(self, names: set[str], at: int) -> None:
        """Queue the Workloads that have one of these checks."""
        for workload in self._store.of_kind("Workload"):
            if any(text_at(check, "name") in names for check in list_at(workload, "status", "admissionChecks")):
                self._queue.add(key_of(workload), at)

    def by_job(self, job: JsonObject, at: int) -> None:
        """Queue the Workloads of a job."""
        self._of_job(text_at(job, "kind"), *key_of(job), at)

    def by_sibling(self, workload: JsonObject | None, at: int) -> None:
        """Queue the other Workloads of the same job, if it has several."""
        annotations = texts_at(workload, "metadata", "annotations")
        adapter = self._adapters.get(annotations.get(OWNER_GVK, ""))
        if workload is not None and adapter is not None and (name := annotations.get(OWNER_NAME)):
            self._of_job(adapter.kind, key_of(workload)[0], name, at)

    def _of_job(self, kind: str, namespace: str, name: str, at: int) -> None:
        for key in self._of_owner.get((kind, namespace, name), ()):
            self._queue.add(key, at)

    def _owner(self, workload: JsonObject) -> tuple[str, str, str]:
        """Return kind, namespace and name of the job of a Workload."""
        owner = adapter_for(workload, self._adapters)[1]
        return text_at(owner, "kind"), key_of(workload)[0], text_at(owner, "name")


def key_of(manifest: JsonObject) -> WorkloadKey:
    """Return namespace and name of an object."""
    return text_at(manifest, "metadata", "namespace"), text_at(manifest, "metadata", "name")
