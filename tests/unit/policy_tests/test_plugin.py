"""The plugin of pytest: files are collected, and `kueue` is a cluster to ask."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.policy_test_files import EXAMPLES, HEAD, QUEUES, case, job, write

pytest_plugins = ["pytester"]

ROOT = EXAMPLES.parent
ONE = f"{{job: {job('one')}}}"


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest("-p", "kueuecore.pytest_plugin", *arguments)


def test_files_are_collected_case_by_case(pytester: pytest.Pytester) -> None:
    write(pytester.path, case("{workload: team/one, admitted: true}", ONE, "one fits"))
    write(pytester.path, case("{workload: team/one, pending: true}", ONE, "one waits"), "b_test.yaml")
    (pytester.path / "chart_test.yaml").write_text("kind: Pod\n", encoding="utf-8")
    ran = run(pytester, "-v")
    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(
        [
            "a_test.yaml::one fits PASSED*",
            "b_test.yaml::one waits FAILED*",
            "b_test.yaml:9: team/one",
            "  expected: is pending",
            "  got:      admitted in cq with cpu: default",
        ]
    )
    ran.stdout.no_fnmatch_line("*Traceback*")


def test_a_file_that_cannot_be_read_is_an_error_with_its_line(pytester: pytest.Pytester) -> None:
    write(pytester.path, f"{HEAD}cases: []\n")
    ran = run(pytester)
    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(["*a_test.yaml:4*cases: Required value*"])


def test_a_rejected_job_fails_with_its_line(pytester: pytest.Pytester) -> None:
    write(pytester.path, case("{workload: team/one, admitted: true}", ONE.replace("cpu: 1", "cpu: x")))
    ran = run(pytester)
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(["*a_test.yaml:7*"])


def test_the_fixture_is_a_cluster_to_ask(pytester: pytest.Pytester) -> None:
    (pytester.path / "queues.yaml").write_text(QUEUES, encoding="utf-8")
    (pytester.path / "job.yaml").write_text(job("train"), encoding="utf-8")
    pytester.makepyfile(
        """
        import pytest
        from kueuecore.errors import UnknownObjectError

        JOB = '''JOB_HERE'''

        def test_quota(kueue):
            kueue.load("queues.yaml")
            kueue.submit("job.yaml", count=3, runs="5m")
            kueue.settle(until="1m")
            assert kueue.admitted("team/train-*", count=2)
            assert kueue.admitted("team/train-1", cluster_queue="cq", flavors={"cpu": "default"})
            assert kueue.pending("team/train-3", message="insufficient", reason="WaitingForQuota")
            assert not kueue.admitted("team/train-3")
            assert kueue.uses("cq", {"default": {"cpu": 2}})
            kueue.settle()
            assert kueue.finished("team/train-*")
            assert kueue.waits("team/train-3", below="6m", at_least=300)
            assert kueue.never_preempted("team/*")

        def test_clusters_are_apart(kueue):
            kueue.load("queues.yaml")
            kueue.submit("job.yaml")
            kueue.settle()
            assert kueue.admitted("team/train")
            with pytest.raises(UnknownObjectError, match="write team/train"):
                kueue.admitted("team/trai")
            with pytest.raises(RuntimeError, match="load everything before"):
                kueue.load("queues.yaml")

        def test_preemption(kueue):
            kueue.load("queues.yaml")
            low = JOB.replace("cpu: 1", "cpu: 2")
            kueue.submit(low, name="low")
            kueue.settle()
            high = low.replace("lq}", "lq, kueue.x-k8s.io/priority-class: high}")
            kueue.submit(high, name="high")
            kueue.settle()
            assert kueue.preempted("team/low", by="team/high", reason="InClusterQueue")
            assert kueue.states("team/high")[0].flavors == {"main": {"cpu": "default"}}
        """.replace("JOB_HERE", job("train"))
    )
    run(pytester).assert_outcomes(passed=3)


def test_a_failed_assertion_shows_the_full_answer(pytester: pytest.Pytester) -> None:
    (pytester.path / "queues.yaml").write_text(QUEUES, encoding="utf-8")
    pytester.makepyfile(
        f"""
        def test_too_much(kueue):
            kueue.load("queues.yaml")
            kueue.submit('''{job("train", "3")}''')
            kueue.settle()
            assert kueue.admitted("team/train")
        """
    )
    ran = run(pytester)
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(
        [
            "*assert <team/train: expected is admitted; got pending in cq*",
            "*- kueue -*",
            "team/train",
            "  expected: is admitted",
            "  got:      pending in cq",
            "  why:      couldn't assign flavors*current podset request (3) > maximum capacity (2)",
        ]
    )


def test_pytest_finds_the_plugin_by_its_entry_point(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (name, module), *others = project["entry-points"]["pytest11"].items()
    assert (name, others) == (module, [])
    # As an installed wheel has it.
    info = tmp_path / "site/kueuecore_entry-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kueuecore-entry\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[pytest11]\n{name} = {module}\n", encoding="utf-8")
    write(tmp_path, case("{workload: team/one, admitted: true}", ONE))
    path = [str(tmp_path / "site"), *filter(None, sys.path)]
    for arguments in ([], ["-p", "kueuecore.pytest_plugin"]):
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *arguments, str(tmp_path / "a_test.yaml")],
            cwd=tmp_path,
            env={"PYTHONPATH": ":".join(path), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
        assert "1 passed" in ran.stdout
