"""Supports jobs of Kubeflow's training and MPI operators: pods of several replica types (rules/10 §1, §5.10)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import partial

from kueuecore._json import JsonObject, int_at, object_at, texts_at
from kueuecore.errors import Problem
from kueuecore.jobs.context import JobsConfiguration, Surroundings
from kueuecore.jobs.field_paths import Key, Path, path_text, with_value
from kueuecore.jobs.field_types import Each, Shape, Type
from kueuecore.jobs.integration import Integration, JobPodSet
from kueuecore.jobs.job_status import any_replica_active, finished_by, has_condition
from kueuecore.jobs.manifest_shapes import CONDITIONS, TEMPLATE, template_problems
from kueuecore.jobs.rejections import immutable, required
from kueuecore.jobs.topology import GROUP_NAME, POD_INDEX_OFFSET
from kueuecore.jobs.validation import offset_is_valid, topology_is_valid, topology_of_each_is_valid

__all__ = ["KUBEFLOW_KINDS", "MPI_JOB", "REPLICA_INDEX", "kubeflow_fields"]

REPLICA_INDEX = "training.kubeflow.org/replica-index"


def kubeflow_fields(specs: str) -> Mapping[str, Shape]:
    """Return the fields read of a job whose replica types are in this field."""
    policy: Mapping[str, Shape] = {
        "suspend": Type.BOOL,
        "managedBy": Type.TEXT,
        "schedulingPolicy": {"priorityClass": Type.TEXT},
    }
    return {
        "spec": {
            specs: Each({"replicas": Type.COUNT, "template": TEMPLATE}),
            "runPolicy": policy,
            "runLauncherAsWorker": Type.BOOL,
        },
        "status": {"conditions": CONDITIONS, "replicaStatuses": Each({"active": Type.COUNT})},
    }


def _present(job: JsonObject, specs: str, types: Sequence[str]) -> list[tuple[str, Path]]:
    """Return the replica types that a job has, in the order in which they become pod sets, and their paths."""
    found = object_at(job, "spec", specs)
    return [(type_, ("spec", specs, Key(type_))) for type_ in types if isinstance(found.get(type_), dict)]


def _pod_sets(job: JsonObject, _surroundings: Surroundings, *, specs: str, types: Sequence[str]) -> list[JobPodSet]:
    return [
        JobPodSet.at(
            job,
            (*path, "template"),
            name=row.lower(),
            count=int_at(job, *map(str, path), "replicas", default=1),
            count_path=(*path, "replicas"),
            pod_index_label=REPLICA_INDEX,
        )
        for row, path in _present(job, specs, types)
    ]


def _shape_problems(job: JsonObject, *, specs: str, types: Sequence[str]) -> list[Problem]:
    present = _present(job, specs, types)
    problems = [] if present else [required(f"spec.{specs}", f"one of {', '.join(types)}")]
    for _, path in present:
        problems += template_problems(job, (*path, "template"))
    return problems


def _with_defaults(job: JsonObject, *, specs: str, types: Sequence[str]) -> JsonObject:
    result = copy.deepcopy(job)
    for _, path in _present(job, specs, types):
        result = with_value(result, (*path, "replicas"), int_at(job, *map(str, path), "replicas", default=1))
    return result


def _kubeflow(framework: str, kind: str, specs: str, *types: str) -> Integration:
    return Integration(
        framework=f"kubeflow.org/{framework}",
        api_version="kubeflow.org/v2beta1" if kind == "MPIJob" else "kubeflow.org/v1",
        kind=kind,
        pod_sets=partial(_pod_sets, specs=specs, types=types),
        suspend_field=("spec", "runPolicy", "suspend"),
        supports_prebuilt=kind != "JAXJob",
        supports_multikueue=True,
        default_managed_by="kubeflow.org/mpi-operator" if kind == "MPIJob" else "kubeflow.org/training-operator",
        managed_by_field=("spec", "runPolicy", "managedBy"),
        with_defaults=partial(_with_defaults, specs=specs, types=types),
        webhook_defaults=_with_offset if kind == "MPIJob" else lambda job, _: job,
        fields=kubeflow_fields(specs),
        shape_problems=partial(_shape_problems, specs=specs, types=types),
        is_revalidated=kind == "MPIJob",
        validate=_validate_mpi_job if kind == "MPIJob" else topology_of_each_is_valid,
        validate_update=_validate_mpi_update if kind == "MPIJob" else lambda _old, _new, _surroundings: [],
        priority_class_field=("spec", "runPolicy", "schedulingPolicy", "priorityClass"),
        is_active=any_replica_active,
        finished=finished_by("Succeeded", "Failed"),
        pods_ready=lambda job: has_condition(job, "Running"),
    )


def _validate_mpi_job(job: JsonObject, pod_sets: Sequence[JobPodSet], surroundings: Surroundings) -> list[Problem]:
    return topology_is_valid(job, pod_sets, surroundings) + offset_is_valid(pod_sets, surroundings)


def _validate_mpi_update(old: JsonObject, new: JsonObject, surroundings: Surroundings) -> list[Problem]:
    """Let no index start elsewhere: the annotation is only written when the job is created (rules/08 §12.2)."""
    configuration = surroundings.configuration
    if not surroundings.enabled("TopologyAwareScheduling") or not configuration.has("PodIndexOffsetIsChecked"):
        return []
    problems: list[Problem] = []
    for name in ("Launcher", "Worker"):
        path = ("spec", "mpiReplicaSpecs", name, "template", "metadata", "annotations")
        now, before = (texts_at(job, *path).get(POD_INDEX_OFFSET) for job in (new, old))
        problems += immutable(f"{path_text(path)}[{POD_INDEX_OFFSET}]", now, before)
    return problems


def _with_offset(job: JsonObject, configuration: JobsConfiguration) -> JsonObject:
    """Return the job with workers whose indexes start after the launcher's, if it works too."""
    replicas = object_at(job, "spec", "mpiReplicaSpecs")
    launcher, worker = replicas.get("Launcher"), replicas.get("Worker")
    if (
        configuration.enabled("TopologyAwareScheduling")
        and object_at(job, "spec").get("runLauncherAsWorker") is True
        and isinstance(launcher, dict)
        and isinstance(worker, dict)
        and GROUP_NAME not in texts_at(launcher, "template", "metadata", "annotations")
    ):
        annotations = ("spec", "mpiReplicaSpecs", "Worker", "template", "metadata", "annotations")
        return with_value(job, (*annotations, POD_INDEX_OFFSET), "1")
    return job


MPI_JOB = _kubeflow("mpijob", "MPIJob", "mpiReplicaSpecs", "Launcher", "Worker")
KUBEFLOW_KINDS = (
    _kubeflow("pytorchjob", "PyTorchJob", "pytorchReplicaSpecs", "Master", "Worker"),
    _kubeflow("tfjob", "TFJob", "tfReplicaSpecs", "Chief", "Master", "PS", "Worker", "Evaluator"),
    _kubeflow("xgboostjob", "XGBoostJob", "xgbReplicaSpecs", "Master", "Worker"),
    _kubeflow("paddlejob", "PaddleJob", "paddleReplicaSpecs", "Master", "Worker"),
    _kubeflow("jaxjob", "JAXJob", "jaxReplicaSpecs", "Worker"),
    MPI_JOB,
)
