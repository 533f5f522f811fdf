"""A scenario of several clusters: a manager of MultiKueue and its workers (rules/06)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random

from kueuecore._json import text_at
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.fleet import KINDS, Fleet, NodeSettings
from kueuecore.manifests import Manifest
from kueuecore.multikueue import MANAGER
from kueuecore.provisioning import QueuedCapacity, ScriptedCapacity
from kueuecore.scenarios.cluster_part import ClusterPart
from kueuecore.scenarios.fleet_part import FleetPart
from kueuecore.scenarios.fleet_quota import quotas_of
from kueuecore.scenarios.fleet_watch import FleetWatch
from kueuecore.scenarios.outcomes import ScenarioOutcome
from kueuecore.scenarios.scenario import Scenario
from kueuecore.scenarios.work import Arrival, arrivals_of
from kueuecore.world import World

__all__ = ["simulate_fleet"]

_SECOND_NS = 1_000_000_000
# All workers are connected by then.
_BEFORE_NS = 10 * _SECOND_NS
# Without another end: what has not ended a day after the last thing that happens from outside will not.
_LONGEST_NS = 24 * 3600 * _SECOND_NS


def simulate_fleet(scenario: Scenario, part: FleetPart) -> ScenarioOutcome:
    """Run a scenario of a fleet to its end.

    Raises:
        ManifestError: Everything that is wrong with the objects or the jobs.
    """
    arrivals = arrivals_of(scenario.work, scenario.seed)
    fleet = _fleet(scenario, part, [it.job for it in arrivals])
    watch = FleetWatch(fleet, arrivals)
    happenings = [*_disconnections(fleet, scenario, part), *_arrivals(fleet, scenario, arrivals)]
    happenings.sort(key=lambda it: it[0])
    until = scenario.until_seconds
    last = max((time for time, _ in happenings), default=scenario.start)
    end = last + _LONGEST_NS if until is None else scenario.start + round(until * _SECOND_NS)
    for time, happen in happenings:
        if time <= end:
            _advance(fleet, watch, until=time)
            happen()
            watch.look()
    _advance(fleet, watch, until=end, stops=until is None)
    return ScenarioOutcome(
        start=scenario.start,
        end=fleet.now,
        jobs=watch.outcomes(),
        is_fleet=True,
        notes=tuple(dict.fromkeys(fleet.problems)),
        quotas=quotas_of(fleet, tuple(part.workers)),
    )


def _fleet(scenario: Scenario, part: FleetPart, jobs: Sequence[Manifest]) -> Fleet:
    workers = {name: it.cluster for name, it in part.workers.items()}
    nodes = {name: _settings(scenario, name, it.cluster, it.starts_pods) for name, it in part.workers.items()}
    nodes[MANAGER] = _settings(scenario, MANAGER, part.manager, starts_pods=True)
    fleet = Fleet(
        workers,
        now=scenario.start - _BEFORE_NS,
        seed=scenario.seed,
        nodes=nodes,
        dispatcher=part.dispatcher,
        overflow=part.overflow,
        links={name: it.link for name, it in part.workers.items()},
    )
    for name, cluster in {**workers, MANAGER: part.manager}.items():
        world = World.of([*cluster.objects, *(jobs if name == MANAGER else ())], configuration=cluster.configuration)
        # An API server in memory takes everything: what is wrong is found by an engine.
        world.apply_to(Engine(cluster.configuration), now=scenario.start)
        given = [it for it in world.manifests if text_at(it.object, "kind") not in (*KINDS, "Workload")]
        fleet.apply(given, cluster=name)
    fleet.advance(scenario.start)
    return fleet


def _settings(scenario: Scenario, name: str, cluster: ClusterPart, starts_pods: bool) -> NodeSettings:
    """What a cluster has. Each draws for itself what becomes of orders; without stocks all come at once."""
    seed = Random(f"{scenario.seed}/{name}").randrange(2**32)
    capacity = QueuedCapacity(cluster.capacity, seed=seed) if cluster.capacity else ScriptedCapacity()
    return NodeSettings(configuration=cluster.configuration, capacity=capacity, starts_pods=starts_pods)


def _arrivals(
    fleet: Fleet, scenario: Scenario, arrivals: Sequence[Arrival]
) -> Iterator[tuple[int, Callable[[], None]]]:
    for it in arrivals:
        if it.key[0] not in KINDS:
            remedy = f"give one of {', '.join(KINDS)}"
            raise ManifestError([it.job.problem("no kind of jobs that runs in a fleet", remedy=remedy)])
        at = scenario.start + round(it.at * _SECOND_NS)
        yield at, partial(fleet.submit, it.job, run_seconds=it.run_seconds)


def _disconnections(fleet: Fleet, scenario: Scenario, part: FleetPart) -> Iterator[tuple[int, Callable[[], None]]]:
    for it in part.disconnections:
        begin = scenario.start + round(it.at * _SECOND_NS)
        yield begin, partial(fleet.cut, it.worker)
        if it.lasts is not None:
            yield begin + round(it.lasts * _SECOND_NS), partial(fleet.mend, it.worker)


def _advance(fleet: Fleet, watch: FleetWatch, *, until: int, stops: bool = False) -> None:
    """Let time pass up to a time, or only until all jobs are over."""
    while not (stops and watch.is_over):
        time = fleet.next_event_time()
        if time is None or time > until:
            fleet.advance(until)
            return
        fleet.advance(max(time, fleet.now))
        watch.look()
