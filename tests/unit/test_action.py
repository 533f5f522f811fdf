"""The GitHub action: its steps, run as GitHub runs them, in clones of a repository with the example's quotas."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import action
from scripts.version_copies import source
from tests.git_repository import LIBRARY, Repository

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "quota-repository"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")
INPUTS = {
    "commands": "check test diff",
    "paths": "manifests",
    "tests": "tests",
    "work": "work",
    "config": "kueue-config.yaml",
    "python-version": "",
    "version": "none",
}
# What `prove` is asked is written down; it answers as GitHub shows it.
KUEUECORE = """\
#!{python}
import json, os, sys
if sys.argv[1:2] == ["prove"]:
    print("::error file=manifests/teams/vision.yaml,line=1,title=kueuecore prove::it loops")
    with open({asked!r}, "w") as file:
        json.dump([*sys.argv[2:], os.environ.get("KUEUECORE_KUEUE")], file)
    sys.exit(1)
from kueuecore.__main__ import main
sys.exit(main())
"""


@dataclass
class Job:
    """What a run of the action has left behind.

    Args:
        codes: The exit code of each step that ran.
        log: What the steps wrote.
        summary: The summary.
        outputs: The outputs of the steps.
    """

    codes: dict[str, int] = field(default_factory=dict)
    log: str = ""
    summary: str = ""
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def is_failed(self) -> bool:
        return any(self.codes.values())

    @property
    def annotations(self) -> list[str]:
        return [line for line in self.log.splitlines() if line.startswith("::")]


@dataclass(frozen=True)
class Runner:
    """Runs the steps of the action.

    Args:
        home: A folder for its files.
    """

    home: Path

    @property
    def asked(self) -> Path:
        """What `prove` was asked."""
        return self.home / "asked.json"

    def run(self, clone: Repository, inputs: Mapping[str, str], **variables: str) -> Job:
        defaults = {name: entry["default"] for name, entry in ACTION["inputs"].items()}
        assert {*inputs} <= {*defaults}
        job, given = Job(), {**defaults, **INPUTS, **inputs}
        files = {name: self.home / name for name in ("summary.md", "outputs")}
        files["summary.md"].write_text("", encoding="utf-8")
        for step in STEPS:
            if "run" not in step or not _is_due(step.get("if", ""), given, job):
                continue
            files["outputs"].write_text("", encoding="utf-8")
            environment = {
                **{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "KUEUECORE_"))},
                "PATH": f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": LIBRARY,
                "GITHUB_ACTION_PATH": str(ROOT),
                "GITHUB_STEP_SUMMARY": str(files["summary.md"]),
                "GITHUB_OUTPUT": str(files["outputs"]),
                **{name: _substituted(value, given, job) for name, value in step.get("env", {}).items()},
                **variables,
            }
            script = self.home / "step.sh"
            script.write_text(_substituted(step["run"], given, job), encoding="utf-8")
            ran = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
                cwd=clone.folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
            )
            name = step.get("id", step["name"].lower())
            job.codes[name] = ran.returncode
            job.log += ran.stdout
            written = (line.partition("=") for line in files["outputs"].read_text("utf-8").splitlines())
            job.outputs[name] = {key: value for key, _, value in written}
        job.summary = files["summary.md"].read_text("utf-8")
        return job


def _value(expression: str, inputs: Mapping[str, str], job: Job) -> str:
    match expression.split("."):
        case ["toJSON(inputs)"]:
            return json.dumps(inputs)
        case ["inputs", name]:
            return inputs[name]
        case ["steps", step, "outcome"]:
            return {None: "skipped", 0: "success"}.get(job.codes.get(step), "failure")
        case ["steps", step, "outputs", name]:
            return job.outputs.get(step, {}).get(name, "")
    raise AssertionError(f"no such expression here: {expression}")


def _substituted(text: str, inputs: Mapping[str, str], job: Job) -> str:
    return EXPRESSION.sub(lambda match: _value(match[1], inputs, job), text)


def _is_due(condition: str, inputs: Mapping[str, str], job: Job) -> bool:
    """Whether GitHub runs a step: without a function of status, only if all before it succeeded."""
    condition = EXPRESSION.sub(r"\1", condition)
    terms = [term.strip() for term in condition.split("&&") if term.strip()]
    if "!cancelled()" not in terms and job.is_failed:
        return False
    for term in terms:
        if term != "!cancelled()":
            name, operator, wanted = re.fullmatch(r"(\S+) (==|!=) '(.*)'", term).groups()  # type: ignore[union-attr]
            if (_value(name, inputs, job) == wanted) is (operator == "!="):
                return False
    return True


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    found = Runner(home)
    (home / "bin/python").symlink_to(sys.executable)
    program = home / "bin/kueuecore"
    program.write_text(KUEUECORE.format(python=sys.executable, asked=str(found.asked)), encoding="utf-8")
    program.chmod(0o755)
    return found


@dataclass(frozen=True)
class Hub:
    """A repository with the example on its branch `main`, and clones of its pull requests.

    Args:
        folder: Where they are.
        origin: The repository.
    """

    folder: Path
    origin: Repository

    def edit(self, edits: Mapping[str, str | None]) -> None:
        for name, text in edits.items():
            if text is None:
                (self.origin.folder / name).unlink()
            else:
                self.origin.write(name, text)

    def pull_request(self, edits: Mapping[str, str | None], *, depth: int = 2) -> Repository:
        """Clone the commit that merges some edits, as actions/checkout does."""
        origin = self.origin
        origin.git("checkout", "--quiet", "-b", "change")
        self.edit(edits)
        origin.commit()
        origin.git("checkout", "--quiet", "main")
        self.edit({"README.md": "# Others went on\n"})
        origin.commit()
        origin.git("checkout", "--quiet", "--detach")
        origin.git("merge", "--quiet", "--no-ff", "change")
        merged = origin.git("rev-parse", "HEAD")
        origin.git("update-ref", "refs/pull/7/merge", merged)
        origin.git("checkout", "--quiet", "main")
        clone = Repository(self.folder / "clone").init()
        clone.git("remote", "add", "origin", origin.folder.as_uri())
        refs = "+refs/pull/7/merge:refs/remotes/pull/7/merge"
        clone.git("fetch", "--quiet", "--no-tags", f"--depth={depth}", "origin", refs)
        clone.git("checkout", "--quiet", "--force", "refs/remotes/pull/7/merge")
        return clone


PULL_REQUEST = {"GITHUB_REF": "refs/pull/7/merge", "GITHUB_BASE_REF": "main", "GITHUB_EVENT_NAME": "pull_request"}


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    origin = Repository(tmp_path / "origin")
    shutil.copytree(EXAMPLE, origin.folder)
    origin.init().commit()
    # As GitHub has it.
    origin.git("config", "uploadpack.allowAnySHA1InWant", "true")
    return Hub(tmp_path, origin)


def less_for_language() -> dict[str, str | None]:
    name = "manifests/teams/language.yaml"
    text = (EXAMPLE / name).read_text("utf-8")
    changed = text.replace("{name: nvidia.com/gpu, nominalQuota: 8}", "{name: nvidia.com/gpu, nominalQuota: 2}")
    assert changed != text
    return {name: changed}


def test_a_pull_request_that_changes_no_decision_passes(hub: Hub, runner: Runner) -> None:
    clone = hub.pull_request({"manifests/note.yaml": "# nothing\n"})
    job = runner.run(clone, {}, **PULL_REQUEST)
    base = hub.origin.git("rev-parse", "main")
    assert job.codes == {"plan": 0, "install": 0, "base": 0, "check": 0, "test": 0, "diff": 0}
    assert job.outputs["base"] == {"base": base}
    change = f"decisions about 0 of 3 workloads change against {base[:10]}"
    assert job.annotations == [f"::notice title=kueuecore diff::{change}"]
    assert re.findall("^### (.*)$", job.summary, re.MULTILINE) == [
        "kueuecore check: nothing found",
        "kueuecore test: 2 passed",
        "kueuecore diff: decisions about 0 of 3 workloads change",
    ]


def test_a_pull_request_that_breaks_a_promise_fails(hub: Hub, runner: Runner) -> None:
    job = runner.run(hub.pull_request(less_for_language()), {}, **PULL_REQUEST)
    assert {name: code for name, code in job.codes.items() if code} == {"test": 1}
    failure = next(line for line in job.annotations if line.startswith("::error"))
    assert failure.startswith(
        "::error file=tests/sharing_test.yaml,line=21,title=a team always gets its own GPUs::language/fine-tune%0A"
    )
    assert "**a team always gets its own GPUs** in `tests/sharing_test.yaml`" in job.summary
    assert "### kueuecore diff: decisions about 1 of 3 workloads change" in job.summary
    row = next(line for line in job.summary.splitlines() if line.startswith("| `vision/job-train-"))
    assert "Admitted in vision (a100) | Pending: couldn't assign flavors" in row


def test_a_difference_may_fail(hub: Hub, runner: Runner) -> None:
    inputs = {"commands": "diff", "fail-on-difference": "true"}
    assert runner.run(hub.pull_request(less_for_language()), inputs, **PULL_REQUEST).codes["diff"] == 1


def test_a_finding_fails_and_the_other_commands_still_run(hub: Hub, runner: Runner) -> None:
    unused = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: h100}}\n"
    clone = hub.pull_request({"manifests/more.yaml": unused})
    job = runner.run(clone, {}, **PULL_REQUEST)
    assert job.codes == {"plan": 0, "install": 0, "base": 0, "check": 1, "test": 0, "diff": 0}
    assert job.annotations[0].startswith("::warning file=manifests/more.yaml,line=1,title=KC101 unused-flavor::")
    assert "| warning | KC101 unused-flavor | `ResourceFlavor/h100` | `manifests/more.yaml:1` |" in job.summary
    assert not runner.run(clone, {"fail-on": "error"}, **PULL_REQUEST).is_failed


def test_a_manifest_that_cannot_be_read_is_annotated(hub: Hub, runner: Runner) -> None:
    job = runner.run(hub.pull_request({"manifests/teams/vision.yaml": "kind: [\n"}), {}, **PULL_REQUEST)
    assert {name: job.codes[name] for name in ("check", "test", "diff")} == {"check": 2, "test": 2, "diff": 2}
    places = {line.partition(",title")[0] for line in job.annotations}
    assert places == {
        "::error file=manifests/teams/vision.yaml,line=2",
    }
    assert job.summary.count("1 problem, nothing was decided") == 3


@pytest.mark.parametrize("depth", [1, 2])
def test_the_base_is_what_the_pull_request_is_merged_into(hub: Hub, runner: Runner, depth: int) -> None:
    clone = hub.pull_request(less_for_language(), depth=depth)
    base = hub.origin.git("rev-parse", "main")
    # Later commits of the branch are not part of the comparison.
    hub.edit({"manifests/teams/vision.yaml": None})
    hub.origin.commit()
    job = runner.run(clone, {"commands": "diff"}, **PULL_REQUEST)
    assert job.outputs["base"] == {"base": base}
    assert "decisions about 1 of 3 workloads change" in job.summary


def test_a_base_of_your_own_is_fetched(hub: Hub, runner: Runner) -> None:
    clone = hub.pull_request(less_for_language(), depth=1)
    job = runner.run(clone, {"commands": "diff", "base": "change"}, **PULL_REQUEST)
    assert job.outputs["base"] == {"base": hub.origin.git("rev-parse", "change")}
    assert "decisions about 0 of 3 workloads change" in job.summary


def test_without_a_base_nothing_is_compared(hub: Hub, runner: Runner) -> None:
    job = runner.run(hub.pull_request({"a": ""}), {"commands": "diff"}, GITHUB_REF="refs/heads/main")
    assert job.codes == {"plan": 0, "install": 0, "base": 0}
    assert job.annotations == [
        "::notice title=kueuecore::there is nothing to compare with: this is no pull request, and base is empty"
    ]


@pytest.mark.parametrize("base", ["nowhere", "--upload-pack=touch${IFS}x", "a b", "main:refs/heads/x:y", "0" * 40])
def test_a_base_that_is_not_there(hub: Hub, runner: Runner, base: str) -> None:
    clone = hub.pull_request({"a": ""})
    job = runner.run(clone, {"commands": "check diff", "base": base}, **PULL_REQUEST)
    assert job.codes == {"plan": 0, "install": 0, "base": 2, "check": 0}
    assert job.annotations[0].startswith(f"::error title=kueuecore::input base: there is no commit {base!r}")
    assert not [*clone.folder.rglob("x")]


HOSTILE = ["$(touch pwned)", "`touch pwned`", "; touch pwned; #", "' touch pwned '", '" && touch pwned "', "a b", "-R"]


@pytest.mark.parametrize("name", ["-R $(touch pwned) `touch pwned` 'a", '"; touch pwned; # && {a,b} *?[x]'])
def test_any_name_of_a_path_is_only_a_name(hub: Hub, runner: Runner, name: str) -> None:
    files = {str(file.relative_to(EXAMPLE)): file.read_text("utf-8") for file in EXAMPLE.rglob("*.yaml")}
    clone = hub.pull_request({f"{name}/{path}": text for path, text in files.items() if not path.startswith(".")})
    inputs = {
        "paths": f"{name}/manifests",
        "tests": f"{name}/tests",
        "work": f"\n  {name}/work\n",
        "config": f"./{name}/kueue-config.yaml",
    }
    job = runner.run(clone, inputs, **PULL_REQUEST)
    assert not job.is_failed, job.log
    assert "kueuecore test: 2 passed" in job.summary
    assert "decisions about 3 of 3 workloads change" in job.summary
    assert not (clone.folder / "pwned").exists()


@pytest.mark.parametrize("name", ["commands", "fail-on", "fail-under", "version", "recursive"])
def test_any_value_of_an_input_is_only_a_value(runner: Runner, tmp_path: Path, name: str) -> None:
    for value in (*HOSTILE, "${{ github.token }}", "a\nb", "%0A::error::x"):
        job = runner.run(Repository(tmp_path), {name: value}, **PULL_REQUEST)
        assert job.codes == {"plan": 2}
        (line,) = job.annotations
        assert line.startswith(f"::error title=kueuecore::input {name}: ")
    assert not (tmp_path / "pwned").exists()


def test_the_name_of_a_file_is_no_command_of_github(hub: Hub, runner: Runner) -> None:
    name = "manifests/::add-mask::x.yaml"
    job = runner.run(hub.pull_request({name: "kind: [\n"}), {"commands": "check"}, **PULL_REQUEST)
    assert [line.partition(",line")[0] for line in job.annotations] == [
        "::error file=manifests/%3A%3Aadd-mask%3A%3Ax.yaml"
    ]
    # A warning begins with the name of its file.
    assert action._harmless("::add-mask::x") == "kueuecore: ::add-mask::x"
    assert action._harmless(" \t::stop-commands::x") == "kueuecore:  \t::stop-commands::x"
    assert action._harmless("a ##[group]x") == "a ## [group]x"
    assert action._harmless("a::b") == "a::b"


def test_prove_is_asked_about_manifests_and_work(hub: Hub, runner: Runner) -> None:
    inputs = {"commands": "prove", "budget": "5s", "save": "found", "kueue-version": "0.19"}
    job = runner.run(hub.pull_request({"a": ""}), inputs, **PULL_REQUEST)
    assert job.codes == {"plan": 0, "install": 0, "prove": 1}
    assert job.annotations == ["::error file=manifests/teams/vision.yaml,line=1,title=kueuecore prove::it loops"]
    summary = f"--summary={runner.home / 'summary.md'}"
    assert json.loads(runner.asked.read_text("utf-8")) == [
        *["manifests", "work", "-R", "--config=kueue-config.yaml", "--budget=5s", "--save=found"],
        *["-o", "github", summary, "0.19"],
    ]


def test_an_upgrade_is_annotated_and_summarised(hub: Hub, runner: Runner) -> None:
    inputs = {"commands": "upgrade", "kueue-version": "0.17", "to": "0.18", "config": ""}
    job = runner.run(hub.pull_request({"a": ""}), inputs, **PULL_REQUEST)
    assert job.codes == {"plan": 0, "install": 0, "upgrade": 0}
    (line,) = job.annotations
    assert line.startswith("::notice title=kueuecore upgrade::Nothing changes: Kueue v0.17.8 and Kueue v0.18.6 ")
    assert job.summary.startswith("### kueuecore upgrade: Nothing changes: Kueue v0.17.8 ")


def test_the_release_of_kueue_is_one_that_is_known(hub: Hub, runner: Runner) -> None:
    clone = Repository(hub.origin.folder)
    assert not runner.run(clone, {"commands": "check", "kueue-version": "0.18"}).is_failed
    job = runner.run(clone, {"commands": "check", "kueue-version": "0.1"})
    assert job.codes["check"] == 2
    assert "KUEUECORE_KUEUE" in job.annotations[0]


def test_coverage_is_asked_for(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def ask(*arguments: str, inputs: action.Inputs) -> int:
        asked.append(arguments)
        return 0

    monkeypatch.setattr(action, "_kueuecore", ask)
    for inputs in ({}, {"coverage": "true"}, {"fail-under": "85.5"}):
        assert action._STEPS["test"](action.Inputs({"tests": "a\n\n b c \n", **inputs})) == 0
    assert asked == [
        ("test", "a", "b c"),
        ("test", "a", "b c", "--coverage"),
        ("test", "a", "b c", "--coverage", "--fail-under", "85.5"),
    ]


@pytest.mark.parametrize(
    ("version", "requirement"),
    [("", f"kueuecore=={source()}"), ("0.2.0rc1", "kueuecore==0.2.0rc1"), ("latest", "kueuecore"), ("none", "")],
)
def test_the_version_that_is_installed(monkeypatch: pytest.MonkeyPatch, version: str, requirement: str) -> None:
    ran: list[list[str]] = []

    def run(command: list[str]) -> int:
        ran.append(command)
        return 0

    monkeypatch.setattr(action, "_run", run)
    assert action._STEPS["install"](action.Inputs({"version": version})) == 0
    assert [command[-1] for command in ran] == ([requirement] if requirement else [])
    assert all(command[:4] == [sys.executable, "-m", "pip", "install"] for command in ran)


@pytest.mark.parametrize(
    ("inputs", "what"),
    [
        ({"commands": ""}, "commands: it is empty"),
        (
            {"commands": "check chek"},
            "commands: there is no command 'chek'; name any of check, test, diff, ",
        ),
        ({"paths": "\n \n"}, "paths: it is empty; name files or directories, one per line"),
        ({"commands": "test", "tests": ""}, "tests: it is empty"),
        ({"coverage": "yes"}, "coverage: 'yes' is neither true nor false"),
        ({"fail-under": "-1"}, "fail-under: '-1' is no percentage"),
        ({"fail-under": "100.5"}, "fail-under: '100.5' is no percentage"),
        ({"paths": "manifests\0"}, "paths: it has a NUL in it; remove it"),
        ({"version": "git+https://example.com/x"}, "version: 'git+https://example.com/x' is no version"),
    ],
)
def test_wrong_inputs_are_annotated(runner: Runner, tmp_path: Path, inputs: dict[str, str], what: str) -> None:
    job = runner.run(Repository(tmp_path), inputs)
    assert job.codes == {"plan": 2}
    assert job.annotations[0].startswith(f"::error title=kueuecore::input {what}")


def test_no_script_has_an_expression_in_it() -> None:
    scripts = [step for step in STEPS if "run" in step]
    assert len(scripts) == 8
    for step in scripts:
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
        assert {*EXPRESSION.findall(" ".join(step["env"].values()))} <= {"toJSON(inputs)", "steps.base.outputs.base"}


def test_every_input_is_read_and_has_a_default() -> None:
    text = (ROOT / "action.yml").read_text("utf-8") + (ROOT / "scripts/action.py").read_text("utf-8")
    for name, entry in ACTION["inputs"].items():
        assert {*entry} == {"description", "default"}
        assert isinstance(entry["default"], str)
        assert f'"{name}"' in text or f"'{name}'" in text or f"inputs.{name}" in text, name


def test_the_step_needs_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert action.main([]) == action.main(["nothing"]) == 2
    assert capsys.readouterr().err.startswith("usage: action.py plan | install | base | check | ")


@pytest.mark.parametrize("texts", [None, "", "inputs", "[]", '{"commands": 3}'])
def test_inputs_are_a_json_object_of_texts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, texts: str | None
) -> None:
    monkeypatch.delenv("INPUTS", raising=False)
    if texts is not None:
        monkeypatch.setenv("INPUTS", texts)
    assert action.main(["plan"]) == 2
    assert capsys.readouterr().err.endswith("with a JSON object of texts in INPUTS\n")
