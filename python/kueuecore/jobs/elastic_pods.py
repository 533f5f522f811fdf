"""Keeps the pods of elastic jobs behind a gate until the slice that counts them is admitted (rules/10 §6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from kueuecore.jobs.context import PREFIX, JobsConfiguration, annotations_of, labels_of
from kueuecore.jobs.field_paths import with_value
from kueuecore.jobs.injection import POD_SET_LABEL, SLICE_NAME_ANNOTATION
from kueuecore.jobs.job_status import has_condition
from kueuecore.jobs.pod import is_terminated
from kueuecore.jobs.scheduling_gates import has_gate, without_gate
from kueuecore.writes import Verb, Write

__all__ = ["slice_name", "ungate_elastic_pods"]

_GATE = f"{PREFIX}elastic-job"
# What a ProvisioningRequest sets on pods does not change once they have it.
_FIXED = ("autoscaling.x-k8s.io/consume-provisioning-request", "autoscaling.x-k8s.io/provisioning-class-name")


def slice_name(workload: JsonObject) -> str:
    """Return the name shared by all slices of a job: that of the first."""
    return annotations_of(workload).get(SLICE_NAME_ANNOTATION) or text_at(workload, "metadata", "name")


def ungate_elastic_pods(
    workloads: Sequence[JsonObject], pods: Iterable[JsonObject], configuration: JobsConfiguration
) -> list[Write]:
    """Return the writes that release the pods for which the job's admitted slice has room.

    Args:
        workloads: The slices of the job, the oldest first.
        pods: The pods of the namespace; those of other jobs are left alone.
        configuration: Has the changes of Kueue.
    """
    waits_for_checks = configuration.has("ActiveSliceReleasesPods")
    active = _active(workloads) if waits_for_checks else _newest_with_quota(workloads)
    if active is None:
        return []
    its_name = slice_name(active)
    mine = [
        pod for pod in pods if annotations_of(pod).get(SLICE_NAME_ANNOTATION) == its_name and not is_terminated(pod)
    ]
    ungated = Counter(labels_of(pod).get(POD_SET_LABEL, "") for pod in mine if not _is_gated(pod))
    writes = []
    for pod_set in list_at(active, "spec", "podSets"):
        name = text_at(pod_set, "name")
        annotations, selector = _updates(active, name) if waits_for_checks else ({}, {})
        gated = [
            pod
            for pod in mine
            if _is_gated(pod)
            and labels_of(pod).get(POD_SET_LABEL, "") == name
            and _agrees(annotations_of(pod), annotations)
            and _agrees(object_at(pod, "spec", "nodeSelector"), selector)
        ]
        # Released pods hold quota too.
        room = max(0, int_at(pod_set, "count", default=1) - ungated[name])
        first = sorted(gated, key=lambda pod: text_at(pod, "metadata", "name"))[:room]
        writes += [Write(Verb.UPDATE, _released(pod, annotations, selector)) for pod in first]
    return writes


def _active(workloads: Sequence[JsonObject]) -> JsonObject | None:
    """Return the newest slice with quota, if all its checks are ready too."""
    for workload in reversed(workloads):
        holds = has_condition(workload, "QuotaReserved") and not has_condition(workload, "Finished")
        if holds and not has_condition(workload, "Evicted"):
            return workload if has_condition(workload, "Admitted") else None
    return None


def _newest_with_quota(workloads: Sequence[JsonObject]) -> JsonObject | None:
    """Return the newest slice with quota, evicted or not, if the first slice is still there."""
    live = (workload for workload in reversed(workloads) if not has_condition(workload, "Finished"))
    newest = next((workload for workload in live if has_condition(workload, "QuotaReserved")), None)
    names = [text_at(workload, "metadata", "name") for workload in workloads]
    return newest if newest is not None and slice_name(newest) in names else None


def _is_gated(pod: JsonObject) -> bool:
    return has_gate(object_at(pod, "spec"), _GATE)


def _updates(workload: JsonObject, pod_set: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the annotations and node selector that checks give to a pod set."""
    annotations: dict[str, str] = {}
    selector: dict[str, str] = {}
    for check in list_at(workload, "status", "admissionChecks"):
        for update in list_at(check, "podSetUpdates"):
            if text_at(update, "name") == pod_set:
                given = annotations_of({"metadata": update if isinstance(update, dict) else {}})
                annotations |= {key: given[key] for key in _FIXED if key in given}
                selector |= {key: str(entry) for key, entry in object_at(update, "nodeSelector").items()}
    return annotations, selector


def _agrees(before: object, update: dict[str, str]) -> bool:
    """Return whether an update changes no existing value; otherwise the pod must be recreated."""
    there = before if isinstance(before, dict) else {}
    return all(there.get(key, value) == value for key, value in update.items())


def _released(pod: JsonObject, annotations: dict[str, str], selector: dict[str, str]) -> JsonObject:
    released = {**pod, "spec": without_gate(object_at(pod, "spec"), _GATE)}
    for key, value in annotations.items():
        released = with_value(released, ("metadata", "annotations", key), value)
    for key, value in selector.items():
        released = with_value(released, ("spec", "nodeSelector", key), value)
    return released
