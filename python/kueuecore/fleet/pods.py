"""The statuses that job controllers write: without pods, while pods run, and when they have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at, texts_at
from kueuecore.errors import ManifestError, Problem
from kueuecore.jobs import INTEGRATIONS, Integration, integration_of
from kueuecore.jobs.batch_job import pods_count
from kueuecore.jobs.field_paths import value_at
from kueuecore.manifests import object_ref
from kueuecore.times import SECOND_NS, format_time, span_ns

__all__ = ["ENDS_FAILED", "KINDS", "RUN_SECONDS", "Pods", "ends_failed", "is_job", "run_ns", "runs_here", "status_with"]

RUN_SECONDS = "fleet.kueuecore/run-seconds"
"""The annotation that says how long the pods of a job run; without it they run forever."""
ENDS_FAILED = "fleet.kueuecore/ends-failed"
"""The annotation that is `true` on a job that fails at the end of its run time."""


class Pods(Enum):
    """The state of the pods of a job."""

    NONE = auto()
    """No pods exist: the job is suspended."""
    STARTING = auto()
    """Pods exist, but are not ready."""
    READY = auto()
    """The pods are ready and running."""
    ENDED = auto()
    """The pods have run to their end."""
    FAILED = auto()
    """The pods have run to their end and failed."""


def is_job(manifest: JsonObject) -> bool:
    """Return whether an object is a job of the `KINDS`. Other groups have kinds of the same names."""
    return text_at(manifest, "kind") in KINDS and integration_of(manifest) is not None


def run_ns(job: JsonObject) -> int | None:
    """Return how long the pods of a job run; None: forever.

    Raises:
        ManifestError: The annotation is not a duration.
    """
    seconds = texts_at(job, "metadata", "annotations").get(RUN_SECONDS)
    if seconds is None:
        return None
    try:
        return span_ns(float(seconds), RUN_SECONDS)
    except ValueError:
        field, remedy = f"metadata.annotations[{RUN_SECONDS}]", "write seconds from 0 to 292 years, such as 90"
        problem = Problem(f"Invalid value: {seconds!r}", field=field, remedy=remedy, object=object_ref(job))
        raise ManifestError([problem]) from None


def ends_failed(job: JsonObject) -> bool:
    """Return whether a job fails at the end of its run time."""
    return texts_at(job, "metadata", "annotations").get(ENDS_FAILED) == "true"


def runs_here(job: JsonObject) -> bool:
    """Return whether the controller of a job's own cluster runs it."""
    integration = KINDS[text_at(job, "kind")]
    own = integration.default_managed_by
    return own is None or value_at(job, integration.managed_by_field) in (None, "", own)


def status_with(job: JsonObject, pods: Pods, now: int) -> JsonObject:
    """Return the status of a job whose pods are in this state.

    Args:
        job: The job, which runs on its own cluster and has not ended.
        pods: The state of its pods.
        now: The time.

    Example:
        >>> ray_job = {"apiVersion": "ray.io/v1", "kind": "RayJob", "spec": {}}
        >>> status_with(ray_job, Pods.ENDED, 0)
        {'jobDeploymentStatus': 'Complete', 'jobStatus': 'SUCCEEDED'}
    """
    return _STATUSES[text_at(job, "kind")](job, pods, now)


def _batch_job(job: JsonObject, pods: Pods, now: int) -> JsonObject:
    status = {key: entry for key, entry in object_at(job, "status").items() if key not in ("active", "ready")}
    n_pods = pods_count(job)
    match pods:
        case Pods.NONE:
            status.pop("startTime", None)
            return _with(status, "Suspended", "True", "JobSuspended", "Job suspended", now)
        case Pods.ENDED:
            status |= {"succeeded": n_pods, "completionTime": _time(now)}
            done = "Reached expected number of succeeded pods"
            return _with(status, "Complete", "True", "CompletionsReached", done, now)
        case Pods.FAILED:
            status["failed"] = n_pods
            exhausted = "Job has reached the specified backoff limit"
            return _with(status, "Failed", "True", "BackoffLimitExceeded", exhausted, now)
    status |= {"active": n_pods, "ready": n_pods if pods is Pods.READY else 0}
    status.setdefault("startTime", _time(now))
    return _resumed(status, "JobResumed", "Job resumed", now)


def _job_set(job: JsonObject, pods: Pods, now: int) -> JsonObject:
    status: JsonObject = {**object_at(job, "status"), "replicatedJobsStatus": _counted(job, pods)}
    match pods:
        case Pods.NONE:
            return _with(status, "Suspended", "True", "SuspendedJobs", "jobset is suspended", now)
        case Pods.ENDED:
            status["terminalState"] = "Completed"
            return _with(status, "Completed", "True", "AllJobsCompleted", "jobset completed successfully", now)
        case Pods.FAILED:
            status["terminalState"] = "Failed"
            return _with(status, "Failed", "True", "FailedJobs", "jobset failed due to one or more job failures", now)
    return _resumed(status, "ResumeJobs", "jobset is resumed", now)


