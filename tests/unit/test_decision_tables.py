"""Decisions as arrays."""

import numpy as np
import pytest

from kueuecore.objects import ClusterQueuePreemption, WithinClusterQueuePolicy
from tests.builders import at, cluster_queue, workload, world


def test_what_was_admitted_as_arrays() -> None:
    engine = world(workload("a", cpu=2, count=3))
    decision = engine.cycle(at(5))
    names, keys = engine.names(), engine.workload_keys()
    (admitted,) = decision.admission_table
    assert (keys[admitted["workload"]], names.cluster_queues[admitted["cluster_queue"]]) == ("ns/a", "cq")
    assert (bool(admitted["is_admitted"]), int(admitted["time"])) == (True, at(5))
    (got,) = decision.flavor_table
    assert (got["admission"], got["pod_set"], got["count"], got["amount"]) == (0, 0, 3, 6000)
    assert (names.resources[got["resource"]], names.flavors[got["flavor"]]) == ("cpu", "default")
    assert (len(decision.pending_table), len(decision.preemption_table)) == (0, 0)


def test_pending_and_preempted_workloads_as_arrays() -> None:
    policy = ClusterQueuePreemption(within_cluster_queue=WithinClusterQueuePolicy.LOWER_PRIORITY)
    engine = world(cluster_queue(preemption=policy), workload("low", cpu=10, priority=1))
    engine.cycle(at(1))
    engine.apply(workload("high", cpu=10, priority=2), now=at(2))
    decision = engine.cycle(at(3))
    names, keys = engine.names(), engine.workload_keys()
    (preempted,) = decision.preemption_table
    assert (keys[preempted["workload"]], keys[preempted["preemptor"]]) == ("ns/low", "ns/high")
    assert names.reasons[preempted["reason"]] == "InClusterQueue"
    (pending,) = decision.pending_table
    assert (keys[pending["workload"]], bool(pending["is_parked"])) == ("ns/high", False)
    assert names.reasons[pending["reason"]] == decision.pending[0].reason


def test_the_number_of_a_deleted_workload_is_reused() -> None:
    engine = world(workload("a"), workload("b"))
    assert engine.workload_keys() == ("ns/a", "ns/b")
    engine.delete("Workload", "a", namespace="ns")
    assert engine.workload_keys() == (None, "ns/b")
    engine.apply(workload("c"))
    assert engine.workload_keys() == ("ns/c", "ns/b")


def test_names_keep_their_numbers() -> None:
    engine = world()
    before = engine.names()
    engine.delete("ClusterQueue", "cq")
    engine.apply([cluster_queue("another"), cluster_queue()])
    after = engine.names()
    assert after.cluster_queues == (*before.cluster_queues, "another")
    assert (after.flavors, after.resources, after.reasons) == (before.flavors, before.resources, before.reasons)


def test_a_decision_is_not_written_to() -> None:
    table = world(workload("a")).cycle(at(1)).admission_table
    with pytest.raises(ValueError, match="read-only"):
        table["workload"] = np.uint32(7)
