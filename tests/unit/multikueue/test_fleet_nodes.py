"""Topology in a fleet: the manager puts the placement off, and a worker places the pods on its nodes (rules/06 §10)."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kueuecore import Configuration
from kueuecore.fleet import Fleet, NodeSettings
from kueuecore.multikueue import MANAGER
from kueuecore.provisioning import (
    CapacityOutcome,
    CapacityRequest,
    CapacityWithNodes,
    RequestCondition,
    ScriptedCapacity,
)
from kueuecore.scenarios import read_scenario, run_scenario
from tests.topologies import BLOCK, HOST, RACK, flavor, namespace, node, queue, topology
from tests.unit.multikueue.test_fleet_checks import PROVISIONING
from tests.unit.multikueue.worlds import CLUSTER, MULTIKUEUE, START, job, workload_of

Json = dict[str, Any]

WORKERS = ("west", "east")


def host(name: str, rack: str = "r1", ready: str = "True") -> Json:
    made = node(name, "b1", rack, ready=ready)
    made["metadata"]["labels"]["pool"] = "tas"
    return made


def on_racks(name: str = "job", *, cpu: int = 2) -> Json:
    """A Job whose pods have to be in one rack."""
    made = job(name, cpu=cpu, queue="q")
    made["spec"]["template"]["metadata"] = {"annotations": {"kueue.x-k8s.io/podset-required-topology": RACK}}
    return made


def fleet_of(hosts_of: dict[str, list[Json]], *, checks: str = "", **settings: Any) -> Fleet:
    """A manager that knows the levels and has no nodes, and workers with nodes."""
    fleet = Fleet(WORKERS, now=START, **settings)
    tas = flavor(nodeLabels={"pool": "tas"})
    fleet.apply(MULTIKUEUE.format(clusters=", ".join(WORKERS)))
    for name in WORKERS:
        fleet.apply(CLUSTER.format(name=name))
        of_worker: Json = {"admissionChecksStrategy": {"admissionChecks": [{"name": checks}]}} if checks else {}
        if checks:
            fleet.apply(PROVISIONING, cluster=name)
        fleet.apply([namespace(), topology(BLOCK, RACK, HOST), tas, *queue(**of_worker)], cluster=name)
        fleet.apply(hosts_of.get(name, []), cluster=name)
    strategy = {"admissionChecks": [{"name": "multikueue"}]}
    fleet.apply([namespace(), topology(BLOCK, RACK, HOST), tas, *queue(admissionChecksStrategy=strategy)])
    fleet.wait(2)
    return fleet


def pods_of(fleet: Fleet, name: str = "job", cluster: str = MANAGER) -> Any:
    workload = workload_of(fleet, name, cluster=cluster)
    assert workload is not None
    (assignment,) = workload["status"]["admission"]["podSetAssignments"]
    return assignment


def hosts(fleet: Fleet, name: str = "job", *, cluster: str) -> list[str]:
    found = []
    for part in pods_of(fleet, name, cluster)["topologyAssignment"]["slices"]:
        (values,) = part["valuesPerLevel"]
        if "universal" in values:
            found.append(values["universal"])
        spread = values.get("individual", {"roots": []})
        found += [f"{spread.get('prefix', '')}{root}{spread.get('suffix', '')}" for root in spread["roots"]]
    return found


def held(workload: Json | None) -> set[str]:
    assert workload is not None
    return {condition["type"] for condition in workload["status"]["conditions"] if condition["status"] == "True"}


def test_the_manager_waits_and_the_worker_with_nodes_places_the_pods() -> None:
    fleet = fleet_of({"east": [host("a"), host("b"), host("c", "r2")]})
    fleet.submit(on_racks(), run_seconds=60)
    # Quota on the manager, and nothing heard from the workers yet.
    assert pods_of(fleet) | {"count": 2} == {
        "name": "main",
        "count": 2,
        "flavors": {"cpu": "tas"},
        "resourceUsage": {"cpu": "2"},
        "delayedTopologyRequest": "Pending",
    }
    assert "Admitted" not in held(workload_of(fleet))
    fleet.wait(5)
    assert fleet.running(namespace="ns", name="job") == ["east"]
    assert hosts(fleet, cluster="east") == ["a", "b"]
    assert pods_of(fleet)["delayedTopologyRequest"] == "Ready"
    assert "topologyAssignment" not in pods_of(fleet)
    fleet.wait(120)
    assert "Finished" in held(workload_of(fleet))


def test_a_job_waits_for_nodes_of_any_worker() -> None:
    fleet = fleet_of({"east": [host("a")]})
    fleet.submit(on_racks(), run_seconds=60)
    fleet.wait(600)
    assert pods_of(fleet)["delayedTopologyRequest"] == "Pending"
    fleet.apply([host("w1"), host("w2")], cluster="west")
    fleet.wait(10)
    assert fleet.running(namespace="ns", name="job") == ["west"]
    assert hosts(fleet, cluster="west") == ["w1", "w2"]


def test_pods_move_on_the_worker_and_the_manager_notices_nothing() -> None:
    fleet = fleet_of({"east": [host("a"), host("b"), host("c")]})
    fleet.submit(on_racks(), run_seconds=600)
    fleet.wait(10)
    before = workload_of(fleet)
    fleet.apply(host("b", ready="False"), cluster="east")
    fleet.wait(10)
    assert hosts(fleet, cluster="east") == ["a", "c"]
    assert workload_of(fleet) == before


def test_a_job_that_a_worker_evicts_for_its_nodes_goes_to_another() -> None:
    fleet = fleet_of({"east": [host("a"), host("b")]})
    fleet.submit(on_racks(), run_seconds=600)
    fleet.wait(10)
    fleet.apply([host("w1"), host("w2")], cluster="west")
    fleet.delete("Node", "b", cluster="east")
    fleet.wait(30)
    assert fleet.running(namespace="ns", name="job") == ["west"]
    assert pods_of(fleet)["delayedTopologyRequest"] == "Ready"
    assert workload_of(fleet, cluster="east") is None
    fleet.wait(700)
    assert "Finished" in held(workload_of(fleet))


REPLACEMENT = ("TASFailedNodeReplacement", "TASFailedNodeReplacementFailFast", "TASReplaceNodeOnPodTermination")


def waiting_for_pods(*, replaces: bool = True) -> dict[str, NodeSettings]:
    """Settings of a worker that gives lost pods 20 seconds to recover."""
    written = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "waitForPodsReady": {"timeout": "5m", "recoveryTimeout": "20s"},
        "featureGates": dict.fromkeys(REPLACEMENT, replaces),
    }
    return {"east": NodeSettings(configuration=Configuration.parse(yaml.dump(written)))}


def readiness(fleet: Fleet) -> tuple[str, str]:
    workload = workload_of(fleet, cluster="east")
    assert workload is not None
    return next(
        (condition["status"], condition["reason"])
        for condition in workload["status"]["conditions"]
        if condition["type"] == "PodsReady"
    )


def test_pods_on_a_lost_node_are_not_ready_until_others_replace_them() -> None:
    fleet = fleet_of({"east": [host("a"), host("b"), host("c")]}, nodes=waiting_for_pods())
    fleet.submit(on_racks(), run_seconds=600)
    fleet.wait(10)
    assert readiness(fleet) == ("True", "Started")
    fleet.delete("Node", "b", cluster="east")
    fleet.wait(0.5)
    assert readiness(fleet) == ("False", "WaitForRecovery")
    fleet.wait(10)
    assert (hosts(fleet, cluster="east"), readiness(fleet)[0]) == (["a", "c"], "True")


@pytest.mark.parametrize("seconds", [15, 25])
def test_a_worker_evicts_a_job_whose_lost_node_stays_away_too_long(seconds: int) -> None:
    fleet = fleet_of({"east": [host("a"), host("b")]}, nodes=waiting_for_pods(replaces=False))
    fleet.submit(on_racks(), run_seconds=600)
    fleet.wait(10)
    fleet.apply(host("b", ready="Unknown"), cluster="east")
    fleet.wait(seconds)
    fleet.apply(host("b"), cluster="east")
    fleet.wait(0.5)
    is_in_time = seconds < 20
    assert fleet.running(namespace="ns", name="job") == ["east"] * is_in_time
    if is_in_time:
        assert readiness(fleet) == ("True", "Recovered")


def test_a_worker_orders_its_nodes_before_it_places_the_pods() -> None:
    def nodes(request: CapacityRequest) -> list[Json]:
        return [host(f"{request.name}-{index}") for index in range(2)]

    script = {"queued-provisioning.gke.io": [CapacityOutcome(90, RequestCondition.PROVISIONED, "here")]}
    capacity = CapacityWithNodes(ScriptedCapacity(script), nodes)
    never = ScriptedCapacity(otherwise=())
    settings = {"east": NodeSettings(capacity=capacity), "west": NodeSettings(capacity=never)}
    fleet = fleet_of({}, checks="dws", nodes=settings)
    fleet.submit(on_racks(), run_seconds=60)
    fleet.wait(60)
    assert pods_of(fleet, cluster="east")["delayedTopologyRequest"] == "Pending"
    assert fleet.objects("Node", cluster="east") == []
    fleet.wait(40)
    assert pods_of(fleet, cluster="east")["delayedTopologyRequest"] == "Ready"
    assert pods_of(fleet)["delayedTopologyRequest"] == "Ready"
    assert fleet.running(namespace="ns", name="job") == ["east"]
    assert len(hosts(fleet, cluster="east")) == 2
    fleet.wait(200)
    # The job has ended, its copy and request are gone, and with them the nodes.
    assert "Finished" in held(workload_of(fleet))
    assert fleet.objects("Node", cluster="east") == []


def test_a_scenario_of_a_fleet_tells_which_jobs_lost_nodes(tmp_path: Any) -> None:
    nodes = {
        "name": "m",
        "levels": [
            {"name": "block", "label": BLOCK, "count": 1},
            {"name": "rack", "label": RACK, "count": 1},
            {"name": "host", "count": 3},
        ],
        "capacity": {"cpu": 1},
        "labels": {"pool": "tas"},
    }
    tas = flavor(nodeLabels={"pool": "tas"})
    failures = [{"at": 100, "node": "m-block1-rack1-host1"}, {"at": 200, "node": "m-block1-rack1-host2"}]
    of_worker = [topology(BLOCK, RACK, HOST), tas, *queue()]
    strategy = {"admissionChecks": [{"name": "multikueue"}]}
    manager = [
        topology(BLOCK, RACK, HOST),
        tas,
        *queue(admissionChecksStrategy=strategy),
        *yaml.safe_load_all(MULTIKUEUE.format(clusters="east, west")),
    ]
    manager += [yaml.safe_load(CLUSTER.format(name=name)) for name in WORKERS]
    scenario = {
        "apiVersion": "kueuecore/v1",
        "kind": "Scenario",
        "fleet": {
            "manager": {"objects": manager},
            "workers": {
                "east": {"objects": of_worker, "nodes": [{**nodes, "failures": failures}]},
                "west": {"objects": of_worker},
            },
        },
        "work": [{"job": on_racks(), "runs": 1000}],
        "until": "1h",
    }
    file = tmp_path / "scenario.yaml"
    file.write_text(yaml.safe_dump(scenario))
    (outcome,) = run_scenario(read_scenario(file)).jobs
    assert (outcome.cluster, outcome.n_replacements, outcome.n_node_evictions) == ("east", 1, 1)
