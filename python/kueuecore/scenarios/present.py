"""Scenarios that start from a cluster's current state: running Workloads keep running, others keep waiting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest, object_ref
from kueuecore.scenarios.distributions import Spans
from kueuecore.scenarios.work import Arrival
from kueuecore.simulation import JobPlan, NodeLoss
from kueuecore.times import later
from kueuecore.world import is_workload

__all__ = ["PRESENT", "Present", "PresentWork", "each_workload_once", "has_condition", "job_of", "present_work"]

PRESENT = "present"
"""The work name of the Workloads that wait at the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """How long the initial Workloads run.

    Args:
        runs: How much longer those that hold quota at the start run; None: forever.
        waiting_runs: How long those that wait at the start run once admitted; None: forever.
    """

    runs: Spans | None = None
    waiting_runs: Spans | None = None


@dataclass(frozen=True, slots=True)
class PresentWork:
    """The initial Workloads of a scenario.

    Args:
        objects: All other objects, and Workloads that run forever.
        running: The Workloads that hold quota and will end.
        waiting: The Workloads that wait, and will end after admission.
        warnings: Warnings about Workloads that run forever.
    """

    objects: tuple[Manifest, ...]
    running: tuple[tuple[Arrival, Manifest], ...]
    waiting: tuple[tuple[Arrival, Manifest], ...]
    warnings: tuple[str, ...]


def present_work(objects: Sequence[Manifest], present: Present, *, seed: int, start: int) -> PresentWork:
    """Give each initial Workload its run time.

    Args:
        objects: All initial objects.
        present: How long they run.
        seed: The seed of all random draws.
        start: The start time, in nanoseconds since 1970.

    Raises:
        ManifestError: One would run past April 2262.
    """
    running_spans = _spans(present.runs, f"{seed}/present/runs", "present.runs", start)
    waiting_spans = _spans(present.waiting_runs, f"{seed}/present/waitingRuns", "present.waitingRuns", start)
    left: list[Manifest] = []
    running: list[tuple[Arrival, Manifest]] = []
    waiting: list[tuple[Arrival, Manifest]] = []
    n_for_ever = {True: 0, False: 0}
    for manifest in each_workload_once(objects):
        if not is_workload(manifest.object) or has_condition(manifest.object, "Finished"):
            left.append(manifest)
            continue
        holds_quota = has_condition(manifest.object, "QuotaReserved")
        spans = running_spans if holds_quota else waiting_spans
        if spans is None:
            n_for_ever[holds_quota] += 1
            left.append(manifest)
        else:
            plan = JobPlan(run_seconds=next(spans), node_loss=NodeLoss.STARTS_OVER)
            (running if holds_quota else waiting).append(
                (Arrival(job=job_of(manifest), plan=plan, work=PRESENT), manifest)
            )
    warnings = [
        f"{n} of the Workloads that {what} at the start run forever; write `present.{field}`"
        for n, what, field in ((n_for_ever[True], "hold quota", "runs"), (n_for_ever[False], "wait", "waitingRuns"))
        if n
    ]
    return PresentWork(tuple(left), tuple(running), tuple(waiting), tuple(warnings))


def each_workload_once(objects: Sequence[Manifest]) -> Iterator[Manifest]:
    """Yield the objects, but of duplicate Workloads only the last, as in an API server."""
    last = {object_ref(object_.object): object_ for object_ in objects if is_workload(object_.object)}
    for object_ in objects:
        if not is_workload(object_.object):
            yield object_
        elif (workload := last.pop(object_ref(object_.object), None)) is not None:
            yield workload


def _spans(spans: Spans | None, seed: str, field: str, start: int) -> Iterator[float] | None:
    return None if spans is None else _checked(spans.draws(Random(seed)), field, start)


def _checked(spans: Iterator[float], field: str, start: int) -> Iterator[float]:
    for seconds in spans:
        try:
            later(start, seconds, field.rpartition(".")[2])
        except ValueError as error:
            message, _, remedy = str(error).partition("; ")
            raise ManifestError.of(message, field=field, remedy=remedy) from None
        yield seconds


def has_condition(workload: JsonObject, condition: str) -> bool:
    """Return whether a condition of a Workload is true."""
    return any(
        (text_at(other, "type"), text_at(other, "status")) == (condition, "True")
        for other in list_at(workload, "status", "conditions")
    )


def job_of(workload: Manifest) -> Manifest:
    """Return the job of a Workload as far as its owner says; without one, the Workload."""
    metadata = object_at(workload.object, "metadata")
    for owner in list_at(metadata, "ownerReferences"):
        if object_at(owner).get("controller") is True:
            names: JsonObject = {"name": text_at(owner, "name"), "namespace": text_at(metadata, "namespace")}
            return Manifest({"kind": text_at(owner, "kind"), "metadata": names})
    return workload
