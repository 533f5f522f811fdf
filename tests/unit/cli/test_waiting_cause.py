"""Why a workload waits about which Kueue's status says nothing: every command gives the cause, in brackets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from tests.command import JOB, QUEUES, Ran
from tests.quota_manifests import flavor, local_queue, node, queue, workload

# Why Kueue leaves the status empty in most tests here: memory comes before the rest in Kueue's canonical order, and
# fits, so no flavor is at fault. From 0.20.0 on, that has a reason.
BEFORE = "0.20.0-devel"
FITS_IN_PART = QUEUES.replace("coveredResources: [cpu]", "coveredResources: [cpu, memory]").replace(
    "{name: cpu, nominalQuota: 2}", "{name: cpu, nominalQuota: 2}, {name: memory, nominalQuota: 4Gi}"
)
LOCKED = JOB.replace("{cpu: 1}", "{memory: 1Gi, acme.io/dongle: 2}")
CAUSE = "couldn't assign flavors to pod set main: resource acme.io/dongle unavailable in ClusterQueue"
NAMED_SINCE = ("--kueue", "0.20.0")
# In both releases: `few` waits for a place, which has a text, and `fast` has none even on empty nodes, which has a
# reason.
PLACED = f"""---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {{name: hall}}
spec: {{levels: [{{nodeLabel: rack}}]}}
{flavor(spec="{topologyName: hall, nodeLabels: {pool: p}}")}
{node("n", "{pool: p, rack: r1}")}
{queue("a", "nominalQuota: 10")}
{local_queue("a")}
{workload("there", "a", 4)}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {{name: two, namespace: team}}
spec:
  queueName: a
  podSets:
  - {{name: few, count: 3, template: {{spec: {{containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]}}}}}}
  - name: fast
    count: 3
    template: {{spec: {{nodeSelector: {{disk: ssd}}, containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]}}}}
"""
BYPASSED = "(not considered: an equivalent workload ahead of it did not get quota)"


@pytest.fixture(autouse=True)
def _as_kueue_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUEUECORE_KUEUE", BEFORE)


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) in (ExitCode.OK, ExitCode.FOUND)
    return capsys.readouterr().out


def test_a_request_that_nothing_covers_is_the_cause(command: Callable[..., Ran]) -> None:
    lines = command(text=FITS_IN_PART + LOCKED % ("one", 1)).out.splitlines()
    assert [line for line in lines if f"({CAUSE})" in line]
    assert "not considered" not in "\n".join(lines)


def test_the_cause_is_in_json_too(command: Callable[..., Ran]) -> None:
    (workload,) = json.loads(command("in.yaml", "-o", "json", text=FITS_IN_PART + LOCKED % ("one", 1)).out)["workloads"]
    assert (workload["reason"], workload["message"]) == ("", f"({CAUSE})")


def test_since_0_20_kueue_names_it_itself(command: Callable[..., Ran]) -> None:
    ran = command("in.yaml", "-o", "json", *NAMED_SINCE, text=FITS_IN_PART + LOCKED % ("one", 1))
    (workload,) = json.loads(ran.out)["workloads"]
    assert (workload["reason"], workload["message"]) == ("NoMatchingFlavor", CAUSE)


@pytest.mark.parametrize("release", [BEFORE, "0.20.0"])
def test_where_the_pod_set_without_a_text_has_no_place_the_cause_is_named(
    release: str, command: Callable[..., Ran]
) -> None:
    (_, waiting) = json.loads(command("in.yaml", "-o", "json", "--kueue", release, text=PLACED).out)["workloads"]
    cause = "couldn't assign flavors to pod set few: topology \"hall\" doesn't allow to fit any of 3 pod(s)"
    assert waiting["reason"] == ""
    assert waiting["message"].startswith(f"({cause}")
    assert waiting["message"].endswith(")")


def test_the_head_of_a_strict_queue_was_considered(command: Callable[..., Ran]) -> None:
    strict = FITS_IN_PART.replace("namespaceSelector: {}", "namespaceSelector: {}\n  queueingStrategy: StrictFIFO")
    out = command(text=strict + LOCKED % ("one", 1) + JOB % ("two", 1)).out
    assert f"({CAUSE})" in out
    assert "(not considered yet: 1 workload ahead of it in the queue)" in out


def test_only_a_workload_passed_over_is_not_considered(command: Callable[..., Ran]) -> None:
    out = command(text=FITS_IN_PART + LOCKED % ("one", 1) + LOCKED % ("two", 1)).out
    assert (out.count(f"({CAUSE})"), out.count(BYPASSED)) == (1, 1)


def test_a_forecast_names_the_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "state.yaml"
    state.write_text(FITS_IN_PART + LOCKED % ("one", 1), encoding="utf-8")
    out = ran(capsys, "eta", str(state), "one", "-q", "--run-seconds", "1m", "--workers", "1")
    assert out.endswith(f"not even in an empty cluster: ({CAUSE})\n")


def test_what_moves_names_the_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state, job = tmp_path / "state.yaml", tmp_path / "job.yaml"
    state.write_text(FITS_IN_PART, encoding="utf-8")
    job.write_text(LOCKED % ("one", 1), encoding="utf-8")
    out = ran(capsys, "what-if", str(state), "-f", str(job), "--settle")
    assert out.splitlines()[-1].endswith(f"Pending in cq  ({CAUSE})")


def test_a_job_of_a_scenario_says_what_it_waits_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queues.yaml").write_text(FITS_IN_PART, encoding="utf-8")
    (tmp_path / "job.yaml").write_text(LOCKED % ("one", 1), encoding="utf-8")
    scenario = tmp_path / "scenario.yaml"
    head = "apiVersion: kueuecore/v1\nkind: Scenario\nuntil: 1h\ncluster: {objects: [queues.yaml]}\n"
    scenario.write_text(f"{head}work: [{{name: it, job: job.yaml, count: 2, runs: 1m}}]\n", encoding="utf-8")
    document = json.loads(ran(capsys, "simulate", str(scenario), "-q", "-o", "json"))
    assert [job["message"] for job in document["jobs"]] == [f"({CAUSE})"] * 2


def test_a_job_of_a_fleet_says_what_it_waits_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queues.yaml").write_text(FITS_IN_PART, encoding="utf-8")
    (tmp_path / "job.yaml").write_text(LOCKED % ("one", 1), encoding="utf-8")
    cluster = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: MultiKueueCluster\nmetadata: {name: west}\n"
    (tmp_path / "west.yaml").write_text(cluster, encoding="utf-8")
    scenario = tmp_path / "scenario.yaml"
    fleet = "fleet: {manager: {objects: [queues.yaml, west.yaml]}, workers: {west: {objects: [queues.yaml]}}}\n"
    head = f"apiVersion: kueuecore/v1\nkind: Scenario\nuntil: 1h\n{fleet}"
    scenario.write_text(f"{head}work: [{{name: it, job: job.yaml, count: 2, runs: 1m}}]\n", encoding="utf-8")
    document = json.loads(ran(capsys, "simulate", str(scenario), "-q", "-o", "json"))
    assert [job["message"] for job in document["jobs"]] == [f"({CAUSE})"] * 2
