"""The nodes of a scenario: where they stand, when they fail, and what becomes of jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueuecore import Configuration, ManifestError
from kueuecore.cli import ExitCode, main
from kueuecore.configuration import feature_gates
from kueuecore.manifests import Manifest
from kueuecore.scenarios import (
    NodeFailure,
    NodeGroup,
    NodeLevel,
    NodeState,
    Scenario,
    ScenarioOutcome,
    Span,
    read_scenario,
    run_scenario,
)
from kueuecore.scenarios.idle_failures import idle_failures
from kueuecore.scenarios.node_groups import HOSTNAME
from kueuecore.scenarios.node_timetable import node_changes, nodes_of
from kueuecore.simulation import NodeLoss
from tests.generator_files import on_racks
from tests.topologies import flavor, queue, topology

Json = dict[str, Any]

LEVELS = [{"name": "block", "label": "block", "count": 1}, {"name": "rack", "label": "rack", "count": 2}]
HOSTS = {"name": "node", "count": 3}
RACKS: Json = {
    "name": "gpu",
    "levels": [*LEVELS, HOSTS],
    "capacity": {"cpu": 1},
    "labels": {"pool": "gpu"},
}
OBJECTS = [topology("block", "rack", HOSTNAME), flavor(nodeLabels={"pool": "gpu"}), *queue()]
JOB: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j", "namespace": "ns", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
    "spec": {
        "parallelism": 2,
        "completions": 2,
        "template": {
            "metadata": {"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": 1}}}],
            },
        },
    },
}


@pytest.fixture
def read(tmp_path: Path) -> Callable[[Json], Scenario]:
    def reads(scenario: Json) -> Scenario:
        file = tmp_path / "scenario.yaml"
        file.write_text(yaml.safe_dump({"apiVersion": "kueuecore/v1", "kind": "Scenario", **scenario}))
        return read_scenario(file)

    return reads


@pytest.fixture
def ran(read: Callable[[Json], Scenario]) -> Callable[..., ScenarioOutcome]:
    """Runs one job of a minute with failures of nodes."""

    def run(*failures: Json, **work: Any) -> ScenarioOutcome:
        cluster = {"objects": OBJECTS, "nodes": [{**RACKS, "failures": list(failures)}]}
        return run_scenario(read({"cluster": cluster, "work": [{"job": JOB, "runs": 60, **work}]}))

    return run


def seconds(outcome: ScenarioOutcome) -> float | None:
    (job,) = outcome.jobs
    return None if job.finished is None else (job.finished - outcome.start) / 1e9


def group(*failures: NodeFailure, count: int = 4) -> NodeGroup:
    hosts = NodeLevel(name="n", count=count, label=HOSTNAME)
    return NodeGroup(name="g", levels=(hosts,), capacity={"cpu": 8}, failures=failures)


def changes(*failures: NodeFailure, seed: int = 1) -> list[tuple[float, str, str]]:
    found = []
    for node_change in node_changes([group(*failures)], seed=seed, start=0):
        plain: Any = node_change.manifest.object if node_change.manifest else None
        if plain is None:
            found.append((node_change.at, node_change.name, "gone"))
            continue
        ready, taints = plain["status"]["conditions"][0]["status"], plain["spec"]["taints"]
        found.append((node_change.at, node_change.name, ready + "".join(taint["key"] for taint in taints)))
    return found


# Where nodes stand.


def test_nodes_are_named_by_their_levels_and_carry_their_labels(read: Callable[[Json], Scenario]) -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    scenario = read({"cluster": {"nodes": [{**RACKS, "taints": [taint]}]}})
    made: list[Any] = [node.object for node in nodes_of(scenario.cluster.nodes, start=scenario.start)]
    assert [row["metadata"]["name"] for row in made[2:4]] == ["gpu-block1-rack1-node3", "gpu-block1-rack2-node1"]
    assert made[3]["metadata"]["labels"] == {
        HOSTNAME: "gpu-block1-rack2-node1",
        "pool": "gpu",
        "block": "gpu-block1",
        "rack": "gpu-block1-rack2",
    }
    assert made[3]["status"]["allocatable"] == {"pods": 110, "cpu": 1}
    assert made[3]["spec"]["taints"] == [taint]


def test_a_pattern_says_what_values_look_like(read: Callable[[Json], Scenario]) -> None:
    levels = [LEVELS[0], {**LEVELS[1], "value": "rack-{rack}"}, {**HOSTS, "value": "{group}.{rack}.{node}"}]
    (nodes,) = read({"cluster": {"nodes": [{**RACKS, "levels": levels}]}}).cluster.nodes
    assert [node.domains for node in nodes.nodes()][-1] == ("gpu-block1", "rack-2", "gpu.2.3")


def test_every_problem_with_nodes_is_reported_with_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scenario.yaml").write_text(
        """apiVersion: kueuecore/v1
