"""The command with streams that are closed or full, locales that lack characters, and Ctrl-C at any time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from kueuecore.manifests import parse_manifests
from tests.command import QUEUES

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "examples" / "scenario" / "scenario.yaml"
COMMANDS = ["run queues.yaml", "run -o json queues.yaml", f"simulate {SCENARIO}", "gates", "--help", "--version"]
NOTE = "note: added the Namespaces that the objects are in: team\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "queues.yaml").write_text(QUEUES, encoding="utf-8")
    return tmp_path


def shell(folder: Path, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command through a shell, with its redirections."""
    line = f'exec "{sys.executable}" -m kueuecore {command}'
    process_environment = {**os.environ, **environment}
    return subprocess.run(
        ["sh", "-c", line], cwd=folder, env=process_environment, capture_output=True, text=True, encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("where", "reason"), [(">&-", "it is closed"), (">/dev/full", "No space left on device")], ids=["closed", "full"]
)
@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_can_not_be_written_has_a_line_and_a_code(
    folder: Path, command: str, where: str, reason: str
) -> None:
    ran = shell(folder, f"{command} {where}")
    assert ran.returncode == ExitCode.UNWRITABLE
    assert ran.stderr.removeprefix(NOTE) == f"kueuecore: cannot write standard output: {reason}\n"


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"], ids=["closed", "full"])
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_notes_that_nobody_can_read_do_not_get_into_the_data(folder: Path, form: str, where: str) -> None:
    expected = shell(folder, f"run -o {form} queues.yaml")
    ran = shell(folder, f"run -o {form} queues.yaml {where}")
    assert expected.stderr == NOTE
    assert (ran.returncode, ran.stdout) == (ExitCode.OK, expected.stdout)


@pytest.mark.parametrize("command", ["run absent.yaml", "bogus"])
def test_problems_that_nobody_can_read_have_their_code(folder: Path, command: str) -> None:
    for where in ("2>&-", "2>/dev/full"):
        ran = shell(folder, f"{command} {where}")
        assert (ran.returncode, ran.stdout) == (ExitCode.BAD_INPUT, "")


def test_a_closed_standard_input_is_a_file_that_can_not_be_read(folder: Path) -> None:
    ran = shell(folder, "run - <&-")
    reported = "<stdin>: cannot be read: it is closed\nkueuecore: 1 problem, nothing was decided\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (ExitCode.BAD_INPUT, "", reported)
    assert shell(folder, "run queues.yaml <&-").returncode == ExitCode.OK


def test_all_streams_may_be_closed(folder: Path) -> None:
    assert shell(folder, "run queues.yaml <&- >&- 2>&-").returncode == ExitCode.UNWRITABLE


def test_what_fills_the_disk_half_way_is_no_success(folder: Path) -> None:
    script = """
import io, sys
from kueuecore.cli import main

class Disk(io.RawIOBase):
    left = 100
    def writable(self): return True
    def write(self, data):
        if not self.left: raise OSError(28, "No space left on device")
        n, self.left = min(len(data), self.left), 0
        return n

sys.stdout = io.TextIOWrapper(Disk(), encoding="utf-8", write_through=True)
sys.exit(main(["gates"]))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == ExitCode.UNWRITABLE
    assert ran.stderr.startswith("kueuecore: cannot write standard output: No space left on device\n")


ASCII = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
FOREIGN = (
    QUEUES
    + """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: w, namespace: team, annotations: {grüße: "世界 \\U0001F680"}, labels: {ключ: x}}
spec: {queueName: lq, podSets: [{count: 1, template: {spec: {containers: [{name: c}]}}}]}
status:
  conditions:
  - {type: Finished, status: "True", reason: Done, message: "fertig ≤ 世界", lastTransitionTime: "2026-01-01T00:00:00Z"}
