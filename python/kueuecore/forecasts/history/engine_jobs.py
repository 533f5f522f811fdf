"""Workloads of an engine as jobs of the past: from the journal of its calls, or from its saved state."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kueuecore._json import JsonObject, int_at
from kueuecore.engine import Engine
from kueuecore.errors import KueuecoreError, ManifestError, UnknownObjectError
from kueuecore.forecasts.history.dumped_jobs import seen_job
from kueuecore.forecasts.history.taken import Taken
from kueuecore.forecasts.past_jobs import PastJob, known_at
from kueuecore.forecasts.present_workloads import Status, present_workloads
from kueuecore.manifests import Manifest
from kueuecore.saved_engine import configuration_of

__all__ = ["taken_of_journal", "taken_of_saved_engine"]

_WORKLOAD, _LOCAL_QUEUE = "Workload", "LocalQueue"
_REMEDY = "give the journal as Engine.journal() returned it, to the version of kueuecore that wrote it"


def taken_of_journal(data: bytes, file: str, *, now: int) -> Taken:
    """Return the Workloads of a journal: its calls are repeated, and those that are deleted are remembered.

    Args:
        data: The journal, as JSON.
        file: Its name, for errors.
        now: The present, in nanoseconds since 1970; what happened later is not known.

    Raises:
        ManifestError: It cannot be replayed.
    """
    deleted: list[tuple[int, Manifest]] = []

    def remember(engine: Engine, name: str, arguments: tuple[object, ...], at: int) -> None:
        if name == "delete" and arguments[0] == _WORKLOAD:
            try:
                plain = engine.object(_WORKLOAD, str(arguments[2]), namespace=str(arguments[1]))
            except UnknownObjectError:
                return
            deleted.append((at, Manifest(plain)))

    try:
        journal: JsonObject = json.loads(data)
        engine = Engine.replay(journal, configuration=configuration_of(journal), before=remember)
    except (ValueError, RecursionError, KueuecoreError) as error:
        raise ManifestError.of(f"it cannot be replayed: {error}", remedy=_REMEDY, file=file) from None
    queues = [Manifest(plain) for plain in engine.objects(_LOCAL_QUEUE)]
    gone = [_gone(manifest, at, queues) for at, manifest in deleted]
    return _taken([*gone, *_held(engine, queues, int_at(journal, "now"))], file, now)


def taken_of_saved_engine(data: bytes, file: str, *, now: int) -> Taken:
    """Return the Workloads that a saved engine holds.

    Args:
        data: The result of `Engine.save`.
        file: Its name, for errors.
        now: The present, in nanoseconds since 1970; what happened later is not known.

    Raises:
        ManifestError: It is damaged, or of another version.
    """
    try:
        engine = Engine.load(data, configuration=configuration_of(data))
    except (ValueError, KueuecoreError) as error:
        raise ManifestError.of(f"it cannot be loaded: {error}", remedy="give a dump, or a journal", file=file) from None
    queues = [Manifest(plain) for plain in engine.objects(_LOCAL_QUEUE)]
    return _taken(_held(engine, queues, engine.now), file, now)


def _held(engine: Engine, queues: Sequence[Manifest], at: int) -> list[PastJob]:
    workloads = present_workloads([*queues, *map(Manifest, engine.objects(_WORKLOAD))])
    return [seen_job(workload, at) for workload in workloads]


def _gone(manifest: Manifest, at: int, queues: Sequence[Manifest]) -> PastJob:
    """Return a Workload that was deleted; if its job still ran, that was its end."""
    (workload,) = present_workloads([*queues, manifest])
    job = seen_job(workload, at)
    return job if workload.status is Status.FINISHED else replace(job, ended=at, seen=None)


def _taken(jobs: Iterable[PastJob], file: str, now: int) -> Taken:
    # Submissions to an engine that name no creation have one in 1970.
    found = [job if job.created else replace(job, created=None) for job in jobs]
    known = [job for one in found if (job := known_at(one, now)) is not None]
    if not found:
        raise ManifestError.of("no Workload is in it", remedy="give a journal of an engine that had some", file=file)
    return Taken(file=file, jobs=tuple(known), left_out={"created later than now": len(found) - len(known)})
