"""Jobs of traces that failed, or were killed or cancelled: they run as long as recorded, and end as failed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from pyarrow import csv, parquet

from kueuecore import simulate
from kueuecore.manifests import to_json_lines
from kueuecore.results import Results
from kueuecore.scenarios import read_scenario, run_scenario
from kueuecore.traces import ColumnSource, JobRule, Trace, TraceRules, queues_for, read_rules, read_trace

EXAMPLES = Path(__file__).parents[3] / "examples" / "traces"
NOW = "2026-01-01T00:00:00Z"
PHILLY = {
    "vc": "v",
    "jobid": "application_1506638472019_14199",
    "submitted_time": "2017-10-07 01:00:00",
    "user": "u",
    "attempts": [
        {
            "start_time": "2017-10-07 01:00:00",
            "end_time": "2017-10-07 01:01:00",
            "detail": [{"ip": "m", "gpus": ["gpu0"]}],
        }
    ],
}
HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)
TIME = "2020-06-09 18:41:01"

# The text that each file uses for a status.
FORMATS: Mapping[str, Callable[[object], str]] = {
    "log.swf": lambda status: f"1 0 10 60 4 -1 -1 4 -1 -1 {status} 7 2 -1 1 1 -1 -1\n",
    "cluster_job_log": lambda status: json.dumps([PHILLY | {"status": status}]),
    "cluster_log.csv": lambda status: f"{HELIOS}1,u,v,1,1,1,{status},{TIME},{TIME},2020-06-09 18:42:01,60,0\n",
    "pai_task_table.csv": lambda status: f"a,worker,1.0,{status},10.0,70.0,600.0,1.0,,\n",
    "openb_pod_list.csv": lambda status: f"{OPENB}p,4000,15258,1,220,,BE,{status},100,160,100\n",
    "own.csv": lambda status: f"at,run_seconds,cpu_milli,status\n0,60,1000,{status}\n",
}


@pytest.mark.parametrize(
    ("name", "failed", "others"),
    [
        ("log.swf", [0, 5], [1, -1]),
        ("cluster_job_log", ["Failed", "Killed"], ["Pass"]),
        ("cluster_log.csv", ["FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"], ["COMPLETED", "SUSPENDED"]),
        # Only terminated tasks were successful, whatever the others are.
        ("pai_task_table.csv", ["Failed", "Running", "Waiting"], ["Terminated", ""]),
        ("openb_pod_list.csv", ["Failed"], ["Succeeded", "Running"]),
        (
            "own.csv",
            ["failed", "Killed", "CANCELLED by 1000", "canceled", "OUT_OF_MEMORY", "NODE_FAIL", "TIMEOUT", "error"],
            ["COMPLETED", "Succeeded", "", "nan", "not failed"],
        ),
    ],
)
def test_the_status_words_of_a_format_say_which_jobs_failed(
    tmp_path: Path, name: str, failed: Sequence[object], others: Sequence[object]
) -> None:
    def has_failed(status: object) -> bool:
        path = tmp_path / name
        path.write_text(FORMATS[name](status), encoding="utf-8")
        trace = read_trace(path)
        assert trace.run_seconds.tolist() == [60]
        return bool(trace.ends_failed[0])

    assert {value: has_failed(value) for value in (*failed, *others)} == {
        **dict.fromkeys(failed, True),
        **dict.fromkeys(others, False),
    }


def table(folder: Path) -> Trace:
    path = folder / "jobs.csv"
    path.write_text("at,run_seconds,cpu_milli,State\n9,5,1000,FAILED\n0,60,1000,COMPLETED\n3,,1000,FAILED\n")
    return read_trace(path, columns={"status": ColumnSource(column="State")})


def test_a_status_may_stand_in_a_column_of_another_name_and_rules_read_it(tmp_path: Path) -> None:
    trace = table(tmp_path)
    assert (trace.at.tolist(), trace.ends_failed.tolist()) == ([0, 9], [False, True])
    assert trace.fields["status"].texts() == ["COMPLETED", "FAILED"]
    parquet.write_table(csv.read_csv(tmp_path / "jobs.csv"), tmp_path / "jobs.parquet")
    same = read_trace(tmp_path / "jobs.parquet", columns={"status": ColumnSource(column="State")})
    assert same.ends_failed.tolist() == [False, True]


def test_a_job_that_failed_runs_its_time_and_counts_as_failed(tmp_path: Path) -> None:
    trace, rules = table(tmp_path), TraceRules(default=JobRule(queue="team/jobs"))
    run = simulate(
        queues_for(trace, rules, quota={"cpu": 1}), submissions=trace.submissions(rules), now=NOW, cycle_seconds=0
    )
    results = Results.of(run)
    assert results.jobs["outcome"].to_list() == ["Succeeded", "Failed"]
    assert results.jobs["run_seconds"].to_list() == [60, 5]
    summary = results.summary()
    assert (summary.finished, summary.failed) == (2, 1)
    # What a failed job does is of no use.
    assert summary.goodput == {"cpu": pytest.approx(60 / 65)}


@pytest.mark.parametrize("name", ["cluster.swf", "cluster_log.csv"])
def test_a_scenario_ends_the_jobs_of_a_trace_as_a_run_of_its_columns_does(tmp_path: Path, name: str) -> None:
    rules_name = {"cluster.swf": "rules-swf.yaml", "cluster_log.csv": "rules.yaml"}[name]
    trace, rules = read_trace(EXAMPLES / name), read_rules(EXAMPLES / rules_name)
    queues = queues_for(trace, rules, quota={"cpu": 128, "memory": "512Gi", "nvidia.com/gpu": 64})
    for entry in (name, rules_name):
        shutil.copy(EXAMPLES / entry, tmp_path)
    (tmp_path / "queues.json").write_bytes(to_json_lines(queues))
    (tmp_path / "scenario.yaml").write_text(
        "apiVersion: kueuecore/v1\nkind: Scenario\ncluster: {objects: [queues.json]}\n"
        f"traces: [{{file: {name}, rules: {rules_name}, name: job}}]\n",
        encoding="utf-8",
    )
    outcome = run_scenario(read_scenario(tmp_path / "scenario.yaml"))
    run = simulate(queues, submissions=trace.submissions(rules), now=NOW)
    failed = {str(key) for key, has_failed in zip(run.workload_keys, run.failed.tolist(), strict=True) if has_failed}
    assert {f"{job.namespace}/{job.workload}" for job in outcome.jobs if job.has_failed} == failed != set()
    assert outcome.all.n_failed == trace.ends_failed.sum() == len(failed)
    assert {job.message for job in outcome.jobs if job.has_failed} == {"failed"}
