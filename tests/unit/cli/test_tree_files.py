"""Directories with Helm charts and kustomizations: their templates and patches look like objects, and are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore import read_manifests
from kueuecore.cli import ExitCode, main
from kueuecore.errors import Problem
from tests.command import QUEUES, Ran

TEMPLATE = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {{ .Values.name }}\n"
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec: {parallelism: 2%s}
"""
WHOLE = JOB % ", template: {spec: {restartPolicy: Never, containers: [{name: c}]}}"
PATCH = JOB % ""
FILES = {
    "queues.yaml": QUEUES,
    "charts/team/Chart.yaml": "{apiVersion: v2, name: team, version: 0.1.0}",
    "charts/team/templates/team.yaml": TEMPLATE,
    "charts/team/templates/deep/er.yml": TEMPLATE,
    "jobs/base/job.yaml": WHOLE,
    "jobs/base/kustomization.yaml": "resources: [job.yaml]",
    "jobs/all/kustomization.yml": """
        apiVersion: kustomize.config.k8s.io/v1beta1
        kind: Kustomization
        resources: [../base]
        patches: [{path: wide.yaml}, {target: {kind: Job}, patch: '[{op: remove, path: /spec/suspend}]'}]
        patchesJson6902: [{path: ../patches/six.json}]
        patchesStrategicMerge: [../patches/merge.yaml, "kind: Job\\nmetadata: {name: j}"]
        """,
    "jobs/all/wide.yaml": PATCH,
    "jobs/patches/six.json": PATCH.replace("name: j", "name: six"),
    "jobs/patches/merge.yaml": PATCH.replace("name: j", "name: merge"),
}
READ = {"queues.yaml", "jobs/base/job.yaml"}


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs a command beside the folder `tree`."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        file = Path("tree") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return lambda *arguments: Ran(main(arguments), *capsys.readouterr())


@pytest.mark.usefixtures("ran")
def test_only_objects_are_read() -> None:
    skipped: list[Problem] = []
    found = read_manifests("tree", recursive=True, skipped=skipped.append)
    assert {manifest.source.file for manifest in found} == {f"tree/{name}" for name in READ}
    assert {problem.file for problem in skipped} == {f"tree/{name}" for name in FILES.keys() - READ}
    words = {problem.message.partition(" and ")[0] for problem in skipped}
    assert words == {
        "this describes a Helm chart",
        "this is a template of a Helm chart",
        "this is a kustomization",
        "this is a patch",
    }


def test_commands_take_such_a_tree(ran: Callable[..., Ran]) -> None:
    code, out, err = ran("run", "-R", "tree")
    assert (code, err.count("note: skipped what is not a Kubernetes object: ")) == (ExitCode.OK, 1), err
    assert out.startswith("0 workloads")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["tree/charts/team/templates"], "render it first, for example with `helm template`"),
        (["-R", "tree", "tree/charts/team/templates/team.yaml"], "render it first, for example with `helm template`"),
        (["tree/jobs/patches"], 'Job "default/merge": spec.template.spec.containers: Required value'),
        (["tree/jobs/all/wide.yaml"], 'Job "default/j": spec.template.spec.containers: Required value'),
    ],
)
def test_what_is_named_is_not_skipped(arguments: list[str], problem: str, ran: Callable[..., Ran]) -> None:
    code, _, err = ran("check", *arguments)
    assert (code, problem in err) == (ExitCode.BAD_INPUT, True), err


def test_a_kustomization_that_cannot_be_read_names_no_patches(ran: Callable[..., Ran]) -> None:
    Path("tree/jobs/all/kustomization.yml").write_text("patches: [", encoding="utf-8")
    code, _, err = ran("check", "-R", "tree")
    assert (code, "tree/jobs/all/kustomization.yml:2" in err) == (ExitCode.BAD_INPUT, True), err
