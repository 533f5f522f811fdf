"""`unblock` where a topology, its nodes, or a resource without quota keep a workload waiting; and pairs of changes."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import Engine
from kueuecore._json import texts_at
from kueuecore.answers import Change, ChangeKind, Unblocking, unblock
from tests.unit.answers.test_unblock import NOW, changes, cpu, group, queue, shown, thing, workload, world

HOST = "kubernetes.io/hostname"
LEVELS = ("zone", "rack", HOST)


def node(number: int, *, rack: str = "", spec: dict[str, Any] | None = None, **labels: str | None) -> dict[str, Any]:
    every = {"pool": "gpu", "zone": "z", "rack": rack or f"r{number // 2}", HOST: f"n{number}"} | labels
    plain = thing("Node", f"n{number}", spec=spec or {})
    plain["apiVersion"] = "v1"
    plain["metadata"]["labels"] = {name: value for name, value in every.items() if value is not None}
    ready = {"type": "Ready", "status": "True"}
    plain["status"] = {"allocatable": {"cpu": "2", "pods": "10"}, "conditions": [ready]}
    return plain


def placed(asked: dict[str, Any], *nodes: dict[str, Any], quota: str = "50", **spec: Any) -> Engine:
    """A world whose only flavor has a topology."""
    topology = thing("Topology", "dc", spec={"levels": [{"nodeLabel": level} for level in LEVELS]})
    flavor = thing("ResourceFlavor", "tas", spec={"nodeLabels": {"pool": "gpu"}, "topologyName": "dc"})
    return world(topology, flavor, queue("cq", group(tas=cpu(quota)), **spec), *nodes, asked)


def asking(pods: int, request: dict[str, Any] | None, *, cpus: str = "1", **spec: Any) -> dict[str, Any]:
    asked = workload("w", pods, cpu=cpus)
    pod_set = asked["spec"]["podSets"][0]
    pod_set["template"]["spec"] |= spec
    if request is not None:
        pod_set["topologyRequest"] = request
    return asked


def only(engine: Engine, kind: ChangeKind) -> Change:
    (found,) = changes(engine, kind)
    return found


@pytest.mark.parametrize(
    ("pods", "request_", "before", "after"),
    [
        (6, {"required": "rack"}, "required rack", "required zone"),
        (3, {"required": HOST}, f"required {HOST}", "required rack"),
        (10, {"required": "zone"}, "required zone", "preferred zone"),
        (2, {"required": "row"}, "required row", f"required {HOST}"),
        (
            4,
            {"required": "zone", "podSetSliceRequiredTopology": HOST, "podSetSliceSize": 4},
            f"required zone, slices of 4 in {HOST}",
            "unconstrained",
        ),
    ],
)
def test_the_strictest_topology_request_that_fits_is_proposed(
    pods: int, request_: dict[str, Any], before: str, after: str
) -> None:
    nodes = [node(n) for n in range(4)] + [node(n, zone="other") for n in range(4, 6)]
    found = only(placed(asking(pods, request_), *nodes), ChangeKind.TOPOLOGY)
    assert (found.before, found.after) == (before, after)


def test_a_node_selector_that_no_node_matches_is_dropped() -> None:
    engine = placed(asking(2, {"unconstrained": True}, nodeSelector={"model": "x", "zone": "z"}), node(0), node(1))
    found = only(engine, ChangeKind.NODES)
    assert (found.what, found.before, found.after) == ("nodeSelector of pod set main", "model=x", "none")


def test_a_taint_of_the_nodes_is_tolerated_by_the_pods_or_the_flavor_or_removed() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    other = {"key": "old", "value": "yes", "effect": "NoExecute"}
    nodes = [node(0, spec={"taints": [taint]}), node(1, spec={"taints": [taint]}), node(2, spec={"taints": [other]})]
    kinds = ChangeKind.NODES, ChangeKind.FLAVOR, ChangeKind.CLUSTER
    found = changes(placed(asking(3, {"unconstrained": True}), *nodes), *kinds)
    assert shown(found) == [
        ("tolerations of pod set main", "-", "gpu=yes", "Fits", ()),
        ("tolerations of ResourceFlavor tas", "-", "gpu=yes", "Fits", ()),
        ("nodes without the taints that the pods do not tolerate in flavor tas", "-", "n0, n1", "Fits", ()),
    ]
    assert found[1].step.edits[0].value == [{"operator": "Equal", **taint}]


def test_cordoned_nodes_take_pods_again() -> None:
    nodes = [node(n, spec={"unschedulable": True}) for n in range(3)]
    found = changes(placed(asking(4, {"preferred": "rack"}), *nodes), ChangeKind.CLUSTER)
    assert ("uncordoned nodes in flavor tas", "-", "n0, n1", "Fits", ()) in shown(found)
    (less,) = next(change.less for change in found if change.what.startswith("uncordoned"))
    assert [edit.target for edit in less.edits] == ["Node/n0:spec.unschedulable"]


def test_missing_labels_of_the_flavor_and_of_levels_are_added() -> None:
    found = only(placed(asking(2, {"preferred": "rack"}), node(0, pool=None)), ChangeKind.CLUSTER)
    assert (found.what, found.after) == ("labels of nodes in flavor tas", "n0 (pool=gpu)")
    found = only(placed(asking(2, {"preferred": "rack"}), node(0, zone=None)), ChangeKind.CLUSTER)
    assert (found.what, found.after) == ("labels of nodes in flavor tas", "n0 (zone=any)")


def test_nodes_of_another_pool_are_left_alone() -> None:
    assert changes(placed(asking(2, {"preferred": "rack"}), node(0, pool="cpu")), ChangeKind.CLUSTER) == ()


def test_as_few_nodes_as_needed_are_added() -> None:
    found = only(placed(asking(9, {"unconstrained": True}), node(0), node(1)), ChangeKind.CLUSTER)
    assert (found.what, found.before, found.after) == ("more nodes like n0 in flavor tas", "-", "3")
    added = [texts_at(object_, "metadata", "labels") for object_ in found.step.objects]
    assert [labels[HOST] for labels in added] == ["n0-more-1", "n0-more-2", "n0-more-3"]
    assert {(labels["pool"], labels["rack"]) for labels in added} == {("gpu", "r0")}
    assert [len(step.objects) for step in found.less] == [2]


def test_a_resource_without_quota_is_covered_or_not_asked_for() -> None:
    engine = world(queue("cq", group(default=cpu("4"))), workload("w", 2, cpu="1", tpu="3"))
    found = unblock(engine, "w", namespace="ns", now=NOW)
    assert shown(found.changes) == [
        ("request of container c of pod set main for tpu", "3", "none", "Fits", ()),
        ("nominalQuota of ClusterQueue cq for tpu in default", "not covered", "6", "Fits", ()),
    ]
    assert "IgnoreUndeclared" in found.not_tried[0]


def test_a_pair_is_proposed_where_one_change_is_not_enough() -> None:
    engine = world(queue("cq", group(default=cpu("1"))), workload("w", 1, cpu="2", tpu="3"))
    kinds = [ChangeKind.QUOTA, ChangeKind.COVERAGE]
    found = unblock(engine, "w", namespace="ns", now=NOW, kinds=kinds)
    assert [(change.what, change.before, change.after) for change in found.changes] == [
        (
            "nominalQuota of ClusterQueue cq for tpu in default and nominalQuota of ClusterQueue cq for cpu in default",
            "not covered, 1",
            "3, 2",
        )
    ]
    assert len(found.changes[0].less) == 2
    assert {enough.kind for enough in found.not_enough} == set(kinds)


def binding(found: Unblocking) -> dict[ChangeKind, str]:
    return {enough.kind: enough.why for enough in found.not_enough}


def test_what_binds_at_the_largest_of_each_kind_is_said() -> None:
    engine = placed(asking(1, {"required": "rack"}, cpus="3"), node(0), node(1), quota="2")
    kinds = [ChangeKind.QUOTA, ChangeKind.PRIORITY, ChangeKind.TOPOLOGY]
    found = unblock(engine, "w", namespace="ns", now=NOW, kinds=kinds)
    assert found.changes == ()
    why = binding(found)
    assert why[ChangeKind.QUOTA].startswith("the nodes of topology dc: no single rack has room for 1 pod")
    assert why[ChangeKind.PRIORITY] == ("tas: 3 cpu is more than ClusterQueue cq could get if nothing else ran: 2")
    (quota,) = [enough for enough in found.not_enough if enough.kind is ChangeKind.QUOTA]
    assert (quota.before, quota.what) == ("2", "nominalQuota of ClusterQueue cq for cpu in tas")


def test_a_policy_that_binds_at_any_priority_is_named() -> None:
    running = workload("r", 2, local_queue="other")
    lender = queue("borrower", group(default=cpu("0")), cohortName="all")
    local = thing("LocalQueue", "other", namespace="ns", spec={"clusterQueue": "borrower"})
    engine = world(lender, local, running, queue("cq", group(default=cpu("2")), cohortName="all"))
    engine.cycle(NOW)
    engine.apply(workload("w", 2, second=1), now=NOW)
    found = unblock(engine, "w", namespace="ns", now=NOW, kinds=[ChangeKind.PRIORITY])
    assert binding(found) == {ChangeKind.PRIORITY: "reclaimWithinCohort of ClusterQueue cq is Never"}
