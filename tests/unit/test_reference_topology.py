"""Placements by the reference model: rules of which no recorded answer says anything (rules/08)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kueuecore.reference.settings import Settings
from kueuecore.reference.topology.assignment import Assumed, TopologyAssignment
from kueuecore.reference.topology.capacity import FlavorNodes, TopologyUse, fit
from kueuecore.reference.topology.domains import Ask, Search
from kueuecore.reference.topology.encoding import encoded
from kueuecore.reference.topology.flavors import first_failure, place_all
from kueuecore.reference.topology.placement import NoPlaceError, place
from kueuecore.reference.topology.replacement import replaced
from tests.reference_topologies import ask, flavor_nodes
from tests.topologies import HOST, RACK, node, pod

Json = dict[str, Any]


def settings(**gates: bool) -> Settings:
    return Settings({"featureGates": gates})


def search(nodes: FlavorNodes, **gates: bool) -> Search:
    return Search(nodes, settings(**gates), Assumed())


def stand(assignment: TopologyAssignment) -> dict[str, int]:
    return {values[-1]: count for values, count in assignment.domains}


def assigned(**hosts: int) -> TopologyAssignment:
    return TopologyAssignment((HOST,), tuple(((name,), count) for name, count in hosts.items()))


# Nodes and capacity.


def test_nodes_with_one_hostname_are_one_domain_with_the_taints_of_the_first() -> None:
    """rules/08 §4.2."""
    one, two = node("a", "r", cpu=2), node("b", "r", cpu=3, taints=[{"key": "x", "effect": "NoSchedule"}])
    two["metadata"]["labels"][HOST] = "a"
    assert stand(place(search(flavor_nodes((RACK, HOST), one, two)), ask(5))["main"]) == {"a": 5}
    one["spec"]["taints"], two["spec"]["taints"] = two["spec"]["taints"], []
    with pytest.raises(NoPlaceError, match='Total nodes: 1; excluded: taint "x:NoSchedule": 1'):
        place(search(flavor_nodes((RACK, HOST), one, two)), ask(1))


def test_taints_and_selectors_count_below_racks_only_since_nodes_do() -> None:
    """rules/08 §4.7."""
    tainted = node("a", "r", taints=[{"key": "x", "effect": "NoSchedule"}])
    asked = replace(ask(1), template={"spec": {"nodeSelector": {"never": "there"}}})
    before_0_20 = settings(TASNodeFeasibilityForAllLevels=False)
    nodes = flavor_nodes((RACK,), tainted, settings=before_0_20)
    assert stand(place(Search(nodes, before_0_20, Assumed()), asked)["main"]) == {"r": 1}
    with pytest.raises(NoPlaceError, match='Total nodes: 1; excluded: taint "x:NoSchedule": 1'):
        place(search(flavor_nodes((RACK,), tainted)), asked)


@pytest.mark.parametrize(
    ("requests", "capacity", "expected"),
    [
        ({"cpu": 2, "gpu": 1}, {"cpu": 9, "gpu": 4}, (4, "cpu")),
        ({"cpu": 2, "gpu": 0}, {"cpu": 9}, (4, "cpu")),
        ({"gpu": 1, "cpu": 1}, {"cpu": -3}, (0, "cpu")),
        ({}, {"cpu": 1}, (0, "")),
        ({"gpu": 0}, {}, (2**31 - 1, "gpu")),
    ],
)
def test_so_many_pods_fit_as_the_scarcest_resource_allows(
    requests: dict[str, int], capacity: dict[str, int], expected: tuple[int, str]
) -> None:
    """rules/08 §4.6."""
    assert fit(requests, capacity, Settings()) == expected


def test_pods_that_have_ended_or_were_placed_by_kueue_do_not_count() -> None:
    """rules/08 §4.4."""
    ended, own = pod("ended", "a"), pod("own", "a", annotations={"kueue.x-k8s.io/podset-required-topology": RACK})
    ended["status"]["phase"] = "Succeeded"
    nodes = flavor_nodes((RACK, HOST), node("a", "r", cpu=4), pods=(ended, own, pod("other", "a"), pod("far", "b")))
    assert nodes.remaining("a") == {"cpu": 3000, "pods": 109}


def test_with_the_kube_schedulers_filters_ports_of_the_node_count_and_flavors_tolerate_nothing() -> None:
    """rules/08 §4.7."""
    taken = pod("web", "a")
    taken["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    web = replace(ask(1), template={"spec": taken["spec"]})
    nodes = flavor_nodes((RACK, HOST), node("a", "r", cpu=9), node("b", "r", cpu=9), pods=(taken,))
    assert stand(place(search(nodes, SchedulerLibraryIntegration=True), web)["main"]) == {"b": 1}
    taint = {"key": "x", "effect": "NoSchedule"}
    tainted = flavor_nodes((RACK, HOST), node("a", "r", taints=[taint]), tolerations=[{"operator": "Exists"}])
    assert stand(place(search(tainted), ask(1))["main"]) == {"a": 1}
    with pytest.raises(NoPlaceError, match=r"doesn't allow to fit any of 1 pod\(s\)$"):
        place(search(tainted, SchedulerLibraryIntegration=True), ask(1))


# Placement.


def test_best_fit_ends_on_the_smallest_host_and_least_free_begins_there() -> None:
    """rules/08 §8, the example."""
    nodes = flavor_nodes((RACK, HOST), *(node(f"n{cpu}{i}", "r", cpu=cpu) for i, cpu in enumerate((3, 3, 2, 1))))
    assert stand(place(search(nodes), ask(7, required=RACK))["main"]) == {"n13": 1, "n30": 3, "n31": 3}
    assert stand(place(search(nodes), ask(7, unconstrained=True))["main"]) == {"n13": 1, "n22": 2, "n30": 3, "n31": 1}


def test_pods_that_may_stand_anywhere_take_the_fullest_hosts_of_all_racks() -> None:
    """rules/08 §7.6: they are not gathered in one rack."""
    nodes = flavor_nodes((RACK, HOST), node("a", "r1", cpu=1), node("b", "r1", cpu=5), node("c", "r2", cpu=2))
    assert stand(place(search(nodes), ask(3, preferred=HOST))["main"]) == {"b": 3}
    assert stand(place(search(nodes), ask(6, unconstrained=True))["main"]) == {"a": 1, "c": 2, "b": 3}
    assert stand(place(search(nodes), ask(6, preferred=HOST))["main"]) == {"a": 1, "b": 5}


def test_of_racks_with_as_many_slices_the_one_with_fewer_pods_to_spare_is_taken() -> None:
    """rules/08 §6.1."""
    nodes = flavor_nodes((RACK,), node("a", "r1", cpu=3), node("b", "r2", cpu=2))
    asked = ask(2, required=RACK, podSetSliceRequiredTopology=RACK, podSetSliceSize=2)
    assert stand(place(search(nodes), asked)["main"]) == {"r2": 2}


def test_below_slices_the_fullest_hosts_are_taken_first() -> None:
    """rules/08 §6.2."""
    nodes = flavor_nodes((RACK, HOST), *(node(f"n{cpu}", "r", cpu=cpu) for cpu in (3, 2, 1)))
    asked = ask(4, required=RACK, podSetSliceRequiredTopology=RACK, podSetSliceSize=4)
    assert stand(place(search(nodes), asked)["main"]) == {"n1": 1, "n2": 2, "n3": 1}


def test_a_leader_goes_where_it_costs_the_workers_least() -> None:
    """rules/08 §5.4."""
    nodes = flavor_nodes((RACK, HOST), node("a", "r", cpu=4), node("b", "r", cpu=6, pods=3))
    given = place(search(nodes), ask(6, required=RACK, name="workers"), ask(1, 3, name="leader"))
    assert (stand(given["leader"]), stand(given["workers"])) == ({"b": 1}, {"b": 2, "a": 4})


def test_of_two_pod_sets_of_one_size_the_second_leads() -> None:
    """rules/08 §5.1: the other one says what is asked of topology."""
    nodes = {"tas": flavor_nodes((RACK, HOST), node("a", "r1", cpu=1), node("b", "r1", cpu=1), node("c", "r2", cpu=2))}
    group = [ask(1, name="x", required=RACK, podSetGroupName="g"), ask(1, name="y", required=HOST, podSetGroupName="g")]
    given = place_all(nodes, {"tas": group}, settings())
    assert {name: stand(each.assignment) for name, each in given.items() if each.assignment} == {
        "x": {"b": 1},
        "y": {"a": 1},
    }


@pytest.mark.parametrize(
    ("hosts", "count", "expected"),
    [([(15,), (15,)], 25, [13, 12]), ([(20, 10), (15, 15)], 22, [11, 11]), ([(10, 5), (5, 5, 5)], 15, [5, 5, 5])],
)
def test_balanced_placement_gives_each_host_as_much_as_the_others(
    hosts: list[tuple[int, ...]], count: int, expected: list[int]
) -> None:
    """rules/08 §9, the examples: each tuple is a rack."""
    made = [node(f"r{r}h{h}", f"r{r}", cpu=cpu) for r, rack in enumerate(hosts) for h, cpu in enumerate(rack)]
    nodes = flavor_nodes((RACK, HOST), *made)
    given = place(search(nodes, TASBalancedPlacement=True), ask(count, preferred=RACK))["main"]
    assert [n for _, n in given.domains] == expected


def test_balanced_placement_of_less_than_a_slice_places_nothing() -> None:
    """rules/08 §9.2: Kueue divides by zero."""
    nodes = flavor_nodes((RACK, HOST), node("a", "r", cpu=4))
    asked = ask(1, preferred=RACK, podSetSliceRequiredTopology=HOST, podSetSliceSize=2)
    assert place(search(nodes, TASBalancedPlacement=True, TASPartialSlices=False), asked)["main"].domains == ()
    assert stand(place(search(nodes, TASBalancedPlacement=True), asked)["main"]) == {"a": 1}


def test_an_admission_check_may_not_ask_for_another_label_than_the_pods() -> None:
    """rules/08 §10."""
    nodes = flavor_nodes((RACK, HOST), node("a", "r"))
    asked = replace(
        ask(1), template={"spec": {"nodeSelector": {"pool": "a"}}}, updates=({"nodeSelector": {"pool": "b"}},)
    )
    with pytest.raises(NoPlaceError, match=r"^invalid podSetUpdate .*key=pool, value1=a, value2=b$"):
        place(search(nodes), asked)


def test_of_several_failures_that_of_the_first_flavor_and_group_is_reported() -> None:
    """rules/08 §10: Kueue reports any of them."""
    asks = {"b": [ask(9, name="first")], "a": [ask(1, name="fits"), ask(9, name="second"), ask(9, name="third")]}
    nodes = {name: flavor_nodes((RACK, HOST), node(f"{name}1", "r", cpu=2)) for name in "ab"}
    given = place_all(nodes, asks, settings())
    failure = first_failure(given)
    assert failure is not None
    assert (failure[0], list(given)) == ("second", ["fits", "second", "first"])


def test_prefix_and_suffix_of_hostnames_do_not_overlap() -> None:
    """rules/08 §15.2."""
    hosts = {"node-aa-x": 1, "node-a-x": 1}
    reported = encoded(assigned(**hosts), by_prefix=False)["slices"][0]["valuesPerLevel"][0]
    assert reported == {"individual": {"prefix": "node-", "suffix": "a-x", "roots": ["a", ""]}}


# Replacement and elastic slices.


def test_a_replacement_that_has_to_complete_a_slice_on_a_host_below_a_rack_finds_none() -> None:
    """rules/08 §13.5: the host is looked for by its name alone among full paths."""
    asked = ask(4, preferred=HOST, podSetSliceRequiredTopology=HOST, podSetSliceSize=4)
    rest = assigned(a=3, lost=1)
    flat, deep = (
        flavor_nodes(levels, node("a", "r", cpu=9), node("b", "r", cpu=9)) for levels in ((HOST,), (RACK, HOST))
    )
    assert stand(replaced(search(flat), asked, rest, "lost")[0]) == {"a": 4}
    with pytest.raises(NoPlaceError, match=r"excluded: topologyDomain: 2$"):
        replaced(search(deep), asked, rest, "lost")


def test_a_replacement_stays_in_the_rack_that_is_required() -> None:
    """rules/08 §13.5, though another would suit better."""
    made = (("a", "r1", 2), ("b", "r1", 3), ("c", "r2", 1))
    nodes = flavor_nodes((RACK, HOST), *(node(name, rack, cpu=cpu) for name, rack, cpu in made))
    nodes.charge(TopologyUse(assigned(a=2), {"cpu": 1000}))
    assert stand(replaced(search(nodes), ask(3, required=RACK), assigned(a=2, lost=1), "lost")[0]) == {"a": 2, "b": 1}
    assert stand(replaced(search(nodes), ask(3, preferred=RACK), assigned(a=2, lost=1), "lost")[0]) == {"a": 2, "c": 1}


def test_slices_alone_have_no_level_any_more_once_one_of_them_is_to_be_completed() -> None:
    """rules/08 §13.5."""
    asked = ask(4, podSetSliceRequiredTopology=RACK, podSetSliceSize=4)
    nodes = flavor_nodes((RACK, HOST), node("a", "r", cpu=9), node("b", "r", cpu=9))
    with pytest.raises(NoPlaceError, match="topology level not specified"):
        replaced(search(nodes), asked, assigned(a=3, lost=1), "lost")


def test_of_several_racks_that_lack_a_slice_the_first_of_the_assignment_gets_it() -> None:
    """rules/08 §13.5: before 0.20.0 Kueue takes any, and the first by name is taken here."""
    asked = ask(6, preferred=RACK, podSetSliceRequiredTopology=RACK, podSetSliceSize=2)
    there = [node(name, rack, cpu=9) for name, rack in (("a", "r2"), ("b", "r1"))]
    for is_on, expected in ((True, {"a": 2, "b": 3}), (False, {"b": 4, "a": 1})):
        using = settings(TASPartialSlices=is_on)
        nodes = Search(flavor_nodes((RACK, HOST), *there, settings=using), using, Assumed())
        assert stand(replaced(nodes, asked, assigned(a=1, b=3, lost=1), "lost")[0]) == expected


def elastic(worker: Ask, leader: Ask) -> dict[str, Json]:
    nodes = {"tas": flavor_nodes((HOST,), node("a", "r", cpu=2), node("b", "r", cpu=9))}
    given = place_all(nodes, {"tas": [leader, worker]}, settings(ElasticJobsViaWorkloadSlicesWithTAS=True))
    return {name: stand(each.assignment) for name, each in given.items() if each.assignment is not None}


def test_a_smaller_slice_stays_where_it_was_and_is_placed_anew_if_its_leader_is_nowhere() -> None:
    """rules/08 §14: without a leader's place Kueue panics."""
    group: Json = {"unconstrained": True, "podSetGroupName": "g"}
    worker = replace(ask(2, name="workers", **group), previous=assigned(b=3))
    leader = ask(1, name="leader", **group)
    assert elastic(worker, replace(leader, previous=assigned(a=1))) == {"workers": {"b": 2}, "leader": {"a": 1}}
    assert elastic(worker, leader) == {"leader": {"b": 1}, "workers": {"b": 2}}


def test_what_slices_leave_over_is_a_shorter_one_or_not_placed() -> None:
    """rules/08 §7."""
    nodes = flavor_nodes((RACK, HOST), node("a", "r", cpu=9))
    asked = ask(7, required=RACK, podSetSliceRequiredTopology=HOST, podSetSliceSize=2)
    assert stand(place(search(nodes), asked)["main"]) == {"a": 7}
    assert stand(place(search(nodes, TASPartialSlices=False), asked)["main"]) == {"a": 6}


def test_items_on_one_node_are_asked_one_by_one() -> None:
    """rules/08 §11.6."""
    nodes = flavor_nodes((RACK, HOST), node("a", "r", cpu=3))
    uses = [TopologyUse(assigned(a=2), {"cpu": 1000}), TopologyUse(assigned(a=2), {"cpu": 1000})]
    assert [nodes.fits(use) for use in uses] == [True, True]
