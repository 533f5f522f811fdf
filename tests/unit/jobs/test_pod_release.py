"""Pods behind the topology gate: which go when, and where to (rules/08 §12)."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import ManifestError
from kueuecore.jobs import TopologyAssignment, release_pods

Json = dict[str, Any]

PREFIX = "kueue.x-k8s.io/"
GATE = f"{PREFIX}topology"
HOST, RACK = "kubernetes.io/hostname", "example.com/rack"
INDEX, GROUP = "example.com/index", "example.com/job"


def place(*domains: tuple[str, int], level: str = HOST) -> Json:
    """An assignment: how many pods go where."""
    values = [{"individual": {"roots": [value for value, _ in domains]}}]
    counts = {"individual": [count for _, count in domains]}
    return {
        "levels": [level],
        "slices": [{"domainCount": len(domains), "valuesPerLevel": values, "podCounts": counts}],
    }


def workload(*pod_sets: tuple[str, int, Json, Json | None], admitted: str = "True", **status: Any) -> Json:
    """A Workload with pod sets: name, count, topology request, assignment."""
    spec = [{"name": name, "count": count, "topologyRequest": request} for name, count, request, _ in pod_sets]
    assigned = [
        {"name": name, "count": count} | ({"topologyAssignment": its} if its else {})
        for name, count, _, its in pod_sets
    ]
    conditions = [{"type": "Admitted", "status": admitted}]
    return {
        "apiVersion": f"{PREFIX}v1beta2",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"podSets": spec},
        "status": {"conditions": conditions, "admission": {"podSetAssignments": assigned}, **status},
    }


def pod(
    name: str,
    *,
    of: str = "main",
    on: str | None = None,
    labels: Json | None = None,
    phase: str = "Pending",
    notes: Json | None = None,
) -> Json:
    """A pod that waits, or was released to a place."""
    annotations = {f"{PREFIX}workload": "w", **(notes or {})}
    spec: Json = {"schedulingGates": [{"name": GATE}]} if not on else {"nodeSelector": {HOST: on}}
    metadata = {
        "name": name,
        "namespace": "ns",
        "labels": {f"{PREFIX}podset": of, **(labels or {})},
        "annotations": annotations,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def ranked(
    name: str,
    index: object,
    *,
    on: str | None = None,
    group: object = None,
    of: str = "main",
    notes: Json | None = None,
) -> Json:
    """A pod that has an index."""
    labels = {INDEX: str(index)} | ({} if group is None else {GROUP: str(group)})
    return pod(name, of=of, on=on, labels=labels, notes=notes)


def released(workload: Json, *pods: Json) -> dict[str, str]:
    """By pod, its host."""
    manifests: list[Json] = [release_pod.manifest for release_pod in release_pods(workload, pods)]
    return {manifest["metadata"]["name"]: manifest["spec"]["nodeSelector"][HOST] for manifest in manifests}


RANKS = {"podIndexLabel": INDEX}
TWO_AND_ONE = place(("x1", 2), ("x2", 1))


def test_the_gate_is_removed_and_the_levels_are_added_to_the_node_selector() -> None:
    gated = pod("p")
    gated["spec"] |= {"nodeSelector": {"zone": "z"}, "schedulingGates": [{"name": "other"}, {"name": GATE}]}
    racks = {"levels": ["block", RACK], "slices": [
        {"domainCount": 1, "valuesPerLevel": [{"universal": "b"}, {"universal": "r"}], "podCounts": {"universal": 1}}
    ]}  # fmt: skip
    (release,) = release_pods(workload(("main", 1, {}, racks)), [gated])
    assert release.manifest == {
        **gated,
        "spec": {"nodeSelector": {"zone": "z", "block": "b", RACK: "r"}, "schedulingGates": [{"name": "other"}]},
    }


@pytest.mark.parametrize(
    "kept",
    [
        workload(("main", 3, {}, TWO_AND_ONE), admitted="False"),
        workload(("main", 3, {}, None)),
        workload(("other", 3, {}, TWO_AND_ONE)),
    ],
    ids=["not admitted", "without a place", "of another pod set"],
)
def test_a_pod_stays_gated(kept: Json) -> None:
    assert released(kept, pod("p")) == {}


def test_pods_of_other_workloads_are_left_alone() -> None:
    foreign = pod("p", notes={f"{PREFIX}workload": "another"})
    assert released(workload(("main", 3, {}, TWO_AND_ONE)), foreign) == {}


def test_pods_of_an_elastic_job_belong_to_its_first_slice() -> None:
    second = workload(("main", 3, {}, TWO_AND_ONE))
    second["metadata"] |= {"name": "w-2", "annotations": {f"{PREFIX}workload-slice-name": "w"}}
    new = pod("p", notes={f"{PREFIX}workload": "w-2", f"{PREFIX}workload-slice-name": "w"})
    assert released(second, new) == {"p": "x1"}


def test_without_ranks_pods_fill_the_domains_in_the_order_of_their_names() -> None:
    pods = [pod(name) for name in ("c", "a", "d", "b")]
    assert released(workload(("main", 3, {}, TWO_AND_ONE)), *pods) == {"a": "x1", "b": "x1", "c": "x2"}


def test_released_pods_keep_their_room() -> None:
    pods = [pod("a", on="x1"), pod("b"), pod("c", on="x2"), pod("d")]
    assert released(workload(("main", 3, {}, TWO_AND_ONE)), *pods) == {"b": "x1"}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_have_ended_count_for_nothing(phase: str) -> None:
    pods = [pod("a", on="x2", phase=phase), pod("b", on="x1"), pod("c", on="x1"), pod("d"), pod("e", phase=phase)]
    assert released(workload(("main", 3, {}, TWO_AND_ONE)), *pods) == {"d": "x2"}


def test_a_pod_being_deleted_still_takes_its_room() -> None:
    going = pod("a", on="x2")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert released(workload(("main", 1, {}, place(("x2", 1)))), going, pod("b")) == {}


def test_a_rank_counts_the_slots_of_the_domains_in_their_order() -> None:
    pods = [ranked("a", 2), ranked("b", 1), ranked("c", 0)]
    assert released(workload(("main", 3, RANKS, TWO_AND_ONE)), *pods) == {"a": "x2", "b": "x1", "c": "x1"}


def test_a_pod_that_comes_first_does_not_take_the_slot_of_another_rank() -> None:
    assert released(workload(("main", 3, RANKS, TWO_AND_ONE)), ranked("a", 2)) == {"a": "x2"}


def test_jobs_of_a_set_count_on_from_one_another() -> None:
    request = RANKS | {"subGroupIndexLabel": GROUP, "subGroupCount": 2}
    its = workload(("main", 4, request, place(("x1", 1), ("x2", 1), ("x3", 2))))
    pods = [ranked("a", 1, group=0), ranked("b", 1, group=1), ranked("c", 0, group=1)]
    assert released(its, *pods) == {"a": "x2", "b": "x3", "c": "x3"}


GROUPED = RANKS | {"podSetGroupName": "g"}


def test_the_larger_pod_set_of_a_group_counts_on_from_the_smaller_one() -> None:
    its = workload(
        ("workers", 2, GROUPED, place(("x1", 1), ("x2", 1))),
        ("leader", 1, GROUPED, place(("x9", 1))),
    )
    pods = [ranked("l", 0, of="leader"), ranked("a", 2, of="workers"), ranked("b", 1, of="workers")]
    assert released(its, *pods) == {"a": "x2", "b": "x1", "l": "x9"}


def test_of_two_equal_pod_sets_the_first_one_counts_first() -> None:
    its = workload(("first", 1, GROUPED, place(("x1", 1))), ("second", 1, GROUPED, place(("x2", 1))))
    # Greedy would place it, too; with index 0 its rank is below 0.
    pods = [ranked("a", 1, of="second"), ranked("b", 0, of="second")]
    assert released(its, pods[0]) == {"a": "x2"}
    assert released(its, *pods) == {"a": "x2"}


def test_an_offset_of_the_first_pod_counts_for_all() -> None:
    offset = {f"{PREFIX}pod-index-offset": "5"}
    pods = [ranked("a", 5, notes=offset), ranked("b", 7), ranked("c", 6)]
    assert released(workload(("main", 3, RANKS, TWO_AND_ONE)), *pods) == {"a": "x1", "b": "x2", "c": "x1"}


def test_an_offset_that_is_no_number_is_refused() -> None:
    bad = pod("p", of="second", notes={f"{PREFIX}pod-index-offset": "one"})
    its = workload(("main", 3, {}, TWO_AND_ONE), ("second", 3, {}, TWO_AND_ONE))
    expected = (
        r'Pod "ns/p": metadata.annotations\[kueue.x-k8s.io/pod-index-offset\]: Invalid value: "one": '
        "must be a number: invalid syntax"
    )
    with pytest.raises(ManifestError, match=expected) as refused:
        release_pods(its, [pod("a"), bad])
    assert refused.value.remedy.startswith("give the index of the first pod")


IN_JOBS = RANKS | {"subGroupIndexLabel": GROUP, "subGroupCount": 2}


@pytest.mark.parametrize(
    ("request_", "odd"),
    [
        ({}, ranked("b", 0)),
        (RANKS, pod("b")),
        (RANKS, ranked("b", "one")),
        (RANKS, ranked("b", "-1")),
        (RANKS, ranked("b", "+1")),
        (RANKS, ranked("b", 4)),
        (RANKS, ranked("b", 3)),
        (RANKS, ranked("b", 1)),
        (RANKS | {"subGroupIndexLabel": GROUP}, ranked("b", 0, group=0)),
        (RANKS | {"subGroupIndexLabel": GROUP, "subGroupCount": 0}, ranked("b", 0, group=0)),
        (IN_JOBS, ranked("b", 0)),
        (IN_JOBS, ranked("b", 0, group=2)),
        (IN_JOBS, ranked("b", 2, group=0)),
    ],
    ids=[
        "no label is known",
        "no index",
        "not a number",
        "below zero",
        "signed",
        "beyond the bound",
        "beyond the assignment",
        "twice the same",
        "without a count of jobs",
        "no jobs",
        "no job",
        "job beyond the count",
        "index beyond its job",
    ],
)
def test_ranks_that_are_of_no_use_leave_it_to_the_order_of_names(request_: Json, odd: Json) -> None:
    # By rank, the first pod would go to x2.
    others = [ranked("a", 1, group=1), ranked("c", 0, group=1)]
    assert released(workload(("main", 4, request_, TWO_AND_ONE)), odd, *others) == {"a": "x1", "b": "x1", "c": "x2"}


def test_a_pod_that_was_released_to_the_place_of_another_rank_spoils_the_ranks() -> None:
    pods = [ranked("a", 0, on="x2"), ranked("b", 2), ranked("c", 1)]
    assert released(workload(("main", 3, RANKS, TWO_AND_ONE)), *pods) == {"b": "x1", "c": "x1"}


def test_pods_whose_node_is_unhealthy_stay_gated() -> None:
    its = workload(("main", 3, RANKS, TWO_AND_ONE), unhealthyNodes=[{"name": "x1"}])
    assert released(its, *(ranked(name, index) for index, name in enumerate("abc"))) == {"c": "x2"}
    greedy = workload(("main", 3, {}, TWO_AND_ONE), unhealthyNodes=[{"name": "x1"}])
    # They would go there first, so they do not move on to the next domain.
    assert released(greedy, *map(pod, "abc")) == {"c": "x2"}


def test_a_rack_of_the_name_of_an_unhealthy_node_is_none() -> None:
    its = workload(("main", 1, {}, place(("x1", 1), level=RACK)), unhealthyNodes=[{"name": "x1"}])
    (release,) = release_pods(its, [pod("a")])
    assert release.node_selector == {RACK: "x1"}


def test_an_assignment_is_its_slices_one_after_the_other() -> None:
    first: Json = {"domainCount": 2, "podCounts": {"universal": 3}, "valuesPerLevel": [
        {"universal": "b1"}, {"individual": {"prefix": "r", "suffix": "-z", "roots": ["1", "2"]}}
    ]}  # fmt: skip
    second: Json = {"domainCount": 1, "podCounts": {"individual": [1]}, "valuesPerLevel": [
        {"universal": "b2"}, {"individual": {"roots": ["r9"]}}
    ]}  # fmt: skip
    read = TopologyAssignment.of({"levels": ["block", RACK], "slices": [first, second]})
    assert [(domain.values, domain.count) for domain in read.domains] == [
        (("b1", "r1-z"), 3),
        (("b1", "r2-z"), 3),
        (("b2", "r9"), 1),
    ]
    assert TopologyAssignment.of({"levels": [HOST]}).domains == ()
