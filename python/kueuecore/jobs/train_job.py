"""Supports TrainJobs: their pods are those of the JobSet that the Trainer makes of a runtime (rules/10 §5.11)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore._near_names import near_names
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.jobs.context import JobsConfiguration, Surroundings, labels_of
from kueuecore.jobs.field_paths import with_value
from kueuecore.jobs.field_types import Items, Shape, Type, field_problems
from kueuecore.jobs.injection import PodSetInfo
from kueuecore.jobs.integration import Integration, JobPodSet, NoWorkload
from kueuecore.jobs.job_set import REPLICATED_JOBS, job_set_pod_sets
from kueuecore.jobs.job_status import finished_by
from kueuecore.jobs.manifest_shapes import CONDITIONS, METADATA, RESOURCES
from kueuecore.jobs.rejections import required
from kueuecore.jobs.topology import slice_size_problems, topology_problems
from kueuecore.writes import Verb, Write

__all__ = ["RUNTIMES", "TRAIN_JOB", "job_set_of"]

API_VERSION = "trainer.kubeflow.org/v1alpha1"
RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")
"""The kinds that define what a TrainJob runs."""
STEP_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
_INITIALIZERS = ("dataset-initializer", "model-initializer")
_PATCH_MANAGER = "kueue.x-k8s.io/manager"
_ALL_PODS = 2**31 - 1
_NODE = "node"
# What spec.trainer says of the container of a launcher, and of those of all nodes.
_OF_LAUNCHER = ("image", "command", "args")
_OF_NODES = ("resourcesPerNode", "env")
# Lists in pod templates that Kubernetes merges item by item, and the key that identifies an item.
_MERGED_LISTS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
    "schedulingGates": "name",
    "imagePullSecrets": "name",
    "topologySpreadConstraints": "topologyKey",
}
_PATCHED = Items({"name": Type.TEXT, "template": Type.OBJECT})
_FIELDS: Mapping[str, Shape] = {
    "spec": {
        "runtimeRef": {"apiGroup": Type.TEXT, "kind": Type.TEXT, "name": Type.TEXT},
        "trainer": {
            "numNodes": Type.COUNT,
            "image": Type.TEXT,
            "command": Items(Type.TEXT),
            "args": Items(Type.TEXT),
            "env": Items({"name": Type.TEXT}),
            "resourcesPerNode": RESOURCES,
        },
        "runtimePatches": Items(
            {
                "manager": Type.TEXT,
                "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": _PATCHED}}},
            }
        ),
        "suspend": Type.BOOL,
        "managedBy": Type.TEXT,
    },
    "status": {
        "conditions": CONDITIONS,
        "jobsStatus": Items({"name": Type.TEXT, **dict.fromkeys(("active", "ready", "succeeded"), Type.COUNT)}),
    },
}
_RUNTIME: Mapping[str, Shape] = {
    "metadata": METADATA,
    "spec": {
        "mlPolicy": {"numNodes": Type.COUNT, "mpi": {"runLauncherAsNode": Type.BOOL}},
        "template": {"spec": {"replicatedJobs": REPLICATED_JOBS}},
    },
}


def job_set_of(job: JsonObject, surroundings: Surroundings) -> JsonObject:
    """Return the JobSet that the Trainer would make of a TrainJob and its runtime.

    Raises:
        NoWorkload: The runtime does not exist.
        ManifestError: A field of it, also after patches, has the wrong type.
    """
    runtime = _runtime(job, surroundings)
    policy = object_at(runtime, "spec", "mlPolicy") if object_at(runtime, "spec").get("mlPolicy") is not None else None
    trainer = object_at(job, "spec", "trainer")
    replicated_jobs: list[JsonValue] = [
        {"replicas": 1, **_with_trainer(_patched(object_at(replicated_job), job), policy, trainer)}
        for replicated_job in list_at(runtime, "spec", "template", "spec", "replicatedJobs")
    ]
    merged: JsonObject = {"spec": {"replicatedJobs": replicated_jobs}}
    if problems := field_problems(merged, {"spec": {"replicatedJobs": REPLICATED_JOBS}}):
        raise ManifestError(problems)
    return merged


def _runtime(job: JsonObject, surroundings: Surroundings) -> JsonObject:
    reference = object_at(job, "spec", "runtimeRef")
    kind, name = text_at(reference, "kind"), text_at(reference, "name")
    if kind not in RUNTIMES:
        raise NoWorkload(f"unsupported runtime: {kind}.{text_at(reference, 'apiGroup')}")
    namespace = text_at(job, "metadata", "namespace")
    if kind == "ClusterTrainingRuntime":
        namespace = surroundings.configuration.default_namespace
    runtime = surroundings.by_key.get((API_VERSION, kind, namespace, name))
    if runtime is None:
        raise NoWorkload(f"runtime '{name}' not found", missing=_missing(kind, name))
    if problems := field_problems(runtime, _RUNTIME):
        raise ManifestError(replace(problem, object=ObjectRef(kind, name)) for problem in problems)
    return runtime


def _missing(kind: str, name: str) -> Problem:
    from kueuecore.jobs.shipped_runtimes import SHIPPED_RUNTIMES

    near = near_names(name, SHIPPED_RUNTIMES) if kind == RUNTIMES[0] else ()
    remedy = f"write {near[0]}" if near else "add it to the manifests, or correct its name"
    return Problem(f"{ObjectRef(kind, name)} not found", field="spec.runtimeRef.name", value=name, remedy=remedy)


def _patched(replicated: JsonObject, job: JsonObject) -> JsonObject:
    """Return a replicated job of the runtime with what the TrainJob changes in it."""
    for patch in list_at(job, "spec", "runtimePatches"):
        for replicated_job in list_at(patch, "trainingRuntimeSpec", "template", "spec", "replicatedJobs"):
            if text_at(replicated_job, "name") == text_at(replicated, "name"):
                template = _merged(replicated.get("template"), object_at(replicated_job).get("template"))
                replicated = {**replicated, "template": template}
    return replicated


def _merged(old: JsonValue, new: JsonValue, name: str = "") -> JsonValue:
    """Merge two values as Kubernetes' strategic merge does, as far as pod templates need it."""
    if isinstance(old, dict) and isinstance(new, dict):
        result = dict(old)
        for key, value in new.items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = _merged(old.get(key), value, key)
        return result
    if isinstance(old, list) and isinstance(new, list) and name in _MERGED_LISTS:
        key = _MERGED_LISTS[name]
        items = {str(object_at(entry).get(key)): entry for entry in old}
        for row in new:
            item = str(object_at(row).get(key))
            items[item] = _merged(items.get(item), row)
        return list(items.values())
    return new


