"""How long it takes to count a turn of a controller, and to write the page of its metrics: `make bench`."""

import json
from typing import Any

from pytest_benchmark.fixture import BenchmarkFixture

from benches.worlds import T0, World
from kueuecore import Configuration
from kueuecore._patches import patched
from kueuecore.controller import Controller, Metrics
from kueuecore.decisions import Decision
from kueuecore.writes import Answer

CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare]}
metrics: {enableClusterQueueResources: true}
"""


def _controller(metrics: Metrics) -> tuple[Controller, list[Decision]]:
    """1,000 ClusterQueues after two turns; 10,000 workloads still wait."""
    world = World(1_000, 100, n_pending=12)
    controller = Controller(Configuration.parse(CONFIGURATION), metrics=metrics)
    stored: dict[tuple[str, str], dict[str, Any]] = {}
    for line in (*world.cluster().splitlines(), *world.workloads().splitlines()):
        manifest = json.loads(line)
        manifest["metadata"] |= {"uid": f"uid-{len(stored)}", "resourceVersion": "1"}
        stored[manifest["kind"], manifest["metadata"]["name"]] = manifest
        controller.observe({"type": "ADDED", "object": manifest}, now=T0)
    decisions = []
    for second in range(2):
        turn = controller.turn(T0 + second * 10**9)
        decisions.append(turn.decision)
        for write in turn.writes:
            answer: dict[str, Any] = patched(stored["Workload", write.name], write.manifest)
            answer["metadata"] = {**answer["metadata"], "resourceVersion": str(second + 2)}
            controller.done(write, Answer(answer), now=T0 + second * 10**9)
    assert sum(len(controller.engine.pending(name)) for name in controller.engine.cluster_queues()) == 10_000
    return controller, decisions


def test_page_of_1000_cluster_queues_and_10_000_pending_workloads(benchmark: BenchmarkFixture) -> None:
    metrics = Metrics()
    controller, _ = _controller(metrics)
    page = benchmark(metrics.text, controller.engine)
    assert page.count("\n") > 100_000


def test_counting_a_cycle_of_1000_heads(benchmark: BenchmarkFixture) -> None:
    metrics = Metrics()
    _, decisions = _controller(metrics)
    benchmark.pedantic(  # type: ignore[no-untyped-call]  # the package has no types for it
        metrics.count_cycle, setup=lambda: ((Decision(decisions[0]._core),), {}), rounds=100
    )
