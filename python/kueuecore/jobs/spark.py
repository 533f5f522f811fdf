"""Supports SparkApplications: the pods that the Spark operator makes of a driver and its executors (rules/10 §5.13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at, texts_at
from kueuecore.errors import Problem
from kueuecore.jobs.context import JobsConfiguration, Surroundings, is_elastic
from kueuecore.jobs.field_paths import Path, value_at, with_value, without_value
from kueuecore.jobs.field_types import Each, Items, Shape, Type
from kueuecore.jobs.injection import PodSetInfo, StartError
from kueuecore.jobs.integration import Finished, Integration, JobPodSet, NoWorkload
from kueuecore.jobs.manifest_shapes import CONTAINERS, TEMPLATE, TEXTS, TOLERATIONS
from kueuecore.jobs.quantities import is_quantity
from kueuecore.jobs.rejections import invalid
from kueuecore.jobs.spark_requests import spark_requests
from kueuecore.jobs.topology import slice_size_problems, topology_problems

__all__ = ["SPARK_APPLICATION"]

_ROLES = ("driver", "executor")
# Java's suffixes of memory, and Kubernetes'. The operator accepts them in any case, but only strips lower case.
_MEMORY = {"kb": "Ki", "mb": "Mi", "gb": "Gi", "tb": "Ti", "pb": "Pi"}
_MEMORY |= {suffix[0]: unit for suffix, unit in _MEMORY.items()}
_NAMED = Items({"name": Type.TEXT})
_ROLE: Mapping[str, Shape] = {
    **dict.fromkeys(("coreRequest", "coreLimit", "memory", "memoryLimit", "memoryOverhead"), Type.TEXT),
    "cores": Type.COUNT,
    "instances": Type.COUNT,
    "gpu": {"name": Type.TEXT, "quantity": Type.WHOLE},
    "labels": TEXTS,
    "annotations": TEXTS,
    "nodeSelector": TEXTS,
    "tolerations": TOLERATIONS,
    "affinity": Type.OBJECT,
    "priorityClassName": Type.TEXT,
    "sidecars": CONTAINERS,
    "initContainers": CONTAINERS,
    "volumeMounts": _NAMED,
    "template": TEMPLATE,
}
_FIELDS: Mapping[str, Shape] = {
    "spec": {
        "driver": _ROLE,
        "executor": _ROLE,
        "mode": Type.TEXT,
        "suspend": Type.BOOL,
        "dynamicAllocation": {"enabled": Type.BOOL, "minExecutors": Type.COUNT},
        "nodeSelector": TEXTS,
        "volumes": _NAMED,
        "sparkConf": TEXTS,
        "type": Type.TEXT,
        "memoryOverheadFactor": Type.TEXT,
    },
    "status": {
        "applicationState": {"state": Type.TEXT, "errorMessage": Type.TEXT},
        "executorState": Each(Type.TEXT),
    },
}


def _pod_sets(job: JsonObject, surroundings: Surroundings) -> list[JobPodSet]:
    counts = (1, int_at(job, "spec", "executor", "instances"))
    return [
        JobPodSet(
            name=role,
            count=count,
            template=_template(job, role, surroundings.configuration),
            count_path=("spec", role, "instances"),
        )
        for role, count in zip(_ROLES, counts, strict=True)
    ]


def _template(job: JsonObject, role: str, configuration: JobsConfiguration) -> JsonObject:
    spec = object_at(job, "spec", role)
    container: JsonObject = {"name": f"spark-kubernetes-{role}"}
    volumes, mounts = _volumes(job, spec)
    if mounts:
        container["volumeMounts"] = mounts
    if resources := _resources(job, role, configuration):
        container["resources"] = resources
    pod: JsonObject = {"containers": _distinct([container, *list_at(spec, "sidecars")])}
    optional: JsonObject = {
        "initContainers": _distinct(list_at(spec, "initContainers")),
        "volumes": volumes,
        "nodeSelector": dict(_node_selector(job, role, configuration)),
        "tolerations": list_at(spec, "tolerations"),
        "affinity": spec.get("affinity"),
        "priorityClassName": text_at(spec, "priorityClassName"),
    }
    pod |= {key: value for key, value in optional.items() if value}
    metadata: JsonObject = dict(object_at(spec, "template", "metadata"))
    for key in ("labels", "annotations"):
        if merged := {**texts_at(metadata, key), **texts_at(spec, key)}:
            metadata[key] = dict(merged)
    return {"metadata": metadata, "spec": pod} if metadata else {"spec": pod}


def _volumes(job: JsonObject, spec: JsonObject) -> tuple[list[JsonValue], list[JsonValue]]:
    """Return the volumes that a role mounts, and the mounts, without Spark's local directories."""
    by_name = {text_at(volume, "name"): volume for volume in list_at(job, "spec", "volumes")}
    mounts: list[JsonValue] = [
        mount
        for mount in list_at(spec, "volumeMounts")
        if text_at(mount, "name") in by_name and not text_at(mount, "name").startswith("spark-local-dir-")
    ]
    return [by_name[name] for name in dict.fromkeys(text_at(mount, "name") for mount in mounts)], mounts


