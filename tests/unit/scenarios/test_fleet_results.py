"""The results of a fleet say where each job waited and ran, and who used how much quota where."""

from __future__ import annotations

import csv
import json
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import kueuecore
from kueuecore.cli import ExitCode, main
from kueuecore.results import Table
from kueuecore.scenarios import FleetResults, ScenarioOutcome, parse_edit, read_scenario
from kueuecore.scenarios.fleet_log import outage_table
from kueuecore.studies import compare
from kueuecore.times import SECOND_NS
from tests.html_page import Page

FLEET = "examples/multikueue/scenario.yaml"
MANAGER = "(manager)"


@pytest.fixture(scope="module")
def outcome() -> ScenarioOutcome:
    return kueuecore.run(FLEET)


@pytest.fixture(scope="module")
def results(outcome: ScenarioOutcome) -> FleetResults:
    assert outcome.fleet is not None
    return outcome.fleet


def rows(table: Table, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_list() for name in names), strict=True))


def test_each_job_ran_last_where_its_last_stay_was(outcome: ScenarioOutcome, results: FleetResults) -> None:
    last: dict[object, tuple[object, Any]] = {}
    for job, cluster, state, ending, end in rows(results.stays, "job", "cluster", "state", "ending", "end"):
        if (state, ending) == ("Running", "Finished"):
            last[job] = (cluster, end)
    assert {job.job: job.cluster for job in outcome.jobs} == {job: cluster for job, (cluster, _) in last.items()}
    ends = {job: int(end) for job, (_, end) in last.items()}
    assert all((job.finished or 0) > ends[job.job] for job in outcome.jobs), "the manager hears of it later"


def test_the_waits_on_the_manager_are_those_of_the_jobs(outcome: ScenarioOutcome, results: FleetResults) -> None:
    waited: dict[object, float] = {}
    for job, cluster, state, seconds in rows(results.stays, "job", "cluster", "state", "seconds"):
        if (cluster, state) == (MANAGER, "Waiting"):
            waited[job] = waited.get(job, 0.0) + seconds
    for job in outcome.jobs:
        assert waited[job.job] == pytest.approx((job.wait_ns or 0) / SECOND_NS)


def test_copies_and_their_waits_add_up(outcome: ScenarioOutcome, results: FleetResults) -> None:
    table = results.by_cluster
    assert table["cluster"].to_list() == [MANAGER, "east", "west"]
    assert sum(table["copies"].to_list()) == outcome.all.n_copies
    assert sum(table["wait_seconds"].to_list()[1:]) == pytest.approx(outcome.all.copy_wait)
    assert table["jobs"].to_list() == [0, *(sum(job.cluster == it for job in outcome.jobs) for it in ("east", "west"))]
    # Each job but one ran on one worker; both admitted the first one, and one of them for nothing.
    assert sum(table["runs"].to_list()) == len(outcome.jobs) + 1
    assert sum(table["wasted_copies"].to_list()) == outcome.all.n_wasted_copies - 1
    assert (results.lost_seconds > 0).tolist() == [True] + [False] * 11


def test_the_usage_of_workers_is_that_of_what_runs_there(results: FleetResults) -> None:
    queues = results.cluster_queues()
    for cluster in ("east", "west"):
        used = [(time, usage) for time, of, usage in rows(queues, "time", "cluster", "usage") if of == cluster]
        ran = [
            (begin, end)
            for of, state, begin, end in rows(results.stays, "cluster", "state", "begin", "end")
            if (of, state) == (cluster, "Running")
        ]
        # Each job takes three CPUs from its admission until it ends.
        for time, usage in used:
            assert usage == 3000 * sum(begin <= time < end for begin, end in ran), (cluster, time)


def test_utilisation_is_the_area_under_the_usage(results: FleetResults) -> None:
    seconds = (results.end - results.start) / SECOND_NS
    (east,) = [
        row for row in rows(results.utilisation, "cluster", "nominal", "mean_usage", "share") if row[0] == "east"
    ]
    ran = sum(
        span
        for of, state, span in rows(results.stays, "cluster", "state", "seconds")
        if (of, state) == ("east", "Running")
    )
    assert east[1] == 8000
    assert east[2] == pytest.approx(3000 * ran / seconds)
    assert east[3] == pytest.approx(3000 * ran / seconds / 8000)
    assert results.summary().utilisation["east", "default-flavor", "cpu"] == east[3]


def test_steps_have_the_last_change_before_them(results: FleetResults) -> None:
    stepped, changes = results.cluster_queues(step_seconds=60), results.cluster_queues()
    names = ("cluster", "cluster_queue", "flavor", "resource", "nominal", "usage", "borrowed", "pending")
    assert len(stepped) == 5 * (1 + (results.end - results.start) // (60 * SECOND_NS))
    for time, *row in rows(stepped, "time", *names):
        before = [other for at, *other in rows(changes, "time", *names) if other[:4] == row[:4] and at <= time]
        assert before[-1] == row
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="step_seconds must be greater than 0"):
            results.cluster_queues(step_seconds=wrong)


def test_who_waits_on_a_worker_is_counted(results: FleetResults) -> None:
    stays = rows(results.stays, "cluster", "state", "begin", "end")
    for time, cluster, pending in rows(results.cluster_queues(), "time", "cluster", "pending"):
        if cluster != MANAGER:
            there = sum(of == cluster and state == "Waiting" and begin <= time < end for of, state, begin, end in stays)
            assert pending == there, (time, cluster)


