"""Which exit code each ending has."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main, state_file
from kueuecore.steady_state import Ending, Settled
from tests.command import JOB, QUEUES, Ran


def test_pending_workloads_fail_only_with_fail_on_pending(command: Callable[..., Ran]) -> None:
    text = QUEUES + JOB % ("a", 3)
    assert command(text=text).code == ExitCode.OK
    assert command("in.yaml", "--fail-on-pending", text=text).code == ExitCode.PENDING
    assert command("in.yaml", "--fail-on-pending", text=QUEUES).code == ExitCode.OK


def test_a_job_with_a_missing_reference_waits_while_others_run(command: Callable[..., Ran]) -> None:
    waiting = (JOB % ("waits", 1)).replace("lq}", "lq, kueue.x-k8s.io/priority-class: gone}")
    ran = command("in.yaml", "--fail-on-pending", text=QUEUES + JOB % ("runs", 1) + waiting)
    assert ran.code == ExitCode.PENDING
    assert 'WorkloadPriorityClass "gone" not found' in ran.err
    assert "until then the job waits" in ran.err
    assert "job-runs" in ran.out
    assert "job-waits" not in ran.out


def test_every_problem_is_reported_with_file_line_and_field(command: Callable[..., Ran]) -> None:
    text = QUEUES.replace("nominalQuota: 2", "nominalQuota: -2") + (JOB % ("a", 1)).replace("cpu: 1}", "cpu: -1}")
    ran = command(text=text)
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    quota, request, last = ran.err.splitlines()
    assert quota.startswith(
        'in.yaml:11 (document 2): ClusterQueue "cq": spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: '
    )
    assert re.match(r'in\.yaml:\d+ \(document 4\): (Job|Workload) "team/', request)
    assert last == "kueuecore: 2 problems, nothing was decided"


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["absent.yaml"], "absent.yaml: there is no such file; check the name"),
        (["in.yaml", "--now", "soon"], "'soon' is not a time: write RFC 3339"),
        (["in.yaml", "--feature-gates", "A"], '"A" is not of the form Name=true or Name=false'),
        (["in.yaml", "--feature-gates", "A=true"], "--feature-gates: Invalid value"),
        (["in.yaml", "--config", "absent"], "absent: cannot be read"),
        (["in.yaml", "-o", "xml"], "invalid choice: 'xml'"),
        (["folder"], "add -R to read its directories too"),
    ],
)
def test_wrong_usage_is_reported(command: Callable[..., Ran], arguments: list[str], reported: str) -> None:
    Path("folder/inner").mkdir(parents=True)
    ran = command(*arguments, text=QUEUES)
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    assert reported in ran.err
    assert "Traceback" not in ran.err


def test_no_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == ExitCode.BAD_INPUT
    assert "COMMAND" in capsys.readouterr().err


def test_undecided_workloads_have_their_own_exit_code(command: Callable[..., Ran]) -> None:
    template = """
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: team}
spec:
  spec:
    devices:
      requests: [{name: r, exactly: {deviceClassName: gpu, selectors: [{cel: {expression: "true"}}]}}]
"""
    mapping = "resources: {deviceClassMappings: [{name: gpus, deviceClassNames: [gpu]}]}"
    header = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
    Path("config.yaml").write_text(header + mapping, encoding="utf-8")
    claims = "resourceClaims: [{name: d, resourceClaimTemplateName: gpu}]"
    job = (JOB % ("a", 1)).replace("restartPolicy: Never", f"restartPolicy: Never\n      {claims}")
    ran = command("in.yaml", "--config", "config.yaml", text=QUEUES + template + job)
    assert ran.code == ExitCode.UNDECIDED
    assert re.search(r"Undecided .* spec\.podSets\[0\]\.template\.spec\.resourceClaims\[0\]: ", ran.out)


def test_unsettled_runs_have_their_own_exit_code(command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_file, "settle", lambda *_, **__: Settled(Ending.REPEATING, (), (), ()))
    ran = command(text=QUEUES)
    assert ran.code == ExitCode.UNSETTLED
    assert "never settles" in ran.out


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt, ExitCode.INTERRUPTED), (ZeroDivisionError, ExitCode.BUG)]
)
def test_a_bug_and_an_interrupt_have_their_own_exit_codes(
    command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, error: type[BaseException], code: int
) -> None:
    def settle(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(state_file, "settle", settle)
    ran = command(text=QUEUES)
    assert ran.code == code
    assert ("this is a bug" in ran.err) == (code == ExitCode.BUG)


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    text = QUEUES + "".join(JOB % (f"job-{i}", 1) for i in range(300))
    (tmp_path / "in.yaml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "kueuecore", "run", "-q", "-o", "json", str(tmp_path / "in.yaml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == ExitCode.BROKEN_PIPE
