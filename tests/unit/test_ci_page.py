"""docs/in-ci.md, the repository that it walks through, and the hooks of pre-commit."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueuecore.cli import main
from kueuecore.cli.commands import parsed
from tests.git_repository import LIBRARY, Repository

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/in-ci.md").read_text("utf-8")
EXAMPLE = ROOT / "examples/quota-repository"
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]["version"]
ALL = ["-R", "manifests", "--config", "kueue-config.yaml"]


def texts(language: str) -> list[str]:
    """The blocks of the page in a language."""
    blocks = re.finditer(rf"^(`{{3,}}){language}\n(.*?)^\1$", PAGE, re.MULTILINE | re.DOTALL)
    return [block[2] for block in blocks]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """The example in a repository, which is the current directory; nothing has changed yet."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    found = Repository(tmp_path / "quotas")
    shutil.copytree(EXAMPLE, found.folder)
    found.init().commit()
    monkeypatch.chdir(found.folder)
    return found


@pytest.fixture
def changed(repository: Repository) -> Repository:
    """With the change of the page: team language has 2 GPUs."""
    file = repository.folder / "manifests/teams/language.yaml"
    text = file.read_text("utf-8")
    file.write_text(text.replace("gpu, nominalQuota: 8}", "gpu, nominalQuota: 2}"), encoding="utf-8")
    return repository


@pytest.mark.parametrize("name", [".github/workflows/quota.yml", ".pre-commit-config.yaml", ".gitlab-ci.yml"])
def test_the_page_shows_the_files_of_the_example(name: str) -> None:
    assert (EXAMPLE / name).read_text("utf-8") in texts("yaml")
    assert f"`{name}`" in PAGE


def test_the_page_lists_the_files_of_the_example() -> None:
    listed = [line.split()[0] for line in texts("text")[0].splitlines()]
    files = {str(file.relative_to(EXAMPLE)) for file in EXAMPLE.rglob("*") if file.is_file()}
    assert {*listed} == files - {"README.md"}


def test_the_page_shows_what_a_pull_request_gets(changed: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    output = ["-o", "github", "--summary", "../summary.md"]
    main(["check", *ALL, "work", *output])
    main(["test", "tests", *output])
    main(["diff", *ALL, "--work", "work", "--against", "main", *output])
    assert texts("text")[1] == capsys.readouterr().out
    summary = (changed.folder.parent / "summary.md").read_text("utf-8")
    assert texts("markdown") == [summary.rstrip() + "\n"]


def test_the_page_shows_what_changes(changed: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    (command,) = texts("sh")
    assert main(shlex.split(command)[1:]) == 0
    assert texts("text")[-1] == capsys.readouterr().out


def test_the_page_has_every_input_of_the_action() -> None:
    inputs: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"]
    table = PAGE.partition("| input | what | default |")[2].partition("\n\n")[0]
    rows = [row.split(" | ") for row in table.splitlines()[2:]]
    named = [name for row in rows for name in re.findall("`([a-z-]+)`", row[0])]
    assert named == list(inputs)
    for row in rows:
        for name in re.findall("`([a-z-]+)`", row[0]):
            default = inputs[name]["default"]
            assert not default or f"`{default}`" in row[2]


def test_the_workflow_gives_inputs_that_there_are() -> None:
    workflow = yaml.safe_load((EXAMPLE / ".github/workflows/quota.yml").read_text("utf-8"))
    inputs = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"]
    *_, step = workflow["jobs"]["kueuecore"]["steps"]
    assert step["uses"] == f"kueuecore/kueuecore@v{VERSION}"
    assert {*step["with"]} <= {*inputs}


def test_every_example_names_the_version_of_the_next_release() -> None:
    files = [ROOT / "docs/in-ci.md", *(EXAMPLE / name for name in (".gitlab-ci.yml", ".pre-commit-config.yaml"))]
    for file in files:
        named = re.findall(r"(?:kueuecore==|rev: v|kueuecore@v)([\w.]+)", file.read_text("utf-8"))
        assert named
        assert {*named} == {VERSION}


# The hooks.


def test_the_hooks_have_the_form_that_pre_commit_wants() -> None:
    assert [hook["id"] for hook in HOOKS] == ["kueuecore-check", "kueuecore-test", "kueuecore-prove"]
    for hook in HOOKS:
        assert {*hook} - {"stages"} == {
            *["id", "name", "description", "entry", "args", "language", "files", "pass_filenames"]
        }
        assert hook["entry"] == hook["name"] == hook["id"].replace("-", " ")
        assert hook["language"] == "python"
        # One process that reads all: several would not know each other's files.
        assert hook["pass_filenames"] is False
        assert all(isinstance(argument, str) for argument in hook["args"])
        assert hook.get("stages", []) == (["pre-push", "manual"] if hook["id"] == "kueuecore-prove" else [])
        pattern = re.compile(hook["files"])
        for name, is_manifest in {
            "a/q.yaml": 1,
            "q.yml": 1,
            "q.json": 1,
            "README.md": 0,
            "yaml": 0,
            "a.yaml.py": 0,
        }.items():
            assert bool(pattern.search(name)) is bool(is_manifest)


def test_pre_commit_takes_the_hooks() -> None:
    clientlib = pytest.importorskip("pre_commit.clientlib", reason="needs pre-commit")
    assert len(clientlib.load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))) == 3
    assert clientlib.load_config(str(EXAMPLE / ".pre-commit-config.yaml"))


