"""Fleets with work as scenarios, to be run with one dispatcher and with another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from kueuecore.manifests import Manifest, parse_manifests
from kueuecore.scenarios import (
    ClusterPart,
    FleetPart,
    Scenario,
    ScenarioOutcome,
    Span,
    Work,
    WorkerPart,
    run_scenario,
)
from kueuecore.times import nanoseconds
from tests.unit.multikueue.worlds import CLUSTER, MULTIKUEUE, QUEUES, START, WITHOUT_CHECKS, job

MINUTE_NS = 60_000_000_000


def run(
    cpu: int,
    workers: Mapping[str, int],
    *,
    jobs: int = 6,
    every: float = 30,
    runs: float = 60,
    until: float | None = None,
    annotations: Mapping[str, str] | None = None,
    clusters: Mapping[str, Mapping[str, Any]] | None = None,
    dead: tuple[str, ...] = (),
    more: str = "",
    **options: Any,
) -> ScenarioOutcome:
    """Jobs of three cpus through a manager and workers with the given cpus of quota.

    Args:
        cpu: Quota of the manager.
        workers: Quota of the workers.
        jobs: How many jobs.
        every: How many seconds after one comes the next.
        runs: How many seconds each runs.
        until: When it ends, in seconds.
        annotations: Annotations of the jobs.
        clusters: Metadata of MultiKueueClusters.
        dead: Workers on which no pods start.
        more: More objects of the manager.
        options: Fields of the fleet; `queue` is the LocalQueue of the jobs.
    """
    queue = options.pop("queue", "lq")
    manager = [*parse_manifests(MULTIKUEUE.format(clusters=", ".join(workers)))]
    manager += parse_manifests(QUEUES.format(cpu=cpu, checks="[{name: multikueue}]") + more)
    for name in workers:
        (cluster,) = parse_manifests(CLUSTER.format(name=name))
        metadata = {"name": name, **dict((clusters or {}).get(name, {}))}
        manager.append(Manifest({**cluster.object, "metadata": metadata}))
    template = job("train", cpu=3, queue=queue)
    template["metadata"]["annotations"] = dict(annotations or {})
    fleet = FleetPart(
        manager=ClusterPart(objects=tuple(manager)),
        workers={
            name: WorkerPart(
                cluster=ClusterPart(objects=parse_manifests(WITHOUT_CHECKS.format(cpu=quota))),
                starts_pods=name not in dead,
            )
            for name, quota in workers.items()
        },
        **options,
    )
    work = Work(name="train", job=Manifest(template), count=jobs, every=Span(every), runs=Span(runs))
    return run_scenario(Scenario(fleet=fleet, work=(work,), seed=1, start=nanoseconds(START), until_seconds=until))


def places(outcome: ScenarioOutcome) -> Counter[str]:
    """How many jobs were on which worker last."""
    return Counter(other.cluster for other in outcome.jobs)
