"""Reports what Kueue's webhooks refuse when a job is changed (rules/10 §5, §7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kueuecore._json import JsonObject, int_at, text_at
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.jobs.context import (
    ADMISSION_GATED_BY,
    ELASTIC_JOB,
    MAX_EXEC_TIME_LABEL,
    PRIORITY_CLASS_LABEL,
    QUEUE_LABEL,
    JobsConfiguration,
    Surroundings,
    annotations_of,
    configuration_or_default,
    is_elastic,
    labels_of,
)
from kueuecore.jobs.integration import Integration, NoWorkload
from kueuecore.jobs.integrations import INTEGRATIONS
from kueuecore.jobs.jobs_to_workloads import surroundings_of
from kueuecore.jobs.leader_worker_set import LEADER_WORKER_SET
from kueuecore.jobs.lifecycle import known_integration
from kueuecore.jobs.own_timeouts import changed_timeouts, timeout_problems
from kueuecore.jobs.owners import OwnerError
from kueuecore.jobs.rejections import forbidden, immutable, invalid
from kueuecore.jobs.validation import (
    admission_gate_problems,
    common_problems,
    gate_names,
    prebuilt_problems,
    prebuilt_workload,
)
from kueuecore.jobs.webhook_defaults import with_webhook_defaults
from kueuecore.manifests import ManifestLike, object_ref

__all__ = ["change_problems", "is_change_looked_at", "update_problems"]


def update_problems(
    old: JsonObject,
    new: JsonObject,
    *,
    around: Iterable[ManifestLike] = (),
    configuration: JobsConfiguration | None = None,
    integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS,
) -> tuple[Problem, ...]:
    """Return what Kueue's webhook refuses in a change of a job; nothing if it accepts the change.

    What the API server itself refuses, such as a new template of a running Job, is not checked.

    Args:
        old: The stored job.
        new: The changed job.
        around: The objects around it: LocalQueues named `default`, Namespaces, owners, Workloads, the runtime of a
            TrainJob.
        configuration: Which jobs are managed, and how.
        integrations: The kinds of jobs.

    Raises:
        ManifestError: The kind is unknown, or a field has the wrong type; in `old`, or in both.
        ValueError: The two are different objects.

    Example:
        >>> job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sum", "namespace": "lab",
        ...        "labels": {"kueue.x-k8s.io/queue-name": "jobs"}}, "spec": {"suspend": False}}
        >>> moved = {**job, "metadata": {**job["metadata"], "labels": {"kueue.x-k8s.io/queue-name": "others"}}}
        >>> print(*update_problems(job, moved))
        Job "lab/sum": metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value: "others": field is immutable
    """
    configuration = configuration_or_default(configuration)
    surroundings = surroundings_of(around, configuration, integrations)
    integration, other = known_integration(old, integrations), known_integration(new, integrations)
    ref = object_ref(new)
    if other is not integration or object_ref(old) != ref:
        raise ValueError(f"{object_ref(old)} and {ref} are not one object")
    old, new = integration.with_defaults(old), integration.with_defaults(new)
    if integration.is_serving:
        # The webhooks of such kinds set defaults in a change too.
        try:
            new = with_webhook_defaults(new, integration, surroundings)
        except OwnerError as error:
            return _of(ref, [Problem(error.denial)])
    if not is_change_looked_at(old, new, integration, surroundings):
        return ()
    return change_problems(old, new, integration, surroundings)


def is_change_looked_at(old: JsonObject, new: JsonObject, integration: Integration, surroundings: Surroundings) -> bool:
    """Return whether the validating webhook looks at a change; both jobs are as the mutating webhook has left them."""
    if integration.is_serving and integration.skipped(new):
        return False
    return not integration.is_validated_if_managed or _was_managed(old, new, surroundings)


def change_problems(
    old: JsonObject, new: JsonObject, integration: Integration, surroundings: Surroundings
) -> tuple[Problem, ...]:
    """Return the validating webhook's errors; both jobs are as the mutating webhook has left them."""
    configuration, ref = surroundings.configuration, object_ref(new)
    problems = [
        *(
            _serving_problems(old, new, integration, surroundings)
            if integration.is_serving
            else _job_problems(old, new, integration, surroundings)
        ),
        *(_gate_problems(old, new) if configuration.enabled("AdmissionGatedBy") else ()),
        *(common_problems(new, integration, configuration) if integration.is_revalidated else ()),
    ]
    try:
        pod_sets = integration.pod_sets(new, surroundings)
    except NoWorkload as reason:
        pod_sets = ()
        problems += [] if integration.is_serving else [Problem(str(reason))]
    except ManifestError as error:
        return (*_of(ref, problems), *error.problems)
    problems += integration.validate(new, pod_sets, surroundings) if pod_sets else ()
    problems += integration.validate_update(old, new, surroundings)
    return _of(ref, problems)


