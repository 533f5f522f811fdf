"""Runs a scenario of several clusters: a MultiKueue manager and its workers (rules/06)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from operator import methodcaller
from random import Random
from typing import TypeAlias

from kueuecore._json import text_at
from kueuecore._spans import span
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, OutOfTimeError, UnsettledError
from kueuecore.fleet import KINDS, Fleet, NodeSettings, is_job, run_ns
from kueuecore.manifests import Manifest
from kueuecore.multikueue import MANAGER, Dispatcher
from kueuecore.multikueue.functions import DispatchFunction, is_dispatch_function
from kueuecore.provisioning import QueuedCapacity, ScriptedCapacity
from kueuecore.scenarios.cluster_part import ClusterPart
from kueuecore.scenarios.fleet_log import ON_MANAGER, outage_table
from kueuecore.scenarios.fleet_metrics import with_clusters
from kueuecore.scenarios.fleet_part import FleetPart
from kueuecore.scenarios.fleet_quota import quotas_of
from kueuecore.scenarios.fleet_results import FleetResults
from kueuecore.scenarios.fleet_watch import FleetWatch
from kueuecore.scenarios.idle_failures import idle_failures
from kueuecore.scenarios.job_outcomes import JobOutcomes
from kueuecore.scenarios.node_timetable import node_changes, nodes_of
from kueuecore.scenarios.outcomes import ScenarioEnding, ScenarioOutcome
from kueuecore.scenarios.scenario import Scenario
from kueuecore.scenarios.scenario_warnings import warnings_of
from kueuecore.scenarios.time_limits import BEFORE_NS
from kueuecore.scenarios.work import Arrival, arrivals_of
from kueuecore.times import END_NS, SECOND_NS, format_time
from kueuecore.world import AppliedWorld, World

__all__ = ["simulate_fleet"]

_DAY_NS = 24 * 3600 * SECOND_NS
# Without `until`: what has not ended a day after the last outside event never will.
_MAX_NS = _DAY_NS
# Far more than happens in a fleet, per job, and per day on which a worker is unreachable.
_MAX_STEPS = 100_000
_MAX_STEPS_OF_A_JOB = 1_000
_MAX_STEPS_OF_A_DAY = 2_000
_MAX_DAYS = 100
# More notes than anyone reads.
_MAX_OUTAGES = 10

_Happening: TypeAlias = tuple[int, Callable[[Fleet], None]]


def simulate_fleet(scenario: Scenario, part: FleetPart, *, follow: Collection[str] = ()) -> ScenarioOutcome:
    """Run a scenario of a fleet to its end. A policy that is a program is loaded only after all other checks.

    Args:
        scenario: The scenario.
        part: Its fleet.
        follow: The Workloads or jobs of which all versions are kept.

    Raises:
        ManifestError: Everything that is wrong with the objects or jobs; otherwise, with the policy.
        OutOfTimeError: It would run past April 2262.
    """
    arrivals = arrivals_of(scenario.work, scenario.seed)
    objects, applied = _checked_objects(scenario, part, [arrival.job for arrival in arrivals])
    happenings = sorted(
        [*_disconnections(scenario, part), *_failures(scenario, part), *_arrivals(scenario, arrivals)],
        key=lambda disconnection: disconnection[0],
    )
    end = _end(scenario, happenings)
    days = min((end - scenario.start) // _DAY_NS, _MAX_DAYS)
    most_steps = _MAX_STEPS + _MAX_STEPS_OF_A_JOB * len(arrivals) + _MAX_STEPS_OF_A_DAY * days * len(part.workers)
    stops = scenario.until_seconds is None
    fleet = _fleet(scenario, part)
    watch, ending, notes = FleetWatch(fleet, arrivals, follow), ScenarioEnding.COMPLETE, list[str]()
    try:
        for name, given in objects.items():
            fleet.apply(given, cluster=name)
        fleet.advance(scenario.start)
        watch.look()
        for time, happen in happenings:
            if time <= end and not (stops and watch.is_over):
                _advance(fleet, watch, until=time, most_steps=most_steps, stops=stops)
                happen(fleet)
                watch.look()
        _advance(fleet, watch, until=end, most_steps=most_steps, stops=stops)
    except UnsettledError as error:
        watch.look()
        ending = ScenarioEnding.UNSETTLED
        notes.append(str(error))
    said = [*scenario.skipped, *scenario.notes, *notes, *fleet.problems, *_outages(fleet, scenario.start)]
    jobs = JobOutcomes.of(watch.outcomes())
    return ScenarioOutcome(
        start=scenario.start,
        end=fleet.now,
        jobs=jobs,
        fleet=_results(scenario, fleet, watch, jobs),
        ending=ending,
        notes=tuple(dict.fromkeys(said)),
        quotas=quotas_of(fleet, tuple(part.workers)),
        warnings=(
            *warnings_of(applied, others=fleet.manager.manager_kinds),
            *(failure for name in objects for failure in _idle_failures(part, name, objects[name])),
        ),
        versions=watch.versions,
        workload_keys=watch.workload_keys,
    )


def _results(scenario: Scenario, fleet: Fleet, watch: FleetWatch, jobs: JobOutcomes) -> FleetResults:
    names = (MANAGER, *sorted(scenario.worker_releases))
    releases = {MANAGER: scenario.release, **scenario.worker_releases}
    return FleetResults(
        start=scenario.start,
        end=fleet.now,
        clusters=tuple(name or ON_MANAGER for name in names),
        releases=tuple(releases[name].tag for name in names),
        notices=scenario.experiment_notices,
        job_outcomes=jobs,
        stays=watch.log.stays(fleet.now),
        quotas=watch.log.quotas(),
        outages=outage_table(fleet.connections, fleet.now),
        copies=watch.log.copies(),
        metrics=with_clusters({name or ON_MANAGER: fleet.nodes[name].metrics_text() for name in names}),
    )


def _checked_objects(
    scenario: Scenario, part: FleetPart, jobs: Sequence[Manifest]
) -> tuple[dict[str, list[Manifest]], list[AppliedWorld]]:
    """Return the initial objects by cluster, and warnings about them.

    The in-memory API server accepts everything, so an engine checks them.

    Raises:
        ManifestError: Everything that is wrong with the objects or the jobs.
    """
    for job in jobs:
        if not is_job(job.object):
            remedy = f"use one of {', '.join(KINDS)}"
            raise ManifestError([job.problem("jobs of this kind cannot run in a fleet", remedy=remedy)])
        run_ns(job.object)
    checked, applied = {}, []
    for name, cluster in {
        **{name: worker.cluster for name, worker in part.workers.items()},
        MANAGER: part.manager,
    }.items():
        given = [*nodes_of(cluster.nodes, start=scenario.start), *cluster.objects]
        world = World.of([*given, *(jobs if name == MANAGER else ())], configuration=cluster.configuration)
        applied.append(world.apply_to(Engine(cluster.configuration), now=scenario.start, dry_run=True))
        checked[name] = [
            manifest for manifest in world.manifests if text_at(manifest.object, "kind") not in (*KINDS, "Workload")
        ]
    return checked, applied


def _dispatcher(part: FleetPart) -> Dispatcher | DispatchFunction | None:
    """Return what decides; what has to be made is made for each run."""
    given = part.dispatcher
    if given is None or isinstance(given, Dispatcher) or is_dispatch_function(given):
        return given
    make: Callable[[], Dispatcher] = given  # type: ignore[assignment]  # a function without arguments
    return make()


def _outages(fleet: Fleet, start: int) -> Iterator[str]:
    """Yield how long the manager was without each worker. It tries again after pauses."""
    lost: dict[str, int] = {}
    found: list[tuple[int, str]] = []
    for time, worker, is_connected in fleet.connections:
        if not is_connected:
            lost[worker] = time
        elif worker in lost:
            since = lost.pop(worker)
            found.append((since, f"{worker} was lost after {span(since - start)}, and back after {span(time - start)}"))
    found += [(since, f"{worker} was lost after {span(since - start)}, and not back") for worker, since in lost.items()]
    yield from (says for _, says in sorted(found)[:_MAX_OUTAGES])
    if len(found) > _MAX_OUTAGES:
        yield f"workers were lost {len(found) - _MAX_OUTAGES} more times"


def _idle_failures(part: FleetPart, name: str, objects: Sequence[Manifest]) -> Iterator[str]:
    cluster, field = part.manager, "fleet.manager.nodes"
    if name != MANAGER:
        cluster, field = part.workers[name].cluster, f"fleet.workers.{name}.nodes"
    return idle_failures(cluster.nodes, objects, configuration=cluster.configuration, field=field)


def _fleet(scenario: Scenario, part: FleetPart) -> Fleet:
    nodes = {
        name: _settings(scenario, name, worker.cluster, worker.starts_pods) for name, worker in part.workers.items()
    }
    nodes[MANAGER] = _settings(scenario, MANAGER, part.manager, starts_pods=True)
    return Fleet(
        part.workers,
        now=scenario.start - BEFORE_NS,
        seed=scenario.seed,
        nodes=nodes,
        dispatcher=_dispatcher(part),
        overflow=part.overflow,
        links={name: worker.link for name, worker in part.workers.items()},
    )


def _settings(scenario: Scenario, name: str, cluster: ClusterPart, starts_pods: bool) -> NodeSettings:
    """Return a cluster's settings. Each has its own random order outcomes; without stocks all arrive at once."""
    seed = Random(f"{scenario.seed}/{name}").randrange(2**32)
    capacity = QueuedCapacity(cluster.capacity, seed=seed) if cluster.capacity else ScriptedCapacity()
    return NodeSettings(
        configuration=cluster.configuration, capacity=capacity, starts_pods=starts_pods, has_metrics=True
    )


