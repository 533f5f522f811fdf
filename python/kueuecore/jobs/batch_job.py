"""Supports Jobs of `batch/v1`, including those of CronJobs (rules/10 §1, §1.1, §5.1, §7)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at, texts_at
from kueuecore._text import quoted
from kueuecore.errors import Problem
from kueuecore.jobs.context import JobsConfiguration, Surroundings, annotations_of, is_elastic
from kueuecore.jobs.field_paths import with_value, without_value
from kueuecore.jobs.field_types import Exactly, Items, Shape, Type
from kueuecore.jobs.injection import PodSetInfo
from kueuecore.jobs.integration import Integration, JobPodSet, merged_into_templates, written_to_templates
from kueuecore.jobs.job_status import finished_by
from kueuecore.jobs.manifest_shapes import CONDITIONS, TEMPLATE, template_problems
from kueuecore.jobs.rejections import forbidden, go_bool, go_error, go_int, invalid
from kueuecore.jobs.scheduling_gates import elastic_gated
from kueuecore.jobs.topology import PREFERRED, REQUIRED, slice_size_problems, topology_problems
from kueuecore.writes import Verb, Write

__all__ = ["BATCH_JOB", "BATCH_JOB_FIELDS", "COMPLETION_INDEX", "is_stopping", "pods_count", "stopped_so_far"]

MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
EQUAL_COMPLETIONS = "kueue.x-k8s.io/job-completions-equal-parallelism"
STOPPING = "kueue.x-k8s.io/stopping"

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
_JOB_NAME = "batch.kubernetes.io/job-name"
# Added to the template by the job controller, and removed again by Kueue. The job name stays.
_DROPPED_LABELS = ("job-name", "controller-uid", "batch.kubernetes.io/controller-uid")
_ANNOTATIONS = "spec.template.metadata.annotations"
_TEMPLATE = ("spec", "template")
_UNREAD = (
    *("activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes", "podFailurePolicy"),
    *("podReplacementPolicy", "selector", "successPolicy", "ttlSecondsAfterFinished", "scheduling"),
)
BATCH_JOB_FIELDS: Mapping[str, Shape] = {
    "spec": Exactly(
        {
            "parallelism": Type.COUNT,
            "completions": Type.COUNT,
            "completionMode": Type.TEXT,
            "suspend": Type.BOOL,
            "manualSelector": Type.BOOL,
            "managedBy": Type.TEXT,
            "template": TEMPLATE,
            **dict.fromkeys(_UNREAD, Type.ANY),
        }
    ),
    "status": {
        **dict.fromkeys(("active", "ready", "succeeded"), Type.COUNT),
        "uncountedTerminatedPods": {"succeeded": Items(Type.TEXT)},
        "completedIndexes": Type.TEXT,
        "failedIndexes": Type.TEXT,
        "startTime": Type.TIME,
        "conditions": CONDITIONS,
    },
}
"""The fields of a Job that are read. An API server warns about unknown fields in its spec."""


def shape_problems(job: JsonObject) -> list[Problem]:
    """Return the problems of a Job without its necessary fields."""
    problems = []
    mode = text_at(job, "spec", "completionMode")
    if mode not in ("", "NonIndexed", "Indexed"):
        supported = 'supported values: "Indexed", "NonIndexed"'
        problems.append(Problem(f"Unsupported value: {quoted(mode)}: {supported}", field="spec.completionMode"))
    return problems + template_problems(job, _TEMPLATE)


def with_defaults(job: JsonObject) -> JsonObject:
    """Return a copy of a Job with the defaults of the API server that matter (rules/10 §1.1)."""
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
    """Return how many pods run at once."""
    parallelism, completions = _count(job, "parallelism"), _count(job, "completions")
    parallelism = 1 if parallelism is None else parallelism
    return parallelism if completions is None else min(parallelism, completions)


def _pod_sets(job: JsonObject, _surroundings: Surroundings) -> list[JobPodSet]:
    template = object_at(job, "spec", "template")
    metadata = dict(object_at(template, "metadata"))
    labels = {key: value for key, value in object_at(metadata, "labels").items() if key not in _DROPPED_LABELS}
    metadata["labels"] = labels
    at_least, _ = go_int(annotations_of(job).get(MIN_PARALLELISM, ""))
    return [
        JobPodSet(
            name="main",
            count=pods_count(job),
            template={**template, "metadata": {key: value for key, value in metadata.items() if value != {}}},
            path=_TEMPLATE,
            count_path=("spec", "parallelism"),
            min_count=at_least,
            pod_index_label=COMPLETION_INDEX,
        )
    ]


def _validate(job: JsonObject, pod_sets: Sequence[JobPodSet], surroundings: Surroundings) -> list[Problem]:
    problems = _equal_completions_problems(job, surroundings.configuration)
    if not surroundings.enabled("TopologyAwareScheduling"):
        return problems
    annotations = texts_at(job, "spec", "template", "metadata", "annotations")
    if found := topology_problems(_ANNOTATIONS, annotations, surroundings.configuration):
        return problems + found
    if is_elastic(job, surroundings.configuration):
        for key, mode in ((REQUIRED, "required"), (PREFERRED, "preferred")):
            if key in annotations:
                detail = f"{mode} topology is not supported with elastic jobs"
                return [*problems, forbidden(f"{_ANNOTATIONS}.{key}", detail)]
    return problems + slice_size_problems(_ANNOTATIONS, annotations, pod_sets[0].count, surroundings.configuration)


def _validate_update(old: JsonObject, new: JsonObject, surroundings: Surroundings) -> list[Problem]:
    has_changed = annotations_of(old).get(MIN_PARALLELISM) != annotations_of(new).get(MIN_PARALLELISM)
    problems = _partial_admission_problems(new, surroundings.configuration) if has_changed else []
    suspended = [object_at(entry, "spec").get("suspend") is True for entry in (old, new)]
    counts = [int_at(entry, "spec", "parallelism", default=1) for entry in (old, new)]
    if MIN_PARALLELISM in annotations_of(old) and not suspended[0] and counts[0] != counts[1]:
        detail = "cannot change when partial admission is enabled and the job is not suspended"
        problems.append(forbidden("spec.parallelism", detail))
    synced = [go_bool(annotations_of(entry).get(EQUAL_COMPLETIONS, "")) is True for entry in (old, new)]
    if not _is_suspended(old) and not _is_suspended(new) and synced[0] != synced[1]:
        field = f"metadata.annotations[{EQUAL_COMPLETIONS}]"
        problems.append(forbidden(field, "field is immutable while the job is not suspended"))
    return problems


def _is_suspended(job: JsonObject) -> bool:
    return object_at(job, "spec").get("suspend") is True and annotations_of(job).get(STOPPING) != "true"


def is_stopping(job: JsonObject) -> bool:
    """Return whether a job is a Job that was suspended and whose template is still to be restored (rules/10 §5.1)."""
    return object_at(job, "spec").get("suspend") is True and annotations_of(job).get(STOPPING) == "true"


def stopped_so_far(job: JsonObject, writes: Sequence[Write]) -> tuple[Write, ...]:
    """Return the writes of a stop that a server takes now: the template of a Job with active pods stays as it is.

    That is so since Kubernetes 1.36. The job controller soon reports that the pods are gone.

    Args:
        job: The job, of any kind.
        writes: All writes of its stop.
    """
    is_batch = (job.get("apiVersion"), job.get("kind")) == (BATCH_JOB.api_version, BATCH_JOB.kind)
    # The status of a Job that runs on a worker of MultiKueue is a copy, which may stay as it is.
    runs_here = text_at(job, "spec", "managedBy") in ("", BATCH_JOB.default_managed_by)
    if not (is_batch and runs_here and writes and _is_active(job)) or _template(writes[-1].manifest) == _template(job):
        return tuple(writes)
    return tuple(write for write in writes if not write.subresource and is_stopping(write.manifest))


def _is_active(job: JsonObject) -> bool:
    return int_at(job, "status", "active") != 0


def _template(job: JsonObject) -> JsonObject:
    return object_at(job, *_TEMPLATE)


def _inject(job: JsonObject, infos: Sequence[PodSetInfo], configuration: JobsConfiguration) -> JsonObject:
    started = merged_into_templates(job, [_TEMPLATE], infos, configuration)
    return _with_count(started, infos[0].count)


def _restore(job: JsonObject, infos: Sequence[PodSetInfo]) -> JsonObject:
    info = infos[0]
    labels = texts_at(job, "spec", "template", "metadata", "labels")
    kept = {key: labels[key] for key in (_JOB_NAME, *_DROPPED_LABELS) if key in labels}
    restored = written_to_templates(job, [_TEMPLATE], [replace(info, labels={**info.labels, **kept})])
    return _with_count(restored, info.count)


def _with_count(job: JsonObject, count: int) -> JsonObject:
    """Return the job with another parallelism, if it may change."""
    if go_int(annotations_of(job).get(MIN_PARALLELISM, ""))[0] is None:
        return job
    job = with_value(job, ("spec", "parallelism"), count)
    if go_bool(annotations_of(job).get(EQUAL_COMPLETIONS, "")):
        job = with_value(job, ("spec", "completions"), count)
    return job


def _stop(job: JsonObject, infos: Sequence[PodSetInfo] | None, _reason: str, _message: str) -> list[Write]:
    """Stop in three steps, as an API server takes no new template before the start time is removed."""
    writes = []
    if not _is_suspended(job) and not is_stopping(job):
        job = BATCH_JOB.suspend(job)
        job = with_value(job, ("metadata", "annotations", STOPPING), "true")
        writes.append(Write(Verb.UPDATE, job))
    if object_at(job, "status").get("startTime") is not None:
        job = without_value(job, ("status", "startTime"))
        writes.append(Write(Verb.UPDATE, job, "status"))
    restored = without_value(BATCH_JOB.restored(job, infos), ("metadata", "annotations", STOPPING))
    return [*writes, Write(Verb.UPDATE, restored)] if restored != job else writes


def _pods_ready(job: JsonObject) -> bool:
    uncounted = list_at(job, "status", "uncountedTerminatedPods", "succeeded")
    status = ("succeeded", "ready")
    return sum(int_at(job, "status", key) for key in status) + len(uncounted) >= pods_count(job)


def _reclaimable_pods(job: JsonObject, configuration: JobsConfiguration) -> dict[str, int]:
    parallelism = _count(job, "parallelism")
    parallelism = 1 if parallelism is None else parallelism
    completions = _count(job, "completions")
    completions = parallelism if completions is None else completions
    done = int_at(job, "status", "succeeded")
    if text_at(job, "spec", "completionMode") == "Indexed" and configuration.has("CompletedIndexesReclaimed"):
        ended = ("completedIndexes", *(("failedIndexes",) if configuration.has("FailedIndexesReclaimed") else ()))
        done = _n_indexes(",".join(text_at(job, "status", key) for key in ended), completions)
    n_left = max(completions - done, 0)
    # Before the change, pods counted that the completions never leave room for.
    most = min(parallelism, completions) if configuration.has("JobReclaimsFromItsPodSet") else parallelism
    return {"main": most - n_left} if most > 1 and done > 0 and n_left < most else {}


def _n_indexes(text: str, below: int) -> int:
    """Return how many different indexes below a limit a text such as `1,3-5` names; skip invalid intervals."""
    intervals = []
    for interval in text.split(","):
        first, dash, last = interval.partition("-")
        low, high = go_int(first)[0], go_int(last if dash else first)[0]
        if low is not None and high is not None and low <= high:
            intervals.append((low, min(high, below - 1)))
    count, counted = 0, -1
    for low, high in sorted(intervals):
        if (start := max(low, counted + 1)) <= high:
            count, counted = count + high - start + 1, high
    return count


def _partial_admission_problems(job: JsonObject, configuration: JobsConfiguration) -> list[Problem]:
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
    if is_elastic(job, configuration) and configuration.has("ElasticAnnotationNeedsSupport"):
        problems.append(invalid(field, text, "partial admission and elastic job cannot be used together"))
    return problems


def _equal_completions_problems(job: JsonObject, configuration: JobsConfiguration) -> list[Problem]:
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
        verb = "" if configuration.has("JobTextsAreCorrected") else "is "
        detail = f"should be equal to parallelism when {EQUAL_COMPLETIONS} {verb}annotation is true"
        shown = "Invalid value: null" if completions is None else f"Invalid value: {completions}"
        problems.append(Problem(f"{shown}: {detail}", field="spec.completions", value=completions))
    return problems


def _count(job: JsonObject, key: str) -> int | None:
    value = object_at(job, "spec").get(key)
    return value if isinstance(value, int) else None


BATCH_JOB = Integration(
    framework="batch/job",
    api_version="batch/v1",
    kind="Job",
    supports_prebuilt=True,
    supports_elastic=True,
    supports_multikueue=True,
    default_managed_by="kubernetes.io/job-controller",
    with_defaults=with_defaults,
    webhook_defaults=lambda job, configuration: elastic_gated(job, [(*_TEMPLATE, "spec")], configuration),
    fields=BATCH_JOB_FIELDS,
    shape_problems=shape_problems,
    pod_sets=_pod_sets,
    is_revalidated=True,
    validate=_validate,
    validate_creation=_partial_admission_problems,
    validate_update=_validate_update,
    inject=_inject,
    restore=_restore,
    custom_is_suspended=_is_suspended,
    custom_stop=_stop,
    is_active=_is_active,
    finished=finished_by("Complete", "Failed"),
    pods_ready=_pods_ready,
    reclaimable_pods=_reclaimable_pods,
)
