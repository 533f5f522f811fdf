"""A dump without names shows the same decisions."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest
import yaml

from kueuecore import Engine, World, read_manifests
from kueuecore._json import list_at, text_at
from kueuecore.cli import main
from kueuecore.dumps import Anonymised, Deciding, anonymise
from kueuecore.dumps.new_names import fnv1a, new_names, new_resources
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest, parse_manifests
from kueuecore.testing import START, History, MoveKind, random_history
from kueuecore.testing.drawn_contests import random_contest
from kueuecore.testing.drawn_topologies import random_topology
from tests.command import Ran

EXAMPLES = Path(__file__).parents[3] / "examples"
FOLDERS = ("kinds-of-jobs", "taking-back", "topology", "two-flavors", "two-teams", "zero-quota")
SECRETS = """
{apiVersion: v1, kind: Namespace, metadata: {name: apollo, labels: {owner: mallory, secret-tier: gold-tier}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: orion, annotations: {note: from-mallory}}
spec:
  nodeLabels: {secret-pool: orion-pool}
  nodeTaints: [{key: secret-taint, value: keep-out, effect: NoSchedule}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: skunkworks}
spec:
  cohortName: hangar
  namespaceSelector: {matchLabels: {secret-tier: gold-tier}}
  resourceGroups:
  - coveredResources: [cpu, laser.example/beam]
    flavors:
    - name: orion
      resources: [{name: cpu, nominalQuota: 2}, {name: laser.example/beam, nominalQuota: 3}]
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: launchpad, namespace: apollo},
 spec: {clusterQueue: skunkworks}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: boss}, value: 9,
 description: mallory}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: warp-drive
  namespace: apollo
  labels: {kueue.x-k8s.io/queue-name: launchpad, kueue.x-k8s.io/priority-class: boss, team: mallory}
spec:
  parallelism: 2
  template:
    metadata: {labels: {app: warp}}
    spec:
      restartPolicy: Never
      serviceAccountName: mallory
      tolerations: [{key: secret-taint, operator: Equal, value: keep-out, effect: NoSchedule}]
      nodeSelector: {secret-pool: orion-pool}
      containers:
      - name: engine
        image: registry.mallory.example/warp
        args: [--password, hunter2]
        env: [{name: TOKEN, value: hunter2}]
        resources: {requests: {cpu: 1, laser.example/beam: 1}}
