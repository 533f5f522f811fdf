"""What Kueue's webhooks do to the jobs of one cluster (rules/10 §2.2)."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore._json import JsonObject, object_at
from kueuecore.api_server import ApiServer
from kueuecore.configuration import Configuration
from kueuecore.jobs import JobsConfiguration, workloads_for
from kueuecore.manifests import Manifest
from kueuecore.webhooks import admit

__all__ = ["JobWebhooks"]

# What decides which Workload a job gets.
_AROUND = ("Namespace", "AdmissionCheck", "ClusterQueue", "LocalQueue", "WorkloadPriorityClass", "PriorityClass")


class JobWebhooks:
    """The webhooks of all kinds of jobs.

    Args:
        api: The API server.
        configuration: Kueue's Configuration.
    """

    def __init__(self, api: ApiServer, configuration: Configuration | None) -> None:
        self._api = api
        self._configuration = configuration

    def workloads_of(self, job: JsonObject) -> tuple[Manifest, ...]:
        """The Workloads that a job is to have.

        Raises:
            ManifestError: The webhooks refuse it.
        """
        result = workloads_for([job, *self._around()], configuration=JobsConfiguration.of(self._configuration))
        if not result.jobs:
            result.raise_for_problems()
        return result.workloads

    def defaulted(self, job: JsonObject) -> JsonObject:
        """A job as the webhooks leave it.

        Raises:
            RefusedError: They refuse it.
        """
        return _without_finalizers(admit(job, around=self._around(), configuration=self._configuration).object)

    def _around(self) -> Iterable[JsonObject]:
        return (it for kind in _AROUND for it in self._api.list(kind)[0])


def _without_finalizers(job: JsonObject) -> JsonObject:
    """A job that goes at once when it is deleted: how long pods take to end is not modelled."""
    metadata = object_at(job, "metadata")
    return {**job, "metadata": {key: it for key, it in metadata.items() if key != "finalizers"}}
