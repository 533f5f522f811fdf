"""Moves jobs from a queue of the manager to one that dispatches, by deleting and recreating them.

In between, the job would exist nowhere. It is therefore stored first in a ConfigMap beside it, which is deleted last,
so that a restarted manager continues where the previous one stopped.
"""

from __future__ import annotations

import hashlib
import json

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at, texts_at
from kueuecore.checks import WorkloadKey
from kueuecore.jobs.field_paths import without_value
from kueuecore.multikueue.adapters import Adapter, adapter_for, clone_metadata, gvk_text, prebuilt_name, with_text
from kueuecore.multikueue.commands import MANAGER
from kueuecore.multikueue.dispatcher_protocol import OverflowPolicy
from kueuecore.multikueue.object_store import ObjectStore
from kueuecore.multikueue.settings import MultiKueueSettings
from kueuecore.multikueue.workload_group import Result, delete
from kueuecore.writes import Verb, Write

__all__ = ["MOVING_LABEL", "JobMoves", "moved_workload"]

MOVING_LABEL = "multikueue.kueuecore/moving"
"""The label of the ConfigMaps that store jobs being moved."""
_QUEUE = "kueue.x-k8s.io/queue-name"


class JobMoves:
    """Moves the jobs that an overflow policy selects, one step at a time.

    A job stays if another object owns it, which would recreate it; if it names a Workload that somebody else created;
    if it has several Workloads; or if it is a group of pods.

    Args:
        store: Objects seen on the manager.
        adapters: Adapters by group, version and kind.
        policy: Decides which jobs move.
        settings: The settings of the manager.
    """

    def __init__(
        self, store: ObjectStore, adapters: dict[str, Adapter], policy: OverflowPolicy, settings: MultiKueueSettings
    ) -> None:
        self._store = store
        self._adapters = adapters
        self._policy = policy
        self._settings = settings

    def look(self, key: WorkloadKey, now: int) -> Result | None:
        """Return the next step for the job of a Workload; None if it stays and need not be looked at again.

        Args:
            key: Namespace and name of the Workload.
            now: The time, in nanoseconds since 1970.
        """
        workload = self._store.get("Workload", key[1], namespace=key[0])
        record = self._store.get("ConfigMap", _record_name(key), namespace=key[0])
        if record is not None and moved_workload(record) == key:
            return self._go_on(record, workload, now)
        adapter, job = self._job_of(workload)
        if workload is None or adapter is None or job is None:
            return None
        overflowing = self._policy.look(job, workload, now=now)
        if overflowing.queue not in ("", texts_at(job, "metadata", "labels").get(_QUEUE)):
            manifest = _made_anew(job, adapter, overflowing.queue)
            return Result([Write(Verb.CREATE, _record(key, job, manifest))])
        again = self._settings.wake_in_ns(overflowing.look_again, now)
        return None if again is None else Result(wake_in_ns=again)

    def _go_on(self, record: JsonObject, workload: JsonObject | None, now: int) -> Result:
        manifest, namespace = self._written_down(record), text_at(record, "metadata", "namespace")
        if manifest is None:
            return Result(problem=f'ConfigMap "{text_at(record, "metadata", "name")}" holds no job of its namespace')
        name = text_at(manifest, "metadata", "name")
        there = self._store.get(text_at(manifest, "kind"), name, namespace=namespace)
        if there is None:
            return Result([Write(Verb.CREATE, manifest)])
        if text_at(there, "metadata", "uid") != text_at(record, "data", "uid"):
            return Result([delete(MANAGER, record)])
        if text_at(there, "metadata", "deletionTimestamp"):
            # It waits for finalizers.
            return Result(wake_in_ns=self._settings.deferred_sync_ns)
        if workload is None or not self._policy.look(there, workload, now=now).queue:
            # It got quota here after all.
            return Result([delete(MANAGER, record)])
        # A job that has started since then has another version.
        return Result([delete(MANAGER, there, is_of_version=True)])

    def _written_down(self, record: JsonObject) -> JsonObject | None:
        """Return the job stored in a ConfigMap; None if it holds anything else, as others may have written it."""
        try:
            manifest = json.loads(text_at(record, "data", "job"))
        except ValueError:
            return None
        is_here = text_at(manifest, "metadata", "namespace") == text_at(record, "metadata", "namespace")
        is_job = gvk_text(text_at(manifest, "apiVersion"), text_at(manifest, "kind")) in self._adapters
        return object_at(manifest) if is_here and is_job else None

    def _job_of(self, workload: JsonObject | None) -> tuple[Adapter | None, JsonObject | None]:
        """Return the job of a Workload, if it can be recreated."""
        if workload is None or text_at(workload, "metadata", "deletionTimestamp"):
            return None, None
        adapter, owner = adapter_for(workload, self._adapters)
        if adapter is None or adapter.has_members or adapter.n_workloads is not None:
            return None, None
        namespace = text_at(workload, "metadata", "namespace")
        job = self._store.get(adapter.kind, text_at(owner, "name"), namespace=namespace)
        if job is None or text_at(owner, "uid") not in ("", text_at(job, "metadata", "uid")):
            return None, None
        is_owned = any(
            object_at(reference).get("controller") is True for reference in list_at(job, "metadata", "ownerReferences")
        )
        stays = is_owned or prebuilt_name(job, self._settings) or text_at(job, "metadata", "deletionTimestamp")
        return (None, None) if stays else (adapter, job)


def moved_workload(record: JsonObject) -> WorkloadKey:
    """Return the key of the Workload whose job a ConfigMap stores; its name is empty if it stores none."""
    is_ours = MOVING_LABEL in object_at(record, "metadata", "labels")
    return text_at(record, "metadata", "namespace"), text_at(record, "data", "workload") if is_ours else ""


def _record(key: WorkloadKey, job: JsonObject, manifest: JsonObject) -> JsonObject:
    metadata: JsonObject = {"namespace": key[0], "name": _record_name(key), "labels": {MOVING_LABEL: "true"}}
    uid = text_at(job, "metadata", "uid")
    data: JsonObject = {"workload": key[1], "uid": uid, "job": json.dumps(manifest, sort_keys=True)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True, "data": data}


def _record_name(key: WorkloadKey) -> str:
    """Return the name of the ConfigMap, unique to each Workload however long its name is."""
    return f"moving-{hashlib.sha256(key[1].encode()).hexdigest()[:32]}"


def _made_anew(job: JsonObject, adapter: Adapter, queue: str) -> JsonObject:
    """Return a job as a user would submit it to another queue: without `managedBy` and what its cluster added."""
    metadata: dict[str, JsonValue] = clone_metadata(job)
    if owners := list_at(job, "metadata", "ownerReferences"):
        metadata["ownerReferences"] = owners
    result: JsonObject = {key: row for key, row in job.items() if key != "status"} | {"metadata": metadata}
    if adapter.managed_by is not None:
        result = without_value(result, adapter.managed_by)
    return with_text(adapter.prepare(result), "labels", _QUEUE, queue)
