"""The adapters of all kinds that Kueue dispatches (rules/06 §7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at, texts_at
from kueuecore.jobs.batch_job import BATCH_JOB
from kueuecore.jobs.context import ELASTIC_JOB, JobsConfiguration, annotations_of, group_of
from kueuecore.jobs.field_paths import with_value, without_value
from kueuecore.jobs.integration import Integration
from kueuecore.jobs.integrations import INTEGRATIONS
from kueuecore.jobs.pod import ADMISSION_GATE, GROUP_NAME
from kueuecore.jobs.scheduling_gates import has_gate
from kueuecore.jobs.workload_builder import new_workload
from kueuecore.multikueue.adapters import Adapter, Status, SyncContext, prebuilt_name, with_prebuilt_name
from kueuecore.multikueue.settings import MultiKueueSettings
from kueuecore.times import format_time

__all__ = ["adapters_of"]

_JOB_LABELS = ("job-name", "controller-uid", "batch.kubernetes.io/controller-uid")
_PATCH_MANAGER = "kueue.x-k8s.io/manager"


def adapters_of(
    settings: MultiKueueSettings,
    *,
    integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS,
    own: Iterable[Adapter] = (),
) -> dict[str, Adapter]:
    """Return the adapters of all kinds, by group, version and kind.

    Args:
        settings: The settings, for gates and frameworks: kinds that the frameworks do not name have no adapter.
        integrations: The kinds of jobs; those with `supports_multikueue` have an adapter.
        own: Your own adapters; they take precedence.

    Example:
        >>> adapters = adapters_of(MultiKueueSettings())
        >>> len(adapters), adapters["batch/v1, Kind=Job"].managed_by
        (11, ('spec', 'managedBy'))
    """
    found = [
        _of_kind(integration, settings)
        for integration in integrations.values()
        if integration.supports_multikueue and integration.framework in settings.frameworks
    ]
    found += [_external(name) for name in settings.external_frameworks if settings.has_custom_jobs]
    return {adapter.gvk: adapter for adapter in (*found, *own)}


def _of_kind(integration: Integration, settings: MultiKueueSettings) -> Adapter:
    api_version, kind = integration.api_version, integration.kind
    match kind:
        case "Job":
            return _batch_job(settings)
        case "Pod":
            return Adapter(api_version=api_version, kind=kind, managed_by=None, status=_pod_status, members=_pods)
        case "StatefulSet":
            return Adapter(api_version=api_version, kind=kind, managed_by=None, status=_no_status, has_origin_uid=True)
        case "LeaderWorkerSet":
            return Adapter(
                api_version=api_version,
                kind=kind,
                managed_by=None,
                status=_no_status,
                has_origin_uid=True,
                is_named_after_workload=False,
                n_workloads=lambda job: int_at(job, "spec", "replicas", default=1),
            )
        case "MPIJob":
            field = integration.managed_by_field
            return Adapter(
                api_version=api_version, kind=kind, managed_by=field, managed_by_shown="spec.runPolicy.managedBy"
            )
        case "TrainJob":
            return Adapter(api_version=api_version, kind=kind, prepare=_without_runtime_patch)
        case "RayCluster":
            return Adapter(api_version=api_version, kind=kind, update=_elastic_ray_cluster)
        case "RayService" if settings.syncs_remote_spec:
            return Adapter(api_version=api_version, kind=kind, update=_with_serve_config)
        case _:
            return Adapter(api_version=api_version, kind=kind, managed_by=integration.managed_by_field)


def _external(name: str) -> Adapter:
    kind, version, group = name.split(".", 2)
    return Adapter(
        api_version=f"{group}/{version}", kind=kind, managed_by_shown=".spec.managedBy", status=_status_if_any
    )


def _status_if_any(_local: JsonObject, remote: JsonObject, _context: SyncContext) -> Status:
    status = remote.get("status")
    return Status(status if isinstance(status, dict) else None)


def _no_status(_local: JsonObject, _remote: JsonObject, _context: SyncContext) -> Status:
    """Return no status, for a kind whose controller on the manager would overwrite it at once."""
    return Status(None)


# Jobs of batch/v1.


def _batch_job(settings: MultiKueueSettings) -> Adapter:
    # With the gate, the worker keeps a Job that has finished until the manager has seen it.
    prepare = _without_selector_and_ttl if settings.drops_job_ttl else _without_selector
    if settings.batch_job_with_managed_by:
        return Adapter(api_version="batch/v1", kind="Job", prepare=prepare, status=_job_status, update=_elastic_job)
    return Adapter(
        api_version="batch/v1",
        kind="Job",
        managed_by=None,
        prepare=prepare,
        status=_last_job_status,
        update=_elastic_job,
        keeps_check_pending=True,
    )


def _without_selector(job: JsonObject) -> JsonObject:
    """Return a Job without what its cluster added: the selector, and labels of the template."""
    job = without_value(job, ("spec", "selector"))
    for label in _JOB_LABELS:
        job = without_value(job, ("spec", "template", "metadata", "labels", label))
    return job


def _without_selector_and_ttl(job: JsonObject) -> JsonObject:
    return without_value(_without_selector(job), ("spec", "ttlSecondsAfterFinished"))


def _job_status(local: JsonObject, remote: JsonObject, context: SyncContext) -> Status:
    """Return the worker's status, unless the Job here is not started yet while the one there runs.

    Its start time would forbid the spec changes that come with the start.
    """
    if not BATCH_JOB.is_suspended(local) or BATCH_JOB.is_suspended(remote) or BATCH_JOB.finished(remote) is not None:
        return Status(object_at(remote, "status"))
    status = object_at(local, "status")
    conditions = list_at(status, "conditions")
    if any(
        text_at(condition, "type") == "Suspended" and text_at(condition, "status") == "True" for condition in conditions
    ):
        return Status(status, is_deferred=True)
    at = format_time(context.now // 10**9 * 10**9)
    suspended: JsonObject = {
        "type": "Suspended",
        "status": "True",
        "reason": "MultiKueueAdapter",
        "message": "Set by MultiKueue adapter",
        "lastProbeTime": at,
        "lastTransitionTime": at,
    }
    others = [condition for condition in conditions if text_at(condition, "type") != "Suspended"]
    return Status({**status, "conditions": [*others, suspended]}, is_deferred=True)


def _last_job_status(_local: JsonObject, remote: JsonObject, _context: SyncContext) -> Status:
    """Return the status only at the end: without `managedBy`, the controller here also manages the Job."""
    return Status(object_at(remote, "status") if BATCH_JOB.finished(remote) is not None else None)


def _elastic_job(local: JsonObject, remote: JsonObject, context: SyncContext) -> JsonObject:
    """Return the job with the parallelism and Workload of the admitted slice (rules/06 §5.4)."""
    if not _is_elastic(local, context):
        return remote
    wanted, there = (int_at(entry, "spec", "parallelism") for entry in (local, remote))
    # A slice that is being replaced must not enlarge the job.
    if there < wanted and context.workload != _slice_name(local):
        return remote
    if there != wanted:
        remote = with_value(remote, ("spec", "parallelism"), object_at(local, "spec").get("parallelism"))
    return _of_slice(remote, context)


# Other kinds.


def _without_runtime_patch(job: JsonObject) -> JsonObject:
    """Return a TrainJob without what Kueue wrote into it here: Kueue on the worker writes its own."""
    patches = list_at(job, "spec", "runtimePatches")
    kept: list[JsonValue] = [patch for patch in patches if text_at(patch, "manager") != _PATCH_MANAGER]
    return job if len(kept) == len(patches) else with_value(job, ("spec", "runtimePatches"), kept)


def _with_serve_config(local: JsonObject, remote: JsonObject, _context: SyncContext) -> JsonObject:
    config = text_at(local, "spec", "serveConfigV2")
    if text_at(remote, "spec", "serveConfigV2") == config:
        return remote
    return with_value(remote, ("spec", "serveConfigV2"), config)


def _elastic_ray_cluster(local: JsonObject, remote: JsonObject, context: SyncContext) -> JsonObject:
    if not _is_elastic(local, context):
        return remote
    if context.settings.workers_scale_ray and object_at(local, "spec").get("enableInTreeAutoscaling") is True:
        # The autoscaler there owns the sizes.
        return _of_slice(remote, context)
    wanted, there = _workers(local), _workers(remote)
    if sum(there.values()) < sum(wanted.values()) and context.workload != _slice_name(local):
        return remote
    sizes = {text_at(spec, "groupName"): object_at(spec) for spec in list_at(local, "spec", "workerGroupSpecs")}
    groups: list[JsonValue] = []
    for spec in list_at(remote, "spec", "workerGroupSpecs"):
        group, size = dict(object_at(spec)), sizes.get(text_at(spec, "groupName"))
        for key in ("replicas", "numOfHosts") if size is not None else ():
            group.pop(key, None)
            if size is not None and key in size:
                group[key] = size[key]
        groups.append(group)
    return _of_slice(with_value(remote, ("spec", "workerGroupSpecs"), groups), context)


def _workers(cluster: JsonObject) -> dict[str, int]:
    return {
        text_at(spec, "groupName"): int_at(spec, "replicas", default=1) * int_at(spec, "numOfHosts", default=1)
        for spec in list_at(cluster, "spec", "workerGroupSpecs")
    }


def _is_elastic(job: JsonObject, context: SyncContext) -> bool:
    return context.settings.has_elastic_jobs and annotations_of(job).get(ELASTIC_JOB) == "true"


def _slice_name(job: JsonObject) -> str:
    """Return the name of the Workload of the newest slice of an elastic job."""
    integration = INTEGRATIONS[group_of(text_at(job, "apiVersion")), text_at(job, "kind")]
    return text_at(new_workload(job, integration, [], JobsConfiguration()), "metadata", "name")


def _of_slice(remote: JsonObject, context: SyncContext) -> JsonObject:
    if prebuilt_name(remote, context.settings) == context.workload:
        return remote
    return with_prebuilt_name(remote, context)


def _pods(pod: JsonObject, pods: Iterable[JsonObject]) -> Sequence[JsonObject]:
    """Return all pods of the group that a pod belongs to; only itself if it belongs to none."""
    group = _group(pod)
    return [pod for pod in pods if _group(pod) == group] if group else (pod,)


def _group(pod: JsonObject) -> str:
    return annotations_of(pod).get(GROUP_NAME, "") or texts_at(pod, "metadata", "labels").get(GROUP_NAME, "")


def _pod_status(local: JsonObject, remote: JsonObject, _context: SyncContext) -> Status:
    """Return the worker's status without what would make an autoscaler here look for a node for a gated pod."""
    if text_at(local, "metadata", "deletionTimestamp"):
        return Status(None)
    status = object_at(remote, "status")
    here, there = _scheduled(local), _scheduled(remote)
    if here is None or text_at(there, "status") == "True" or not has_gate(object_at(local, "spec"), ADMISSION_GATE):
        return Status(status)
    conditions = list_at(status, "conditions")
    kept: list[JsonValue] = [
        here if text_at(condition, "type") == "PodScheduled" else condition for condition in conditions
    ]
    return Status({**status, "conditions": kept if there is not None else [*kept, here]})


def _scheduled(pod: JsonObject) -> JsonValue:
    conditions = list_at(pod, "status", "conditions")
    return next((condition for condition in conditions if text_at(condition, "type") == "PodScheduled"), None)