def _with_trainer(replicated: JsonObject, policy: JsonObject | None, trainer: JsonObject) -> JsonObject:
    """Return a replicated job with its number of pods, and with the values of `spec.trainer`.

    Args:
        replicated: The replicated job, patched.
        policy: `mlPolicy` of the runtime, if it has one.
        trainer: `spec.trainer` of the TrainJob.
    """
    is_mpi = policy is not None and policy.get("mpi") is not None
    launches = object_at(policy, "mpi").get("runLauncherAsNode") is True
    step = labels_of(object_at(replicated, "template")).get(STEP_LABEL, "")
    is_trainer, is_node = step == "trainer", text_at(replicated, "name") == _NODE
    count = int_at(replicated, "template", "spec", "parallelism", default=1)
    if is_trainer and policy is not None:
        count = int_at(policy, "numNodes", default=1)
    if trainer.get("numNodes") is not None and (is_node if is_mpi else is_trainer):
        count = int_at(trainer, "numNodes")
        count = max(1, count - 1) if launches else count
    if is_trainer or step in _INITIALIZERS:
        replicated = {**replicated, "replicas": 1}
    for key in ("parallelism", "completions"):
        replicated = with_value(replicated, ("template", "spec", key), count)
    # Where the launcher is one of the nodes it alone has the step, and the others are known by their name.
    keys = (*_OF_LAUNCHER, *_OF_NODES) if is_trainer else _OF_NODES if launches and is_node else ()
    given = {key: trainer[key] for key in keys if trainer.get(key) is not None}
    if policy is None:
        given.pop("resourcesPerNode", None)
    return _with_values(replicated, given) if given else replicated


def _with_values(replicated: JsonObject, given: JsonObject) -> JsonObject:
    """Return a replicated job with values of `spec.trainer` in its container for a node."""
    containers: list[JsonValue] = []
    for other in list_at(replicated, "template", "spec", "template", "spec", "containers"):
        container = dict(object_at(other))
        if text_at(container, "name") == _NODE:
            container |= {key: given[key] for key in _OF_LAUNCHER if key in given}
            if resources := object_at(given, "resourcesPerNode"):
                container["resources"] = _merged(object_at(container, "resources"), resources)
            if env := list_at(given, "env"):
                container["env"] = _merged(list_at(container, "env"), env, "env")
        containers.append(container)
    return with_value(replicated, ("template", "spec", "template", "spec", "containers"), containers)


def _pod_sets(job: JsonObject, surroundings: Surroundings) -> list[JobPodSet]:
    pod_sets = job_set_pod_sets(job_set_of(job, surroundings), surroundings)
    return [replace(pod_set, path=None, count_path=()) for pod_set in pod_sets]


