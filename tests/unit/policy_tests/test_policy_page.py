"""docs/test.md says what its command, its files and its programs do."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kueuecore.cli import main
from kueuecore.policy_tests.asking import Kueue
from tests.policy_test_files import EXAMPLES

ROOT = EXAMPLES.parent
PAGE = (ROOT / "docs/test.md").read_text(encoding="utf-8")


def block(pattern: str) -> tuple[str, ...]:
    (found,) = re.findall(pattern, PAGE, re.DOTALL)
    return found if isinstance(found, tuple) else (found,)


def test_the_command_prints_what_it_says(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    command, printed = block(r"```sh\nkueuecore ([^\n]*\n)```\n\nprints\n\n```text\n(.*?)```")
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out == printed


def test_coverage_prints_what_it_says(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    command, printed = block(r"```sh\nkueuecore ([^\n]*\n)```\n\nprints after the tests\n\n```text\n(.*?)```")
    assert main(shlex.split(command)) == 0
    assert re.split(r"\d+ passed\n\n", capsys.readouterr().out)[1] == printed


def test_the_file_fails_as_it_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text, printed = block(
        r"```yaml\n(apiVersion.*?)```\n\n`kueuecore test` on this file exits with 1:\n\n```text\n(.*?)```"
    )
    (tmp_path / "four_test.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    assert main(["test", "four_test.yaml"]) == 1
    assert capsys.readouterr().out == printed


def test_the_program_passes_and_its_answer_is_as_it_says() -> None:
    (program,) = block(r"```python\n(def test_.*?)```")
    found: dict[str, object] = {}
    exec(program, found)
    kueue, test = Kueue(ROOT), found["test_a_waiting_job_gets_the_first_quota_to_be_freed"]
    assert callable(test)
    test(kueue)
    (printed,) = block(r"shows the whole answer:\n\n```text\n(.*?)\n```")
    kueue = Kueue(ROOT)
    kueue.load("examples/two-teams/queues.yaml")
    kueue.submit("examples/policy-tests/job.yaml", name="test", count=4, runs="10m")
    kueue.settle(until="1m")
    assert str(kueue.admitted("team-b/test-4")) == printed
