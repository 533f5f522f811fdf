"""The fleet of a scenario: a manager, its workers, the links between them, and the dispatching."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kueuecore._fields import Fields
from kueuecore._json import text_at
from kueuecore.fleet import MAX_MS, LinkSettings
from kueuecore.multikueue import MANAGER, Dispatcher, OverflowPolicy
from kueuecore.multikueue.functions import DispatchFunction
from kueuecore.scenarios.cluster_part import ClusterPart
from kueuecore.scenarios.policy_part import read_overflow, read_policy

__all__ = ["Disconnection", "FleetPart", "WorkerPart", "read_fleet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPart:
    """A worker.

    Args:
        cluster: Its objects.
        link: The network link to it.
        starts_pods: Whether pods start there. If not, it has quota but nothing can run.
    """

    cluster: ClusterPart
    link: LinkSettings = field(default_factory=LinkSettings)
    starts_pods: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Disconnection:
    """A time in which a worker is unreachable.

    Args:
        worker: The worker.
        at: When it begins, in seconds from the start.
        lasts: How long, in seconds; None: forever.
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
        dispatcher: The dispatcher: an object, or a function of a `Dispatch`. Or a function without arguments that
            makes one; it is called for each run, after everything else has been checked. None: the one that the
            manager's Configuration names.
        overflow: Which jobs move to workers when the manager is short of quota.
        disconnections: When workers are unreachable.
    """

    manager: ClusterPart
    workers: Mapping[str, WorkerPart]
    dispatcher: Dispatcher | DispatchFunction | Callable[[], Dispatcher] | None = None
    overflow: OverflowPolicy | None = None
    disconnections: tuple[Disconnection, ...] = ()


def read_fleet(
    section: Fields, read_cluster: Callable[[Fields], ClusterPart], folder: Path, *, allow_code: bool
) -> FleetPart:
    """Read a fleet.

    Args:
        section: Its fields.
        read_cluster: Reads the fields that every cluster has.
        folder: The folder that file names in it are relative to.
        allow_code: Whether it may name a program.
    """
    manager = ClusterPart()
    part = section.part("manager")
    if part is None:
        section.complain("manager", "Required value", "write `manager: {objects: [manager.yaml]}`")
    else:
        manager = read_cluster(part)
        part.end()
    workers = {name: _worker(named_part, read_cluster) for name, named_part in section.named_parts("workers")}
    if not section.plain.get("workers"):
        section.complain("workers", "Required value", "name at least one worker with its objects")
    if MANAGER in workers:
        section.complain("workers", "a worker without a name", "write the name of its MultiKueueCluster")
    names = {kind: _names_of(manager, kind) for kind in ("MultiKueueCluster", "LocalQueue")}
    for name in sorted(workers.keys() - names["MultiKueueCluster"]) if manager.objects else ():
        remedy = "add one to the manager, or rename the worker"
        section.complain(f"workers.{name}", "the manager has no MultiKueueCluster of this name", remedy)
    policy, overflow = section.part("policy"), section.part("overflow")
    disconnections = tuple(_disconnection(part, workers) for part in section.parts("disconnections"))
    fleet = FleetPart(
        manager=manager,
        workers=workers,
        dispatcher=None if policy is None else read_policy(policy, list(workers), folder, allow_code=allow_code),
        overflow=None if overflow is None else read_overflow(overflow, names["LocalQueue"]),
        disconnections=disconnections,
    )
    section.end()
    return fleet


def _names_of(cluster: ClusterPart, kind: str) -> frozenset[str]:
    """Return the names of all objects of a kind, in any namespace."""
    objects = (object_.object for object_ in cluster.objects)
    return frozenset(text_at(object_, "metadata", "name") for object_ in objects if text_at(object_, "kind") == kind)


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
    least = section.whole("leastMs", defaults.least_ms, most=MAX_MS)
    most = section.whole("mostMs", max(defaults.most_ms, least), most=MAX_MS)
    lost_requests = section.whole("lostRequests", defaults.lost_requests, most=1000)
    lost_answers = section.whole("lostAnswers", defaults.lost_answers, most=1000)
    repeated_events = section.whole("repeatedEvents", defaults.repeated_events, most=1000)
    timeout = section.whole("timeoutMs", defaults.timeout_ms, most=MAX_MS)
    section.end()
    if most < least:
        section.complain("mostMs", f"Invalid value: {most}", f"write at least leastMs, which is {least}")
        return defaults
    if timeout <= 2 * most:
        remedy = f"write more than {2 * most}, the longest round trip"
        section.complain("timeoutMs", f"Invalid value: {timeout}", remedy)
        return defaults
    return LinkSettings(
        least_ms=least,
        most_ms=most,
        lost_requests=lost_requests,
        lost_answers=lost_answers,
        repeated_events=repeated_events,
        timeout_ms=timeout,
    )


def _disconnection(section: Fields, workers: Mapping[str, WorkerPart]) -> Disconnection:
    worker = section.text("worker", one_of=list(workers))
    found = Disconnection(worker=worker, at=section.seconds("at") or 0.0, lasts=section.seconds("lasts"))
    if section.plain.get("worker") is None:
        section.complain("worker", "Required value", f"name one of {', '.join(workers)}")
    section.end()
    return found
