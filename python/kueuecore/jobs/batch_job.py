"""Jobs of `batch/v1`, those of CronJobs among them (rules/10 §1, §1.1, §5.1, §7)."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from kueuecore._json import JsonObject, list_at, object_at, text_at, texts_at
from kueuecore.errors import Problem
from kueuecore.jobs.model import ELASTIC_JOB, Integration, JobsConfiguration, annotations_of, is_elastic
from kueuecore.jobs.rejections import forbidden, go_bool, go_error, go_int, invalid, quoted, required
from kueuecore.jobs.topology import PREFERRED, REQUIRED, slice_size_problems, topology_problems, topology_request

__all__ = ["BATCH_JOB"]

MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
EQUAL_COMPLETIONS = "kueue.x-k8s.io/job-completions-equal-parallelism"
STOPPING = "kueue.x-k8s.io/stopping"

_COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
_JOB_NAME = "batch.kubernetes.io/job-name"
# What the job controller writes into the template, and Kueue takes out again. It leaves the job name.
_MANAGED_LABELS = ("job-name", "controller-uid", "batch.kubernetes.io/controller-uid")
_ANNOTATIONS = "spec.template.metadata.annotations"
_INT32 = 2**31


def shape_problems(job: JsonObject) -> list[Problem]:
    """Fields without which, or with other types than which, a Job says nothing."""
    problems = []
    spec = object_at(job, "spec")
    for key in ("parallelism", "completions"):
        value = spec.get(key)
        if value is None:
            continue
        field = f"spec.{key}"
        if isinstance(value, bool) or not isinstance(value, int) or value >= _INT32:
            problems.append(invalid(field, str(value), "must be a 32-bit integer"))
        elif value < 0:
            problems.append(invalid(field, value, "must be greater than or equal to 0"))
    mode = spec.get("completionMode")
    if mode not in (None, "NonIndexed", "Indexed"):
        supported = 'supported values: "Indexed", "NonIndexed"'
        problems.append(Problem(f"Unsupported value: {quoted(str(mode))}: {supported}", field="spec.completionMode"))
    if not list_at(spec, "template", "spec", "containers"):
        problems.append(required("spec.template.spec.containers"))
    return problems


def with_defaults(job: JsonObject) -> JsonObject:
    """A copy of a Job with the defaults of the API server that matter (rules/10 §1.1)."""
    result = copy.deepcopy(job)
    spec: JsonObject = {key: value for key, value in object_at(result, "spec").items() if value is not None}
    if "parallelism" not in spec and "completions" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    if spec.get("manualSelector") is not True:
        template = object_at(spec, "template")
        metadata = object_at(template, "metadata")
        labels = {**object_at(metadata, "labels"), _JOB_NAME: text_at(result, "metadata", "name")}
        spec["template"] = {**template, "metadata": {**metadata, "labels": labels}}
    result["spec"] = spec
    return result


def pods_count(job: JsonObject) -> int:
    """How many pods run at once."""
    parallelism, completions = _count(job, "parallelism"), _count(job, "completions")
    parallelism = 1 if parallelism is None else parallelism
    return parallelism if completions is None else min(parallelism, completions)


def pod_sets(job: JsonObject, configuration: JobsConfiguration) -> list[JsonObject]:
    """The one pod set of a Job."""
    template = dict(object_at(job, "spec", "template"))
    metadata = dict(object_at(template, "metadata"))
    labels = {key: value for key, value in object_at(metadata, "labels").items() if key not in _MANAGED_LABELS}
    metadata["labels"] = labels
    template["metadata"] = {key: value for key, value in metadata.items() if value != {}}
    if is_elastic(job) and configuration.enabled("ElasticJobsViaWorkloadSlices"):
        template["spec"] = _gated(object_at(template, "spec"))
    result: JsonObject = {"name": "main", "template": template, "count": pods_count(job)}
    at_least, _ = go_int(annotations_of(job).get(MIN_PARALLELISM, ""))
    if at_least is not None:
        result["minCount"] = at_least
    annotations = texts_at(template, "metadata", "annotations")
    request = topology_request(annotations, configuration, pod_index_label=_COMPLETION_INDEX)
    if request is not None:
        result["topologyRequest"] = request
    return [result]


def validate(job: JsonObject, configuration: JobsConfiguration) -> list[Problem]:
    """What is rejected when a Job is created."""
    problems = _partial_admission_problems(job) + _equal_completions_problems(job)
    if not configuration.enabled("TopologyAwareScheduling"):
        return problems
    annotations = texts_at(job, "spec", "template", "metadata", "annotations")
    if found := topology_problems(_ANNOTATIONS, annotations, configuration):
        return problems + found
    if configuration.enabled("ElasticJobsViaWorkloadSlices") and is_elastic(job):
        for key, mode in ((REQUIRED, "required"), (PREFERRED, "preferred")):
            if key in annotations:
                detail = f"{mode} topology is not supported with elastic jobs"
                return [*problems, forbidden(f"{_ANNOTATIONS}.{key}", detail)]
    return problems + slice_size_problems(_ANNOTATIONS, annotations, pods_count(job))


def suspend(job: JsonObject) -> None:
    """Suspend a Job."""
    job["spec"] = {**object_at(job, "spec"), "suspend": True}


def is_suspended(job: JsonObject) -> bool:
    """Whether a Job is suspended, and not only about to be."""
    return object_at(job, "spec").get("suspend") is True and annotations_of(job).get(STOPPING) != "true"


def finished(job: JsonObject) -> bool:
    """Whether a Job is complete or has failed."""
    return any(
        text_at(condition, "type") in ("Complete", "Failed") and text_at(condition, "status") == "True"
        for condition in list_at(job, "status", "conditions")
    )


def _template_paths(_: JsonObject) -> Sequence[tuple[str, str]]:
    return [("spec.podSets[0].template", "spec.template"), ("spec.podSets[0].count", "spec.parallelism")]


def _partial_admission_problems(job: JsonObject) -> list[Problem]:
    text = annotations_of(job).get(MIN_PARALLELISM)
    if text is None:
        return []
    field = f"metadata.annotations[{MIN_PARALLELISM}]"
    problems = []
    at_least, why = go_int(text)
    count = pods_count(job)
    if at_least is None:
        problems.append(invalid(field, text, go_error("Atoi", text, why), remedy="write a whole number"))
    elif not 0 < at_least < count:
        problems.append(invalid(field, at_least, f"should be between 0 and {count - 1}"))
    if is_elastic(job):
        problems.append(invalid(field, text, "partial admission and elastic job cannot be used together"))
    return problems


def _equal_completions_problems(job: JsonObject) -> list[Problem]:
    text = annotations_of(job).get(EQUAL_COMPLETIONS)
    if text is None:
        return []
    field = f"metadata.annotations[{EQUAL_COMPLETIONS}]"
    enabled = go_bool(text)
    if enabled is None:
        return [invalid(field, text, go_error("ParseBool", text, "invalid syntax"), remedy='write "true" or "false"')]
    if not enabled:
        return []
    problems = []
    if object_at(job, "spec").get("completionMode", "NonIndexed") == "NonIndexed":
        problems.append(invalid(field, text, "should not be enabled for NonIndexed jobs"))
    parallelism, completions = _count(job, "parallelism"), _count(job, "completions")
    if (1 if parallelism is None else parallelism) != (1 if completions is None else completions):
        detail = f"should be equal to parallelism when {EQUAL_COMPLETIONS} annotation is true"
        shown = "Invalid value: null" if completions is None else f"Invalid value: {completions}"
        problems.append(Problem(f"{shown}: {detail}", field="spec.completions", value=completions))
    return problems


def _count(job: JsonObject, key: str) -> int | None:
    value = object_at(job, "spec").get(key)
    return value if isinstance(value, int) else None


def _gated(spec: JsonObject) -> JsonObject:
    """The pod spec with the gate behind which pods of an elastic job wait (rules/10 §2.2.5)."""
    gates = list_at(spec, "schedulingGates")
    if any(text_at(gate, "name") == ELASTIC_JOB for gate in gates):
        return spec
    return {**spec, "schedulingGates": [*gates, {"name": ELASTIC_JOB}]}


BATCH_JOB = Integration(
    framework="batch/job",
    api_version="batch/v1",
    kind="Job",
    with_defaults=with_defaults,
    shape_problems=shape_problems,
    pod_sets=pod_sets,
    validate=validate,
    suspend=suspend,
    finished=finished,
    template_paths=_template_paths,
)
