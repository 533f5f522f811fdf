"""Parts that somebody else brings: patches that grow, answers of another kind, check controllers that raise."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from kueuecore import Configuration, Engine
from kueuecore.checks import CheckController, Review
from kueuecore.cli import ExitCode, main
from kueuecore.controller import Controller
from kueuecore.controller.metrics import Metrics
from kueuecore.errors import ConfigurationError, ManifestError
from kueuecore.fleet import Fleet, table
from kueuecore.journal import digest_of
from kueuecore.multikueue import AllAtOnce, Dispatch, KnownCluster, Nomination
from kueuecore.multikueue.policies import JsonPatchError, Overridden, Scored, by_cost
from kueuecore.multikueue.policies.json_patch import apply_json_patch, check_json_patch
from kueuecore.objects import AdmissionCheckRule
from kueuecore.scenarios import run_scenario
from kueuecore.writes import Answer
from tests.builders import T0, at, cluster_queue, flavor, local_queue, workload
from tests.unit.multikueue.worlds import START

Json = dict[str, Any]
KUEUE = "kueue.x-k8s.io/v1beta2"


def test_a_patch_that_copies_more_and_more_is_refused_in_time() -> None:
    doubling: list[Json] = [{"op": "copy", "from": "", "path": f"/k{i}"} for i in range(40)]
    start = time.process_time()
    with pytest.raises(JsonPatchError, match="unable to copy more than 3145728 characters"):
        apply_json_patch({"a": "b"}, doubling)
    assert time.process_time() - start < 10
    with pytest.raises(JsonPatchError, match="more than 10000 operations"):
        check_json_patch([{"op": "add", "path": "/a", "value": 1}] * 10_001)


def test_a_patch_leaves_the_document_as_it_is() -> None:
    document: Json = {"a": {"b": [1]}}
    patched = apply_json_patch(document, [{"op": "add", "path": "/a/b/-", "value": 2}])
    assert (document, patched) == ({"a": {"b": [1]}}, {"a": {"b": [1, 2]}})
    with pytest.raises(JsonPatchError):
        apply_json_patch(document, [{"op": "remove", "path": "/a/b/0"}, {"op": "copy", "from": "/c", "path": "/d"}])
    assert document == {"a": {"b": [1]}}


def watched(*objects: Any, checks: tuple[CheckController, ...] = ()) -> Controller:
    controller = Controller(checks=checks)
    for number, each in enumerate(objects, start=1):
        plain: Json = json.loads(json.dumps(each if isinstance(each, dict) else each.to_manifest()))
        plain["metadata"]["resourceVersion"] = str(number)
        controller.observe({"type": "ADDED", "object": plain}, now=T0)
    return controller


@pytest.mark.parametrize("is_accepted", [True, False])
def test_an_answer_of_another_group_is_refused(is_accepted: bool) -> None:
    controller = watched(flavor(), cluster_queue(), local_queue(), workload("w"))
    (write,) = controller.turn(at(1)).writes
    before = controller.save()
    stored = controller.workload("w", namespace="ns")
    assert stored is not None
    answer = {**stored, "apiVersion": "batch/v1", "metadata": {**stored["metadata"], "resourceVersion": "9"}}
    with pytest.raises(ManifestError, match='apiVersion: Invalid value: "batch/v1": it is of another API group'):
        controller.done(write, Answer(answer, "" if is_accepted else "refused"), now=at(2))
    assert controller.save() == before
    assert controller.done(write, Answer(), now=at(2))
    Controller.load(json.loads(json.dumps(controller.save())), now=at(3))


class Strict(CheckController):
    """Takes nothing, and lets nothing go."""

    controller_name = "example.com/strict"

    def observe(self, manifest: Json, *, now: int) -> tuple[tuple[str, str], ...]:
        raise ManifestError.of("not such a check")

    def forget(self, ref: object, *, now: int) -> tuple[tuple[str, str], ...]:
        raise ManifestError.of("it is to stay")

    def review(self, workload: object, checks: object, *, now: int) -> Review:
        return Review()


def test_what_a_check_controller_refuses_has_changed_nothing() -> None:
    queue = cluster_queue(admission_checks=[AdmissionCheckRule("ac")])
    controller = watched(flavor(), queue, local_queue(), workload("w"), checks=(Strict(),))
    before = controller.save(), controller.engine.cluster_queue("cq")
    check = {"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": {"name": "ac", "resourceVersion": "9"}}
    with pytest.raises(ManifestError, match="not such a check"):
        controller.observe({"type": "ADDED", "object": {**check, "spec": {"controllerName": "x.com/y"}}}, now=at(1))
    assert (controller.save(), controller.engine.cluster_queue("cq")) == before
    stored = controller.workload("w", namespace="ns")
    with pytest.raises(ManifestError, match="it is to stay"):
        controller.observe({"type": "DELETED", "object": stored}, now=at(1))
    assert controller.save() == before[0]


def test_a_forged_journal_reaches_no_other_door() -> None:
    engine = Engine(keeps_journal=True)
    engine.apply([cluster_queue().to_manifest()], now=T0)
    journal: Json = json.loads(json.dumps(engine.journal()))
    journal["calls"].append(["_evaluate_always", T0])
    journal["digest"] = digest_of(journal)
    with pytest.raises(ValueError, match="this is not a valid journal: "):
        Engine.replay(journal)


def test_a_text_is_no_list_of_workers() -> None:
    odd: Any = "east"
    with pytest.raises(TypeError, match=r"clusters must be a tuple of names, such as \('east', 'west'\), not 'east'"):
        Nomination(odd)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: Scored(score=by_cost(), step_size=0), ValueError, "step_size must be greater than 0"),
        (lambda: Scored(score=by_cost(), round_ns=6e10), TypeError, "round_ns must be an int, not float"),  # type: ignore[arg-type]
        (lambda: Scored(score=5), TypeError, "score must be a function, not int"),  # type: ignore[arg-type]
        (lambda: table(Fleet([], now=START), "Jobs"), ValueError, "kind: there is no table of 'Jobs'; give one of"),
        (lambda: run_scenario("scenario.yaml"), TypeError, "scenario must be a Scenario, not str"),  # type: ignore[arg-type]
        (lambda: Metrics().text(Controller()), TypeError, "engine must be an Engine, not Controller"),  # type: ignore[arg-type]
        (lambda: Fleet(["west"], now=START).objects("Job", cluster="x"), ValueError, r"give one of '' \(the manager\)"),
        (lambda: Configuration.trusted({"a": 10**400}), ConfigurationError, "settings cannot be read: number out of"),
    ],
    ids=range(8),
)
def test_a_call_names_what_is_wrong(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()


def test_what_a_job_asks_for_is_read_before_the_job_is_stored() -> None:
    fleet = Fleet(["west"], now=START)
    container = {"name": "c", "resources": {"requests": {"cpu": "lots"}}}
    job: Json = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ns", "labels": {"kueue.x-k8s.io/queue-name": "lq"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    with pytest.raises(ManifestError, match="lots"):
        fleet.submit(job)
    assert fleet.objects("Job") == []
    fleet.wait(5)


@pytest.mark.parametrize("seed", ["-1", "1_0", "٣", "99999999999999999999", "x", ""])
def test_the_command_takes_the_seeds_that_a_scenario_takes(seed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "scenario.yaml", f"--seed={seed}"]) == ExitCode.BAD_INPUT
    assert "is not a whole number from 0 to 9007199254740992" in capsys.readouterr().err


def test_a_worker_whose_override_grows_is_left_out() -> None:
    patch: list[Json] = [{"op": "copy", "from": "/spec", "path": f"/spec/k{i}"} for i in range(40)]
    policy = Overridden(inner=AllAtOnce(), patches={"west": patch})
    clusters = tuple(KnownCluster(name=name, is_connected=True) for name in ("west", "east"))
    nomination = policy.nominate(Dispatch(workload={}, job={"spec": {"a": "b"}}, clusters=clusters, now=0))
    assert nomination.clusters == ("east",)
    assert "cluster west: its override does not fit the job: unable to copy more than" in nomination.problem
