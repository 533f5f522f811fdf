"""Measures of tiny runs against numbers worked out by hand, and readers of the tables."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kueuecore import simulate
from kueuecore._json import JsonValue
from kueuecore.results import Results, Table
from kueuecore.results.files import write_table
from kueuecore.results.summary import jain
from kueuecore.results.table import Column
from kueuecore.scenarios import read_scenario, run_scenario
from kueuecore.simulation import Happening, JobPlan, Operation
from kueuecore.submissions import Submissions

START = "2026-01-01T00:00:00Z"


def cluster_queue(name: str, cohort: str = "", cpu: int = 4) -> str:
    place = f"cohortName: {cohort}, " if cohort else ""
    return f"""
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: {name}}}
spec: {{{place}namespaceSelector: {{}}, preemption: {{withinClusterQueue: LowerPriority}},
  resourceGroups: [{{coveredResources: [cpu],
    flavors: [{{name: main, resources: [{{name: cpu, nominalQuota: {cpu}}}]}}]}}]}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{namespace: ns, name: {name}}}
spec: {{clusterQueue: {name}}}
---
"""


BASE = """
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: main}}
---
"""


def job(name: str, at: float, run_seconds: float | None, *, priority: int = 0, cpu: str = "3") -> Happening:
    container: JsonValue = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    template: JsonValue = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    workload: dict[str, JsonValue] = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"namespace": "ns", "name": name},
        "spec": {
            "queueName": "cq",
            "priority": priority,
            "podSets": [{"name": "main", "count": 1, "template": template}],
        },
    }
    return Happening(at=at, op=Operation.CREATE, object=workload, plan=JobPlan(run_seconds=run_seconds))


@pytest.fixture(scope="module")
def evicted() -> Results:
    """Job `low` runs from 0 to 20 and from 51 to 151, `high`, a cycle later, from 21 to 51; `never` is too big."""
    jobs = [job("low", 0, 100), job("high", 20, 30, priority=9), job("never", 25, 10, cpu="5")]
    return Results.of(simulate(BASE + cluster_queue("cq"), jobs, now=START))


def test_jobs_have_the_times_that_are_worked_out_by_hand(evicted: Results) -> None:
    jobs, times = evicted.jobs, ("created", "admitted", "finished")
    rows = list(zip(*(jobs[name].to_list() for name in jobs.names if name not in times), strict=True))
    assert rows == [
        # Response 151 s over a run of 100 s.
        ("ns", "low", "cq", "Succeeded", 0.0, 100.0, 1.51, 1, 20.0, 20.0, "main", None),
        ("ns", "high", "cq", "Succeeded", 1.0, 30.0, 31 / 30, 0, 0.0, 0.0, "main", None),
        ("ns", "never", "cq", "Pending", None, None, None, 0, 0.0, 0.0, None, None),
    ]


def test_usage_and_pending_change_as_jobs_come_and_go(evicted: Results) -> None:
    table = evicted.cluster_queues()
    seconds = (table["time"].values - table["time"].values[0]).astype("int64") // 10**9
    usage, pending = table["usage"].to_list(), table["pending"].to_list()
    assert list(zip(seconds.tolist(), usage, pending, strict=True)) == [
        (0, 3000, 0),
        (20, 0, 2),
        (21, 3000, 1),
        (25, 3000, 2),
        (51, 3000, 1),
        (151, 0, 1),
    ]
    assert set(table["nominal"].to_list()) == {4000}
    assert set(table["borrowed"].to_list()) == {0}


def test_the_summary_is_what_the_formulas_give(evicted: Results) -> None:
    summary = evicted.summary()
    assert (summary.jobs, summary.finished, summary.evictions) == (3, 2, 1)
    assert (summary.makespan_seconds, summary.mean_wait_seconds) == (151.0, 0.5)
    assert summary.mean_slowdown == pytest.approx((1.51 + 31 / 30) / 2)
    assert summary.fairness == 1.0
    # 3 of 4 CPUs for 150 s; the run ends with its last cycle, at 152.
    assert summary.utilisation == {("main", "cpu"): pytest.approx(3 / 4 * 150 / 152)}
    # Of 150 s held, the first 20 came to nothing.
    assert summary.goodput == {"cpu": pytest.approx(130 / 150)}


def test_a_run_without_jobs_has_no_measures() -> None:
    results = Results.of(simulate(BASE + cluster_queue("cq"), now=START))
    summary = results.summary()
    assert (summary.makespan_seconds, summary.fairness, summary.goodput, len(results.jobs)) == (None, None, {}, 0)


def test_metrics_have_the_names_and_counts_of_kueue(evicted: Results) -> None:
    lines = evicted.prometheus().splitlines()
    role = 'replica_role="standalone"'
    for line in (
        f'kueue_admitted_workloads_total{{cluster_queue="cq",priority_class="",{role}}} 3',
        f'kueue_admission_wait_time_seconds_count{{cluster_queue="cq",priority_class="",{role}}} 3',
        # `low` waits 0 s and, from its eviction at 20 on, 31 s; `high` waits 1 s.
        f'kueue_admission_wait_time_seconds_sum{{cluster_queue="cq",priority_class="",{role}}} 32',
        f'kueue_admission_wait_time_seconds_bucket{{cluster_queue="cq",le="1",priority_class="",{role}}} 2',
        f'kueue_pending_workloads{{cluster_queue="cq",{role},status="inadmissible"}} 1',
    ):
        assert line in lines
    labels = f'cluster_queue="cq",priority_class="",reason="Preempted",{role},underlying_cause=""'
    assert [line for line in lines if line.startswith("kueue_evicted_workloads_total{")] == [
        f"kueue_evicted_workloads_total{{{labels}}} 1"
    ]


def test_metrics_are_labelled_with_priority_classes() -> None:
    outcome = run_scenario(read_scenario("examples/scenario/scenario.yaml"))
    assert outcome.run is not None
    lines = Results.of(outcome.run).prometheus().splitlines()
    role = 'replica_role="standalone"'
    for line in (
        f'kueue_admitted_workloads_total{{cluster_queue="team-a",priority_class="",{role}}} 50',
        f'kueue_admitted_workloads_total{{cluster_queue="team-b",priority_class="high",{role}}} 23',
        f'kueue_admission_wait_time_seconds_count{{cluster_queue="team-b",priority_class="high",{role}}} 23',
        'kueue_evicted_workloads_total{cluster_queue="team-b",priority_class="high",reason="Preempted",'
        f'{role},underlying_cause=""}} 13',
    ):
        assert line in lines


def rows_of(table: Table) -> list[tuple[object, ...]]:
    return list(zip(*(table[name].to_list() for name in ("name", "wait_seconds", "evictions")), strict=True))


def test_polars_pandas_pyarrow_and_duckdb_read_a_table(evicted: Results) -> None:
    jobs = evicted.jobs
    expected = rows_of(jobs)
    names = ["name", "wait_seconds", "evictions"]
    assert pl.DataFrame(jobs).select(pl.col("name").cast(pl.String), *names[1:]).rows() == expected
    arrow = pa.table(jobs)
    assert [tuple(row.values()) for row in arrow.select(names).to_pylist()] == expected
    assert duckdb.from_arrow(jobs).select(*names).fetchall() == expected
    selected = duckdb.sql("select name, wait_seconds, evictions from jobs")
    assert selected is not None
    assert selected.fetchall() == expected
    frame = pd.DataFrame.from_arrow(jobs)[names].astype({"name": "str"})
    assert [tuple(row) for row in frame.dropna().itertuples(index=False)] == expected[:2]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_files_hold_what_the_tables_hold(evicted: Results, tmp_path: Path, suffix: str) -> None:
    written = evicted.write(tmp_path / "out", suffix=suffix)
    assert [path.name for path in written[3:]] == ["summary.json", "metrics.prom"]
    if suffix == ".csv":
        rows = list(csv.DictReader(written[0].read_text(encoding="utf-8").splitlines()))
        assert [row["name"] for row in rows] == ["low", "high", "never"]
        assert (rows[0]["finished"], rows[2]["finished"]) == ("2026-01-01T00:02:31.000000000Z", "")
    else:
        read = pl.read_parquet if suffix == ".parquet" else pl.read_ipc
        assert read(written[0]).select(pl.col("name").cast(pl.String), "wait_seconds", "evictions").rows() == rows_of(
            evicted.jobs
        )
    assert json.loads(written[3].read_text(encoding="utf-8"))["utilisation"] == {
        "main/cpu": pytest.approx(0.75 * 150 / 152)
    }


def test_csv_keeps_every_text_and_number(tmp_path: Path) -> None:
    words = ("plain", '"quoted"', "a,b", "two\nlines", "größer", "")
    numbers = np.array([0.1, 1e300, -2.5, 3.0, 0.1, 7.0])
    times = np.array([0, 1, 10**9, 10**18, 5, 6], "datetime64[ns]")
    is_null = np.array([False, False, False, False, False, True])
    columns = {
        "text": Column(values=np.array([0, 1, 2, 3, 4, -1]), words=words),
        "number": Column(values=numbers, is_null=is_null),
        "time": Column(values=times, is_null=is_null),
        "count": Column(values=np.arange(6)),
    }
    write_table(Table(columns), tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.reader(file))
    assert read[0] == list(columns)
    assert [row[0] for row in read[1:]] == [*words[:5], ""]
    assert [row[1] for row in read[1:]] == [*map(str, numbers.tolist()[:5]), ""]
    assert [row[2] for row in read[1:]] == [f"{entry}Z" for entry in times.astype(str).tolist()[:5]] + [""]
    assert [row[3] for row in read[1:]] == list("012345")


def test_an_unknown_format_is_refused_before_anything_is_written(evicted: Results, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="suffix must be one of"):
        evicted.write(tmp_path / "out", suffix=".xlsx")
    assert not (tmp_path / "out").exists()


WORK = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 5), st.integers(0, 30), st.integers(0, 40)), max_size=12)


@settings(deadline=None, max_examples=30)
@given(WORK)
def test_sums_over_queues_are_those_of_the_cohort(work: list[tuple[int, int, int, int]]) -> None:
    queue, cpu, at, run_seconds = ([row[column] for row in work] for column in range(4))
    jobs = Submissions(
        namespace="ns",
        local_queues=["a", "b"],
        queue=queue,
        requests={"cpu": [n * 1000 for n in cpu]},
        at=at,
        run_seconds=run_seconds,
    )
    objects = BASE + cluster_queue("a", "team") + cluster_queue("b", "team", cpu=2)
    run = simulate(objects, submissions=[jobs] if work else [], now=START)
    results = Results.of(run)
    queues = pl.DataFrame(results.cluster_queues(step_seconds=7))
    cohorts = pl.DataFrame(results.cohorts(step_seconds=7))
    sums = queues.group_by("time").agg(pl.col("usage", "nominal", "pending").sum()).sort("time")
    assert sums.rows() == cohorts.select("time", "usage", "nominal", "pending").sort("time").rows()
    assert (cohorts["usage"] <= cohorts["nominal"]).all()
    assert (queues["usage"] - queues["borrowed"] <= queues["nominal"]).all()
    assert (queues["pending"] >= 0).all()
    fairness = results.summary().fairness
    assert fairness is None or 0 < fairness <= 1
    at_end = {(row.name, row.resource): row.usage for row in run.engine.quota() if row.kind == "ClusterQueue"}
    last = pl.DataFrame(results.cluster_queues()).group_by("cluster_queue", maintain_order=True).last()
    assert all(
        int(at_end[str(name), "cpu"]) * 1000 == used for name, used in last.select("cluster_queue", "usage").rows()
    )


@given(st.lists(st.floats(0, 1e9), max_size=20))
def test_the_fairness_index_is_above_0_and_at_most_1(values: list[float]) -> None:
    index = jain(values)
    assert index is None if not any(values) else index is not None and 0 < index <= 1
