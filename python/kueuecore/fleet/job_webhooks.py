"""What Kueue's webhooks do to the jobs of one cluster (rules/10 §2.2)."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore._json import JsonObject, object_at, text_at, texts_at
from kueuecore.api_server import ApiServer
from kueuecore.fleet.pods import KINDS
from kueuecore.jobs import JobsConfiguration, JobsResult, workloads_for
from kueuecore.manifests import Manifest

__all__ = ["JobWebhooks"]

_QUEUE = "kueue.x-k8s.io/queue-name"
# What decides which Workload a job gets.
_AROUND = ("Namespace", "AdmissionCheck", "ClusterQueue", "LocalQueue", "WorkloadPriorityClass", "PriorityClass")


class JobWebhooks:
    """The webhooks of all kinds of jobs.

    Args:
        api: The API server.
        configuration: How jobs are managed.
    """

    def __init__(self, api: ApiServer, configuration: JobsConfiguration) -> None:
        self._api = api
        self._configuration = configuration

    def workloads_of(self, job: JsonObject) -> tuple[Manifest, ...]:
        """The Workloads that a job is to have.

        Raises:
            ManifestError: The webhooks refuse it.
        """
        return self._result(job).workloads

    def defaulted(self, job: JsonObject) -> JsonObject:
        """A job as the webhooks leave it.

        Raises:
            ManifestError: They refuse it.
        """
        if jobs := self._result(job).jobs:
            return _without_finalizers(jobs[0])
        # One with a Workload from elsewhere gets none here, and is held back all the same.
        integration = KINDS[text_at(job, "kind")]
        job = integration.with_defaults(job)
        is_managed = _QUEUE in texts_at(job, "metadata", "labels")
        if not is_managed:
            return job
        return _without_finalizers(integration.hold_back(integration.suspend(job), self._configuration))

    def _result(self, job: JsonObject) -> JobsResult:
        result = workloads_for([job, *self._around()], configuration=self._configuration)
        if not result.jobs:
            result.raise_for_problems()
        return result

    def _around(self) -> Iterable[JsonObject]:
        return (it for kind in _AROUND for it in self._api.list(kind)[0])


def _without_finalizers(job: JsonObject) -> JsonObject:
    """A job that goes at once when it is deleted: how long pods take to end is not modelled."""
    metadata = object_at(job, "metadata")
    return {**job, "metadata": {key: it for key, it in metadata.items() if key != "finalizers"}}
