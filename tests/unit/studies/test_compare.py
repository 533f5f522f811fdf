"""`kueuecore compare`, and what is behind it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from kueuecore import ManifestError
from kueuecore.cli import ExitCode, main
from kueuecore.scenarios import Scenario, parse_edit, read_scenario, run_scenario
from kueuecore.studies import compare, processes, run_trial
from tests.command import Ran

EXAMPLE = "examples/scenario/scenario.yaml"
QUOTA = "ClusterQueue/team-*:spec.resourceGroups[0].flavors[name=default].resources[name=cpu].nominalQuota"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(*arguments: str) -> Ran:
        code = main(["compare", "--workers", "1", *arguments])
        return Ran(code, *capsys.readouterr())

    return run


def with_quota(amount: int) -> Scenario:
    return read_scenario(EXAMPLE, edits=[parse_edit(f"{QUOTA}={amount}")])


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    """The example with every object renamed, so that their order is another."""
    folder = tmp_path / "renamed"
    shutil.copytree("examples/scenario", folder)
    names = {"team-a": "zeta", "team-b": "beta", "default": "other", "all": "everybody", "high": "a-high", "lq": "q"}
    for file in folder.glob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        for old, new in names.items():
            text = re.sub(rf"(?<=[ :]){old}\b(?!:)", new, text)
        file.write_text(text, encoding="utf-8")
    return folder / "scenario.yaml"


def test_configurations_of_which_one_is_only_renamed_show_no_difference(renamed: Path) -> None:
    given = read_scenario(renamed)
    assert "zeta" in {object_.object["metadata"]["name"] for object_ in given.cluster.objects}  # type: ignore[index, call-overload]
    comparison = compare(read_scenario(EXAMPLE), given, seeds=range(5))
    assert not comparison.is_any
    assert [group.cluster_queues for group in comparison.groups] == [("team-b", "beta"), ("team-a", "zeta")]


def test_each_number_is_that_of_the_runs_themselves() -> None:
    a, b = read_scenario(EXAMPLE), with_quota(7)
    comparison = compare(a, b, seeds=[4, 2])
    for index, seed in enumerate([4, 2]):
        of_a, of_b = (
            run_scenario(read_scenario(EXAMPLE, seed=seed, edits=edits)) for edits in ([], [parse_edit(f"{QUOTA}=7")])
        )
        for side, outcome in (("a", of_a), ("b", of_b)):
            wait = getattr(comparison.total["mean_wait_seconds"], side).values[index]
            assert wait == pytest.approx(outcome.all.mean)
            assert getattr(comparison.total["evictions"], side).values[index] == outcome.all.n_evictions
        waits = [(y.wait_ns or 0) - (x.wait_ns or 0) for x, y in zip(of_a.jobs, of_b.jobs, strict=True)]
        assert comparison.total["mean_wait_seconds"].difference.values[index] == pytest.approx(np.mean(waits) / 1e9)
    assert comparison.total.n_jobs == sum(group.n_jobs for group in comparison.groups) == 120
    assert comparison.total.n_less == sum(group.n_less for group in comparison.groups) > 0


def test_a_job_that_is_never_admitted_waits_longest() -> None:
    starved = read_scenario(
        EXAMPLE, edits=[parse_edit(f"{QUOTA.replace('*', 'b')}=0"), parse_edit("ClusterQueue/*:spec.cohortName=null")]
    )
    comparison = compare(read_scenario(EXAMPLE), starved, seeds=[1])
    large = next(group for group in comparison.groups if group.work == "large")
    assert large["never_admitted"].b.values == (10.0,)
    assert (large.n_less, large.n_more) == (0, 10)
    assert "mean_wait_seconds" not in large.measures


def test_jobs_that_fail_are_those_of_the_runs_in_all_and_by_group(run: Callable[..., Ran]) -> None:
    edits = [parse_edit("work[0].fails={share: 0.3}")]
    comparison = compare(read_scenario(EXAMPLE), read_scenario(EXAMPLE, edits=edits), seeds=[1, 2])
    failed = [
        sum(job.has_failed for job in run_scenario(read_scenario(EXAMPLE, seed=seed, edits=edits)).jobs)
        for seed in (1, 2)
    ]
    assert min(failed) > 0
    assert comparison.total["failed"].a.values == (0.0, 0.0)
    assert [*comparison.total["failed"].b.values] == failed
    by_work = {group.work: group["failed"].b.values for group in comparison.groups}
    assert by_work == {"large": (0.0, 0.0), "small": tuple(map(float, failed))}
    ran = run(EXAMPLE, "--set", "work[0].fails={share: 0.3}", "--seeds", "1")
    assert re.search(rf"^jobs failed +0 +{failed[0]} +\+{failed[0]} ", ran.out, re.MULTILINE)
    assert re.search(rf"^small .* - +0 +{failed[0]} +\d", ran.out, re.MULTILINE), "columns of their own by group"


def test_groups_without_failures_have_no_column_of_them(run: Callable[..., Ran]) -> None:
    ran = run(EXAMPLE, "--set", f"{QUOTA}=7", "--seeds", "1")
    assert "FAILED" not in ran.out


def test_results_do_not_depend_on_the_executor() -> None:
    a, b = read_scenario(EXAMPLE), with_quota(5)
    plain = compare(a, b, seeds=range(3))
    with ThreadPoolExecutor(3) as threads:
        assert compare(a, b, seeds=range(3), executor=threads) == plain
    with processes(2) as pool:
        assert isinstance(pool, ProcessPoolExecutor)
        assert compare(a, b, seeds=range(3), executor=pool) == plain


def test_lost_work_is_that_of_the_results() -> None:
    trial = run_trial(read_scenario(EXAMPLE), 1)
    assert trial.lost_seconds.sum() > 0
    assert (trial.lost_seconds > 0).sum() == (trial.evictions > 0).sum()


@pytest.mark.parametrize(
    ("edit", "message"),
    [("work[0].count=3", "60 jobs arrive in the first scenario and 13 in the second"), ("work[1].at=77", "arrives at")],
)
def test_other_work_is_refused(edit: str, message: str) -> None:
    with pytest.raises(ManifestError, match=message):
        compare(read_scenario(EXAMPLE), read_scenario(EXAMPLE, edits=[parse_edit(edit)]), seeds=[0])


@pytest.mark.parametrize("seeds", [[], [1, 1]])
def test_seeds_must_be_distinct(seeds: list[int]) -> None:
    with pytest.raises(ValueError, match="seeds"):
        compare(read_scenario(EXAMPLE), with_quota(5), seeds=seeds)


def test_the_table_shows_each_measure(run: Callable[..., Ran]) -> None:
    ran = run(EXAMPLE, "--set", f"{QUOTA}=7", "--seeds", "6")
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    assert re.search(r"^6 seeds, 360 jobs: \d+ wait less, \d+ wait longer, \d+ unchanged$", ran.out, re.MULTILINE)
    assert re.search(r"^mean wait +\S+ +\S+ +-\S+  -\S+ to -\S+$", ran.out, re.MULTILINE)
    assert re.search(r"^large +team-b +60 ", ran.out, re.MULTILINE)


def test_a_few_seeds_have_no_interval_and_say_so(run: Callable[..., Ran]) -> None:
    ran = run(EXAMPLE, "--set", f"{QUOTA}=7", "--seeds", "2")
    assert "intervals need six seeds or more" in ran.out


def test_json_has_every_seed(run: Callable[..., Ran]) -> None:
    found = json.loads(run(EXAMPLE, "--set", f"{QUOTA}=7", "--seeds", "2", "-o", "json").out)
    assert (found["seeds"], found["differs"], found["total"]["jobs"]) == ([1, 2], True, 120)
    wait = found["total"]["measures"]["mean_wait_seconds"]
    assert len(wait["a"]["values"]) == len(wait["difference"]["values"]) == 2
    assert [group["work"] for group in found["groups"]] == ["large", "small"]


def test_a_difference_fails_where_none_is_wanted(run: Callable[..., Ran], renamed: Path) -> None:
    assert run(EXAMPLE, "--set", f"{QUOTA}=7", "--seeds", "1", "--fail-on-difference").code == 1
    assert run(EXAMPLE, str(renamed), "--seeds", "2", "--fail-on-difference").code == ExitCode.OK


def test_nothing_to_compare_with(run: Callable[..., Ran]) -> None:
    ran = run(EXAMPLE)
    assert ran.code == ExitCode.BAD_INPUT
    assert "give a second scenario, or change the first with --set PATH=VALUE" in ran.err


@pytest.mark.parametrize("count", ["0", "-1", "x", "1e3", "9999999"])
def test_counts_are_whole_numbers(run: Callable[..., Ran], count: str) -> None:
    assert run(EXAMPLE, EXAMPLE, "--seeds", count).code == ExitCode.BAD_INPUT


def test_processes_have_the_same_results(run: Callable[..., Ran], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [EXAMPLE, "--set", f"{QUOTA}=7", "--seeds", "2"]
    assert main(["compare", "--workers", "2", *arguments]) == ExitCode.OK
    assert capsys.readouterr().out == run(*arguments).out


def test_the_page_says_who_waits_less_and_by_how_much(run: Callable[..., Ran], tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    path = tmp_path / "out.html"
    ran = run(EXAMPLE, "--set", f"{QUOTA}=7", "--seeds", "6", "--report", str(path), "-o", "json")
    found, page = json.loads(ran.out)["total"], path.read_text(encoding="utf-8")
    assert f"note: wrote {path}" in ran.err
    assert page.count("<svg") == 2
    assert f"{found['waitLess']} jobs wait less, {found['waitMore']} more." in page
    assert "The largest change: large in team-b waits " in page
    assert "<td>large in team-b</td><td>60</td>" in page
    assert '<h2 id="tree">' not in page


def test_scenarios_without_work_are_compared() -> None:
    empty = [parse_edit("work=[]")]
    comparison = compare(read_scenario(EXAMPLE, edits=empty), read_scenario(EXAMPLE, edits=empty), seeds=[1])
    assert not comparison.is_any
    assert (comparison.total.n_jobs, comparison.groups) == (0, ())


def test_runs_that_are_cut_off_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kueuecore.scenarios.cluster_scenario._MAX_CYCLES", 1)
    monkeypatch.setattr("kueuecore.scenarios.cluster_scenario._MAX_CYCLES_OF_A_JOB", 0)
    comparison = compare(read_scenario(EXAMPLE), read_scenario(EXAMPLE), seeds=[1, 2])
    assert comparison.warnings[:2] == (
        "2 runs of A did not finish (seed 1, 2): its figures say little",
        "2 runs of B did not finish (seed 1, 2): its figures say little",
    )
