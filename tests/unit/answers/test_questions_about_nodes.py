"""Every question sees nodes, topologies and flavors as they are, with or without a cycle before it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kueuecore import Configuration, Engine, Outcome
from kueuecore.answers import explain
from kueuecore.cli import ExitCode, main
from kueuecore.findings import check
from kueuecore.jobs.topology_assignment import TopologyAssignment
from tests.topologies import HOST, NOW, RACK, Json, flavor, namespace, node, pod, pod_set, queue, topology, workload

POOL = "example.com/pool"


def fast(name: str, rack: str, cpu: int = 4, **spec: Any) -> Json:
    """A node of the pool on which the flavor places pods."""
    made = node(name, rack, cpu=cpu, **spec)
    made["metadata"]["labels"][POOL] = "fast"
    return made


SITE = [
    namespace(),
    topology(RACK, HOST),
    flavor(nodeLabels={POOL: "fast"}),
    *queue(),
    fast("n1", "r1"),
    fast("n2", "r2", cpu=2),
]
BIG = workload("big", pod_set(cpu=4, required=HOST))
NEW = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "new", "namespace": "ns", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
    "spec": {"template": {"spec": BIG["spec"]["podSets"][0]["template"]["spec"] | {"restartPolicy": "Never"}}},
}
EMPTY = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}"
TAINT = {"key": "example.com/broken", "effect": "NoSchedule"}
SMALL = workload("small", pod_set(cpu=1, required=HOST))
Change = Callable[[Engine], object]


def engine_of(configuration: Configuration | None = None) -> Engine:
    engine = Engine(configuration)
    engine.apply(SITE, now=NOW)
    return engine


CHANGES: dict[str, Change] = {
    "deleted": lambda it: it.delete("Node", "n1", now=NOW),
    "cordoned": lambda it: it.apply(fast("n1", "r1", unschedulable=True), now=NOW),
    "tainted": lambda it: it.apply(fast("n1", "r1", taints=[TAINT]), now=NOW),
    "smaller": lambda it: it.apply(fast("n1", "r1", cpu=3), now=NOW),
    "in another pool": lambda it: it.apply(node("n1", "r1", cpu=4), now=NOW),
    "used outside Kueue": lambda it: it.apply(pod("daemon", "n1"), now=NOW),
    "of a flavor with other nodes": lambda it: it.apply(flavor(nodeLabels={POOL: "slow"}), now=NOW),
    "without topology": lambda it: it.delete("Topology", "default", now=NOW),
    "without quota": lambda it: it.apply(queue(cpu=0), now=NOW),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("is_cycled", [False, True])
def test_an_engine_answers_for_the_objects_of_now(change: Change, *, is_cycled: bool) -> None:
    engine = engine_of()
    if is_cycled:
        engine.apply(SMALL, now=NOW)
        engine.cycle(NOW)
        engine.delete("Workload", "small", namespace="ns", now=NOW)
    asked = engine.fork()
    assert asked.what_if(BIG, now=NOW).outcome is Outcome.FITS
    change(asked)
    assert asked.what_if(BIG, now=NOW).outcome is Outcome.WAITS
    explained = engine.fork()
    explained.apply(BIG, now=NOW)
    assert explain(explained, "big", namespace="ns", now=NOW).now.outcome is Outcome.FITS
    change(explained)
    assert explain(explained, "big", namespace="ns", now=NOW).now.outcome is Outcome.WAITS


def test_a_read_between_two_questions_changes_neither() -> None:
    engine = engine_of()
    before = engine.what_if(BIG, now=NOW)
    engine.delete("Node", "n2", now=NOW)
    later = repr(engine.what_if(BIG, now=NOW))
    assert (before.outcome, len(engine.domain_capacity()) > 0) == (Outcome.FITS, True)
    assert repr(engine.what_if(BIG, now=NOW)) == later


def test_preferences_count_in_each_question() -> None:
    """Kueue scores nodes once per cycle and pod set; a question is a cycle of its own."""
    terms = [{"key": RACK, "operator": "In", "values": ["r1"]}]
    wish = pod_set(cpu=1, unconstrained=True)
    wish["template"]["spec"]["affinity"] = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": terms}}
            ]
        }
    }
    engine = engine_of(Configuration.parse(EMPTY, feature_gates={"TASRespectNodeAffinityPreferred": True}))
    engine.cycle(NOW)
    for _ in range(2):
        (placed,) = engine.what_if(workload("picky", wish), now=NOW).pod_sets
        assert [domain.values for domain in TopologyAssignment.of(dict(placed.topology_assignment or {})).domains] == [
            ("n1",)
        ]


def written(tmp_path: Path, name: str, *objects: Json) -> str:
    path = tmp_path / name
    path.write_text("---\n".join(json.dumps(object_) + "\n" for object_ in objects), encoding="utf-8")
    return str(path)


@pytest.fixture
def would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `kueuecore what-if` says of the job, with options and more objects in its file."""

    def run(*options: str, more: tuple[Json, ...] = (), state: tuple[Json, ...] = ()) -> str:
        paths = written(tmp_path, "state.yaml", *SITE, *state), "-f", written(tmp_path, "job.yaml", NEW, *more)
        assert main(["what-if", "-q", *paths, "-o", "json", *options]) == ExitCode.OK
        (found,) = json.loads(capsys.readouterr().out)["workloads"]
        return str(found["would"])

    return run


