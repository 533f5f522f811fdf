"""Workers with AdmissionChecks of their own: capacity that is ordered, and checks that others decide on (rules/07)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kueuecore._json import JsonObject
from kueuecore.checks import Activity, CheckAnswer, CheckController, CheckState, Review, check_states
from kueuecore.configuration import Configuration
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.fleet import Fleet, NodeSettings
from kueuecore.provisioning import CapacityOutcome, QueuedCapacity, RequestCondition, ScriptedCapacity, Stock
from tests.unit.multikueue.worlds import CLUSTER, MULTIKUEUE, QUEUES, START, WITHOUT_CHECKS, job, workload_of

PROVISIONING = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: dws}
spec:
  controllerName: kueue.x-k8s.io/provisioning-request
  parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: dws}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ProvisioningRequestConfig
metadata: {name: dws}
spec: {provisioningClassName: queued-provisioning.gke.io}
"""
APPROVAL = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: approval}
spec: {controllerName: example.com/approval}
"""
REGIONS = ("tokyo", "taipei")


def regions(nodes: dict[str, NodeSettings], *, check: str = "dws", manifests: str = PROVISIONING) -> Fleet:
    """A manager and a worker in each region, whose queue has a check."""
    fleet = Fleet(REGIONS, now=START, nodes=nodes)
    fleet.apply(MULTIKUEUE.format(clusters=", ".join(REGIONS)))
    for name in REGIONS:
        fleet.apply(CLUSTER.format(name=name))
        fleet.apply(manifests, cluster=name)
        fleet.apply(QUEUES.format(cpu=8, checks=f"[{{name: {check}}}]"), cluster=name)
    fleet.apply(QUEUES.format(cpu=16, checks="[{name: multikueue}]"))
    fleet.wait(2)
    return fleet


def ordered(taipei: float, tokyo: float) -> dict[str, NodeSettings]:
    """Regions with four cpus each, in which nodes take this many seconds to come up."""
    delays = {"taipei": taipei, "tokyo": tokyo}
    stocks = {name: {name: Stock(amounts={"cpu": 4}, delay_seconds=delay)} for name, delay in delays.items()}
    return {name: NodeSettings(capacity=QueuedCapacity(stock)) for name, stock in stocks.items()}


def requests(fleet: Fleet, cluster: str) -> list[str]:
    return [object_["metadata"]["name"] for object_ in fleet.objects("ProvisioningRequest", cluster=cluster)]


def test_the_region_whose_capacity_comes_first_gets_a_job_and_the_others_get_theirs_back() -> None:
    fleet = regions(ordered(taipei=60, tokyo=300))
    fleet.submit(job(cpu=4), run_seconds=1000)
    fleet.wait(10)
    made = workload_of(fleet)
    assert made is not None
    name = f"{made['metadata']['name']}-dws-1"
    assert [requests(fleet, region) for region in REGIONS] == [[name], [name]]
    assert [object_["metadata"]["name"] for object_ in fleet.objects("PodTemplate", cluster="tokyo")] == [
        f"ppt-{name}-main"
    ]
    assert not fleet.running(namespace="ns", name="job")
    fleet.wait(60)
    assert fleet.running(namespace="ns", name="job") == ["taipei"]
    assert [requests(fleet, region) for region in REGIONS] == [[], [name]]
    assert fleet.objects("PodTemplate", cluster="tokyo") == []
    # Tokyo has all of its stock for the next one, whose nodes come before those in taipei are free.
    fleet.submit(job("next", cpu=4), run_seconds=100)
    fleet.wait(320)
    assert fleet.running(namespace="ns", name="next") == ["tokyo"]


def test_a_region_without_stock_gets_nothing_and_holds_nothing_up() -> None:
    sold_out = ScriptedCapacity(otherwise=[CapacityOutcome(5, RequestCondition.FAILED, "sold out")])
    fleet = regions(ordered(taipei=600, tokyo=0) | {"tokyo": NodeSettings(capacity=sold_out)})
    fleet.submit(job(cpu=4), run_seconds=1000)
    fleet.wait(500)
    # It is evicted there after a while, and as it has no job that could stop it keeps its quota, as in Kueue.
    copy = workload_of(fleet, cluster="tokyo")
    assert copy is not None
    assert {"Evicted", "QuotaReserved"} <= conditions_that_hold(copy).keys()
    fleet.wait(200)
    assert workload_of(fleet, cluster="tokyo") is None
    assert fleet.running(namespace="ns", name="job") == ["taipei"]


def test_orders_outlive_the_process_that_made_them() -> None:
    fleet = regions(ordered(taipei=60, tokyo=300))
    fleet.submit(job(cpu=4), run_seconds=1000)
    fleet.wait(10)
    before = requests(fleet, "taipei")
    fleet.restart_worker("taipei")
    fleet.wait(30)
    assert requests(fleet, "taipei") == before
    fleet.wait(30)
    assert fleet.running(namespace="ns", name="job") == ["taipei"]


@pytest.mark.parametrize("manager_is_down", [False, True])
def test_what_was_ordered_for_a_job_goes_with_it(manager_is_down: bool) -> None:
    fleet = regions(ordered(taipei=60, tokyo=300))
    fleet.submit(job(cpu=4), run_seconds=1000)
    fleet.wait(70)
    if manager_is_down:
        fleet.stop_manager()
    fleet.delete("Job", "job", namespace="ns")
    if manager_is_down:
        fleet.wait(10)
        fleet.start_manager()
    # Longer than the manager takes to look for what nobody needs any more.
    fleet.wait(70)
    for kind in ("Job", "Workload", "ProvisioningRequest", "PodTemplate"):
        assert [fleet.objects(kind, cluster=region) for region in ("", *REGIONS)] == [[], [], []], kind
    autoscaler = fleet.nodes["taipei"].kubernetes.autoscaler
    assert autoscaler is not None
    assert [step.what for step in autoscaler.steps] == ["Created", "Accepted", "Provisioned", "Deleted"]


class Approval(CheckController):
    """Says the same of every Workload."""

    controller_name = "example.com/approval"

    def __init__(self, state: CheckState) -> None:
        self._state = state

    def activity(self, check: JsonObject, *, now: int) -> Activity | None:
        return Activity(True, "Active", "Here I am")

    def review(self, workload: JsonObject, checks: Sequence[str], *, now: int) -> Review:
        waiting = [name for name in checks if check_states(workload)[name]["state"] == "Pending"]
        return Review(answers=tuple(CheckAnswer(name, self._state) for name in waiting))


def test_a_worker_has_checks_of_its_own_on_which_anybody_decides() -> None:
    nodes = {
        "taipei": NodeSettings(checks=lambda: [Approval(CheckState.REJECTED)]),
        "tokyo": NodeSettings(checks=lambda: [Approval(CheckState.READY)]),
    }
    fleet = regions(nodes, check="approval", manifests=APPROVAL)
    fleet.submit(job(cpu=4), run_seconds=1000)
    fleet.wait(10)
    assert fleet.running(namespace="ns", name="job") == ["tokyo"]


def test_each_worker_has_a_configuration_of_its_own() -> None:
    text = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nresources: {excludeResourcePrefixes: [cpu]}"
    nodes = {"west": NodeSettings(configuration=Configuration.parse(text))}
    fleet = Fleet(["west", "east"], now=START, nodes=nodes)
    for name in fleet.links:
        fleet.apply(WITHOUT_CHECKS.format(cpu=1), cluster=name)
        fleet.submit(job(cpu=2), run_seconds=10, cluster=name)
    fleet.wait(5)
    # In the west nobody counts cpus.
    assert fleet.running(namespace="ns", name="job") == ["west"]
