"""`kueuecore history` of a workload that was preempted in a cluster that `kueuecore serve` schedules."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore.cli import ExitCode, main
from kueuecore.kubernetes import Api, Process
from kueuecore.kubernetes.json_logs import logged_to
from kueuecore_apiserver import HttpApiServer
from tests.unit.kubernetes.clusters import job, served, started, wait_for
from tests.unit.kubernetes.test_process import created, running

LIFE = ["Created", "QuotaReserved", "Admitted", "JobStarted", "Preempted", "JobStopped", "QuotaReleased", "Requeued"]


def played(server: HttpApiServer) -> tuple[str, str]:
    """Let a job take back what another has borrowed; returns the keys of victim and preemptor."""
    process = Process(Api.connect(server=server.url), configuration=Configuration())
    with running(process) as failures:
        created(server, job("big", "a", cpu=6))
        wait_for(lambda: "big" in started(server), "the first starts")
        created(server, job("mine", "b", cpu=4))
        wait_for(lambda: "mine" in started(server), "the second starts")
        reasons = {"Stopped", "PreemptedWorkload", "Preempted"}
        wait_for(
            lambda: reasons <= {event["reason"] for event in server.call(lambda api: api.list("Event")[0])},
            "the events are there",
        )
    assert not failures
    names = {entry["metadata"]["ownerReferences"][0]["name"]: entry for entry in server.api.list("Workload")[0]}
    return tuple(f"lab/{names[name]['metadata']['name']}" for name in ("big", "mine"))  # type: ignore[return-value]


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["history", *arguments, "-o", "json"]) == ExitCode.OK
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_victim_is_told_by_whom_from_the_cluster_a_dump_or_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = io.StringIO()
    with served() as server, logged_to(log, level="info"):
        victim, preemptor = played(server)
        found = document(capsys, "Job/lab/big", "--server", server.url)
        kinds = ("ResourceFlavor", "ClusterQueue", "LocalQueue", "Workload", "Event")
        items = [plain for kind in kinds for plain in server.api.list(kind)[0]]
    assert found["workload"] == {"namespace": "lab", "name": victim.partition("/")[2], "status": "Pending"}
    assert [step["what"] for step in found["steps"] if step["what"] != "Waiting"] == LIFE
    (preempted,) = [step for step in found["steps"] if step["what"] == "Preempted"]
    assert (preempted["by"], preempted["rule"], preempted["reason"]) == (preemptor, "04 §4.1", "InCohortReclamation")
    assert preempted["sentence"] == f"preempted by {preemptor}: b takes back quota of its own that a has borrowed"
    assert preempted["link"] == "docs/rules/04-preemption.md"
    assert found["notRecorded"] == []

    # A dump of the same says the same.
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    assert document(capsys, "-q", str(dump), "--trusted", victim) == found

    # So does the log, once the Events are gone.
    late = [plain for plain in items if plain["kind"] != "Event"]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": late}), encoding="utf-8")
    journal = tmp_path / "serve.log"
    journal.write_text(log.getvalue(), encoding="utf-8")
    logged = document(capsys, "-q", str(dump), "--trusted", victim, "--journal", str(journal))
    assert [step["what"] for step in logged["steps"] if step["what"] != "Waiting"] == LIFE
    assert {source.partition(" ")[0] for step in logged["steps"] for source in step["sources"]} >= {"condition", "log"}
    only = document(capsys, "-q", str(dump), "--trusted", victim)
    assert [step["what"] for step in only["steps"] if step["what"] != "Waiting"] == [
        "Created",
        "Preempted",
        "QuotaReleased",
        "Requeued",
    ]
    assert only["notRecorded"] == ["no Events about it are known: conditions hold only the last change of each kind"]
