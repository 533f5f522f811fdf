"""What is known about the jobs of the past, wherever that comes from: a dump, a trace or a journal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at, texts_at
from kueuecore.controller.estimates import ESTIMATED_START
from kueuecore.forecasts.present_workloads import PresentWorkload
from kueuecore.scenarios.job_names import JOB_UID

__all__ = ["EXPECTED_RUN_SECONDS", "PastJob", "known_at", "past_job_of", "past_jobs_of", "template_of"]

EXPECTED_RUN_SECONDS = "kueuecore.dev/expected-run-seconds"
"""An annotation of Workloads without a time limit: how long the job is expected to run, in whole seconds."""
# As for a time limit, which has 32 bits.
_LONGEST_SECONDS = 2**31 - 1
_WHOLE_NUMBER = re.compile(r"[0-9]{1,10}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PastJob:
    """A job of the past. Times are in nanoseconds since 1970; None: unknown.

    Args:
        namespace: Its namespace; empty: unknown, as are the queues.
        local_queue: The name of its LocalQueue.
        cluster_queue: The name of its ClusterQueue.
        name: The name of the job, or of its Workload if that is unknown; names may occur twice.
        priority: Its priority.
        requests: What all its pods together request: `cpu` in thousandths, others in whole units.
        n_pods: Its number of pods.
        limit_seconds: After how long it is stopped (`spec.maximumExecutionTimeSeconds`), or else for how long its owner
            expects it to run (the annotation `kueuecore.dev/expected-run-seconds`); None: unknown.
        labels: The labels of its Workload; of a job of a trace its text fields, such as `user` and `partition`.
        created: When it was created.
        started: When it was last admitted.
        ended: When it ended or was deleted.
        template: The Workload to copy for a future arrival, without a name and a status; None: unknown.
        seen: When it was last seen to wait or run, if nothing is known of it after that; None: it has ended, or is
            still there. One that ran then has run for `seen - started` at least.
        ran_seconds: How long it ran, if that is known though its start is not.
        uid: The UID of its Workload; empty: unknown.
    """

    namespace: str
    local_queue: str
    cluster_queue: str
    name: str
    priority: int
    requests: Mapping[str, int]
    n_pods: int
    limit_seconds: float | None
    labels: Mapping[str, str]
    created: int | None
    started: int | None
    ended: int | None
    template: JsonObject | None
    seen: int | None = None
    ran_seconds: float | None = None
    uid: str = ""

    @property
    def run_seconds(self) -> float | None:
        """How long it ran; None: it has not ended, or is not known to have run."""
        if self.started is None or self.ended is None:
            return self.ran_seconds
        return max(self.ended - self.started, 0) / 1e9


def past_jobs_of(workloads: Sequence[PresentWorkload]) -> tuple[PastJob, ...]:
    """Return the Workloads of a dump as jobs of the past, in order: finished, running and waiting ones.

    Example:
        >>> from kueuecore import read_manifests
        >>> from kueuecore.forecasts.present_workloads import present_workloads
        >>> first, *_ = past_jobs_of(present_workloads(read_manifests("examples/eta/workloads.yaml")))
        >>> first.name, first.requests, first.n_pods, first.run_seconds
        ('decode-17', {'cpu': 3000}, 1, 5316.839)
    """
    return tuple(map(past_job_of, workloads))


def past_job_of(workload: PresentWorkload) -> PastJob:
    """Return a Workload as a job of the past."""
    plain = workload.manifest.object
    namespace, local_queue = workload.local_queue
    return PastJob(
        namespace=namespace,
        local_queue=local_queue,
        cluster_queue=workload.cluster_queue,
        name=workload.job.partition("/")[2] or workload.key.partition("/")[2],
        priority=workload.priority,
        requests=_requests(plain),
        n_pods=sum(int_at(pod_set, "count", default=1) for pod_set in list_at(plain, "spec", "podSets")),
        limit_seconds=_limit(plain),
        labels=_labels(plain),
        created=workload.created,
        started=workload.started,
        ended=workload.ended,
        template=template_of(plain),
        uid=text_at(plain, "metadata", "uid"),
    )


def _limit(workload: JsonObject) -> float | None:
    """Return its time limit, which Kueue enforces, or else what its owner expects."""
    limit = int_at(workload, "spec", "maximumExecutionTimeSeconds")
    if limit > 0:
        return float(min(limit, _LONGEST_SECONDS))
    expected = text_at(workload, "metadata", "annotations", EXPECTED_RUN_SECONDS)
    # Nobody checks an annotation.
    known = int(expected) if _WHOLE_NUMBER.fullmatch(expected) else 0
    return float(known) if 0 < known <= _LONGEST_SECONDS else None


def known_at(job: PastJob, now: int) -> PastJob | None:
    """Return what was known of a job at some moment; None: it did not exist.

    Example:
        >>> from kueuecore import read_manifests
        >>> from kueuecore.forecasts.present_workloads import present_workloads
        >>> first, *_ = past_jobs_of(present_workloads(read_manifests("examples/eta/workloads.yaml")))
        >>> running = known_at(first, first.ended - 1)
        >>> running.started == first.started, running.ended, running.seen == first.ended - 1
        (True, None, True)
    """
    newest = max(time or 0 for time in (job.created, job.started, job.ended, job.seen))
    if newest <= now and (job.ran_seconds is None or (job.created or 0) + job.ran_seconds * 1e9 <= now):
        return job
    if any(time is not None and time > now for time in (job.created, job.started if job.created is None else None)):
        return None
    has_started = job.started is not None and job.started <= now
    has_ended = job.ended is not None and job.ended <= now
    return replace(
        job,
        started=job.started if has_started else None,
        ended=job.ended if has_ended else None,
        seen=None if has_ended else now if job.seen is None else min(job.seen, now),
        ran_seconds=None,
    )


def template_of(workload: JsonObject) -> JsonObject:
    """Return a Workload as it was created, without its name."""
    metadata = object_at(workload, "metadata")
    kept: JsonObject = {"namespace": metadata.get("namespace"), "name": "template"}
    if labels := _labels(workload):
        kept["labels"] = dict(labels)
    annotations = texts_at(metadata, "annotations")
    own = {name: value for name, value in annotations.items() if not name.startswith(ESTIMATED_START)}
    if own:
        kept["annotations"] = dict(own)
    spec = {name: entry for name, entry in object_at(workload, "spec").items() if name != "active"}
    return {"apiVersion": workload.get("apiVersion"), "kind": "Workload", "metadata": kept, "spec": spec}


def _labels(workload: JsonObject) -> dict[str, str]:
    """Return its labels, without the UID of its job: no other job has the same."""
    return {name: value for name, value in texts_at(workload, "metadata", "labels").items() if name != JOB_UID}


def _requests(workload: JsonObject) -> dict[str, int]:
    """Return what it was counted with when it was admitted; if it never was, what it asks for."""
    from kueuecore.answers.amounts import requests_of, units_of  # brings much along that a start need not wait for

    total: Counter[str] = Counter()
    for assignment in list_at(workload, "status", "admission", "podSetAssignments"):
        usage = object_at(assignment, "resourceUsage")
        total.update({name: units_of(name, quantity) for name, quantity in usage.items()})
    used = {name: units for name, units in sorted(total.items()) if units}
    return used or requests_of(workload)
