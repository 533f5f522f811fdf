"""A scenario of one cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kueuecore._json import text_at
from kueuecore.engine import Engine
from kueuecore.errors import ObjectRef, UnknownObjectError
from kueuecore.manifests import Manifest, object_ref, plain_object
from kueuecore.provisioning import QueuedCapacity, VirtualProvisioning
from kueuecore.scenarios.cluster_part import ClusterPart
from kueuecore.scenarios.generator_reader import GeneratedRun, work_class
from kueuecore.scenarios.node_timetable import NodeChange, node_changes, nodes_of
from kueuecore.scenarios.outcomes import JobOutcome, ScenarioEnding, ScenarioOutcome, node_evictions
from kueuecore.scenarios.present import present_work
from kueuecore.scenarios.scenario import Scenario
from kueuecore.scenarios.scenario_warnings import warnings_of
from kueuecore.scenarios.timetable import timetable_happenings
from kueuecore.scenarios.work import Arrival, arrivals_of
from kueuecore.simulation import simulate
from kueuecore.simulation.run import Happening, Operation, Run
from kueuecore.states import WorkloadState
from kueuecore.world import AppliedWorld, World

__all__ = ["simulate_cluster"]

_MOST_CYCLES = 1_000_000


def simulate_cluster(scenario: Scenario, cluster: ClusterPart) -> ScenarioOutcome:
    """Run a scenario of one cluster to its end.

    Raises:
        ManifestError: Everything that is wrong with the objects or the jobs.
    """
    arrivals = arrivals_of(scenario.work, scenario.seed, others=_generated(scenario.generated))
    jobs = [it.job for it in arrivals]
    generated = () if scenario.generated is None else map(Manifest, scenario.generated.objects)
    # What the scenario says itself comes in place of what was generated.
    given = [*generated, *nodes_of(cluster.nodes, start=scenario.start), *cluster.objects]
    world = World.of([*given, *jobs], configuration=cluster.configuration)
    by_key = {it.key: it for it in arrivals}
    made = {id(it): by_key.get(_key(world.jobs[_place(it)])) for it in world.made}
    objects: list[Manifest] = []
    coming: list[tuple[Arrival, Manifest]] = []
    for manifest in world.manifests:
        arrival = made.get(id(manifest)) or by_key.get(_key(manifest))
        if arrival is None:
            objects.append(manifest)
        elif text_at(manifest.object, "kind") == "Workload":
            coming.append((arrival, manifest))
    present = present_work(objects, scenario.present, seed=scenario.seed, start=scenario.start)
    coming += present.waiting
    coming.sort(key=lambda it: it[0].at)
    changes = node_changes(cluster.nodes, seed=scenario.seed, start=scenario.start)
    # Of the same time, nodes change first, then what the timetable says, and then jobs come.
    timetable = timetable_happenings(scenario)
    running = (_happening(*it) for it in present.running)
    events = [*running, *map(_node_happening, changes), *timetable, *(_happening(*it) for it in coming)]
    run = _run(scenario, cluster, present.objects, events)
    until = _until(scenario)
    notes = (
        *(f"{it}; until then the job waits" for it in world.waiting),
        *(f"{it}; it gets no Workload" for it in world.ignored),
    )
    applied = World.of(given, configuration=cluster.configuration).apply_to(
        Engine(cluster.configuration), now=scenario.start
    )
    return ScenarioOutcome(
        start=run.start,
        # The last cycle may take longer than there is time.
        end=run.end if until is None else min(run.end, until),
        jobs=_outcomes(run, coming),
        ending=ScenarioEnding(run.ending),
        notes=notes,
        warnings=(*present.warnings, *warnings_of([AppliedWorld(world.warnings, {}), applied])),
    )


def _run(scenario: Scenario, part: ClusterPart, objects: Sequence[Manifest], events: Sequence[Happening]) -> Run:
    stocks = part.capacity
    return simulate(
        objects,
        events,
        configuration=part.configuration,
        checks=[VirtualProvisioning(QueuedCapacity(stocks, seed=scenario.seed))] if stocks else [],
        now=scenario.start,
        until=_until(scenario),
        max_cycles=_MOST_CYCLES,
        cycle_seconds=scenario.cycle_seconds,
    )


def _until(scenario: Scenario) -> int | None:
    return None if scenario.until_seconds is None else scenario.start + round(scenario.until_seconds * 1e9)


def _happening(arrival: Arrival, workload: Manifest) -> Happening:
    return Happening(
        at=arrival.at,
        op=Operation.CREATE,
        object=workload,
        run_seconds=arrival.run_seconds,
        linger_seconds=arrival.linger_seconds,
        node_loss=arrival.node_loss,
    )


def _node_happening(change: NodeChange) -> Happening:
    if change.manifest is None:
        return Happening(at=change.at, op=Operation.DELETE, kind="Node", key=change.name)
    return Happening(at=change.at, op=Operation.CREATE, object=change.manifest)


def _generated(run: GeneratedRun | None) -> Iterator[Arrival]:
    """The Workloads of Kueue's performance tests; each class is a work."""
    for event in () if run is None else run.events:
        workload = Manifest({} if event.object is None else plain_object(event.object))
        yield Arrival(event.at, work_class(workload.object), workload, event.run_seconds)


def _outcomes(run: Run, coming: Sequence[tuple[Arrival, Manifest]]) -> tuple[JobOutcome, ...]:
    table, numbers = run.outcome_table, {key: number for number, key in enumerate(run.workload_keys)}
    outcomes = []
    for arrival, workload in coming:
        ref = object_ref(workload.object)
        number = numbers.get(ref.key)
        if number is None:
            # It would have come after the end.
            continue
        row, state = table[number], _state(run, ref)
        admitted, finished = int(row["admitted"]), int(row["finished"])
        kind, namespace, name = arrival.key
        outcomes.append(
            JobOutcome(
                work=arrival.work,
                job=f"{kind}/{name}",
                namespace=namespace,
                workload=ref.name,
                cluster_queue="" if state is None else state.cluster_queue or "",
                created=int(row["created"]),
                admitted=None if admitted < 0 else admitted,
                finished=None if finished < 0 else finished,
                n_admissions=int(row["admissions"]),
                n_evictions=int(row["evictions"]),
                n_replacements=int(row["replacements"]),
                n_node_evictions=0 if state is None else node_evictions(dict(state.status)),
                message="deleted" if state is None else "" if admitted >= 0 else state.message,
            )
        )
    return tuple(outcomes)


def _state(run: Run, ref: ObjectRef) -> WorkloadState | None:
    """A workload as it stands at the end; None if the timetable has deleted it."""
    try:
        return run.engine.workload(ref.name, namespace=ref.namespace)
    except UnknownObjectError:
        return None


def _key(manifest: Manifest) -> tuple[str, str, str]:
    ref = object_ref(manifest.object)
    return ref.kind, ref.namespace, ref.name


def _place(manifest: Manifest) -> tuple[str, str]:
    ref = object_ref(manifest.object)
    return ref.namespace, ref.name
