"""What publishes: the workflow, the table of extras, bills of materials, and the rule of what `make dist` returns."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import dist
from scripts.extra_uses import USES
from scripts.extras import declared
from scripts.extras import main as check_extras
from scripts.sboms import of_wheel, write_sboms

ROOT = Path(__file__).parents[2]
WORKFLOW = (ROOT / ".github/workflows/wheels.yml").read_text("utf-8")
JOBS: dict[str, dict[str, Any]] = yaml.safe_load(WORKFLOW)["jobs"]


def uses(job: str) -> list[str]:
    return [step["uses"].partition("@")[0] for step in JOBS[job]["steps"] if "uses" in step]


def before(job: str) -> set[str]:
    """The jobs that have to succeed first, directly or not."""
    needs = {*JOBS[job].get("needs", [])}
    return needs.union(*(before(name) for name in needs))


def test_every_extra_has_a_use_and_nothing_else_has() -> None:
    assert declared() == USES.keys()


def test_the_page_of_pypi_links_to_what_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / project["readme"]).read_text("utf-8"))
    assert [link for link in links if not link.startswith("https://")] == []
    source = project["urls"]["Source"] + "/blob/main/"
    own = [link.removeprefix(source) for link in links if link.startswith(source)]
    assert own
    assert [path for path in own if not (ROOT / path).is_file()] == []


def test_the_example_on_the_page_of_pypi_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "python/README.md").read_text("utf-8"), re.S)
    example = ROOT / "examples/two-teams"
    documents = [(example / name).read_text("utf-8") for name in ("queues.yaml", "workloads.yaml")]
    for name in ("team-a", "team-b"):
        metadata = {"name": name, "labels": {"kubernetes.io/metadata.name": name}}
        documents.append(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
    (tmp_path / "state.json").write_text("\n---\n".join(documents), "utf-8")
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "is admitted to" in run.stdout
    assert "waits: couldn't assign flavors" in run.stdout


def test_an_unknown_extra_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        check_extras(["dist/any.whl", "ui", "arow"])
    assert "error: arow: not both in pyproject.toml and in USES" in capsys.readouterr().err


def test_nothing_is_published_before_all_of_it_was_built_and_checked() -> None:
    assert before("publish") == {"linux", "others", "sdist", "apiserver", "check", "image"}
    for job in ("publish", "images", "release"):
        assert JOBS[job]["if"] == "startsWith(github.ref, 'refs/tags/v')"
        assert job == "publish" or "publish" in before(job)


def test_it_is_published_by_identity_and_signed() -> None:
    assert "secrets." not in WORKFLOW
    assert JOBS["publish"]["permissions"] == {"id-token": "write"}
    assert JOBS["publish"]["environment"] == "release"
    assert "pypa/gh-action-pypi-publish" in uses("publish")
    assert {job for job in JOBS if "actions/attest" in uses(job)} == {"images", "release"}


def test_no_other_job_may_write_to_what_it_does_not_publish() -> None:
    assert yaml.safe_load(WORKFLOW)["permissions"] == {"contents": "read"}
    rights = {
        job: {name for name, right in it.get("permissions", {}).items() if right == "write"} for job, it in JOBS.items()
    }
    assert {job: names for job, names in rights.items() if names} == {
        "image": {"packages"},
        "publish": {"id-token"},
        "images": {"attestations", "id-token", "packages"},
        "release": {"attestations", "contents", "id-token"},
    }


def test_both_workflows_pin_actions_in_one_way() -> None:
    text = WORKFLOW + (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
    pins: dict[str, set[str]] = {}
    for name, pin in re.findall(r"uses: (\S+)@(\S+)", text):
        pins.setdefault(name, set()).add(pin)
    assert {name for name, found in pins.items() if len(found) > 1} == set()
    assert all(re.fullmatch(r"(release/)?v\d+", pin) for found in pins.values() for pin in found)


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dist.Report:
    monkeypatch.setattr(dist, "DIST", tmp_path)
    (tmp_path / "kueuecore-1.tar.gz").write_bytes(b"0" * 1_230_000)
    return dist.Report()


def fails() -> None:
    raise subprocess.CalledProcessError(3, ["maturin", "build"])


def test_all_built_and_passed_is_0(report: dist.Report, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.step("wheel", lambda: None)
    assert report.exit_code() == 0
    assert "    1.23 MB  kueuecore-1.tar.gz\n" in capsys.readouterr().out


def test_a_target_that_was_left_out_is_75_and_named_with_its_remedy(
    report: dist.Report, capsys: pytest.CaptureFixture[str]
) -> None:
    report.step("wheel", lambda: None)
    report.leave_out("aarch64-unknown-linux-gnu")
    assert report.exit_code() == 75
    out = capsys.readouterr().out
    assert out.endswith("library is not here: rustup target add aarch64-unknown-linux-gnu\n")
    assert "left out: the wheel for aarch64-unknown-linux-gnu" in out


def test_a_failure_is_1_whatever_was_left_out(report: dist.Report, capsys: pytest.CaptureFixture[str]) -> None:
    report.leave_out("aarch64-unknown-linux-gnu")
    assert not report.step("wheel", fails)
    assert report.exit_code() == 1
    assert "returned non-zero exit status 3" in capsys.readouterr().err


def test_a_target_without_a_library_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libstd-0.rlib").touch()
    answers = {"aarch64-unknown-linux-gnu": tmp_path / "none", "x86_64-unknown-linux-gnu": tmp_path}

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        if command[0] == "rustc":
            return subprocess.CompletedProcess(command, 0, stdout=f"{answers[command[-1]]}\n")
        return subprocess.CompletedProcess(command, debian, stdout="/debian/rustc\n")

    monkeypatch.setattr("scripts.dist.subprocess.run", run)
    debian = 75
    assert dist.rustc_for("x86_64-unknown-linux-gnu") == {}
    assert dist.rustc_for("aarch64-unknown-linux-gnu") is None
    debian = 0
    assert dist.rustc_for("aarch64-unknown-linux-gnu") == {"RUSTC": "/debian/rustc"}


def wheel(folder: Path, *bills: object) -> Path:
    path = folder / "kueuecore-1-cp311-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for number, bill in enumerate(bills):
            archive.writestr(f"kueuecore-1.dist-info/sboms/{number}.cyclonedx.json", json.dumps(bill))
    return path


def test_the_bill_of_a_wheel_is_its_own(tmp_path: Path) -> None:
    bill = {"bomFormat": "CycloneDX", "components": [{"name": "serde"}]}
    assert json.loads(of_wheel(wheel(tmp_path, bill))) == bill


@pytest.mark.parametrize(
    ("bills", "message"),
    [
        ([], "has 0 bills"),
        ([{}, {}], "has 2 bills"),
        ([{"bomFormat": "CycloneDX", "components": []}], "lists no crates"),
    ],
)
def test_a_wheel_without_one_is_refused(tmp_path: Path, bills: list[object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        of_wheel(wheel(tmp_path, *bills))


def test_without_a_wheel_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no wheel of kueuecore"):
        write_sboms(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
