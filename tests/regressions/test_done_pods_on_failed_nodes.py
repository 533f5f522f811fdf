"""A second pass for pods that are all done changed an admission and did not say so: `placed` was empty.

Rules/08 §11.10: it skips the pod set, which keeps its failed node, and writes that none of its pods are left.
"""

from __future__ import annotations

import json
from typing import Any

from kueuecore import Engine
from kueuecore.reference import World
from kueuecore.times import SECOND_NS, nanoseconds
from tests.topologies import BLOCK, HOST, NOW, RACK, Json, flavor, namespace, node, pod_set, queue, topology, workload

START = nanoseconds(NOW)


def admitted_and_done(decider: Any, status: Any) -> Json:
    """Admit a workload, lose its node once its two pods are done, and return it after the second pass."""
    decider.reconcile(START)
    decider.cycle(START)
    done: Json = {**workload("w", pod_set(count=2)), "status": {**status(), "reclaimablePods": []}}
    done["status"]["reclaimablePods"] = [{"name": "main", "count": 2}]
    decider.apply(json.dumps(done).encode() if isinstance(decider, Engine) else [done], now=START + SECOND_NS)
    decider.reconcile(START + SECOND_NS)
    decider.delete("Node", "a", now=START + 2 * SECOND_NS)
    decider.reconcile(START + 2 * SECOND_NS)
    return done


def world() -> list[Json]:
    nodes = [node(name, "b1", "r1", cpu=2) for name in ("a", "b")]
    for each in nodes:
        each["metadata"]["labels"]["pool"] = "tas"
    pool = flavor(nodeLabels={"pool": "tas"})
    return [namespace(), topology(BLOCK, RACK, HOST), pool, *queue(), *nodes, workload("w", pod_set(count=2))]


def test_the_engine_reports_the_count_that_is_left() -> None:
    engine = Engine()
    engine.apply(world(), now=START)
    admitted_and_done(engine, lambda: engine.workload("w", namespace="ns").status)
    decision = engine.cycle(START + 3 * SECOND_NS)
    (placed,) = decision.placed
    assert (placed.name, placed.pod_sets[0].count) == ("w", 0)
    status = engine.workload("w", namespace="ns").status
    (assignment,) = status["admission"]["podSetAssignments"]
    assert assignment["topologyAssignment"]["slices"][0]["valuesPerLevel"] == [{"universal": "a"}]
    assert not status.get("unhealthyNodes")


def test_the_reference_reports_it_too() -> None:
    reference = World(world(), now=START)
    admitted_and_done(reference, lambda: reference.kind("Workload")["ns/w"]["status"])
    (placed,) = reference.cycle(START + 3 * SECOND_NS).placements
    assert (placed.name, placed.pod_sets[0].count) == ("w", 0)
