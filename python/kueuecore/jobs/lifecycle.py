"""Starts and stops jobs and reads the state that they report, for those who carry decisions out (rules/10 §4).

All functions are pure: they take manifests, and return the writes for a controller or a simulator to make.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

from kueuecore._arguments import instance, mapping, text
from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._text import quoted
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.jobs.context import JobsConfiguration, configuration_or_default, group_of
from kueuecore.jobs.field_types import check_fields
from kueuecore.jobs.injection import infos_of_admission, infos_of_workload
from kueuecore.jobs.integration import Integration
from kueuecore.jobs.integrations import INTEGRATIONS
from kueuecore.jobs.manifest_shapes import FLAVOR, METADATA, WORKLOAD
from kueuecore.manifests import object_ref
from kueuecore.writes import Write

__all__ = ["StopReason", "integration_of", "reclaimable_pods", "start_job", "stop_job"]


class StopReason(StrEnum):
    """The reason to stop a job."""

    WORKLOAD_DELETED = "WorkloadDeleted"
    WORKLOAD_EVICTED = "WorkloadEvicted"
    NO_MATCHING_WORKLOAD = "NoMatchingWorkload"
    NOT_ADMITTED = "NotAdmitted"


def integration_of(
    job: JsonObject, *, integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS
) -> Integration | None:
    """Return the integration for the kind of an object; None if it is not a job.

    Args:
        job: A manifest.
        integrations: The kinds of jobs.

    Example:
        >>> integration_of({"apiVersion": "batch/v1", "kind": "Job"}).framework
        'batch/job'
    """
    key = group_of(text_at(job, "apiVersion")), text_at(job, "kind")
    found = mapping("integrations", integrations).get(key)
    return None if found is None else instance(f"integrations[{key}]", found, Integration)


def start_job(
    job: JsonObject,
    workload: JsonObject,
    *,
    flavors: Mapping[str, JsonObject],
    configuration: JobsConfiguration | None = None,
    integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS,
) -> tuple[Write, ...]:
    """Return the writes that start a job whose Workload is admitted (rules/10 §4.2).

    Args:
        job: The job, suspended.
        workload: Its Workload, with `status.admission`.
        flavors: The ResourceFlavors by name, as manifests; at least those of the admission.
        configuration: Has the feature gates.
        integrations: The kinds of jobs.

    Raises:
        StartError: It can never start like this. Finish the Workload with reason `FailedToStart` and the error as
            message.
        UnknownObjectError: A flavor is missing.
        ManifestError: The kind of the job is unknown, or a field of the job, the Workload or a flavor has the wrong
            type.

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
    configuration = configuration_or_default(configuration)
    integration = known_integration(job, integrations)
    check_workload(workload)
    check_flavors(flavors)
    infos = infos_of_admission(workload, flavors, configuration)
    return integration.start(job, infos, configuration)


def stop_job(
    job: JsonObject,
    workload: JsonObject | None,
    *,
    reason: StopReason,
    message: str = "",
    integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS,
) -> tuple[Write, ...]:
    """Return the writes that stop a job and restore its pod templates (rules/10 §4.3).

    Args:
        job: The job.
        workload: Its Workload; None if there is none: the job is only suspended.
        reason: Why.
        message: Why, in a sentence, such as the message of the Workload's condition Evicted.
        integrations: The kinds of jobs.

    Returns:
        The writes, each to be made after the previous one has succeeded; none if the job is already stopped. Since
        Kubernetes 1.36 a server takes the last, which restores the template of a Job, once `status.active` is 0;
        `reconcile_job` waits for that.

    Raises:
        ManifestError: The kind of the job is unknown, or a field of the job or the Workload has the wrong type.
    """
    integration = known_integration(job, integrations)
    if workload is not None:
        check_workload(workload)
    word, message = str(instance("reason", reason, StopReason)), text("message", message)
    if reason is StopReason.WORKLOAD_EVICTED and workload is not None:
        word += _eviction(workload)
    infos = None if workload is None else infos_of_workload(workload)
    return integration.stop(job, infos, reason=word, message=message)


def reclaimable_pods(
    job: JsonObject,
    workload: JsonObject,
    *,
    configuration: JobsConfiguration | None = None,
    integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS,
) -> dict[str, int]:
    """Return how many pods no longer need their quota, by pod set and at most its size (rules/10 §4.5).

    Raises:
        ManifestError: The kind of the job is unknown, or a field of the job or the Workload has the wrong type.
    """
    integration = known_integration(job, integrations)
    check_workload(workload)
    configuration = configuration_or_default(configuration)
    if not configuration.enabled("ReclaimablePods"):
        return {}
    return limited_to_pod_sets(integration.reclaimable_pods(job, configuration), workload)


def limited_to_pod_sets(pods: Mapping[str, int], workload: JsonObject) -> dict[str, int]:
    """Return pods by pod set, at most as many as the pod set has."""
    counts = {info.name: info.count for info in infos_of_workload(workload)}
    return {name: min(count, counts.get(name, count)) for name, count in pods.items()}


def known_integration(job: JsonObject, integrations: Mapping[tuple[str, str], Integration]) -> Integration:
    """Return the integration for the kind of a job whose fields have the right types.

    Raises:
        ManifestError: It is not a job, or a field has the wrong type.
    """
    integration = integration_of(job, integrations=integrations)
    if integration is None:
        found = f"{text_at(job, 'apiVersion')} {text_at(job, 'kind')}".strip()
        kinds = ", ".join(
            sorted({instance("integrations", integration, Integration).kind for integration in integrations.values()})
        )
        remedy = f"the kinds are {kinds}; add yours with with_kinds"
        problem = Problem(f"Unsupported value: {quoted(found)}: this is no kind of jobs", field="kind", remedy=remedy)
        raise ManifestError([replace(problem, object=_ref(job))])
    check_fields(job, {"metadata": METADATA, **integration.fields}, _ref(job))
    return integration


def check_workload(workload: JsonObject) -> None:
    """Refuse a Workload that has fields of the wrong type.

    Raises:
        ManifestError: All problems.
    """
    check_fields(workload, WORKLOAD, _ref(workload, kind="Workload"))


def check_flavors(flavors: Mapping[str, JsonObject]) -> None:
    """Refuse ResourceFlavors by name that have fields of the wrong type.

    Raises:
        ManifestError: All problems of the first that has any.
        TypeError: They are not a mapping.
    """
    if not isinstance(flavors, Mapping):
        raise TypeError(f"flavors must be ResourceFlavors by their names, not {type(flavors).__name__}")
    for name, flavor in flavors.items():
        check_fields(flavor, FLAVOR, ObjectRef("ResourceFlavor", str(name)))


def _ref(plain: JsonObject, *, kind: str = "") -> ObjectRef:
    found = object_ref(object_at(plain))
    return replace(found, kind=found.kind or kind)


def _eviction(workload: JsonObject) -> str:
    for condition in list_at(workload, "status", "conditions"):
        if text_at(condition, "type") == "Evicted" and text_at(condition, "status") == "True":
            return f"DueTo{text_at(object_at(condition), 'reason')}"
    return ""