def _counted(job: JsonObject, pods: Pods) -> list[JsonValue]:
    """Return how many Jobs of each name are active, ready or done."""
    counts: Mapping[Pods, tuple[str, ...]] = {
        Pods.NONE: (),
        Pods.STARTING: ("active",),
        Pods.READY: ("active", "ready"),
        Pods.ENDED: ("succeeded",),
        Pods.FAILED: ("failed",),
    }
    jobs = [object_at(replicated_job) for replicated_job in list_at(job, "spec", "replicatedJobs")]
    return [
        {"name": text_at(job, "name"), **dict.fromkeys(counts[pods], int_at(job, "replicas", default=1))}
        for job in jobs
    ]


def _kubeflow_job(job: JsonObject, pods: Pods, now: int) -> JsonObject:
    is_active = pods in (Pods.STARTING, Pods.READY)
    specs = next((entry for key, entry in object_at(job, "spec").items() if key.endswith("ReplicaSpecs")), {})
    active: JsonObject = {}
    if is_active:
        active = {name: {"active": int_at(entry, "replicas", default=1)} for name, entry in object_at(specs).items()}
    status: JsonObject = {**object_at(job, "status"), "replicaStatuses": active}
    kind = text_at(job, "kind")
    running = "True" if pods is Pods.READY else "False"
    status = _with(status, "Running", running, f"{kind}Running", f"{kind} is running: {running.lower()}", now)
    match pods:
        case Pods.NONE:
            return _with(status, "Suspended", "True", f"{kind}Suspended", f"{kind} suspended", now)
        case Pods.ENDED:
            return _with(status, "Succeeded", "True", f"{kind}Succeeded", f"{kind} is successfully completed", now)
        case Pods.FAILED:
            return _with(status, "Failed", "True", f"{kind}Failed", f"{kind} is failed", now)
    return _resumed(status, f"{kind}Resumed", f"{kind} resumed", now)


def _ray_job(_job: JsonObject, pods: Pods, _now: int) -> JsonObject:
    match pods:
        case Pods.NONE:
            return {"jobDeploymentStatus": "Suspended"}
        case Pods.STARTING:
            return {"jobDeploymentStatus": "Initializing"}
        case Pods.READY:
            ready: JsonObject = {"state": "ready"}
            return {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "rayClusterStatus": ready}
        case Pods.ENDED:
            return {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}
        case Pods.FAILED:
            return {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED"}


def _ray_cluster(_job: JsonObject, pods: Pods, _now: int) -> JsonObject:
    """Return the status of a RayCluster, which does not end by itself."""
    return {"state": "suspended"} if pods is Pods.NONE else {} if pods is Pods.STARTING else {"state": "ready"}


def _app_wrapper(job: JsonObject, pods: Pods, now: int) -> JsonObject:
    phases = {Pods.NONE: "Suspended", Pods.STARTING: "Resuming", **_ENDS}
    is_active = "True" if pods in (Pods.STARTING, Pods.READY) else "False"
    status: JsonObject = {**object_at(job, "status"), "phase": phases[pods]}
    status = _with(status, "QuotaReserved", is_active, phases[pods], "", now)
    return _with(status, "PodsReady", "True" if pods is Pods.READY else "False", phases[pods], "", now)


def _pod(pod: JsonObject, pods: Pods, now: int) -> JsonObject:
    phases = {Pods.STARTING: "Pending", **_ENDS}
    status = object_at(pod, "status")
    # No controller acts on a pod with gates.
    if pods is Pods.NONE:
        return status
    reasons = {Pods.STARTING: "ContainersNotReady", Pods.ENDED: "PodCompleted", Pods.FAILED: "PodFailed"}
    ready, reason = str(pods is Pods.READY), reasons.get(pods, "")
    return _with({**status, "phase": phases[pods]}, "Ready", ready, reason, "", now)


_ENDS = {Pods.READY: "Running", Pods.ENDED: "Succeeded", Pods.FAILED: "Failed"}
_KUBEFLOW = ("MPIJob", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob")
_STATUSES: Mapping[str, Callable[[JsonObject, Pods, int], JsonObject]] = {
    "Job": _batch_job,
    "JobSet": _job_set,
    **dict.fromkeys(_KUBEFLOW, _kubeflow_job),
    "RayJob": _ray_job,
    "RayCluster": _ray_cluster,
    "AppWrapper": _app_wrapper,
    "Pod": _pod,
}
KINDS: Mapping[str, Integration] = {
    kind: integration for (_, kind), integration in INTEGRATIONS.items() if kind in _STATUSES
}
"""The kinds of jobs that run in fleets."""


def _resumed(status: JsonObject, reason: str, message: str, now: int) -> JsonObject:
    if any(text_at(condition, "type") == "Suspended" for condition in list_at(status, "conditions")):
        return _with(status, "Suspended", "False", reason, message, now)
    return status


def _with(status: JsonObject, kind: str, value: str, reason: str, message: str, now: int) -> JsonObject:
    """Return a status with a condition added."""
    conditions = list_at(status, "conditions")
    new: JsonObject = {"type": kind, "status": value, "reason": reason, "message": message}
    if any(object_at(condition).items() >= new.items() for condition in conditions):
        return status
    others: Iterable[JsonValue] = (condition for condition in conditions if text_at(condition, "type") != kind)
    return {**status, "conditions": [*others, {**new, "lastTransitionTime": _time(now)}]}


def _time(now: int) -> str:
    return format_time(now // SECOND_NS * SECOND_NS)
