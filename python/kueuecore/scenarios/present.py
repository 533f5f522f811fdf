"""A scenario that begins with what a cluster has now: Workloads that run go on, others go on waiting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest, object_ref
from kueuecore.scenarios.distributions import Spans
from kueuecore.scenarios.work import Arrival
from kueuecore.times import later
from kueuecore.world import is_workload

__all__ = ["PRESENT", "Present", "PresentWork", "each_workload_once", "has_condition", "job_of", "present_work"]

PRESENT = "present"
"""The name of the work that the Workloads belong to which wait in the beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """How long the Workloads among the objects run.

    Args:
        runs: How much longer those run that hold quota in the beginning; None: for ever.
        waiting_runs: How long those run that wait in the beginning, once they are admitted; None: for ever.
    """

    runs: Spans | None = None
    waiting_runs: Spans | None = None


@dataclass(frozen=True, slots=True)
class PresentWork:
    """The Workloads among the objects of a scenario.

    Args:
        objects: The objects that are no such Workloads, or such that run for ever.
        running: Those that hold quota and end.
        waiting: Those that wait and end once they were admitted.
        warnings: How many run for ever.
    """

    objects: tuple[Manifest, ...]
    running: tuple[tuple[Arrival, Manifest], ...]
    waiting: tuple[tuple[Arrival, Manifest], ...]
    warnings: tuple[str, ...]


def present_work(objects: Sequence[Manifest], present: Present, *, seed: int, start: int) -> PresentWork:
    """Give each Workload among the objects its time to run.

    Args:
        objects: All objects of the beginning.
        present: How long they run.
        seed: Where everything comes from that is drawn.
        start: The beginning, in nanoseconds since 1970.

    Raises:
        ManifestError: One would run beyond April 2262.
    """
    running_spans = _spans(present.runs, f"{seed}/present/runs", "present.runs", start)
    waiting_spans = _spans(present.waiting_runs, f"{seed}/present/waitingRuns", "present.waitingRuns", start)
    left: list[Manifest] = []
    running: list[tuple[Arrival, Manifest]] = []
    waiting: list[tuple[Arrival, Manifest]] = []
    n_for_ever = {True: 0, False: 0}
    for it in each_workload_once(objects):
        if not is_workload(it.object) or has_condition(it.object, "Finished"):
            left.append(it)
            continue
        holds_quota = has_condition(it.object, "QuotaReserved")
        spans = running_spans if holds_quota else waiting_spans
        if spans is None:
            n_for_ever[holds_quota] += 1
            left.append(it)
        else:
            (running if holds_quota else waiting).append((Arrival(0.0, PRESENT, job_of(it), next(spans)), it))
    warnings = [
        f"{n} of the Workloads that {what} in the beginning run for ever; write `present.{field}`"
        for n, what, field in ((n_for_ever[True], "hold quota", "runs"), (n_for_ever[False], "wait", "waitingRuns"))
        if n
    ]
    return PresentWork(tuple(left), tuple(running), tuple(waiting), tuple(warnings))


def each_workload_once(objects: Sequence[Manifest]) -> Iterator[Manifest]:
    """The objects, but of a Workload that is given twice only the last, as an API server would have it."""
    last = {object_ref(it.object): it for it in objects if is_workload(it.object)}
    for it in objects:
        if not is_workload(it.object):
            yield it
        elif (workload := last.pop(object_ref(it.object), None)) is not None:
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
    """Is a condition of a Workload true?"""
    return any(
        (text_at(it, "type"), text_at(it, "status")) == (condition, "True")
        for it in list_at(workload, "status", "conditions")
    )


def job_of(workload: Manifest) -> Manifest:
    """The job that a Workload is of, as far as it says; without one, the Workload."""
    metadata = object_at(workload.object, "metadata")
    for owner in list_at(metadata, "ownerReferences"):
        if object_at(owner).get("controller") is True:
            names: JsonObject = {"name": text_at(owner, "name"), "namespace": text_at(metadata, "namespace")}
            return Manifest({"kind": text_at(owner, "kind"), "metadata": names})
    return workload
