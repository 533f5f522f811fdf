"""Decides whether a Workload still fits the job that it was made from (rules/10 §3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kueuecore._arguments import instance
from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore.jobs.context import JobsConfiguration, Surroundings
from kueuecore.jobs.injection import StartError, infos_of_admission
from kueuecore.jobs.integration import Integration
from kueuecore.jobs.integrations import INTEGRATIONS
from kueuecore.jobs.job_status import has_condition
from kueuecore.jobs.lifecycle import check_flavors, check_workload, known_integration
from kueuecore.jobs.quantities import canonical_amounts
from kueuecore.jobs.workload_builder import max_exec_time_seconds, sanitized
from kueuecore.jobs.workload_names import uid_of

__all__ = ["fits_workload", "have_same_pods"]


def fits_workload(
    job: JsonObject,
    workload: JsonObject,
    *,
    flavors: Mapping[str, JsonObject],
    surroundings: Surroundings | None = None,
    integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS,
) -> bool:
    """Return whether a Workload fits the current job: count, containers and tolerations of its pods.

    One that does not fit is updated if the job is suspended and it holds no quota; otherwise the job is stopped and the
    Workload deleted. Do not use it for groups of pods, whose pods come and go.

    Args:
        job: The job, suspended or running.
        workload: A Workload.
        flavors: The ResourceFlavors by name, as manifests: what a running job got from them is not a difference.
        surroundings: Have the feature gates; for a TrainJob, also its runtime.
        integrations: The kinds of jobs.

    Raises:
        ManifestError: The kind of the job is unknown, or a field of the job, the Workload or a flavor has the wrong
            type.
        NoWorkload: The job's pods are not known.
    """
    surroundings = Surroundings() if surroundings is None else instance("surroundings", surroundings, Surroundings)
    configuration = surroundings.configuration
    integration = known_integration(job, integrations)
    check_workload(workload)
    check_flavors(flavors)
    if not _is_owned(job, workload, by_uid=configuration.enabled("FinishOrphanedWorkloads")):
        return False
    if object_at(workload, "spec").get("maximumExecutionTimeSeconds") != max_exec_time_seconds(job):
        return False
    wanted = [
        sanitized(pod_set.to_manifest(configuration), configuration)
        for pod_set in integration.pod_sets(job, surroundings)
    ]
    stored = list_at(workload, "spec", "podSets")
    is_admitted = has_condition(workload, "Admitted")
    keys = (*_compared(configuration), *(() if is_admitted else ("tolerations",)))
    running = _running(workload, flavors, surroundings) if has_condition(workload, "QuotaReserved") else None
    if running is None:
        return _are_alike(wanted, stored, keys)
    if _are_alike(wanted, running, keys):
        return True
    return integration.is_suspended(job) and _are_alike(wanted, stored, keys)


def have_same_pods(one: JsonObject, other: JsonObject, configuration: JobsConfiguration) -> bool:
    """Return whether two pod templates differ only in what is not compared of a job and its Workload either.

    Args:
        one: A pod template.
        other: Another.
        configuration: Has the changes of Kueue.
    """
    keys = ("tolerations", *_compared(configuration))
    return _shape({"template": one}, keys) == _shape({"template": other}, keys)


def _compared(configuration: JobsConfiguration) -> tuple[str, ...]:
    """Return the fields of pods that are always compared."""
    of_containers = ("initContainers", "containers")
    return (
        (*of_containers, "resources", "resourceClaims")
        if configuration.has("PodLevelPartsAreCompared")
        else of_containers
    )


def _is_owned(job: JsonObject, workload: JsonObject, *, by_uid: bool) -> bool:
    for owner in list_at(workload, "metadata", "ownerReferences"):
        same_uid = not by_uid or text_at(owner, "uid") == uid_of(job)
        if object_at(owner).get("controller") is True:
            return text_at(owner, "name") == text_at(job, "metadata", "name") and same_uid
    return False


def _running(
    workload: JsonObject, flavors: Mapping[str, JsonObject], surroundings: Surroundings
) -> list[JsonObject] | None:
    """Return the pod sets as they are while the job runs; None if that is not known."""
    configuration = surroundings.configuration
    pod_sets = [object_at(entry) for entry in list_at(workload, "spec", "podSets")]
    shrinks = any(
        "minCount" in pod_set and int_at(pod_set, "count", default=1) > int_at(pod_set, "minCount")
        for pod_set in pod_sets
    )
    running = []
    try:
        infos = {info.name: info for info in infos_of_admission(workload, flavors, configuration)}
        for pod_set in pod_sets:
            info = infos[text_at(pod_set, "name")]
            template = info.merged_into(object_at(pod_set, "template"), configuration)
            count = info.count if shrinks and "minCount" in pod_set else int_at(pod_set, "count", default=1)
            running.append({**pod_set, "template": template, "count": count})
    except (LookupError, StartError):
        return None
    return running


def _are_alike(wanted: Sequence[JsonObject], other: Sequence[JsonValue], keys: tuple[str, ...]) -> bool:
    return [_shape(manifest, keys) for manifest in wanted] == [_shape(value, keys) for value in other]


def _shape(pod_set: JsonValue, keys: tuple[str, ...]) -> JsonValue:
    """Return what is compared of a pod set: no names, labels, annotations, selectors or topology."""
    spec = object_at(pod_set, "template", "spec")
    counts: list[JsonValue] = [int_at(pod_set, "count", default=1), int_at(pod_set, "minCount", default=-1)]
    return [*counts, *(_plain(spec.get(key)) for key in keys)]


def _plain(value: JsonValue) -> JsonValue:
    """Return a value without empty fields, and with amounts as Kubernetes writes them."""
    if isinstance(value, list):
        return [_plain(row) for row in value] or None
    if not isinstance(value, dict):
        return value
    fields = {
        key: canonical_amounts(row) if key in ("requests", "limits") else _plain(row) for key, row in value.items()
    }
    return {key: field for key, field in fields.items() if field not in (None, "", {}, [])} or None
