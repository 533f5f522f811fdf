"""`kueuecore simulate`: scenarios in, tables and JSON out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kueuecore.cli import ExitCode, main
from tests.command import QUEUES

HEAD = "apiVersion: kueuecore/v1\nkind: Scenario\n"
# Two cpus, and jobs that need both.
SCENARIO = (
    HEAD
    + """
seed: 3
cluster: {objects: [queues.yaml]}
work:
- job:
    apiVersion: batch/v1
    kind: Job
    metadata: {name: both, namespace: team, labels: {kueue.x-k8s.io/queue-name: lq}}
    spec:
      parallelism: 2
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, resources: {requests: {cpu: 1}}}]
  count: 3
  every: 10
  runs: 1m
"""
)


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def simulate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs `kueuecore simulate` on a text, beside a file of queues."""
    monkeypatch.chdir(tmp_path)
    Path("queues.yaml").write_text(QUEUES, encoding="utf-8")

    def run(text: str, *arguments: str) -> Ran:
        Path("scenario.yaml").write_text(text, encoding="utf-8")
        code = main(["simulate", "scenario.yaml", *arguments])
        return Ran(code, *capsys.readouterr())

    return run


def document(ran: Ran) -> Any:
    assert ran.code == ExitCode.OK, ran.err
    return json.loads(ran.out)


def test_jobs_wait_for_one_another(simulate: Callable[..., Ran]) -> None:
    reported = document(simulate(SCENARIO, "-o", "json"))
    assert [job["waitSeconds"] for job in reported["jobs"]] == [0, 50, 100]
    assert [job["job"] for job in reported["jobs"]] == ["Job/both-1", "Job/both-2", "Job/both-3"]
    assert reported["clusterQueues"] == [
        {
            "name": "cq",
            "jobs": 3,
            "admitted": 3,
            "finished": 3,
            "failed": 0,
            "waitSeconds": {"min": 0, "mean": 50, "p95": 100, "max": 100},
            "evictions": 0,
            "nodeReplacements": 0,
            "nodeEvictions": 0,
            "copies": 0,
            "wastedCopies": 0,
            "copyWaitSeconds": 0,
        }
    ]


def test_each_job_stands_in_the_table_unless_there_are_many(simulate: Callable[..., Ran]) -> None:
    few, many = SCENARIO, SCENARIO.replace("count: 3", "count: 31").replace("runs: 1m", "runs: 1s")
    assert "team/both-2  cq                 10s     1m00s     50s     2m00s" in simulate(few).out
    assert "team/both-2" not in simulate(many).out
    assert "team/both-2 " in simulate(many, "-o", "wide").out


def test_the_seed_determines_all_draws(simulate: Callable[..., Ran]) -> None:
    drawn = SCENARIO.replace("every: 10", "every: {mean: 10}").replace("runs: 1m", "runs: {from: 10, to: 1m}")
    first, again, other = (simulate(drawn, "-o", "wide", "--seed", seed).out for seed in ("1", "1", "2"))
    assert first == again != other


def test_other_work_does_not_change_what_is_drawn(simulate: Callable[..., Ran]) -> None:
    drawn = SCENARIO.replace("every: 10", "every: {mean: 10}")
    entry = drawn.partition("work:\n")[2]
    more = document(simulate(drawn + entry.replace("both", "more"), "-o", "json"))
    alone = document(simulate(drawn, "-o", "json"))
    created = [job["created"] for job in more["jobs"] if job["work"] == "both"]
    assert created == [job["created"] for job in alone["jobs"]]


def test_jobs_are_named_after_their_work(simulate: Callable[..., Ran]) -> None:
    entry = SCENARIO.partition("work:\n")[2]
    named = SCENARIO + entry.replace("- job:", "- name: other\n  job:")
    reported = document(simulate(named, "-o", "json"))
    assert sorted({job["job"] for job in reported["jobs"]})[::3] == ["Job/both-1", "Job/other-1"]
    assert [(row["name"], row["jobs"]) for row in reported["work"]] == [("both", 3), ("other", 3)]


def test_two_jobs_with_the_same_name_are_refused(simulate: Callable[..., Ran]) -> None:
    entry = SCENARIO.partition("work:\n")[2]
    ran = simulate(SCENARIO + entry.replace("- job:", "- name: both-2\n  job:").replace("  count: 3\n", ""))
    assert ran.code == ExitCode.BAD_INPUT
    assert 'Job "team/both-2": metadata.name: work both and work both-2 both have a job of this name' in ran.err


def test_a_scenario_ends_at_its_until(simulate: Callable[..., Ran]) -> None:
    ran = simulate(SCENARIO + "until: 65s\n", "-o", "json")
    reported = document(ran)
    assert reported["end"] == "2026-01-01T00:01:05Z"
    assert [job["admitted"] is not None for job in reported["jobs"]] == [True, True, False]
    assert simulate(SCENARIO + "until: 65s\n", "--fail-on-pending").code == ExitCode.PENDING
    assert simulate(SCENARIO, "--fail-on-pending").code == ExitCode.OK


