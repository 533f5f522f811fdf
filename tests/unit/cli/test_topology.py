"""What the command says about topologies: where pods stand, what is free, why others have no place, what is odd."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kueuecore import Engine
from kueuecore.cli import ExitCode, main
from kueuecore.findings.topology_sentences import AskedTopology, reasons_of, why_not_placed
from kueuecore.manifests import JsonObject
from tests.command import Ran

RACK, HOST = "example.com/rack", "kubernetes.io/hostname"
EXAMPLE = Path(__file__).parents[3] / "examples" / "topology"


def topology(*levels: str) -> str:
    """A Topology `t`, and a flavor `f` with it."""
    named = ", ".join(f"{{nodeLabel: {level}}}" for level in levels)
    return f"""
---
{{apiVersion: kueue.x-k8s.io/v1beta2, kind: Topology, metadata: {{name: t}}, spec: {{levels: [{named}]}}}}
{FLAVOR}"""


FLAVOR = """
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f},
 spec: {topologyName: t, nodeLabels: {pool: p}}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: team}, spec: {clusterQueue: cq}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cq}
spec:
  namespaceSelector: {}
  resourceGroups:
  - {coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 100}]}]}
"""


def node(name: str, rack: str = "r1", *, cpu: int = 4, ready: str = "True", pool: str = "p", spec: str = "{}") -> str:
    """A node in a rack; an empty one is none."""
    labels = f"{{pool: {pool}, {HOST}: '{name}'{f', {RACK}: {rack}' if rack else ''}}}"
    return f"""
---
apiVersion: v1
kind: Node
metadata: {{name: '{name}', labels: {labels}}}
spec: {spec}
status: {{allocatable: {{cpu: {cpu}, pods: 110}}, conditions: [{{type: Ready, status: "{ready}"}}]}}
"""


def workload(name: str, count: int, request: str = f"{{required: {RACK}}}") -> str:
    """Pods of one CPU each."""
    return f"""
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {{name: {name}, namespace: team}}
spec:
  queueName: lq
  podSets:
  - name: main
    count: {count}
    topologyRequest: {request}
    template: {{spec: {{containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]}}}}
