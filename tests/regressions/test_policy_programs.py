"""A scenario that names a program as its policy ran it while the file was still being checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from kueuecore.errors import ManifestError
from kueuecore.scenarios import read_scenario, run_scenario
from tests.regressions.scenarios import EXAMPLES, FLEET, HEAD

JOB = f"work: [{{job: {EXAMPLES}/multikueue/job.yaml, count: 2, every: 1m, runs: 10s}}]\n"
# Leaves a file behind, so that nobody can run it unnoticed.
POLICIES = """
import sys
from pathlib import Path
from kueuecore.errors import ManifestError
from kueuecore.multikueue import AllAtOnce, Nomination

Path(__file__).with_name("loaded").touch()

def fine():
    return AllAtOnce()

def leaves():
    sys.exit(0)

def raises():
    raise ManifestError.of("something else")

def stops():
    raise KeyboardInterrupt

class Leaving:
    waits_for_checks = True
    def nominate(self, dispatch):
        raise SystemExit

class Bare:
    waits_for_checks = True
    def nominate(self, dispatch):
        return Nomination("west")

class Vague:
    waits_for_checks = True
    def nominate(self, dispatch):
        return Nomination(("west",), look_again=0.5)

class Vain:
    @property
    def waits_for_checks(self):
        raise BaseException("in vain")
    def nominate(self, dispatch):
        return Nomination(())
"""


def written(folder: Path, use: str, more: str = "") -> Path:
    (folder / "own.py").write_text(POLICIES, encoding="utf-8")
    file = folder / "scenario.yaml"
    file.write_text(f"{HEAD}{FLEET}  policy: {{use: '{use}'}}\n{JOB}{more}", encoding="utf-8")
    return file


def problem_of(file: Path) -> str:
    with pytest.raises(ManifestError) as error:
        run_scenario(read_scenario(file, allow_code=True))
    (problem,) = error.value.problems
    assert (problem.field, problem.file, problem.line) == ("fleet.policy.use", str(file), 9)
    return f"{problem.message}; {problem.remedy}"


@pytest.mark.parametrize("use", ["own:fine", "os:system", "sys:exit"])
def test_a_program_does_not_run_unless_that_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], use: str
) -> None:
    file = written(tmp_path, use)
    with pytest.raises(ManifestError) as error:
        read_scenario(file)
    (problem,) = error.value.problems
    assert (problem.field, problem.message) == (
        "fleet.policy.use",
        f"{use} is a program that would run with your privileges",
    )
    assert problem.remedy == "read it, then pass --allow-code (in Python, `allow_code=True`)"
    assert main(["simulate", str(file)]) == ExitCode.BAD_INPUT
    assert "pass --allow-code" in capsys.readouterr().err
    assert not (tmp_path / "loaded").exists()


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ("sed: 1\n", "sed"),
        # What shows only when the objects are put together comes first, too.
        ("until: 1h\nseed: 1\n", "spec.parallelism"),
    ],
)
def test_a_program_does_not_run_before_everything_is_checked(tmp_path: Path, more: str, field: str) -> None:
    file = written(tmp_path, "own:fine", more)
    if field == "spec.parallelism":
        job = (EXAMPLES / "multikueue" / "job.yaml").read_text(encoding="utf-8")
        (tmp_path / "job.yaml").write_text(job.replace("parallelism: 3", "parallelism: -1"), encoding="utf-8")
        file.write_text(file.read_text().replace(f"{EXAMPLES}/multikueue/job.yaml", "job.yaml"), encoding="utf-8")
    with pytest.raises(ManifestError) as error:
        run_scenario(read_scenario(file, allow_code=True))
    assert field in [problem.field for problem in error.value.problems]
    assert not (tmp_path / "loaded").exists()


def test_reading_a_scenario_runs_nothing_and_each_run_loads_the_policy_anew(tmp_path: Path) -> None:
    scenario = read_scenario(written(tmp_path, "own:fine"), allow_code=True)
    for _ in range(2):
        assert not (tmp_path / "loaded").exists()
        assert run_scenario(scenario).all.n_finished == 2
        (tmp_path / "loaded").unlink()


def test_the_command_runs_a_program_that_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(written(tmp_path, "own:fine")), "--allow-code"]) == ExitCode.OK
    assert capsys.readouterr().out.startswith("2 jobs: 2 finished; ")


@pytest.mark.parametrize(
    ("use", "problem"),
    [
        ("sys:exit", "sys:exit cannot be loaded: SystemExit; fix it"),
        # Any function may be a policy: this one is called, and fails.
        ("os:system", "os:system failed: TypeError: "),
        ("os:getcwd", "os:getcwd is not a dispatcher; give it `waits_for_checks` and `nominate`"),
        ("own:leaves", "own:leaves cannot be loaded: SystemExit: 0 (own.py:13); fix it or its arguments"),
        # Its own problems are not those of the scenario.
        (
            "own:raises",
            "own:raises cannot be loaded: ManifestError: 1 problem in the manifests: something else (own.py",
        ),
        ("own:Vain", "own:Vain cannot be loaded: BaseException: in vain (own.py:39); fix it"),
        ("own:Leaving", "own:Leaving failed: SystemExit (own.py:24); fix it"),
        (
            "own:Bare",
            "own:Bare failed: TypeError: clusters must be a tuple of names, such as ('east', 'west'), not 'west'",
        ),
        ("own:Vague", "`look_again` of own:Vague is not a time; return nanoseconds since 1970"),
        ("../own:fine", 'Invalid value: "../own:fine"; write MODULE:NAME'),
        ("own:", 'Invalid value: "own:"; write MODULE:NAME'),
        ("", 'Invalid value: ""; write MODULE:NAME'),
    ],
)
def test_a_policy_that_leaves_raises_or_is_none_is_a_problem_of_its_field(
    tmp_path: Path, use: str, problem: str
) -> None:
    assert problem_of(written(tmp_path, use)).startswith(problem)


def test_a_policy_that_leaves_does_not_end_the_command_with_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", str(written(tmp_path, "own:leaves")), "--allow-code"]) == ExitCode.BAD_INPUT
    reported = capsys.readouterr()
    assert (reported.out, "fleet.policy.use: own:leaves cannot be loaded" in reported.err) == ("", True)


def test_ctrl_c_in_a_policy_stays_ctrl_c(tmp_path: Path) -> None:
    assert main(["simulate", str(written(tmp_path, "own:stops")), "--allow-code"]) == ExitCode.INTERRUPTED
