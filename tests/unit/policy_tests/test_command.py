"""`kueuecore test`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kueuecore.cli import main
from tests.command import Ran
from tests.policy_test_files import EXAMPLES, HEAD, case, job, write

ONE = f"{{job: {job('one')}}}"
GOOD = case("{workload: team/one, admitted: true}", ONE, "good")
BAD = case("{workload: team/one, pending: {message: no such thing}}", f"{{job: {job('one', '3')}}}", "bad")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> object:
    def run(*arguments: str | Path) -> Ran:
        code = main(["test", *map(str, arguments)])
        return Ran(code, *capsys.readouterr())

    return run


def test_the_examples_pass(run) -> None:  # type: ignore[no-untyped-def]
    ran = run(EXAMPLES / "policy-tests")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == f"{ran.out.count('passed  ')} passed"


def test_a_failure_shows_its_place_and_the_reason(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    good, bad = write(tmp_path, GOOD), write(tmp_path, BAD, "b_test.yaml")
    ran = run(tmp_path)
    assert ran.code == 1
    assert (
        ran.out
        == f"""\
passed  {good}::good
FAILED  {bad}::bad

{bad}:9: bad
  team/one
    expected: is pending, with "no such thing" in its message
    got:      pending in cq
    why:      couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, previously \
considered podsets requests (0) + current podset request (3) > maximum capacity (2)

1 failed, 1 passed
"""
    )


def test_json_has_everything(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    write(tmp_path, GOOD)
    bad = write(tmp_path, BAD, "b_test.yaml")
    ran = run(tmp_path, "-o", "json")
    document = json.loads(ran.out)
    assert (ran.code, document["counts"]) == (1, {"passed": 1, "failed": 1})
    (failure,) = document["tests"][1].pop("failures")
    kueue = document["kueue"]
    assert document["tests"][1] == {"file": str(bad), "line": 5, "name": "bad", "kueue": kueue, "outcome": "failed"}
    assert (failure["file"], failure["line"], failure["subject"]) == (str(bad), 9, "team/one")
    assert failure["why"].startswith("couldn't assign flavors")


def test_junit_has_a_suite_for_each_file(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    write(tmp_path, GOOD)
    write(tmp_path, BAD, "b_test.yaml")
    ran = run(tmp_path, "--junit", tmp_path / "out.xml")
    root = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert (ran.code, root.tag, root.get("tests"), root.get("failures")) == (1, "testsuites", "2", "1")
    assert [letter.get("name") for letter in root.iter("testcase")] == ["good", "bad"]
    assert [letter.get("failures") for letter in root.iter("testsuite")] == ["0", "1"]
    (failure,) = root.iter("failure")
    assert "why:      couldn't assign flavors" in str(failure.text)
    before = (tmp_path / "out.xml").read_bytes()
    run(tmp_path, "--junit", tmp_path / "out.xml")
    assert (tmp_path / "out.xml").read_bytes() == before


def test_a_pattern_selects_tests(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    write(tmp_path, GOOD)
    write(tmp_path, BAD, "b_test.yaml")
    assert run(tmp_path, "-k", "A_TEST").code == 0
    assert run(tmp_path, "-k", "b_*ad").out.count("FAILED") == 1
    ran = run(tmp_path, "-k", "neither")
    assert (ran.code, ran.out) == (2, "")
    assert "no test matches 'neither'" in ran.err


def test_bad_input_exits_with_2_and_reports_each_problem_once(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    write(tmp_path, f"{HEAD}cases: []\n")
    write(tmp_path, f"{HEAD}cases: 3\n", "b_test.yaml")
    ran = run(tmp_path, tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[-1] == "kueuecore: 3 problems, nothing was decided"


def test_jobs_that_webhooks_reject_are_bad_input(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    wrong = job("one").replace("cpu: 1", "cpu: x")
    write(tmp_path, case("{workload: team/one, admitted: true}", f"{{job: {wrong}}}"))
    ran = run(tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert f"{tmp_path}/a_test.yaml:7" in ran.err


def test_a_file_can_come_from_standard_input(  # type: ignore[no-untyped-def]
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, GOOD)
    monkeypatch.chdir(tmp_path)
    with path.open(encoding="utf-8") as file:
        monkeypatch.setattr("sys.stdin", file)
        ran = run("-")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "passed  <stdin>::good")


def test_unknown_fields_are_warnings(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    write(tmp_path, GOOD)
    (tmp_path / "queues.yaml").write_text(
        (tmp_path / "queues.yaml")
        .read_text(encoding="utf-8")
        .replace("{clusterQueue: cq}", "{clusterQueue: cq, x: 1}"),
        encoding="utf-8",
    )
    ran = run(tmp_path)
    assert ran.code == 0
    assert "warning: " in ran.err
    assert "unknown field" in ran.err
    assert run(tmp_path, "-q").err == ""


@pytest.mark.parametrize("field", ["at", "runs"])
def test_events_after_the_end_of_time_are_bad_input(run, tmp_path: Path, field: str) -> None:  # type: ignore[no-untyped-def]
    submit = f"{{job: {job('one')}, {field}: 2562047h}}"
    write(tmp_path, case("{workload: team/one, admitted: true}", submit))
    ran = run(tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert f'{tmp_path}/a_test.yaml:7 (document 1): Job "team/one": {field} is ' in ran.err


def test_a_test_may_last_until_the_end_of_time(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    write(tmp_path, case("{workload: team/one, at: 2562047h, admitted: true}", ONE))
    assert run(tmp_path).code == 0
