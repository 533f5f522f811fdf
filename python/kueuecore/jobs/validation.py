"""Reports what the webhooks of all kinds of jobs reject (rules/10 §7)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kueuecore._json import JsonObject, object_at, text_at, texts_at
from kueuecore._names import subdomain_problems
from kueuecore._text import quoted
from kueuecore.errors import Problem
from kueuecore.jobs.context import (
    ADMISSION_GATED_BY,
    ELASTIC_JOB,
    MAX_EXEC_TIME_LABEL,
    PREBUILT_WORKLOAD,
    QUEUE_LABEL,
    JobsConfiguration,
    Surroundings,
    annotations_of,
    is_elastic,
    labels_of,
)
from kueuecore.jobs.field_paths import path_text
from kueuecore.jobs.integration import Integration, JobPodSet
from kueuecore.jobs.own_timeouts import timeout_problems
from kueuecore.jobs.rejections import forbidden, go_error, go_int, invalid
from kueuecore.jobs.topology import (
    GROUP_NAME,
    POD_INDEX_OFFSET,
    PREFERRED,
    REQUIRED,
    slice_size_problems,
    topology_problems,
)

__all__ = [
    "admission_gate_problems",
    "common_problems",
    "gate_names",
    "offset_is_valid",
    "prebuilt_problems",
    "prebuilt_workload",
    "topology_is_valid",
    "topology_of_each_is_valid",
]

_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_MAX_GATE = 63


def topology_is_valid(job: JsonObject, pod_sets: Sequence[JobPodSet], surroundings: Surroundings) -> list[Problem]:
    """Return what is wrong with the topology that the pod sets request, each by itself and as groups.

    Kinds that check nothing else use it as `validate`.
    """
    problems = topology_of_each_is_valid(job, pod_sets, surroundings)
    if surroundings.enabled("TopologyAwareScheduling"):
        problems += _group_problems(pod_sets, surroundings.configuration)
    return problems


def topology_of_each_is_valid(
    _job: JsonObject, pod_sets: Sequence[JobPodSet], surroundings: Surroundings
) -> list[Problem]:
    """Return what is wrong with the topology that each pod set requests; groups are not checked."""
    if not surroundings.enabled("TopologyAwareScheduling"):
        return []
    problems: list[Problem] = []
    for pod_set in pod_sets:
        path = _annotations_path(pod_set)
        problems += topology_problems(path, pod_set.annotations, surroundings.configuration)
        problems += slice_size_problems(path, pod_set.annotations, pod_set.count, surroundings.configuration)
    return problems


def offset_is_valid(pod_sets: Sequence[JobPodSet], surroundings: Surroundings) -> list[Problem]:
    """Return what is wrong with the annotation that says where the indexes of pods start (rules/08 §12.2).

    Kueue's words are not known.
    """
    if not surroundings.enabled("TopologyAwareScheduling"):
        return []
    if not surroundings.configuration.has("PodIndexOffsetIsChecked"):
        return []
    problems: list[Problem] = []
    for pod_set in pod_sets:
        path = f"{_annotations_path(pod_set)}[{POD_INDEX_OFFSET}]"
        written = texts_at(pod_set.template, "metadata", "annotations").get(POD_INDEX_OFFSET)
        if written is None:
            continue
        if GROUP_NAME in pod_set.annotations:
            problems.append(forbidden(path, f"may not be set when '{GROUP_NAME}' is specified"))
        number, _ = go_int(written)
        if number is None or number < 0:
            problems.append(invalid(path, written, "must be a non-negative integer"))
    return problems


def _group_problems(pod_sets: Sequence[JobPodSet], configuration: JobsConfiguration) -> list[Problem]:
    groups: dict[str, list[JobPodSet]] = {}
    for pod_set in pod_sets:
        request = object_at(pod_set.to_manifest(configuration), "topologyRequest")
        if name := text_at(request, "podSetGroupName"):
            groups.setdefault(name, []).append(pod_set)
    problems = []
    for name, members in groups.items():
        paths = [_annotations_path(member) for member in members]
        if len(members) != 2:
            detail = f"can only define groups of exactly 2 pod sets, got: {len(members)} pod set(s)"
            problems += [invalid(f"{path}[{GROUP_NAME}]", name, detail) for path in paths]
            continue
        first, second = members
        if first.count != 1 and second.count != 1:
            detail = (
                "can only define groups where at least one pod set has only 1 replica, got: "
                f"{first.count} replica(s) and {second.count} replica(s) in the group"
            )
            problems += [invalid(f"{path}[{GROUP_NAME}]", name, detail) for path in paths]
        if any(first.annotations.get(key) != second.annotations.get(key) for key in (REQUIRED, PREFERRED)):
            for path, other in (paths, reversed(paths)):
                topology = f"must specify '{REQUIRED}' or '{PREFERRED}' topology consistent with '{other}'"
                problems.append(invalid(path, None, f"{topology} in group '{name}'"))
    return problems


def _annotations_path(pod_set: JobPodSet) -> str:
    return ".".join(filter(None, (path_text(pod_set.path or ()), "metadata.annotations")))


def prebuilt_workload(job: JsonObject, configuration: JobsConfiguration) -> tuple[str, str]:
    """Return the name of the existing Workload that the job uses, and the field with the name (rules/10 §2.1)."""
    annotation = annotations_of(job).get(PREBUILT_WORKLOAD, "")
    label = labels_of(job).get(PREBUILT_WORKLOAD, "")
    annotation_path, label_path = f"metadata.annotations[{PREBUILT_WORKLOAD}]", f"metadata.labels[{PREBUILT_WORKLOAD}]"
    if configuration.enabled("WorkloadIdentifierAnnotations"):
        return (annotation, annotation_path) if annotation else (label, label_path)
    if not label and len(annotation) > 63 and configuration.has("PrebuiltNameByAnnotation"):
        return annotation, annotation_path
    return label, label_path


def common_problems(job: JsonObject, integration: Integration, configuration: JobsConfiguration) -> list[Problem]:
    """Return what is rejected at creation for every kind, in Kueue's order."""
    labels = labels_of(job)
    problems = []
    if QUEUE_LABEL in labels and (details := subdomain_problems(labels[QUEUE_LABEL])):
        problems.append(invalid(f"metadata.labels[{QUEUE_LABEL}]", labels[QUEUE_LABEL], ",".join(details)))
    if not integration.is_serving:
        problems += prebuilt_problems(job, integration, configuration)
        problems += _max_exec_time_problems(labels)
    is_unsupported = is_elastic(job, configuration) and not integration.supports_elastic
    if is_unsupported and configuration.has("ElasticAnnotationNeedsSupport"):
        field = f"metadata.annotations[{ELASTIC_JOB}]"
        problems.append(forbidden(field, f"elastic job is not supported for {_quoted_kind(integration)}"))
    if configuration.enabled("AdmissionGatedBy"):
        problems += admission_gate_problems(annotations_of(job).get(ADMISSION_GATED_BY, ""))
    return problems + timeout_problems(job, configuration)


