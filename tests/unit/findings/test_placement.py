"""Pods that no node can take, however they ask for their places, and what would help them."""

from __future__ import annotations

import pytest

from kueuecore import Configuration, parse_manifests
from kueuecore.findings import Finding, check
from tests.quota_manifests import flavor, local_queue, node, queue, workload

HALL = """---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: hall}
spec: {levels: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]}
"""
FLAVOR = flavor(spec="{topologyName: hall, nodeLabels: {pool: p}}")
LABELS = "{pool: p, rack: r1, kubernetes.io/hostname: n1}"
TAINT = "[{key: reserved, value: physics, effect: NoSchedule}]"
REQUESTS = {
    "preferred": "{preferred: rack}",
    "unconstrained": "{unconstrained: true}",
    "slices": "{podSetSliceRequiredTopology: rack, podSetSliceSize: 1}",
    "implied": "",
    "required": "{required: rack}",
}


def world(*, taints: str = "[]", spec: str = "") -> str:
    """A queue with plenty of quota, and one node with 4 CPUs."""
    return HALL + FLAVOR + node("n1", LABELS, taints) + queue("a", "nominalQuota: 40", spec=spec) + local_queue("a")


def found(text: str) -> list[Finding]:
    return list(check(parse_manifests(text)))


@pytest.mark.parametrize("asked", REQUESTS)
def test_more_pods_than_all_nodes_hold_are_found(asked: str) -> None:
    (finding,) = [
        finding
        for finding in found(world() + workload("w", "a", 5, request=REQUESTS[asked]))
        if finding.code == "KC506"
    ]
    assert str(finding.object) == 'Workload "team/w"'
    assert finding.problem.field.startswith("spec.podSets[0]")


@pytest.mark.parametrize("asked", REQUESTS)
def test_pods_that_fit_are_not(asked: str) -> None:
    assert found(world() + workload("w", "a", 4, request=REQUESTS[asked])) == []


def test_a_node_that_does_not_say_how_many_pods_it_takes_takes_none() -> None:
    (finding,) = found(world().replace(", pods: 110", "") + workload("w", "a", 1, request="{unconstrained: true}"))
    assert finding.problem.message.endswith("; of 1 node 1 may hold no more pods")
    assert finding.problem.remedy == "raise status.allocatable.pods of the nodes: one without it takes no pods"


def test_the_taint_is_named_that_nobody_tolerates() -> None:
    (finding,) = found(world(taints=TAINT) + workload("w", "a", 1, request="{unconstrained: true}"))
    assert finding.problem.message == (
        "all nodes together have room for none of 1 pod, even if nothing else runs; of 1 node 1 has the taint "
        "reserved=physics:NoSchedule, which the pods do not tolerate"
    )
    assert finding.problem.remedy == (
        "tolerate reserved=physics:NoSchedule in the pods, or add the toleration to flavor default"
    )


def test_the_label_is_named_that_no_node_has() -> None:
    text = workload("w", "a", 1, request="{unconstrained: true}")
    text = text.replace("{spec: {containers", "{spec: {nodeSelector: {pool: p, disk: ssd}, containers")
    (finding,) = found(world() + text)
    assert finding.code == "KC506"
    assert finding.problem.remedy == "label nodes with disk=ssd, or correct the nodeSelector"


def test_in_a_strict_queue_it_also_blocks_others() -> None:
    text = world(spec="queueingStrategy: StrictFIFO") + workload("w", "a", 5, request="{preferred: rack}")
    assert [finding.code for finding in found(text + workload("x", "a", 1))] == ["KC601", "KC506"]


@pytest.mark.parametrize("spec", ["", "queueingStrategy: StrictFIFO"])
@pytest.mark.parametrize("asked", REQUESTS)
def test_nodes_are_elsewhere_if_none_is_given(asked: str, spec: str) -> None:
    text = HALL + FLAVOR + queue("a", "nominalQuota: 40", spec=spec) + local_queue("a")
    assert [finding.code for finding in found(text + workload("w", "a", 5, request=REQUESTS[asked]))] == ["KC502"]


def test_pods_without_a_topology_in_flavors_that_have_none_are_said_to_wait() -> None:
    text = (
        flavor() + queue("a") + local_queue("a") + node("n1") + workload("w", "a", 1, request="{unconstrained: true}")
    )
    (finding,) = found(text)
    assert finding.problem.remedy == "ask for no topology, or use another queue"


TAINTED_RACK = (world(taints=TAINT) + node("n2", LABELS.replace("n1", "n2"), TAINT)).replace(
    ", {nodeLabel: kubernetes.io/hostname}", ""
) + workload("w", "a", 1, request="{unconstrained: true}")


def test_taints_are_a_matter_of_the_flavor_where_kueue_looks_at_racks_only() -> None:
    """As it does before 0.20.0."""
    (finding,) = check(parse_manifests(TAINTED_RACK), configuration=Configuration(release="0.19"))
    assert (finding.code, finding.problem.field) == ("KC105", "spec")
    assert "reserved=physics:NoSchedule" in finding.problem.message


def test_taints_are_a_matter_of_the_pods_where_kueue_looks_at_the_nodes_of_racks() -> None:
    (finding,) = found(TAINTED_RACK)
    assert (finding.code, str(finding.object)) == ("KC506", 'Workload "team/w"')
    assert finding.problem.message == (
        "all domains together have room for none of 1 pod, even if nothing else runs; of 2 nodes 2 have the taint "
        "reserved=physics:NoSchedule, which the pods do not tolerate"
    )


@pytest.mark.parametrize("spec", ["", "queueingStrategy: StrictFIFO"])
def test_who_only_waits_for_another_is_not_found(spec: str) -> None:
    text = (
        world(spec=spec)
        + workload("v", "a", 4, request="{required: rack}")
        + workload("w", "a", 3, request="{required: rack}")
    )
    assert found(text) == []


def test_pods_that_no_node_takes_are_found_where_quota_is_short_too() -> None:
    """A workload's own message names the first cause, which others will remove."""
    text = world().replace("nominalQuota: 40", "nominalQuota: 6") + workload("w", "a", 4)
    late = workload("x", "a", 6, request="{required: rack}")
    (finding,) = [finding for finding in found(text + late) if finding.code == "KC506"]
    assert str(finding.object) == 'Workload "team/x"'
