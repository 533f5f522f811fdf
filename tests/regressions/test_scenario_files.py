"""Scenario files that were taken although something in them was wrong, or that ended in a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kueuecore.cli import ExitCode, main
from kueuecore.errors import ManifestError
from kueuecore.scenarios import run_scenario
from tests.regressions.scenarios import CLUSTER, EXAMPLES, FLEET, Read, problems


@pytest.mark.parametrize(
    "span",
    ["1.2.3s", ".s", "5s5", "-5s", "soon", '""', "9999999999999h", "9223372037", "-1", "1e30", "true", "{}", "[]"],
)
def test_a_span_that_is_none_is_refused_with_the_limit(read: Read, span: str) -> None:
    with pytest.raises(ManifestError) as error:
        read(CLUSTER + f"work: [{{job: job.yaml, at: {span}}}]\n")
    (problem,) = error.value.problems
    assert problem.field == "work[0].at"
    assert problem.message.startswith("not a duration: ")
    assert problem.remedy == "write seconds such as 90, or a duration such as 1m30s, from 0 to 292 years (2562047h)"


@pytest.mark.parametrize(("span", "seconds"), [("1.5h", 5400), (".5s", 0.5), ("250ms", 0.25), ("90", 90), ("0", 0)])
def test_spans_have_all_units_and_fractions(read: Read, span: str, seconds: float) -> None:
    assert read(CLUSTER + f"work: [{{job: job.yaml, at: {span}}}]\n").work[0].at == seconds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        # Nothing in the mapping was looked at, or it was taken for one that is not there.
        ("metadata: 5\n" + CLUSTER, "metadata: must be a mapping, not a number"),
        ("cluster: {configuration: 5}\n", "cluster.configuration: neither a file nor a mapping"),
        ("cluster: {configuration: []}\n", "cluster.configuration: neither a file nor a mapping"),
        ("cluster: {configuration: false}\n", "cluster.configuration: neither a file nor a mapping"),
        ('cluster: {configuration: ""}\n', 'cluster.configuration: Invalid value: ""'),
        ("cluster: {capacity: {tokyo: }}\n", "cluster.capacity.tokyo: Required value"),
        ("cluster: {capacity: {tokyo: {amounts: {cpu: }}}}\n", "cluster.capacity.tokyo.amounts.cpu: not a quantity"),
        ("cluster: {capacity: {tokyo: {amounts: {cpu: [8]}}}}\n", "cluster.capacity.tokyo.amounts.cpu: not a quantity"),
        (
            "cluster: {capacity: {tokyo: {amounts: {cpu: true}}}}\n",
            "cluster.capacity.tokyo.amounts.cpu: not a quantity",
        ),
        # A file without any object in it is no job, and nothing came.
        (CLUSTER + "work: [{job: empty.yaml}]\n", "work[0].job: 0 objects"),
        (CLUSTER + "work: [{name: a, job: {kind: Job, metadata: 5}}]\n", "metadata: must be a mapping"),
        (CLUSTER + "work: [{name: a, job: {kind: Job, metadata: {name: []}}}]\n", "metadata.name: must be a string"),
        (FLEET + "    north:\n", "fleet.workers.north: Required value"),
        (FLEET + "  policy: {choose: cost, values: {east: }}\n", "fleet.policy.values.east: Required value"),
        (FLEET + "  policy: {overrides: {east: }}\n", "fleet.policy.overrides.east: Required value"),
        (FLEET + "  overflow: {queues: {here: }}\n", "fleet.overflow.queues.here: Required value"),
        # A run took one sample after the other, and time hardly went on.
        (
            "cluster: {configuration: {admissionFairSharing: {usageSamplingInterval: 1ns}}}\n",
            "cluster.configuration.admissionFairSharing.usageSamplingInterval: Invalid value: 1ns",
        ),
        # A group without levels has no nodes, and no names for them.
        (
            "cluster: {nodes: [{name: 'n', levels: [], capacity: {cpu: 1}}]}\n",
            "cluster.nodes[0].levels: Required value",
        ),
        # The name of a file that is a directory: all that is in it was read.
        ('cluster: {objects: [""]}\n', 'cluster.objects[0]: Invalid value: ""'),
        # More than a double can hold, and what no file can be called, ended in a traceback.
        (
            "cluster: {capacity: {tokyo: {refused: " + "9" * 309 + "}}}\n",
            "cluster.capacity.tokyo.refused: must be a number, not a string",
        ),
        ('cluster: {objects: ["a\\0b"]}\n', 'cluster.objects[0]: Invalid value: "a\\x00b"'),
        (CLUSTER + 'work: [{job: "a\\0b"}]\n', 'work[0].job: Invalid value: "a\\x00b"'),
        ('cluster: {configuration: "a\\0b"}\n', 'cluster.configuration: Invalid value: "a\\x00b"'),
    ],
)
def test_a_field_of_the_wrong_type_is_refused(read: Read, text: str, problem: str) -> None:
    assert problem in problems(read, text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("    north: {objects: []}\n", "workers.north: the manager has no MultiKueueCluster of this name"),
        ('    "": {objects: []}\n', "workers: a worker without a name"),
        ("  overflow: {queues: {here: there}}\n", 'overflow.queues.here: the manager has no LocalQueue "there"'),
        ('  overflow: {queues: {"": user-queue}}\n', "overflow.queues: a LocalQueue without a name"),
        ("  policy: {startWithin: 1m, mostAttempts: 101}\n", "policy.mostAttempts: Invalid value: 101"),
        ("  policy: {choose: cost, round: 0s}\n", "policy.round: Invalid value: 0"),
    ],
)
def test_what_could_never_come_to_anything_in_a_fleet_is_refused(read: Read, text: str, problem: str) -> None:
    assert f"fleet.{problem}" in problems(read, FLEET + text)


def test_a_value_in_an_error_is_short_and_in_one_line(read: Read) -> None:
    escape = problems(read, 'cluster: {}\nstart: "\\e[31mred\\n\\u202e"\n')
    assert escape == ['start: Invalid value: "\\x1b[31mred\\n\\u202e"']
    (long,) = problems(read, f"cluster: {{}}\nstart: {'x' * 10_000}\n")
    assert long == f'start: Invalid value: "{"x" * 253}..."'


def test_the_annotation_of_run_times_is_checked_before_anything_runs(read: Read) -> None:
    job: dict[str, Any] = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "a", "namespace": "team"}}
    job["metadata"]["annotations"] = {"fleet.kueuecore/run-seconds": "soon"}
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "user-queue"}
    (problem,) = problems(read, FLEET + f"work: [{{job: {job}, at: 1h}}]\n")
    assert problem == "metadata.annotations[fleet.kueuecore/run-seconds]: Invalid value: 'soon'"


def test_a_kind_of_somebody_else_is_no_job_of_a_fleet(read: Read) -> None:
    job = "{apiVersion: example.com/v1, kind: Job, metadata: {name: a, namespace: team}}"
    assert problems(read, FLEET + f"work: [{{job: {job}}}]\n") == [": jobs of this kind cannot run in a fleet"]


def test_amounts_of_a_region_may_be_fractions(read: Read) -> None:
    scenario = read("cluster: {capacity: {tokyo: {amounts: {cpu: 1.5}}}}\n")
    assert scenario.cluster.capacity["tokyo"].amounts == {"cpu": "1.5"}


def test_what_is_odd_is_a_warning_for_each_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # They were dropped: a typo gave other waiting times without a word.
    for name in ("queues.yaml", "job.yaml", "scenario.yaml"):
        text = (EXAMPLES / "scenario" / name).read_text(encoding="utf-8")
        odd = text.replace("parallelism", "paralelism").replace("cohortName", "cohrt")
        (tmp_path / name).write_text(odd, encoding="utf-8")
    with (tmp_path / "queues.yaml").open("a", encoding="utf-8") as file:
        file.write("---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}\n")
    assert main(["simulate", str(tmp_path / "scenario.yaml")]) == ExitCode.OK
    reported = capsys.readouterr().err.replace(f"{tmp_path}/", "").splitlines()
    assert reported == [
        'warning: job.yaml:8 (document 1): spec.paralelism: unknown field "spec.paralelism"',
        'warning: scenario.yaml:14 (document 1): spec.paralelism: unknown field "spec.paralelism"',
        'warning: queues.yaml:14 (document 3): spec.cohrt: unknown field "spec.cohrt"',
        'warning: queues.yaml:25 (document 4): spec.cohrt: unknown field "spec.cohrt"',
        "warning: these kinds are not read: ConfigMap (1)",
    ]


def test_a_scenario_ends_when_it_is_to_end(read: Read) -> None:
    scenario = read(CLUSTER + "until: 10m\nwork: [{job: job.yaml, count: 100, every: 10s, runs: 1m}]\n")
    outcome = run_scenario(scenario)
    assert outcome.end - outcome.start == 600_000_000_000