def _validate(_job: JsonObject, pod_sets: Sequence[JobPodSet], surroundings: Surroundings) -> list[Problem]:
    if not surroundings.enabled("TopologyAwareScheduling"):
        return []
    remedy = (
        'Adjust either the "TrainJob.spec.runtimePatches" or the "TrainingRuntime.Template" annotations for the '
        "corresponding Job"
    )
    problems = []
    for pod_set in pod_sets:
        path = f"job[{pod_set.name.lower()}].annotations"
        problems += topology_problems(path, pod_set.annotations, surroundings.configuration)
        problems += slice_size_problems(path, pod_set.annotations, pod_set.count, surroundings.configuration)
    return [replace(problem, message=f"{problem.message}. {remedy}") for problem in problems]


def _with_defaults(job: JsonObject) -> JsonObject:
    result = copy.deepcopy(job)
    reference: JsonObject = {"apiGroup": "trainer.kubeflow.org", "kind": RUNTIMES[0]}
    spec = object_at(result, "spec")
    reference |= {key: value for key, value in object_at(spec, "runtimeRef").items() if value is not None}
    result["spec"] = {"suspend": False, **spec, "runtimeRef": reference}
    return result


def _webhook_defaults(job: JsonObject, _configuration: JobsConfiguration) -> JsonObject:
    return _with_patch(job, [])


def _with_patch(job: JsonObject, replicated_jobs: list[JsonValue]) -> JsonObject:
    """Return the job with Kueue's own patch of the runtime, which is empty while it waits."""
    spec: JsonObject = {"replicatedJobs": replicated_jobs} if replicated_jobs else {}
    own: JsonObject = {"manager": _PATCH_MANAGER, "trainingRuntimeSpec": {"template": {"spec": spec}}}
    patches = list_at(job, "spec", "runtimePatches")
    is_own = [text_at(patch, "manager") == _PATCH_MANAGER for patch in patches]
    if True not in is_own:
        return with_value(job, ("spec", "runtimePatches"), [*patches, own])
    return with_value(job, ("spec", "runtimePatches", is_own.index(True)), own)


def _start(job: JsonObject, infos: Sequence[PodSetInfo], _configuration: JobsConfiguration) -> list[Write]:
    """Start in two steps, as the Trainer takes new patches only while the job is suspended."""
    patched = _with_patch(
        job, [{"name": info.name, "template": {"spec": {"template": info.written_to({})}}} for info in infos]
    )
    return [Write(Verb.UPDATE, patched), Write(Verb.UPDATE, with_value(patched, ("spec", "suspend"), False))]


def _stop(job: JsonObject, _infos: Sequence[PodSetInfo] | None, _reason: str, _message: str) -> list[Write]:
    """Suspend it; remove the patch once its pods are gone."""
    writes = []
    if not TRAIN_JOB.is_suspended(job):
        job = TRAIN_JOB.suspend(job)
        writes.append(Write(Verb.UPDATE, job))
    restored = _with_patch(job, [])
    return writes if _is_active(job) or restored == job else [*writes, Write(Verb.UPDATE, restored)]


def _is_active(job: JsonObject) -> bool:
    return any(int_at(value, "active") > 0 for value in list_at(job, "status", "jobsStatus"))


def _pods_ready(job: JsonObject) -> bool:
    """Return whether every Job is ready or done. The Trainer makes one of each."""
    statuses = list_at(job, "status", "jobsStatus")
    return bool(statuses) and sum(int_at(status, "ready") + int_at(status, "succeeded") for status in statuses) == len(
        statuses
    )


def _shape_problems(job: JsonObject) -> list[Problem]:
    return [] if text_at(job, "spec", "runtimeRef", "name") else [required("spec.runtimeRef.name")]


TRAIN_JOB = Integration(
    framework="trainer.kubeflow.org/trainjob",
    api_version=API_VERSION,
    kind="TrainJob",
    pod_sets=_pod_sets,
    supports_prebuilt=True,
    supports_multikueue=True,
    default_managed_by="trainer.kubeflow.org/trainjob-controller",
    with_defaults=_with_defaults,
    webhook_defaults=_webhook_defaults,
    fields=_FIELDS,
    shape_problems=_shape_problems,
    is_revalidated=True,
    validate=_validate,
    custom_start=_start,
    custom_stop=_stop,
    is_active=_is_active,
    finished=finished_by("Complete", "Failed"),
    pods_ready=_pods_ready,
    reclaimable_pods=lambda job, _: {
        # There is one Job of each, so all its pods are done; the Workload knows how many that is.
        text_at(value, "name").lower(): _ALL_PODS
        for value in list_at(job, "status", "jobsStatus")
        if int_at(value, "succeeded") == 1
    },
)