def _quoted_kind(integration: Integration) -> str:
    """Return a kind as Go prints it."""
    version = integration.api_version
    return quoted(f"{version if '/' in version else '/' + version}, Kind={integration.kind}")


def prebuilt_problems(job: JsonObject, integration: Integration, configuration: JobsConfiguration) -> list[Problem]:
    """Return what is wrong with the existing Workload that a job names."""
    prebuilt, path = prebuilt_workload(job, configuration)
    problems = []
    named = prebuilt or PREBUILT_WORKLOAD in labels_of(job)
    if named and (details := subdomain_problems(prebuilt)):
        problems.append(invalid(path, prebuilt, ",".join(details)))
    if prebuilt and not integration.supports_prebuilt:
        problems.append(forbidden(path, f"Is not supported for {_quoted_kind(integration)}"))
    return problems


def _max_exec_time_problems(labels: dict[str, str]) -> list[Problem]:
    text = labels.get(MAX_EXEC_TIME_LABEL)
    if text is None:
        return []
    field = f"metadata.labels[{MAX_EXEC_TIME_LABEL}]"
    seconds, why = go_int(text)
    if seconds is None:
        return [invalid(field, text, go_error("Atoi", text, why), remedy="write a number of seconds")]
    return [invalid(field, seconds, "should be greater than 0")] if seconds <= 0 else []


def gate_names(value: str) -> list[str]:
    """Return the gates that an annotation names."""
    return [part.strip() for part in value.split(",")] if value.strip() else []


def admission_gate_problems(value: str) -> list[Problem]:
    """Return what is wrong with the annotation that names the gates of an admission."""
    field = f"metadata.annotations[{ADMISSION_GATED_BY}]"
    problems: list[Problem] = []
    seen = set()
    for gate in gate_names(value):
        if not gate:
            problems.append(invalid(field, value, "cannot contain empty gate names"))
        elif gate in seen:
            problems.append(invalid(field, value, f"duplicate gate name: {gate}"))
        else:
            seen.add(gate)
            problems += _domain_prefixed_path_problems(field, gate)
            if len(gate.encode()) > _MAX_GATE:
                problems.append(Problem(f"Too long: may not be more than {_MAX_GATE} bytes", field=field, value=gate))
    return problems


def _domain_prefixed_path_problems(field: str, text: str) -> list[Problem]:
    host, _, path = text.partition("/")
    if not host or not path:
        return [invalid(field, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    problems = [invalid(field, host, detail) for detail in subdomain_problems(host)]
    if not re.fullmatch(_HTTP_PATH, path):
        problems.append(invalid(field, path, f"Invalid path (regex used for validation is '{_HTTP_PATH}')"))
    return problems