PROVISIONED = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: cloud}
spec:
  controllerName: kueue.x-k8s.io/provisioning-request
  parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: cloud}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ProvisioningRequestConfig
metadata: {name: cloud}
spec: {provisioningClassName: queued-provisioning.gke.io, managedResources: [cpu]}
"""


@pytest.mark.parametrize("until", ["", "until: 1h\n"])
def test_checks_of_provisioning_wait_for_capacity(simulate: Callable[..., Ran], until: str) -> None:
    strategy = "  admissionChecksStrategy: {admissionChecks: [{name: cloud}]}\n"
    checked = QUEUES.replace("  resourceGroups", f"{strategy}  resourceGroups")
    located = "metadata: {name: default}, spec: {nodeLabels: {topology.kubernetes.io/region: tokyo}}}"
    Path("cloud.yaml").write_text(checked.replace("metadata: {name: default}}", located) + PROVISIONED)
    capacity = "cluster: {objects: [cloud.yaml], capacity: {tokyo: {amounts: {cpu: 2}, delay: 1m}}}\n"
    reported = document(
        simulate(SCENARIO.replace("cluster: {objects: [queues.yaml]}\n", capacity) + until, "-o", "json")
    )
    # A minute until nodes come, for each of them.
    assert [job["waitSeconds"] for job in reported["jobs"]] == [60, 170, 280]


def test_everything_wrong_with_a_scenario_is_reported_with_a_remedy(simulate: Callable[..., Ran]) -> None:
    ran = simulate(
        HEAD
        + """
sed: 1
start: today
cluster: {objects: [nothing.yaml, 7]}
work:
- {job: {kind: Job, metadata: {}}, count: 0, runs: {from: 5, to: 1}}
- {every: soon}
"""
    )
    assert ran.code == ExitCode.BAD_INPUT
    assert ran.err.splitlines() == [
        'scenario.yaml:5: start: Invalid value: "today"; '
        'write a time from 1970 to April 2262, such as "2026-01-01T00:00:00Z"',
        "nothing.yaml: there is no such file; check the name",
        "scenario.yaml:6: cluster.objects[1]: neither a file nor an object; name a file, or write an object",
        "scenario.yaml:8: work[0].name: Required value; write a name for the jobs",
        "scenario.yaml:8: work[0].count: Invalid value: 0; write a whole number from 1 to 1000000",
        "scenario.yaml:8: work[0].runs: not a duration; write seconds, a duration, {mean: 30s} or {from: 10s, to: 5m}",
        "scenario.yaml:9: work[1].job: Required value; name a file with a job, or write the job itself",
        'scenario.yaml:9: work[1].every: not a duration: "soon"; '
        "write seconds such as 90, or a duration such as 1m30s, from 0 to 292 years (2562047h)",
        "scenario.yaml:4: sed: unknown field; write seed",
        "kueuecore: 9 problems, nothing was decided",
    ]


def test_everything_wrong_with_a_fleet_is_reported_with_a_remedy(simulate: Callable[..., Ran]) -> None:
    ran = simulate(
        HEAD
        + """
fleet:
  workers:
    west: {objects: [queues.yaml], startsPods: maybe, link: {leastMs: 9, mostMs: 5}}
  policy: {choose: chance, values: {north: 1}, overrides: {south: [], west: [{op: shout, path: /a}]}, round: {}}
  overflow: {patience: 1m}
  disconnections: [{worker: east}]
