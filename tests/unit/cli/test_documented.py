"""What the pages say of the command, and what the examples show."""

from __future__ import annotations

import json
import re
import shlex
from math import inf
from pathlib import Path
from typing import Any

import pytest

from kueuecore.cli import ExitCode, main
from kueuecore.cli.commands import command_lines
from kueuecore.cli.exit_codes import exit_code_help
from kueuecore.releases import DEFAULT_RELEASE, Release, releases

ROOT = Path(__file__).parents[3]
# Those that are manifests, and no programs.
EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if path.is_dir() and not [*path.glob("*.py")])
DOCUMENTED = [ROOT / "examples" / name / "README.md" for name in EXAMPLES]


@pytest.mark.parametrize("readme", DOCUMENTED, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_readme_shows_what_the_command_prints(
    readme: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    # A busy machine plays fewer futures in the time that eta takes by default.
    monkeypatch.setattr("kueuecore.cli.commands.eta._BUDGET_SECONDS", inf)
    shown = re.findall(r"^```console\n\$ kueuecore (.*?)\n(.*?)^```$", readme.read_text("utf-8"), re.M | re.S)
    assert shown
    for arguments, output in shown:
        assert main(shlex.split(arguments)) == (ExitCode.FOUND if arguments.startswith("check") else ExitCode.OK)
        assert capsys.readouterr().out == output


def test_every_example_has_a_readme_with_its_output() -> None:
    folders = [path for path in (ROOT / "examples").iterdir() if path.is_dir()]
    assert [path for path in folders if not (path / "README.md").exists()] == []


def test_the_exit_codes_are_documented() -> None:
    documented = (ROOT / "docs" / "cli.md").read_text("utf-8")
    for code in ExitCode:
        meaning = re.sub(r"--fail-on-\w+", r"`\g<0>`", code.meaning)
        assert f"| {code.value} | {meaning} |" in documented


def test_help_and_version_show_what_matters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert Release.named(DEFAULT_RELEASE).commit in shown
    assert {release.name for release in releases()} <= {*re.split(r"[,\s]+", shown)}
    assert main(["run", "--help-all"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "kubectl get" in shown
    assert shown.endswith(f"exit codes:\n{exit_code_help('run')}\n")


@pytest.mark.parametrize("name", command_lines())
def test_help_has_a_short_usage_and_the_exit_codes_of_its_command(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == ExitCode.OK
    usage, *_, last = capsys.readouterr().out.split("\n\n")
    assert usage.startswith(f"usage: kueuecore {name} [OPTION ...]")
    assert len(usage.splitlines()) <= 3
    codes = [int(line.split()[0]) for line in last.splitlines()[1:]]
    assert {0, 2, 70, 74, 130, 141} <= {*codes}
    assert (ExitCode.FOUND in codes) is bool(ExitCode.FOUND.meaning_for(name))
    # What only other commands return is not said.
    assert (ExitCode.UNAVAILABLE in codes) is (name in ("serve", "ui", "mcp"))


def test_what_one_commands_codes_mean_names_no_other_command() -> None:
    assert ExitCode.FOUND.meaning_for("plan") == "no quota meets the target"
    assert ExitCode.FOUND.meaning_for("gates") == ""
    assert ExitCode.OK.meaning_for("run") == "success, even if workloads are pending"
    assert ExitCode.OK.meaning_for("gates") == "success"


def test_gates_lists_the_feature_gates(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gates"]) == ExitCode.OK
    assert re.search(r"^PartialAdmission +on +Beta ", capsys.readouterr().out, re.M)


def statuses(document: Any) -> dict[str, str]:
    return {workload["name"]: workload["status"] for workload in document["workloads"]}


def flavors(document: Any) -> dict[str, set[str]]:
    return {
        workload["name"]: {flavor for pod_set in workload["podSets"] for flavor in pod_set["flavors"].values()}
        for workload in document["workloads"]
    }


def run_example(name: str, capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(["run", "-q", "-o", "json", str(ROOT / "examples" / name)]) == ExitCode.OK
    return json.loads(capsys.readouterr().out)


def test_two_flavors_go_to_the_workloads_that_may_use_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert flavors(run_example("two-flavors", capsys)) == {
        "job-preprocess-e5aef": {"spot"},
        "job-report-210ea": {"on-demand"},
        "job-serve-tests-323b8": set(),
        "job-train-on-amd-cf3f0": {"spot", "amd"},
        "job-train-on-nvidia-32ada": {"on-demand", "nvidia"},
        "simulation": {"on-demand", "spot"},
    }


def test_two_teams_borrow_within_their_limits(capsys: pytest.CaptureFixture[str]) -> None:
    document = run_example("two-teams", capsys)
    pending = {name for name, status in statuses(document).items() if status == "Pending"}
    assert pending == {"job-release-build-5ad41", "everything-at-once", "job-benchmark-86330"}
    usage = {row["name"]: (row["usage"], row["borrowed"], row["available"]) for row in document["quota"]}
    assert usage["team-b"] == ("1400m", "1200m", "300m")


def test_a_queue_without_quota_borrows_all(capsys: pytest.CaptureFixture[str]) -> None:
    document = run_example("zero-quota", capsys)
    assert flavors(document)["job-render-dec68"] == {"east"}
    assert flavors(document)["job-encode-67965"] == {"west"}
    assert statuses(document)["small"] == "Pending"
