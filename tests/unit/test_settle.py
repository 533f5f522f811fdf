"""Cycles at one moment until nothing changes."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pytest

from kueuecore import Engine, settle, simulate, steady_state
from kueuecore.configuration import Configuration
from kueuecore.decisions import Decision, Preemption
from kueuecore.simulation import RunEnding
from kueuecore.states import Stage
from kueuecore.steady_state import Ending, Settled, find_preemption_loop
from kueuecore.testing import START, random_history
from kueuecore.times import TimeLike

NOW = "2026-01-01T00:00:00Z"
API = "kueue.x-k8s.io/v1beta2"


def flavor(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def queues(*flavors: tuple[str, int], **spec: Any) -> list[dict[str, Any]]:
    quotas = [{"name": name, "resources": [{"name": "cpu", "nominalQuota": quota}]} for name, quota in flavors]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
        *(flavor(name) for name, _ in flavors),
        {
            "apiVersion": API,
            "kind": "ClusterQueue",
            "metadata": {"name": "cq"},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": quotas}],
                **spec,
            },
        },
        {
            "apiVersion": API,
            "kind": "LocalQueue",
            "metadata": {"name": "lq", "namespace": "x"},
            "spec": {"clusterQueue": "cq"},
        },
    ]


def workload(name: str, cpu: int, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
    pod_sets = [{"name": "main", "count": 1, "template": template}]
    return {
        "apiVersion": API,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "x"},
        "spec": {"queueName": "lq", "podSets": pod_sets, **spec},
    }


def settled(objects: Sequence[dict[str, Any]]) -> tuple[Engine, Settled]:
    engine = Engine()
    engine.apply(objects, now=NOW)
    return engine, settle(engine, now=NOW)


def stages(engine: Engine) -> dict[str, Stage]:
    return {state.name: state.stage for state in engine.workloads()}


def test_everything_that_fits_is_admitted_and_the_rest_waits() -> None:
    engine, result = settled([*queues(("default", 5)), *(workload(f"w{i}", 2) for i in range(4))])
    assert stages(engine) == {"w0": "Admitted", "w1": "Admitted", "w2": "Pending", "w3": "Pending"}
    assert result.ending is Ending.SETTLED
    assert [admission.name for decision in result.decisions for admission in decision.admissions] == ["w0", "w1"]
    assert not engine.has_heads


def test_a_strict_head_that_does_not_fit_is_not_tried_forever() -> None:
    objects = [*queues(("a", 1), ("b", 1), queueingStrategy="StrictFIFO"), workload("large", 2), workload("small", 1)]
    engine, result = settled(objects)
    assert stages(engine) == {"large": "Pending", "small": "Pending"}
    assert engine.has_heads
    # One more than there are flavors.
    assert (result.ending, len(result.decisions)) == (Ending.SETTLED, 3)


def test_events_of_cycles_and_of_reconciling_are_all_there() -> None:
    stopped = queues(("default", 5), stopPolicy="HoldAndDrain")
    _, result = settled([*queues(("default", 5)), workload("w", 1)])
    assert [event.reason for event in result.events] == ["QuotaReserved", "Admitted"]
    engine = Engine()
    engine.apply([*queues(("default", 5)), workload("w", 1)], now=NOW)
    settle(engine, now=NOW)
    engine.apply(stopped, now=NOW)
    assert [event.reason for event in settle(engine, now=NOW).events] == ["EvictedDueToClusterQueueStopped"]


def test_an_evicted_job_stops_at_once_and_frees_its_quota() -> None:
    engine = Engine()
    engine.apply([*queues(("default", 1)), workload("first", 1), workload("second", 1)], now=NOW)
    settle(engine, now=NOW)
    assert stages(engine) == {"first": "Admitted", "second": "Pending"}
    engine.apply(workload("first", 1, active=False), now=NOW)
    settle(engine, now=NOW)
    assert stages(engine) == {"first": "Pending", "second": "Admitted"}


def test_workloads_evicted_before_stop_too() -> None:
    engine = Engine()
    engine.apply([*queues(("default", 1)), workload("first", 1), workload("second", 1, priority=1)], now=NOW)
    engine.cycle(NOW)
    engine.evict("second", namespace="x", now=NOW, reason="Deactivated", stopped=False)
    assert stages(engine) == {"first": "Pending", "second": "Admitted"}
    settle(engine, now=NOW)
    evicted = engine.workload("second", namespace="x").status["conditions"]
    assert {condition["type"]: condition["status"] for condition in evicted}["Evicted"] == "False"


def test_open_admission_checks_stay_open() -> None:
    active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": NOW}
    check = {
        "apiVersion": API,
        "kind": "AdmissionCheck",
        "metadata": {"name": "check"},
        "spec": {"controllerName": "example.com/check"},
        "status": {"conditions": [active]},
    }
    strategy = {"admissionChecks": [{"name": "check"}]}
    objects = [check, *queues(("default", 1), admissionChecksStrategy=strategy), workload("w", 1)]
    engine, result = settled(objects)
    assert stages(engine) == {"w": "QuotaReserved"}
    assert result.ending is Ending.SETTLED


def test_it_gives_up_after_max_cycles() -> None:
    engine = Engine()
    engine.apply([*queues(("default", 9)), *(workload(f"w{i}", 1) for i in range(5))], now=NOW)
    result = settle(engine, now=NOW, max_cycles=3)
    assert (result.ending, len(result.decisions)) == (Ending.CYCLE_LIMIT, 3)


def test_undecided_workloads_are_reported_once() -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": "true"}}]}}
    template: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "x"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    claimant = workload("w", 1)
    claims = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    claimant["spec"]["podSets"][0]["template"]["spec"]["resourceClaims"] = claims
    header = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
    mapping = "resources: {deviceClassMappings: [{name: gpus, deviceClassNames: [gpu]}]}"
    engine = Engine(Configuration.parse(header + mapping))
    engine.apply([*queues(("default", 9), queueingStrategy="StrictFIFO"), template, claimant], now=NOW)
    result = settle(engine, now=NOW)
    field = "spec.podSets[0].template.spec.resourceClaims[0]"
    assert [(undecided.key, undecided.field) for undecided in result.undecided] == [("x/w", field)]
    assert stages(engine) == {"w": "Pending"}


def test_victims_of_preemption_make_room_at_once() -> None:
    objects = queues(("default", 2), preemption={"withinClusterQueue": "LowerPriority"})
    engine = Engine()
    engine.apply([*objects, workload("low", 2)], now=NOW)
    settle(engine, now=NOW)
    engine.apply(workload("high", 2, priority=1), now=NOW)
    result = settle(engine, now=NOW)
    assert stages(engine) == {"high": "Admitted", "low": "Pending"}
    assert [
        (preemption.name, preemption.preemptor) for decision in result.decisions for preemption in decision.preemptions
    ] == [("low", "x/high")]
    assert result.ending is Ending.SETTLED


class Quarrel(Engine):
    """Every second cycle evicts what was admitted, as if it had been preempted."""

    def cycle(self, now: TimeLike) -> Decision:
        admitted = [other for other in self.workloads() if other.stage is Stage.ADMITTED]
        for other in admitted:
            self.evict(other.name, namespace=other.namespace, now=now, stopped=False)
        decision = super().cycle(now)
        vars(decision)["preemptions"] = tuple(
            Preemption(other.namespace, other.name, "cq", "x/other", "InClusterQueue", "") for other in admitted
        )
        return decision


def test_workloads_that_evict_each_other_in_a_loop_are_noticed() -> None:
    engine = Quarrel()
    engine.apply([*queues(("default", 1)), workload("a", 1), workload("b", 1)], now=NOW)
    result = settle(engine, now=NOW, max_cycles=50)
    assert result.ending is Ending.REPEATING
    assert len(result.decisions) < 10


def test_a_preemption_loop_says_who_preempts_whom() -> None:
    """The first world of docs/anomalies.md."""
    both = {"cohortName": "both"}
    left = {
        "withinClusterQueue": "LowerPriority",
        "reclaimWithinCohort": "Any",
        "borrowWithinCohort": {"policy": "LowerPriority"},
    }
    objects = queues(("default", 2), preemption=left, **both)
    right = [
        json.loads(json.dumps(object_).replace('"cq"', '"right"').replace('"lq"', '"right"')) for object_ in objects[2:]
    ]
    del right[0]["spec"]["preemption"]
    right[0]["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = 1
    jobs = [workload("small", 2), workload("large", 3, priority=1), workload("guest", 2, priority=2, queueName="right")]
    engine = Engine()
    engine.apply([*objects, *right, *jobs], now=NOW)
    loop = find_preemption_loop(engine, now=NOW)
    assert {other.stage for other in engine.workloads()} == {Stage.PENDING}
    assert loop is not None
    assert loop.keys == ("x/guest", "x/large", "x/small")
    assert [(preemption.preemptor, preemption.key) for preemption in loop.preemptions] == [
        ("x/small", "x/guest"),
        ("x/large", "x/small"),
    ]
    assert settle(engine, now=NOW).loop == loop
    run = simulate([*objects, *right, *jobs], now=NOW, max_cycles=100)
    assert run.ending is RunEnding.CYCLE_LIMIT
    assert run.loop is not None
    assert run.loop.keys == loop.keys
    assert run.loop.n_cycles == loop.n_cycles


def test_without_a_loop_there_is_none() -> None:
    objects = [*queues(("default", 2)), workload("a", 2), workload("b", 2)]
    engine, result = settled(objects)
    assert result.loop is None
    assert find_preemption_loop(engine, now=NOW) is None
    assert simulate(objects, now=NOW).loop is None


def test_states_are_compared_only_after_evictions(monkeypatch: pytest.MonkeyPatch) -> None:
    def fingerprint(engine: Engine) -> int:
        raise AssertionError("nothing was evicted")

    monkeypatch.setattr(steady_state, "_standings", fingerprint)
    settled([*queues(("default", 2)), workload("a", 1), workload("b", 1), workload("c", 1)])


def where_all_stand(engine: Engine) -> Hashable:
    """What `_standings` is a number of, in Python."""

    def evicted(status: Mapping[str, Any]) -> str:
        true = [
            condition
            for condition in status.get("conditions", ())
            if (condition["type"], condition["status"]) == ("Evicted", "True")
        ]
        return true[0]["lastTransitionTime"] if true else ""

    return tuple(
        (other.key, other.stage, other.place, evicted(other.status), json.dumps(other.flavors, sort_keys=True))
        for other in engine.workloads()
    )


@pytest.mark.parametrize("seed", range(12))
def test_states_have_one_number_if_all_workloads_stand_where_they_stood(seed: int) -> None:
    history = random_history(seed)
    engine = Engine(history.parsed_configuration())
    engine.apply(json.dumps(history.objects).encode(), now=START)
    numbers: dict[Hashable, int] = {}
    for minute in range(12):
        now = START + minute * 60_000_000_000
        engine.reconcile(now)
        decision = engine.cycle(now)
        for _ in range(2):
            assert numbers.setdefault(where_all_stand(engine), engine._core._standings()) == engine._core._standings()
            for preemption in (*decision.preemptions, *decision.evictions):
                engine.release(preemption.name, namespace=preemption.namespace, now=now)
        for other in engine.workloads()[minute % 3 :: 3]:
            if other.stage is Stage.ADMITTED:
                engine.evict(other.name, namespace=other.namespace, now=now)
    assert len(set(numbers.values())) == len(numbers)
