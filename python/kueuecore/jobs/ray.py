"""Supports RayClusters, RayServices, RayJobs: a head, worker groups, KubeRay's additions (rules/10 §5.8, §5.9)."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from kueuecore.errors import Problem
from kueuecore.jobs.context import (
    ELASTIC_JOB,
    MULTIKUEUE,
    RAY_CLUSTER_GENERATION,
    JobsConfiguration,
    Surroundings,
    annotations_of,
    is_elastic,
)
from kueuecore.jobs.field_paths import Path, path_text, value_at, with_value
from kueuecore.jobs.field_types import Items, Shape, Type
from kueuecore.jobs.injection import PodSetInfo
from kueuecore.jobs.integration import (
    Finished,
    Integration,
    JobPodSet,
    NoWorkload,
    merged_into_templates,
    written_to_templates,
)
from kueuecore.jobs.job_status import has_condition
from kueuecore.jobs.manifest_shapes import CONDITIONS, RESOURCES, TEMPLATE, TEXTS, template_problems
from kueuecore.jobs.quantities import larger
from kueuecore.jobs.rejections import forbidden, invalid, required
from kueuecore.jobs.scheduling_gates import elastic_gated, has_gate
from kueuecore.jobs.validation import topology_is_valid

__all__ = ["RAY_CLUSTER", "RAY_CLUSTER_FIELDS", "RAY_JOB", "RAY_JOB_FIELDS", "RAY_SERVICE"]

_CLUSTER: Path = ("spec",)
_CLUSTER_OF_SERVICE: Path = ("spec", "rayClusterConfig")
_CLUSTER_OF_JOB: Path = ("spec", "rayClusterSpec")
_SUBMITTER: Path = ("spec", "submitterPodTemplate")
_SUBMITTER_RESOURCES: JsonObject = {
    "limits": {"cpu": "1", "memory": "1Gi"},
    "requests": {"cpu": "500m", "memory": "200Mi"},
}
_AUTOSCALER_RESOURCES: JsonObject = {
    "limits": {"cpu": "500m", "memory": "512Mi"},
    "requests": {"cpu": "500m", "memory": "512Mi"},
}
_REDIS_CLEANUP = {"cpu": "200m", "memory": "256Mi"}


_CLUSTER_FIELDS: Mapping[str, Shape] = {
    "headGroupSpec": {"template": TEMPLATE},
    "workerGroupSpecs": Items(
        {"groupName": Type.TEXT, "replicas": Type.COUNT, "numOfHosts": Type.COUNT, "template": TEMPLATE}
    ),
    "enableInTreeAutoscaling": Type.BOOL,
    "autoscalerOptions": {"resources": RESOURCES},
    "gcsFaultToleranceOptions": Type.OBJECT,
    "suspend": Type.BOOL,
    "managedBy": Type.TEXT,
}
RAY_CLUSTER_FIELDS: Mapping[str, Shape] = {
    "spec": _CLUSTER_FIELDS,
    "status": {"state": Type.TEXT, "conditions": CONDITIONS},
}
RAY_JOB_FIELDS: Mapping[str, Shape] = {
    "spec": {
        "rayClusterSpec": _CLUSTER_FIELDS,
        "submissionMode": Type.TEXT,
        "submitterPodTemplate": TEMPLATE,
        "clusterSelector": TEXTS,
        "shutdownAfterJobFinishes": Type.BOOL,
        "suspend": Type.BOOL,
        "managedBy": Type.TEXT,
    },
    "status": {
        **dict.fromkeys(("jobDeploymentStatus", "jobStatus", "message", "rayClusterName"), Type.TEXT),
        "rayClusterStatus": {"state": Type.TEXT},
    },
}
_SERVICE_FIELDS: Mapping[str, Shape] = {
    "spec": {
        "rayClusterConfig": _CLUSTER_FIELDS,
        "managedBy": Type.TEXT,
        "upgradeStrategy": {"type": Type.TEXT},
    },
    "status": {"activeServiceStatus": {"rayClusterName": Type.TEXT}, "conditions": CONDITIONS},
}

# The cluster that all three kinds have.


def _head(cluster: Path) -> Path:
    return (*cluster, "headGroupSpec", "template")


def _workers(job: JsonObject, cluster: Path) -> list[tuple[Path, JsonObject]]:
    groups = list_at(value_at(job, cluster), "workerGroupSpecs")
    return [((*cluster, "workerGroupSpecs", index), object_at(group)) for index, group in enumerate(groups)]


def _templates(job: JsonObject, cluster: Path) -> list[Path]:
    return [_head(cluster), *((*path, "template") for path, _ in _workers(job, cluster))]


def _cluster_pod_sets(job: JsonObject, cluster: Path, configuration: JobsConfiguration) -> list[JobPodSet]:
    spec = object_at(value_at(job, cluster))
    head = JobPodSet.at(job, _head(cluster), name="head", count=1)
    template = head.template
    if _is_fault_tolerant(job, spec) and configuration.has("RayRedisCleanupCounted"):
        template = _with_redis_cleanup(template)
    if spec.get("enableInTreeAutoscaling") is True and configuration.has("RayAutoscalerCounted"):
        options = object_at(spec, "autoscalerOptions")
        resources = options.get("resources") or _AUTOSCALER_RESOURCES
        template = _with_container(template, {"name": "autoscaler", "resources": resources})
    workers = [
        JobPodSet.at(
            job,
            (*path, "template"),
            name=text_at(group, "groupName"),
            count=_n_pods(group),
            count_path=(*path, "replicas"),
        )
        for path, group in _workers(job, cluster)
    ]
    return [replace(head, template=template), *workers]


def _n_pods(group: JsonObject) -> int:
    return int_at(group, "replicas", default=1) * max(1, int_at(group, "numOfHosts", default=1))


def _is_fault_tolerant(job: JsonObject, spec: JsonObject) -> bool:
    annotation = annotations_of(job).get("ray.io/ft-enabled", "")
    return annotation.lower() == "true" or spec.get("gcsFaultToleranceOptions") is not None


def _with_redis_cleanup(template: JsonObject) -> JsonObject:
    """Return the head with room for the Redis cleanup pod that runs in its place."""
    requests: Path = ("spec", "containers", 0, "resources", "requests")
    for resource, least in _REDIS_CLEANUP.items():
        amount = larger(value_at(template, (*requests, resource)), least)
        template = with_value(template, (*requests, resource), amount)
    return template


def _with_container(template: JsonObject, container: JsonObject) -> JsonObject:
    return with_value(template, ("spec", "containers"), [*list_at(template, "spec", "containers"), container])


def _scaled(
    job: JsonObject, pod_sets: list[JobPodSet], cluster: Path, name: str, surroundings: Surroundings
) -> list[JobPodSet]:
    """Return the pod sets with as many workers as the autoscaler of an elastic job requests in the live RayCluster."""
    if (
        not is_elastic(job, surroundings.configuration)
        or value_at(job, (*cluster, "enableInTreeAutoscaling")) is not True
    ):
        return pod_sets
    counts = {}
    for _, group in _workers(_live_cluster(job, name, surroundings), _CLUSTER):
        group_name = text_at(group, "groupName").lower()
        if group_name not in {pod_set.name.lower() for pod_set in pod_sets}:
            where = f"is not found in Ray object {text_at(job, 'metadata', 'name')} spec"
            raise NoWorkload(f"PodSet name mismatch: RayCluster {name} has worker group {group_name} which {where}")
        if "replicas" in group:
            counts[group_name] = _n_pods(group)
    return [replace(pod_set, count=counts.get(pod_set.name.lower(), pod_set.count)) for pod_set in pod_sets]


def _live_cluster(job: JsonObject, name: str, surroundings: Surroundings) -> JsonObject:
    """Return the RayCluster that KubeRay has created for a job; empty if it does not exist."""
    return surroundings.by_key.get(("ray.io/v1", "RayCluster", text_at(job, "metadata", "namespace"), name), {})


def _cluster_generation(job: JsonObject, name: str, surroundings: Surroundings) -> dict[str, str]:
    """Return the generation of the live RayCluster, which distinguishes the Workloads of its sizes (rules/10 §3.1)."""
    cluster = _live_cluster(job, name, surroundings)
    return {RAY_CLUSTER_GENERATION: str(int_at(cluster, "metadata", "generation")) if cluster else ""}


def _with_defaults(job: JsonObject, *, cluster: Path) -> JsonObject:
    result = copy.deepcopy(job)
    for path, group in _workers(result, cluster):
        result = with_value(result, path, {"replicas": 0, "numOfHosts": 1, **group})
    return result


def _cluster_shape_problems(job: JsonObject, *, cluster: Path) -> list[Problem]:
    problems = template_problems(job, _head(cluster))
    for path, group in _workers(job, cluster):
        if not text_at(group, "groupName"):
            problems.append(required(f"{path_text(path)}.groupName"))
        problems += template_problems(job, (*path, "template"))
    return problems


def _cluster_problems(
    job: JsonObject, cluster: Path, configuration: JobsConfiguration, *, shown: str, autoscaling: str
) -> list[Problem]:
    """Return what is wrong with a cluster that Kueue manages.

    Args:
        job: The job.
        cluster: The path of its cluster.
        configuration: Has the feature gates.
        shown: Its path in the messages, which may differ.
        autoscaling: The message about autoscaling of a job that is not elastic.
    """
    problems = []
    if value_at(job, (*cluster, "enableInTreeAutoscaling")) is True and not is_elastic(job, configuration):
        problems.append(
            Problem(f"Invalid value: true: {autoscaling}", field=f"{shown}.enableInTreeAutoscaling", value="true")
        )
    workers = _workers(job, cluster)
    # Before Kueue 0.18 the worker groups alone were counted (rules/10 §7).
    n_others = 0 if configuration.has("PodSetsUpToTen") else 1
    count, most = len(workers) + 1 - n_others, configuration.most_pod_sets - n_others
    if count > most:
        message = f"Too many: {count}: must have at most {most} items"
        problems.append(Problem(message, field=f"{shown}.workerGroupSpecs", value=count))
    for index, (_, group) in enumerate(workers):
        if text_at(group, "groupName") == "head":
            field = f"{shown}.workerGroupSpecs[{index}].groupName"
            problems.append(forbidden(field, '"head" is reserved for the head group'))
    return problems


def _nested_cluster_problems(job: JsonObject, cluster: Path, surroundings: Surroundings) -> list[Problem]:
    """Return what is wrong with the cluster of a RayService or RayJob; both use its Go name in messages."""
    configuration, shown = surroundings.configuration, "spec.rayClusterSpec"
    problems = _cluster_problems(job, cluster, configuration, shown=shown, autoscaling=_NO_AUTOSCALING)
    if configuration.has("RayAutoscalingNeedsItsGate"):
        problems += _delegated_scaling_problems(job, cluster, configuration, shown=shown)
    return problems


# RayClusters and RayServices.

_NO_AUTOSCALING = "a kueue managed job should only use autoscaling when workload slicing is enabled"
_NO_AUTOSCALING_OF_CLUSTER = (
    "a kueue-managed RayCluster can use autoscaling only as an elastic job: enable the ElasticJobsViaWorkloadSlices "
    'feature gate and set the "kueue.x-k8s.io/elastic-job": "true" annotation'
)
# Before the change JobTextsAreCorrected.
_NO_AUTOSCALING_OF_CLUSTER_BEFORE = (
    "a kueue managed job can use autoscaling only when the ElasticJobsViaWorkloadSlices feature gate is on and the job "
    "is an elastic job"
)


def _validate_cluster(job: JsonObject, pod_sets: Sequence[JobPodSet], surroundings: Surroundings) -> list[Problem]:
    problems = []
    if surroundings.is_meant_for_kueue(job):
        problems += _elastic_problems(job, surroundings.configuration)
        is_corrected = surroundings.has("JobTextsAreCorrected")
        text = _NO_AUTOSCALING_OF_CLUSTER if is_corrected else _NO_AUTOSCALING_OF_CLUSTER_BEFORE
        problems += _cluster_problems(job, _CLUSTER, surroundings.configuration, shown="spec", autoscaling=text)
    return problems + topology_is_valid(job, pod_sets, surroundings)


def _elastic_problems(job: JsonObject, configuration: JobsConfiguration) -> list[Problem]:
    """Return what is wrong with an elastic RayCluster: its pods must wait behind a gate, and only Kueue scales it."""
    if not is_elastic(job, configuration):
        return []
    problems = []
    head, *workers = _templates(job, _CLUSTER)
    for path in (*workers, head):
        if not has_gate(object_at(value_at(job, (*path, "spec"))), ELASTIC_JOB):
            gates = value_at(job, (*path, "spec", "schedulingGates"))
            shown = json.dumps(gates, separators=(",", ":"))
            message = f"Invalid value: {shown}: an elastic job must have the ElasticJobSchedulingGate"
            problems.append(Problem(message, field=path_text((*path, "spec", "schedulingGates"))))
    if configuration.has("RayAutoscalingNeedsOneCluster"):
        problems += _delegated_scaling_problems(job, _CLUSTER, configuration, shown="spec")
    return problems


def _delegated_scaling_problems(
    job: JsonObject, cluster: Path, configuration: JobsConfiguration, *, shown: str
) -> list[Problem]:
    """Return that an elastic job runs on a worker of MultiKueue, where an autoscaler would change its size."""
    is_delegated = is_elastic(job, configuration) and text_at(job, "spec", "managedBy") == MULTIKUEUE
    if not is_delegated or value_at(job, (*cluster, "enableInTreeAutoscaling")) is not True:
        return []
    if configuration.has("RayAutoscalingNeedsItsGate") and configuration.enabled("MultiKueueRayInTreeAutoscaling"):
        return []
    detail = f"in-tree autoscaling is not supported for a MultiKueue-managed elastic {text_at(job, 'kind')}"
    return [forbidden(f"{shown}.enableInTreeAutoscaling", detail)]


def _name_of_service(job: JsonObject) -> str:
    """Return the name of the live RayCluster of a RayService."""
    return text_at(job, "status", "activeServiceStatus", "rayClusterName")


def _service_pod_sets(job: JsonObject, surroundings: Surroundings) -> list[JobPodSet]:
    pod_sets = _cluster_pod_sets(job, _CLUSTER_OF_SERVICE, surroundings.configuration)
    return _scaled(job, pod_sets, _CLUSTER_OF_SERVICE, _name_of_service(job), surroundings)


def _validate_service(job: JsonObject, pod_sets: Sequence[JobPodSet], surroundings: Surroundings) -> list[Problem]:
    problems = []
    if surroundings.is_meant_for_kueue(job):
        problems += _nested_cluster_problems(job, _CLUSTER_OF_SERVICE, surroundings)
        problems += _upgrade_problems(job, surroundings.configuration)
    return problems + topology_is_valid(job, pod_sets, surroundings)


def _upgrade_problems(job: JsonObject, configuration: JobsConfiguration) -> list[Problem]:
    """Return that an upgrade runs a second cluster, which only an elastic job has quota for."""
    kind = text_at(job, "spec", "upgradeStrategy", "type")
    is_checked = configuration.enabled("RayServiceValidateUpgradeStrategy") and not is_elastic(job, configuration)
    # KubeRay starts a second cluster also where no type is given.
    if not is_checked or kind == "None":
        return []
    detail = (
        'must be "None" unless the ElasticJobsViaWorkloadSlices feature gate is on and the job has the '
        '"kueue.x-k8s.io/elastic-job": "true" annotation'
    )
    return [invalid("spec.upgradeStrategy.type", kind, detail)]


def _gated(job: JsonObject, configuration: JobsConfiguration, *, cluster: Path) -> JsonObject:
    return elastic_gated(job, [(*path, "spec") for path in _templates(job, cluster)], configuration)


# RayJobs.


def _submission_mode(job: JsonObject) -> str:
    return text_at(job, "spec", "submissionMode") or "K8sJobMode"


def _job_pod_sets(job: JsonObject, surroundings: Surroundings) -> list[JobPodSet]:
    pod_sets = _cluster_pod_sets(job, _CLUSTER_OF_JOB, surroundings.configuration)
    match _submission_mode(job):
        case "K8sJobMode":
            submitter = JobPodSet.at(_with_submitter(job), _SUBMITTER, name="submitter", count=1)
            pod_sets.append(submitter)
        case "SidecarMode" if surroundings.has("RaySubmitterSidecarCounted"):
            container: JsonObject = {"name": "ray-job-submitter", "resources": _SUBMITTER_RESOURCES}
            pod_sets[0] = replace(pod_sets[0], template=_with_container(pod_sets[0].template, container))
        case _:
            pass
    return _scaled(job, pod_sets, _CLUSTER_OF_JOB, text_at(job, "status", "rayClusterName"), surroundings)


def _with_submitter(job: JsonObject) -> JsonObject:
    """Return the job with the template of its submitter pod: its own, or the one that KubeRay would use."""
    if isinstance(value_at(job, _SUBMITTER), dict):
        return job
    container: JsonObject = {"name": "ray-job-submitter", "resources": _SUBMITTER_RESOURCES}
    image = value_at(job, (*_head(_CLUSTER_OF_JOB), "spec", "containers", 0, "image"))
    if image is not None:
        container["image"] = image
    return with_value(job, _SUBMITTER, {"spec": {"containers": [container], "restartPolicy": "Never"}})


def _job_templates(job: JsonObject) -> list[Path]:
    submitter = [_SUBMITTER] if _submission_mode(job) == "K8sJobMode" else []
    return [*_templates(job, _CLUSTER_OF_JOB), *submitter]


def _inject(job: JsonObject, infos: Sequence[PodSetInfo], configuration: JobsConfiguration) -> JsonObject:
    paths = _job_templates(job)
    if paths[-1] == _SUBMITTER and not isinstance(value_at(job, _SUBMITTER), dict):
        if configuration.has("RaySubmitterIsConstrained"):
            job = _with_submitter(job)
        elif len(infos) == len(paths):
            # KubeRay's own template is merged, and dropped.
            paths, infos = paths[:-1], infos[:-1]
    return merged_into_templates(job, paths, infos, configuration)


def _restore(job: JsonObject, infos: Sequence[PodSetInfo]) -> JsonObject:
    paths = _job_templates(job)
    if paths[-1] == _SUBMITTER and value_at(job, _SUBMITTER) is None and len(paths) == len(infos):
        paths, infos = paths[:-1], infos[:-1]
    return written_to_templates(job, paths, infos)


def _has_cluster(job: JsonObject) -> bool:
    return isinstance(value_at(job, _CLUSTER_OF_JOB), dict)


def _validate_job(job: JsonObject, pod_sets: Sequence[JobPodSet], surroundings: Surroundings) -> list[Problem]:
    problems = []
    if surroundings.is_meant_for_kueue(job):
        if not _has_cluster(job):
            if _skipped(job):
                return []
            detail = "rayClusterSpec is required for Kueue-managed jobs that don't use clusterSelector"
            return [required("spec.rayClusterSpec", detail)]
        if selector := object_at(job, "spec", "clusterSelector"):
            shown = json.dumps(selector, separators=(",", ":"))
            message = f"Invalid value: {shown}: a kueue managed job should not use an existing cluster"
            return [Problem(message, field="spec.clusterSelector")]
        if object_at(job, "spec").get("shutdownAfterJobFinishes") is not True:
            detail = "a kueue managed job should delete the cluster after finishing"
            problems.append(Problem(f"Invalid value: false: {detail}", field="spec.shutdownAfterJobFinishes"))
        problems += _nested_cluster_problems(job, _CLUSTER_OF_JOB, surroundings)
    cluster_sets = [pod_set for pod_set in pod_sets if pod_set.path != _SUBMITTER]
    return problems + topology_is_valid(job, cluster_sets, surroundings)


def _skipped(job: JsonObject) -> str:
    selects = bool(object_at(job, "spec", "clusterSelector")) and not _has_cluster(job)
    return "it runs in a RayCluster that is there already" if selects else ""


def _job_finished(job: JsonObject) -> Finished | None:
    status = object_at(job, "status")
    if text_at(status, "jobDeploymentStatus") not in ("Failed", "Complete"):
        return None
    return Finished(text_at(status, "message"), success=text_at(status, "jobStatus") == "SUCCEEDED")


_KUBE_RAY = "ray.io/kuberay-operator"
_READY = "ready"

RAY_CLUSTER = Integration(
    framework="ray.io/raycluster",
    api_version="ray.io/v1",
    kind="RayCluster",
    pod_sets=lambda job, around: _cluster_pod_sets(job, _CLUSTER, around.configuration),
    supports_prebuilt=True,
    supports_multikueue=True,
    supports_elastic=True,
    default_managed_by=_KUBE_RAY,
    with_defaults=partial(_with_defaults, cluster=_CLUSTER),
    webhook_defaults=partial(_gated, cluster=_CLUSTER),
    fields=RAY_CLUSTER_FIELDS,
    shape_problems=partial(_cluster_shape_problems, cluster=_CLUSTER),
    is_revalidated=True,
    is_validated_if_managed=True,
    validate=_validate_cluster,
    is_active=lambda job: text_at(job, "status", "state") == _READY,
    pods_ready=lambda job: text_at(job, "status", "state") == _READY,
)
RAY_SERVICE = Integration(
    framework="ray.io/rayservice",
    api_version="ray.io/v1",
    kind="RayService",
    pod_sets=_service_pod_sets,
    suspend_field=(*_CLUSTER_OF_SERVICE, "suspend"),
    supports_prebuilt=True,
    supports_multikueue=True,
    supports_elastic=True,
    default_managed_by=_KUBE_RAY,
    with_defaults=partial(_with_defaults, cluster=_CLUSTER_OF_SERVICE),
    webhook_defaults=partial(_gated, cluster=_CLUSTER_OF_SERVICE),
    fields=_SERVICE_FIELDS,
    shape_problems=partial(_cluster_shape_problems, cluster=_CLUSTER_OF_SERVICE),
    is_revalidated=True,
    is_validated_if_managed=True,
    validate=_validate_service,
    is_active=lambda job: has_condition(job, "Ready"),
    pods_ready=lambda job: has_condition(job, "Ready"),
    elastic_annotations=lambda job, around: _cluster_generation(job, _name_of_service(job), around),
)
RAY_JOB = Integration(
    framework="ray.io/rayjob",
    api_version="ray.io/v1",
    kind="RayJob",
    pod_sets=_job_pod_sets,
    supports_prebuilt=True,
    supports_multikueue=True,
    supports_elastic=True,
    default_managed_by=_KUBE_RAY,
    with_defaults=partial(_with_defaults, cluster=_CLUSTER_OF_JOB),
    fields=RAY_JOB_FIELDS,
    shape_problems=lambda job: _cluster_shape_problems(job, cluster=_CLUSTER_OF_JOB) if _has_cluster(job) else [],
    is_revalidated=True,
    is_validated_if_managed=True,
    validate=_validate_job,
    skipped=_skipped,
    inject=_inject,
    restore=_restore,
    is_active=lambda job: text_at(job, "status", "jobDeploymentStatus") not in ("", "Suspended"),
    is_on_hold=lambda job: text_at(job, "status", "jobDeploymentStatus") == "ValidationFailed",
    finished=_job_finished,
    pods_ready=lambda job: text_at(job, "status", "rayClusterStatus", "state") == _READY,
    elastic_annotations=lambda job, around: _cluster_generation(job, text_at(job, "status", "rayClusterName"), around),
)
