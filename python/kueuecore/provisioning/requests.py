"""Names and reads ProvisioningRequests, and compares them with their configs (rules/07 §4.1)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum

from kueuecore._json import JsonObject, list_at, text_at, texts_at
from kueuecore.checks import WorkloadKey
from kueuecore.objects import ProvisioningRequestConfig

__all__ = [
    "API_VERSION",
    "KIND",
    "TEMPLATE_PREFIX",
    "RequestCondition",
    "attempt_of",
    "condition_of",
    "is_as_configured",
    "parameters_of",
    "request_name",
    "template_name",
    "workload_of",
]

API_VERSION = "autoscaling.x-k8s.io/v1"
KIND = "ProvisioningRequest"
TEMPLATE_PREFIX = "ppt-"
_PARAMETER_ANNOTATION = "provreq.kueue.x-k8s.io/"
# The longest name of an object, less a dash and the digits of a digest.
_DIGEST_LENGTH = 5
_MAX_PREFIX = 252 - _DIGEST_LENGTH
# The attempts to try when looking for the one in a shortened name.
_MAX_ATTEMPTS, _MAX_DIGITS = 1000, 3


class RequestCondition(StrEnum):
    """The conditions of a ProvisioningRequest."""

    ACCEPTED = "Accepted"
    """The request is being worked on."""
    PROVISIONED = "Provisioned"
    """The capacity is available."""
    FAILED = "Failed"
    """The capacity cannot be provided."""
    BOOKING_EXPIRED = "BookingExpired"
    """The capacity was available, but is no longer kept for pods that have not come."""
    CAPACITY_REVOKED = "CapacityRevoked"
    """The capacity was available, but was taken away."""


def request_name(workload: str, check: str, attempt: int) -> str:
    """Return the name of a ProvisioningRequest.

    Args:
        workload: Name of the Workload.
        check: Name of the AdmissionCheck.
        attempt: Number of the attempt, from 1.

    Example:
        >>> request_name("job-sample", "capacity", 2)
        'job-sample-capacity-2'
    """
    return _limited(f"{workload}-{check}-{attempt}")


def template_name(request: str, pod_set: str) -> str:
    """Return the name of the PodTemplate of a pod set.

    Args:
        request: Name of the ProvisioningRequest.
        pod_set: Name of the pod set.

    Example:
        >>> template_name("job-sample-capacity-1", "main")
        'ppt-job-sample-capacity-1-main'
    """
    return _limited(f"{TEMPLATE_PREFIX}{request}-{pod_set}")


def attempt_of(request: str, workload: str, check: str) -> int | None:
    """Return the attempt number in a name; `None` if it does not belong to this workload and check.

    Before 0.20.0 Kueue did not recognize requests whose names had to be shortened, and created them again and again.

    Example:
        >>> attempt_of("job-sample-capacity-12", "job-sample", "capacity")
        12
    """
    prefix, attempt = f"{workload}-{check}-", request.rpartition("-")[2]
    if request == f"{prefix}{attempt}" and attempt.isascii() and attempt.isdigit():
        return int(attempt)
    if len(prefix) + 1 <= _MAX_PREFIX - _MAX_DIGITS:
        return None
    return next((n for n in range(1, _MAX_ATTEMPTS) if request_name(workload, check, n) == request), None)


def workload_of(request: JsonObject) -> WorkloadKey:
    """Return the workload that a request is for."""
    owners = list_at(request, "metadata", "ownerReferences")
    names = (text_at(owner, "name") for owner in owners if text_at(owner, "kind") in ("Workload", ""))
    return text_at(request, "metadata", "namespace"), next(names, "")


def condition_of(request: JsonObject, kind: RequestCondition) -> JsonObject | None:
    """Return the condition of a type, whatever its status; `None` if there is none."""
    conditions = (condition for condition in list_at(request, "status", "conditions") if isinstance(condition, dict))
    return next((condition for condition in conditions if text_at(condition, "type") == kind), None)


def parameters_of(config: ProvisioningRequestConfig, annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of a request: those of the config, overridden by annotations of the workload."""
    given = {
        name.removeprefix(_PARAMETER_ANNOTATION): value
        for name, value in annotations.items()
        if name.startswith(_PARAMETER_ANNOTATION)
    }
    return {**config.parameters, **given}


def is_as_configured(request: JsonObject, config: ProvisioningRequestConfig, annotations: Mapping[str, str]) -> bool:
    """Return whether a request has the class and the parameters of a config; further parameters do not matter.

    Kueue compares with the config alone: if an annotation of the workload changes a parameter, it deletes and creates
    the request again and again. Here the annotation counts.
    """
    has, wanted = texts_at(request, "spec", "parameters"), parameters_of(config, annotations)
    is_of_class = text_at(request, "spec", "provisioningClassName") == config.provisioning_class_name
    return is_of_class and all(has.get(name) == wanted[name] for name in config.parameters)


def _limited(name: str) -> str:
    # Kubernetes' names are ASCII, so letters are bytes.
    if len(name) <= _MAX_PREFIX:
        return name
    digest = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
    return f"{name[:_MAX_PREFIX]}-{digest[:_DIGEST_LENGTH]}"
