"""Derives the state of a check from its ProvisioningRequest (rules/07 §4.2): pure functions of what is stored."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kueuecore._json import JsonObject, list_at, object_at, text_at, texts_at
from kueuecore.checks import CheckAnswer, CheckState
from kueuecore.objects import ProvisioningRequestConfig
from kueuecore.provisioning.config import delay_seconds
from kueuecore.provisioning.requests import RequestCondition, condition_of, template_name

__all__ = ["Current", "answer_of", "is_admitted", "is_true"]

_CONSUME, _CLASS = "autoscaling.x-k8s.io/consume-provisioning-request", "autoscaling.x-k8s.io/provisioning-class-name"


@dataclass(slots=True)
class Current:
    """The current situation of one check of a workload.

    Args:
        check: Name of the AdmissionCheck.
        config: Its config; `None` if there is none.
        is_needed: Whether a request is needed.
        request: The request of the last attempt.
        attempt: The number of that attempt.
    """

    check: str
    config: ProvisioningRequestConfig | None
    is_needed: bool = False
    request: JsonObject | None = None
    attempt: int = 0


def answer_of(
    workload: JsonObject, entry: CheckAnswer, current: Current, *, n_retries: int, seed: str | None
) -> CheckAnswer:
    """Return the new state of a check: the first row of rules/07 §4.2 that applies."""
    config, request = current.config, current.request
    if config is None:
        return replace(entry, state=CheckState.PENDING, message="the check is not active")
    if request is None:
        if entry.state is CheckState.READY:
            return entry
        message = "the provisioning request is not needed"
        return replace(entry, state=CheckState.READY, message=message, pod_set_updates=())
    if is_true(request, RequestCondition.FAILED):
        reason, why = "failure", _message(request, RequestCondition.FAILED)
    elif is_true(request, RequestCondition.CAPACITY_REVOKED):
        if object_at(workload, "spec").get("active") is False:
            return entry
        message = _message(request, RequestCondition.CAPACITY_REVOKED)
        return replace(entry, state=CheckState.REJECTED, message=message)
    elif is_true(request, RequestCondition.BOOKING_EXPIRED):
        if is_admitted(workload):
            return entry
        reason, why = "booking expired", _message(request, RequestCondition.BOOKING_EXPIRED)
    else:
        return _progress(workload, entry, request, config)
    if current.attempt > config.retry_strategy.backoff_limit_count:
        return replace(entry, state=CheckState.REJECTED, message=why)
    entry = replace(entry, message=f"Retrying after {reason}: {why}")
    if current.attempt <= n_retries:
        # The workload was evicted because of this check before.
        return entry
    seconds = delay_seconds(config.retry_strategy, n_retries + 1, seed=seed and f"{seed}/{current.check}")
    return replace(entry, state=CheckState.RETRY, requeue_after_seconds=seconds)


def _progress(
    workload: JsonObject, entry: CheckAnswer, request: JsonObject, config: ProvisioningRequestConfig
) -> CheckAnswer:
    """Return the state of a check while its request is in progress."""
    provisioned = condition_of(request, RequestCondition.PROVISIONED)
    if is_true(request, RequestCondition.PROVISIONED):
        if entry.state is CheckState.READY:
            return entry
        updates = _pod_set_updates(workload, request, config)
        return replace(entry, state=CheckState.READY, message=text_at(provisioned, "message"), pod_set_updates=updates)
    if is_true(request, RequestCondition.ACCEPTED):
        if provisioned is None:
            return entry
        return replace(entry, state=CheckState.PENDING, message=text_at(provisioned, "message"))
    return replace(entry, state=CheckState.PENDING, message="")


def _pod_set_updates(
    workload: JsonObject, request: JsonObject, config: ProvisioningRequestConfig
) -> tuple[JsonObject, ...]:
    """Return what pods must carry to get the capacity; of pod sets requested as one, only the first has them."""
    name, details = text_at(request, "metadata", "name"), texts_at(request, "status", "provisioningClassDetails")
    pod_sets = (text_at(pod_set, "name") for pod_set in list_at(workload, "spec", "podSets"))
    of_template = {template_name(name, pod_set): pod_set for pod_set in pod_sets}
    updates: list[JsonObject] = []
    for pods in list_at(request, "spec", "podSets"):
        template = text_at(pods, "podTemplateRef", "name")
        class_name = text_at(request, "spec", "provisioningClassName")
        update: JsonObject = {
            "name": of_template.get(template, ""),
            "annotations": {_CONSUME: name, _CLASS: class_name},
        }
        selector: JsonObject = {
            update.key: details[update.value_from_provisioning_class_detail]
            for update in config.node_selector_updates
            if update.value_from_provisioning_class_detail in details
        }
        if selector:
            update["nodeSelector"] = selector
        updates.append(update)
    return tuple(updates)


def is_true(request: JsonObject, kind: RequestCondition) -> bool:
    """Return whether a condition of a request is True."""
    return text_at(condition_of(request, kind), "status") == "True"


def _message(request: JsonObject, kind: RequestCondition) -> str:
    return text_at(condition_of(request, kind), "message")


def is_admitted(workload: JsonObject) -> bool:
    """Return whether a workload is admitted."""
    conditions = list_at(workload, "status", "conditions")
    return any(
        text_at(condition, "type") == "Admitted" and text_at(condition, "status") == "True" for condition in conditions
    )
