"""Workloads of dumps, taken once or at several times, as jobs of the past."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from kueuecore._files import contents
from kueuecore._json import text_at
from kueuecore.errors import ManifestError, Problem
from kueuecore.forecasts.history.taken import Taken
from kueuecore.forecasts.past_jobs import PastJob, known_at, past_job_of
from kueuecore.forecasts.present_workloads import PresentWorkload, Status, present_workloads
from kueuecore.manifests import Manifest, object_ref, objects_of
from kueuecore.times import newest_time
from kueuecore.world import is_workload

__all__ = ["seen_job", "taken_of_dumps"]

_Identity: TypeAlias = tuple[str, ...]


def taken_of_dumps(path: Path, *, now: int, homes: Sequence[Manifest] = ()) -> Taken:
    """Return the Workloads of a dump, or of a folder of dumps that were taken at several times.

    Each file of a folder is a dump of its own, as new as the newest time in it. Of a Workload, the newest dump counts
    that has it. One that still ran in it has ended some time after that, if it is not in the present state either.

    Args:
        path: The file or folder.
        now: The present, in nanoseconds since 1970; what happened later is not known.
        homes: LocalQueues of the cluster, for dumps that have none.

    Raises:
        ManifestError: Files cannot be read, or none of them has a Workload.
    """
    dumps, notes = _dumps(path, homes)
    latest: dict[_Identity, tuple[int, PresentWorkload]] = {}
    n_seen = 0
    for dump in dumps:
        for workload in dump.workloads:
            n_seen += 1
            # Removed first: what a later dump has again takes its place in the order.
            latest.pop(identity := _identity(workload), None)
            latest[identity] = dump.taken, workload
    if not n_seen:
        remedy = "give dumps with Workloads, finished ones too: kueuecore dump, or kubectl get -A -o yaml workloads"
        raise ManifestError.of("no Workload is in it", remedy=remedy, file=str(path))
    seen = [seen_job(workload, taken) for taken, workload in latest.values()]
    jobs = [job for one in seen if (job := known_at(one, now)) is not None]
    left_out = {
        "an older state of the same Workload": n_seen - len(latest),
        "created later than now": len(seen) - len(jobs),
    }
    return Taken(file=str(path), jobs=tuple(jobs), left_out=left_out, notes=tuple(notes))


def seen_job(workload: PresentWorkload, at: int) -> PastJob:
    """Return a Workload as a job of the past, last seen at some moment."""
    job = past_job_of(workload)
    return job if workload.status is Status.FINISHED else replace(job, seen=at)


@dataclass(frozen=True, slots=True)
class _Dump:
    """A dump.

    Args:
        taken: Its newest time; when it was taken, as far as it shows.
        workloads: Its Workloads.
    """

    taken: int
    workloads: tuple[PresentWorkload, ...]


def _dumps(path: Path, homes: Sequence[Manifest]) -> tuple[list[_Dump], list[str]]:
    """Return the dumps, the oldest first, and notes about files that are none."""
    problems: list[Problem] = []
    others: list[Problem] = []
    found: list[list[Manifest]] = []
    queues = [manifest for manifest in homes if _is_queue(manifest)]
    for file in contents(path, problems, recursive=False):
        objects = objects_of(file, others, strict=False)
        queues += [manifest for manifest in objects if _is_queue(manifest)]
        found.append([manifest for manifest in objects if is_workload(manifest.object)])
    if problems:
        raise ManifestError(problems)
    # A queue of a later file replaces one of the same name; a file of queues alone is for all dumps.
    known = {object_ref(manifest.object): manifest for manifest in queues}
    dumps = [
        _Dump(max(newest_time(manifest.object) or 0 for manifest in workloads), _workloads(workloads, known.values()))
        for workloads in found
        if workloads
    ]
    return sorted(dumps, key=lambda dump: dump.taken), [str(problem) for problem in others]


def _workloads(workloads: Sequence[Manifest], queues: Iterable[Manifest]) -> tuple[PresentWorkload, ...]:
    return present_workloads([*queues, *workloads])


def _is_queue(manifest: Manifest) -> bool:
    return text_at(manifest.object, "kind") == "LocalQueue"


def _identity(workload: PresentWorkload) -> _Identity:
    plain = workload.manifest.object
    uid = text_at(plain, "metadata", "uid")
    return (uid,) if uid else (workload.key, text_at(plain, "metadata", "creationTimestamp"))
