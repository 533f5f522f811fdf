"""What holds in runs in which checks are decided on: quota is kept, nothing runs too early, runs end."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kueuecore import Configuration
from kueuecore._json import int_at
from kueuecore.checks import CheckAnswer, CheckController, CheckState, Review, WorkloadKey, check_states
from kueuecore.provisioning import QueuedCapacity, Stock, VirtualProvisioning
from kueuecore.simulation import VirtualCluster
from kueuecore.testing import check_invariants
from kueuecore.times import SECOND_NS
from tests.property.worlds import times
from tests.random_runs import random_run

NAMES = ("a", "b", "dws")
KUEUE = "kueue.x-k8s.io/v1beta2"


def held(workload: Any) -> set[str]:
    conditions = workload.get("status", {}).get("conditions", ())
    return {condition["type"] for condition in conditions if condition["status"] == "True"}


class Whims(CheckController):
    """Says of each check what its seed says, after a while, and now and then that it has changed its mind."""

    controller_name = "example.com/whims"

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.since: dict[str, int] = {}
        self.wakes: dict[WorkloadKey, int] = {}

    def review(self, workload: Any, checks: Sequence[str], *, now: int) -> Review:
        metadata = workload["metadata"]
        if "QuotaReserved" not in held(workload) or held(workload) & {"Evicted", "Finished"}:
            return Review()
        answers = []
        for name, entry in check_states(workload).items():
            if name not in checks:
                continue
            turn = f"{self.seed}/{metadata['name']}/{name}/{entry.get('lastTransitionTime')}"
            chance = random.Random(turn)
            is_new = entry.get("state") == "Pending"
            at = self.since.setdefault(turn, now) + chance.choice((0, 0, 3, 20) if is_new else (3, 20)) * SECOND_NS
            state = chance.choices(list(CheckState), (1, 6, 2, 1) if is_new else (0, 0, 1, 1))[0]
            if not is_new and (state == entry.get("state") or chance.random() < 0.7 or int_at(entry, "retryCount") > 1):
                continue
            if at > now:
                key = metadata["namespace"], metadata["name"]
                self.wakes[key] = min(at, self.wakes.get(key, at))
            elif state is not CheckState.PENDING or not is_new:
                delay = chance.choice((None, 0, 7)) if state is CheckState.RETRY else None
                answers.append(CheckAnswer(name, state, turn[-3:], requeue_after_seconds=delay))
        return Review(answers=tuple(answers))

    def next_wake(self, *, after: int) -> int | None:
        return min((time for time in self.wakes.values() if time > after), default=None)

    def due(self, now: int) -> list[WorkloadKey]:
        due = [key for key, time in self.wakes.items() if time <= now]
        for key in due:
            del self.wakes[key]
        return due


def checked(thing: Any, chance: random.Random) -> Any:
    """A ClusterQueue that asks for some of the checks; all else as it is."""
    if thing["kind"] != "ClusterQueue":
        return thing
    rules = [{"name": name} for name in NAMES if chance.random() < 0.6]
    return {
        **thing,
        "spec": {**thing["spec"], **({"admissionChecksStrategy": {"admissionChecks": rules}} if rules else {})},
    }


def check(name: str) -> Any:
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "dws"}
    spec: Any = {"controllerName": Whims.controller_name}
    if name == "dws":
        spec = {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": parameters}
    active = {"type": "Active", "status": "True", "reason": "Active", "message": ""}
    status = {} if name == "dws" else {"status": {"conditions": [active]}}
    return {"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": {"name": name}, "spec": spec, **status}


@times(1)
@given(st.integers(min_value=0, max_value=2**40))
def test_quota_is_kept_and_nothing_runs_before_its_checks_are_ready(seed: int) -> None:
    case, chance = random_run(seed), random.Random(seed)
    retries = {"backoffLimitCount": 2, "backoffBaseSeconds": 5, "backoffMaxSeconds": 9}
    config = {"provisioningClassName": "queued", "retryStrategy": retries}
    objects = [
        {"apiVersion": KUEUE, "kind": "ProvisioningRequestConfig", "metadata": {"name": "dws"}, "spec": config},
        *map(check, NAMES),
        *(checked(object_, chance) for object_ in case["objects"] if object_["kind"] != "AdmissionCheck"),
    ]
    stock = Stock(amounts={"pods": 6}, delay_seconds=(0, 9), refused=0.2, patience_seconds=30, booking_seconds=15)
    capacity = QueuedCapacity({"region": stock}, seed=seed)
    provisioning = VirtualProvisioning(capacity)
    cluster = VirtualCluster(
        objects,
        configuration=Configuration.trusted({}, feature_gates=case["featureGates"]),
        now=case["config"]["now"],
        checks=[Whims(seed), provisioning],
        max_cycles=25,
        eviction_seconds=case["config"]["evictionSeconds"],
    )
    cluster.schedule(event for event in case["input"]["events"] if event["op"] != "update")
    n_steps, running = 0, set[str]()
    while cluster.step():
        n_steps += 1
        assert n_steps < 500, "the run ends"
        check_invariants(cluster.engine)
        assert all(amount >= 0 for amount in capacity.free("region").values()), "no stock is given out twice"
        holders = set()
        for state in cluster.engine.workloads():
            workload = cluster.workload(state.name, namespace=state.namespace)
            if "QuotaReserved" in held(workload) and not held(workload) & {"Evicted", "Finished"}:
                holders.add(state.name)
            if cluster.is_running(state.name, namespace=state.namespace):
                assert "Admitted" in held(workload)
                # What a check says later on does not take the admission back; it evicts.
                states = {check_state.get("state") for check_state in check_states(workload).values()}
                assert state.name in running or states <= {"Ready"}, "it does not begin before"
                running.add(state.name)
            else:
                running.discard(state.name)
        for request in provisioning.requests:
            metadata: Any = request["metadata"]
            assert metadata["ownerReferences"][0]["name"] in holders, "who holds no quota has no request"


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_gives_the_same_run(seed: int) -> None:
    def steps() -> list[Any]:
        chance = random.Random(seed)
        case = random_run(seed)
        provisioning = VirtualProvisioning(QueuedCapacity({"r": Stock(delay_seconds=(0, 9), refused=0.3)}, seed=seed))
        config = {"provisioningClassName": "queued"}
        objects = [
            {"apiVersion": KUEUE, "kind": "ProvisioningRequestConfig", "metadata": {"name": "dws"}, "spec": config},
            *map(check, NAMES),
            *(checked(object_, chance) for object_ in case["objects"] if object_["kind"] != "AdmissionCheck"),
        ]
        cluster = VirtualCluster(objects, now=case["config"]["now"], checks=[Whims(seed), provisioning], max_cycles=20)
        cluster.schedule(event for event in case["input"]["events"] if event["op"] != "update")
        return [cluster.advance(), provisioning.steps]

    assert steps() == steps()
