"""A command imports what it needs: start-up is most of the time of a small question."""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from kueuecore.scenarios import read_scenario
from kueuecore.studies import run_trial
from kueuecore.version import version

EXAMPLES = Path(__file__).parents[3] / "examples"
EXAMPLE = str(EXAMPLES / "two-teams")
SCENARIO = str(EXAMPLES / "scenario" / "scenario.yaml")
POLICY_TEST = str(EXAMPLES / "policy-tests" / "two-teams_test.yaml")
WAITING = "team-b/job-lint-ae481"
COUNTED = """
import sys
before = set(sys.modules)
from kueuecore.__main__ import main
sys.argv[0] = "kueuecore"
try:
    code = main()
finally:
    print("MODULES", *{*sys.modules} - before, file=sys.stderr)
"""


def imported(*arguments: str) -> set[str]:
    """The modules that a command has imported in a process of its own."""
    ran = subprocess.run([sys.executable, "-c", COUNTED, *arguments], capture_output=True, text=True, check=True)
    return set(ran.stderr.rpartition("MODULES")[2].split())


def packages(modules: set[str]) -> set[str]:
    """The packages of this library that have been imported, with at least one of their modules."""
    return {module.split(".")[1] for module in modules if module.startswith("kueuecore.") and module.count(".") > 1}


# Limits are a little above what Python 3.11 to 3.14 import: raise one only for a module that the command needs.
@pytest.mark.parametrize(
    ("arguments", "most", "most_of_ours"),
    [
        (("--version",), 60, 10),
        (("--help",), 60, 9),
        (("run", "-q", EXAMPLE), 227, 113),
        (("run", EXAMPLE), 238, 124),
        (("gates",), 90, 14),
        (("check", EXAMPLE), 270, 152),
        (("explain", EXAMPLE, WAITING), 243, 128),
        (("history", EXAMPLE, WAITING), 250, 136),
        (("unblock", EXAMPLE, WAITING), 259, 144),
        (("what-if", EXAMPLE, "--settle"), 218, 125),
        (("test", POLICY_TEST), 435, 204),
        (("eta", "--help"), 452, 219),
        (("simulate", SCENARIO), 432, 198),
        (("compare", "--help"), 434, 198),
        (("ui", "--help"), 206, 102),
    ],
    ids=[
        "version",
        "help",
        "run quietly",
        "run",
        "gates",
        "check",
        "explain",
        "history",
        "unblock",
        "what-if",
        "test",
        "eta",
        "simulate",
        "compare",
        "ui",
    ],
)
def test_a_command_imports_little(arguments: tuple[str, ...], most: int, most_of_ours: int) -> None:
    modules = imported(*arguments)
    ours = {module for module in modules if module.startswith("kueuecore")}
    assert len(modules) <= most, sorted(modules)
    assert len(ours) <= most_of_ours, sorted(ours)


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "-q", EXAMPLE),
        ("check", EXAMPLE),
        ("explain", EXAMPLE, WAITING),
        ("history", EXAMPLE, WAITING),
        ("unblock", EXAMPLE, WAITING),
    ],
    ids=lambda entry: entry[0],
)
def test_a_question_needs_no_arrays(arguments: tuple[str, ...]) -> None:
    modules = imported(*arguments)
    assert modules & {"numpy", "pyarrow", "multiprocessing"} == set()
    assert packages(modules) <= {"answers", "cli", "findings", "histories", "jobs", "objects", "scenarios"}


@pytest.mark.parametrize("arguments", [("test", POLICY_TEST), ("simulate", SCENARIO)], ids=lambda entry: entry[0])
def test_a_single_cluster_needs_no_fleet_and_no_trace(arguments: tuple[str, ...]) -> None:
    assert packages(imported(*arguments)) & {"api_server", "fleet", "kubernetes", "multikueue", "traces"} == set()


def test_a_process_of_a_study_needs_no_readers(tmp_path: Path) -> None:
    trial = tmp_path / "trial"
    trial.write_bytes(pickle.dumps((run_trial, read_scenario(SCENARIO), 1)))
    code = "import pickle, sys; run, *given = pickle.load(open(sys.argv[1], 'rb')); run(*given); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code, str(trial)], capture_output=True, text=True, check=True)
    modules = set(ran.stdout.split())
    assert (
        modules & {"yaml", "kueuecore._yaml", "kueuecore.objects.quota", "kueuecore.scenarios.scenario_reader"} == set()
    )
    assert packages(modules) & {"cli", "controller", "provisioning", "traces"} == set()
    assert len({module for module in modules if module.startswith("kueuecore")}) <= 146


def test_the_package_itself_imports_nothing() -> None:
    code = "import sys; before = set(sys.modules); import kueuecore; print(*{*sys.modules} - before)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {part for part in ran.stdout.split() if part.startswith("kueuecore")} == {"kueuecore"}
    assert "typing" not in ran.stdout


def test_the_version_is_that_of_the_wheel() -> None:
    assert version() == metadata.version("kueuecore")
