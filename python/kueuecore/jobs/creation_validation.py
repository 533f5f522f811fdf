"""Reports what Kueue's webhooks refuse when a job is created (rules/10 §7)."""

from __future__ import annotations

from collections.abc import Sequence

from kueuecore._json import JsonObject
from kueuecore.errors import Problem
from kueuecore.jobs.context import Surroundings
from kueuecore.jobs.integration import Integration, JobPodSet
from kueuecore.jobs.validation import common_problems

__all__ = ["creation_problems"]


def creation_problems(
    job: JsonObject, integration: Integration, pod_sets: Sequence[JobPodSet] | None, surroundings: Surroundings
) -> list[Problem]:
    """Return the validating webhook's errors for a new job, as the mutating webhook has left it.

    Args:
        job: The job.
        integration: Its kind.
        pod_sets: Its pod sets; None if it cannot have any yet, and only the rest is checked.
        surroundings: The objects around it.
    """
    configuration = surroundings.configuration
    problems = common_problems(job, integration, configuration)
    problems += integration.validate_creation(job, configuration)
    return problems if pod_sets is None else problems + integration.validate(job, pod_sets, surroundings)