def test_metrics_are_of_each_cluster(results: FleetResults) -> None:
    families = {family.name: family for family in text_string_to_metric_families(results.metrics)}
    admitted: dict[str, float] = {}
    for sample in families["kueue_admitted_workloads"].samples:
        admitted[sample.labels["cluster"]] = admitted.get(sample.labels["cluster"], 0.0) + sample.value
    assert admitted == {MANAGER: 12.0, "east": 9.0, "west": 4.0}


def test_results_are_compared_and_pickled(outcome: ScenarioOutcome, results: FleetResults) -> None:
    assert kueuecore.run(FLEET) == outcome
    again = pickle.loads(pickle.dumps(outcome))
    assert again == outcome
    assert again.fleet.summary() == results.summary()
    assert kueuecore.run(FLEET, seed=2).fleet != results


def test_a_notebook_shows_clusters_and_their_quota(outcome: ScenarioOutcome, results: FleetResults) -> None:
    page = outcome._repr_html_()
    Page(page)
    assert results._repr_html_() in page
    assert "<caption>clusters</caption>" in page
    assert "<tr><td>east</td><td>default-flavor</td><td>cpu</td><td>8</td>" in page


def test_outages_are_those_after_a_connection() -> None:
    s = SECOND_NS
    table = outage_table([(1 * s, "a", True), (5 * s, "a", False), (6 * s, "b", False), (8 * s, "a", True)], 10 * s)
    assert rows(table, "cluster", "seconds") == [("a", 3.0), ("b", 4.0)]
    assert table["end"].to_list()[1] is None
    assert len(outage_table([], 10)) == 0


def test_a_fleet_in_which_nothing_happens_has_empty_tables() -> None:
    outcome = kueuecore.run(FLEET, edits=["work=[]"])
    assert outcome.fleet is not None
    assert (len(outcome.fleet.stays), outcome.fleet.summary().mean_wait_seconds) == (0, None)
    assert outcome.fleet.by_cluster["jobs"].to_list() == [0, 0, 0]
    assert "(manager)" in outcome.fleet._repr_html_()
    assert len(outcome.fleet.cluster_queues(step_seconds=1)) > 0


def test_jobs_of_the_manager_itself_run_there_and_evicted_ones_do_not() -> None:
    outcome = kueuecore.run("examples/multikueue/overflow.yaml")
    assert outcome.fleet is not None
    runs = rows(outcome.fleet.stays, "cluster", "job", "state", "ending")
    here = [(job, ending) for cluster, job, state, ending in runs if (cluster, state) == (MANAGER, "Running")]
    assert here == [("Job/train-1", "Finished"), ("Job/train-2", "Finished")]
    # The west admits four jobs without starting them: each is taken back after two minutes.
    taken_back = [job for cluster, job, state, ending in runs if (cluster, ending) == ("west", "Removed")]
    assert len(taken_back) == outcome.all.n_evictions == 4
    lost = dict(zip((job.job for job in outcome.jobs), outcome.fleet.lost_seconds.tolist(), strict=True))
    assert {job for job, seconds in lost.items() if seconds > 100} == {*taken_back}


def test_files_hold_the_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path, results: FleetResults) -> None:
    folder = tmp_path / "out"
    assert main(["simulate", FLEET, "--results", str(folder), "--results-step", "1m"]) == ExitCode.OK
    assert capsys.readouterr().err.splitlines()[-1].startswith("note: wrote jobs.csv, stays.csv, clusters.csv")
    assert sorted(path.name for path in folder.iterdir()) == [
        *("cluster_queues.csv", "clusters.csv", "jobs.csv", "metrics.prom", "outages.csv", "stays.csv"),
        *("summary.json", "utilisation.csv"),
    ]
    with (folder / "clusters.csv").open() as file:
        clusters = list(csv.DictReader(file))
    assert [row["cluster"] for row in clusters] == [MANAGER, "east", "west"]
    assert [row["jobs"] for row in clusters] == ["0", "8", "4"]
    with (folder / "outages.csv").open() as file:
        (outage,) = csv.DictReader(file)
    assert outage["cluster"] == "east"
    assert Fraction(outage["seconds"]) > 120
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["schema"], summary["jobs_by_cluster"]) == (1, {MANAGER: 0, "east": 8, "west": 4})
    assert (folder / "metrics.prom").read_text() == results.metrics
    with pytest.raises(ValueError, match="suffix must be one of"):
        results.write(folder, suffix=".xls")


def test_arrow_reads_every_table(tmp_path: Path, results: FleetResults) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for path in results.write(tmp_path, suffix=".parquet"):
        if path.suffix == ".parquet":
            assert parquet.read_table(path).num_rows > 0, path


def test_fleets_are_compared_by_where_jobs_run() -> None:
    few = [parse_edit("work[0].count=4"), parse_edit("fleet.disconnections=null")]
    only = parse_edit("fleet.policy={choose: cost, values: {east: 2, west: 1}, round: 10m}")
    found = compare(*(read_scenario(FLEET, edits=edits) for edits in (few, [*few, only])), seeds=[1])
    jobs = {
        side: [found.total[side][f"jobs/{cluster}"].value.median for cluster in (MANAGER, "east", "west")]
        for side in found.names
    }
    assert sum(filter(None, jobs["A"])) == sum(filter(None, jobs["B"])) == 4
    assert (jobs["B"][2] or 0) > (jobs["A"][2] or 0), "the cheap worker gets more"
    assert found.total["B"]["utilisation/west/default-flavor/cpu"].difference.values[0] > 0
    assert found.total["B"]["copies"].difference.values[0] < 0