def _distinct(containers: list[JsonValue]) -> list[JsonValue]:
    """Return the containers without those that have the name and image of an earlier one."""
    return list(
        {
            (text_at(container, "name"), text_at(container, "image")): container for container in reversed(containers)
        }.values()
    )[::-1]


def _node_selector(job: JsonObject, role: str, configuration: JobsConfiguration) -> Mapping[str, str]:
    """Return the node selector of a role's pods, as Kueue counts it."""
    own = texts_at(job, "spec", role, "nodeSelector")
    return {**texts_at(job, "spec", "nodeSelector"), **own} if configuration.has("SparkNodeSelectorCounts") else own


def _resources(job: JsonObject, role: str, configuration: JobsConfiguration) -> JsonObject:
    spec = object_at(job, "spec", role)
    requests: JsonObject = {}
    limits: JsonObject = {}
    written = [
        ("CPU limit", "cpu", limits, text_at(spec, "coreLimit")),
        ("memory limit", "memory", limits, _memory(text_at(spec, "memoryLimit"))),
    ]
    if configuration.has("SparkRequestsAreSparks"):
        requests |= spark_requests(job, role)
    else:
        written.insert(0, ("CPU requests", "cpu", requests, text_at(spec, "coreRequest")))
        written.insert(2, ("memory requests", "memory", requests, _memory(text_at(spec, "memory"))))
    for what, resource, into, value in written:
        if value and not is_quantity(value):
            raise NoWorkload(f"failed to parse {what} {value}: it is not a quantity")
        if value:
            into[resource] = value
    name, quantity = text_at(spec, "gpu", "name"), int_at(spec, "gpu", "quantity")
    if name and quantity > 0:
        limits[name] = str(quantity)
    both: JsonObject = {"requests": requests, "limits": limits}
    return {key: value for key, value in both.items() if value}


def _memory(text: str) -> str:
    for suffix, unit in _MEMORY.items():
        if text.lower().endswith(suffix):
            return f"{text.removesuffix(suffix)}{unit}"
    return text


def _validate(job: JsonObject, pod_sets: Sequence[JobPodSet], surroundings: Surroundings) -> list[Problem]:
    configuration, problems = surroundings.configuration, []
    if surroundings.is_meant_for_kueue(job):
        if (mode := text_at(job, "spec", "mode")) != "cluster":
            problems.append(invalid("spec.mode", mode, "only Cluster mode is supported for a kueue managed job"))
        if object_at(job, "spec", "dynamicAllocation").get("enabled") is True and not is_elastic(job, configuration):
            detail = (
                "a kueue managed job can use dynamicAllocation only when the ElasticJobsViaWorkloadSlices feature gate "
                "is on and the job is an elastic job"
            )
            problems.append(Problem(f"Invalid value: true: {detail}", field="spec.dynamicAllocation.enabled"))
    if configuration.enabled("TopologyAwareScheduling"):
        for pod_set in pod_sets:
            path = f"spec.{pod_set.name}.annotations"
            problems += topology_problems(path, pod_set.annotations, configuration)
            problems += slice_size_problems(path, pod_set.annotations, pod_set.count, configuration)
    return problems


