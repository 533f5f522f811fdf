"""Handles the pods of StatefulSets and LeaderWorkerSets: they follow the queue of their set, and lose their gates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.jobs.context import QUEUE_LABEL, Surroundings, labels_of
from kueuecore.jobs.field_paths import with_value
from kueuecore.jobs.injection import TOPOLOGY_GATE
from kueuecore.jobs.job_status import has_condition
from kueuecore.jobs.pod import ADMISSION_GATE, group_name
from kueuecore.jobs.scheduling_gates import without_gate
from kueuecore.writes import Verb, Write

__all__ = ["in_queue", "is_of_old_revision", "may_leave_by_revision", "objects_beside", "ungate_pods", "ungated"]

_REVISION = "controller-revision-hash"


def objects_beside(job: JsonObject, api_version: str, kind: str, surroundings: Surroundings) -> Iterator[JsonObject]:
    """Yield the objects of a kind in the namespace of a job, at least those that may belong to a set."""
    namespace = text_at(job, "metadata", "namespace") or surroundings.configuration.default_namespace
    if surroundings.members is not None:
        for member in surroundings.members:
            if (text_at(member, "apiVersion"), text_at(member, "kind")) == (api_version, kind):
                yield member
        return
    for (its_version, its_kind, its_namespace, _), plain in surroundings.by_key.items():
        if (its_version, its_kind, its_namespace) == (api_version, kind, namespace):
            yield plain


def is_of_old_revision(stateful_set: JsonObject, pod: JsonObject) -> bool:
    """Return whether a rollout of its StatefulSet replaces a pod: it is deleted soon, and may run until then."""
    current, update = (text_at(stateful_set, "status", key) for key in ("currentRevision", "updateRevision"))
    return current != update and labels_of(pod).get(_REVISION, "") == current


def may_leave_by_revision(pod: JsonObject, surroundings: Surroundings) -> bool:
    """Return whether a pod that a rollout replaces may run until then: its Workload has to be admitted."""
    if not surroundings.has("OldRevisionsWaitForAdmission"):
        return True
    namespace = text_at(pod, "metadata", "namespace")
    workload = surroundings.workloads.get((namespace, group_name(pod, surroundings.configuration)))
    return workload is not None and has_condition(workload, "Admitted")


def ungated(pod: JsonObject) -> JsonObject:
    """Return a pod without its gates for admission and topology."""
    spec = object_at(pod, "spec")
    freed = without_gate(without_gate(spec, ADMISSION_GATE), TOPOLOGY_GATE)
    return pod if freed is spec else {**pod, "spec": freed}


def in_queue(pod: JsonObject, queue: str) -> JsonObject:
    """Return a pod in another queue."""
    if labels_of(pod).get(QUEUE_LABEL) == queue:
        return pod
    return with_value(pod, ("metadata", "labels", QUEUE_LABEL), queue)


def ungate_pods(pods: Iterable[JsonObject]) -> tuple[Write, ...]:
    """Return the writes that ungate the pods of a deleted LeaderWorkerSet (rules/10 §5.7).

    They would never be admitted, and so could not end.

    Args:
        pods: Its pods, which have its name in their label `leaderworkerset.sigs.k8s.io/name`.

    Example:
        >>> gates = [{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}]
        >>> (write,) = ungate_pods([{"kind": "Pod", "spec": {"schedulingGates": gates}}])
        >>> write.manifest["spec"]
        {}
    """
    return tuple(Write(Verb.UPDATE, after) for pod in pods if (after := ungated(pod)) is not pod)