"""
OLD = (
    "apollo mallory secret gold orion from note keep-out skunkworks hangar laser beam launchpad boss warp drive engine"
    " registry password hunter2 TOKEN team app"
)


def anonymised(text: str, seed: int | None = None, **options: str) -> Anonymised:
    return anonymise(parse_manifests(text), Deciding(now=START), seed=seed, **options)


def of_history(history: History) -> list[Manifest]:
    """Its objects, and the workloads that come later."""
    moves = (move.object for move in history.moves if move.kind is MoveKind.APPLY and move.object is not None)
    return [
        Manifest(object_) for object_ in (*history.objects, *(move for move in moves if move["kind"] == "Workload"))
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_anonymised_examples_lead_to_the_same_decisions(folder: str) -> None:
    manifests = read_manifests(EXAMPLES / folder)
    now = World.of(manifests).newest_time() or 0
    found = anonymise(manifests, Deciding(now=now))
    assert found.differences == ()
    assert World.of(map(Manifest, found.objects)).newest_time() in (now, None)


@pytest.mark.parametrize("draw", [random_history, random_contest, random_topology], ids=lambda entry: entry.__name__)
@pytest.mark.parametrize("seed", [None, 3])
def test_anonymised_random_worlds_lead_to_the_same_decisions(draw: type[History], seed: int | None) -> None:
    n_preemptions = 0
    for number in range(25):
        history = draw(number)  # type: ignore[arg-type]
        settings = history.parsed_configuration()
        deciding = Deciding(configuration=settings, now=START, trusted=True, max_cycles=200)
        manifests = of_history(history)
        assert (number, anonymise(manifests, deciding, seed=seed).differences) == (number, ())
        n_preemptions += len(deciding.of(manifests).preemptions)
    assert n_preemptions > 0 or draw is random_topology


def test_no_user_chosen_name_is_left() -> None:
    found = anonymised(SECRETS)
    text = yaml.safe_dump_all(found.objects)
    assert [part for part in OLD.split() if re.search(rf"(?i)\b{part}", text)] == []
    assert found.dropped == {"Job": 1}
    assert "kueue.x-k8s.io/v1beta2" in text
    (workload,) = (object_ for object_ in found.objects if object_["kind"] == "Workload")
    assert workload["spec"]["podSets"][0]["template"]["spec"]["tolerations"] == [  # type: ignore[index,call-overload]
        {"key": "example.com/label-2", "operator": "Equal", "value": "value-2", "effect": "NoSchedule"}
    ]


def test_new_names_keep_the_order_of_the_old() -> None:
    names = anonymised(SECRETS.replace("apollo", "zz") + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: a}}")
    assert names.names.by_category["namespace"] == {"a": "ns-1", "zz": "ns-2"}
    assert list(new_names("n-", map(str, range(12))).values())[-1] == "n-12"
    with_gaps = new_names("n-", "abc", seed=1)
    assert with_gaps == new_names("n-", "cba", seed=1)
    assert sorted(with_gaps.values()) == list(with_gaps.values())
    assert with_gaps != new_names("n-", "abc", seed=2)


def test_resources_keep_their_order_by_name_and_by_hash() -> None:
    names = ["cpu", "memory", "nvidia.com/gpu", "tokens", *(f"{letter}.example/x" for letter in "azqmdk")]
    for seed in (None, 1, 2):
        new = new_resources(names, seed=seed)
        assert sorted(new) == sorted(new, key=lambda resource: new[resource])
        assert sorted(new, key=fnv1a) == sorted(new, key=lambda resource: fnv1a(new[resource]))
        assert {name for name in names if new[name] == name} == {"cpu", "memory", "nvidia.com/gpu"}
        assert [resource for resource in new if ("/" in resource) != ("/" in new[resource])] == []


def test_a_changed_order_is_reported_as_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    def backwards(prefix: str, names: list[str], *, seed: int | None = None) -> dict[str, str]:
        ordered = sorted(set(names), reverse=True)
        return {name: f"{prefix}{number:04}" for number, name in enumerate(ordered)}

    monkeypatch.setattr("kueuecore.dumps.renaming.new_names", backwards)
    found = anonymise(read_manifests(EXAMPLES / "two-teams"), Deciding(now=0))
    assert found.differences != ()
    assert main(["anonymise", str(EXAMPLES / "two-teams"), "-q"]) == 1


def test_move_to_shifts_all_times_together() -> None:
    manifests = read_manifests(EXAMPLES / "taking-back")
    now = World.of(manifests).newest_time() or 0
    found = anonymise(manifests, Deciding(now=now), move_to="2020-01-01T00:00:00Z")
    times = [object_["metadata"].get("creationTimestamp") for object_ in found.objects if object_["kind"] == "Workload"]  # type: ignore[union-attr]
    assert times == [None, "2019-12-31T23:30:00Z", "2020-01-01T00:00:00Z", "2019-12-31T23:40:00Z"]
    assert found.differences == ()
    with pytest.raises(ManifestError, match="move them to another time"):
        anonymise(manifests, Deciding(now=now), move_to="1960-01-01T00:00:00Z")


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Ran:
    return Ran(main(list(map(str, arguments))), *capsys.readouterr())


def test_the_command_writes_what_run_reads(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "in.yaml").write_text(SECRETS, encoding="utf-8")
    out, names = tmp_path / "out.yaml", tmp_path / "names.json"
    ran = run(capsys, "anonymise", tmp_path / "in.yaml", "-o", out, "--names", names, "--now", "2026-01-01T00:00:00Z")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.splitlines()[0] == "note: left out, as no decision depends on them: Job (1)"
    assert json.loads(names.read_text())["clusterQueue"] == {"skunkworks": "cq-1"}
    assert out.read_text().splitlines()[0] == "# kueuecore run --now 2026-01-01T00:00:00Z"
    before = json.loads(run(capsys, "run", tmp_path / "in.yaml", "-o", "json").out)
    after = json.loads(run(capsys, "run", out, "-o", "json").out)
    assert (after["counts"], after["cycles"]) == (before["counts"], before["cycles"])
    assert (after["quota"][0]["name"], after["quota"][0]["usage"]) == ("cq-1", before["quota"][0]["usage"])
    again = run(capsys, "anonymise", tmp_path / "in.yaml", "-q", "--now", "2026-01-01T00:00:00Z")
    assert (again.out, again.err) == (out.read_text(), "")


def test_a_trusted_dump_is_taken_as_it_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    dump = run(capsys, "run", EXAMPLES / "taking-back", "-o", "yaml", "-q").out
    (tmp_path / "dump.yaml").write_text(dump, encoding="utf-8")
    ran = run(capsys, "anonymise", tmp_path / "dump.yaml", "--trusted", "-q")
    assert ran.code == 0
    assert "--trusted" in ran.out.splitlines()[0]
    assert "team-a" not in ran.out


def test_wrong_input_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(capsys, "anonymise", tmp_path / "no.yaml").code == 2
    ran = run(capsys, "anonymise", EXAMPLES / "two-teams", "-o", tmp_path / "no/out.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert "--output: No such file or directory; choose another file" in ran.err


@pytest.mark.parametrize("command", ["anonymise", "shrink", "check"])
def test_the_help_of_commands_that_read_only_manifests_omits_saved_engines(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    assert "a directory, or - for stdin" in " ".join((said := capsys.readouterr().out).split())
    assert "saved engine" not in said


def test_the_manifests_of_a_saved_engine_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = Engine()
    World.of(read_manifests(EXAMPLES / "two-flavors")).apply_to(engine, now=START)
    (tmp_path / "saved").write_bytes(engine.save())
    assert main(["anonymise", str(tmp_path / "saved")]) == 2
    assert "saved: this is a saved engine; give manifests or a dump; `kueuecore run -o yaml` makes one of it" in (
        capsys.readouterr().err
    )
    assert main(["run", "-q", "-o", "yaml", str(tmp_path / "saved")]) == 0
    (tmp_path / "dump.yaml").write_text(capsys.readouterr().out, "utf-8")
    assert main(["anonymise", "--trusted", str(tmp_path / "dump.yaml")]) == 0
    assert "the decisions are the same" in capsys.readouterr().err


FOREIGN = """
{apiVersion: v1, kind: Namespace, metadata: {name: apollo}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: launchpad, namespace: apollo},
 spec: {clusterQueue: skunkworks}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata:
  name: warp
  namespace: apollo
  uid: u1
  creationTimestamp: &time "2026-01-01T00:00:00Z"
  ownerReferences:
  - {apiVersion: mallory.example/v2, kind: WarpDrive, name: engine, uid: u2, controller: true}
  - {apiVersion: ray.io/v1, kind: RayJob, name: engine, uid: u3}
