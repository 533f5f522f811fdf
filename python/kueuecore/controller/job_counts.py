"""Counts the accepted requests of jobs in the metrics (rules/09 §10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.controller.job_store import JobKey
from kueuecore.controller.metrics import Metrics
from kueuecore.controller.versions import Key, key_of
from kueuecore.jobs import Reconciliation
from kueuecore.jobs.context import ELASTIC_JOB
from kueuecore.jobs.pod_group import POD_GROUP
from kueuecore.writes import Verb

__all__ = ["JobCounts"]

_GATES = ("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology", ELASTIC_JOB)


class JobCounts:
    """Counts the Workloads created for jobs, and the gates removed from pods.

    Args:
        metrics: Where to count; nothing is counted without.
        stored: Returns an object as it was last seen.
    """

    def __init__(self, metrics: Metrics | None, stored: Callable[[Key], JsonObject | None]) -> None:
        self._metrics = metrics
        self._stored = stored
        # By job, what counts once all its requests are accepted: Workloads with their jobs, and gates.
        self._made: dict[JobKey, list[tuple[Key, JsonObject]]] = {}
        self._freed: dict[JobKey, list[tuple[str, JsonObject, int]]] = {}
        # Workloads that no watch has shown yet, with their jobs.
        self._unseen: dict[Key, JsonObject] = {}

    def note(self, key: JobKey, job: JsonObject, found: Reconciliation, now: int) -> None:
        """Note what one reconcile of a job decided."""
        if self._metrics is None:
            return
        made, freed = [], []
        for write in found.writes:
            kind = text_at(write.manifest, "kind")
            if kind == "Workload" and write.verb is Verb.CREATE:
                made.append((key_of(write.manifest), _object_of(job)))
            elif (kind, write.verb, write.subresource) == ("Pod", Verb.UPDATE, "") and found.workload is not None:
                left = set(_gates(write.manifest))
                before = _gates(self._stored(key_of(write.manifest)) or {})
                freed += [(gate, found.workload, now) for gate in before if gate in _GATES and gate not in left]
        self._made[key], self._freed[key] = made, freed

    def count(self, key: JobKey) -> None:
        """Count what a job's accepted requests did."""
        if self._metrics is None:
            return
        for made, job in self._made.pop(key, ()):
            self._unseen[made] = job
            if (seen := self._stored(made)) is not None:
                self.see(made, seen)
        for gate, workload, now in self._freed.pop(key, ()):
            # Where Kueue removes this gate, it does not know the group.
            is_group = key.kind == POD_GROUP.kind and gate != ELASTIC_JOB
            self._metrics.gate_removed(gate, workload, now=now, is_group=is_group)

    def drop(self, key: JobKey) -> None:
        """Drop what a job's refused requests would have counted."""
        self._made.pop(key, None)
        self._freed.pop(key, None)

    def see(self, key: Key, manifest: JsonObject) -> None:
        """Take in the current version of an object."""
        if self._unseen and (job := self._unseen.pop(key, None)) is not None and self._metrics is not None:
            self._metrics.workload_created(job, manifest)


def _object_of(job: JsonObject) -> JsonObject:
    """Return the object that represents a job: for a group its first pod."""
    items = list_at(job, "items")
    return {**object_at(items[0]), "kind": "Pod"} if items else job


def _gates(pod: JsonObject) -> Iterator[str]:
    return (text_at(gate, "name") for gate in list_at(pod, "spec", "schedulingGates"))