def hooks_of_the_example() -> list[list[str]]:
    config = yaml.safe_load((EXAMPLE / ".pre-commit-config.yaml").read_text("utf-8"))
    (local,) = config["repos"]
    assert [hook["id"] for hook in local["hooks"]] == [hook["id"] for hook in HOOKS]
    assert all(hook["additional_dependencies"] == [f"kueuecore=={VERSION}"] for hook in local["hooks"])
    assert all(hook["pass_filenames"] is False for hook in local["hooks"])
    return [shlex.split(hook["entry"]) for hook in local["hooks"]]


ENTRIES = [*[[*hook["entry"].split(), *hook["args"]] for hook in HOOKS], *hooks_of_the_example()]


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("entry", dict.fromkeys(map(tuple, ENTRIES)), ids=" ".join)
def test_a_hook_passes_in_the_example(entry: tuple[str, ...]) -> None:
    program, command, *_ = entry
    assert program == "kueuecore"
    # A search takes its time.
    assert parsed(entry[1:]) if command == "prove" else main(entry[1:]) == 0


def test_a_hook_knows_the_files_that_have_not_changed(changed: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    file = changed.folder / "manifests/teams/language.yaml"
    file.write_text(file.read_text("utf-8").replace("clusterQueue: language", "clusterQueue: vision"), encoding="utf-8")
    check, *_ = hooks_of_the_example()
    assert main(check[1:]) == 1
    said = capsys.readouterr().out
    # The queue of another file is there; its own is not reached any more, and lies in a namespace of another team.
    assert "missing-cluster-queue" not in said
    assert "KC402 unreachable-cluster-queue" in said
    assert "KC405 excluded-namespace" in said


# GitLab.


@pytest.fixture
def gitlab(changed: Repository, tmp_path: Path) -> Callable[[], subprocess.CompletedProcess[str]]:
    """Runs the script of the example, with the commit before as the base of the merge request."""
    base = changed.git("rev-parse", "HEAD")
    changed.commit()
    changed.git("remote", "add", "origin", changed.folder.as_uri())
    changed.git("config", "uploadpack.allowAnySHA1InWant", "true")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, script in {"pip": ":", "kueuecore": f'exec "{sys.executable}" -m kueuecore "$@"'}.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    job = yaml.safe_load((EXAMPLE / ".gitlab-ci.yml").read_text("utf-8"))["quota"]
    # A search of a second is enough to see that it runs.
    script = "\n".join(job["script"]).replace("--budget 60s", "--budget 1s")
    variables = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "CI_MERGE_REQUEST_DIFF_BASE_SHA": base}
    variables["PYTHONPATH"] = LIBRARY
    variables |= {name: str(value) for name, value in job["variables"].items()}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script], env={**os.environ, **variables}, capture_output=True, text=True
        )

    return run


def test_gitlab_shows_the_same(gitlab: Callable[[], subprocess.CompletedProcess[str]]) -> None:
    ran = gitlab()
    assert ran.returncode == 1, ran.stderr
    assert Path("summary.md").read_text("utf-8").count("### kueuecore ") == 4
    assert "decisions about 1 of 3 workloads change" in Path("summary.md").read_text("utf-8")
    assert Path("junit.xml").read_text("utf-8").count("<failure ") == 2


def test_gitlab_passes_if_nothing_is_wrong(
    repository: Repository, gitlab: Callable[[], subprocess.CompletedProcess[str]]
) -> None:
    repository.git("checkout", "--quiet", "HEAD~", "--", "manifests")
    ran = gitlab()
    assert ran.returncode == 0, ran.stdout + ran.stderr
