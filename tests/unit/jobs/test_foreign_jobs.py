"""Objects that are no jobs of Kueue's: kinds of externalFrameworks, and those that Kueue has no integration for."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueuecore import Configuration, Engine, World
from kueuecore.cli import ExitCode, main
from kueuecore.findings import check
from kueuecore.jobs import JobsConfiguration, workloads_for
from kueuecore.manifests import parse_manifests
from tests.command import QUEUES

CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations: {frameworks: [pod], externalFrameworks: [PipelineRun.v1.tekton.dev]}
"""
RUN = """
---
apiVersion: tekton.dev/v1
kind: PipelineRun
metadata: {name: build, namespace: team, uid: u1, labels: {kueue.x-k8s.io/queue-name: lq}}
spec: {pipelineRef: {name: p}}
"""
OWNER = "[{apiVersion: tekton.dev/v1, kind: PipelineRun, name: build, uid: u1, controller: true}]"
WORKLOAD = f"""
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {{name: made-elsewhere, namespace: team, ownerReferences: {OWNER}}}
spec:
  queueName: lq
  podSets:
  - name: main
    count: 1
    template: {{spec: {{containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]}}}}
"""
POD = f"""
---
apiVersion: v1
kind: Pod
metadata:
  name: build-step
  namespace: team
  labels: {{kueue.x-k8s.io/queue-name: lq}}
  ownerReferences: {OWNER}
spec: {{containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]}}
"""
MISSING = "the controller of PipelineRun.v1.tekton.dev makes its Workload: give that one, too"
UNKNOWN = "Kueue has no integration for PipelineRun of tekton.dev/v1: give the pods, Jobs or Workload that it makes"


def reasons(text: str, *external: str) -> list[str]:
    """Why jobs get no Workload."""
    configuration = JobsConfiguration(external_frameworks=external)
    return [ignored.reason for ignored in workloads_for(parse_manifests(text), configuration=configuration).ignored]


@pytest.mark.parametrize(("external", "reason"), [([], UNKNOWN), (["PipelineRun.v1.tekton.dev"], MISSING)])
def test_it_is_said_who_makes_the_workload(external: list[str], reason: str) -> None:
    assert reasons(QUEUES + RUN, *external) == [reason]
    assert reasons(QUEUES + RUN + WORKLOAD, *external) == []


def test_pods_that_name_a_queue_need_no_word_of_who_makes_them() -> None:
    result = workloads_for(parse_manifests(QUEUES + RUN + POD))
    assert [workload.object["metadata"]["name"] for workload in result.workloads] == ["pod-build-step-8423d"]  # type: ignore[index,call-overload]
    assert result.ignored == ()


@pytest.mark.parametrize(
    "text",
    [
        RUN.replace("tekton.dev/v1", "networking.k8s.io/v1"),
        RUN.replace("tekton.dev/v1", "apps/v1"),
        RUN.replace("labels: {kueue.x-k8s.io/queue-name: lq}", "labels: {}"),
    ],
    ids=["of Kubernetes", "of apps", "without a queue"],
)
def test_nobody_expects_a_workload_of_anything_else(text: str) -> None:
    assert reasons(QUEUES + text) == []


def test_an_external_kind_counts_in_the_version_that_is_named() -> None:
    assert reasons(QUEUES + RUN, "PipelineRun.v1beta1.tekton.dev") == [UNKNOWN]
    unlabelled = RUN.replace("labels: {kueue.x-k8s.io/queue-name: lq}", "labels: {}")
    assert reasons(QUEUES + unlabelled, "PipelineRun.v1.tekton.dev") == [MISSING]


def unread(text: str) -> dict[str, int]:
    """Kinds that play no part."""
    configuration = Configuration.parse(CONFIGURATION)
    world = World.of(parse_manifests(text), configuration=configuration)
    return dict(world.apply_to(Engine(configuration), now=0).unread)


def test_what_has_a_workload_or_a_note_is_not_also_unread() -> None:
    assert unread(QUEUES + RUN) == unread(QUEUES + RUN + WORKLOAD) == {}
    other = RUN.replace("PipelineRun", "Pipeline").replace("labels: {kueue.x-k8s.io/queue-name: lq}", "labels: {}")
    assert unread(QUEUES + RUN + WORKLOAD + other) == {"Pipeline": 1}


def test_the_command_uses_the_workload_that_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text(CONFIGURATION, encoding="utf-8")
    (tmp_path / "in.yaml").write_text(QUEUES + RUN, encoding="utf-8")
    arguments = ["--config", str(tmp_path / "config.yaml"), str(tmp_path / "in.yaml")]
    assert main(["run", *arguments]) == ExitCode.OK
    assert f'note: PipelineRun "team/build": {MISSING}; it gets no Workload\n' in capsys.readouterr().err
    assert main(["explain", *arguments, "PipelineRun/team/build"]) == ExitCode.BAD_INPUT
    assert MISSING in capsys.readouterr().err

    (tmp_path / "in.yaml").write_text(QUEUES + RUN + WORKLOAD, encoding="utf-8")
    assert main(["explain", "-q", *arguments, "PipelineRun/team/build"]) == ExitCode.OK
    shown = capsys.readouterr()
    assert shown.out.startswith("team/made-elsewhere is Admitted")
    assert shown.err == ""


def test_the_queues_of_jobs_that_others_take_care_of_are_right() -> None:
    for text in (CONFIGURATION, CONFIGURATION.replace("PipelineRun", "Other")):
        found = check(parse_manifests(QUEUES + RUN), configuration=Configuration.parse(text), select=["KC4"])
        assert found == ()
