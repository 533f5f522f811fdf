"""Applies Kueue's webhooks to the jobs of one cluster (rules/10 §2.2)."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.api_server import ApiServer
from kueuecore.configuration import Configuration
from kueuecore.jobs import JobsConfiguration, workloads_for
from kueuecore.jobs.owners import controller_of
from kueuecore.manifests import Manifest
from kueuecore.webhooks import admit

__all__ = ["JobWebhooks"]

# The fields that determine the Workload of a job.
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
        """Return the Workloads that a job should have.

        Raises:
            ManifestError: The webhooks refuse the job.
        """
        result = workloads_for([job, *self._around()], configuration=JobsConfiguration.of(self._configuration))
        if not result.jobs:
            result.raise_for_problems()
        return result.workloads

    def stored(self, job: JsonObject, *, beside: Iterable[JsonObject] = ()) -> JsonObject:
        """Return a new job as stored.

        Args:
            job: The job.
            beside: Objects created together with it.

        Raises:
            RefusedError: The webhooks refuse it.
        """
        around = [*self._around(), *self._owners(job), *beside]
        return _without_finalizers(admit(job, around=around, configuration=self._configuration).object)

    def _around(self) -> Iterable[JsonObject]:
        return (row for kind in _AROUND for row in self._api.list(kind)[0])

    def _owners(self, job: JsonObject) -> Iterable[JsonObject]:
        """Yield the owners of a job, up to the top: only these, as a scan of all jobs would be slow."""
        namespace = text_at(job, "metadata", "namespace")
        found: dict[str, JsonObject] = {}
        while owner := controller_of(job):
            parent = self._api.find(text_at(owner, "kind"), text_at(owner, "name"), namespace=namespace)
            if parent is None or text_at(parent, "metadata", "uid") in found:
                break
            found[text_at(parent, "metadata", "uid")] = job = parent
        return found.values()


def _without_finalizers(job: JsonObject) -> JsonObject:
    """Return a job that is gone at once when deleted: how long pods take to end is not modelled."""
    metadata = object_at(job, "metadata")
    return {**job, "metadata": {key: row for key, row in metadata.items() if key != "finalizers"}}
