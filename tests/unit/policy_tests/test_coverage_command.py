"""`kueuecore test --coverage`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from kueuecore.cli import main
from kueuecore.cli.coverage_output import percentage
from tests.command import Ran
from tests.policy_test_files import EXAMPLES, HEAD, case, job, write

Run = Callable[..., Ran]
FIELD = "spec.resourceGroups[0].flavors[0]"
ONE = case("{workload: team/one, admitted: true}", f"{{job: {job('one')}}}", "good")
WRONG = case("{workload: team/one, pending: true}", f"{{job: {job('one')}}}", "100% wrong, and so on")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str | Path) -> Ran:
        code = main(["test", *map(str, arguments)])
        return Ran(code, *capsys.readouterr())

    return run


def records(text: str) -> dict[str, dict[str, list[str]]]:
    """An LCOV trace file: by file, the values of each kind of line."""
    found: dict[str, dict[str, list[str]]] = {}
    for record in text.split("end_of_record\n")[:-1]:
        values: dict[str, list[str]] = {}
        for line in record.splitlines():
            kind, colon, value = line.partition(":")
            assert colon
            values.setdefault(kind, []).append(value)
        (file,) = values.pop("SF")
        assert values.pop("TN") == [""]
        found[file] = values
    assert text.endswith("end_of_record\n")
    return found


def test_the_examples(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    ran = run("examples/policy-tests", "--coverage")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith(
        """\
10 passed

FILE                                RULES  MISSED  COVER  MISSING
examples/taking-back/cluster.yaml      11       2    82%  32-33
examples/topology/cluster.yaml          3       0   100%
examples/two-teams/priorities.yaml      1       1     0%  5
examples/two-teams/queues.yaml         10       0   100%
TOTAL                                  25       3    88%

