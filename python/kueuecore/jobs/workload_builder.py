"""Builds the Workload of a job: its name, its metadata, and its priority (rules/10 §3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore._kinds import KUEUE
from kueuecore._text import quoted
from kueuecore.errors import Problem
from kueuecore.jobs.context import (
    ADMISSION_GATED_BY,
    ELASTIC_JOB,
    JOB_UID_LABEL,
    MAX_EXEC_TIME_LABEL,
    PRIORITY_CLASS_LABEL,
    QUEUE_LABEL,
    RAY_CLUSTER_GENERATION,
    JobsConfiguration,
    Surroundings,
    annotations_of,
    group_of,
    is_elastic,
    labels_of,
)
from kueuecore.jobs.field_paths import with_value
from kueuecore.jobs.injection import SLICE_NAME_ANNOTATION
from kueuecore.jobs.integration import Integration, NoWorkload, WorkloadIdentity
from kueuecore.jobs.own_timeouts import OWN_TIMEOUTS
from kueuecore.jobs.rejections import go_int
from kueuecore.jobs.workload_names import owner_reference, workload_name

__all__ = [
    "RESOURCE_IN_USE",
    "check_priority",
    "complete_workload",
    "is_label_value",
    "max_exec_time_seconds",
    "new_workload",
    "priority_of",
    "sanitized",
]

RESOURCE_IN_USE = "kueue.x-k8s.io/resource-in-use"
"""The finalizer that keeps a Workload until its job has stopped."""

_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?\Z")


def new_workload(
    job: JsonObject,
    integration: Integration,
    pod_sets: Sequence[JsonObject],
    configuration: JobsConfiguration,
    *,
    index: int = 0,
) -> JsonObject:
    """Return a Workload of a job, without its priority.

    Args:
        job: The job with all defaults.
        integration: The integration of its kind.
        pod_sets: Its pod sets.
        configuration: Decides what is copied from the job.
        index: The index of the Workload among those of the job.
    """
    labels, annotations = labels_of(job), annotations_of(job)
    identify = integration.identify or _identity
    identity = identify(job, index, configuration)
    kept: JsonObject = {key: text for key, text in annotations.items() if key.startswith("provreq.kueue.x-k8s.io/")}
    if identity.labels is None:
        kept |= {key: annotations[key] for key in configuration.annotation_keys_to_copy if key in annotations}
    if configuration.enabled("AdmissionGatedBy") and annotations.get(ADMISSION_GATED_BY):
        kept[ADMISSION_GATED_BY] = annotations[ADMISSION_GATED_BY]
    if configuration.enabled("WorkloadLevelWaitForPodsReady") and annotations.get(OWN_TIMEOUTS):
        kept[OWN_TIMEOUTS] = annotations[OWN_TIMEOUTS]
    metadata: JsonObject = {"name": identity.name, "namespace": text_at(job, "metadata", "namespace")}
    if created := text_at(job, "metadata", "creationTimestamp"):
        # The controller makes the Workload as soon as it sees the job.
        metadata["creationTimestamp"] = created
    metadata |= {
        "labels": _copied_labels(job, configuration) if identity.labels is None else dict(identity.labels),
        "annotations": {**kept, **identity.annotations},
        "finalizers": [RESOURCE_IN_USE],
        "ownerReferences": list(identity.owner_references),
    }
    spec: JsonObject = {
        "queueName": labels.get(QUEUE_LABEL, ""),
        "podSets": [sanitized(pod_set, configuration) for pod_set in pod_sets],
    }
    if (seconds := max_exec_time_seconds(job)) is not None:
        spec["maximumExecutionTimeSeconds"] = seconds
    spec["active"] = True
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {key: value for key, value in metadata.items() if value != {}},
        "spec": spec,
    }


def complete_workload(
    job: JsonObject, integration: Integration, surroundings: Surroundings
) -> tuple[JsonObject, Problem | None]:
    """Return the only Workload of a job with its priority, or the missing class.

    Raises:
        NoWorkload: The job has no pods, for now.
    """
    pod_sets = [pod_set.to_manifest(surroundings.configuration) for pod_set in integration.pod_sets(job, surroundings)]
    workload = new_workload(job, integration, pod_sets, surroundings.configuration)
    uid = integration.label_uid(job, surroundings)
    if uid is not None and is_label_value(uid):
        workload = with_value(workload, ("metadata", "labels", JOB_UID_LABEL), uid)
    priority, problem = priority_of(job, pod_sets, surroundings, pod_class=integration.priority_class(job))
    return {**workload, "spec": {**object_at(workload, "spec"), **priority}}, problem


def max_exec_time_seconds(job: JsonObject) -> int | None:
    """Return how long the job may run; None if it does not say."""
    seconds, _ = go_int(labels_of(job).get(MAX_EXEC_TIME_LABEL, ""), bits=32)
    return seconds if seconds is not None and seconds > 0 else None


def _identity(job: JsonObject, _index: int, configuration: JobsConfiguration) -> WorkloadIdentity:
    """Return the identity for most kinds: one Workload that the job controls; for an elastic job, one for each size."""
    extra = ""
    if elastic := is_elastic(job, configuration):
        # An object that has not been created yet will have generation 1.
        extra = str(int_at(job, "metadata", "generation", default=1))
        if cluster_generation := annotations_of(job).get(RAY_CLUSTER_GENERATION):
            extra += f"_{cluster_generation}"
    name = workload_name(
        text_at(job, "metadata", "name"),
        kind=text_at(job, "kind"),
        group=group_of(text_at(job, "apiVersion")),
        uid=text_at(job, "metadata", "uid"),
        extra=extra,
        short=configuration.enabled("ShortWorkloadNames"),
    )
    annotations = {ELASTIC_JOB: "true", SLICE_NAME_ANNOTATION: name} if elastic else {}
    return WorkloadIdentity(
        name=name, owner_references=[owner_reference(job, controller=True)], annotations=annotations
    )


def _copied_labels(job: JsonObject, configuration: JobsConfiguration) -> JsonObject:
    labels, uid = labels_of(job), text_at(job, "metadata", "uid")
    copied: JsonObject = {key: labels[key] for key in configuration.label_keys_to_copy if key in labels}
    if is_label_value(uid):
        copied[JOB_UID_LABEL] = uid
    return copied


def is_label_value(text: str) -> bool:
    """Return whether a label may have this value."""
    return len(text) <= 63 and bool(_LABEL_VALUE.match(text))


def priority_of(
    job: JsonObject, pod_sets: Sequence[JsonObject], surroundings: Surroundings, *, pod_class: str | None = None
) -> tuple[JsonObject, Problem | None]:
    """Return `priorityClassRef` and `priority` of a Workload (rules/10 §3.3), or the missing class.

    The problem names the field of the Workload.
    """
    if name := labels_of(job).get(PRIORITY_CLASS_LABEL):
        if name not in surroundings.workload_priority_classes:
            message = f"WorkloadPriorityClass {quoted(name)} not found"
            remedy = "add the class to the manifests, or correct the label"
            return {}, Problem(message, field="spec.priorityClassRef", value=name, remedy=remedy)
        value = surroundings.workload_priority_classes[name]
        return _priority("kueue.x-k8s.io", "WorkloadPriorityClass", name, value), None
    named = [text_at(pod_set, "template", "spec", "priorityClassName") for pod_set in pod_sets]
    pod_class = pod_class or next(filter(None, named), None)
    if pod_class is not None and pod_class not in surroundings.priority_classes:
        message = f"PriorityClass {quoted(pod_class)} not found"
        field, key = "spec.priority", "priorityClass"
        if pod_class in named:
            field, key = f"spec.podSets[{named.index(pod_class)}].template.spec.priorityClassName", "priorityClassName"
        remedy = f"add the class to the manifests, or correct {key}"
        return {}, Problem(message, field=field, value=pod_class, remedy=remedy)
    pod_class = pod_class or surroundings.default_priority_class
    if pod_class is None:
        return {"priority": 0}, None
    return _priority("scheduling.k8s.io", "PriorityClass", pod_class, surroundings.priority_classes[pod_class]), None


def check_priority(problem: Problem | None, configuration: JobsConfiguration) -> None:
    """Raise an error if the priority class of a job is missing.

    Raises:
        NoWorkload: The class is missing, so the job gets no Workload for now.
    """
    if problem is not None:
        # Kueue reports nothing about a missing PriorityClass.
        is_told = problem.field == "spec.priorityClassRef" and configuration.has("PriorityClassMissingEvent")
        raise NoWorkload(problem.message, warning="WorkloadPriorityClassNotFound" if is_told else "")


def _priority(group: str, kind: str, name: str, value: int) -> JsonObject:
    return {"priorityClassRef": {"group": group, "kind": kind, "name": name}, "priority": value}


def sanitized(pod_set: JsonObject, configuration: JobsConfiguration) -> JsonObject:
    """Return the pod set without repeated environment variables, and without minCount if it is ignored."""
    result = dict(pod_set)
    if not configuration.enabled("PartialAdmission"):
        result.pop("minCount", None)
    template = dict(object_at(pod_set, "template"))
    spec = dict(object_at(template, "spec"))
    for key in ("initContainers", "containers"):
        if key in spec:
            spec[key] = [_container(container) for container in list_at(spec, key)]
    for key, convert in (("overhead", _amounts), ("resources", _resources)):
        if key in spec:
            spec[key] = convert(spec[key])
    template["spec"] = spec
    result["template"] = template
    return result


def _container(container: JsonValue) -> JsonValue:
    """Return the container with each variable once: at its first position, with its last value."""
    if not isinstance(container, dict):
        return container
    result = dict(container)
    if container.get("env"):
        last = {text_at(variable, "name"): variable for variable in list_at(container, "env")}
        result["env"] = list(last.values())
    if "resources" in container:
        result["resources"] = _resources(container["resources"])
    return result


def _resources(resources: JsonValue) -> JsonValue:
    if not isinstance(resources, dict):
        return resources
    converted: JsonObject = {key: _amounts(resources[key]) for key in ("requests", "limits") if key in resources}
    return {**resources, **converted}


def _amounts(amounts: JsonValue) -> JsonValue:
    """Return the amounts with fractions as text: a Job may have a bare 0.5, a Workload may not."""
    if not isinstance(amounts, dict):
        return amounts
    return {
        name: f"{Decimal(float.__repr__(amount)):f}" if isinstance(amount, float) else amount
        for name, amount in amounts.items()
    }
