"""Supports AppWrappers: any objects, whose pod templates are declared or known by kind (rules/10 §5.12)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at, texts_at
from kueuecore.errors import Problem
from kueuecore.jobs.batch_job import BATCH_JOB_FIELDS, COMPLETION_INDEX, pods_count
from kueuecore.jobs.context import JobsConfiguration, Surroundings, group_of
from kueuecore.jobs.deployment import DEPLOYMENT_FIELDS
from kueuecore.jobs.field_paths import Path, value_at, with_value, without_value
from kueuecore.jobs.field_types import Items, Shape, Type, field_problems
from kueuecore.jobs.injection import PodSetInfo, StartError
from kueuecore.jobs.integration import Finished, Integration, JobPodSet
from kueuecore.jobs.job_set import JOB_INDEX, JOB_SET_FIELDS
from kueuecore.jobs.job_status import has_condition
from kueuecore.jobs.kubeflow import REPLICA_INDEX, kubeflow_fields
from kueuecore.jobs.manifest_shapes import CONDITIONS, TEMPLATE, TEXTS
from kueuecore.jobs.pod import POD_FIELDS
from kueuecore.jobs.quantities import rounded_to_milli
from kueuecore.jobs.ray import RAY_CLUSTER_FIELDS, RAY_JOB_FIELDS
from kueuecore.jobs.rejections import go_int, required
from kueuecore.jobs.stateful_set import STATEFUL_SET_FIELDS

__all__ = ["APP_WRAPPER"]

_ANNOTATION = "workload.codeflare.dev.appwrapper/tas-"
_STEP = re.compile(r"\.([^.\[]+)|\[([0-9]{1,9})\]")
_POD_FIELDS = (
    *("restartPolicy", "dnsPolicy", "nodeSelector", "nodeName", "affinity", "schedulerName", "tolerations"),
    *("priorityClassName", "overhead", "topologySpreadConstraints"),
)
_CONTAINER_FIELDS = ("name", "image", "command", "args", "resources", "securityContext")
_FIELDS: Mapping[str, Shape] = {
    "spec": {
        "components": Items(
            {
                "template": Type.OBJECT,
                "podSets": Items({"path": Type.TEXT, "replicas": Type.COUNT, "annotations": TEXTS}),
            }
        ),
        "suspend": Type.BOOL,
        "managedBy": Type.TEXT,
    },
    "status": {"phase": Type.TEXT, "conditions": CONDITIONS},
}
# The kinds whose pod sets need not be declared.
_KNOWN: Mapping[tuple[str, str], Mapping[str, Shape]] = {
    ("", "Pod"): POD_FIELDS,
    ("apps", "Deployment"): DEPLOYMENT_FIELDS,
    ("apps", "StatefulSet"): STATEFUL_SET_FIELDS,
    ("batch", "Job"): BATCH_JOB_FIELDS,
    ("jobset.x-k8s.io", "JobSet"): JOB_SET_FIELDS,
    ("kubeflow.org", "PyTorchJob"): kubeflow_fields("pytorchReplicaSpecs"),
    ("ray.io", "RayCluster"): RAY_CLUSTER_FIELDS,
    ("ray.io", "RayJob"): RAY_JOB_FIELDS,
}


def _component_pod_sets(job: JsonObject) -> list[list[JobPodSet]]:
    """Return the pod sets of each component, without names."""
    return [[_pod_set(job, entry) for entry in component] for component in _found_pod_sets(job)]


def _found_pod_sets(job: JsonObject) -> list[list[JobPodSet]]:
    """Return how many pods each component has, and the paths of their templates."""
    found = []
    for index, component in enumerate(list_at(job, "spec", "components")):
        path: Path = ("spec", "components", index)
        declared = list_at(component, "podSets")
        pod_sets = _declared(object_at(component), declared) if declared else _known(object_at(component, "template"))
        found.append([replace(pod_set, path=(*path, *(pod_set.path or ()))) for pod_set in pod_sets])
    return found


def _pod_sets(job: JsonObject, _surroundings: Surroundings) -> list[JobPodSet]:
    name = text_at(job, "metadata", "name")
    pod_sets = [entry for component in _component_pod_sets(job) for entry in component]
    return [replace(pod_set, name=f"{name}-{index}") for index, pod_set in enumerate(pod_sets)]


def _pod_set(job: JsonObject, pod_set: JobPodSet) -> JobPodSet:
    """Return the pod set with the part of the template at its path that AppWrappers read."""
    template = object_at(value_at(job, pod_set.path or ()))
    metadata = {key: object_at(template, "metadata", key) for key in ("labels", "annotations")}
    spec = object_at(template, "spec")
    reduced: JsonObject = {key: spec[key] for key in _POD_FIELDS if key in spec}
    if "overhead" in reduced:
        reduced["overhead"] = rounded_to_milli(object_at(reduced, "overhead"))
    for key in ("initContainers", "containers"):
        if key in spec:
            reduced[key] = [_container(object_at(container)) for container in list_at(spec, key)]
    kept: JsonObject = {key: value for key, value in metadata.items() if value}
    return replace(pod_set, template={"metadata": kept, "spec": reduced} if kept else {"spec": reduced})


def _container(container: JsonObject) -> JsonObject:
    result: JsonObject = {key: container[key] for key in _CONTAINER_FIELDS if key in container}
    resources = object_at(result, "resources")
    for key in ("requests", "limits"):
        if key in resources:
            resources = {**resources, key: rounded_to_milli(object_at(resources, key))}
    return {**result, "resources": resources} if resources else result


def _declared(component: JsonObject, declared: list[JsonValue]) -> list[JobPodSet]:
    """Return the pod sets that a component declares, except those whose path does not exist."""
    pod_sets = []
    for value in declared:
        path = _path(text_at(value, "path"))
        if path is None or not isinstance(object_at(value_at(component, path)).get("spec"), dict):
            continue
        annotations = texts_at(value, "annotations")
        n_groups, _ = go_int(annotations.get(f"{_ANNOTATION}sub-group-count", ""))
        pod_sets.append(
            JobPodSet(
                name="",
                count=int_at(value, "replicas", default=1),
                template={},
                path=path,
                pod_index_label=annotations.get(f"{_ANNOTATION}pod-index-label"),
                sub_group_index_label=annotations.get(f"{_ANNOTATION}sub-group-index-label"),
                sub_group_count=n_groups,
            )
        )
    return pod_sets


def _path(text: str) -> Path | None:
    """Parse a path such as `template.spec.replicatedJobs[0].template`; None if it is not one."""
    path: list[str | int] = ["template"]
    position = len("template")
    if not text.startswith("template"):
        return None
    while position < len(text):
        step = _STEP.match(text, position)
        if step is None:
            return None
        path.append(step[1] if step[1] is not None else int(step[2]))
        position = step.end()
    return tuple(path)


def _known(wrapped: JsonObject) -> list[JobPodSet]:
    """Return the pod sets of a component of a known kind that declares none."""
    spec = object_at(wrapped, "spec")
    template: Path = ("template", "spec", "template")
    match group_of(text_at(wrapped, "apiVersion")), text_at(wrapped, "kind"):
        case "", "Pod":
            return [_inferred(("template",), 1)]
        case "apps", "Deployment" | "StatefulSet":
            return [_inferred(template, int_at(spec, "replicas", default=1))]
        case "batch", "Job":
            return [_inferred(template, pods_count(wrapped), pod_index_label=COMPLETION_INDEX)]
        case "jobset.x-k8s.io", "JobSet":
            return [
                replace(
                    _inferred(
                        ("template", "spec", "replicatedJobs", index, *template),
                        int_at(job, "replicas", default=1) * pods_count(object_at(job, "template")),
                        pod_index_label=COMPLETION_INDEX,
                    ),
                    sub_group_index_label=JOB_INDEX,
                    sub_group_count=int_at(job, "replicas", default=1),
                )
                for index, job in enumerate(list_at(spec, "replicatedJobs"))
            ]
        case "kubeflow.org", "PyTorchJob":
            specs = object_at(spec, "pytorchReplicaSpecs")
            return [
                _inferred(
                    ("template", "spec", "pytorchReplicaSpecs", name, "template"),
                    int_at(specs, name, "replicas", default=1),
                    pod_index_label=REPLICA_INDEX,
                )
                for name in ("Master", "Worker")
                if name in specs
            ]
        case "ray.io", "RayCluster":
            return _of_cluster(spec, ("template", "spec"))
        case "ray.io", "RayJob":
            return _of_cluster(object_at(spec, "rayClusterSpec"), ("template", "spec", "rayClusterSpec"))
        case _:
            return []


def _of_cluster(spec: JsonObject, path: Path) -> list[JobPodSet]:
    workers = [
        _inferred((*path, "workerGroupSpecs", index, "template"), int_at(worker_group_spec, "replicas", default=1))
        for index, worker_group_spec in enumerate(list_at(spec, "workerGroupSpecs"))
    ]
    return [_inferred((*path, "headGroupSpec", "template"), 1), *workers]


def _inferred(path: Path, count: int, *, pod_index_label: str | None = None) -> JobPodSet:
    return JobPodSet(name="", count=count, template={}, path=path, pod_index_label=pod_index_label)


def _inject(job: JsonObject, infos: Sequence[PodSetInfo], _configuration: JobsConfiguration) -> JsonObject:
    """Return the job with the infos beside the components: its controller applies them when it creates the objects."""
    components = _component_pod_sets(job)
    if (n_pod_sets := sum(map(len, components))) != len(infos):
        raise StartError(f"invalid podset infos: expecting {n_pod_sets} podset, got {len(infos)}")
    left = list(infos)
    for index, pod_sets in enumerate(components):
        own, left = left[: len(pod_sets)], left[len(pod_sets) :]
        job = with_value(job, ("spec", "components", index, "podSetInfos"), [_info(entry) for entry in own])
    return job


def _info(info: PodSetInfo) -> JsonObject:
    values: JsonObject = {
        "annotations": dict(info.annotations),
        "labels": dict(info.labels),
        "nodeSelector": dict(info.node_selector),
        "tolerations": list(info.tolerations),
        "schedulingGates": list(info.scheduling_gates),
    }
    return {key: value for key, value in values.items() if value}


def _restore(job: JsonObject, _infos: Sequence[PodSetInfo]) -> JsonObject:
    for index, _ in enumerate(list_at(job, "spec", "components")):
        job = without_value(job, ("spec", "components", index, "podSetInfos"))
    return job


def _finished(job: JsonObject) -> Finished | None:
    match text_at(job, "status", "phase"):
        case "Succeeded":
            return Finished("AppWrapper finished successfully")
        case "Failed" if not has_condition(job, "ResourcesDeployed"):
            return Finished("AppWrapper failed", success=False)
        case _:
            return None


def _shape_problems(job: JsonObject) -> list[Problem]:
    components = list_at(job, "spec", "components")
    problems = [] if components else [required("spec.components")]
    for index, component in enumerate(components):
        if not list_at(component, "podSets"):
            wrapped = object_at(component, "template")
            fields = _KNOWN.get((group_of(text_at(wrapped, "apiVersion")), text_at(wrapped, "kind")), {})
            problems += field_problems(wrapped, fields, ("spec", "components", index, "template"))
    # The paths of the pod templates are only known now.
    if not problems:
        for pod_set in (entry for component in _found_pod_sets(job) for entry in component):
            path = pod_set.path or ()
            problems += field_problems(value_at(job, path), TEMPLATE, path)
    return problems


APP_WRAPPER = Integration(
    framework="workload.codeflare.dev/appwrapper",
    api_version="workload.codeflare.dev/v1beta2",
    kind="AppWrapper",
    pod_sets=_pod_sets,
    supports_prebuilt=True,
    supports_multikueue=True,
    default_managed_by="workload.codeflare.dev/appwrapper-controller",
    fields=_FIELDS,
    shape_problems=_shape_problems,
    inject=_inject,
    restore=_restore,
    is_active=lambda job: has_condition(job, "QuotaReserved"),
    finished=_finished,
    pods_ready=lambda job: has_condition(job, "PodsReady"),
)