"""


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs `kueuecore run` on a text."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, *arguments: str) -> Ran:
        Path("in.yaml").write_text(text, encoding="utf-8")
        return Ran(main(["run", "in.yaml", *arguments]), *capsys.readouterr())

    return run


TWO_RACKS = topology(RACK, HOST) + node("n1") + node("n2") + node("n3", "r2") + node("n4", "r2")


def table_of(out: str, first: str) -> list[list[str]]:
    """The rows of the table whose first column is this."""
    (block,) = [part for part in out.split("\n\n") if part.startswith(first)]
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in block.strip().splitlines()[1:]]


# Where pods stand, and what is free.


def test_pods_are_shown_by_rack(command: Callable[..., Ran]) -> None:
    ran = command(TWO_RACKS + workload("w", 10, f"{{preferred: {RACK}}}"))
    assert table_of(ran.out, "PLACED") == [["team/w", "main", "f", RACK, "r1: 8, r2: 2"]]
    assert ran.err == "note: added the Namespaces that the objects are in: team\n"


def test_wide_shows_the_nodes(command: Callable[..., Ran]) -> None:
    ran = command(TWO_RACKS + workload("w", 5), "-o", "wide")
    assert table_of(ran.out, "PLACED") == [["team/w", "main", "f", RACK, "r1: 5", "n1: 4, n2: 1"]]


def test_nodes_are_shown_where_they_are_the_only_level(command: Callable[..., Ran]) -> None:
    ran = command(topology(HOST) + node("n1") + node("n2") + workload("w", 5, "{unconstrained: true}"))
    assert table_of(ran.out, "PLACED") == [["team/w", "main", "f", HOST, "n1: 4, n2: 1"]]
    assert [row[2] for row in table_of(ran.out, "FLAVOR")] == ["n1", "n2"]


def test_domains_with_the_same_name_show_their_path(command: Callable[..., Ran]) -> None:
    levels = topology("block", RACK)
    nodes = "".join(node(f"n{b}").replace("pool: p", f"pool: p, block: '{b}'") for b in ("x", "y"))
    ran = command(levels + nodes + workload("w", 5, "{unconstrained: true}"))
    assert table_of(ran.out, "PLACED")[0][-1] == "x/r1: 4, y/r1: 1"


def test_free_capacity_is_shown_by_level(command: Callable[..., Ran]) -> None:
    pod = """
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: system}
spec: {nodeName: n3, containers: [{name: c, resources: {requests: {cpu: 500m}}}]}
status: {phase: Running}
"""
    text = TWO_RACKS + workload("w", 8) + pod
    rows = table_of(command(text, "-q").out, "FLAVOR")
    assert rows == [
        ["f", RACK, "r1", "2", "cpu", "8", "0", "8", "0"],
        ["f", RACK, "r2", "2", "cpu", "8", "500m", "0", "7500m"],
    ]
    wide = table_of(command(text, "-q", "-o", "wide").out, "FLAVOR")
    assert [(row[2], row[4]) for row in wide[:4]] == [("r1", "cpu"), ("r1", "pods"), ("r2", "cpu"), ("r2", "pods")]
    assert ["f", HOST, "n3", "1", "cpu", "4", "500m", "0", "3500m"] in wide


def test_without_topology_there_are_no_topology_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(EXAMPLE.parent / "two-teams")]) == ExitCode.OK
    assert not {"PLACED", "NOT PLACED", "ALLOCATABLE"} & set(capsys.readouterr().out.split())


def test_json_has_all_of_it(command: Callable[..., Ran]) -> None:
    ran = command(TWO_RACKS + workload("w", 5) + workload("x", 9), "-o", "json")
    document: Any = json.loads(ran.out)
    placed, waiting = document["workloads"]
    assert placed["podSets"][0]["placement"] == {
        "flavor": "f",
        "levels": [RACK, HOST],
        "domains": [
            {"values": ["n1"], "path": ["r1", "n1"], "count": 4},
            {"values": ["n2"], "path": ["r1", "n2"], "count": 1},
        ],
    }
    (not_placed,) = waiting["notPlaced"]
    assert (not_placed["podSet"], not_placed["asksFor"]) == ("main", f"required {RACK}")
    assert not_placed["why"].startswith(f"no single {RACK} has room for 9 pods: the best has room for 8")
    rack = next(value for value in document["capacity"] if value["path"] == ["r1"] and value["resource"] == "cpu")
    assert (rack["nodes"], rack["allocatable"], rack["used"], rack["free"]) == (2, "8", "5", "3")


def test_the_tables_agree_with_the_engine(command: Callable[..., Ran]) -> None:
    engine = Engine()
    text = TWO_RACKS + workload("w", 5) + "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: team}}"
    engine.apply(text, now=0)
    engine.cycle(0)
    (placement,) = engine.placements()
    assert placement.by_level(RACK) == {("r1",): 5}
    with pytest.raises(ValueError, match=r"level: flavor .f. has the levels .*, not .x."):
        placement.by_level("x")
    assert engine.fork().placements() == (placement,)
    assert [capacity.free for capacity in engine.domain_capacity() if capacity.resource == "cpu"] == [
        "3",
        "8",
        "0",
        "3",
        "4",
        "4",
    ]
    engine.delete("Node", "n1", now=1)
    # Nobody knows where the node stood.
    assert engine.placements()[0].by_level(RACK) == {("n1",): 4, ("r1",): 1}


# A node that has failed.


def lost(*arguments: str) -> list[str]:
    cluster = (str(EXAMPLE / name) for name in ("cluster.yaml", "nodes.yaml", "lost-node"))
    return ["run", "-q", *arguments, *cluster]


def test_pods_on_a_failed_node_are_shown_until_it_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(lost()) == ExitCode.OK
    out = capsys.readouterr().out
    assert "something changes by itself at 2026-01-01T10:00:01Z: continue with --for=2s" in out
    assert [row[-1] for row in table_of(out, "PLACED")] == [
        "gpu-2: 2, rack-2: 4 (gpu-2 failed, not replaced)",
        "rack-1: 4, gpu-2: 2 (gpu-2 failed, not replaced)",
    ]


def test_for_lets_a_failed_node_be_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(lost("--for=2s", "-o", "json")) == ExitCode.OK
    document: Any = json.loads(capsys.readouterr().out)
    assert [other["failedNodes"] for other in document["workloads"]] == [[], []]
    assert [event["reason"] for event in document["events"]] == [
        "EvictedDueToNodeFailures",
        "QuotaReserved",
        "Admitted",
    ]


def test_a_span_of_time_is_a_duration(capsys: pytest.CaptureFixture[str]) -> None:
    for span in ("-1s", "1"):
        assert main(lost(f"--for={span}")) == ExitCode.BAD_INPUT
    assert 'argument --for: "-1s" is less than 0' in capsys.readouterr().err


# Why there is no place.

LEVELS = {"t": (RACK, HOST), "f": (RACK, HOST), "racks": (RACK,)}
SENTENCES = {
    'topology "t" allows to fit only 4 out of 5 pod(s)': (
        f"no single {RACK} has room for 5 pods: the best has room for 4"
    ),
    'topology "t" doesn\'t allow to fit any of 1 pod(s). Total nodes: 3; excluded: affinity: 1, nodeSelector: 1, '
    'resource "cpu": 1, taint "a=b:NoSchedule": 2': f"no single {RACK} has room for 1 pod; of 3 nodes "
    "1 does not match the node affinity, 1 does not match the nodeSelector, 1 has too little cpu for one pod, "
    "2 have the taint a=b:NoSchedule, which the pods do not tolerate",
    'topology "racks" allows to fit only 1 out of 2 slice(s). Total nodes: 2; excluded: topologyDomain: 1': (
        f"no single {RACK} has room for 2 slices of 3 pods: the best has room for 1; "
        f"of 2 domains 1 is outside the {RACK} of the other pods"
    ),
    'topology "t" doesn\'t allow to fit any of 1 pod(s). Total nodes: 1; excluded: resource "pods": 1': (
        f"no single {RACK} has room for 1 pod; of 1 node 1 may hold no more pods"
    ),
    f'topology "t" doesn\'t allow to fit; 1/2 slice(s) fit on level {RACK}; 3/8 slice(s) fit on level {HOST}': (
        f"the domain with the most room has room for 1 of 2 slices on level {RACK}, 3 of 8 slices on level {HOST}"
    ),
    f"no topology domains at level: {RACK}": (
        "no ready and schedulable node has the flavor's nodeLabels and a label for every level"
    ),
    'Flavor "f" does not contain the requested level': (
        f"flavor f has the levels {RACK}, {HOST}; the pods ask for zone, which is none of them"
    ),
    'Flavor "f" supports only TopologyAwareScheduling': (
        "flavor f has a topology, so it only takes pods that ask for one, with an annotation or a request"
    ),
    'Flavor "g" does not support TopologyAwareScheduling': (
        "the pods ask for a topology, but flavor g has no topologyName"
    ),
    'Flavor "g" information missing in TAS cache': "the Topology of flavor g does not exist",
    "Workload was evicted as there was no replacement for unhealthy node(s): n1,n2": (
        "no other node has room for the pods that were on n1 and n2"
    ),
    "Cannot replace the node, because the existing topologyAssignment is invalid, as it contains the stale domain n3": (
        "a failed node can only be replaced while all others are there, but n3 is gone or not ready"
    ),
    "Workload eviction triggered due to multiple TAS assigned node failures, including: n1, n2": (
        "Kueue replaces one node of a workload at a time, and these have failed: n1, n2"
    ),
    "insufficient unused quota for cpu in flavor f, 1 more needed": "",
}


@pytest.mark.parametrize("message", SENTENCES)
def test_every_placement_message_has_a_sentence(message: str) -> None:
    levels = ("zone",) if "requested level" in message else ()
    asked = AskedTopology("main", required=RACK, slices=tuple((level, 3) for level in levels or ("zone",)))
    if levels:
        asked = AskedTopology("main", preferred="zone")
    assert (
        why_not_placed(f"couldn't assign flavors to pod set main: {message}", asked, levels=LEVELS)
        == SENTENCES[message]
    )


def test_pods_that_may_spread_report_room_in_all_domains() -> None:
    asked = AskedTopology("main", preferred=RACK)
    message = 'topology "t" allows to fit only 4 out of 5 pod(s)'
    assert why_not_placed(message, asked, levels=LEVELS) == "all nodes together have room for 4 of 5 pods"


def test_a_message_is_split_by_pod_sets() -> None:
    message = "couldn't assign flavors to pod set a: one, two; couldn't assign flavors to pod set b: three"
    assert [reasons_of(message, name) for name in ("a", "b", "c")] == ["one, two", "three", ""]
    assert reasons_of("another message", "a") == "another message"


def test_the_topology_request_is_shown() -> None:
    request: JsonObject = {"required": "block", "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2}
    assert str(AskedTopology.of({"topologyRequest": request})) == "required block, slices of 2 in rack"
    assert str(AskedTopology.of({"topologyRequest": {"unconstrained": True}})) == "unconstrained"
    assert str(AskedTopology.of({})) == "-"


def test_a_sentence_stands_beside_the_message_of_the_engine(command: Callable[..., Ran]) -> None:
    ran = command(TWO_RACKS + workload("w", 9))
    (row,) = table_of(ran.out, "NOT PLACED")
    why = f"no single {RACK} has room for 9 pods: the best has room for 8"
    assert row == ["team/w", "main", f"required {RACK}", f"{why}; they would not fit without other workloads either"]


# What is odd.

FLAVOR_OBJECT, TOPOLOGY_OBJECT = 'ResourceFlavor "f": spec.', 'Topology "t": spec.levels[0].nodeLabel: '
REQUIRED = 'Workload "team/w": spec.podSets[0].topologyRequest.required: '
FINDINGS = {
    "a Topology that does not exist": (
        FLAVOR + node("n1") + workload("w", 1),
        f'{FLAVOR_OBJECT}topologyName: there is no Topology "t", so this flavor cannot place any pods; '
        "create it, or name one that exists",
    ),
    "no Nodes": (
        topology(RACK, HOST),
        f"{FLAVOR_OBJECT}nodeLabels: there are no Nodes among the objects, so no pod can be placed; add the Nodes",
    ),
    "labels of no Node": (
        topology(RACK, HOST) + node("n1", pool="other"),
        f"{FLAVOR_OBJECT}nodeLabels: no Node has the labels pool=p, so no pod can be placed; "
        "label the nodes, or correct nodeLabels",
    ),
    "a level of no Node": (
        topology("row", RACK) + node("n1"),
        f"{TOPOLOGY_OBJECT}no Node of flavor f has the label row, and Nodes without it get no pods; "
        "kubectl label node NODE row=VALUE, or correct the level",
    ),
    "a Node without a level": (
        topology(RACK, HOST) + node("n1") + node("n2", ""),
        f"{TOPOLOGY_OBJECT}not every Node of flavor f has the label {RACK}, and Nodes without it get no pods: n2; "
        f"kubectl label node NODE {RACK}=VALUE, or correct the level",
    ),
    "Nodes that take no pods": (
        topology(RACK, HOST) + node("n1", ready="False") + node("n2", spec="{unschedulable: true}"),
        f"{FLAVOR_OBJECT}nodeLabels: no Node with these labels takes pods: n1 (not ready), n2 (unschedulable); "
        "uncordon those that are cordoned, and find out why the others are not ready",
    ),
    "a level that no flavor has": (
        TWO_RACKS + workload("w", 1, "{required: zone}"),
        f"{REQUIRED}no flavor of ClusterQueue cq has the level zone: f has {RACK}, {HOST}; "
        "ask for a level that one of them has",
    ),
    "more than a domain holds": (
        TWO_RACKS + workload("w", 9),
        f"{REQUIRED}no single {RACK} could hold these 9 pods even if no other workload ran; "
        "ask for a wider level, for preferred instead of required, or for fewer pods",
    ),
}


@pytest.mark.parametrize("what", FINDINGS)
def test_topology_mistakes_are_reported_with_a_remedy(what: str, command: Callable[..., Ran]) -> None:
    text, expected = FINDINGS[what]
    warnings = [line for line in command(text).err.splitlines() if line.startswith("warning: ")]
    assert [line.partition("): ")[2] for line in warnings] == [expected]
    assert command(text, "-q").err == ""


def test_waiting_for_others_is_not_a_finding(command: Callable[..., Ran]) -> None:
    ran = command(TWO_RACKS + workload("a", 5) + workload("b", 5) + workload("c", 5))
    assert "warning" not in ran.err
    why = f"no single {RACK} has room for 5 pods: the best has room for 3; of 4 nodes 2 have too little cpu for one pod"
    assert table_of(ran.out, "NOT PLACED") == [["team/c", "main", f"required {RACK}", why]]


def test_without_the_feature_gate_there_are_no_topology_findings(command: Callable[..., Ran]) -> None:
    assert "warning" not in command(FLAVOR, "--feature-gates", "TopologyAwareScheduling=false").err


def test_a_workload_without_any_place_is_listed_where_its_message_is_about_quota(command: Callable[..., Ran]) -> None:
    few = TWO_RACKS.replace("nominalQuota: 100", "nominalQuota: 10")
    ran = command(few + workload("a", 8) + workload("w", 9))
    (row,) = table_of(ran.out, "NOT PLACED")
    why = "the nodes of flavor f have no place for these pods; they would not fit without other workloads either"
    assert row == ["team/w", "main", f"required {RACK}", why]
    assert "insufficient unused quota for cpu in flavor f, 7 more needed" in ran.out
