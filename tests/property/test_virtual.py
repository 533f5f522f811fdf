"""A virtual cluster without check controllers tells the same as the simulator of the extension."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kueuecore import Configuration, Run, simulate
from kueuecore.virtual import VirtualCluster
from tests.property.worlds import times
from tests.random_runs import random_run

# Kueue's own timers are acted on when they are due, where the simulator lets the round of cycles end first.
_TIMERS = ("waitForPodsReady", "maximumExecutionTimeSeconds")
# Without this gate a head that is written to begins with its first flavor again, which nobody outside can see.
_GATE = "FlavorFungibilityPreserveScanProgress"


def told(run: Run) -> dict[str, Any]:
    tables = {name: getattr(run, name).tolist() for name in ("step_table", "cycle_table", "outcome_table")}
    decisions = [(it.number, it.decision.admissions, it.decision.preemptions, it.parked) for it in run.cycles]
    return {
        **tables,
        "keys": run.workload_keys,
        "decisions": decisions,
        "end": (run.ending, run.start, run.end, run.n_cycles),
        "stages": [(it.key, it.stage, it.flavors) for it in run.engine.workloads()],
    }


@times(1)
@given(st.integers(min_value=0, max_value=2**40))
def test_a_virtual_cluster_tells_what_the_simulator_tells(seed: int) -> None:
    case = random_run(seed)
    objects, events = case["objects"], case["input"]["events"]
    for thing in (it["object"] for it in events if "object" in it):
        if thing["kind"] == "Workload":
            thing["spec"].pop("maximumExecutionTimeSeconds", None)
    names = ("now", "cycleStepMs", "quietCycles", "maxCycles", "evictionSeconds", *_TIMERS)
    settings = {name: value for name, value in case["config"].items() if name not in names}
    gates = {name: is_on for name, is_on in case["featureGates"].items() if name != _GATE}
    configuration = Configuration.trusted(settings, feature_gates=gates)
    options: dict[str, Any] = {
        "configuration": configuration,
        "now": case["config"]["now"],
        "quiet_cycles": case["config"]["quietCycles"],
        "max_cycles": 60,
        "eviction_seconds": case["config"]["evictionSeconds"],
        "messages": True,
    }
    expected = simulate(objects, events, **options)
    cluster = VirtualCluster(objects, **options)
    cluster.schedule(events)
    cluster.advance()
    assert told(cluster.run()) == told(expected)
