"""One clock: who looks on, and whether it goes step by step, makes no difference to a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kueuecore import Configuration, Run, simulate
from kueuecore._json import JsonObject
from kueuecore.checks import CheckController, Review
from kueuecore.simulation import VirtualCluster
from tests.property.worlds import times
from tests.random_runs import random_run

SEEDS = st.integers(min_value=0, max_value=2**40)


class Onlooker(CheckController):
    """Decides on AdmissionChecks that nobody has, and has nothing to say."""

    controller_name = "example.com/onlooker"

    def __init__(self) -> None:
        self.n_asked = 0

    def review(self, workload: JsonObject, checks: Sequence[str], *, now: int) -> Review:
        self.n_asked += 1
        assert not checks, "the checks are others'"
        assert workload["kind"] == "Workload"
        return Review()


def reported(run: Run) -> dict[str, Any]:
    tables = {name: getattr(run, name).tobytes() for name in ("step_table", "cycle_table", "outcome_table")}
    decisions = [
        (
            cycle.number,
            cycle.time,
            cycle.decision.admissions,
            cycle.decision.preemptions,
            cycle.decision.events,
            cycle.parked,
        )
        for cycle in run.cycles
    ]
    return {
        **tables,
        "keys": run.workload_keys,
        "decisions": decisions,
        "end": (run.ending, run.start, run.end, run.n_cycles),
        "workloads": [
            (workload.key, workload.stage, workload.flavors, workload.status) for workload in run.engine.workloads()
        ],
    }


def arguments(case: dict[str, Any]) -> tuple[list[JsonObject], list[JsonObject], dict[str, Any]]:
    """Objects, events and the rest of what `simulate` takes."""
    config = case["config"]
    names = ("now", "cycleStepMs", "quietCycles", "maxCycles", "evictionSeconds", "timers")
    settings = {name: value for name, value in config.items() if name not in names}
    return (
        case["objects"],
        case["input"]["events"],
        {
            "configuration": Configuration.trusted(settings, feature_gates=case["featureGates"]),
            "now": config["now"],
            "max_cycles": 60,
            "eviction_seconds": config["evictionSeconds"],
            "messages": True,
        },
    )


@times(1)
@given(SEEDS)
def test_an_unrelated_check_controller_changes_nothing(seed: int) -> None:
    objects, events, options = arguments(random_run(seed))
    onlooker = Onlooker()
    with_one, without = simulate(objects, events, checks=[onlooker], **options), simulate(objects, events, **options)
    assert reported(with_one) == reported(without)
    assert onlooker.n_asked, "it was asked about every workload"


@times(1)
@given(SEEDS)
def test_a_virtual_cluster_goes_step_by_step_as_a_run_goes_at_once(seed: int) -> None:
    objects, events, options = arguments(random_run(seed))
    cluster = VirtualCluster(objects, **options)
    cluster.schedule(events)
    while cluster.next_event_time is not None:
        assert cluster.step()
    assert reported(cluster.run()) == reported(simulate(objects, events, **options))
