"""Small worlds of ClusterQueues with quota for cpu, and jobs of one pod."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore.configuration import Configuration
from kueuecore.decisions import Decision
from kueuecore.engine import Engine
from kueuecore.objects import (
    BorrowWithinCohort,
    BorrowWithinCohortPolicy,
    ClusterQueue,
    ClusterQueuePreemption,
    Cohort,
    FlavorFungibility,
    FlavorQuotas,
    LabelSelector,
    LocalQueue,
    Namespace,
    PodSet,
    QueueingStrategy,
    ReclaimWithinCohortPolicy,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    WithinClusterQueuePolicy,
    Workload,
)

LOWER = WithinClusterQueuePolicy.LOWER_PRIORITY
NEWER = WithinClusterQueuePolicy.LOWER_OR_NEWER_EQUAL_PRIORITY
RECLAIM_LOWER = ReclaimWithinCohortPolicy.LOWER_PRIORITY
RECLAIM_ANY = ReclaimWithinCohortPolicy.ANY

WITHIN = ClusterQueuePreemption(within_cluster_queue=LOWER)
RECLAIM = ClusterQueuePreemption(reclaim_within_cohort=RECLAIM_LOWER)
BORROW = ClusterQueuePreemption(
    reclaim_within_cohort=RECLAIM_LOWER,
    borrow_within_cohort=BorrowWithinCohort(BorrowWithinCohortPolicy.LOWER_PRIORITY),
)

HIGH, LOW = 100, 0

CONFIGURATION = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}"
FAIR = CONFIGURATION[:-1] + (
    ", fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}}"
)


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"


def queue(
    name: str,
    quotas: dict[str, str],
    *,
    cohort: str = "",
    borrowing: str | None = None,
    lending: str | None = None,
    preemption: ClusterQueuePreemption | None = None,
    strategy: QueueingStrategy = QueueingStrategy.BEST_EFFORT_FIFO,
    fungibility: FlavorFungibility | None = None,
) -> list[ClusterQueue | LocalQueue]:
    """A ClusterQueue with quota for cpu in each flavor, and a LocalQueue of the same name."""
    flavors = [
        FlavorQuotas(
            flavor,
            resources=[ResourceQuota("cpu", nominal_quota=cpu, borrowing_limit=borrowing, lending_limit=lending)],
        )
        for flavor, cpu in quotas.items()
    ]
    cluster_queue = ClusterQueue(
        name,
        cohort_name=cohort,
        namespace_selector=LabelSelector(),
        resource_groups=[ResourceGroup(["cpu"], flavors=flavors)],
        preemption=preemption or ClusterQueuePreemption(),
        queueing_strategy=strategy,
        flavor_fungibility=fungibility or FlavorFungibility(),
    )
    return [cluster_queue, LocalQueue(name, namespace="ns", cluster_queue=name)]


def job(name: str, cpu: str, in_queue: str, *, priority: int = 0, created: int = 0) -> Workload:
    return Workload(
        name,
        namespace="ns",
        uid=f"uid-{name}",
        creation_timestamp=at(created),
        queue_name=in_queue,
        priority=priority,
        pod_sets=[PodSet(requests={"cpu": cpu})],
    )


Thing = ClusterQueue | LocalQueue | Workload | Cohort


def world(*things: Thing | Iterable[Thing], configuration: Configuration | None = None) -> Engine:
    engine = Engine(configuration)
    flat = [thing for given in things for thing in ([given] if isinstance(given, Thing) else given)]
    flavors = sorted(
        {f.name for q in flat if isinstance(q, ClusterQueue) for g in q.resource_groups for f in g.flavors}
    )
    engine.apply([Namespace("ns"), *(ResourceFlavor(name) for name in flavors), *flat], now=at(0))
    return engine


def run(engine: Engine, *jobs: Workload, second: int) -> Decision:
    """The jobs come, and a cycle is run."""
    engine.apply(jobs, now=at(second))
    return engine.cycle(at(second))


def start(engine: Engine, *jobs: Workload, first: int = 1) -> None:
    """The jobs come one by one, and each is admitted before the next comes."""
    for second, each in enumerate(jobs, start=first):
        assert admitted(run(engine, each, second=second)) == [each.name]


def admitted(decision: Decision) -> list[str]:
    return [admission.name for admission in decision.admissions]


def victims(decision: Decision) -> dict[str, str]:
    """Who has to give way, and the reason."""
    return {preemption.name: preemption.reason for preemption in decision.preemptions}


def flavor_of(engine: Engine, name: str) -> str:
    return engine.workload(name, namespace="ns").flavors["main"]["cpu"]