def _arrivals(scenario: Scenario, arrivals: Sequence[Arrival]) -> Iterator[_Happening]:
    for arrival in arrivals:
        at = scenario.start + round(arrival.at * SECOND_NS)
        yield (
            at,
            methodcaller(
                "submit", arrival.job, run_seconds=arrival.plan.run_seconds, ends_failed=arrival.plan.ends_failed
            ),
        )


def _disconnections(scenario: Scenario, part: FleetPart) -> Iterator[_Happening]:
    for disconnection in part.disconnections:
        begin = scenario.start + round(disconnection.at * SECOND_NS)
        yield begin, methodcaller("cut", disconnection.worker)
        if disconnection.lasts is not None:
            yield begin + round(disconnection.lasts * SECOND_NS), methodcaller("mend", disconnection.worker)


def _failures(scenario: Scenario, part: FleetPart) -> Iterator[_Happening]:
    for name, cluster in {
        MANAGER: part.manager,
        **{name: worker.cluster for name, worker in part.workers.items()},
    }.items():
        for node_change in node_changes(cluster.nodes, seed=scenario.seed, start=scenario.start):
            at = scenario.start + round(node_change.at * SECOND_NS)
            if node_change.manifest is None:
                yield at, methodcaller("delete", "Node", node_change.name, cluster=name)
            else:
                yield at, methodcaller("apply", node_change.manifest, cluster=name)


def _end(scenario: Scenario, happenings: Sequence[_Happening]) -> int:
    """Return the latest end, in nanoseconds since 1970."""
    if scenario.until_seconds is not None:
        return scenario.start + round(scenario.until_seconds * SECOND_NS)
    end = max((time for time, _ in happenings), default=scenario.start) + _MAX_NS
    if end >= END_NS:
        raise OutOfTimeError("the day after the last event goes")
    return end


def _advance(fleet: Fleet, watch: FleetWatch, *, until: int, most_steps: int, stops: bool = False) -> None:
    """Advance to a time, or only until all jobs have ended."""
    while not (stops and watch.is_over):
        time = fleet.next_event_time()
        if time is None or time > until:
            fleet.advance(until)
            return
        fleet.advance(max(time, fleet.now))
        watch.look()
        if fleet.n_steps > most_steps:
            reported = f"{fleet.n_steps} things have happened by {format_time(fleet.now)}"
            raise UnsettledError(f"the fleet never settles: {reported}")
