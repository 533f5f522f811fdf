"""A scenario of one cluster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kueuecore._json import text_at
from kueuecore.engine import Engine
from kueuecore.errors import UnknownObjectError
from kueuecore.manifests import Manifest, plain_object
from kueuecore.provisioning import QueuedCapacity, VirtualProvisioning
from kueuecore.scenarios.cluster_part import ClusterPart
from kueuecore.scenarios.job_outcomes import JobNames, JobOutcomes, Labels, empty_numbers, node_evictions
from kueuecore.scenarios.job_rows import JobRows
from kueuecore.scenarios.node_timetable import NodeChange, node_changes, nodes_of
from kueuecore.scenarios.outcomes import ScenarioEnding, ScenarioOutcome
from kueuecore.scenarios.scenario import Scenario
from kueuecore.scenarios.scenario_warnings import warnings_of
from kueuecore.simulation import simulate
from kueuecore.simulation.run import Happening, Operation, Progress, Run
from kueuecore.states import WorkloadState
from kueuecore.world import AppliedWorld, World

__all__ = ["simulate_cluster"]

# Far more than any cluster needs for the jobs that come.
_MOST_CYCLES = 1_000_000
_MOST_CYCLES_OF_A_JOB = 100


def simulate_cluster(scenario: Scenario, cluster: ClusterPart, *, progress: Progress | None) -> ScenarioOutcome:
    """Run a scenario of one cluster to its end.

    Raises:
        ManifestError: Everything that is wrong with the objects or the jobs.
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
    # Of the same time, nodes change before jobs come.
    events = list(map(_node_happening, node_changes(cluster.nodes, seed=scenario.seed, start=scenario.start)))
    run = _run(scenario, cluster, rows, events, progress)
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
        jobs=_outcomes(run, rows),
        ending=ScenarioEnding(run.ending),
        notes=notes,
        warnings=warnings_of([AppliedWorld(rows.world.warnings, {}), applied]),
    )


def _run(
    scenario: Scenario,
    part: ClusterPart,
    rows: JobRows,
    events: Sequence[Happening],
    progress: Progress | None,
) -> Run:
    stocks = part.capacity
    return simulate(
        rows.objects,
        events,
        copies=rows.copies,
        configuration=part.configuration,
        checks=[VirtualProvisioning(QueuedCapacity(stocks, seed=scenario.seed))] if stocks else [],
        now=scenario.start,
        until=_until(scenario),
        max_cycles=max(_MOST_CYCLES, _MOST_CYCLES_OF_A_JOB * len(rows.copies)),
        cycle_seconds=scenario.cycle_seconds,
        cycles=False,
        finished=False,
        progress=progress,
    )


def _until(scenario: Scenario) -> int | None:
    return None if scenario.until_seconds is None else scenario.start + round(scenario.until_seconds * 1e9)


def _node_happening(change: NodeChange) -> Happening:
    if change.manifest is None:
        return Happening(at=change.at, op=Operation.DELETE, kind="Node", key=change.name)
    return Happening(at=change.at, op=Operation.CREATE, object=change.manifest)


def _outcomes(run: Run, rows: JobRows) -> JobOutcomes:
    table = run.outcome_table[: len(rows.copies)]
    # Others would have come after the end.
    there = np.flatnonzero(table["created"] >= 0)
    numbers = empty_numbers(len(there))
    for name in ("created", "admitted", "finished", "admissions", "evictions", "replacements"):
        numbers[name] = table[name][there]
    # Few workloads have lost a node.
    has_nodes = any(text_at(it.object, "kind") == "Node" for it in rows.objects)
    for index in np.flatnonzero(numbers["evictions"]).tolist() if has_nodes else ():
        state = _state(run, rows, int(there[index]))
        numbers["node_evictions"][index] = 0 if state is None else node_evictions(dict(state.status))
    template = rows.copies.template[there].astype(np.int64)

    def names(index: int) -> JobNames:
        row = int(there[index])
        kind, name = rows.job(row)
        state = None if numbers["admitted"][index] >= 0 else _state(run, rows, row)
        message = "" if state is None else state.message
        copies = rows.copies
        return JobNames(
            job=f"{kind}/{name}", namespace=copies.namespace(row), workload=copies.name(row), message=message
        )

    labels = {
        "work": Labels.of(rows.works).of_rows(template),
        "cluster_queue": Labels.of(_cluster_queues(rows)).of_rows(template),
        "cluster": Labels(("",), np.zeros(len(there), np.int64)),
    }
    return JobOutcomes(labels, numbers, names)


def _cluster_queues(rows: JobRows) -> Sequence[str]:
    """The ClusterQueue of each template's LocalQueue, which never changes; empty if there is no such LocalQueue."""
    queues = {
        (text_at(it.object, "metadata", "namespace"), text_at(it.object, "metadata", "name")): text_at(
            it.object, "spec", "clusterQueue"
        )
        for it in rows.objects
        if text_at(it.object, "kind") == "LocalQueue"
    }
    plain = ({} if it.object is None else plain_object(it.object) for it in rows.copies.templates)
    places = ((text_at(it, "metadata", "namespace"), text_at(it, "spec", "queueName")) for it in plain)
    return [queues.get(it, "") for it in places]


def _state(run: Run, rows: JobRows, row: int) -> WorkloadState | None:
    """The Workload of a row at the end; None: its job has ended, or it was deleted."""
    try:
        return run.engine.workload(rows.copies.name(row), namespace=rows.copies.namespace(row))
    except UnknownObjectError:
        return None