@pytest.mark.parametrize(
    "option",
    [
        "--delete=Node/n1",
        "--delete=Topology/default",
        "--set=Node/n1:spec.unschedulable=true",
        "--set=Node/n1:status.allocatable.cpu=3",
        '--set=Node/n1:status.conditions[0].status="False"',
        f'--set=Node/n1:metadata.labels["{POOL}"]=slow',
        f"--set=Node/n1:spec.taints={json.dumps([TAINT])}",
        f'--set=ResourceFlavor/tas:spec.nodeLabels["{POOL}"]=slow',
    ],
)
def test_what_if_sees_what_set_and_delete_do_to_nodes(would: Callable[..., str], option: str) -> None:
    assert would(option) == "Waits"
    assert would(option, state=(SMALL,)) == "Waits", "after a cycle, too"


def test_what_if_sees_the_nodes_in_the_file_of_the_job(would: Callable[..., str]) -> None:
    assert would() == "Fits"
    assert would("--delete=Node/n1", more=(fast("n3", "r1"),)) == "Fits"
    assert would(more=(fast("n1", "r1", cpu=1),)) == "Waits"


def test_unblock_starts_from_the_nodes_of_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hog = workload("a", pod_set(cpu=4, required=HOST))
    state = written(tmp_path, "state.yaml", *SITE, hog, BIG | {"metadata": BIG["metadata"] | {"name": "b"}})
    main(["unblock", "-q", state, "ns/b", "--only", "Victims", "-o", "json"])
    (change,) = json.loads(capsys.readouterr().out)["changes"]
    assert change["would"] == "Fits"


def test_check_knows_that_a_job_only_waits_for_another() -> None:
    hog = workload("a", pod_set(cpu=4, required=HOST))
    assert check([*SITE, hog, BIG]) == ()
    for strategy, rule in (("StrictFIFO", "KC601"), ("BestEffortFIFO", "")):
        huge = workload("huge", pod_set(cpu=5, required=HOST))
        codes = [
            finding.code for finding in check([*SITE, *queue(queueingStrategy=strategy), hog, huge], select=["KC601"])
        ]
        assert codes == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([fast("n1", "r1", unschedulable=True)], "nodes of flavor tas that take no pods: n1 (unschedulable)\n"),
        ([node("n1", "r1", cpu=4, unschedulable=True)], ""),
        ([], ""),
    ],
    ids=["cordoned", "cordoned, but of another flavor", "too small"],
)
def test_explain_names_the_nodes_that_kueue_leaves_out(
    nodes: list[Json], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "state.json"
    site = [entry for entry in SITE if entry["metadata"]["name"] != "n1"]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*site, *nodes, BIG]}), encoding="utf-8")
    assert main(["explain", "-q", str(path), "big"]) == ExitCode.OK
    out = capsys.readouterr().out
    assert (said in out, "take no pods" in out) == (True, bool(said))
    assert main(["explain", "-q", str(path), "big", "-o", "json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document["leftOut"] == [said.strip()] * bool(said)
    (placed,) = document["notPlaced"]
    assert placed["asksFor"] == f"required {HOST}"
    (full,) = document["fullNodes"]
    assert (full["path"], full["resource"], full["asked"], full["free"]) == (["r2", "n2"], "cpu", "4", "2")
    assert document["onNodes"] == []
