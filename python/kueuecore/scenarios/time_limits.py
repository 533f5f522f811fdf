"""Checks that everything in a scenario happens within the range of 64-bit nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kueuecore.errors import Problem
from kueuecore.scenarios.node_groups import NodeGroup
from kueuecore.scenarios.node_timetable import failure_times
from kueuecore.scenarios.scenario import Scenario
from kueuecore.scenarios.timed_changes import MAX_TIMES, TimedChange, change_times
from kueuecore.scenarios.work import Work
from kueuecore.times import END_NS, SECOND_NS, beginning_ns, format_time, later

if TYPE_CHECKING:
    from kueuecore.scenarios.fleet_part import Disconnection

__all__ = ["BEFORE_NS", "time_problems"]

BEFORE_NS = 10_000_000_000
"""A fleet starts this long before its scenario, so that all workers are connected by then."""

# The field of a span, and the spans from the start of the scenario to its end.
_Chain: TypeAlias = Iterable[tuple[str, tuple[float, ...]]]


def time_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield what could not happen in time even if no job had to wait, by field; the first per entry.

    Waiting jobs may still take a run past the end of time, which shows only during the run.

    Raises:
        TypeError: A time or span is not a number.
    """
    try:
        start = beginning_ns(scenario.start)
    except ValueError as error:
        yield Problem(str(error), field="start")
        return
    if scenario.fleet is not None and start < BEFORE_NS:
        remedy = f"start at {format_time(BEFORE_NS)} or later"
        yield Problem("a fleet starts ten seconds before its scenario", field="start", remedy=remedy)
    chains: list[_Chain] = [_of_work(f"work[{n}]", work, scenario.seed, start) for n, work in enumerate(scenario.work)]
    clusters = {"cluster": scenario.cluster}
    if scenario.fleet is not None:
        clusters = {f"fleet.workers.{name}": worker.cluster for name, worker in scenario.fleet.workers.items()}
        clusters["fleet.manager"] = scenario.fleet.manager
    for path, cluster in clusters.items():
        chains += [_of_nodes(f"{path}.nodes[{n}]", node, scenario.seed) for n, node in enumerate(cluster.nodes)]
    chains += [_of_change(f"timetable[{n}]", n, change, scenario) for n, change in enumerate(scenario.timetable)]
    cuts = () if scenario.fleet is None else scenario.fleet.disconnections
    chains += [_of_disconnection(f"fleet.disconnections[{n}]", cut) for n, cut in enumerate(cuts)]
    if scenario.until_seconds is not None:
        chains.append([("until", (scenario.until_seconds,))])
    for index, change in enumerate(scenario.timetable):
        times = change_times(change, index, seed=scenario.seed, until=scenario.until_seconds)
        if change.times is None and sum(1 for _ in times) == MAX_TIMES:
            remedy = "write a longer span, or `times`"
            yield Problem(f"{MAX_TIMES} times or more", field=f"timetable[{index}].every", remedy=remedy)
    for chain in chains:
        field = ""
        try:
            for field, spans in chain:
                time = start
                for seconds in spans:
                    time = later(time, seconds, field.rpartition(".")[2])
        except ValueError as error:
            message, _, remedy = str(error).partition("; ")
            yield Problem(message, field=field, remedy=remedy)


def _of_work(path: str, work: Work, seed: int, start: int) -> _Chain:
    # A value of a wrong type shows in the first job.
    for at, runs, _ in islice(work.times(seed), 1):
        yield f"{path}.at", (at,)
        if runs is not None:
            yield f"{path}.runs", (at, runs)
    times = work.drawn(seed)
    is_endless = np.isinf(times.runs) & ~times.fails & (work.runs is None)
    ends = times.at + np.where(is_endless, 0.0, times.runs)
    # A second before the end there is nothing to say; NaN fails each comparison.
    is_fine = (times.at >= 0) & (times.runs >= 0) & (ends < (END_NS - start) / SECOND_NS - 1)
    for index in np.flatnonzero(~is_fine).tolist():
        at, runs = float(times.at[index]), float(times.runs[index])
        yield f"{path}.every" if index else f"{path}.at", (at,)
        if not is_endless[index]:
            yield f"{path}.runs", (at, runs)


def _of_nodes(path: str, group: NodeGroup, seed: int) -> _Chain:
    for index in range(len(group.failures)):
        field = f"{path}.failures[{index}]"
        for number, (begin, end) in enumerate(failure_times(group, index, seed)):
            yield f"{field}.every" if number else f"{field}.at", (begin,)
            if end is not None:
                yield f"{field}.lasts", (begin, end - begin)


def _of_change(path: str, index: int, change: TimedChange, scenario: Scenario) -> _Chain:
    for number, at in enumerate(change_times(change, index, seed=scenario.seed, until=scenario.until_seconds)):
        yield f"{path}.every" if number else f"{path}.at", (at,)


def _of_disconnection(path: str, cut: Disconnection) -> _Chain:
    yield f"{path}.at", (cut.at,)
    if cut.lasts is not None:
        yield f"{path}.lasts", (cut.at, cut.lasts)