cluster: {}
"""
    )
    assert ran.code == ExitCode.BAD_INPUT
    choices = "all-at-once, incremental, priority, cost, weight, data, free-quota"
    assert [line.partition(": ")[2] for line in ran.err.splitlines()[:-1]] == [
        "cluster: both cluster and fleet are given; remove one of them",
        "fleet.manager: Required value; write `manager: {objects: [manager.yaml]}`",
        "fleet.workers.west.link.mostMs: Invalid value: 5; write at least leastMs, which is 9",
        "fleet.workers.west.startsPods: must be a boolean, not a string; write true or false",
        'fleet.disconnections[0].worker: Unsupported value: "east"; write one of west',
        f'fleet.policy.choose: Unsupported value: "chance"; write one of {choices}',
        "fleet.policy.values.north: there is no such worker; name one of west",
        "fleet.policy.round: not a duration: a mapping; "
        "write seconds such as 90, or a duration such as 1m30s, from 0 to 292 years (2562047h)",
        "fleet.policy.overrides.south: there is no such worker; name one of west",
        "fleet.policy.overrides.west: Unknown operation 'shout'; "
        "write {op: replace, path: /spec/..., value: ...}, as in RFC 6902",
        "fleet.overflow.queues: Required value; write `queues: {here: workers}`, from LocalQueue to LocalQueue",
    ]


def test_a_fleet_reports_copies_and_the_quota_of_its_manager(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    assert main(["simulate", "examples/multikueue/overflow.yaml", "-o", "json"]) == ExitCode.OK
    reported = json.loads(capsys.readouterr().out)
    assert reported["managerQuota"] == [
        {
            "clusterQueue": "dispatch",
            "resource": "cpu",
            "quota": 12.0,
            "ofWorkers": 12.0,
            "byWorker": {"east": 8.0, "west": 4.0},
        }
    ]
    assert {job["cluster"] for job in reported["jobs"]} == {"(manager)", "east"}
    assert (reported["all"]["finished"], reported["all"]["evictions"]) == (8, 4)


def test_a_file_that_is_no_scenario_is_refused(simulate: Callable[..., Ran]) -> None:
    ran = simulate(QUEUES)
    assert ran.code == ExitCode.BAD_INPUT
    assert "use `kueuecore run` for the objects of a cluster" in ran.err


def test_problems_of_a_job_are_reported(simulate: Callable[..., Ran]) -> None:
    ran = simulate(SCENARIO.replace("parallelism: 2", "parallelism: -1"))
    assert ran.code == ExitCode.BAD_INPUT
    assert "scenario.yaml:7" in ran.err
    assert "spec.parallelism" in ran.err


def test_an_evicted_job_continues_from_its_last_checkpoint(simulate: Callable[..., Ran]) -> None:
    selector = "namespaceSelector: {}"
    preempting = QUEUES.replace(selector, f"{selector}\n  preemption: {{withinClusterQueue: LowerPriority}}")
    important = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: high}\nvalue: 9\n"
    Path("queues.yaml").write_text(f"{preempting}\n---\n{important}", encoding="utf-8")
    once = SCENARIO.replace("count: 3", "count: 1")
    urgent = once.partition("work:\n")[2].replace("- job:", "- name: urgent\n  at: 25\n  job:")
    text = once + urgent.replace("lq}}", "lq, kueue.x-k8s.io/priority-class: high}}")
    ends = [
        next(job["finished"] for job in document(simulate(entry, "-o", "json"))["jobs"] if job["job"] == "Job/both")
        for entry in (text, text.replace("  runs: 1m\n", "  runs: 1m\n  saves: 10s\n", 1))
    ]
    # It runs for 25 s, waits for a minute, and has the rest of a minute to run: all of it, or 40 s.
    assert ends == ["2026-01-01T00:02:26Z", "2026-01-01T00:02:06Z"]


def test_a_configuration_among_the_objects_is_not_used_and_a_warning_says_where_to_name_it(
    simulate: Callable[..., Ran],
) -> None:
    kueue = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, manageJobsWithoutQueueName: true}"
    Path("kueue.yaml").write_text(kueue, encoding="utf-8")
    warning = (
        "warning: kueue.yaml:1 (document 1): Configuration: not used as Kueue's Configuration; "
        "name the file at `cluster.configuration`\n"
    )
    objects = "objects: [queues.yaml, kueue.yaml]"
    assert warning in simulate(SCENARIO.replace("objects: [queues.yaml]", objects)).err
    named = SCENARIO.replace("objects: [queues.yaml]", f"{objects}, configuration: kueue.yaml")
    assert warning not in simulate(named).err


def test_a_checkpoint_needs_some_work(simulate: Callable[..., Ran]) -> None:
    ran = simulate(SCENARIO + "  saves: 0\n")
    assert (ran.code, "work[0].saves: Invalid value: 0" in ran.err) == (ExitCode.BAD_INPUT, True)


def test_results_are_written_into_a_folder(simulate: Callable[..., Ran]) -> None:
    ran = simulate(SCENARIO, "--results", "out", "--results-step", "1m")
    names = sorted(path.name for path in Path("out").iterdir())
    assert (ran.code, names) == (
        ExitCode.OK,
        ["cluster_queues.csv", "cohorts.csv", "jobs.csv", "metrics.prom", "summary.json"],
    )
    assert ran.err.endswith("summary.json, metrics.prom to out\n")
    rows = Path("out/jobs.csv").read_text().splitlines()
    assert len(rows) == 1 + 3
    column = rows[0].split(",").index("wait_seconds")
    assert [float(row.split(",")[column]) for row in rows[1:]] == [0, 50, 100]


def test_a_folder_that_is_a_file_is_refused(simulate: Callable[..., Ran]) -> None:
    Path("taken").write_text("")
    ran = simulate(SCENARIO, "--results", "taken")
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    assert ran.err.startswith("taken: --results: cannot be written to: Not a directory; name a writable folder\n")
