"""`kueuecore what-if`: what would become of a job, and who would move, in a state that stays as it is."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kueuecore import Configuration, Engine
from kueuecore.cli import ExitCode, main
from kueuecore.manifests import read_manifests
from kueuecore.world import World
from tests.command import Ran

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "what-if")
TUNE = f"{EXAMPLE}/asked/tune.yaml"
QUOTA = "ClusterQueue/language:spec.resourceGroups[0].flavors[name=on-demand].resources[name=cpu].nominalQuota"

Command = Callable[..., Ran]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: str) -> Ran:
        code = main(["what-if", "-q", *arguments])
        return Ran(code, *capsys.readouterr())

    return run


def document(ran: Ran) -> dict[str, Any]:
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    found: dict[str, Any] = json.loads(ran.out)
    return found


def test_a_job_preempts_a_less_important_one(ask: Command) -> None:
    (found,) = document(ask(EXAMPLE, "-f", TUNE, "-o", "json"))["workloads"]
    victims = [
        (preemption["workload"], preemption["clusterQueue"], preemption["reason"])
        for preemption in found.pop("preemptions")
    ]
    assert victims == [("lab/eval", "vision", "InClusterQueue")]
    assert found.pop("message").endswith("Pending the preemption of 1 workload(s)")
    assert found.pop("workload").startswith("lab/job-tune-")
    assert found == {
        "job": "Job/tune",
        "localQueue": "vision",
        "clusterQueue": "vision",
        "would": "Preempts",
        "ahead": 0,
        "podSets": [
            {
                "name": "main",
                "count": 5,
                "flavors": {"cpu": "on-demand"},
                "resourceUsage": {"cpu": "5"},
                "domains": {},
            }
        ],
        "reason": "WaitingForPreemptedWorkloads",
        "undecided": None,
    }


def test_edits_and_deletions_apply_before_the_question(ask: Command) -> None:
    def would(*arguments: str) -> str:
        (found,) = document(ask(EXAMPLE, "-f", TUNE, "-o", "json", *arguments))["workloads"]
        return str(found["would"])

    assert would("--set", "Job/tune:spec.parallelism=3") == "Fits"
    assert would("--set", f"{QUOTA}=8") == "Preempts"
    assert would("--delete", "Workload/eval") == "Fits"
    assert would("--delete", "Workload/lab/eval", "--delete", "LocalQueue/lab/vision") == "Waits"
    assert would("--set", "ClusterQueue/vision:spec.preemption.withinClusterQueue=Never") == "Waits"


def test_settle_shows_what_a_new_quota_moves(ask: Command) -> None:
    arguments = [
        "--settle",
        "--set",
        "ClusterQueue/vision:spec.resourceGroups[0].flavors[0].resources[0].nominalQuota=14",
    ]
    settled = document(ask(EXAMPLE, "-o", "json", *arguments))["settled"]
    assert settled["ending"] == "Settled"
    assert [(move["workload"], move["move"]) for move in settled["moves"]] == [("lab/train", "admitted")]
    assert settled["moves"][0]["after"]["flavors"] == {"main": {"cpu": "on-demand"}}


def test_settle_shows_which_other_workloads_move(ask: Command) -> None:
    ran = ask(EXAMPLE, "-f", TUNE, "--settle")
    assert ran.code == ExitCode.OK
    moves = [line.split()[:2] for line in ran.out.split("WORKLOAD")[-1].splitlines()[1:]]
    assert moves[0] == ["lab/eval", "evicted"]
    assert moves[1][1] == "admitted"


def test_a_workload_of_the_state_is_tried_as_if_it_were_new(ask: Command) -> None:
    state = [f"{EXAMPLE}/queues.yaml", f"{EXAMPLE}/workloads.yaml"]
    found = document(ask(*state, "-f", state[1], "-o", "json"))["workloads"]
    assert {workload["workload"]: workload["would"] for workload in found} == {
        "lab/label": "Fits",
        "lab/eval": "Fits",
        "lab/serve": "Fits",
        "lab/train": "Fits",
        "lab/sweep": "Fits",
    }


def test_a_job_asked_about_twice_counts_once(ask: Command, tmp_path: Path) -> None:
    state = [f"{EXAMPLE}/queues.yaml", TUNE]
    (found,) = document(ask(*state, "-f", TUNE, "-o", "json"))["workloads"]
    assert found["would"] == "Fits"


def test_a_saved_engine_gives_the_same_answer(ask: Command, tmp_path: Path) -> None:
    configuration = Configuration()
    engine = Engine(configuration)
    World.of(read_manifests(EXAMPLE), configuration=configuration).apply_to(engine, now=0)
    saved = tmp_path / "saved.engine"
    saved.write_bytes(engine.save())
    for arguments in (["-f", TUNE], ["--settle", "--set", f"{QUOTA}=9"], ["-f", TUNE, "--settle"]):
        both = [ask(state, *arguments, "--now", "2026-01-01T10:00:00Z") for state in (EXAMPLE, str(saved))]
        assert both[0] == both[1]


def test_the_question_comes_from_standard_input(ask: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(Path(TUNE).read_text(encoding="utf-8")))
    (found,) = document(ask(EXAMPLE, "-f", "-", "-o", "json"))["workloads"]
    assert found["would"] == "Preempts"


def test_queues_in_the_file_of_the_job_are_added(ask: Command, tmp_path: Path) -> None:
    file = tmp_path / "more.yaml"
    text = Path(TUNE).read_text(encoding="utf-8").replace("queue-name: vision", "queue-name: new")
    queue = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: new, namespace: lab}, spec: %s}"
    file.write_text(f"{text}---\n{queue % '{clusterQueue: vision}'}\n", encoding="utf-8")
    (found,) = document(ask(EXAMPLE, "-f", str(file), "-o", "json"))["workloads"]
    assert (found["localQueue"], found["would"]) == ("new", "Preempts")


def test_fail_on_pending_exits_with_1_if_the_job_would_wait(ask: Command) -> None:
    waits = ["-f", TUNE, "--set", "ClusterQueue/vision:spec.preemption.withinClusterQueue=Never"]
    assert ask(EXAMPLE, *waits).code == ExitCode.OK
    assert ask(EXAMPLE, *waits, "--fail-on-pending").code == ExitCode.PENDING
    assert ask(EXAMPLE, *waits, "--settle", "--fail-on-pending").code == ExitCode.PENDING
    assert ask(EXAMPLE, "-f", TUNE, "--fail-on-pending").code == ExitCode.OK


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([EXAMPLE], "nothing is asked; give jobs with -f, or see what moves with --settle"),
        ([EXAMPLE, "--settle"], "nothing changes, so nothing moves"),
        (["-", "-f", "-"], "standard input can be read only once"),
        (
            [EXAMPLE, "--settle", "--set", "ClusterQueue/visoin:spec.cohortName=x"],
            "no object matches ClusterQueue/visoin",
        ),
        ([EXAMPLE, "--settle", "--set", "Job/tune:spec.parallelism=3"], "a state has no objects of kind Job"),
        ([EXAMPLE, "--settle", "--set", "spec.cohortName=x"], "is not a field of a state"),
        ([EXAMPLE, "--settle", "--set", f"{QUOTA}=-1"], "Invalid value"),
        ([EXAMPLE, "--settle", "--set", "Cohort/research:spec.a[0]=1"], "there is no [0]"),
        (
            [EXAMPLE, "--settle", "--delete", "Workload/lab/nobody"],
            "there is no Workload/lab/nobody; write one of lab/eval, lab/label",
        ),
        ([EXAMPLE, "--settle", "--delete", "Workload"], '"Workload" does not name an object'),
        ([EXAMPLE, "--settle", "--delete", "Workload/trian"], "no Workload/trian; write Workload/lab/train\n"),
        ([EXAMPLE, "--settle", "--delete", "ClusterQueue/visoin"], "; write ClusterQueue/vision\n"),
        ([EXAMPLE, "--settle", "--delete", "Job/lab/trian"], 'no workload "Job/lab/trian"; write lab/train\n'),
        ([EXAMPLE, "--settle", "--set", "LocalQueue/viison:spec.x=1"], "; write LocalQueue/lab/vision\n"),
        ([EXAMPLE, "--settle", "--delete", "Cohort/other"], "there is no Cohort/other; write one of research\n"),
        ([EXAMPLE, "--settle", "--delete", "Topology/t"], "there is no Topology/t; the state has no Topology\n"),
        ([EXAMPLE, "--settle", "--delete", "Sofa/x"], "Sofa/x cannot be deleted"),
    ],
)
def test_bad_questions_are_errors_with_a_remedy(ask: Command, arguments: list[str], message: str) -> None:
    ran = ask(*arguments)
    assert ran.code == ExitCode.BAD_INPUT
    assert message in ran.err
    assert ran.out == ""
