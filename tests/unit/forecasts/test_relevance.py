"""What is left out of futures because it shares nothing with what is asked about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from random import Random
from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore._json import JsonObject, text_at
from kueuecore.forecasts import Eta, eta, forecast
from kueuecore.forecasts.base_state import State
from kueuecore.forecasts.present_workloads import present_workloads
from kueuecore.forecasts.relevance import local_queues_of, relevant_part
from kueuecore.manifests import Manifest
from kueuecore.scenarios import ClusterPart, DeleteObject, Scenario, Target, TimedChange, Work
from tests.unit.forecasts.present_states import START, workload

KUEUE = "kueue.x-k8s.io/v1beta2"


def queue(name: str, cohort: str = "", *, flavor: str = "main", cpu: int = 8, **spec: Any) -> Iterator[Manifest]:
    """A ClusterQueue with a LocalQueue of the same name."""
    quotas: JsonObject = {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": str(cpu)}]}
    whole: JsonObject = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quotas]}],
        **({"cohortName": cohort} if cohort else {}),
        **spec,
    }
    yield Manifest({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": whole})
    metadata: JsonObject = {"name": name, "namespace": "ns"}
    yield Manifest({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}})


def thing(kind: str, name: str, spec: JsonObject | None = None, *, api: str = KUEUE) -> Manifest:
    return Manifest({"apiVersion": api, "kind": kind, "metadata": {"name": name}, **({"spec": spec} if spec else {})})


FLAVORS = (thing("Namespace", "ns", api="v1"), thing("ResourceFlavor", "main"))
TREES = (
    *FLAVORS,
    thing("Cohort", "left", {"parentName": "root"}),
    thing("Cohort", "right", {"parentName": "root"}),
    *queue("a", "left"),
    *queue("b", "right"),
    *queue("c", "other"),
    *queue("d"),
)


def at_home(workload: Manifest) -> Manifest:
    """A running Workload in the ClusterQueue with the name of its LocalQueue."""
    status: Any = workload.object.get("status")
    if status is not None:
        status["admission"]["clusterQueue"] = text_at(workload.object, "spec", "queueName")
    return workload


def given(objects: Sequence[Manifest], *workloads: Manifest, **scenario: Any) -> State:
    """A state with these objects and Workloads."""
    whole = Scenario(start=START, **scenario)
    return State(
        scenario=whole, objects=tuple(objects), workloads=present_workloads([*objects, *workloads]), trusted=False
    )


def kept(state: State, *targets: str) -> tuple[set[str], set[str]]:
    """The ClusterQueues and Workloads that stay."""
    part = relevant_part(state, [("ns", target) for target in targets])
    queues = {
        text_at(it.object, "metadata", "name") for it in part.objects if text_at(it.object, "kind") == "ClusterQueue"
    }
    assert {name for _, name in local_queues_of(part.objects)} == queues
    return queues, {workload.key.removeprefix("ns/") for workload in part.workloads}


WAITING = [workload(f"in-{name}", queue=name) for name in "abcd"]


def test_only_the_tree_of_the_target_stays() -> None:
    state = given(TREES, *WAITING)
    assert kept(state, "in-a") == ({"a", "b"}, {"in-a", "in-b"})
    assert kept(state, "in-c") == ({"c"}, {"in-c"})
    assert kept(state, "in-d") == ({"d"}, {"in-d"})
    assert kept(state, "in-c", "in-d") == ({"c", "d"}, {"in-c", "in-d"})
    part = relevant_part(state, [("ns", "in-c")])
    assert {text_at(it.object, "kind") for it in part.objects} == {
        "Namespace",
        "ResourceFlavor",
        "ClusterQueue",
        "LocalQueue",
    }


def test_cohorts_in_a_cycle_are_one_tree() -> None:
    cohorts = (thing("Cohort", "x", {"parentName": "y"}), thing("Cohort", "y", {"parentName": "x"}))
    state = given([*FLAVORS, *cohorts, *queue("a", "x"), *queue("b", "y"), *queue("c")], *WAITING[:3])
    assert kept(state, "in-a") == ({"a", "b"}, {"in-a", "in-b"})


def test_queues_with_topologies_may_share_nodes() -> None:
    flavors = [thing("ResourceFlavor", name, {"topologyName": "t", "nodeLabels": {"p": name}}) for name in ("t1", "t2")]
    objects = [*FLAVORS, *flavors, *queue("a", flavor="t1"), *queue("b", flavor="t2"), *queue("c")]
    assert kept(given(objects, *WAITING[:3]), "in-a") == ({"a", "b"}, {"in-a", "in-b"})
    assert kept(given(objects, *WAITING[:3]), "in-c") == ({"c"}, {"in-c"})


def test_a_workload_may_hold_quota_where_it_no_longer_belongs() -> None:
    moved = workload("moved", queue="d", admitted=60)
    status: Any = moved.object["status"]
    status["admission"]["clusterQueue"] = "c"
    state = given(TREES, *WAITING, moved)
    assert kept(state, "in-c") == ({"c", "d"}, {"in-c", "in-d", "moved"})


SETTINGS = {
    "blocked": "waitForPodsReady: {blockAdmission: true}",
    "shared": "admissionFairSharing: {usageHalfLifeTime: 1h, usageSamplingInterval: 5m}",
    "variants": "featureGates: {ConcurrentAdmission: true}",
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_nothing_is_left_out_where_a_setting_couples_all(settings: str) -> None:
    text = f"apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n{settings}\n"
    state = given(TREES, *WAITING, cluster=ClusterPart(configuration=Configuration.parse(text)))
    assert relevant_part(state, [("ns", "in-d")]) is state


def test_nothing_is_left_out_where_more_is_yet_to_come() -> None:
    work = Work(name="more", job=workload("more"), at=10)
    change = TimedChange(at=5, action=DeleteObject(Target(kind="Cohort", name="left")))
    coming: Any = {"work": (work,)}, {"timetable": (change,)}
    for more in coming:
        state = given(TREES, *WAITING, **more)
        assert relevant_part(state, [("ns", "in-d")]) is state


def crowded(seed: int) -> Scenario:
    """Four trees with preemption and borrowing, busy, with a past."""
    random = Random(seed)
    preemption: JsonObject = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
    trees = [(f"q{n}", f"tree{n % 4}") for n in range(8)]
    objects = [*FLAVORS]
    for n, (name, tree) in enumerate(trees):
        strategy = ("StrictFIFO", "BestEffortFIFO")[n // 4]
        objects += queue(name, tree, preemption=preemption, queueingStrategy=strategy)
    workloads = []
    for name, _ in trees:
        for number in range(12):
            ended = 3600.0 * random.random()
            seconds = 10 + 900 * random.random()
            begun = ended + seconds
            done = workload(f"{name}-done{number}", cpu=2, created=begun, admitted=begun, finished=ended, queue=name)
            workloads.append(at_home(done))
        for number in range(3):
            begun = 300 * random.random()
            runs = workload(f"{name}-runs{number}", cpu=2, created=begun + 60, admitted=begun, queue=name)
            workloads.append(at_home(runs))
        for number in range(4):
            cpu, priority = random.choice([1, 2, 5]), random.choice([0, 0, 7])
            since = 600 * random.random()
            workloads.append(workload(f"{name}-waits{number}", cpu=cpu, created=since, priority=priority, queue=name))
    return Scenario(cluster=ClusterPart(objects=(*objects, *workloads)), start=START)


def asked(scenario: Scenario, targets: Sequence[str], seeds: int) -> Eta:
    return eta(scenario, targets, seeds=range(seeds), horizon_seconds=6 * 3600)


@pytest.mark.parametrize("seed", range(3))
def test_the_same_futures_give_the_same_answers_with_and_without_the_rest(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, targets = crowded(seed), ["q0-waits1", "q4-waits3"]
    part = asked(scenario, targets, 12)
    sizes: list[int] = []

    def whole(state: State, _: object) -> State:
        sizes.append(len(state.workloads))
        return replace(state)

    monkeypatch.setattr(forecast, "relevant_part", whole)
    assert asked(scenario, targets, 12) == part
    assert sizes == [8 * 7]
    waits = [second for row in part.forecasts for second in row.seconds]
    assert len({second for second in waits if 0 < second < inf}) > 10