kind: Scenario
cluster:
  cycle: 1x
  nodes:
  - name: gpu
    levels:
    - {name: rack, count: 4}
    - {name: node, count: 0, value: "n-{rak}"}
    failures:
    - {nodes: 3, node: x}
    - {taint: {key: a, effect: NoExecute}}
  - name: twice
    levels: [{name: rack, label: rack, count: 2}, {name: 'n', count: 2, value: "x-{n}"}]
    capacity: {cpu: 1}
  - name: c
    levels: [{name: 'n', count: 2}]
    capacity: {cpu: bad}
    taints: [{key: a, effect: Never}]
  - name: d
    levels: [{name: 'n', count: 2}]
    capacity: {cpu: 1}
    labels: {a: "b c"}
  - name: e
    levels: [{name: 'n', count: 2}]
    capacity: {cpu: 1}
    failures: [{node: e-n3}, {domain: x}, {becomes: Gone, nodes: 1}]
  - name: many
    levels: [{name: rack, count: 2000, label: rack}, {name: 'n', count: 2000}]
    capacity: {cpu: 1}
work:
- {job: {kind: Job, metadata: {name: j}}, nodeLoss: Never}
""",
        encoding="utf-8",
    )
    assert main(["simulate", "scenario.yaml"]) == ExitCode.BAD_INPUT
    nodes = "cluster.nodes"
    span = "write seconds such as 90, or a duration such as 1m30s, from 0 to 292 years (2562047h)"
    assert capsys.readouterr().err.splitlines() == [
        f"scenario.yaml:8: {nodes}[0].levels[0].label: Required value; write the node label that names them",
        f"scenario.yaml:9: {nodes}[0].levels[1].count: Invalid value: 0; write a whole number from 1 to 100000",
        f'scenario.yaml:9: {nodes}[0].levels[1].value: there is no level "rak"; '
        "write one of {group}, {rack}, {node}",
        f"scenario.yaml:6: {nodes}[0].capacity: Required value; write what each node has, "
        "such as {cpu: 8, memory: 32Gi}",
        f"scenario.yaml:11: {nodes}[0].failures[0].node: both node and nodes are given; remove one of them",
        f"scenario.yaml:12: {nodes}[0].failures[1].node: Required value; write which: node, or domain, nodes or both",
        f"scenario.yaml:12: {nodes}[0].failures[1].taint: only applies with `becomes: Tainted`; add that, or remove it",
        f'scenario.yaml:14: {nodes}[1].levels[1].value: two nodes would be named "x-1"; name every level in it',
        f"scenario.yaml:18: {nodes}[2].capacity.cpu: not a quantity; write a quantity, such as 8 or 36Gi",
        f'scenario.yaml:19: {nodes}[2].taints[0].effect: Unsupported value: "Never"; '
        "write one of NoSchedule, PreferNoSchedule, NoExecute",
        f'scenario.yaml:23: {nodes}[3].labels.a: not a label value: "b c"; '
        "use up to 63 letters, digits, '-', '_', '.'",
        f'scenario.yaml:27: {nodes}[4].failures[0].node: Not found: "e-n3"; write one such as e-n1',
        f'scenario.yaml:27: {nodes}[4].failures[1].domain: Not found: "x"; write one such as e-n1',
        f'scenario.yaml:27: {nodes}[4].failures[2].becomes: Unsupported value: "Gone"; '
        "write one of NotReady, Deleted, Tainted",
        f"scenario.yaml:29: {nodes}[5].levels: 4000000 nodes are too many; "
        "write counts that make at most 100000 of them",
        f'scenario.yaml:4: cluster.cycle: not a duration: "1x"; {span}',
        'scenario.yaml:32: work[0].nodeLoss: Unsupported value: "Never"; write one of RunsOn, Waits, StartsOver',
        "kueuecore: 17 problems, nothing was decided",
    ]


def test_failures_beyond_time_are_refused(read: Callable[[Json], Scenario]) -> None:
    failure = {"nodes": 1, "at": "200000h", "lasts": "2000000h"}
    with pytest.raises(ManifestError, match=r"cluster\.nodes\[0\]\.failures\[0\]\.lasts: .* past April 2262"):
        read({"cluster": {"nodes": [{**RACKS, "failures": [failure]}]}})


# When they fail.


def test_failing_nodes_are_drawn_by_the_seed_among_healthy_ones() -> None:
    failures = [NodeFailure(at=at, n_nodes=2, lasts=Span(100)) for at in (10, 20, 30)]
    found = changes(*failures)
    failed = [(at, name) for at, name, ready in found if ready == "False"]
    assert [at for at, _ in failed] == [10, 10, 20, 20]
    assert {name for _, name in failed} == {"g-n1", "g-n2", "g-n3", "g-n4"}
    assert found == changes(*failures)
    drawn = {tuple(name for _, name, _ in changes(NodeFailure(n_nodes=2), seed=seed)) for seed in range(20)}
    assert len(drawn) > 3


def test_a_failure_repeats_the_given_number_of_times() -> None:
    found = changes(NodeFailure(at=10, every=Span(60), times=2, node="g-n1", lasts=Span(5)))
    assert found == [(10, "g-n1", "False"), (15, "g-n1", "True"), (70, "g-n1", "False"), (75, "g-n1", "True")]


def test_failures_of_one_node_add_up_while_they_last() -> None:
    taint = {"key": "t", "effect": "NoExecute"}
    found = changes(
        NodeFailure(at=10, node="g-n1", lasts=Span(30)),
        NodeFailure(at=20, node="g-n1", lasts=Span(10), state=NodeState.DELETED),
        NodeFailure(at=35, node="g-n1", lasts=Span(10), state=NodeState.TAINTED, taint=taint),
    )
    assert [(at, ready) for at, _, ready in found] == [
        (10, "False"),
        (20, "gone"),
        (30, "False"),
        (35, "Falset"),
        (40, "Truet"),
        (45, "True"),
    ]


# What becomes of jobs.


def test_a_job_whose_node_fails_moves_and_starts_over(ran: Callable[..., ScenarioOutcome]) -> None:
    outcome = ran({"at": 30, "node": "gpu-block1-rack1-node1"})
    (job,) = outcome.jobs
    assert (job.n_replacements, job.n_node_evictions, job.n_evictions, seconds(outcome)) == (1, 0, 0, 91)
    assert (outcome.all.n_replacements, outcome.all.n_node_evictions) == (1, 0)


@pytest.mark.parametrize(("loss", "end"), [(NodeLoss.WAITS, 61), (NodeLoss.RUNS_ON, 60)])
def test_work_says_what_a_lost_node_costs(ran: Callable[..., ScenarioOutcome], loss: NodeLoss, end: float) -> None:
    assert seconds(ran({"at": 30, "node": "gpu-block1-rack1-node1"}, nodeLoss=loss.value)) == end


def test_pods_linger_as_long_as_their_work_says(ran: Callable[..., ScenarioOutcome]) -> None:
    outcome = ran({"at": 30, "node": "gpu-block1-rack1-node1", "lasts": 20}, lingers=25)
    assert (outcome.jobs[0].has_lost_nodes, seconds(outcome)) == (False, 60)


def test_a_job_whose_rack_goes_is_evicted(ran: Callable[..., ScenarioOutcome]) -> None:
    outcome = ran({"at": 30, "domain": "gpu-block1-rack1", "becomes": "Deleted"})
    (job,) = outcome.jobs
    assert (job.n_evictions, job.n_node_evictions, job.n_replacements) == (1, 1, 0)
    assert job.finished is not None


def test_the_table_and_json_say_which_jobs_lost_nodes(
    ran: Callable[..., ScenarioOutcome], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran({"at": 30, "node": "gpu-block1-rack1-node1"})
    file = str(tmp_path / "scenario.yaml")
    assert main(["simulate", file]) == ExitCode.OK
    out = capsys.readouterr().out
    assert "1 job lost nodes: pods moved 1 time, jobs were evicted 0 times" in out
    assert "MOVED  NODE EVICTIONS" in out
    assert main(["simulate", file, "-o", "json"]) == ExitCode.OK
    reported = json.loads(capsys.readouterr().out)
    assert [(job["nodeReplacements"], job["nodeEvictions"]) for job in (*reported["jobs"], reported["all"])] == [
        (1, 0),
        (1, 0),
    ]
    ran()
    assert main(["simulate", file]) == ExitCode.OK
    assert "MOVED" not in capsys.readouterr().out


# Files of Kueue's performance tests.


def warned(objects: list[Json], *, gates: str = "{}") -> list[str]:
    failing = group(NodeFailure(at=1, node="g-n1"))
    head = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfeatureGates: "
    manifests = [Manifest(object_) for object_ in objects]
    return [
        *idle_failures([failing], manifests, configuration=Configuration.parse(head + gates), field="cluster.nodes")
    ]


def test_failures_that_change_nothing_are_a_warning() -> None:
    placed: Json = {"kind": "ResourceFlavor", "metadata": {"name": "f"}, "spec": {"topologyName": "t"}}
    other = {**placed, "spec": {"topologyName": "t", "nodeLabels": {"pool": "other"}}}
    hosts: Json = {"kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": HOSTNAME}]}}
    racks = {**hosts, "spec": {"levels": [{"nodeLabel": "rack"}]}}
    assert warned([placed, hosts]) == []
    for objects in ([], [{**placed, "spec": {}}, hosts], [other, hosts]):
        (warning,) = warned(objects)
        assert warning.startswith(
            "cluster.nodes[0].failures: they change nothing: no ResourceFlavor with a topologyName"
        )
    (warning,) = warned([placed, racks])
    assert "jobs that run on the nodes of g go on: Kueue replaces failed nodes only where the last level" in warning
    gates = [
        gate.name for gate in feature_gates() if gate.name.startswith("TAS") or gate.name == "TopologyAwareScheduling"
    ]
    (warning,) = warned([placed, hosts], gates=json.dumps(dict.fromkeys(gates, False)))
    assert "without the gate TopologyAwareScheduling Kueue ignores nodes" in warning


def test_a_generator_brings_queues_nodes_and_work(read: Callable[[Json], Scenario], tmp_path: Path) -> None:
    (tmp_path / "generator.yaml").write_text(
        yaml.safe_dump(on_racks(cohorts=1, queues=1, racks=2, hosts=4, share=30)), encoding="utf-8"
    )
    scenario = read({"generator": "generator.yaml", "cluster": {"cycle": "10ms"}})
    outcome = run_scenario(scenario)
    assert outcome.all.n_jobs == outcome.all.n_finished > 10
    assert {job.work.partition("-")[0] for job in outcome.jobs} == {"small", "medium"}


def test_a_generator_is_for_one_cluster(read: Callable[[Json], Scenario], tmp_path: Path) -> None:
    (tmp_path / "generator.yaml").write_text(yaml.safe_dump(on_racks(cohorts=1)), encoding="utf-8")
    fleet = {"manager": {"objects": []}, "workers": {"west": {"objects": []}}}
    with pytest.raises(ManifestError, match="generator: a generator is for one cluster"):
        read({"generator": "generator.yaml", "fleet": fleet})


def test_a_problem_in_a_generator_is_reported_for_its_file(read: Callable[[Json], Scenario], tmp_path: Path) -> None:
    (tmp_path / "generator.yaml").write_text("cohorts: 3\n", encoding="utf-8")
    with pytest.raises(ManifestError, match=r"generator\.yaml:1: cohorts: must be a list"):
        read({"generator": "generator.yaml"})


def test_nodes_added_or_removed_by_a_timetable_count_like_others(read: Callable[[Json], Scenario]) -> None:
    nodes: list[Any] = [node.object for node in nodes_of(read({"cluster": {"nodes": [RACKS]}}).cluster.nodes, start=0)]
    timetable = [
        {"at": 0, "apply": nodes},
        *({"at": 20, "delete": {"kind": "Node", "name": node["metadata"]["name"]}} for node in nodes),
    ]
    scenario = {"cluster": {"objects": OBJECTS}, "timetable": timetable, "work": [{"job": JOB, "at": 5, "runs": 60}]}
    (job,) = run_scenario(read(scenario)).jobs
    assert (job.n_node_evictions, job.n_evictions, job.finished) == (1, 1, None)
