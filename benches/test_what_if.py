"""What would become of a workload, a thousand times, in a large state at rest: at least 1,000 answers a second."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

from pytest_benchmark.fixture import BenchmarkFixture

from benches.worlds import T0, World
from kueuecore.decisions import Outcome
from kueuecore.engine import Engine
from kueuecore.steady_state import settle

# 1,000 ClusterQueues in 100 cohorts, with 50,000 workloads, of which about a fifth get quota.
WORLD = World(1_000, 100, n_pending=50)
N_ASKED = 1_000


def _asked() -> list[dict[str, Any]]:
    """Workloads of all priorities and shapes, over all ClusterQueues; every third is larger than any other."""
    one = json.loads(World(1, n_pending=1).workloads())
    found = []
    for number in range(N_ASKED):
        plain = json.loads(json.dumps(one))
        plain["metadata"].update(name=f"asked-{number}", uid=f"asked-{number}")
        plain["spec"].update(queueName=f"queue-{number:05}", priority=number % 5)
        container = plain["spec"]["podSets"][0]["template"]["spec"]["containers"][0]
        cpu = 90 if number % 3 == 0 else 1 + number % 8
        container["resources"]["requests"] = {"cpu": str(cpu), "memory": f"{cpu}Gi"}
        found.append(plain)
    return found


def test_a_thousand_answers_in_a_second(benchmark: BenchmarkFixture) -> None:
    engine, asked = Engine(), _asked()
    engine.apply(WORLD.cluster(), now=T0)
    engine.apply(WORLD.workloads(), now=T0, trusted=True)
    settle(engine, now=T0)
    # From here on others give way to those that are asked about.
    engine.apply(replace(WORLD, preempts=True).cluster(), now=T0)
    before = engine.quota()

    def answer() -> Counter[Outcome]:
        return Counter(engine.what_if(workload, now=T0).outcome for workload in asked)

    outcomes = benchmark.pedantic(answer, rounds=5)  # type: ignore[no-untyped-call]  # the package has no types for it
    assert len(engine) == 50_000
    assert outcomes[Outcome.PREEMPTS] > N_ASKED / 10 < outcomes[Outcome.WAITS]
    assert engine.quota() == before
