"""The current Workloads of a cluster: which have ended, run or wait, and since when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore._near_names import near_names
from kueuecore._text import shown
from kueuecore.checks import WorkloadKey
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest, object_ref
from kueuecore.scenarios.present import each_workload_once, has_condition, job_of
from kueuecore.times import nanoseconds
from kueuecore.world import is_workload

__all__ = [
    "LocalQueueName",
    "PresentWorkload",
    "Status",
    "found_workload",
    "homes_of",
    "present_workload",
    "present_workloads",
    "since_condition",
    "without_ended",
]

LocalQueueName: TypeAlias = tuple[str, str]
"""Its namespace and name."""


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
    local_queue: LocalQueueName
    cluster_queue: str
    priority: int
    status: Status
    created: int | None
    started: int | None
    ended: int | None

    @property
    def namespace_and_name(self) -> WorkloadKey:
        """The two parts of its key."""
        ref = object_ref(self.manifest.object)
        return ref.namespace, ref.name

    @property
    def is_active(self) -> bool:
        """Whether it may be admitted: its owner has not stopped it (`spec.active`)."""
        return object_at(self.manifest.object, "spec").get("active") is not False


def present_workloads(objects: Sequence[Manifest]) -> tuple[PresentWorkload, ...]:
    """Return the Workloads among some objects, in order; of duplicates, the last one.

    Args:
        objects: All objects of the cluster.
    """
    homes = homes_of(objects)
    manifests = (manifest for manifest in each_workload_once(objects) if is_workload(manifest.object))
    return tuple(present_workload(manifest, homes) for manifest in manifests)


def homes_of(objects: Sequence[Manifest]) -> dict[LocalQueueName, str]:
    """Return the ClusterQueue of each LocalQueue among some objects."""
    return {
        (object_ref(object_.object).namespace, object_ref(object_.object).name): text_at(
            object_.object, "spec", "clusterQueue"
        )
        for object_ in objects
        if text_at(object_.object, "kind") == "LocalQueue"
    }


def without_ended(
    objects: Sequence[Manifest], known: Callable[[Manifest], bool] = lambda manifest: False
) -> tuple[list[Manifest], list[Manifest]]:
    """Divide objects into those that matter now, and Workloads that have ended.

    An ended Workload whose job is among the objects stays with it: without it, the job would get a new one.

    Args:
        objects: All objects of the cluster.
        known: Whether a Workload is known to have ended.
    """
    alive: list[Manifest] = []
    ended: list[Manifest] = []
    for it in objects:
        has_ended = known(it) or (is_workload(it.object) and has_condition(it.object, "Finished"))
        (ended if has_ended else alive).append(it)
    kinds = {text_at(it.object, "kind") for it in alive}
    owned = [it for it in ended if any(text_at(owner, "kind") in kinds for owner in _owners(it))]
    if owned:
        names = {(text_at(it.object, "kind"), object_ref(it.object)) for it in alive}
        jobs = {id(it): job_of(it).object for it in owned}
        stays = {key for key, job in jobs.items() if (text_at(job, "kind"), object_ref(job)) in names}
        alive += [it for it in owned if id(it) in stays]
        ended = [it for it in ended if id(it) not in stays]
    return alive, ended


def _owners(workload: Manifest) -> Sequence[JsonValue]:
    return list_at(workload.object, "metadata", "ownerReferences")


def present_workload(manifest: Manifest, homes: Mapping[LocalQueueName, str]) -> PresentWorkload:
    """Return what a Workload says about its status.

    Args:
        manifest: The Workload.
        homes: The ClusterQueue of each LocalQueue.
    """
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
        started=since_condition(plain, "Admitted") if runs_or_ran else None,
        ended=since_condition(plain, "Finished") if has_ended else None,
    )


def since_condition(plain: JsonObject, condition: str) -> int | None:
    """Return since when a condition of a Workload is true; None: it is not, or that is unknown."""
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
