"""What the command reads, and what it says of wrong input."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kueuecore.cli import ExitCode, main
from tests.command import JOB, QUEUES, Ran


def test_jobs_become_workloads_and_queue_in_the_order_of_the_file(command: Callable[..., Ran]) -> None:
    ran = command("in.yaml", "-o", "json", text=QUEUES + JOB % ("z", 2) + JOB % ("a", 2))
    document = json.loads(ran.out)
    assert {workload["owner"]: workload["status"] for workload in document["workloads"]} == {
        "Job/z": "Admitted",
        "Job/a": "Pending",
    }


def test_standard_input_is_read(command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(QUEUES.encode())))
    assert "cq " in command("-").out


def test_a_compressed_file_is_unpacked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "queues.yaml.gz").write_bytes(gzip.compress(QUEUES.encode()))
    (folder / "jobs.json.gz").write_bytes(gzip.compress(json.dumps(yaml.safe_load(JOB % ("a", 1))).encode()))
    (folder / "log.csv.gz").write_bytes(gzip.compress(b"a,b,c"))
    assert main(["run", str(folder)]) == ExitCode.OK
    assert "1 workload: 1 Admitted" in capsys.readouterr().out


@pytest.mark.parametrize("data", [gzip.compress(QUEUES.encode())[:-9], b"\x1f\x8b", b"\x1f\x8b\x08\x00" + b"x" * 40])
def test_a_damaged_compressed_file_is_an_error(data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "state.json.gz"
    path.write_bytes(data)
    assert main(["run", str(path)]) == ExitCode.BAD_INPUT
    assert f"{path}: cannot be read: the compressed file is " in capsys.readouterr().err


def test_missing_namespaces_are_added_and_reported(command: Callable[..., Ran]) -> None:
    ran = command(text=QUEUES + JOB % ("a", 1))
    assert ran.err == "note: added the Namespaces that the objects are in: team\n"
    assert "1 Admitted" in ran.out
    assert command("in.yaml", "-q", text=QUEUES).err == ""


def test_a_dump_is_taken_as_it_is(command: Callable[..., Ran]) -> None:
    ran = command("in.yaml", "--trusted", text=QUEUES + JOB % ("a", 1))
    assert ran.err == ""
    assert 'workload namespace "team" does not exist' in ran.out


def test_kinds_that_are_not_read_are_named_once(command: Callable[..., Ran]) -> None:
    foreign = "\n---\n{apiVersion: v1, kind: Service, metadata: {name: %s}}"
    other = "\n---\n{apiVersion: serving.knative.dev/v1, kind: Configuration, metadata: {name: a}}"
    ran = command(text=QUEUES + foreign % "a" + foreign % "b" + other)
    assert "warning: these kinds are not read: Configuration (1), Service (2)\n" in ran.err


def test_an_object_given_twice_is_reported_unless_it_is_the_same(command: Callable[..., Ran]) -> None:
    assert "last one counts" not in command(text=f"{QUEUES}---{QUEUES}").err
    ran = command(text=f"{QUEUES}---{QUEUES.replace('nominalQuota: 2', 'nominalQuota: 3')}")
    assert 'ClusterQueue "cq": it is also in' in ran.err
    assert ran.err.count("; the last one counts") == 1


def test_the_error_for_a_change_that_is_refused_says_where_the_object_is_given_before(
    command: Callable[..., Ran], tmp_path: Path
) -> None:
    (tmp_path / "other.yaml").write_text(QUEUES.replace("name: cq}", "name: z}").replace("Queue: cq}", "Queue: z}"))
    ran = command("in.yaml", "other.yaml", text=QUEUES)
    assert (ran.code, ran.err) == (
        ExitCode.BAD_INPUT,
        'other.yaml:16 (document 3): LocalQueue "team/lq": spec.clusterQueue: Invalid value: "z": field is immutable; '
        "it is also in in.yaml:13 (document 3), with another value: keep one, or give one of the files at a time\n"
        "kueuecore: 1 problem, nothing was decided\n",
    )


def test_the_error_for_a_kind_of_another_group_names_its_group(command: Callable[..., Ran]) -> None:
    ran = command(text="{apiVersion: kueue.sigs.k8s.io/v1, kind: Cohort, metadata: {name: a}}")
    assert "these kinds are not read: Cohort (1); a Cohort is read as kueue.x-k8s.io/v1beta2" in ran.err


def test_the_error_for_a_misspelled_gate_suggests_the_right_one(command: Callable[..., Ran]) -> None:
    ran = command("in.yaml", "--feature-gates", "PartialAdmision=true", text=QUEUES)
    assert "unrecognized feature gate: PartialAdmision; write PartialAdmission" in ran.err


def test_a_removed_gate_is_reported_with_the_version_that_removed_it(command: Callable[..., Ran]) -> None:
    ran = command("in.yaml", "--feature-gates", "FlavorFungibilityImplicitPreferenceDefault=true", text=QUEUES)
    assert ran.code == ExitCode.BAD_INPUT
    assert "; Kueue 0.17 removed it; leave it out, and set spec.flavorFungibility.preference" in ran.err
    assert "PreserveScanProgress" not in ran.err


def test_an_unknown_gate_without_a_similar_name_gets_no_suggestion(command: Callable[..., Ran]) -> None:
    ran = command("in.yaml", "--feature-gates", "FlavorFungibilityNeverHeardOf=true", text=QUEUES)
    assert "FlavorFungibilityNeverHeardOf; write one of those that `kueuecore gates` lists" in ran.err


def test_a_job_that_an_api_server_would_reject_is_reported_with_the_cause(command: Callable[..., Ran]) -> None:
    nameless = command(text=QUEUES + (JOB % ("a", 1)).replace("name: a, ", ""))
    assert "metadata.name: Required value: name or generateName is required; give it a name" in nameless.err
    number = command(text=QUEUES + (JOB % ("a", 1)).replace("queue-name: lq", "queue-name: 5"))
    assert 'in body must be of type string: "integer"; write "5"' in number.err
    assert (nameless.code, number.code) == (ExitCode.BAD_INPUT, ExitCode.BAD_INPUT)


def test_a_job_without_a_queue_is_reported(command: Callable[..., Ran]) -> None:
    job = (JOB % ("a", 1)).replace(", labels: {kueue.x-k8s.io/queue-name: lq}", "")
    ran = command(text=QUEUES + job)
    assert 'note: Job "team/a": it has no label kueue.x-k8s.io/queue-name; it gets no Workload\n' in ran.err
    assert "not read" not in ran.err


def test_a_duplicate_key_is_a_warning_in_objects_of_any_kind_unless_reading_is_strict(
    command: Callable[..., Ran],
) -> None:
    doubled = QUEUES.replace(
        "namespaceSelector: {}", "namespaceSelector: {matchLabels: {a: b}}\n  namespaceSelector: {}"
    )
    text = f"{doubled}\n---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{a: 1, a: 2}}\n"
    ran = command("in.yaml", text=text + "---" + JOB % ("a", 1))
    assert (ran.code, "1 Admitted" in ran.out) == (ExitCode.OK, True)
    assert re.findall(r"^warning: in\.yaml:\d+:\d+ (.*duplicate key.*)", ran.err, re.M) == [
        '(document 2): ClusterQueue "cq": spec.namespaceSelector: duplicate key: the last one counts; '
        "remove one of them: the first is on line 8",
        '(document 4): Secret "s": stringData.a: duplicate key: the last one counts; '
        "remove one of them: the first is on line 23",
    ]
    strict = command("in.yaml", "--strict", text=text)
    assert strict.code == ExitCode.BAD_INPUT
    assert strict.err.count("duplicate key; remove one of them") == 2


def test_an_unknown_field_is_a_warning_with_its_line(command: Callable[..., Ran]) -> None:
    ran = command(
        text=QUEUES + "\n---\n" + QUEUES.split("---")[2].replace("clusterQueue", "clusterQeue: x, clusterQueue")
    )
    assert re.search(r"^warning: in\.yaml:\d+ \(document 4\): LocalQueue \"team/lq\": .*clusterQeue", ran.err, re.M)


def test_now_defaults_to_the_newest_time_in_the_objects(command: Callable[..., Ran]) -> None:
    dated = QUEUES.replace("{name: cq}", '{name: cq, creationTimestamp: "2026-03-01T00:00:00Z"}')
    assert json.loads(command("in.yaml", "-o", "json", text=dated).out)["now"] == "2026-03-01T00:00:00Z"
    assert json.loads(command("in.yaml", "-o", "json", text=QUEUES).out)["now"] == "1970-01-01T00:00:00Z"
    chosen = command("in.yaml", "-o", "json", "--now", "2027-01-01T00:00:00Z", text=dated)
    assert json.loads(chosen.out)["now"] == "2027-01-01T00:00:00Z"


def test_configuration_and_gates_affect_the_outcome(command: Callable[..., Ran]) -> None:
    job = (JOB % ("a", 5)).replace("labels:", 'annotations: {kueue.x-k8s.io/job-min-parallelism: "1"}, labels:')
    assert "2 of 5" in command(text=QUEUES + job).out
    assert "1 Pending" in command("in.yaml", "--feature-gates", "PartialAdmission=false", text=QUEUES + job).out
    settings = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfeatureGates: {PartialAdmission: false}"
    Path("config").write_text(settings, encoding="utf-8")
    assert "1 Pending" in command("in.yaml", "--config", "config", text=QUEUES + job).out
