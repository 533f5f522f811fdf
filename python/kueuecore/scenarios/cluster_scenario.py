"""A scenario of one cluster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kueuecore._json import text_at
from kueuecore.engine import Engine
from kueuecore.manifests import Manifest
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
        status = _state(run, rows, int(there[index])).status
        numbers["node_evictions"][index] = node_evictions(dict(status))
    template = rows.copies.template[there].astype(np.int64)

    def names(index: int) -> JobNames:
        row = int(there[index])
        kind, name = rows.job(row)
        message = "" if numbers["admitted"][index] >= 0 else _state(run, rows, row).message
        copies = rows.copies
        return JobNames(
            job=f"{kind}/{name}", namespace=copies.namespace(row), workload=copies.name(row), message=message
        )

    labels = {
        "work": Labels.of(rows.works).of_rows(template),
        "cluster_queue": Labels.of(_cluster_queues(run, rows, there)).of_rows(template),
        "cluster": Labels(("",), np.zeros(len(there), np.int64)),
    }
    return JobOutcomes(labels, numbers, names)


def _cluster_queues(run: Run, rows: JobRows, there: npt.NDArray[np.int64]) -> Sequence[str]:
    """The ClusterQueue of each template: all its copies are in one LocalQueue."""
    used, firsts = np.unique(rows.copies.template[there], return_index=True)
    found = {
        template: _state(run, rows, int(there[first])).cluster_queue or ""
        for template, first in zip(used.tolist(), firsts.tolist(), strict=True)
    }
    return [found.get(template, "") for template in range(len(rows.copies.templates))]


def _state(run: Run, rows: JobRows, row: int) -> WorkloadState:
    return run.engine.workload(rows.copies.name(row), namespace=rows.copies.namespace(row))
