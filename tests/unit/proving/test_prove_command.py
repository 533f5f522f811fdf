"""The command `prove`: properties of the user's that misbehave, files that cannot be written, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kueuecore.cli import main
from kueuecore.policy_tests import read_policy_tests, run_policy_test
from kueuecore.proving import own_code
from kueuecore.scenarios import read_scenario, run_scenario
from tests.command import Ran
from tests.signals import listen_to_ctrl_c

Prove = Callable[..., Ran]
QUEUE = """---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NAME}
spec:
  cohortName: COHORT
  namespaceSelector: {}
  resourceGroups:
  - {coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 2}]}]}
"""
FLAVOR = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default}}\n"
RULES = '''"""Properties."""
from __future__ import annotations
import sys
from dataclasses import dataclass


@dataclass
class Kept:
    text: str


def kept(engine):
    print("said by a property")
    return len(engine.workloads()) < 2 or Kept("a").text == "a"


def raising(engine):
    raise ValueError("two\\nlines")


def leaving(engine):
    sys.exit(7)


def wordy(engine):
    return "yes"


async def waiting(engine):
    return True


def endless(engine):
    while True:
        try:
            pass
        except Exception:
            pass


def asking(engine):
    return engine.cluster_queue("a").name == "a"


def two(engine, other):
    return True


number = 3
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    queues(tmp_path, a="all", b="all")
    (tmp_path / "rules.py").write_text(RULES, encoding="utf-8")
    return tmp_path


def queues(folder: Path, **cohorts: str) -> None:
    text = FLAVOR + "".join(QUEUE.replace("NAME", name).replace("COHORT", of) for name, of in cohorts.items())
    (folder / "queues.yaml").write_text(text, encoding="utf-8")


@pytest.fixture
def prove(folder: Path, capsys: pytest.CaptureFixture[str]) -> Prove:
    def prove(*arguments: str) -> Ran:
        code = main(["prove", str(folder / "queues.yaml"), "-q", "--budget", "1s", *arguments])
        out, err = capsys.readouterr()
        return Ran(code, out, err.replace(f"{folder}/", ""))

    return prove


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("raising", "rules.py:18: raising failed: ValueError: two\\nlines; have it return True or False"),
        ("leaving", "rules.py:22: leaving failed: SystemExit: 7; have it return True or False"),
        ("wordy", "rules.py:25: wordy returns a value of type str; have it return True or False"),
        ("waiting", "rules.py:29: waiting returns a value of type coroutine; have it return True or False"),
        ("two", "rules.py: two failed: TypeError: two() missing 1 required positional argument: 'other'"),
        ("number", "rules.py: it has no function number; name one of its functions in --always"),
        ("rasing", "rules.py: it has no function rasing; write rules.py:raising"),
    ],
)
def test_a_function_that_fails_is_named_with_its_line(prove: Prove, folder: Path, name: str, problem: str) -> None:
    code, out, err = prove("--always", f"{folder}/rules.py:{name}")
    assert (code, out) == (2, "")
    assert problem in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("def f(:\n", "bad.py:1: it cannot be loaded: SyntaxError: invalid syntax; correct it"),
        ("\nimport nosuch\n", "bad.py:2: it cannot be loaded: ModuleNotFoundError: No module named 'nosuch'"),
        ("import sys\nsys.exit(0)\n", "bad.py:2: it cannot be loaded: SystemExit: 0"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_named_with_its_line(
    prove: Prove, folder: Path, text: str, problem: str
) -> None:
    (folder / "bad.py").write_text(text, encoding="utf-8")
    code, _, err = prove("--never", f"{folder}/bad.py:f")
    assert code == 2
    assert problem in err


def test_a_function_that_never_returns_is_stopped(prove: Prove, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_code, "LONGEST_SECONDS", 0.2)
    code, _, err = prove("--always", f"{folder}/rules.py:endless")
    assert code == 2
    assert "endless failed: it took longer than 0.2 s; have it return sooner" in err
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_what_a_function_prints_is_not_in_the_output(prove: Prove, folder: Path) -> None:
    code, out, err = prove("--always", f"{folder}/rules.py:kept", "-o", "json")
    assert code == 0
    assert json.loads(out)["ending"] == "Complete"
    assert "said by a property" in err


@pytest.mark.parametrize("output", ["text", "json", "github"])
def test_a_property_that_is_broken_from_the_start_needs_no_objects(prove: Prove, folder: Path, output: str) -> None:
    pytest.importorskip("cel")
    saved = folder / "saved"
    code, out, _ = prove("--always", "false", "-o", output, "--save", str(saved))
    assert code == 1
    assert "always false" in out
    assert [path.name for path in saved.iterdir()] == ["always-false-1.scenario.yaml"]
    assert len(run_scenario(read_scenario(saved / "always-false-1.scenario.yaml")).jobs) == 0


def test_a_property_that_names_a_queue_is_asked_in_its_tree(prove: Prove, folder: Path) -> None:
    pytest.importorskip("cel")
    queues(folder, a="first", b="second")
    code, out, _ = prove("--never", 'queues["b"].admitted > 0')
    assert code == 1
    assert "arrives in b and is admitted" in out
    assert 'other trees: never queues["b"].admitted > 0' in out
    code, _, err = prove("--never", 'queues["nosuch"].admitted > 0')
    assert code == 2
    assert "failed: there is no 'nosuch'" in err


def test_a_property_that_asks_for_an_object_keeps_it_while_others_are_left_out(prove: Prove, folder: Path) -> None:
    pytest.importorskip("cel")
    code, out, _ = prove("--never", 'queues["b"].admitted == 1 && queues["a"].pending == 0')
    assert code == 1
    assert "These objects suffice: ResourceFlavor default, ClusterQueue a, ClusterQueue b, LocalQueue default/b" in out
    code, out, _ = prove("--always", f"{folder}/rules.py:asking")
    assert (code, "no counterexample" in out) == (0, True)


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("", "the name of the folder is empty"),
        ("queues.yaml", "queues.yaml: --save: cannot be written to: Not a directory; name a writable folder"),
        ("queues.yaml/x", "queues.yaml/x: --save: cannot be written to: Not a directory"),
        ("a" * 300, "--save: cannot be written to: File name too long"),
    ],
)
def test_where_nothing_can_be_saved_nothing_is_searched(prove: Prove, folder: Path, where: str, problem: str) -> None:
    code, out, err = prove("--save", str(folder / where) if where else "")
    assert (code, out) == (2, "")
    assert problem in err


def test_what_was_found_is_shown_though_it_cannot_be_saved(prove: Prove, folder: Path) -> None:
    (folder / "saved" / "guarantee-1.scenario.yaml").mkdir(parents=True)
    code, out, err = prove("--property", "guarantee", "--save", str(folder / "saved"))
    assert code == 74
    assert "guarantee: a ClusterQueue does not get back quota" in out
    assert "kueuecore: cannot write saved/guarantee-1.scenario.yaml: Is a directory" in err


def test_saved_files_replace_links_and_do_not_follow_them(prove: Prove, folder: Path) -> None:
    (folder / "saved").mkdir()
    (folder / "saved" / "guarantee-1_test.yaml").symlink_to(folder / "queues.yaml")
    before = (folder / "queues.yaml").read_text("utf-8")
    assert prove("--property", "guarantee", "--save", str(folder / "saved"))[0] == 1
    assert (folder / "queues.yaml").read_text("utf-8") == before
    (test,) = read_policy_tests(folder / "saved" / "guarantee-1_test.yaml")
    assert not run_policy_test(test).has_passed


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_shows_and_saves_what_was_found(folder: Path) -> None:
    code, out, err = _interrupted(folder, "-o", "json", "--save", str(folder / "saved"))
    assert code == 130
    document: Mapping[str, Any] = json.loads(out)
    assert document["ending"] == "Interrupted"
    (tree,) = document["trees"]
    found = [it["property"] for it in tree["counterexamples"]]
    assert "guarantee" in found
    assert tree["coverage"]["moves"] > 0
    assert len([*(folder / "saved").glob("*.scenario.yaml")]) == len(found)
    assert "Traceback" not in err


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_ends_a_function_that_never_returns(folder: Path) -> None:
    code, out, err = _interrupted(folder, "--always", f"{folder}/rules.py:endless")
    assert code == 130
    assert "interrupted: no counterexample" in out
    assert "Traceback" not in err


def _interrupted(folder: Path, *arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "kueuecore", "prove", str(folder / "queues.yaml"), "--budget", "10m", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listen_to_ctrl_c
    ) as process:
        assert process.stderr is not None
        # The first line on its progress: by then something has been found.
        first = process.stderr.readline()
        while ": reading" in first and "endless" not in arguments[-1]:
            first = process.stderr.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, first + err


def test_where_nothing_was_tried_nothing_is_said_to_be_well(prove: Prove) -> None:
    code, out, _ = prove("--budget", "1ns", "--property", "loops")
    assert code == 0
    assert "tried: nothing, as the time was over before" in out
    assert "no counterexample: loops" not in out


@pytest.mark.parametrize("quota", ["0", "9223372036854775807"])
def test_a_tree_without_sizes_to_try_says_so(prove: Prove, folder: Path, quota: str) -> None:
    path = folder / "queues.yaml"
    path.write_text(path.read_text("utf-8").replace("nominalQuota: 2", f"nominalQuota: {quota}"), encoding="utf-8")
    code, out, _ = prove()
    assert code == 0
    assert "tried: nothing, as it has no quota but of 0, without end, or of pods alone" in out
    assert "no counterexample:" not in out


def test_more_workers_than_cores_are_no_more_threads(prove: Prove) -> None:
    assert prove("--workers", "999999", "--property", "guarantee").code == 1


def test_standard_error_says_where_the_time_was_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", str(folder / "queues.yaml"), "--budget", "1ns", "-o", "github"]) == 0
    warning = "warning: the time was over before anything was tried in 1 tree; give a longer --budget"
    assert warning in capsys.readouterr().err


def test_the_summary_shows_text_as_it_is(prove: Prove, folder: Path) -> None:
    path = folder / "queues.yaml"
    tainted = "metadata: {name: default}, spec: {nodeTaints: [{key: gpu, value: x, effect: NoSchedule}]}"
    path.write_text(path.read_text("utf-8").replace("metadata: {name: default}", tainted), encoding="utf-8")
    assert prove("--property", "placement", "--summary", str(folder / "summary.md")).code == 1
    summary = (folder / "summary.md").read_text("utf-8")
    assert r"untolerated taint \{gpu x NoSchedule \<nil\>\} in flavor default" in summary
    assert "<nil>" not in summary


def test_whoever_is_never_placed_waits_for_the_same_reason_with_fewer_objects(prove: Prove, folder: Path) -> None:
    path = folder / "queues.yaml"
    path.write_text(path.read_text("utf-8").replace("spec:\n", "spec:\n  stopPolicy: Hold\n", 1), encoding="utf-8")
    code, out, _ = prove("--property", "placement")
    assert code == 1
    assert "waits although nothing else is there: ClusterQueue a is inactive." in out
    assert "These objects suffice: ClusterQueue a, LocalQueue default/a\n" in out
    assert "tried: 28 shapes alone\n" in out
    assert "tried: nothing" not in out


def test_turns_are_only_looked_for_where_somebody_takes_turns(prove: Prove) -> None:
    code, out, err = prove("--property", "turns")
    assert (code, out) == (2, "")
    assert "--property turns: nothing can break it without the experiment" in err
    assert prove("--property", "turns", "--experiment", "timeShareSeconds=60").code in (0, 1)
