"""Answers of the engine to recorded runs of many cycles. Holds no rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kueuecore import _core
from kueuecore.conformance import shapes
from kueuecore.conformance.late_checks import LateChecks
from kueuecore.conformance.seen_engine import SeenEngine
from kueuecore.decisions import Decision
from kueuecore.times import SECOND_NS, nanoseconds

__all__ = ["scale", "trace"]

_Json = dict[str, Any]
_GOES_ON = ("Cycle", "Instant", "Ask")


class _Played:
    """A run that has ended."""

    def __init__(self, case: _Json, *, keeps_messages: bool) -> None:
        config = case["config"]
        if config.get("requeueBatchMs"):
            raise NotImplementedError("workloads are retried only once a second")
        self.seen = SeenEngine(case, case["objects"])
        self.clock = shapes.Clock(self.seen.now, nanoseconds)
        checks = LateChecks.of(case, self.seen)
        most_cycles = config.get("maxCycles")
        options = (
            config["cycleStepMs"] * SECOND_NS // 1000,
            most_cycles,
            config.get("evictionSeconds", 0) * SECOND_NS,
            (keeps_messages, True, True, True, False),
        )
        recorded = config.get("quietCycles"), config.get("timers") != "WhenDue"
        core = self.seen.engine._core
        controllers = None if checks is None else checks.controllers
        simulation = _core.Simulation(self.seen.now, options, controllers, recorded)
        events = "\n".join(map(json.dumps, case["input"]["events"]))
        simulation.schedule(core, [], events.encode(), True, [])
        simulation.happened(core)
        # Runs with a topology were recorded by another loop: the last cycle ends the run, not the first one beyond.
        is_placed = any(each["kind"] == "Topology" for each in case["objects"])
        while True:
            turn, asked = simulation.step(core)
            if turn == "Ask" and checks is not None:
                checks.answer(simulation, asked)
            self.is_cut = turn == "CycleLimit" or (turn == "Cycle" and is_placed and simulation.n_cycles == most_cycles)
            if self.is_cut or turn not in _GOES_ON:
                break
        if turn == "OutOfTime":
            raise ValueError(f"the run ended: {turn}")
        self.record = simulation.record(core)

    def cycles(self) -> Iterator[tuple[int, int, Decision, int, list[str]]]:
        """Number, time and decision of each cycle, and how many workloads it parked, with their keys."""
        for index in range(self.record.n_recorded_cycles()):
            number, time, decision, n_parked, parked = self.record.cycle(index)
            yield number, time, Decision(decision), n_parked, parked


def trace(case: _Json) -> _Json:
    """A whole run, of which everything is compared, including messages."""
    played = _Played(case, keeps_messages=True)
    cycles = (
        shapes.cycle_of_run(
            played.clock,
            (number, time),
            # The admissions as Kueue writes them.
            admitted=(("/".join(key), admission, at) for key, admission, _, at in decision._core.admissions()),
            placed=(("/".join(key), admission) for key, admission, _, _ in decision._core.placed()),
            decision=decision,
            parked=parked,
        )
        for number, time, decision, _, parked in played.cycles()
    )
    record = played.record
    return shapes.run(
        cycles,
        shapes.final(played.seen, played.clock, record.end, n_cycles=record.n_cycles, is_cut=played.is_cut),
    )


def scale(case: _Json) -> _Json:
    """Which workload got quota when, for runs too large to compare in detail."""
    played = _Played(case, keeps_messages=False)
    cycles: list[_Json] = []
    for number, time, decision, n_parked, _ in played.cycles():
        preempting = [{"key": p.key, "reason": p.reason, "preemptor": p.preemptor} for p in decision.preemptions]
        cycles.append(
            {
                "n": number,
                "t": played.clock.seconds(time),
                "admitted": sorted("/".join(key) for key, *_ in decision._core.admissions()),
                "preempting": sorted(preempting, key=lambda each: each["key"]),
                "newlyInadmissible": n_parked,
            }
        )
    record = played.record
    return {
        "cycles": cycles,
        "final": {
            "t": played.clock.seconds(record.end),
            "cycles": record.n_cycles,
            "admissions": sum(len(each["admitted"]) for each in cycles),
            "preemptions": sum(len(each["preempting"]) for each in cycles),
            "finished": record.steps()[1].count("Finished"),
        },
    }
