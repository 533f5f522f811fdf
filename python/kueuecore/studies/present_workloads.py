"""The current Workloads of a cluster: which have ended, run or wait, and since when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from kueuecore._json import JsonObject, int_at, list_at, text_at
from kueuecore._near_names import near_names
from kueuecore._text import shown
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest, object_ref
from kueuecore.scenarios.present import each_workload_once, has_condition, job_of
from kueuecore.times import nanoseconds
from kueuecore.world import is_workload

__all__ = ["JobKind", "PresentWorkload", "Status", "found_workload", "present_workloads"]


JobKind: TypeAlias = tuple[str, str, int]
"""Namespace and name of the LocalQueue, and the priority."""


class Status(StrEnum):
    """The status of a Workload."""

    FINISHED = "Finished"
    ADMITTED = "Admitted"
    QUOTA_RESERVED = "QuotaReserved"
    """It holds quota, but its admission checks are not ready, or it is being evicted."""
    PENDING = "Pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentWorkload:
    """A current Workload. Times are in nanoseconds since 1970.

    Args:
        manifest: The Workload.
        key: `namespace/name`.
        job: `Kind/name` of its job; empty: unknown.
        local_queue: Namespace and name of its LocalQueue.
        cluster_queue: The ClusterQueue of that; empty: none.
        priority: Its priority.
        status: Its status.
        created: When it was created; None: unknown.
        started: When it was last admitted; None: it is not, or that is unknown.
        ended: When its job ended; None: it has not.
    """

    manifest: Manifest
    key: str
    job: str
    local_queue: tuple[str, str]
    cluster_queue: str
    priority: int
    status: Status
    created: int | None
    started: int | None
    ended: int | None

    @property
    def kind(self) -> JobKind:
        """What it has in common with workloads whose jobs run about as long."""
        return (*self.local_queue, self.priority)

    @property
    def run_seconds(self) -> float | None:
        """How long its job ran; None: it has not ended, or is not known to have run."""
        if self.started is None or self.ended is None:
            return None
        return max(self.ended - self.started, 0) / 1e9


def present_workloads(objects: Sequence[Manifest]) -> tuple[PresentWorkload, ...]:
    """Return the Workloads among some objects, in order; of duplicates, the last one.

    Args:
        objects: All objects of the cluster.
    """
    homes = {
        (object_ref(object_.object).namespace, object_ref(object_.object).name): text_at(
            object_.object, "spec", "clusterQueue"
        )
        for object_ in objects
        if text_at(object_.object, "kind") == "LocalQueue"
    }
    return tuple(_workload(manifest, homes) for manifest in each_workload_once(objects) if is_workload(manifest.object))


def _workload(manifest: Manifest, homes: dict[tuple[str, str], str]) -> PresentWorkload:
    plain, ref = manifest.object, object_ref(manifest.object)
    queue = (ref.namespace, text_at(plain, "spec", "queueName"))
    job = job_of(manifest)
    has_ended = has_condition(plain, "Finished")
    is_evicted = has_condition(plain, "Evicted") and not has_ended
    if has_ended:
        status = Status.FINISHED
    elif has_condition(plain, "Admitted") and not is_evicted:
        status = Status.ADMITTED
    else:
        status = Status.QUOTA_RESERVED if has_condition(plain, "QuotaReserved") else Status.PENDING
    runs_or_ran = status in (Status.ADMITTED, Status.FINISHED)
    return PresentWorkload(
        manifest=manifest,
        key=f"{ref.namespace}/{ref.name}",
        job="" if job is manifest else f"{text_at(job.object, 'kind')}/{text_at(job.object, 'metadata', 'name')}",
        local_queue=queue,
        cluster_queue=text_at(plain, "status", "admission", "clusterQueue") or homes.get(queue, ""),
        priority=int_at(plain, "spec", "priority"),
        status=status,
        created=_time(text_at(plain, "metadata", "creationTimestamp")),
        started=_since(plain, "Admitted") if runs_or_ran else None,
        ended=_since(plain, "Finished") if has_ended else None,
    )


def _since(plain: JsonObject, condition: str) -> int | None:
    """Return since when a condition is true."""
    for other in list_at(plain, "status", "conditions"):
        if (text_at(other, "type"), text_at(other, "status")) == (condition, "True"):
            return _time(text_at(other, "lastTransitionTime"))
    return None


def _time(text: str) -> int | None:
    try:
        return nanoseconds(text) if text else None
    except ValueError:
        # The run reports what is wrong with it.
        return None


def found_workload(workloads: Sequence[PresentWorkload], name: str) -> PresentWorkload:
    """Find a Workload by name.

    Args:
        workloads: The Workloads.
        name: `NAMESPACE/NAME` of the Workload or its job, or only the name if it is unique.

    Raises:
        ManifestError: There is no such Workload, or there are several.
    """
    for names in (_names, _names_of_jobs):
        found = [workload for workload in workloads if name in names(workload)]
        if len(found) == 1:
            return found[0]
        if found:
            remedy = f"write one of {', '.join(workload.key for workload in found[:5])}"
            raise ManifestError.of(f"{len(found)} Workloads are named {shown(name)}", remedy=remedy)
    known = [name for workload in workloads for name in (*_names(workload), *_names_of_jobs(workload))]
    near = near_names(name, known, n=3)
    pending = [workload.key for workload in workloads if workload.status is Status.PENDING]
    remedy = f"write {' or '.join(near)}" if near else "name one that waits: " + ", ".join(pending[:5])
    if not near and not pending:
        remedy = "name one of the Workloads; none of them waits"
    raise ManifestError.of(f"there is no Workload {shown(name)}", remedy=remedy)


def _names(workload: PresentWorkload) -> tuple[str, str]:
    return workload.key, workload.key.partition("/")[2]


def _names_of_jobs(workload: PresentWorkload) -> tuple[str, ...]:
    name = workload.job.partition("/")[2]
    return (f"{workload.local_queue[0]}/{name}", name) if name else ()
