"""As which release of Kueue a command decides: `--kueue`, KUEUECORE_KUEUE, a saved engine's own, or the default."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kueuecore import Configuration, Engine
from kueuecore.cli import ExitCode
from kueuecore.releases import DEFAULT_RELEASE, Release
from tests.command import JOB, QUEUES, Ran

# The only release that is a commit without a tag.
DEVELOPMENT = Release.named("0.20.0-devel")
# Kueue 0.19 removed it.
GATE = ("--feature-gates", "LendingLimit=true")
OBJECTS = QUEUES + JOB % ("small", 1)
SCENARIO = """
apiVersion: kueuecore/v1
kind: Scenario
cluster: {objects: [in.yaml], kueue: KUEUE}
work: [{name: one, job: job.yaml, count: 1, runs: 1m}]
"""
FLEET = Path(__file__).parents[3] / "examples" / "multikueue" / "scenario.yaml"
POLICY_TEST = """
apiVersion: kueuecore/v1
kind: PolicyTest
manifests: [in.yaml]
cases: [{name: runs, submit: [{job: job.yaml}], expect: [{workload: team/small, admitted: {}}]}]
"""


def release_in(ran: Ran) -> Any:
    return json.loads(ran.out)["kueue"]


@pytest.mark.parametrize(
    ("name", "version"), [("0.17", "v0.17.8"), ("v0.16.3", "v0.16.3"), (DEVELOPMENT.commit[:12], "v0.20.0-devel")]
)
def test_the_option_names_the_release(name: str, version: str, command: Callable[..., Ran]) -> None:
    ran = command("in.yaml", "-o", "json", "--kueue", name, text=OBJECTS)
    assert release_in(ran)["version"] == version
    assert "decides as" not in ran.err


def test_without_it_the_default_decides_and_only_what_has_no_tag_has_its_commit(command: Callable[..., Ran]) -> None:
    def release(*option: str) -> Any:
        return release_in(command("in.yaml", "-o", "json", *option, text=OBJECTS))

    assert release() == {"version": f"v{DEFAULT_RELEASE}"}
    assert release("--kueue", "0.18.2") == {"version": "v0.18.2"}
    assert len(DEVELOPMENT.commit) == 40
    assert release("--kueue", "0.20-dev") == {"version": "v0.20.0-devel", "commit": DEVELOPMENT.commit}


def test_its_gates_count(command: Callable[..., Ran]) -> None:
    assert command("in.yaml", "--kueue", "0.17", *GATE, text=OBJECTS).code == ExitCode.OK
    ran = command("in.yaml", *GATE, text=OBJECTS)
    assert (ran.code, "Kueue 0.19 removed it" in ran.err) == (ExitCode.BAD_INPUT, True)
    ran = command("in.yaml", "--kueue", "0.16", "--feature-gates", "ConcurrentAdmission=true", text=OBJECTS)
    assert "Kueue v0.18.0 has it, Kueue v0.16.9 does not" in ran.err


def test_an_unknown_release_is_refused_with_one_to_write(any_command: Callable[..., Ran]) -> None:
    ran = any_command("run", "in.yaml", "--kueue", "0.15.2", text=OBJECTS)
    says = "kueuecore does not know the release 0.15.2 of Kueue: write 0.16.9\n"
    assert ran.code == ExitCode.BAD_INPUT
    assert ran.err.endswith(f"kueuecore run: error: argument --kueue: {says}")
    assert ran.out == ""


def test_the_variable_is_the_default_of_the_option(
    monkeypatch: pytest.MonkeyPatch, command: Callable[..., Ran], any_command: Callable[..., Ran]
) -> None:
    monkeypatch.setenv("KUEUECORE_KUEUE", "0.17")
    assert release_in(command("in.yaml", "-o", "json", text=OBJECTS)) == {"version": "v0.17.8"}
    assert release_in(command("in.yaml", "-o", "json", "--kueue", "0.16", text=OBJECTS)) == {"version": "v0.16.9"}
    assert "LendingLimit" in any_command("gates").out
    monkeypatch.setenv("KUEUECORE_KUEUE", "")
    assert release_in(command("in.yaml", "-o", "json", text=OBJECTS))["version"] == f"v{DEFAULT_RELEASE}"
    monkeypatch.setenv("KUEUECORE_KUEUE", "latest")
    ran = command("in.yaml", text=OBJECTS)
    assert ran.code == ExitCode.BAD_INPUT
    assert ran.err.startswith("KUEUECORE_KUEUE: kueuecore does not know the release latest of Kueue: write 0.16.9, ")


def test_gates_lists_those_of_a_release(any_command: Callable[..., Ran]) -> None:
    assert "LendingLimit " in any_command("gates", "--kueue", "0.17").out
    assert "LendingLimit " not in any_command("gates").out


@pytest.mark.parametrize(
    "command",
    [
        ("check", "in.yaml"),
        ("explain", "in.yaml", "small"),
        ("unblock", "in.yaml", "small"),
        ("what-if", "in.yaml", "-f", "job.yaml"),
        ("eta", "in.yaml", "--seeds", "1", "--workers", "1", "--run-seconds", "1m"),
        ("simulate", "scenario.yaml"),
        ("compare", "scenario.yaml", "scenario.yaml", "--seeds", "1", "--workers", "1"),
        ("sweep", "scenario.yaml", "--grid", "work[0].count=[1, 2]", "--workers", "1"),
        ("plan", "scenario.yaml", "--wait", "p95<=1h", "--seeds", "1", "--workers", "1"),
        ("test", "policy.yaml"),
    ],
    ids=lambda entry: entry[0],
)
def test_every_command_that_decides_has_it_and_says_it(
    command: tuple[str, ...], any_command: Callable[..., Ran], tmp_path: Path
) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO.replace("KUEUE", "null"), encoding="utf-8")
    (tmp_path / "policy.yaml").write_text(POLICY_TEST, encoding="utf-8")
    (tmp_path / "job.yaml").write_text(JOB % ("small", 1), encoding="utf-8")
    is_alone = command[0] in ("simulate", "compare", "sweep", "plan", "test")
    text = QUEUES if is_alone else OBJECTS
    ran = any_command(*command, "-q", "-o", "json", "--kueue", "0.17.3", text=text)
    assert release_in(ran) == {"version": "v0.17.3"}, ran.err
    assert release_in(any_command(*command, "-q", "-o", "json", text=text))["version"] == f"v{DEFAULT_RELEASE}"


def test_an_anonymised_dump_says_as_which_release_to_run_it(any_command: Callable[..., Ran]) -> None:
    first = any_command("anonymise", "in.yaml", "--kueue", "0.17", text=OBJECTS).out.splitlines()[0]
    assert first == "# kueuecore run --now 1970-01-01T00:00:00Z --kueue 0.17.8"
    assert "--kueue" not in any_command("anonymise", "in.yaml", text=OBJECTS).out


def test_a_saved_engine_keeps_its_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, any_command: Callable[..., Ran]
) -> None:
    engine = Engine(Configuration(release="0.17"), keeps_journal=True)
    (tmp_path / "engine").write_bytes(engine.save())
    (tmp_path / "journal.json").write_text(json.dumps(engine.journal()), encoding="utf-8")
    # The variable is for what says no release.
    monkeypatch.setenv("KUEUECORE_KUEUE", "0.18")
    for name in ("engine", "journal.json"):
        assert release_in(any_command("run", name, "-o", "json")) == {"version": "v0.17.8"}
        assert any_command("run", name, "--kueue", "0.17.8").code == ExitCode.OK
        ran = any_command("run", name, "--kueue", "0.17.7")
        assert ran.code == ExitCode.BAD_INPUT
        says = "this saved engine decides as Kueue v0.17.8, and goes on as that; leave out --kueue"
        assert ran.err.startswith(f"{name}: {says}\n")


def test_the_configuration_for_a_saved_engine_is_read_as_its_release(
    tmp_path: Path, any_command: Callable[..., Ran]
) -> None:
    text = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, featureGates: {LendingLimit: true}}"
    (tmp_path / "engine").write_bytes(Engine(Configuration.parse(text, release="0.17")).save())
    assert any_command("run", "engine", "--config", "in.yaml", text=text).code == ExitCode.OK


@pytest.fixture
def scenario(tmp_path: Path, any_command: Callable[..., Ran]) -> Callable[..., Any]:
    """Runs a command on a scenario of Kueue 0.16, and returns its JSON."""
    (tmp_path / "scenario.yaml").write_text(SCENARIO.replace("KUEUE", "0.16"), encoding="utf-8")
    (tmp_path / "job.yaml").write_text(JOB % ("small", 1), encoding="utf-8")

    def run(name: str, *arguments: str) -> Any:
        return json.loads(any_command(name, "scenario.yaml", *arguments, "-q", "-o", "json", text=QUEUES).out)

    return run


def test_two_releases_are_compared(scenario: Callable[..., Any]) -> None:
    edit = ("--set", "cluster.kueue=0.17", "--seeds", "1")
    found = scenario("compare", *edit)
    assert found["kueue"] == {"version": "v0.16.9"}
    assert [side["kueue"]["version"] for side in found["sides"]] == ["v0.16.9", "v0.17.8"]
    # The option says as what A decides, the edit as what B does.
    found = scenario("compare", "--kueue", "0.18", *edit)
    assert [side["kueue"]["version"] for side in found["sides"]] == ["v0.18.6", "v0.17.8"]


def test_a_sweep_varies_the_release(scenario: Callable[..., Any]) -> None:
    found = scenario("sweep", "--grid", "cluster.kueue=[0.17, '0.18.2']")
    assert found["kueue"] == {"version": "v0.16.9"}
    assert [point["kueue"]["version"] for point in found["points"]] == ["v0.17.8", "v0.18.2"]


def test_a_scenario_goes_before_the_variable(scenario: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUEUECORE_KUEUE", "0.19")
    assert scenario("simulate")["kueue"] == {"version": "v0.16.9"}
    assert scenario("simulate", "--kueue", "0.18")["kueue"] == {"version": "v0.18.6"}


def test_the_json_of_a_fleet_has_the_releases_of_its_workers(
    monkeypatch: pytest.MonkeyPatch, any_command: Callable[..., Ran]
) -> None:
    monkeypatch.setenv("KUEUECORE_KUEUE", "0.19")
    found = json.loads(any_command("simulate", str(FLEET), "-o", "json", "-q").out)
    assert found["kueue"] == {"version": "v0.19.2"}
    assert found["kueueOfWorkers"] == {name: {"version": "v0.19.2"} for name in ("east", "west")}
