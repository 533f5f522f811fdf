"""The part of a scenario that is a fleet: a manager, its workers, the ways between them, and who gets what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kueuecore._json import JsonObject
from kueuecore.fleet import LinkSettings
from kueuecore.multikueue import AllAtOnce, Dispatcher, Incremental, OverflowPolicy
from kueuecore.multikueue.policies import (
    Filtered,
    Overflow,
    Overridden,
    Score,
    Scored,
    TakingBack,
    by_cost,
    by_data,
    by_free_quota,
    by_priority,
    by_weight,
)
from kueuecore.scenarios.cluster_part import ClusterPart
from kueuecore.scenarios.fields import Fields

__all__ = ["Disconnection", "FleetPart", "WorkerPart", "read_fleet"]

_SECOND_NS = 1_000_000_000
_VALUED: Mapping[str, Callable[[Mapping[str, float] | None], Score]] = {
    "priority": by_priority,
    "cost": by_cost,
    "weight": by_weight,
}
_CHOICES = ("all-at-once", "incremental", *_VALUED, "data", "free-quota")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPart:
    """A worker.

    Args:
        cluster: Its objects.
        link: The way to it.
        starts_pods: Do pods start there? Without, it has quota for what it can not run.
    """

    cluster: ClusterPart
    link: LinkSettings = field(default_factory=LinkSettings)
    starts_pods: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Disconnection:
    """A time in which nothing gets through to a worker.

    Args:
        worker: The worker.
        at: When it begins, in seconds from the beginning.
        lasts: How long, in seconds; None: for ever.
    """

    worker: str
    at: float
    lasts: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPart:
    """A manager and its workers.

    Args:
        manager: The manager.
        workers: The workers by name.
        dispatcher: Who gets copies; None: whom the Configuration of the manager names.
        overflow: Which jobs go on to workers when quota on the manager is short.
        disconnections: When nothing gets through.
    """

    manager: ClusterPart
    workers: Mapping[str, WorkerPart]
    dispatcher: Dispatcher | None = None
    overflow: OverflowPolicy | None = None
    disconnections: tuple[Disconnection, ...] = ()


def read_fleet(section: Fields, read_cluster: Callable[[Fields], ClusterPart]) -> FleetPart:
    """A fleet as it stands in the file.

    Args:
        section: Its fields.
        read_cluster: Reads the fields that every cluster has.
    """
    manager = ClusterPart()
    part = section.part("manager")
    if part is None:
        section.complain("manager", "Required value", "say `manager: {objects: [manager.yaml]}`")
    else:
        manager = read_cluster(part)
        part.end()
    workers = {name: _worker(it, read_cluster) for name, it in section.named_parts("workers")}
    if not workers:
        section.complain("workers", "Required value", "name at least one worker with its objects")
    policy, overflow = section.part("policy"), section.part("overflow")
    disconnections = tuple(_disconnection(it, workers) for it in section.parts("disconnections"))
    fleet = FleetPart(
        manager=manager,
        workers=workers,
        dispatcher=None if policy is None else _dispatcher(policy, workers),
        overflow=None if overflow is None else _overflow(overflow),
        disconnections=disconnections,
    )
    section.end()
    return fleet


def _worker(section: Fields, read_cluster: Callable[[Fields], ClusterPart]) -> WorkerPart:
    link = section.part("link")
    worker = WorkerPart(
        cluster=read_cluster(section),
        link=LinkSettings() if link is None else _link(link),
        starts_pods=section.truth("startsPods", default=True),
    )
    section.end()
    return worker


def _link(section: Fields) -> LinkSettings:
    defaults = LinkSettings()
    least = section.whole("leastMs", defaults.least_ms)
    most = section.whole("mostMs", max(defaults.most_ms, least))
    if most < least:
        section.complain("mostMs", f"Invalid value: {most}", f"write at least leastMs, which is {least}")
    link = LinkSettings(
        least_ms=least,
        most_ms=most,
        lost_requests=section.whole("lostRequests", defaults.lost_requests),
        lost_answers=section.whole("lostAnswers", defaults.lost_answers),
        repeated_events=section.whole("repeatedEvents", defaults.repeated_events),
        timeout_ms=section.whole("timeoutMs", defaults.timeout_ms, least=1),
    )
    section.end()
    return link


def _disconnection(section: Fields, workers: Mapping[str, WorkerPart]) -> Disconnection:
    worker = section.text("worker", one_of=list(workers))
    found = Disconnection(worker=worker, at=section.seconds("at") or 0.0, lasts=section.seconds("lasts"))
    if section.plain.get("worker") is None:
        section.complain("worker", "Required value", f"name one of {', '.join(workers)}")
    section.end()
    return found


def _overflow(section: Fields) -> Overflow:
    queues = section.part("queues")
    if queues is None:
        section.complain("queues", "Required value", "say `queues: {here: workers}`: from which LocalQueue to which")
    found = {} if queues is None else {name: queues.text(name) for name in queues.plain}
    overflow = Overflow(found, patience_ns=_ns(section.seconds("patience", 0.0)) or 0)
    section.end()
    return overflow


def _dispatcher(section: Fields, workers: Mapping[str, WorkerPart]) -> Dispatcher:
    """Who chooses, and around it what it leaves to others: constraints, taking back, overrides."""
    dispatcher = _choosing(section, workers)
    if section.truth("constraints", default=False):
        dispatcher = Filtered(dispatcher)
    admit, start = section.seconds("admitWithin"), section.seconds("startWithin")
    exclude, most = section.seconds("excludeFor", 600.0), section.whole("mostAttempts", 0)
    if admit is not None or start is not None:
        dispatcher = TakingBack(
            inner=dispatcher,
            admit_ns=_ns(admit),
            start_ns=_ns(start),
            exclude_ns=_ns(exclude) or 0,
            most_attempts=most or None,
        )
    if overrides := section.part("overrides"):
        patches: dict[str, list[JsonObject]] = {}
        for name in overrides.plain:
            if name not in workers:
                overrides.complain(name, "no worker of this name", f"name one of {', '.join(workers)}")
            patches[name] = [dict(it.plain) for it in overrides.parts(name)]
        dispatcher = Overridden(dispatcher, patches)
    section.end()
    return dispatcher


def _choosing(section: Fields, workers: Mapping[str, WorkerPart]) -> Dispatcher:
    choose = section.text("choose", "all-at-once", one_of=_CHOICES)
    values = section.part("values")
    numbers = None if values is None else {name: values.number(name) for name in values.plain}
    for name in numbers or ():
        if values is not None and name not in workers:
            values.complain(name, "no worker of this name", f"name one of {', '.join(workers)}")
    resource, prefers_room = section.text("resource", "cpu"), section.truth("prefersRoom", default=False)
    is_incremental = choose == "incremental"
    step_size = section.whole("stepSize", 3 if is_incremental else 1, least=1)
    round_ns = _ns(section.seconds("round", 300.0)) or 0
    if is_incremental:
        return Incremental(step_size=step_size, round_ns=round_ns)
    if choose == "all-at-once":
        return AllAtOnce()
    scores: dict[str, Score] = {"data": by_data(), "free-quota": by_free_quota(resource)}
    score = scores[choose] if choose in scores else _VALUED[choose](numbers)
    return Scored(score=score, step_size=step_size, round_ns=round_ns, prefers_room=prefers_room)


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * _SECOND_NS)