examples/taking-back/cluster.yaml:32: ClusterQueue team-b spec.preemption.reclaimWithinCohort: Any
examples/taking-back/cluster.yaml:33: ClusterQueue team-b spec.preemption.withinClusterQueue: LowerPriority
examples/two-teams/priorities.yaml:5: WorkloadPriorityClass urgent value: 1000
"""
    )


def test_json_says_which_test_exercises_a_rule(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path, WRONG)
    ran = run(file, "--coverage", "-o", "json")
    coverage = json.loads(ran.out)["coverage"]
    queues = str(tmp_path / "queues.yaml")
    counts = {"measurable": 5, "exercised": 3, "missed": 2, "notMeasurable": 0, "percent": 60.0}
    assert {name: coverage[name] for name in counts} == counts
    assert coverage["files"] == [{"file": queues, **counts, "missing": [4, 11]}]
    (nominal,) = (rule for rule in coverage["rules"] if rule["field"].endswith("nominalQuota"))
    assert nominal == {
        "file": queues,
        "line": 14,
        "object": {"kind": "ClusterQueue", "namespace": None, "name": "cq"},
        "field": f"{FIELD}.resources[0].nominalQuota",
        "about": "cpu in default",
        "value": "2",
        "outcome": "exercised",
        "exercisedBy": {"file": str(file), "line": 5, "name": "100% wrong, and so on", "outcome": "failed"},
        "otherValue": "0",
    }
    (unused,) = (rule for rule in coverage["rules"] if rule["object"]["kind"] == "WorkloadPriorityClass")
    assert (unused["outcome"], unused["exercisedBy"], unused["otherValue"]) == ("missed", None, None)
    assert "coverage" not in json.loads(run(file, "-o", "json").out)


def test_lcov_has_a_line_for_each_rule_and_branches_where_there_are_several(run: Run, tmp_path: Path) -> None:
    write(tmp_path, ONE)
    report = tmp_path / "coverage.lcov"
    ran = run(tmp_path, "--coverage", "--coverage-report", f"lcov:{report}")
    assert ran.code == 0
    assert records(report.read_text(encoding="utf-8")) == {
        str(tmp_path / "queues.yaml"): {
            "BRDA": ["14,0,0,1", "14,0,1,1"],
            "BRF": ["2"],
            "BRH": ["2"],
            "DA": ["4,0", "10,1", "11,0", "14,2"],
            "LF": ["4"],
            "LH": ["2"],
        }
    }


def test_lcov_agrees_with_the_json_on_the_examples(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run(EXAMPLES / "policy-tests", "--coverage", "--coverage-report", "lcov", "-o", "json")
    found = records((tmp_path / "coverage.lcov").read_text(encoding="utf-8"))
    files = json.loads(ran.out)["coverage"]["files"]
    assert [*found] == [file["file"] for file in files]
    for file in files:
        lines = {int(line): int(hits) for line, hits in (entry.split(",") for entry in found[file["file"]]["DA"])}
        assert [line for line, hits in lines.items() if not hits] == file["missing"]
        assert int(found[file["file"]]["LF"][0]) == len(lines)
        assert int(found[file["file"]]["LH"][0]) == sum(hits > 0 for hits in lines.values())


def test_github_gets_a_notice_for_each_line_and_an_error_for_each_failure(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path, WRONG)
    ran = run(file, "--coverage", "-o", "github")
    queues = tmp_path / "queues.yaml"
    assert ran.code == 1
    assert ran.out.splitlines() == [
        f"::error file={file},line=9,title=100%25 wrong%2C and so on::"
        "team/one%0A  expected: is pending%0A  got:      admitted in cq with cpu: default",
        "::notice title=coverage::60%25: 5 rules, 3 exercised",
        f"::notice file={queues},line=4,title=not exercised::no test exercises WorkloadPriorityClass high value: 100",
        f"::notice file={queues},line=11,title=not exercised::"
        "no test exercises ClusterQueue cq spec.preemption.withinClusterQueue: LowerPriority",
    ]
    assert run(file, "-o", "github").out.splitlines() == ran.out.splitlines()[:1]


@pytest.mark.parametrize(("percent", "code"), [("0", 0), ("60", 0), ("60%", 0), ("60.000001", 1), ("100", 1)])
def test_too_little_coverage_fails(run: Run, tmp_path: Path, percent: str, code: int) -> None:
    ran = run(write(tmp_path, ONE), "--coverage", "--fail-under", percent)
    assert ran.code == code
    least = f"{float(percent.removesuffix('%')):g}"
    said = f"kueuecore: --fail-under: coverage is 60.00 %, below {least} %\n" if code else ""
    assert ran.err == said


@pytest.mark.parametrize("percent", ["", "-1", "100.1", "101", "nan", "1e2", "half", "50 %"])
def test_a_bad_percentage_is_wrong_usage(run: Run, tmp_path: Path, percent: str) -> None:
    ran = run(write(tmp_path, ONE), "--coverage", f"--fail-under={percent}")
    assert (ran.code, ran.out) == (2, "")
    assert f"--fail-under: {percent!r} is not a percentage from 0 to 100" in ran.err


@pytest.mark.parametrize("report", ["xml", "json:coverage.json", ""])
def test_a_report_is_lcov(run: Run, tmp_path: Path, report: str) -> None:
    ran = run(write(tmp_path, ONE), "--coverage", f"--coverage-report={report}")
    assert (ran.code, ran.out) == (2, "")
    assert f"{report!r} is not lcov or lcov:FILE; for JSON write -o json" in ran.err


@pytest.mark.parametrize("option", ["--fail-under=50", "--coverage-report=lcov"])
def test_options_about_coverage_need_it(run: Run, tmp_path: Path, option: str) -> None:
    ran = run(write(tmp_path, ONE), option)
    assert (ran.code, ran.out) == (2, "")
    assert f"{option.partition('=')[0]}: coverage is not measured; add --coverage" in ran.err


def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(run: Run, tmp_path: Path) -> None:
    ran = run(write(tmp_path, ONE), "--coverage", "--coverage-report", f"lcov:{tmp_path}/none/x.lcov")
    assert (ran.code, ran.out) == (2, "")
    assert "--coverage-report: cannot be written" in ran.err


def test_rules_that_cannot_be_measured_are_named_and_count_neither_way(run: Run, tmp_path: Path) -> None:
    gate = ONE.replace(HEAD, f"{HEAD}featureGates: {{TopologyAwareScheduling: true}}\n")
    ran = run(write(tmp_path, gate), "--coverage", "--coverage-report", f"lcov:{tmp_path}/c.lcov")
    file = tmp_path / "a_test.yaml"
    assert re.search(rf"^{re.escape(str(file))} +0 +0 +100%$", ran.out, re.MULTILINE)
    said = "PolicyTest featureGates.TopologyAwareScheduling: true; not measurable, as no other value is valid"
    assert f"{file}:4: {said}" in ran.out.splitlines()
    assert re.search(r"^TOTAL +5 +2 +60%$", ran.out, re.MULTILINE)
    assert str(file) not in records((tmp_path / "c.lcov").read_text(encoding="utf-8"))


def test_without_rules_there_is_nothing_to_miss(run: Run, tmp_path: Path) -> None:
    text = ONE.replace("[queues.yaml]", "[]").replace("admitted: true", "pending: true")
    file = write(tmp_path, text)
    ran = run(file, "--coverage", "--fail-under", "100", "--coverage-report", f"lcov:{tmp_path}/c.lcov")
    assert ran.code == 0
    assert ran.out.splitlines()[-1].split() == ["TOTAL", "0", "0", "100%"]
    assert (tmp_path / "c.lcov").read_text(encoding="utf-8") == ""


def test_a_file_from_standard_input_is_in_the_table_and_not_in_lcov(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, ONE)
    path = write(tmp_path, ONE.replace("- name", "- manifests: [cohort.yaml]\n  name"))
    (tmp_path / "cohort.yaml").write_text(
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: a}, spec: {parentName: b}}", "utf-8"
    )
    gates = path.read_text(encoding="utf-8").replace(HEAD, f"{HEAD}featureGates: {{PartialAdmission: true}}\n")
    path.write_text(gates, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with path.open(encoding="utf-8") as file:
        monkeypatch.setattr("sys.stdin", file)
        ran = run("-", "--coverage", "--coverage-report", "lcov:c.lcov")
    assert "<stdin>:4: PolicyTest featureGates.PartialAdmission: true" in ran.out.splitlines()
    assert [*records((tmp_path / "c.lcov").read_text(encoding="utf-8"))] == ["cohort.yaml", "queues.yaml"]


@pytest.mark.parametrize(
    ("part", "text"), [(0, "0%"), (1, "1%"), (4, "1%"), (500, "50%"), (999, "99%"), (1000, "100%")]
)
def test_only_everything_is_all(part: int, text: str) -> None:
    assert percentage(Fraction(part, 10)) == text
