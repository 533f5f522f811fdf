"""What Kueue's mutating webhooks change in a job (rules/10 §2.2)."""

from __future__ import annotations

from kueuecore._json import JsonObject, text_at
from kueuecore.jobs.context import (
    MULTIKUEUE,
    PRIORITY_CLASS_LABEL,
    QUEUE_LABEL,
    Surroundings,
    labels_of,
    set_label,
)
from kueuecore.jobs.field_paths import value_at, with_value
from kueuecore.jobs.integration import Integration
from kueuecore.jobs.owners import has_managed_owner

__all__ = ["with_webhook_defaults"]


def with_webhook_defaults(job: JsonObject, integration: Integration, surroundings: Surroundings) -> JsonObject:
    """A job as the mutating webhook leaves it, in its order (rules/10 §2.2)."""
    configuration = surroundings.configuration
    namespace = text_at(job, "metadata", "namespace")
    selected = surroundings.is_selected(namespace)
    owned = has_managed_owner(job, surroundings)
    if (
        (namespace, "default") in surroundings.local_queues
        and not labels_of(job).get(QUEUE_LABEL)
        and not owned
        and selected
    ):
        set_label(job, QUEUE_LABEL, "default")
    if (
        configuration.enabled("WorkloadPriorityClassDefaulting")
        and "default" in surroundings.workload_priority_classes
        and not labels_of(job).get(PRIORITY_CLASS_LABEL)
        and not owned
    ):
        set_label(job, PRIORITY_CLASS_LABEL, "default")
    managed = labels_of(job).get(QUEUE_LABEL) or (configuration.manage_jobs_without_queue_name and selected)
    if managed:
        # A job below a managed one would be left as it is, but it is ignored in the end.
        job = integration.hold_back(integration.suspend(job), configuration)
    return integration.webhook_defaults(_with_manager(job, integration, surroundings), configuration)


def _with_manager(job: JsonObject, integration: Integration, surroundings: Surroundings) -> JsonObject:
    """A job that MultiKueue runs elsewhere, so that nobody runs it here."""
    usual = integration.default_managed_by
    queue = text_at(job, "metadata", "namespace"), labels_of(job).get(QUEUE_LABEL, "")
    if usual is None or not surroundings.enabled("MultiKueue") or queue not in surroundings.multikueue_queues:
        return job
    if value_at(job, integration.managed_by_field) not in (None, usual):
        return job
    return with_value(job, integration.managed_by_field, MULTIKUEUE)