spec:
  queueName: launchpad
  podSets:
  - {name: main, count: 1, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}
status:
  conditions:
  - {type: mallory.example/Audited, status: "True", reason: HunterApproved, message: m, lastTransitionTime: *time}
  - {type: Requeued, status: "True", reason: BackoffFinished, message: m, lastTransitionTime: *time}
"""


def test_kinds_of_owners_and_conditions_that_nobody_knows_are_renamed() -> None:
    found = anonymise(parse_manifests(FOREIGN), Deciding(now=0, trusted=True))
    assert found.differences == ()
    (workload,) = (object_ for object_ in found.objects if object_["kind"] == "Workload")
    owners = list_at(workload, "metadata", "ownerReferences")
    types = [(text_at(owner, "apiVersion"), text_at(owner, "kind"), text_at(owner, "name")) for owner in owners]
    assert types == [("group-1/v2", "Owner1", "owner-1"), ("ray.io/v1", "RayJob", "owner-1")]
    conditions = [
        (text_at(condition, "type"), text_at(condition, "reason"))
        for condition in list_at(workload, "status", "conditions")
    ]
    assert conditions == [("example.com/condition-1", "Other"), ("Requeued", "BackoffFinished")]
    assert found.names.by_category["ownerKind"] == {"WarpDrive": "Owner1"}


@pytest.mark.parametrize("is_there", [False, True])
def test_only_the_owner_may_read_the_names(is_there: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    names = tmp_path / "names.json"
    if is_there:
        names.write_text("old" * 10_000)
        names.chmod(0o644)
    assert run(capsys, "anonymise", EXAMPLES / "taking-back", "-o", tmp_path / "out.yaml", "--names", names).code == 0
    assert stat.S_IMODE(names.stat().st_mode) == 0o600
    assert json.loads(names.read_text())["clusterQueue"] == {"team-a": "cq-1", "team-b": "cq-2"}
    assert stat.S_IMODE((tmp_path / "out.yaml").stat().st_mode) != 0o600
