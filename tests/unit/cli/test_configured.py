"""A Configuration among the objects of a command is used, unless `--config` names another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from tests.command import QUEUES

CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: kueue-system}
data:
  controller_manager_config.yaml: |
    apiVersion: config.kueue.x-k8s.io/v1beta2
    kind: Configuration
    integrations: {frameworks: [pod]}
"""
ALL_JOBS = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}\n"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: kueue-controller-manager, namespace: kueue-system}
spec:
  selector: {}
  template: {spec: {containers: [{name: manager, args: [--feature-gates=PartialAdmission=false]}]}}
"""
# Three pods of two cpus: as many as fit, if partial admission is on.
JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: many
  namespace: team
  labels: {kueue.x-k8s.io/queue-name: lq}
  annotations: {kueue.x-k8s.io/job-min-parallelism: "1"}
spec:
  parallelism: 3
  completions: 3
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, resources: {requests: {cpu: 1}}}]
"""
NOTE = (
    'note: Kueue\'s Configuration is that of ConfigMap "kueue-system/settings" (kueue.yaml:2 (document 1)); '
    "--config replaces it\n"
)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = {"queues.yaml": QUEUES, "kueue.yaml": CONFIG_MAP, "all.yaml": ALL_JOBS, "job.yaml": JOB}
    for name, text in {**files, "manager.yaml": DEPLOYMENT}.items():
        Path(name).write_text(text, encoding="utf-8")


def workloads(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[str], str]:
    """The statuses of workloads after a run, and what it says on standard error."""
    assert main(["run", "queues.yaml", "job.yaml", *arguments, "-o", "json"]) == ExitCode.OK
    out, err = capsys.readouterr()
    return [workload["status"] for workload in json.loads(out)["workloads"]], err


def test_a_configuration_among_the_objects_is_used_with_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    statuses, err = workloads(capsys, "kueue.yaml")
    # Jobs are not managed by it.
    assert (statuses, NOTE in err, "not read" in err) == ([], True, False)


def test_the_option_goes_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    statuses, err = workloads(capsys, "kueue.yaml", "--config", "all.yaml")
    assert (statuses, "Kueue's Configuration is" in err) == (["Admitted"], False)


def test_of_several_different_ones_none_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    statuses, err = workloads(capsys, "kueue.yaml", "all.yaml")
    assert statuses == ["Admitted"]
    assert (
        'warning: the objects have several Configurations, so none is used: ConfigMap "kueue-system/settings" '
        "(kueue.yaml:2 (document 1)), Configuration (all.yaml:1 (document 1)); choose with --config\n"
    ) in err


def test_gates_of_a_deployment_are_used_and_the_option_goes_before_them(capsys: pytest.CaptureFixture[str]) -> None:
    statuses, err = workloads(capsys, "manager.yaml")
    assert statuses == ["Pending"]
    assert (
        'note: feature gates of Deployment "kueue-system/kueue-controller-manager" (manager.yaml:2 (document 1)) '
        "are used: PartialAdmission=false\n"
    ) in err
    assert workloads(capsys, "manager.yaml", "--feature-gates", "PartialAdmission=true")[0] == ["Admitted"]
    # As Kueue's command line reads it.
    assert workloads(capsys, "manager.yaml", "--feature-gates", "PartialAdmission=1")[0] == ["Admitted"]


def test_one_that_kueue_would_refuse_is_not_used_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    Path("kueue.yaml").write_text(CONFIG_MAP.replace("[pod]", "[kubeflow.org/mxjob]"), encoding="utf-8")
    statuses, err = workloads(capsys, "kueue.yaml")
    assert statuses == ["Admitted"]
    assert err.startswith(
        'warning: ConfigMap "kueue-system/settings" (kueue.yaml:2 (document 1)) has a Configuration that Kueue refuses,'
        " so it is not used: kueue.yaml, data[controller_manager_config.yaml]:3 (document 1): "
    )
    # Named as the Configuration, it is an error.
    assert main(["run", "queues.yaml", "--config", "kueue.yaml"]) == ExitCode.BAD_INPUT


def test_gates_of_another_release_are_left_out_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    gates = "PartialAdmission=false,LendingLimit=true,Unheard=true"
    text = DEPLOYMENT.replace("--feature-gates=PartialAdmission=false", f'"--feature-gates={gates}"')
    Path("manager.yaml").write_text(text, encoding="utf-8")
    statuses, err = workloads(capsys, "manager.yaml")
    assert statuses == ["Pending"]
    place = 'Deployment "kueue-system/kueue-controller-manager" (manager.yaml:2 (document 1))'
    assert f"warning: the feature gate LendingLimit of {place} is not used: Kueue 0.19 removed it; leave it out" in err
    assert f"warning: the feature gate Unheard of {place} is not used: this release has no such gate" in err


def test_gates_that_do_not_go_together_are_left_out_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    text = DEPLOYMENT.replace("PartialAdmission", "TopologyAwareScheduling")
    Path("manager.yaml").write_text(text, encoding="utf-8")
    statuses, err = workloads(capsys, "manager.yaml")
    assert statuses == ["Admitted"]
    assert 'warning: the feature gates of Deployment "kueue-system/kueue-controller-manager" (manager.yaml:2' in err
    assert "TASFailedNodeReplacement is enabled, but depends on" in err


def test_gates_of_the_option_replace_those_in_the_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    Path("all.yaml").write_text(ALL_JOBS.replace("}", ", featureGates: {PartialAdmission: false}}"), encoding="utf-8")
    assert workloads(capsys, "all.yaml")[0] == ["Pending"]
    assert workloads(capsys, "all.yaml", "--feature-gates", "PartialAdmission=true")[0] == ["Admitted"]


def test_findings_about_it_name_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    excluded = CONFIG_MAP.replace("integrations: {frameworks: [pod]}", "resources: {excludeResourcePrefixes: [cpu]}")
    Path("kueue.yaml").write_text(excluded, encoding="utf-8")
    assert main(["check", "queues.yaml", "kueue.yaml"]) == ExitCode.FOUND
    assert capsys.readouterr().out.startswith("kueue.yaml:6 (document 1): warning KC701 ")


@pytest.mark.parametrize("command", ["check", "eta", "anonymise"])
def test_other_commands_use_it_too(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("state.yaml").write_text(f"{QUEUES}---{CONFIG_MAP}", encoding="utf-8")
    assert main([command, "state.yaml"]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert "note: Kueue's Configuration is that of ConfigMap" in err
    if command == "anonymise":
        # The dump lacks the ConfigMap.
        assert out.startswith("# kueuecore run --now 1970-01-01T00:00:00Z --config FILE\n")
