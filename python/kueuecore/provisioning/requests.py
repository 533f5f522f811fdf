"""ProvisioningRequests: their names, what they say, and whether they are as a config wants them (rules/07 §4.1)."""

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
_PARAMETER_ANNOTATION = "provreq.kueue.x-k8s.io/"
# The longest name of an object, less a dash and as many digits of a digest.
_DIGEST_LENGTH = 5
_LONGEST_PREFIX = 252 - _DIGEST_LENGTH
# Of a name that was shortened the attempt is looked for among so many.
_MOST_ATTEMPTS, _MOST_DIGITS = 1000, 3


class RequestCondition(StrEnum):
    """What a ProvisioningRequest says of the capacity that was asked for: types of its conditions."""

    ACCEPTED = "Accepted"
    """Somebody works on it."""
    PROVISIONED = "Provisioned"
    """The capacity is there."""
    FAILED = "Failed"
    """It cannot be had."""
    BOOKING_EXPIRED = "BookingExpired"
    """It was there, and is not kept any longer for pods that have not come."""
    CAPACITY_REVOKED = "CapacityRevoked"
    """It was there, and was taken away."""


def request_name(workload: str, check: str, attempt: int) -> str:
    """The name of a ProvisioningRequest.

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
    """The name of the PodTemplate of a pod set.

    Args:
        request: Name of the ProvisioningRequest.
        pod_set: Name of the pod set.

    Example:
        >>> template_name("job-sample-capacity-1", "main")
        'ppt-job-sample-capacity-1-main'
    """
    return _limited(f"ppt-{request}-{pod_set}")


def attempt_of(request: str, workload: str, check: str) -> int | None:
    """The attempt number in a name; `None`: it is not of this workload and check.

    Kueue does not know requests again whose names had to be shortened, and makes them again and again.

    Example:
        >>> attempt_of("job-sample-capacity-12", "job-sample", "capacity")
        12
    """
    prefix, attempt = f"{workload}-{check}-", request.rpartition("-")[2]
    if request == f"{prefix}{attempt}" and attempt.isascii() and attempt.isdigit():
        return int(attempt)
    if len(prefix) + 1 <= _LONGEST_PREFIX - _MOST_DIGITS:
        return None
    return next((n for n in range(1, _MOST_ATTEMPTS) if request_name(workload, check, n) == request), None)


def workload_of(request: JsonObject) -> WorkloadKey:
    """The workload for which a request was made."""
    owners = list_at(request, "metadata", "ownerReferences")
    names = (text_at(it, "name") for it in owners if text_at(it, "kind") in ("Workload", ""))
    return text_at(request, "metadata", "namespace"), next(names, "")


def condition_of(request: JsonObject, kind: RequestCondition) -> JsonObject | None:
    """The condition of a type, whatever it says; `None` if there is none."""
    conditions = (it for it in list_at(request, "status", "conditions") if isinstance(it, dict))
    return next((it for it in conditions if text_at(it, "type") == kind), None)


def parameters_of(config: ProvisioningRequestConfig, annotations: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a request: those of the config, and over them those that annotations of the workload give."""
    given = {
        name.removeprefix(_PARAMETER_ANNOTATION): value
        for name, value in annotations.items()
        if name.startswith(_PARAMETER_ANNOTATION)
    }
    return {**config.parameters, **given}


def is_as_configured(request: JsonObject, config: ProvisioningRequestConfig, annotations: Mapping[str, str]) -> bool:
    """Has a request the class and the parameters of a config? Others of its parameters do not matter.

    Kueue compares with the config alone, so that it deletes and creates a request again and again whose parameter an
    annotation of the workload changes; here the annotation counts.
    """
    has, wanted = texts_at(request, "spec", "parameters"), parameters_of(config, annotations)
    is_of_class = text_at(request, "spec", "provisioningClassName") == config.provisioning_class_name
    return is_of_class and all(has.get(name) == wanted[name] for name in config.parameters)


def _limited(name: str) -> str:
    # Kubernetes' names are ASCII, so that letters are bytes.
    if len(name) <= _LONGEST_PREFIX:
        return name
    digest = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
    return f"{name[:_LONGEST_PREFIX]}-{digest[:_DIGEST_LENGTH]}"