def _of(ref: ObjectRef, problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return the problems as those of an object, each once: several rules may report the same."""
    return tuple(dict.fromkeys(replace(problem, object=ref) for problem in problems))


def _was_managed(old: JsonObject, new: JsonObject, surroundings: Surroundings) -> bool:
    if surroundings.is_meant_for_kueue(new):
        return True
    return surroundings.enabled("ValidateRayAndSparkJobUpdates") and bool(labels_of(old).get(QUEUE_LABEL))


def _job_problems(
    old: JsonObject, new: JsonObject, integration: Integration, surroundings: Surroundings
) -> list[Problem]:
    """Return forbidden changes in any job that is suspended as a whole."""
    configuration = surroundings.configuration
    is_suspended, was_suspended = integration.is_suspended(new), integration.is_suspended(old)
    queue, old_queue = labels_of(new).get(QUEUE_LABEL, ""), labels_of(old).get(QUEUE_LABEL, "")
    field = f"metadata.labels[{QUEUE_LABEL}]"
    problems = [] if is_suspended else immutable(field, queue, old_queue)
    if old_queue and not queue and (text_at(old, "metadata", "namespace"), "default") in surroundings.local_queues:
        problems.append(invalid(field, "", "queue-name must not be empty in namespace with default queue"))
    if is_suspended or is_elastic(old, configuration):
        problems += prebuilt_problems(new, integration, configuration)
    else:
        (prebuilt, path), (old_prebuilt, _) = (prebuilt_workload(entry, configuration) for entry in (new, old))
        problems += immutable(path, prebuilt, old_prebuilt)
    if not (is_suspended and was_suspended):
        times = (labels_of(entry).get(MAX_EXEC_TIME_LABEL, "") for entry in (new, old))
        problems += immutable(f"metadata.labels[{MAX_EXEC_TIME_LABEL}]", *times)
    problems += _priority_class_problems(old, new, is_suspended=is_suspended)
    problems += timeout_problems(new, configuration) if is_suspended else changed_timeouts(old, new, configuration)
    elastic = (is_elastic(entry, configuration) for entry in (new, old))
    part = "annotations" if configuration.has("ElasticAnnotationNeedsSupport") else "labels"
    return problems + immutable(f"metadata.{part}[{ELASTIC_JOB}]", *elastic)


def _serving_problems(
    old: JsonObject, new: JsonObject, integration: Integration, surroundings: Surroundings
) -> list[Problem]:
    """Return forbidden changes in a serving set: it counts as suspended while none of its pods is ready."""
    is_suspended = int_at(old, "status", "readyReplicas") == 0
    queue, old_queue = labels_of(new).get(QUEUE_LABEL, ""), labels_of(old).get(QUEUE_LABEL, "")
    is_fixed = integration is LEADER_WORKER_SET and not surroundings.has("LwsQueueMayChange")
    is_free = is_suspended and queue and not is_fixed
    problems = [] if is_free else immutable(f"metadata.labels[{QUEUE_LABEL}]", queue, old_queue)
    return problems + _priority_class_problems(old, new, is_suspended=is_suspended)


def _priority_class_problems(old: JsonObject, new: JsonObject, *, is_suspended: bool) -> list[Problem]:
    field = f"metadata.labels[{PRIORITY_CLASS_LABEL}]"
    name, old_name = labels_of(new).get(PRIORITY_CLASS_LABEL, ""), labels_of(old).get(PRIORITY_CLASS_LABEL, "")
    if name and not old_name and not is_suspended:
        return [invalid(field, name, "WorkloadPriorityClass cannot be added to a non-suspended workload")]
    if old_name and not name:
        return [invalid(field, "", "WorkloadPriorityClass cannot be removed from a workload")]
    return []


def _gate_problems(old: JsonObject, new: JsonObject) -> list[Problem]:
    """Refuse changes of admission gates other than removals."""
    field = f"metadata.annotations[{ADMISSION_GATED_BY}]"
    value, old_value = (annotations_of(entry).get(ADMISSION_GATED_BY, "") for entry in (new, old))
    problems = []
    if value and not old_value:
        problems.append(forbidden(field, "cannot add admission gate after creation"))
    elif value and not set(gate_names(value)) <= set(gate_names(old_value)):
        problems.append(forbidden(field, "can only remove gates, not add new ones"))
    return problems + admission_gate_problems(value)
