"""Runs a scenario of one cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from kueuecore._json import JsonObject, text_at
from kueuecore.engine import Engine
from kueuecore.errors import UnknownObjectError
from kueuecore.manifests import Manifest, object_ref, plain_object
from kueuecore.scenarios.cluster_part import ClusterPart
from kueuecore.scenarios.idle_failures import idle_failures
from kueuecore.scenarios.job_outcomes import JobNames, JobOutcomes, Labels, empty_numbers, node_evictions
from kueuecore.scenarios.job_rows import JobRows
from kueuecore.scenarios.node_timetable import NodeChange, node_changes, nodes_of
from kueuecore.scenarios.outcomes import ScenarioEnding, ScenarioOutcome
from kueuecore.scenarios.present import present_work
from kueuecore.scenarios.queue_findings import LocalQueueName, evictions_beside, missing_queues
from kueuecore.scenarios.scenario import Scenario
from kueuecore.scenarios.scenario_warnings import unused_configurations, warnings_of
from kueuecore.scenarios.work import Arrival
from kueuecore.simulation import simulate
from kueuecore.simulation.checkpoint import Checkpoint
from kueuecore.simulation.copies import Copies
from kueuecore.simulation.run import Happening, Operation, Progress, Run
from kueuecore.states import WorkloadState
from kueuecore.waiting_cause import message_or_cause
from kueuecore.world import AppliedWorld, World, is_workload

__all__ = ["changes_of", "simulate_cluster"]

# Far more than any cluster needs for its jobs.
_MAX_CYCLES = 1_000_000
_MAX_CYCLES_OF_A_JOB = 100


def simulate_cluster(
    scenario: Scenario,
    cluster: ClusterPart,
    *,
    progress: Progress | None,
    checkpoint: Checkpoint | None,
    keeps_events: bool = False,
) -> ScenarioOutcome:
    """Run a scenario of one cluster to its end; `keeps_events` keeps `Run.events`.

    Raises:
        ManifestError: Everything that is wrong with the objects, the jobs or the checkpoint.
    """
    generated = () if scenario.generated is None else map(Manifest, scenario.generated.objects)
    # The scenario's own objects replace generated ones.
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
    # At the same time, nodes change first, then the timetable applies, then jobs arrive.
    events = [
        *(_happening(*row) for row in present.running),
        *changes_of(scenario, cluster),
        *(_happening(*problem) for problem in present.waiting),
    ]
    run = _run(scenario, cluster, present.objects, rows.copies, events, progress, checkpoint, keeps_events)
    created = [*rows.objects, *filter(None, map(_created, events))]
    queues = _cluster_queues(created)
    # Workloads of events have the first numbers, with those that waited at the start last among them. Those that ran at
    # the start are not jobs of the scenario.
    n_before = sum(event is not None for event in map(_workload_of, events)) - len(present.waiting)
    has_nodes = any(text_at(object_.object, "kind") == "Node" for object_ in created)
    jobs = _jobs(run, rows, present.waiting, queues, first=n_before, has_nodes=has_nodes)
    until = _until(scenario)
    notes = (
        *scenario.skipped,
        *scenario.notes,
        *(note for trace in scenario.traces for note in trace.trace.notes),
        *(f"{problem}; until then the job waits" for problem in rows.world.waiting),
        *(f"{ignored}; it gets no Workload" for ignored in rows.world.ignored),
        *rows.world.assumed,
        *evictions_beside(jobs, run),
    )
    applied = World.of(given, configuration=cluster.configuration).apply_to(
        Engine(cluster.configuration), now=scenario.start, dry_run=True
    )
    return ScenarioOutcome(
        start=run.start,
        # The last cycle may end after the limit.
        end=run.end if until is None else min(run.end, until),
        jobs=jobs,
        run=run,
        ending=ScenarioEnding(run.ending),
        notes=notes,
        warnings=(
            *present.warnings,
            *unused_configurations(cluster.objects, cluster.configuration),
            *warnings_of([AppliedWorld(rows.world.warnings, {}), applied]),
            *idle_failures(cluster.nodes, created, configuration=cluster.configuration, field="cluster.nodes"),
            *missing_queues(jobs, _local_queues(rows, present.waiting), queues, run.engine),
        ),
        left_out=tuple(left_out for trace in scenario.traces if (left_out := trace.left_out).reasons),
    )


def changes_of(scenario: Scenario, cluster: ClusterPart) -> list[Happening]:
    """Return the changes of objects during a scenario: at the same time, nodes before the timetable."""
    happenings = list(map(_node_happening, node_changes(cluster.nodes, seed=scenario.seed, start=scenario.start)))
    if scenario.timetable:
        from kueuecore.scenarios.timetable import timetable_happenings  # few scenarios have one

        happenings += timetable_happenings(scenario)
    return happenings


def _run(
    scenario: Scenario,
    part: ClusterPart,
    objects: Sequence[Manifest],
    copies: Copies,
    events: Sequence[Happening],
    progress: Progress | None,
    checkpoint: Checkpoint | None,
    keeps_events: bool,
) -> Run:
    return simulate(
        objects,
        events,
        copies=copies,
        configuration=part.configuration,
        checks=part.checks(seed=scenario.seed),
        now=scenario.start,
        until=_until(scenario),
        max_cycles=max(_MAX_CYCLES, _MAX_CYCLES_OF_A_JOB * len(copies)),
        cycle_seconds=scenario.cycle_seconds,
        messages=keeps_events,
        cycles=False,
        finished=False,
        progress=progress,
        checkpoint=checkpoint,
    )


def _until(scenario: Scenario) -> int | None:
    return None if scenario.until_seconds is None else scenario.start + round(scenario.until_seconds * 1e9)


def _happening(arrival: Arrival, workload: Manifest) -> Happening:
    return Happening(at=arrival.at, op=Operation.CREATE, object=workload, plan=arrival.plan)


def _created(event: Happening) -> Manifest | None:
    """Return the object that an event creates."""
    if event.object is None or event.op is not Operation.CREATE:
        return None
    return event.object if isinstance(event.object, Manifest) else Manifest(plain_object(event.object))


def _workload_of(event: Happening) -> Manifest | None:
    """Return the Workload that an event creates."""
    created = _created(event)
    return created if created is not None and is_workload(created.object) else None


def _node_happening(change: NodeChange) -> Happening:
    if change.manifest is None:
        return Happening(at=change.at, op=Operation.DELETE, kind="Node", key=change.name)
    return Happening(at=change.at, op=Operation.CREATE, object=change.manifest)


def _jobs(
    run: Run,
    rows: JobRows,
    waiting: Sequence[tuple[Arrival, Manifest]],
    queues: Mapping[LocalQueueName, str],
    *,
    first: int,
    has_nodes: bool,
) -> JobOutcomes:
    """Return the outcomes of the Workloads that waited at the start, then of the jobs in rows.

    Args:
        run: The run.
        rows: The jobs that arrived.
        waiting: The Workloads that waited at the start.
        queues: The ClusterQueue of each LocalQueue.
        first: The number in the run of the first that waited; all others follow.
        has_nodes: Whether a job may have lost a node. Then the evicted ones are checked one by one.
    """
    n_waiting, copies = len(waiting), rows.copies
    table = run.outcome_table[first : first + n_waiting + len(copies)]
    # The others would have arrived after the end.
    there = np.flatnonzero(table["created"] >= 0)
    numbers = empty_numbers(len(there))
    for name in ("created", "admitted", "finished", "admissions", "evictions", "replacements"):
        numbers[name] = table[name][there]
    numbers["failed"] = run.failed[first + there]

    def place(row: int) -> tuple[str, str]:
        if row < n_waiting:
            return _place(waiting[row][1])
        return copies.namespace(row - n_waiting), copies.name(row - n_waiting)

    for index in np.flatnonzero(numbers["evictions"]).tolist() if has_nodes else ():
        state = _state(run, *place(int(there[index])))
        numbers["node_evictions"][index] = 0 if state is None else node_evictions(dict(state.status))

    # Workloads of one shape wait for one cause, which takes a search to find.
    causes: dict[int | str, str] = {}

    def cause(row: int, state: WorkloadState) -> str:
        shape = str(waiting[row][1].object.get("spec")) if row < n_waiting else int(copies.template[row - n_waiting])
        if shape not in causes:
            causes[shape] = message_or_cause(run.engine, state)
        return causes[shape]

    def names(index: int) -> JobNames:
        row = int(there[index])
        kind, name = waiting[row][0].key[::2] if row < n_waiting else rows.job(row - n_waiting)
        namespace, workload = place(row)
        message = _message(run, namespace, workload, numbers[index], partial(cause, row))
        return JobNames(job=f"{kind}/{name}", namespace=namespace, workload=workload, message=message)

    # Look up what jobs have in common once per waiting Workload and once per template.
    alike = np.concatenate([np.arange(n_waiting), n_waiting + copies.template.astype(np.int64)])[there]
    works = [*(arrival.work for arrival, _ in waiting), *rows.works]
    homes = [queues.get(local_queue_name, "") for local_queue_name in _local_queues_alike(rows, waiting)]
    labels = {
        "work": Labels.of(works).of_rows(alike),
        "cluster_queue": Labels.of(homes).of_rows(alike),
        "cluster": Labels(("",), np.zeros(len(there), np.int64)),
    }
    return JobOutcomes(labels, numbers, names, first + there)


def _local_queues_alike(rows: JobRows, waiting: Sequence[tuple[Arrival, Manifest]]) -> list[LocalQueueName]:
    """Return the LocalQueues of the Workloads that waited at the start, and of each template."""
    templates = [plain_object(template.object) for template in rows.copies.templates if template.object is not None]
    return [_local_queue(other) for other in [*(workload.object for _, workload in waiting), *templates]]


def _local_queues(rows: JobRows, waiting: Sequence[tuple[Arrival, Manifest]]) -> Counter[LocalQueueName]:
    """Count the jobs that name each LocalQueue."""
    of_templates = np.bincount(rows.copies.template, minlength=len(rows.copies.templates)).tolist()
    named: Counter[LocalQueueName] = Counter()
    for name, n in zip(_local_queues_alike(rows, waiting), [*([1] * len(waiting)), *of_templates], strict=True):
        named[name] += n
    return named


def _cluster_queues(objects: Iterable[Manifest]) -> Mapping[LocalQueueName, str]:
    """Return the ClusterQueue of each LocalQueue, which never changes, by its namespace and name."""
    return {
        _place(object_): text_at(object_.object, "spec", "clusterQueue")
        for object_ in objects
        if text_at(object_.object, "kind") == "LocalQueue"
    }


def _place(manifest: Manifest) -> tuple[str, str]:
    """Return namespace and name."""
    ref = object_ref(manifest.object)
    return ref.namespace, ref.name


def _local_queue(workload: JsonObject) -> LocalQueueName:
    return text_at(workload, "metadata", "namespace"), text_at(workload, "spec", "queueName")


def _message(run: Run, namespace: str, name: str, row: np.void, cause: Callable[[WorkloadState], str]) -> str:
    """Return why a job waits, or that it failed or was deleted; `cause` finds out what Kueue does not say."""
    if row["finished"] >= 0:
        return "failed" if row["failed"] else ""
    state = _state(run, namespace, name)
    if state is None:
        return "deleted"
    return "" if row["admitted"] >= 0 else state.message or cause(state)


def _state(run: Run, namespace: str, name: str) -> WorkloadState | None:
    """Return a Workload at the end; None: its job has ended, or it was deleted."""
    try:
        return run.engine.workload(name, namespace=namespace)
    except UnknownObjectError:
        return None
