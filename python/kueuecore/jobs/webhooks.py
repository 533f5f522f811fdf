"""Passes a job through Kueue's webhooks: how it is stored, or who refuses it, and why."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.errors import ManifestError, Problem
from kueuecore.jobs.context import MANAGED_LABEL, Surroundings, annotations_of, labels_of
from kueuecore.jobs.creation_validation import creation_problems
from kueuecore.jobs.enabled_kinds import has_webhook
from kueuecore.jobs.field_types import field_problems, unknown_fields, without_unknown_fields
from kueuecore.jobs.integration import Integration, NoWorkload
from kueuecore.jobs.manifest_shapes import METADATA
from kueuecore.jobs.owners import OwnerError, has_managed_owner
from kueuecore.jobs.pod import POD, SUSPENDED_BY_PARENT
from kueuecore.jobs.rejections import required
from kueuecore.jobs.update_validation import change_problems, is_change_looked_at
from kueuecore.jobs.webhook_defaults import with_webhook_defaults

__all__ = ["JobVerdict", "Refuser", "mutation", "verdict_on_change", "verdict_on_creation"]


class Refuser(StrEnum):
    """The part that refuses a job."""

    SCHEMA = "schema"
    MUTATING_WEBHOOK = "mutating webhook"
    VALIDATING_WEBHOOK = "validating webhook"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobVerdict:
    """The outcome for a job sent to an API server.

    Args:
        job: The job as stored; if refused, as the last step left it.
        warnings: The server's warnings.
        problems: Why it is refused; empty if it is stored.
        refused_by: What refuses it; None if nothing does.
    """

    job: JsonObject
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    refused_by: Refuser | None = None


def verdict_on_creation(job: JsonObject, integration: Integration, surroundings: Surroundings) -> JobVerdict:
    """Return the outcome for a new job (rules/10 §2.2, §2.5, §7)."""
    arrived = _arrived(job, integration, surroundings)
    if arrived.refused_by is not None or not has_webhook(integration, surroundings):
        return arrived
    try:
        job = with_webhook_defaults(arrived.job, integration, surroundings)
    except OwnerError as error:
        return _refused(arrived, [Problem(error.denial)], Refuser.MUTATING_WEBHOOK)
    verdict = replace(arrived, job=job, warnings=(*arrived.warnings, *_warnings(job, integration, surroundings)))
    if integration.skipped(job):
        return verdict
    try:
        problems = creation_problems(job, integration, integration.pod_sets(job, surroundings), surroundings)
    except NoWorkload as reason:
        problems = creation_problems(job, integration, None, surroundings)
        # Serving kinds may well have no pods.
        problems += [] if integration.is_serving else [Problem(str(reason))]
    except ManifestError as error:
        problems = list(error.problems)
    return _refused(verdict, problems, Refuser.VALIDATING_WEBHOOK)


def verdict_on_change(
    old: JsonObject, new: JsonObject, integration: Integration, surroundings: Surroundings
) -> JobVerdict:
    """Return the outcome for a job that replaces an old one (rules/10 §7). The old one's fields are checked."""
    arrived = _arrived(new, integration, surroundings)
    if arrived.refused_by is not None or not has_webhook(integration, surroundings):
        return arrived
    old, new = integration.with_defaults(old), arrived.job
    if integration.is_serving:
        # The webhooks of such kinds set defaults in a change too.
        try:
            new = with_webhook_defaults(new, integration, surroundings)
        except OwnerError as error:
            return _refused(arrived, [Problem(error.denial)], Refuser.MUTATING_WEBHOOK)
    is_of_parent = SUSPENDED_BY_PARENT in annotations_of(new)
    reported = () if is_of_parent else _warnings(new, integration, surroundings)
    verdict = replace(arrived, job=new, warnings=(*arrived.warnings, *reported))
    if not is_change_looked_at(old, new, integration, surroundings):
        return verdict
    return _refused(verdict, change_problems(old, new, integration, surroundings), Refuser.VALIDATING_WEBHOOK)


def mutation(
    raw: JsonObject, integration: Integration, surroundings: Surroundings, *, is_new: bool
) -> tuple[JsonObject, JsonObject]:
    """Return a job before and after its mutating webhook, both with the API server's defaults.

    A job whose fields have other types than the kind's is left alone: the server refuses it later.

    Args:
        raw: The job as it reaches the webhook.
        integration: Its kind.
        surroundings: The objects around it.
        is_new: Whether it is created; a change is mutated for serving kinds alone.

    Raises:
        OwnerError: Its owners cannot be followed to the top: the webhook refuses it.
    """
    is_asked = (is_new or integration.is_serving) and has_webhook(integration, surroundings)
    shape = {"metadata": METADATA, **integration.fields}
    if not is_asked or field_problems(raw, shape) or integration.shape_problems(raw):
        return raw, raw
    before = integration.with_defaults(raw)
    return before, with_webhook_defaults(copy.deepcopy(before), integration, surroundings)


def _arrived(raw: JsonObject, integration: Integration, surroundings: Surroundings) -> JobVerdict:
    """Return a job as it reaches the webhooks: checked by its schema, with the API server's defaults."""
    shape = {"metadata": METADATA, **integration.fields}
    if problems := field_problems(raw, shape):
        return _refused(JobVerdict(job=raw), problems, Refuser.SCHEMA)
    warnings = tuple(field.message for field in unknown_fields(raw, shape))
    job = without_unknown_fields(raw, shape)
    metadata = object_at(job, "metadata")
    namespace = text_at(metadata, "namespace") or surroundings.configuration.default_namespace
    job = {**job, "metadata": {**metadata, "namespace": namespace}}
    missing = [] if _has_name(metadata) else [required("metadata.name", "name or generateName is required")]
    if missing := [*missing, *integration.shape_problems(job)]:
        return _refused(JobVerdict(job=job, warnings=warnings), missing, Refuser.SCHEMA)
    return JobVerdict(job=integration.with_defaults(job), warnings=warnings)


def _has_name(metadata: JsonObject) -> bool:
    return bool(text_at(metadata, "name") or text_at(metadata, "generateName"))


def _refused(verdict: JobVerdict, problems: Sequence[Problem], by: Refuser) -> JobVerdict:
    """Return the verdict with its problems, each once; unchanged if there are none."""
    return replace(verdict, problems=tuple(dict.fromkeys(problems)), refused_by=by) if problems else verdict


def _warnings(job: JsonObject, integration: Integration, surroundings: Surroundings) -> tuple[str, ...]:
    """Return the webhook's warnings: a pod would be admitted with its owner, and again by itself."""
    is_managed = integration is POD and labels_of(job).get(MANAGED_LABEL) == "true"
    if not is_managed or not has_managed_owner(job, surroundings):
        return ()
    return (f"pod owner is managed by kueue, label '{MANAGED_LABEL}=true' might lead to unexpected behaviour",)
