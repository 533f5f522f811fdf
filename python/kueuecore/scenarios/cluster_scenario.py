"""A scenario of one cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kueuecore._json import text_at
from kueuecore.engine import Engine
from kueuecore.errors import UnknownObjectError
from kueuecore.manifests import Manifest, object_ref, plain_object
from kueuecore.provisioning import QueuedCapacity, VirtualProvisioning
from kueuecore.scenarios.cluster_part import ClusterPart
from kueuecore.scenarios.job_outcomes import JobNames, JobOutcome, JobOutcomes, Labels, empty_numbers, node_evictions
from kueuecore.scenarios.job_rows import JobRows
from kueuecore.scenarios.node_timetable import NodeChange, node_changes, nodes_of
from kueuecore.scenarios.outcomes import ScenarioEnding, ScenarioOutcome
from kueuecore.scenarios.present import present_work
from kueuecore.scenarios.scenario import Scenario
from kueuecore.scenarios.scenario_warnings import warnings_of
from kueuecore.scenarios.timetable import timetable_happenings
from kueuecore.scenarios.work import Arrival
from kueuecore.simulation import simulate
from kueuecore.simulation.checkpoint import Checkpoint
from kueuecore.simulation.copies import Copies
from kueuecore.simulation.run import Happening, Operation, Progress, Run
from kueuecore.states import WorkloadState
from kueuecore.world import AppliedWorld, World, is_workload

__all__ = ["simulate_cluster"]

# Far more than any cluster needs for the jobs that come.
_MOST_CYCLES = 1_000_000
_MOST_CYCLES_OF_A_JOB = 100


def simulate_cluster(
    scenario: Scenario, cluster: ClusterPart, *, progress: Progress | None, checkpoint: Checkpoint | None
) -> ScenarioOutcome:
    """Run a scenario of one cluster to its end.

    Raises:
        ManifestError: Everything that is wrong with the objects, the jobs or the checkpoint.
    """
    generated = () if scenario.generated is None else map(Manifest, scenario.generated.objects)
    # What the scenario says itself comes in place of what was generated.
    given = [*generated, *nodes_of(cluster.nodes, start=scenario.start), *cluster.objects]
    rows = JobRows.of(
        given,
        scenario.work,
        generated=scenario.generated,
        traces=scenario.traces,
        configuration=cluster.configuration,
        seed=scenario.seed,
    )
    present = present_work(rows.objects, scenario.present, seed=scenario.seed, start=scenario.start)
    changes = node_changes(cluster.nodes, seed=scenario.seed, start=scenario.start)
    # Of the same time, nodes change first, then what the timetable says, and then jobs come.
    events = [
        *(_happening(*it) for it in present.running),
        *map(_node_happening, changes),
        *timetable_happenings(scenario),
        *(_happening(*it) for it in present.waiting),
    ]
    run = _run(scenario, cluster, present.objects, rows.copies, events, progress, checkpoint)
    created = [*rows.objects, *filter(None, map(_created, events))]
    queues = _cluster_queues(created)
    # Workloads of events have the first numbers, and those that waited in the beginning the last of these.
    n_of_events = sum(it is not None for it in map(_workload_of, events))
    has_nodes = any(text_at(it.object, "kind") == "Node" for it in created)
    copied = _copied_jobs(run, rows, queues, first=n_of_events, has_nodes=has_nodes)
    # Those that ran before are no jobs of the scenario.
    numbers = range(n_of_events - len(present.waiting), n_of_events)
    waiting = [_job_outcome(run, number, *it, queues) for number, it in zip(numbers, present.waiting, strict=True)]
    until = _until(scenario)
    notes = (
        *(f"{it}; until then the job waits" for it in rows.world.waiting),
        *(f"{it}; it gets no Workload" for it in rows.world.ignored),
    )
    applied = World.of(given, configuration=cluster.configuration).apply_to(
        Engine(cluster.configuration), now=scenario.start
    )
    return ScenarioOutcome(
        start=run.start,
        # The last cycle may take longer than there is time.
        end=run.end if until is None else min(run.end, until),
        jobs=copied if not waiting else JobOutcomes.of([*waiting, *copied]),
        run=run,
        ending=ScenarioEnding(run.ending),
        notes=notes,
        warnings=(*present.warnings, *warnings_of([AppliedWorld(rows.world.warnings, {}), applied])),
    )


def _run(
    scenario: Scenario,
    part: ClusterPart,
    objects: Sequence[Manifest],
    copies: Copies,
    events: Sequence[Happening],
    progress: Progress | None,
    checkpoint: Checkpoint | None,
) -> Run:
    stocks = part.capacity
    return simulate(
        objects,
        events,
        copies=copies,
        configuration=part.configuration,
        checks=[VirtualProvisioning(QueuedCapacity(stocks, seed=scenario.seed))] if stocks else [],
        now=scenario.start,
        until=_until(scenario),
        max_cycles=max(_MOST_CYCLES, _MOST_CYCLES_OF_A_JOB * len(copies)),
        cycle_seconds=scenario.cycle_seconds,
        cycles=False,
        finished=False,
        progress=progress,
        checkpoint=checkpoint,
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


def _created(event: Happening) -> Manifest | None:
    """What an event creates."""
    if event.object is None or event.op is not Operation.CREATE:
        return None
    return event.object if isinstance(event.object, Manifest) else Manifest(plain_object(event.object))


def _workload_of(event: Happening) -> Manifest | None:
    """The Workload that an event creates."""
    created = _created(event)
    return created if created is not None and is_workload(created.object) else None


def _node_happening(change: NodeChange) -> Happening:
    if change.manifest is None:
        return Happening(at=change.at, op=Operation.DELETE, kind="Node", key=change.name)
    return Happening(at=change.at, op=Operation.CREATE, object=change.manifest)


def _copied_jobs(
    run: Run, rows: JobRows, queues: Mapping[tuple[str, str], str], *, first: int, has_nodes: bool
) -> JobOutcomes:
    """What became of the jobs that are rows.

    Args:
        run: The run.
        rows: The jobs.
        queues: The ClusterQueue of each LocalQueue.
        first: The number of the first row; the Workloads of events come before.
        has_nodes: May any job have lost a node? Then those that were evicted are looked at one by one.
    """
    table = run.outcome_table[first : first + len(rows.copies)]
    # Others would have come after the end.
    there = np.flatnonzero(table["created"] >= 0)
    numbers = empty_numbers(len(there))
    for name in ("created", "admitted", "finished", "admissions", "evictions", "replacements"):
        numbers[name] = table[name][there]
    for index in np.flatnonzero(numbers["evictions"]).tolist() if has_nodes else ():
        row = int(there[index])
        state = _state(run, rows.copies.namespace(row), rows.copies.name(row))
        numbers["node_evictions"][index] = 0 if state is None else node_evictions(dict(state.status))
    template = rows.copies.template[there].astype(np.int64)

    def names(index: int) -> JobNames:
        row = int(there[index])
        kind, name = rows.job(row)
        copies = rows.copies
        message = _message(run, copies.namespace(row), copies.name(row), numbers[index])
        return JobNames(
            job=f"{kind}/{name}", namespace=copies.namespace(row), workload=copies.name(row), message=message
        )

    homes = [queues.get(_local_queue(it), "") for it in rows.copies.templates]
    labels = {
        "work": Labels.of(rows.works).of_rows(template),
        "cluster_queue": Labels.of(homes).of_rows(template),
        "cluster": Labels(("",), np.zeros(len(there), np.int64)),
    }
    return JobOutcomes(labels, numbers, names)


def _cluster_queues(objects: Iterable[Manifest]) -> Mapping[tuple[str, str], str]:
    """The ClusterQueue of each LocalQueue, which never changes, by its namespace and name."""
    return {
        _place(it): text_at(it.object, "spec", "clusterQueue")
        for it in objects
        if text_at(it.object, "kind") == "LocalQueue"
    }


def _place(manifest: Manifest) -> tuple[str, str]:
    """Namespace and name."""
    ref = object_ref(manifest.object)
    return ref.namespace, ref.name


def _local_queue(template: Happening) -> tuple[str, str]:
    plain = {} if template.object is None else plain_object(template.object)
    return text_at(plain, "metadata", "namespace"), text_at(plain, "spec", "queueName")


def _job_outcome(
    run: Run, number: int, arrival: Arrival, workload: Manifest, queues: Mapping[tuple[str, str], str]
) -> JobOutcome:
    """What became of a Workload that waited in the beginning, and has this number in the run."""
    namespace, name = _place(workload)
    row = run.outcome_table[number]
    state, kind = _state(run, namespace, name), arrival.key[0]
    admitted, finished = int(row["admitted"]), int(row["finished"])
    return JobOutcome(
        work=arrival.work,
        job=f"{kind}/{arrival.key[2]}",
        namespace=namespace,
        workload=name,
        cluster_queue=queues.get((namespace, text_at(workload.object, "spec", "queueName")), ""),
        created=int(row["created"]),
        admitted=None if admitted < 0 else admitted,
        finished=None if finished < 0 else finished,
        n_admissions=int(row["admissions"]),
        n_evictions=int(row["evictions"]),
        n_replacements=int(row["replacements"]),
        n_node_evictions=0 if state is None else node_evictions(dict(state.status)),
        message=_message(run, namespace, name, row),
    )


def _message(run: Run, namespace: str, name: str, row: np.void) -> str:
    """Why a job waits, or that it was deleted."""
    if row["finished"] >= 0:
        return ""
    state = _state(run, namespace, name)
    if state is None:
        return "deleted"
    return "" if row["admitted"] >= 0 else state.message


def _state(run: Run, namespace: str, name: str) -> WorkloadState | None:
    """A Workload at the end; None: its job has ended, or it was deleted."""
    try:
        return run.engine.workload(name, namespace=namespace)
    except UnknownObjectError:
        return None
