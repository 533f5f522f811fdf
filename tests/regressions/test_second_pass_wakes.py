"""Nothing named the time of a second pass: a controller in which nothing else happened slept on and moved no pods.

Rules/08 §11.10: the pass comes a second after a node was recorded as failed, then after 2, 4, 8 and 16, then every 30.
"""

from __future__ import annotations

from kueuecore import Engine
from kueuecore.times import SECOND_NS, nanoseconds
from tests.topologies import BLOCK, HOST, NOW, RACK, flavor, namespace, node, pod_set, queue, topology, workload

START = nanoseconds(NOW)


def test_a_second_pass_wakes_its_engine() -> None:
    nodes = [node("a", "b1", "r1"), node("b", "b1", "r1")]
    for each in nodes:
        each["metadata"]["labels"]["pool"] = "tas"
    engine = Engine()
    pool = flavor(nodeLabels={"pool": "tas"})
    objects = [namespace(), topology(BLOCK, RACK, HOST), pool, *queue(), *nodes, workload("w", pod_set(required=RACK))]
    engine.apply(objects, now=START)
    engine.reconcile(START)
    engine.cycle(START)
    engine.reconcile(START)
    assert engine.next_wake() is None
    engine.delete("Node", "a", now=START + SECOND_NS)
    engine.reconcile(START + SECOND_NS)
    assert engine.next_wake() == START + 2 * SECOND_NS
    (placed,) = engine.cycle(START + 2 * SECOND_NS).placed
    assert placed.name == "w"
    assert engine.next_wake() is None
