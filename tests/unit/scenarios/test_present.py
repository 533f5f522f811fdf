"""Scenarios that begin with a dump of a cluster."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kueuecore.cli import main
from kueuecore.errors import ManifestError
from kueuecore.manifests import parse_manifests
from kueuecore.scenarios import Scenario, ScenarioOutcome, run_scenario
from tests.regressions.scenarios import EXAMPLES, Read, problems

DUMP = "cluster: {objects: [dump.yaml]}\n"
# In the dump of two teams, four Workloads run and three wait, one of them forever.


@pytest.fixture
def dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """Writes what `kueuecore run` says of an example."""

    def dump(example: str = "two-teams", *arguments: str) -> None:
        main(["run", str(EXAMPLES / example), "-o", "yaml", *arguments])
        (tmp_path / "dump.yaml").write_text(capsys.readouterr().out, encoding="utf-8")

    return dump


def finished(outcome: ScenarioOutcome) -> dict[str, float | None]:
    """When the jobs ended, in seconds from the beginning."""
    return {job.job: None if job.finished is None else (job.finished - outcome.start) / 1e9 for job in outcome.jobs}


def test_running_workloads_continue_and_pending_ones_follow(read: Read, dump: Callable[..., None]) -> None:
    dump()
    outcome = run_scenario(read(DUMP + "present: {runs: 10m, waitingRuns: 1m}\n"))
    assert finished(outcome) == {
        "Job/release-build": 660,
        "Job/benchmark": 660,
        "Workload/everything-at-once": None,
    }
    assert {job.work for job in outcome.jobs} == {"present"}
    assert outcome.warnings == ()


def test_each_job_runs_for_its_drawn_time(read: Read, dump: Callable[..., None]) -> None:
    dump()
    runs = "{values: [100, 200, 300, 400], inOrder: true}"
    outcome = run_scenario(read(DUMP + f"present: {{runs: {runs}, waitingRuns: 1}}\n"))
    # Quota comes back bit by bit.
    assert finished(outcome) == {"Job/release-build": 101, "Job/benchmark": 201, "Workload/everything-at-once": None}


def test_by_default_they_run_forever_and_a_warning_counts_them(read: Read, dump: Callable[..., None]) -> None:
    dump()
    outcome = run_scenario(read(DUMP))
    assert (tuple(outcome.jobs), outcome.warnings) == (
        (),
        (
            "4 of the Workloads that hold quota at the start run forever; write `present.runs`",
            "3 of the Workloads that wait at the start run forever; write `present.waitingRuns`",
        ),
    )


def test_new_work_waits_behind_what_runs(read: Read, dump: Callable[..., None]) -> None:
    dump()
    job = "{name: new, job: {apiVersion: batch/v1, kind: Job, metadata: {namespace: team-a, labels: "
    job += "{kueue.x-k8s.io/queue-name: jobs}}, spec: {template: {spec: {restartPolicy: Never, containers: "
    job += "[{name: m, resources: {requests: {cpu: 2}}}]}}}}, runs: 60}"
    outcome = run_scenario(read(DUMP + f"present: {{runs: 10m, waitingRuns: 1m}}\nwork: [{job}]\n"))
    # Of those that wait it is the last.
    assert finished(outcome)["Job/new"] == 720


def test_a_scenario_from_a_dump_starts_at_its_time(read: Read, dump: Callable[..., None]) -> None:
    dump("two-teams", "--now", "2026-05-05T05:05:05Z")
    assert run_scenario(read(DUMP + "present: {runs: 1m}\n")).start == 1777957505 * 10**9
    assert read("start: 2027-01-01T00:00:00Z\n" + DUMP + "present: {runs: 1m}\n").start == 1798761600 * 10**9


def test_a_list_as_kubectl_writes_it_is_a_dump(read: Read, dump: Callable[..., None], tmp_path: Path) -> None:
    dump()
    items: list[Any] = [
        manifest.object for manifest in parse_manifests((tmp_path / "dump.yaml").read_text(encoding="utf-8"))
    ]
    for number, item in enumerate(items):
        item["metadata"] |= {
            "resourceVersion": str(number),
            "managedFields": [{"manager": "kubectl", "operation": "Update", "apiVersion": "v1"}],
        }
        if item["kind"] == "Job":
            item["status"] = {"active": 1, "startTime": "2026-01-01T00:00:00Z", "ready": 1}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items})
    (tmp_path / "dump.yaml").write_text(text, encoding="utf-8")
    outcome = run_scenario(read(DUMP + "present: {runs: 10m, waitingRuns: 1m}\n"))
    assert (finished(outcome)["Job/benchmark"], outcome.warnings) == (660, ())


def test_pods_that_have_their_nodes_keep_them(read: Read, dump: Callable[..., None]) -> None:
    dump("topology")
    scenario = read(DUMP + "present: {runs: 10m, waitingRuns: 1m}\n")
    outcome = run_scenario(scenario)
    # Only once they are gone there is a place for it.
    assert finished(outcome)["Job/distill"] == pytest.approx(660, abs=1)


def test_another_seed_gives_other_runs(read: Read, dump: Callable[..., None]) -> None:
    dump()

    def ends(seed: int) -> dict[str, float | None]:
        scenario: Scenario = read(f"seed: {seed}\n{DUMP}present: {{runs: {{mean: 10m}}, waitingRuns: 1m}}\n")
        return finished(run_scenario(scenario))

    assert ends(1) == ends(1) != ends(2)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("present: {run: 5}", "present.run: unknown field"),
        ("present: {runs: soon}", 'present.runs: not a duration: "soon"'),
        ("present: {waitingRuns: {gamma: 5}}", "present.waitingRuns.gamma: must be a mapping, not a number"),
        ("present: 5", "present: must be a mapping, not a number"),
    ],
)
def test_problems_of_the_present_name_the_field(read: Read, dump: Callable[..., None], text: str, wrong: str) -> None:
    dump()
    assert wrong in problems(read, f"{DUMP}{text}\n")


def test_a_run_beyond_the_end_of_time_is_refused(read: Read, dump: Callable[..., None]) -> None:
    dump()
    (problem,) = problems(read, f"{DUMP}present: {{runs: 100000d}}\n")
    assert problem.startswith("present.runs: ")


def test_a_fleet_has_no_present(read: Read) -> None:
    text = "fleet: {manager: {}, workers: {}}\npresent: {runs: 5}\n"
    assert "present: only applies in a scenario of one cluster" in problems(read, text)


def test_a_workload_that_is_given_twice_is_one(read: Read, dump: Callable[..., None]) -> None:
    dump()
    text = "present: {runs: 10m, waitingRuns: 1m}\n"
    once = run_scenario(read(DUMP + text))
    twice = run_scenario(read("cluster: {objects: [dump.yaml, dump.yaml]}\n" + text))
    assert tuple(twice.jobs) == tuple(once.jobs)


def test_workloads_that_run_forever_are_not_jobs_of_the_scenario(read: Read, dump: Callable[..., None]) -> None:
    dump()
    work = "work: [{name: new, job: job.yaml, count: 2, runs: 60}]\n"
    outcome = run_scenario(read(DUMP + "present: {waitingRuns: 1m}\n" + work))
    assert [job.job for job in outcome.jobs][-2:] == ["Job/new-1", "Job/new-2"]
    assert {job.created for job in outcome.jobs} == {outcome.start}


def test_evictions_of_initial_workloads_are_noted(read: Read, dump: Callable[..., None]) -> None:
    dump()
    # A ClusterQueue that admits nothing any more gives up what it has admitted.
    stop = "{at: 1m, patch: {kind: ClusterQueue, name: team-b, patch: {spec: {stopPolicy: HoldAndDrain}}}}"
    outcome = run_scenario(read(DUMP + f"present: {{runs: 10m, waitingRuns: 1m}}\ntimetable: [{stop}]\n"))
    (note,) = (note for note in outcome.notes if "evicted" in note)
    assert note.startswith("2 initial Workloads that are not in these tables were evicted")


def test_problems_of_a_pending_workload_have_its_line(read: Read, dump: Callable[..., None], tmp_path: Path) -> None:
    dump()
    path = tmp_path / "dump.yaml"
    text = path.read_text(encoding="utf-8")
    assert "    count: 4\n" in text
    line = text[: text.index("    count: 4\n")].count("\n") + 1
    path.write_text(text.replace("    count: 4\n", "    count: four\n"), encoding="utf-8")
    with pytest.raises(ManifestError) as error:
        run_scenario(read(DUMP + "present: {runs: 10m, waitingRuns: 1m}\n"))
    problem = error.value.problems[0]
    assert (problem.file, problem.line, problem.field) == (str(path), line, "spec.podSets[0].count")


def test_a_dump_may_come_from_standard_input(
    read: Read, dump: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump()
    monkeypatch.setattr("sys.stdin", io.StringIO((tmp_path / "dump.yaml").read_text(encoding="utf-8")))
    outcome = run_scenario(read("cluster: {objects: ['-']}\npresent: {runs: 10m, waitingRuns: 1m}\n"))
    assert finished(outcome)["Job/benchmark"] == 660


def test_standard_input_is_read_once(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    found = problems(read, "cluster: {objects: ['-', '-']}\n")
    assert found == ["cluster.objects[1]: standard input was read before"]


def test_an_empty_dump_of_a_failed_command_is_refused(read: Read, tmp_path: Path) -> None:
    (tmp_path / "dump.yaml").write_text("", encoding="utf-8")
    with pytest.raises(ManifestError) as caught:
        read("cluster: {objects: [dump.yaml]}\npresent: {runs: 1h}\n")
    (problem,) = caught.value.problems
    assert (problem.field, problem.message) == ("cluster.objects[0]", 'the file "dump.yaml" is empty')
    assert problem.remedy.endswith("kubectl writes nothing if it does not know a kind: leave that kind out")
    (tmp_path / "dump.yaml").write_text("# Nothing yet.\n", encoding="utf-8")
    assert read("cluster: {objects: [dump.yaml]}\n").cluster is not None
