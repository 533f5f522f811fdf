"""Supports StatefulSets: one Workload for all pods (rules/10 §5.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at, texts_at
from kueuecore.errors import Problem
from kueuecore.jobs.context import (
    PRIORITY_CLASS_LABEL,
    QUEUE_LABEL,
    JobsConfiguration,
    Surroundings,
    configuration_or_default,
    labels_of,
    set_annotation,
)
from kueuecore.jobs.field_paths import with_value
from kueuecore.jobs.field_types import Exactly, Shape, Type
from kueuecore.jobs.integration import Integration, JobPodSet, NoWorkload, WorkloadIdentity
from kueuecore.jobs.manifest_shapes import TEMPLATE, template_problems
from kueuecore.jobs.owners import should_wait
from kueuecore.jobs.pod import FAST_ADMISSION, POD_INDEX_SOURCE, SERVING, SUSPENDED_BY_PARENT
from kueuecore.jobs.rejections import forbidden, immutable
from kueuecore.jobs.role_hash import spec_changes
from kueuecore.jobs.serving import check_pod, has_origin, marked_pod, serving_identity, serving_name
from kueuecore.jobs.validation import topology_of_each_is_valid

__all__ = [
    "STATEFUL_SET",
    "STATEFUL_SET_FIELDS",
    "is_on_hold",
    "joined_set",
    "n_replicas",
    "pod_of_stateful_set",
    "workload_of_stateful_set",
]

_FRAMEWORK = "statefulset"
_POD_INDEX = "apps.kubernetes.io/pod-index"
_TEMPLATE = ("spec", "template")
_UNREAD = (
    *("minReadySeconds", "ordinals", "persistentVolumeClaimRetentionPolicy", "podManagementPolicy"),
    *("revisionHistoryLimit", "selector", "serviceName", "updateStrategy", "volumeClaimTemplates"),
)
STATEFUL_SET_FIELDS: Mapping[str, Shape] = {
    "spec": Exactly({"replicas": Type.COUNT, "template": TEMPLATE, **dict.fromkeys(_UNREAD, Type.ANY)}),
    "status": {
        **dict.fromkeys(("readyReplicas", "replicas"), Type.COUNT),
        **dict.fromkeys(("currentRevision", "updateRevision"), Type.TEXT),
    },
}


def pod_of_stateful_set(pod: JsonObject, job: JsonObject, configuration: JobsConfiguration) -> JsonObject:
    """Return a pod of a StatefulSet as Kueue marks it, so that it is admitted with the others.

    Raises:
        ManifestError: A field of one of them has the wrong type.
    """
    configuration = configuration_or_default(configuration)
    check_pod(pod, job, STATEFUL_SET_FIELDS)
    return joined_set(pod, job, _identity(job, 0, configuration).name, configuration)


def joined_set(pod: JsonObject, job: JsonObject, workload: str, configuration: JobsConfiguration) -> JsonObject:
    """Return a pod as a member of the group of its StatefulSet.

    Args:
        pod: The pod.
        job: The StatefulSet.
        workload: Name of the Workload.
        configuration: Has the feature gates.
    """
    labels = {key: labels_of(job).get(key, "") for key in (QUEUE_LABEL, PRIORITY_CLASS_LABEL)}
    marked = marked_pod(pod, workload, configuration, labels=labels, size=n_replicas(job), role="main")
    for key, value in ((FAST_ADMISSION, "true"), (SERVING, "true"), (POD_INDEX_SOURCE, _POD_INDEX)):
        set_annotation(marked, key, value)
    return marked


def n_replicas(job: JsonObject) -> int:
    """Return how many pods a StatefulSet has, or will have."""
    return int_at(job, "spec", "replicas", default=1)


def _parent(job: JsonObject) -> str:
    """Return the framework that gates the pods of the set."""
    return texts_at(job, *_TEMPLATE, "metadata", "annotations").get(SUSPENDED_BY_PARENT, _FRAMEWORK)


def _hold_back(job: JsonObject, _configuration: JobsConfiguration) -> JsonObject:
    if _parent(job) != _FRAMEWORK:
        return job
    return with_value(job, (*_TEMPLATE, "metadata", "annotations", SUSPENDED_BY_PARENT), _FRAMEWORK)


def _pod_sets(job: JsonObject, _surroundings: Surroundings) -> list[JobPodSet]:
    if n_replicas(job) == 0:
        raise NoWorkload("it has no replicas")
    if has_origin(job):
        raise NoWorkload("its Workload comes from the manager cluster")
    template = object_at(job, *_TEMPLATE)
    return [
        JobPodSet(
            name="main",
            count=n_replicas(job),
            template={"spec": object_at(template, "spec")},
            path=_TEMPLATE,
            count_path=("spec", "replicas"),
            pod_index_label=_POD_INDEX,
            topology_annotations=texts_at(template, "metadata", "annotations"),
        )
    ]


def _identity(job: JsonObject, _index: int, configuration: JobsConfiguration) -> WorkloadIdentity:
    name = text_at(job, "metadata", "name")
    return serving_identity(job, configuration, owner_name=name, labels={}, annotations={})


def workload_of_stateful_set(job: JsonObject, surroundings: Surroundings) -> tuple[str, JsonObject | None]:
    """Return the name of the Workload of a StatefulSet, and the Workload; None if it does not exist."""
    namespace, name = text_at(job, "metadata", "namespace"), text_at(job, "metadata", "name")
    configuration = surroundings.configuration
    newest, older = (serving_name(job, name, configuration, with_uid=entry) for entry in (True, False))
    if (namespace, newest) not in surroundings.workloads and (namespace, older) in surroundings.workloads:
        return older, surroundings.workloads[namespace, older]
    return newest, surroundings.workloads.get((namespace, newest))


def _shape_problems(job: JsonObject) -> list[Problem]:
    return template_problems(job, _TEMPLATE)


def _validate(job: JsonObject, pod_sets: Sequence[JobPodSet], surroundings: Surroundings) -> list[Problem]:
    if not surroundings.configuration.has("StatefulSetTopologyIsChecked"):
        return []
    return topology_of_each_is_valid(job, pod_sets, surroundings)


def _validate_update(old: JsonObject, new: JsonObject, surroundings: Surroundings) -> list[Problem]:
    """Allow no change of the pods while they wait for admission, and their number only to change to and from zero."""
    if not should_wait(new, surroundings, is_webhook=True):
        return []
    spec = (*_TEMPLATE, "spec")
    problems = spec_changes(object_at(new, *spec), object_at(old, *spec), "spec.template.spec")
    field, replicas, before = "spec.replicas", n_replicas(new), n_replicas(old)
    if replicas and before:
        return problems + immutable(field, replicas, before)
    if replicas and not before:
        _, workload = workload_of_stateful_set(old, surroundings)
        if int_at(new, "status", "replicas") > 0:
            problems.append(forbidden(field, "scaling down is still in progress"))
        elif workload is not None and not is_on_hold(workload):
            problems.append(forbidden(field, "workload from previous scale-down is still being deleted"))
    return problems


def is_on_hold(workload: JsonObject) -> bool:
    """Return whether a Workload is kept for a set that was scaled to zero."""
    kinds = {text_at(condition, "type"): condition for condition in list_at(workload, "status", "conditions")}
    reserved = kinds.get("QuotaReserved")
    return (text_at(reserved, "status"), text_at(reserved, "reason")) == ("False", "OnHold")


STATEFUL_SET = Integration(
    framework=_FRAMEWORK,
    api_version="apps/v1",
    kind="StatefulSet",
    pod_sets=_pod_sets,
    suspend_field=None,
    is_serving=True,
    supports_multikueue=True,
    hold_back=_hold_back,
    fields=STATEFUL_SET_FIELDS,
    shape_problems=_shape_problems,
    is_revalidated=True,
    validate=_validate,
    validate_update=_validate_update,
    skipped=lambda job: "" if _parent(job) == _FRAMEWORK else f"its pods belong to a {_parent(job)}",
    identify=_identity,
    custom_start=lambda _job, _infos, _configuration: [],
    custom_stop=lambda _job, _infos, _reason, _message: [],
)