"""
)


@pytest.mark.parametrize("form", ["json", "yaml", "wide"])
def test_an_ascii_locale_gets_escapes(folder: Path, form: str) -> None:
    (folder / "queues.yaml").write_text(FOREIGN, encoding="utf-8")
    ran = shell(folder, f"run --trusted -o {form} --events queues.yaml", **ASCII)
    assert ran.returncode == ExitCode.OK
    assert ran.stdout.isascii()
    if form == "json":
        assert json.loads(ran.stdout)["workloads"][0]["message"] == "fertig ≤ 世界"
    elif form == "yaml":
        (workload,) = (
            manifest.object for manifest in parse_manifests(ran.stdout) if manifest.object["kind"] == "Workload"
        )
        annotations = {"grüße": "世界 🚀"}
        labels = {"ключ": "x"}
        metadata = {"name": "w", "namespace": "team", "annotations": annotations, "labels": labels}
        assert workload["metadata"] == metadata
    else:
        assert "fertig \\u2264 \\u4e16\\u754c" in ran.stdout


def test_an_ascii_locale_gets_problems_with_escapes(folder: Path) -> None:
    (folder / "größe.yaml").write_text("grüße: no\n", encoding="utf-8")
    ran = shell(folder, "run größe.yaml", **ASCII)
    assert ran.returncode == ExitCode.BAD_INPUT
    assert ran.stderr.isascii()
    assert "Traceback" not in ran.stderr


# Policies of one's own, which are programs.

SCENARIO_WITH_POLICY = """
apiVersion: kueuecore/v1
kind: Scenario
fleet:
  manager: {objects: [FOLDER/manager.yaml]}
  workers: {east: {objects: [FOLDER/east.yaml]}, west: {objects: [FOLDER/west.yaml]}}
  policy: {use: own:Own}
work: [{job: FOLDER/job.yaml, count: 2, every: 1m, runs: 10s}]
"""
POLICY = """
from kueuecore.multikueue import Nomination
print("loaded")

class Own:
    waits_for_checks = True

    def nominate(self, dispatch):
        print("asked")
        return Nomination(("west",))
"""


def test_what_a_policy_prints_does_not_get_into_the_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.py").write_text(POLICY, encoding="utf-8")
    scenario = SCENARIO_WITH_POLICY.replace("FOLDER", str(ROOT / "examples" / "multikueue"))
    (tmp_path / "scenario.yaml").write_text(scenario, encoding="utf-8")
    code = main(["simulate", "--allow-code", "-q", "-o", "json", str(tmp_path / "scenario.yaml")])
    out, err = capsys.readouterr()
    assert (code, len(json.loads(out)["jobs"])) == (ExitCode.OK, 2)
    assert err.startswith("loaded\nasked\n")


# Ctrl-C.

INTERRUPTED = """
import os, signal, sys
from kueuecore.__main__ import main

class Interrupts:
    def find_spec(self, name, *_):
        if name == "kueuecore.cli":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
sys.argv = ["kueuecore", "--version"]
sys.exit(main())
"""


def test_ctrl_c_ends_the_process_while_it_still_imports() -> None:
    # What started the tests may ignore it, such as nohup.
    minded = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    ran = subprocess.run([sys.executable, "-c", minded + INTERRUPTED], capture_output=True, text=True)
    # A shell calls that 130, as ExitCode does.
    assert (ran.returncode, ran.stdout, ran.stderr) == (-signal.SIGINT, "", "")
    assert ExitCode.INTERRUPTED == 128 + signal.SIGINT


def test_ctrl_c_that_is_ignored_stays_ignored() -> None:
    line = f'trap \'\' INT; exec "{sys.executable}" -c "$SCRIPT"'
    ran = subprocess.run(["sh", "-c", line], env={**os.environ, "SCRIPT": INTERRUPTED}, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (ExitCode.OK, "")
    assert ran.stdout.startswith("kueuecore ")


def test_the_installed_command_starts_where_ctrl_c_is_minded() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"] == {
        "kueuecore": "kueuecore.__main__:main",
        "kubectl-kueuecore": "kueuecore.__main__:kubectl",
        "kubectl_complete-kueuecore": "kueuecore.__main__:kubectl_complete",
    }