def _info_of(job: JsonObject, role: str, configuration: JobsConfiguration) -> PodSetInfo:
    """Return the values of a role."""
    spec = object_at(job, "spec", role)
    selector = _node_selector(job, role, configuration)
    if not configuration.has("SparkNodeSelectorCounts"):
        # A node selector for all pods takes precedence over the role's own.
        selector = texts_at(job, "spec", "nodeSelector") or selector
    return PodSetInfo(
        role,
        annotations=texts_at(spec, "annotations"),
        labels=texts_at(spec, "labels"),
        node_selector=selector,
        tolerations=tuple(list_at(spec, "tolerations")),
        scheduling_gates=tuple(list_at(spec, "template", "spec", "schedulingGates")),
    )


def _written(job: JsonObject, role: str, info: PodSetInfo) -> JsonObject:
    path: Path = ("spec", role)
    for key, value in (
        ("annotations", dict(info.annotations)),
        ("labels", dict(info.labels)),
        ("nodeSelector", dict(info.node_selector)),
        ("tolerations", list(info.tolerations)),
    ):
        job = with_value(job, (*path, key), value) if value else without_value(job, (*path, key))  # type: ignore[arg-type]
    if not isinstance(value_at(job, (*path, "template")), dict):
        # The operator takes no template without the container that it fills in.
        container: JsonObject = {"name": f"spark-kubernetes-{role}"}
        job = with_value(job, (*path, "template"), {"spec": {"containers": [container]}})
    gates: Path = (*path, "template", "spec", "schedulingGates")
    return with_value(job, gates, list(info.scheduling_gates)) if info.scheduling_gates else without_value(job, gates)


def _inject(job: JsonObject, infos: Sequence[PodSetInfo], configuration: JobsConfiguration) -> JsonObject:
    if len(infos) != len(_ROLES):
        raise StartError(f"invalid podset infos: expecting {len(_ROLES)} podset, got {len(infos)}")
    started = job
    for role, info in zip(_ROLES, infos, strict=True):
        started = _written(started, role, _info_of(job, role, configuration).merged(info))
    return without_value(started, ("spec", "nodeSelector"))


def _restore(job: JsonObject, infos: Sequence[PodSetInfo]) -> JsonObject:
    if len(infos) != len(_ROLES):
        return job
    for role, info in zip(_ROLES, infos, strict=True):
        job = _written(job, role, replace(info, name=role))
    job = with_value(job, ("spec", "executor", "instances"), infos[1].count)
    return without_value(job, ("spec", "nodeSelector"))


def _state(job: JsonObject) -> str:
    return text_at(job, "status", "applicationState", "state")


def _finished(job: JsonObject, configuration: JobsConfiguration) -> Finished | None:
    ended = {"COMPLETED", "FAILED"}
    if not configuration.has("FailedSubmissionsMayBeRetried"):
        ended.add("SUBMISSION_FAILED")
    if _state(job) not in ended:
        return None
    message = text_at(job, "status", "applicationState", "errorMessage")
    return Finished(message, success=_state(job) == "COMPLETED")


def _pods_ready(job: JsonObject, configuration: JobsConfiguration) -> bool:
    states = object_at(job, "status", "executorState").values()
    n_ready = sum(state in ("RUNNING", "COMPLETED") for state in states)
    n_wanted = int_at(job, "spec", "executor", "instances")
    dynamic = object_at(job, "spec", "dynamicAllocation")
    if dynamic.get("enabled") is True and configuration.has("SparkIsReadyWithMinExecutors"):
        n_wanted = int_at(dynamic, "minExecutors", default=n_wanted)
    return _state(job) == "RUNNING" and n_ready >= n_wanted


SPARK_APPLICATION = Integration(
    framework="sparkoperator.k8s.io/sparkapplication",
    api_version="sparkoperator.k8s.io/v1beta2",
    kind="SparkApplication",
    feature_gate="SparkApplicationIntegration",
    pod_sets=_pod_sets,
    fields=_FIELDS,
    is_revalidated=True,
    is_validated_if_managed=True,
    validate=_validate,
    inject=_inject,
    restore=_restore,
    is_active=lambda job: _state(job) == "RUNNING",
    finished=lambda job: _finished(job, JobsConfiguration()),
    custom_finished=_finished,
    pods_ready=lambda job: _pods_ready(job, JobsConfiguration()),
    custom_pods_ready=_pods_ready,
)
