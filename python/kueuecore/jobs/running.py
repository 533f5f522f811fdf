"""Starting and stopping jobs, and what they tell of themselves: for whoever carries decisions out (rules/10 §4).

All functions are pure: they take manifests, and give back the writes that a controller or a simulator makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.jobs.injection import infos_of_admission, infos_of_workload
from kueuecore.jobs.integration import Integration, Write
from kueuecore.jobs.kinds import INTEGRATIONS
from kueuecore.jobs.model import JobsConfiguration, group_of

__all__ = ["StopReason", "integration_of", "reclaimable_pods", "start_job", "stop_job"]


class StopReason(StrEnum):
    """Why a job is stopped."""

    WORKLOAD_DELETED = "WorkloadDeleted"
    WORKLOAD_EVICTED = "WorkloadEvicted"
    NO_MATCHING_WORKLOAD = "NoMatchingWorkload"
    NOT_ADMITTED = "NotAdmitted"


def integration_of(
    job: JsonObject, *, integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS
) -> Integration | None:
    """What kueuecore knows about the kind of an object; None if it is no job.

    Args:
        job: A manifest.
        integrations: The kinds of jobs.

    Example:
        >>> integration_of({"apiVersion": "batch/v1", "kind": "Job"}).framework
        'batch/job'
    """
    return integrations.get((group_of(text_at(job, "apiVersion")), text_at(job, "kind")))


def start_job(
    job: JsonObject,
    workload: JsonObject,
    *,
    flavors: Mapping[str, JsonObject],
    configuration: JobsConfiguration | None = None,
    integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS,
) -> tuple[Write, ...]:
    """The writes that start a job whose Workload is admitted (rules/10 §4.2).

    Args:
        job: The job, suspended.
        workload: Its Workload, with `status.admission`.
        flavors: The ResourceFlavors by name, as manifests; at least those of the admission.
        configuration: Whose gates count.
        integrations: The kinds of jobs.

    Raises:
        StartError: It can never start so. Finish the Workload with reason `FailedToStart` and the error as message.
        UnknownObjectError: A flavor is missing.
        KeyError: The kind of the job is not known.

    Example:
        >>> job = {
        ...     "apiVersion": "batch/v1",
        ...     "kind": "Job",
        ...     "spec": {"parallelism": 2, "suspend": True, "template": {"spec": {}}},
        ... }
        >>> admission = {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "flavors": {"cpu": "spot"}}]}
        >>> workload = {
        ...     "metadata": {"name": "job-a"},
        ...     "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 2, "template": {"spec": {}}}]},
        ...     "status": {"admission": admission},
        ... }
        >>> (write,) = start_job(job, workload, flavors={"spot": {"spec": {"nodeLabels": {"pool": "spot"}}}})
        >>> write.manifest["spec"]["suspend"], write.manifest["spec"]["template"]["spec"]
        (False, {'nodeSelector': {'pool': 'spot'}})
    """
    configuration = configuration or JobsConfiguration()
    infos = infos_of_admission(workload, flavors, configuration)
    return known_integration(job, integrations).start(job, infos, configuration)


def stop_job(
    job: JsonObject,
    workload: JsonObject | None,
    *,
    reason: StopReason,
    message: str = "",
    integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS,
) -> tuple[Write, ...]:
    """The writes that stop a job and put its pod templates back as they were (rules/10 §4.3).

    Args:
        job: The job.
        workload: Its Workload; None if there is none, then the job is only suspended.
        reason: Why.
        message: Why, for people: the message of the Workload's condition Evicted, say.
        integrations: The kinds of jobs.

    Returns:
        Nothing if the job is stopped already. Make each write after the one before is through.

    Raises:
        KeyError: The kind of the job is not known.
    """
    word = str(reason)
    if reason is StopReason.WORKLOAD_EVICTED and workload is not None:
        word += _eviction(workload)
    infos = None if workload is None else infos_of_workload(workload)
    return known_integration(job, integrations).stop(job, infos, reason=word, message=message)


def reclaimable_pods(
    job: JsonObject,
    workload: JsonObject,
    *,
    configuration: JobsConfiguration | None = None,
    integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS,
) -> dict[str, int]:
    """Pods by pod set whose quota is free, at most as many as the pod set has (rules/10 §4.5)."""
    if not (configuration or JobsConfiguration()).enabled("ReclaimablePods"):
        return {}
    return limited_to_pod_sets(known_integration(job, integrations).reclaimable_pods(job), workload)


def limited_to_pod_sets(pods: Mapping[str, int], workload: JsonObject) -> dict[str, int]:
    """Pods by pod set, at most as many as the pod set has."""
    counts = {info.name: info.count for info in infos_of_workload(workload)}
    return {name: min(count, counts.get(name, count)) for name, count in pods.items()}


def known_integration(job: JsonObject, integrations: Mapping[tuple[str, str], Integration]) -> Integration:
    """What kueuecore knows about the kind of a job.

    Raises:
        KeyError: It is no job.
    """
    integration = integration_of(job, integrations=integrations)
    if integration is None:
        raise KeyError(f"{text_at(job, 'apiVersion')} {text_at(job, 'kind')}")
    return integration


def _eviction(workload: JsonObject) -> str:
    for condition in list_at(workload, "status", "conditions"):
        if text_at(condition, "type") == "Evicted" and text_at(condition, "status") == "True":
            return f"DueTo{text_at(object_at(condition), 'reason')}"
    return ""
