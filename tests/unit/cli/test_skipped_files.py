"""Files of a folder that are not meant as Kubernetes objects are skipped with a note; named ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore import read_manifests
from kueuecore.cli import ExitCode, main
from kueuecore.errors import ManifestError
from tests.command import QUEUES, Ran

OTHERS = {
    "Chart.yaml": "apiVersion: v2\nname: queues\nversion: 1.0.0\n",
    "kustomization.yaml": "kind: Kustomization\nresources: [queues.yaml]\n",
    "package.json": '{"name": "site", "name": "page"}',
    "patch.yaml": "- op: replace\n  path: /spec/cohortName\n  value: all\n",
    "teams.yaml": "- name: a\n- name: b\n",
    "text.yml": "no object\n",
    "values.yaml": "kind: DaemonSet\nimage: !tag {x: y}\n",
}
WORDS = {
    "Chart.yaml": "this describes a Helm chart and is not a Kubernetes object; render the chart with `helm template`",
    "kustomization.yaml": "this is a kustomization and not a Kubernetes object; render it with `kubectl kustomize`",
    "package.json": "it has neither apiVersion nor kind, so it is not a Kubernetes object; give Kubernetes objects",
    "patch.yaml": "this is a patch and not a Kubernetes object; render what it changes with `kubectl kustomize`",
    "teams.yaml": "this is a list and not a Kubernetes object; give Kubernetes objects, which start with apiVersion",
    "text.yml": "this is a single value and not a Kubernetes object; give Kubernetes objects, which start with",
    "values.yaml": "these are values of a Helm chart and not a Kubernetes object; render the chart with",
}
NOTE = f"note: skipped what is not a Kubernetes object: {', '.join(f'tree/{name}' for name in sorted(OTHERS))}\n"


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs a command beside the folder `tree`, which has queues and files of other tools."""
    monkeypatch.chdir(tmp_path)
    Path("tree").mkdir()
    for name, text in {**OTHERS, "queues.yaml": QUEUES}.items():
        (Path("tree") / name).write_text(text, encoding="utf-8")
    return lambda *arguments: Ran(main(arguments), *capsys.readouterr())


@pytest.mark.parametrize("command", [("check",), ("check", "-R"), ("run",), ("anonymise",)], ids=" ".join)
def test_files_of_other_tools_in_a_folder_are_skipped_with_one_note(
    command: tuple[str, ...], ran: Callable[..., Ran]
) -> None:
    code, out, err = ran(*command, "tree")
    assert (code, err.count(NOTE), err.count("skipped")) == (ExitCode.OK, 1, 1), err
    assert out
    assert "skipped" not in ran(*command, "tree", "-q").err


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_of_another_tool_is_refused_in_plain_words_if_it_is_named(name: str, ran: Callable[..., Ran]) -> None:
    code, out, err = ran("check", "tree", f"./tree/{name}")
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert f"tree/{name}:1 (document 1): {WORDS[name]}" in err
    assert "kueue.x-k8s.io" not in err
    assert err.endswith("kueuecore: 1 problem, nothing was decided\n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: LocalQueue\nmetadata: {name: a}\n", "apiVersion: Required value; write kueue.x-k8s.io/v1beta2"),
        ("apiVersion: v1\nmetadata: {name: a}\n", "kind: Required value"),
        ("[{apiVersion: v1, kind: Namespace}]", "found a list instead of a Kubernetes object; separate objects"),
        ("{apiVersion: v1, kind: List, items: [{metadata: {name: a}}]}", "items[0].kind: Required value"),
        ("apiVersion: v1\nkind: Pod\nimage: {{ .Values.image }}\n", "helm template"),
    ],
)
def test_what_is_meant_as_an_object_is_an_error_in_a_folder_too(
    text: str, problem: str, ran: Callable[..., Ran]
) -> None:
    (Path("tree") / "broken.yaml").write_text(text, encoding="utf-8")
    code, out, err = ran("check", "tree")
    assert (code, out, problem in err) == (ExitCode.BAD_INPUT, "", True), err


def test_json_with_comments_is_skipped_if_it_can_hold_no_object(ran: Callable[..., Ran]) -> None:
    path = Path("tree/tsconfig.json")
    path.write_text('{"strict": true} // yes\n', encoding="utf-8")
    code, _, err = ran("check", "tree")
    assert (code, "tree/tsconfig.json" in err) == (ExitCode.OK, True), err
    assert ran("check", "tree/tsconfig.json").code == ExitCode.BAD_INPUT
    path.write_text('{"apiVersion": "v1"} // yes\n', encoding="utf-8")
    assert "tree/tsconfig.json:1" in ran("check", "tree").err


def test_reading_a_folder_names_what_it_skips(ran: Callable[..., Ran]) -> None:
    names: list[str] = []
    found = read_manifests("tree", skipped=lambda problem: names.append(Path(problem.file).name))
    assert names == sorted(OTHERS)
    assert [manifest.object["kind"] for manifest in found] == ["ResourceFlavor", "ClusterQueue", "LocalQueue"]
    with pytest.raises(ManifestError, match="this is a patch and not a Kubernetes object"):
        read_manifests("tree/patch.yaml")
