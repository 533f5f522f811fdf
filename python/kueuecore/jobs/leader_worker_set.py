"""Supports LeaderWorkerSets: one Workload for each group of a leader and its workers (rules/10 §5.7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kueuecore._json import JsonObject, int_at, object_at, text_at, texts_at
from kueuecore.errors import ManifestError, Problem
from kueuecore.jobs.context import (
    MANAGED_LABEL,
    PREFIX,
    PRIORITY_CLASS_LABEL,
    QUEUE_LABEL,
    JobsConfiguration,
    Surroundings,
    annotations_of,
    configuration_or_default,
    labels_of,
)
from kueuecore.jobs.field_paths import Path, path_text, value_at, with_value
from kueuecore.jobs.field_types import Shape, Type
from kueuecore.jobs.integration import Integration, JobPodSet, NoWorkload, WorkloadIdentity
from kueuecore.jobs.manifest_shapes import TEMPLATE, template_problems
from kueuecore.jobs.owners import should_wait
from kueuecore.jobs.pod import SERVING, SUSPENDED_BY_PARENT, is_gated
from kueuecore.jobs.rejections import go_error, go_int, immutable, invalid
from kueuecore.jobs.role_hash import spec_changes
from kueuecore.jobs.serving import check_pod, has_origin, marked_pod, serving_identity, serving_name
from kueuecore.jobs.topology import GROUP_NAME, POD_INDEX_OFFSET
from kueuecore.jobs.validation import offset_is_valid, topology_is_valid
from kueuecore.manifests import object_ref

__all__ = [
    "LEADER_WORKER_SET",
    "SET_NAME",
    "joined_group",
    "n_groups",
    "name_of_group",
    "pod_of_leader_worker_set",
]

_FRAMEWORK = "leaderworkerset.x-k8s.io/leaderworkerset"
_DOMAIN = "leaderworkerset.sigs.k8s.io"
SET_NAME = f"{_DOMAIN}/name"
"""The label of its pods and StatefulSets that names a LeaderWorkerSet."""
_WORKER_INDEX = f"{_DOMAIN}/worker-index"
_GROUP_INDEX = f"{_DOMAIN}/group-index"
_LEADER_NAME = f"{_DOMAIN}/leader-name"
_MAX_REPLICAS = 1_000_000
_LEADER: Path = ("spec", "leaderWorkerTemplate", "leaderTemplate")
_WORKER: Path = ("spec", "leaderWorkerTemplate", "workerTemplate")
_FIELDS: Mapping[str, Shape] = {
    "spec": {
        "replicas": Type.COUNT,
        "leaderWorkerTemplate": {"size": Type.COUNT, "leaderTemplate": TEMPLATE, "workerTemplate": TEMPLATE},
        # A number or a percentage.
        "rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": Type.ANY}},
    },
    "status": dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas"), Type.COUNT),
}


def pod_of_leader_worker_set(pod: JsonObject, job: JsonObject, configuration: JobsConfiguration) -> JsonObject:
    """Return a pod of a LeaderWorkerSet as Kueue marks it, so that it is admitted with its group.

    Raises:
        ManifestError: A field of one of them has the wrong type, or the pod has no group number.
    """
    configuration = configuration_or_default(configuration)
    check_pod(pod, job, _FIELDS)
    index = labels_of(pod).get(_GROUP_INDEX)
    if index is None:  # its controller has not numbered it yet
        return pod
    number, why = go_int(index)
    if number is None:
        problem = invalid(f"metadata.labels[{_GROUP_INDEX}]", index, go_error("Atoi", index, why))
        raise ManifestError([replace(problem, object=object_ref(pod))])
    return joined_group(pod, job, configuration)


def joined_group(pod: JsonObject, job: JsonObject, configuration: JobsConfiguration) -> JsonObject:
    """Return a pod as a member of its group, once the controller of LeaderWorkerSets has numbered it.

    A pod that is already a member follows the queue of its set while it waits.

    Args:
        pod: The pod.
        job: The LeaderWorkerSet.
        configuration: Has the feature gates.
    """
    labels = labels_of(pod)
    queue = labels_of(job).get(QUEUE_LABEL, "")
    if not configuration.has("LwsQueueMayChange"):
        # The templates have no queue.
        if not queue or MANAGED_LABEL in labels:
            return pod
    elif not is_gated(pod) or not configuration.has("LwsPodsGetQueueName"):
        queue = ""
    if MANAGED_LABEL in labels:
        if not queue or labels.get(QUEUE_LABEL) == queue:
            return pod
        return with_value(pod, ("metadata", "labels", QUEUE_LABEL), queue)
    if _GROUP_INDEX not in labels:
        return pod
    role = "main"
    if _has_leader(job):
        role = "worker" if _LEADER_NAME in annotations_of(pod) else "leader"
    name = name_of_group(job, labels[_GROUP_INDEX], configuration)
    return marked_pod(pod, name, configuration, labels={QUEUE_LABEL: queue}, size=_size(job), role=role)


def _has_leader(job: JsonObject) -> bool:
    return isinstance(value_at(job, _LEADER), dict)


def _size(job: JsonObject) -> int:
    return int_at(job, "spec", "leaderWorkerTemplate", "size", default=1)


def n_groups(job: JsonObject, *, with_percentages: bool = False) -> int:
    """Return how many groups there are, including surplus ones during a rolling update.

    Args:
        job: The LeaderWorkerSet.
        with_percentages: Whether maxSurge may be a percentage of the replicas; else that counts as none.
    """
    replicas = int_at(job, "spec", "replicas", default=1)
    surge = object_at(job, "spec", "rolloutStrategy", "rollingUpdateConfiguration").get("maxSurge")
    if isinstance(surge, str) and surge.endswith("%") and with_percentages:
        percent, _ = go_int(surge[:-1])
        surge = 0 if percent is None else -(-replicas * percent // 100)
    elif isinstance(surge, str):
        surge, _ = go_int(surge)
    is_replacing = int_at(job, "status", "updatedReplicas") < replicas
    if isinstance(surge, int) and surge > 0 and is_replacing:
        return max(replicas, int_at(job, "status", "replicas"))
    return replicas


def _pod_sets(job: JsonObject, _surroundings: Surroundings) -> list[JobPodSet]:
    if has_origin(job):
        raise NoWorkload("its Workloads come from the manager cluster")
    if not _has_leader(job):
        return [_pod_set(job, _WORKER, "main", _size(job))]
    return [_pod_set(job, _LEADER, "leader", 1), _pod_set(job, _WORKER, "worker", _size(job) - 1)]


def _pod_set(job: JsonObject, path: Path, name: str, count: int) -> JobPodSet:
    template = object_at(value_at(job, path))
    metadata: JsonObject = dict(object_at(template, "metadata"))
    for key in ("labels", "annotations"):
        # What the controller of LeaderWorkerSets adds does not matter.
        kept: JsonObject = {
            key: text for key, text in texts_at(metadata, key).items() if key == SET_NAME or not key.startswith(_DOMAIN)
        }
        metadata[key] = kept
    return JobPodSet(
        name=name,
        count=count,
        template={**template, "metadata": {key: value for key, value in metadata.items() if value != {}}},
        path=path,
        count_path=("spec", "leaderWorkerTemplate", "size"),
        pod_index_label=None if name == "leader" else _WORKER_INDEX,
    )


def _hold_back(job: JsonObject, configuration: JobsConfiguration) -> JsonObject:
    for path in (_LEADER, _WORKER) if _has_leader(job) else (_WORKER,):
        annotations = texts_at(value_at(job, path), "metadata", "annotations")
        annotations |= {SUSPENDED_BY_PARENT: _FRAMEWORK, SERVING: "true"}
        if (
            configuration.enabled("TopologyAwareScheduling")
            and path == _WORKER
            and _has_leader(job)
            and GROUP_NAME not in annotations
        ):
            annotations[POD_INDEX_OFFSET] = "1"
        job = with_value(job, (*path, "metadata", "annotations"), dict(annotations))
        given = (QUEUE_LABEL,) if configuration.has("LwsQueueMayChange") else ()
        for label in (*given, PRIORITY_CLASS_LABEL):
            if value := labels_of(job).get(label):
                job = with_value(job, (*path, "metadata", "labels", label), value)
    return job


def _validate(job: JsonObject, pod_sets: Sequence[JobPodSet], surroundings: Surroundings) -> list[Problem]:
    problems = []
    replicas = int_at(job, "spec", "replicas", default=1)
    if replicas > _MAX_REPLICAS:
        detail = f"invalid LeaderWorkerSet replicas: must be <= {_MAX_REPLICAS}, got {replicas}"
        problems.append(invalid("spec.replicas", replicas, detail))
    elif (n_found := n_groups(job)) > _MAX_REPLICAS:
        detail = f"must be at most {_MAX_REPLICAS}: each group gets a Workload of its own"
        problems.append(invalid("status.replicas", n_found, detail))
    return problems + topology_is_valid(job, pod_sets, surroundings) + offset_is_valid(pod_sets, surroundings)


def _validate_update(old: JsonObject, new: JsonObject, surroundings: Surroundings) -> list[Problem]:
    """Allow only the number of groups to change while it waits for admission: no Workload is recreated."""
    if not should_wait(new, surroundings, is_webhook=True):
        return []
    problems = []
    for path in (_LEADER, _WORKER):
        template, before = value_at(new, path), value_at(old, path)
        if template is None or before is None:
            problems += immutable(path_text(path), template, before)
        else:
            field = path_text((*path, "spec"))
            problems += spec_changes(object_at(template, "spec"), object_at(before, "spec"), field)
    if surroundings.enabled("LWSImmutableGroupSize"):
        problems += immutable("spec.leaderWorkerTemplate.size", _size(new), _size(old))
    return problems


def _shape_problems(job: JsonObject) -> list[Problem]:
    problems = []
    for path in (_LEADER, _WORKER) if _has_leader(job) else (_WORKER,):
        problems += template_problems(job, path)
    return problems


def name_of_group(job: JsonObject, index: int | str, configuration: JobsConfiguration) -> str:
    """Return the name of the Workload of a group, which is also the name of the group of pods."""
    return serving_name(job, _owner_name(job, index), configuration)


def _owner_name(job: JsonObject, index: int | str) -> str:
    return f"{text_at(job, 'metadata', 'name')}-{index}"


def _identity(job: JsonObject, index: int, configuration: JobsConfiguration) -> WorkloadIdentity:
    labels, annotations = labels_of(job), annotations_of(job)
    copied = {key: annotations[key] for key in configuration.annotation_keys_to_copy if key in annotations}
    return serving_identity(
        job,
        configuration,
        owner_name=_owner_name(job, index),
        labels={key: labels[key] for key in configuration.label_keys_to_copy if key in labels},
        annotations={**copied, f"{PREFIX}component-workload-index": str(index)},
    )


LEADER_WORKER_SET = Integration(
    framework=_FRAMEWORK,
    api_version="leaderworkerset.x-k8s.io/v1",
    kind="LeaderWorkerSet",
    pod_sets=_pod_sets,
    suspend_field=None,
    is_serving=True,
    supports_multikueue=True,
    hold_back=_hold_back,
    fields=_FIELDS,
    shape_problems=_shape_problems,
    is_revalidated=True,
    validate=_validate,
    validate_update=_validate_update,
    n_workloads=n_groups,
    identify=_identity,
    custom_start=lambda _job, _infos, _configuration: [],
    custom_stop=lambda _job, _infos, _reason, _message: [],
)
