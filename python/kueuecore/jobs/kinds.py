"""All kinds of jobs that Kueue knows, in one table."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore.jobs.batch_job import BATCH_JOB
from kueuecore.jobs.integration import Integration
from kueuecore.jobs.job_set import JOB_SET
from kueuecore.jobs.kubeflow import KUBEFLOW_KINDS

__all__ = ["INTEGRATIONS"]

INTEGRATIONS: Mapping[tuple[str, str], Integration] = {
    (integration.group, integration.kind): integration for integration in (BATCH_JOB, JOB_SET, *KUBEFLOW_KINDS)
}
"""The kinds of jobs that become Workloads, by API group and kind."""
