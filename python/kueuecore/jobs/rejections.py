"""Rejections in the words of the API server, and what the webhooks of all kinds of jobs reject (rules/10 §7)."""

from __future__ import annotations

import re

from kueuecore._json import JsonObject
from kueuecore.errors import Problem
from kueuecore.jobs.model import (
    ADMISSION_GATED_BY,
    ELASTIC_JOB,
    MAX_EXEC_TIME_LABEL,
    PREBUILT_WORKLOAD,
    QUEUE_LABEL,
    JobsConfiguration,
    annotations_of,
    is_elastic,
    labels_of,
)

__all__ = ["common_problems", "forbidden", "go_bool", "go_int", "invalid", "label_key_problems", "required"]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_KEY_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")
_LONGEST_GATE = 63

_ELASTIC_KINDS = (
    "batch/v1, Kind=Job",
    "ray.io/v1, Kind=RayCluster",
    "ray.io/v1, Kind=RayJob",
    "ray.io/v1, Kind=RayService",
)
_PREBUILT_KINDS = (
    "batch/v1, Kind=Job",
    "jobset.x-k8s.io/v1alpha2, Kind=JobSet",
    "kubeflow.org/v1, Kind=PaddleJob",
    "kubeflow.org/v1, Kind=PyTorchJob",
    "kubeflow.org/v1, Kind=TFJob",
    "kubeflow.org/v1, Kind=XGBoostJob",
    "kubeflow.org/v2beta1, Kind=MPIJob",
    "trainer.kubeflow.org/v1alpha1, Kind=TrainJob",
    "ray.io/v1, Kind=RayCluster",
    "ray.io/v1, Kind=RayJob",
    "ray.io/v1, Kind=RayService",
    "/v1, Kind=Pod",
    "workload.codeflare.dev/v1beta2, Kind=AppWrapper",
)


def invalid(field: str, value: str | int | None, detail: str, *, remedy: str = "") -> Problem:
    """The API server's `Invalid value`; the value is left out if it is None."""
    shown = "" if value is None else f": {quoted(value) if isinstance(value, str) else value}"
    return Problem(f"Invalid value{shown}: {detail}", field=field, value=value, remedy=remedy)


def forbidden(field: str, detail: str, *, remedy: str = "") -> Problem:
    """The API server's `Forbidden`."""
    return Problem(f"Forbidden: {detail}", field=field, remedy=remedy)


def required(field: str, detail: str = "") -> Problem:
    """The API server's `Required value`."""
    return Problem(f"Required value: {detail}" if detail else "Required value", field=field)


def quoted(text: str) -> str:
    """A text in quotes, as Go writes it."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(character, character) for character in text) + '"'


def go_int(text: str, *, bits: int = 64) -> tuple[int | None, str]:
    """The integer that Go's strconv reads, or None and why not: `invalid syntax`, `value out of range`."""
    if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        return None, "invalid syntax"
    value = int(text)
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        return None, "value out of range"
    return value, ""


def go_bool(text: str) -> bool | None:
    """The truth value that Go's strconv reads, or None."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None


def go_error(function: str, text: str, why: str) -> str:
    """The message of Go's strconv."""
    return f"strconv.{function}: parsing {quoted(text)}: {why}"


def subdomain_problems(text: str) -> list[str]:
    """What is wrong with the name of an object, in the words of the API server."""
    problems = []
    if len(text.encode()) > 253:
        problems.append("must be no more than 253 bytes")
    if not re.fullmatch(_SUBDOMAIN, text):
        problems.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', "
            f"regex used for validation is '{_SUBDOMAIN}')"
        )
    return problems


def label_key_problems(text: str) -> list[str]:
    """What is wrong with a label key, in the words of the API server."""
    rule = (
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
        "character "
        f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_KEY_NAME}')"
    )
    problems = []
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [f"a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in subdomain_problems(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not re.fullmatch(_KEY_NAME, name):
        problems.append(f"name part {rule}")
    return problems


def prebuilt_workload(job: JsonObject, configuration: JobsConfiguration) -> tuple[str, str]:
    """The name of the existing Workload that the job uses, and the field that has it (rules/10 §2.1)."""
    annotation = annotations_of(job).get(PREBUILT_WORKLOAD, "")
    label = labels_of(job).get(PREBUILT_WORKLOAD, "")
    annotation_path, label_path = f"metadata.annotations[{PREBUILT_WORKLOAD}]", f"metadata.labels[{PREBUILT_WORKLOAD}]"
    if configuration.enabled("WorkloadIdentifierAnnotations"):
        return (annotation, annotation_path) if annotation else (label, label_path)
    if not label and len(annotation) > 63:
        return annotation, annotation_path
    return label, label_path


def common_problems(job: JsonObject, api_version: str, kind: str, configuration: JobsConfiguration) -> list[Problem]:
    """What is rejected at creation for every kind, in the order in which it is said."""
    labels = labels_of(job)
    gvk = f"{api_version if '/' in api_version else '/' + api_version}, Kind={kind}"
    problems = []
    if QUEUE_LABEL in labels and (details := subdomain_problems(labels[QUEUE_LABEL])):
        problems.append(invalid(f"metadata.labels[{QUEUE_LABEL}]", labels[QUEUE_LABEL], ",".join(details)))
    prebuilt, path = prebuilt_workload(job, configuration)
    named = prebuilt or PREBUILT_WORKLOAD in labels
    if named and (details := subdomain_problems(prebuilt)):
        problems.append(invalid(path, prebuilt, ",".join(details)))
    if prebuilt and gvk not in _PREBUILT_KINDS:
        problems.append(forbidden(path, f"Is not supported for {quoted(gvk)}"))
    problems += _max_exec_time_problems(labels)
    if is_elastic(job) and gvk not in _ELASTIC_KINDS:
        field = f"metadata.annotations[{ELASTIC_JOB}]"
        problems.append(forbidden(field, f"elastic job is not supported for {quoted(gvk)}"))
    if configuration.enabled("AdmissionGatedBy"):
        problems += _admission_gate_problems(annotations_of(job).get(ADMISSION_GATED_BY, ""))
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


def _admission_gate_problems(value: str) -> list[Problem]:
    field = f"metadata.annotations[{ADMISSION_GATED_BY}]"
    problems: list[Problem] = []
    seen = set()
    for gate in [part.strip() for part in value.split(",")] if value.strip() else []:
        if not gate:
            problems.append(invalid(field, value, "cannot contain empty gate names"))
        elif gate in seen:
            problems.append(invalid(field, value, f"duplicate gate name: {gate}"))
        else:
            seen.add(gate)
            problems += _domain_prefixed_path_problems(field, gate)
            if len(gate.encode()) > _LONGEST_GATE:
                problems.append(
                    Problem(f"Too long: may not be more than {_LONGEST_GATE} bytes", field=field, value=gate)
                )
    return problems


def _domain_prefixed_path_problems(field: str, text: str) -> list[Problem]:
    host, _, path = text.partition("/")
    if not host or not path:
        return [invalid(field, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    problems = [invalid(field, host, detail) for detail in subdomain_problems(host)]
    if not re.fullmatch(_HTTP_PATH, path):
        problems.append(invalid(field, path, f"Invalid path (regex used for validation is '{_HTTP_PATH}')"))
    return problems
