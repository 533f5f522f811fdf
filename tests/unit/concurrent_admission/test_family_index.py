"""Which parents are looked at when something happens to a queue, a parent or a variant."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.concurrent_admission import FamilyIndex
from tests.unit.concurrent_admission.families import KUEUE, cluster_queue


def local_queue(namespace: str, name: str, target: str) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": target}}


def workload(namespace: str, name: str, queue: str, *, owner: str = "") -> dict[str, Any]:
    owners = [{"apiVersion": KUEUE, "kind": "Workload", "name": owner, "uid": "uid"}] if owner else []
    metadata = {"namespace": namespace, "name": name, "ownerReferences": owners}
    return {"apiVersion": KUEUE, "kind": "Workload", "metadata": metadata, "spec": {"queueName": queue}}


def due(index: FamilyIndex, now: int = 0) -> list[tuple[str, str]]:
    return sorted(index.take_due(now, lambda _: True))


def index_of(*manifests: dict[str, Any]) -> FamilyIndex:
    """Of these objects, and with nothing to look at."""
    index = FamilyIndex()
    for manifest in manifests:
        index.observe(manifest)
    due(index)
    return index


TWO = cluster_queue("large", "small")
WITH_QUOTA: dict[str, Any] = {
    **TWO,
    "spec": {**TWO["spec"], "resourceGroups": [{"flavors": [{"name": "large", "resources": []}, {"name": "small"}]}]},
}


@pytest.mark.parametrize(
    ("changed", "matters"),
    [
        pytest.param(cluster_queue("bought", "large", "small"), True, id="a flavor more"),
        pytest.param(cluster_queue("large"), True, id="a flavor less"),
        pytest.param(cluster_queue("small", "large"), True, id="another order"),
        pytest.param(TWO, False, id="nothing"),
        pytest.param(WITH_QUOTA, False, id="quota"),
        pytest.param({**TWO, "status": {"pendingWorkloads": 5}}, False, id="status"),
    ],
)
def test_flavors_of_a_cluster_queue_matter_to_its_parents(changed: dict[str, Any], matters: bool) -> None:
    index = index_of(TWO, local_queue("ns", "jobs", "queue"), workload("ns", "parent", "jobs"))
    index.observe(changed)
    assert due(index) == ([("ns", "parent")] if matters else [])


def test_a_cluster_queue_has_parents_in_all_namespaces_and_no_others() -> None:
    index = index_of(
        TWO,
        local_queue("a", "jobs", "queue"),
        local_queue("b", "jobs", "queue"),
        local_queue("a", "others", "other"),
        workload("a", "first", "jobs"),
        workload("a", "second", "jobs"),
        workload("b", "first", "jobs"),
        workload("a", "third", "others"),
        workload("a", "variant", "jobs", owner="first"),
    )
    index.observe(cluster_queue("large"))
    assert due(index) == [("a", "first"), ("a", "second"), ("b", "first")]
    assert index.variants_of(("a", "first")) == (("a", "variant"),)


def test_a_local_queue_that_points_elsewhere_matters_to_those_in_it() -> None:
    index = index_of(TWO, local_queue("ns", "jobs", "other"), workload("ns", "parent", "jobs"))
    assert index.cluster_queue_of(("ns", "parent")) is None
    index.observe(local_queue("ns", "jobs", "queue"))
    assert due(index) == [("ns", "parent")]
    assert index.cluster_queue_of(("ns", "parent")) == TWO


def test_what_happens_to_a_variant_matters_to_its_parent() -> None:
    index = index_of(TWO, local_queue("ns", "jobs", "queue"), workload("ns", "parent", "jobs"))
    index.observe(workload("ns", "variant", "jobs", owner="parent"))
    assert due(index) == [("ns", "parent")]
    index.touch(("ns", "variant"))
    assert due(index) == [("ns", "parent")]
    index.forget("Workload", ("ns", "variant"))
    assert (due(index), index.variants_of(("ns", "parent"))) == ([("ns", "parent")], ())


def test_a_parent_is_looked_at_again_when_its_time_has_come() -> None:
    index = index_of(TWO, local_queue("ns", "jobs", "queue"), workload("ns", "parent", "jobs"))
    index.look_at(("ns", "parent"), 10)
    assert (due(index, 9), index.next_time()) == ([], 10)
    assert (due(index, 10), index.next_time()) == ([("ns", "parent")], None)
    index.look_at(("ns", "parent"), 20)
    index.forget("Workload", ("ns", "parent"))
    assert (due(index, 20), index.next_time()) == ([], None)


def test_a_parent_that_is_not_ready_stays_open() -> None:
    index = index_of(TWO, local_queue("ns", "jobs", "queue"))
    index.observe(workload("ns", "parent", "jobs"))
    assert index.take_due(0, lambda _: False) == []
    assert index.has_open(lambda _: True)
    assert due(index) == [("ns", "parent")]
