"""Policy tests under experiments: rules that Kueue does not have (rules/13)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kueuecore.cli import main
from kueuecore.errors import ManifestError
from kueuecore.policy_tests import CaseResult, policy_test_schema, read_policy_tests, run_policy_test
from kueuecore.policy_tests.coverage import Measurement, RuleOutcome
from tests.policy_test_files import job, write

NOTICE = "experiments: timeShareSeconds=600 (not in Kueue)"
EQUALS = f"""\
apiVersion: kueuecore/v1
kind: PolicyTest
manifests: [equals.yaml]
until: 15m
submit:
- {{job: {job("one", "2")}}}
- {{job: {job("two", "2")}, at: 1s}}
FIELDcases:
- name: of the file
  expect: [{{workload: team/one, preempted: true}}]
- name: none
  experiments: {{timeShareSeconds: null}}
  expect: [{{workload: team/one, preempted: false}}]
- name: its own
  experiments: {{timeShareSeconds: 60, reclaimBackoffSeconds: 5}}
  configuration: {{fairSharing: {{preemptionStrategies: [LessThanInitialShare]}}}}
  expect: [{{workload: team/one, at: 2m, preempted: true}}]
"""


def written(folder: Path, field: str = "experiments: {timeShareSeconds: 600}\n") -> Path:
    path = write(folder, EQUALS.replace("FIELD", field))
    text = (folder / "queues.yaml").read_text(encoding="utf-8")
    (folder / "equals.yaml").write_text(text.replace("LowerPriority", "LowerOrNewerEqualPriority"), encoding="utf-8")
    return path


def results(path: Path) -> list[CaseResult]:
    return [run_policy_test(test) for test in read_policy_tests(path)]


def test_a_case_has_the_experiments_of_its_file_but_for_its_own(tmp_path: Path) -> None:
    tests = read_policy_tests(written(tmp_path))
    assert [test.configuration.experiments.to_dict() for test in tests] == [
        {"timeShareSeconds": 600},
        {},
        {"timeShareSeconds": 60, "reclaimBackoffSeconds": 5},
    ]


def test_they_decide(tmp_path: Path) -> None:
    assert [result.has_passed for result in results(written(tmp_path))] == [True, True, True]
    assert [result.has_passed for result in results(written(tmp_path, ""))] == [False, True, True]


def test_equals_that_take_turns_do_not_settle(tmp_path: Path) -> None:
    path = written(tmp_path)
    text = path.read_text(encoding="utf-8").replace("{workload: team/one, preempted: true}", "{settles: true}")
    path.write_text(text.replace("{workload: team/one, preempted: false}", "{settles: true}"), encoding="utf-8")
    assert [result.has_passed for result in results(path)] == [False, True, True]


def test_wrong_ones_are_named(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as raised:
        read_policy_tests(written(tmp_path, "experiments: {timeShare: 600, reclaimBackoffSeconds: 0}\n"))
    assert [str(problem).partition("_test.yaml:")[2] for problem in raised.value.problems] == [
        '8: experiments.timeShare: unknown experiment "timeShare"; did you mean timeShareSeconds?',
        "8: experiments.reclaimBackoffSeconds: Invalid value: 0; write a whole number of seconds from 1 to 31536000, "
        "or leave it out",
    ]


def test_coverage_is_measured_under_them(tmp_path: Path) -> None:
    # With another rule of the Configuration, `one` still has to give way for the experiment alone.
    test = read_policy_tests(path := written(tmp_path))[-1]
    outcomes = {
        covered.rule.line: covered.outcome
        for covered in Measurement([test]).run().rules
        if covered.rule.file == str(path)
    }
    assert [*outcomes.values()] == [RuleOutcome.MISSED]


def test_every_output_names_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, summary, junit = written(tmp_path), tmp_path / "summary.md", tmp_path / "junit.xml"
    assert main(["test", str(path), "--summary", str(summary), "--junit", str(junit)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"passed  {path}::of the file  {NOTICE}", f"passed  {path}::none"]
    assert NOTICE in summary.read_text(encoding="utf-8")
    assert f'<property name="experiments" value="{NOTICE}" />' in junit.read_text(encoding="utf-8")
    assert main(["test", str(path), "-o", "json"]) == 0
    documents = json.loads(capsys.readouterr().out)["tests"]
    assert [document.get("experiments") for document in documents][:2] == [{"timeShareSeconds": 600}, None]
    path.write_text(path.read_text(encoding="utf-8").replace("preempted: true", "preempted: false"), encoding="utf-8")
    assert main(["test", str(path), "-o", "github", "-k", "of the file"]) == 1
    assert NOTICE in capsys.readouterr().out


def test_the_schema_has_them() -> None:
    schema = policy_test_schema()
    assert schema["properties"]["experiments"] == {"$ref": "#/$defs/experiments"}  # type: ignore[index,call-overload]
    assert "experiments" in schema["$defs"]  # type: ignore[operator]
