"""Changes a job as Kueue's mutating webhooks do (rules/10 §2.2, §2.5)."""

from __future__ import annotations

from kueuecore._json import JsonObject, text_at
from kueuecore.jobs.context import (
    MULTIKUEUE,
    PRIORITY_CLASS_LABEL,
    QUEUE_LABEL,
    Surroundings,
    annotations_of,
    labels_of,
    set_label,
)
from kueuecore.jobs.field_paths import value_at, with_value
from kueuecore.jobs.integration import Integration
from kueuecore.jobs.owners import has_managed_owner, managed_ancestor, should_wait
from kueuecore.jobs.pod import POD, SUSPENDED_BY_PARENT

__all__ = ["with_webhook_defaults"]


def with_webhook_defaults(job: JsonObject, integration: Integration, surroundings: Surroundings) -> JsonObject:
    """Return a job as the mutating webhook leaves it, applying its steps in order.

    Raises:
        OwnerError: Its owners cannot be followed to the top: the webhook refuses it.
    """
    if integration is POD:
        return _pod_with_defaults(job, surroundings)
    if integration.is_serving and integration.skipped(job):
        return job
    configuration = surroundings.configuration
    needs_selected = surroundings.has("DefaultQueueNeedsManagedNamespace")
    is_selected = surroundings.is_selected(text_at(job, "metadata", "namespace"))
    if (is_selected or not needs_selected) and not has_managed_owner(job, surroundings):
        _set_default_queue(job, surroundings)
    if is_selected or not surroundings.has("DefaultPriorityClassNeedsManagedNamespace"):
        _set_default_priority_class(job, surroundings)
    if should_wait(job, surroundings, is_webhook=True):
        job = integration.hold_back(integration.suspend(job), configuration)
    return integration.webhook_defaults(_with_manager(job, integration, surroundings), configuration)


def _pod_with_defaults(pod: JsonObject, surroundings: Surroundings) -> JsonObject:
    configuration = surroundings.configuration
    if SUSPENDED_BY_PARENT in annotations_of(pod):
        return POD.hold_back(pod, configuration)
    is_selected = surroundings.is_selected(text_at(pod, "metadata", "namespace"))
    if not is_selected or managed_ancestor(pod, surroundings) is not None:
        return pod
    _set_default_queue(pod, surroundings)
    _set_default_priority_class(pod, surroundings)
    return POD.hold_back(pod, configuration) if surroundings.is_meant_for_kueue(pod) else pod


def _set_default_queue(job: JsonObject, surroundings: Surroundings) -> None:
    has_default = (text_at(job, "metadata", "namespace"), "default") in surroundings.local_queues
    if has_default and not labels_of(job).get(QUEUE_LABEL):
        set_label(job, QUEUE_LABEL, "default")


def _set_default_priority_class(job: JsonObject, surroundings: Surroundings) -> None:
    is_on = surroundings.enabled("WorkloadPriorityClassDefaulting")
    has_default = is_on and "default" in surroundings.workload_priority_classes
    if has_default and not labels_of(job).get(PRIORITY_CLASS_LABEL) and not has_managed_owner(job, surroundings):
        set_label(job, PRIORITY_CLASS_LABEL, "default")


def _with_manager(job: JsonObject, integration: Integration, surroundings: Surroundings) -> JsonObject:
    """Return a job that MultiKueue runs elsewhere, marked so that no controller runs it here."""
    usual = integration.default_managed_by
    queue = text_at(job, "metadata", "namespace"), labels_of(job).get(QUEUE_LABEL, "")
    if usual is None or not surroundings.enabled("MultiKueue") or queue not in surroundings.multikueue_queues:
        return job
    if value_at(job, integration.managed_by_field) not in (None, usual):
        return job
    return with_value(job, integration.managed_by_field, MULTIKUEUE)
