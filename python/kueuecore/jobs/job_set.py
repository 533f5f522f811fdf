"""Supports JobSets: several Jobs of several kinds, started and stopped together (rules/10 §1, §5.2)."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from kueuecore.errors import Problem
from kueuecore.jobs.batch_job import COMPLETION_INDEX, pods_count
from kueuecore.jobs.context import JobsConfiguration, Surroundings
from kueuecore.jobs.field_paths import Path
from kueuecore.jobs.field_types import Items, Shape, Type
from kueuecore.jobs.integration import Integration, JobPodSet
from kueuecore.jobs.job_status import finished_by
from kueuecore.jobs.manifest_shapes import CONDITIONS, TEMPLATE, template_problems
from kueuecore.jobs.rejections import required
from kueuecore.jobs.validation import topology_is_valid

__all__ = [
    "JOB_INDEX",
    "JOB_SET",
    "JOB_SET_FIELDS",
    "REPLICATED_JOBS",
    "job_set_pod_sets",
    "job_set_pods_ready",
    "job_set_reclaimable_pods",
]

JOB_INDEX = "jobset.sigs.k8s.io/job-index"
_REPLICATED_JOBS = ("spec", "replicatedJobs")
REPLICATED_JOBS = Items(
    {
        "name": Type.TEXT,
        "replicas": Type.COUNT,
        "template": {
            "metadata": TEMPLATE["metadata"],
            "spec": {"parallelism": Type.COUNT, "completions": Type.COUNT, "template": TEMPLATE},
        },
    }
)
JOB_SET_FIELDS: Mapping[str, Shape] = {
    "spec": {"replicatedJobs": REPLICATED_JOBS, "suspend": Type.BOOL, "managedBy": Type.TEXT},
    "status": {
        "conditions": CONDITIONS,
        "replicatedJobsStatus": Items(
            {"name": Type.TEXT, **dict.fromkeys(("active", "ready", "succeeded"), Type.COUNT)}
        ),
    },
}


def job_set_pod_sets(job: JsonObject, _surroundings: Surroundings) -> list[JobPodSet]:
    """Return one pod set for each replicated job."""
    return [
        JobPodSet.at(
            job,
            (*_REPLICATED_JOBS, index, "template", "spec", "template"),
            name=text_at(replicated, "name"),
            count=_replicas(replicated) * pods_count(object_at(replicated, "template")),
            count_path=(*_REPLICATED_JOBS, index, "replicas"),
            pod_index_label=COMPLETION_INDEX,
            sub_group_index_label=JOB_INDEX,
            sub_group_count=_replicas(replicated),
        )
        for index, replicated in enumerate(_replicated_jobs(job))
    ]


def job_set_pods_ready(job: JsonObject, *, statuses: str = "replicatedJobsStatus") -> bool:
    """Return whether as many Jobs are ready or done as there are."""
    n_ready = sum(int_at(value, "ready") + int_at(value, "succeeded") for value in list_at(job, "status", statuses))
    return n_ready == sum(map(_replicas, _replicated_jobs(job)))


def job_set_reclaimable_pods(
    job: JsonObject, _configuration: JobsConfiguration, *, statuses: str = "replicatedJobsStatus"
) -> dict[str, int]:
    """Return the pods of Jobs that succeeded."""
    succeeded = {text_at(value, "name"): int_at(value, "succeeded") for value in list_at(job, "status", statuses)}
    return {
        text_at(replicated_job, "name").lower(): succeeded[text_at(replicated_job, "name")]
        * pods_count(object_at(replicated_job, "template"))
        for replicated_job in _replicated_jobs(job)
        if 0 < succeeded.get(text_at(replicated_job, "name"), 0) <= _replicas(replicated_job)
    }


def _replicated_jobs(job: JsonObject) -> list[JsonObject]:
    return [object_at(value) for value in list_at(job, *_REPLICATED_JOBS)]


def _replicas(replicated: JsonObject) -> int:
    return int_at(replicated, "replicas", default=1)


def _with_defaults(job: JsonObject) -> JsonObject:
    result = copy.deepcopy(job)
    for replicated in _replicated_jobs(result):
        replicated.setdefault("replicas", 1)
    result["spec"] = {"suspend": False, **object_at(result, "spec")}
    return result


def _shape_problems(job: JsonObject) -> list[Problem]:
    problems = []
    for index, replicated_job in enumerate(_replicated_jobs(job)):
        path: Path = (*_REPLICATED_JOBS, index)
        if not text_at(replicated_job, "name"):
            problems.append(required(f"spec.replicatedJobs[{index}].name"))
        problems += template_problems(job, (*path, "template", "spec", "template"))
    return problems


JOB_SET = Integration(
    framework="jobset.x-k8s.io/jobset",
    api_version="jobset.x-k8s.io/v1alpha2",
    kind="JobSet",
    pod_sets=job_set_pod_sets,
    supports_prebuilt=True,
    supports_multikueue=True,
    default_managed_by="jobset.sigs.k8s.io/jobset-controller",
    with_defaults=_with_defaults,
    fields=JOB_SET_FIELDS,
    shape_problems=_shape_problems,
    is_revalidated=True,
    validate=topology_is_valid,
    is_active=lambda job: any(int_at(value, "active") > 0 for value in list_at(job, "status", "replicatedJobsStatus")),
    finished=finished_by("Completed", "Failed"),
    pods_ready=job_set_pods_ready,
    reclaimable_pods=job_set_reclaimable_pods,
)
