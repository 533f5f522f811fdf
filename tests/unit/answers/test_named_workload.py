"""The workload that somebody names: what may be meant by a slip, and why a job has none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from tests.command import QUEUES, Ran

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "what-if")
JOB = """
---
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: team%s}
spec:%s
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}
"""
QUEUE = ", labels: {kueue.x-k8s.io/queue-name: lq%s}"
NO_WORKLOAD = 'Job "team/a": it has no Workload: it has no label kueue.x-k8s.io/queue-name'


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(command: str, objects: str, name: str, *more: str) -> Ran:
        (tmp_path / "in.yaml").write_text(objects, "utf-8")
        code = main([command, "-q", str(tmp_path / "in.yaml"), name, *more])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.mark.parametrize("command", ["explain", "unblock", "eta"])
def test_a_misspelt_name_gets_similar_names(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "-q", EXAMPLE, "lab/trian"]) == ExitCode.BAD_INPUT
    assert "lab/trian" in (err := capsys.readouterr().err)
    assert "; write lab/train\n" in err


@pytest.mark.parametrize(
    ("given", "meant"), [("god", "Job/team/good"), ("Job/good-one", ""), ("Job/team/goood", "Job/team/good")]
)
def test_similar_names_include_jobs(ask: Callable[..., Ran], given: str, meant: str) -> None:
    ran = ask("explain", QUEUES + JOB % ("good", QUEUE % "", ""), given)
    assert ran.code == ExitCode.BAD_INPUT
    assert f"; write {meant or 'NAMESPACE/NAME, as `run -A` shows it'}\n" in ran.err


def test_a_job_without_a_queue_label_says_that_kueue_leaves_it_alone(ask: Callable[..., Ran]) -> None:
    ran = ask("explain", QUEUES + JOB % ("a", "", ""), "Job/team/a")
    assert ran.code == ExitCode.BAD_INPUT
    assert f"{NO_WORKLOAD}, so Kueue leaves it alone; set the label to a LocalQueue in namespace team: lq\n" in ran.err


def test_a_job_suspended_by_someone_else_is_reported_as_such(ask: Callable[..., Ran]) -> None:
    ran = ask("unblock", QUEUES + JOB % ("a", "", "\n  suspend: true"), "a")
    assert f"{NO_WORKLOAD}; it is suspended, but not by Kueue; set the label" in ran.err


def test_without_a_local_queue_in_its_namespace_the_remedy_is_to_create_one(ask: Callable[..., Ran]) -> None:
    ran = ask(
        "explain",
        (QUEUES + JOB % ("a", "", "")).replace("namespace: team}\nspec: {cl", "namespace: b}\nspec: {cl"),
        "a",
    )
    assert "; create a LocalQueue in namespace team, and set the label to its name\n" in ran.err


def test_a_job_waiting_for_its_priority_class_says_so(ask: Callable[..., Ran]) -> None:
    labels = QUEUE % ", kueue.x-k8s.io/priority-class: high"
    ran = ask("explain", QUEUES + JOB % ("a", labels, ""), "team/a")
    assert 'the job has no Workload yet: WorkloadPriorityClass "high" not found; add the class' in ran.err


def test_a_job_that_the_webhook_rejects_is_reported_with_its_field(ask: Callable[..., Ran]) -> None:
    ran = ask("explain", QUEUES + JOB % ("a", QUEUE % "", "\n  parallelism: -1"), "Job/a")
    assert ran.code == ExitCode.BAD_INPUT
    assert 'Job "team/a": spec.' in ran.err


def test_pods_without_a_queue_and_objects_that_are_not_jobs_are_explained(ask: Callable[..., Ran]) -> None:
    pod = "---\n{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team}, spec: {containers: [{name: c}]}}"
    assert 'Pod "team/p": it has no Workload: it has no label' in ask("explain", QUEUES + pod, "Pod/p").err
    assert "Kueue creates no Workload for a ClusterQueue; docs/jobs.md" in ask("explain", QUEUES, "ClusterQueue/cq").err


def test_the_job_of_a_workload_in_a_dump_may_be_named(
    ask: Callable[..., Ran], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state.yaml").write_text(QUEUES + JOB % ("a", QUEUE % "", ""), "utf-8")
    assert main(["run", "-q", str(tmp_path / "state.yaml"), "-o", "yaml"]) == ExitCode.OK
    dump = capsys.readouterr().out
    for name in ("Job/team/a", "Job/a", "team/a", "a"):
        ran = ask("explain", dump, name, "--trusted")
        assert (ran.code, ran.err) == (ExitCode.OK, ""), name
        assert ran.out.startswith("team/job-a-"), name


def test_a_workload_name_wins_over_a_job_name(ask: Callable[..., Ran]) -> None:
    workload = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: a, namespace: team}
spec:
  queueName: lq
  podSets:
  - {name: main, count: 1, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}
"""
    objects = QUEUES + JOB % ("a", QUEUE % "", "") + workload
    assert ask("explain", objects, "a").out.startswith("team/a is Admitted")
    assert ask("explain", objects, "Workload/a").out.startswith("team/a is Admitted")
    assert ask("explain", objects, "Job/a").out.startswith("team/job-a-")


def test_a_state_without_workloads_is_said_to_have_none(ask: Callable[..., Ran]) -> None:
    assert 'there is no workload "a"; give a state with Workloads or jobs\n' in ask("explain", "", "a").err
