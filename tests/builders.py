"""Small worlds for tests: a namespace, a flavor, a ClusterQueue and a LocalQueue, and workloads that ask for CPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kueuecore.configuration import Configuration
from kueuecore.decisions import Decision
from kueuecore.engine import Engine
from kueuecore.objects import (
    ClusterQueue,
    FlavorQuotas,
    LabelSelector,
    LocalQueue,
    Namespace,
    PodSet,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    Workload,
)
from kueuecore.objects import Quantity as Quantity
from kueuecore.states import Stage
from kueuecore.times import SECOND_NS, format_time, nanoseconds

T0 = nanoseconds("2026-01-01T00:00:00Z")


def at(seconds: int) -> int:
    """The time `seconds` after the beginning."""
    return T0 + seconds * SECOND_NS


def quota(
    nominal: Quantity, *, borrowing: Quantity | None = None, lending: Quantity | None = None, resource: str = "cpu"
) -> ResourceQuota:
    return ResourceQuota(resource, nominal_quota=nominal, borrowing_limit=borrowing, lending_limit=lending)


def group(quotas: Mapping[str, ResourceQuota | Iterable[ResourceQuota]]) -> ResourceGroup:
    """A resource group from quotas by flavor."""
    lists = {name: [q] if isinstance(q, ResourceQuota) else list(q) for name, q in quotas.items()}
    first = next(iter(lists.values()))
    return ResourceGroup([q.name for q in first], flavors=[FlavorQuotas(f, resources=qs) for f, qs in lists.items()])


def cluster_queue(name: str = "cq", cpu: Quantity = 10, *, cohort: str = "", **settings: Any) -> ClusterQueue:
    """A ClusterQueue with `cpu` of flavor `default`, unless `quotas` says otherwise, for every namespace."""
    quotas = settings.pop("quotas", {"default": quota(cpu)})
    settings.setdefault("namespace_selector", LabelSelector())
    return ClusterQueue(name, cohort_name=cohort, resource_groups=[group(quotas)], **settings)


def local_queue(name: str = "lq", to: str = "cq", **settings: Any) -> LocalQueue:
    return LocalQueue(name, namespace="ns", cluster_queue=to, **settings)


def workload(name: str, cpu: Quantity = 1, *, queue: str = "lq", created: int = 0, **settings: Any) -> Workload:
    """Workload `ns/name`: `count` pods that ask for `cpu` each, created `created` seconds after the beginning."""
    count, min_count = settings.pop("count", 1), settings.pop("min_count", None)
    pod_sets = settings.pop("pod_sets", [PodSet(count=count, min_count=min_count, requests={"cpu": cpu})])
    settings.setdefault("uid", f"uid-{name}")
    return Workload(
        name,
        namespace="ns",
        creation_timestamp=format_time(at(created)),
        queue_name=queue,
        pod_sets=pod_sets,
        **settings,
    )


def flavor(name: str = "default", **settings: Any) -> ResourceFlavor:
    return ResourceFlavor(name, **settings)


def world(*objects: Any, configuration: Configuration | None = None, empty: bool = False) -> Engine:
    """An engine with namespace `ns`, flavor `default` and LocalQueue `lq` of ClusterQueue `cq`, which has 10 CPUs, and
    with `objects`, which may replace any of them.
    """
    engine = Engine(configuration)
    own = [Namespace("ns"), flavor(), cluster_queue(), local_queue()]
    given = {(type(o), o.name) for o in objects}
    engine.apply([*(o for o in own if not empty and (type(o), o.name) not in given), *objects], now=T0)
    return engine


def admitted(decision: Decision) -> list[str]:
    """Names of the workloads that a cycle admitted, in order."""
    return [admission.name for admission in decision.admissions]


def settle(engine: Engine, now: int, *, limit: int = 200) -> list[str]:
    """Cycles until nothing changes any more; the names of what was admitted."""
    names: list[str] = []
    for _ in range(limit):
        decision = engine.cycle(now)
        names += admitted(decision)
        if not decision.has_changed_something:
            return names
    raise AssertionError(f"still busy after {limit} cycles")


def usage(engine: Engine, name: str = "cq", *, flavor: str = "default", resource: str = "cpu") -> str | None:
    """Usage of a ClusterQueue or Cohort."""
    rows = [r for r in engine.quota() if (r.name, r.flavor, r.resource) == (name, flavor, resource)]
    return rows[0].usage if rows else "0"


def condition(engine: Engine, name: str, kind: str) -> tuple[str, str, str] | None:
    """Status, reason and message of a condition of a workload."""
    for found in engine.workload(name, namespace="ns").status.get("conditions", ()):
        if found["type"] == kind:
            return found["status"], found["reason"], found.get("message", "")
    return None


def snapshot(engine: Engine) -> dict[str, Any]:
    """Everything that an engine reports about itself."""
    queues = engine.cluster_queues()
    return {
        "workloads": engine.workloads(),
        "statuses": [w.status for w in engine.workloads()],
        "quota": engine.quota(),
        "queues": [engine.cluster_queue(name).status for name in queues],
        "pending": [engine.pending(name) for name in queues],
    }


def story(engine: Engine, now: int, cycles: int = 6) -> list[Any]:
    """What the next cycles decide, a second apart."""
    reported: list[Any] = []
    for number in range(cycles):
        decision = engine.cycle(now + number * SECOND_NS)
        reported.append((decision.admissions, decision.preemptions, decision.pending, decision.parked, decision.events))
    return reported


def stage(engine: Engine, name: str) -> Stage:
    """The stage of Workload `ns/name`."""
    return engine.workload(name, namespace="ns").stage
