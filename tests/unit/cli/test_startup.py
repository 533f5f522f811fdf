"""A command imports what it needs: start-up is most of the time of a small question."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from kueuecore.version import version

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "two-teams")
COUNTED = """
import sys
before = set(sys.modules)
from kueuecore.__main__ import main
sys.argv[0] = "kueuecore"
try:
    code = main()
finally:
    print("\\n".join({*sys.modules} - before), file=sys.stderr)
"""


def imported(*arguments: str) -> set[str]:
    """The modules that a command has imported in a process of its own."""
    ran = subprocess.run([sys.executable, "-c", COUNTED, *arguments], capture_output=True, text=True, check=True)
    return set(ran.stderr.split())


# Limits are a little above what Python 3.11 to 3.14 import: raise one only for a module that the command needs.
@pytest.mark.parametrize(
    ("arguments", "most", "most_of_ours"),
    [
        (("--version",), 60, 10),
        (("--help",), 60, 9),
        (("run", "-q", EXAMPLE), 225, 106),
        (("run", EXAMPLE), 235, 106),
        (("gates",), 125, 23),
    ],
    ids=["version", "help", "run quietly", "run", "gates"],
)
def test_a_command_imports_little(arguments: tuple[str, ...], most: int, most_of_ours: int) -> None:
    modules = imported(*arguments)
    ours = {it for it in modules if it.startswith("kueuecore")}
    assert len(modules) <= most, sorted(modules)
    assert len(ours) <= most_of_ours, sorted(ours)


def test_a_run_needs_no_arrays() -> None:
    modules = imported("run", "-q", EXAMPLE)
    assert modules & {"numpy", "pyarrow", "multiprocessing", "kueuecore.kubernetes"} == set()


def test_the_package_itself_imports_nothing() -> None:
    code = "import sys; before = set(sys.modules); import kueuecore; print(*{*sys.modules} - before)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {it for it in ran.stdout.split() if it.startswith("kueuecore")} == {"kueuecore"}
    assert "typing" not in ran.stdout


def test_the_version_is_that_of_the_wheel() -> None:
    assert version() == metadata.version("kueuecore")
