"""`kueuecore compare`, and what is behind it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kueuecore import ManifestError
from kueuecore.cli import ExitCode, main
from kueuecore.scenarios import Scenario, parse_edit, read_scenario, run_scenario
from kueuecore.studies import Comparison, compare, processes, run_trial
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
    assert [tuple(group[name].cluster_queue for name in "AB") for group in comparison.groups] == [
        ("team-b", "beta"),
        ("team-a", "zeta"),
    ]


def test_each_number_is_that_of_the_runs_themselves() -> None:
    a, b = read_scenario(EXAMPLE), with_quota(7)
    comparison = compare(a, b, seeds=[4, 2])
    for index, seed in enumerate([4, 2]):
        of_a, of_b = (
            run_scenario(read_scenario(EXAMPLE, seed=seed, edits=edits)) for edits in ([], [parse_edit(f"{QUOTA}=7")])
        )
        for side, outcome in (("A", of_a), ("B", of_b)):
            wait = comparison.total[side]["mean_wait_seconds"].value.values[index]
            assert wait == pytest.approx(outcome.all.mean)
            assert comparison.total[side]["evictions"].value.values[index] == outcome.all.n_evictions
        waits = [(y.wait_ns or 0) - (x.wait_ns or 0) for x, y in zip(of_a.jobs, of_b.jobs, strict=True)]
        assert comparison.total["B"]["mean_wait_seconds"].difference.values[index] == pytest.approx(
            np.mean(waits) / 1e9
        )
    assert comparison.total.n_jobs == sum(group.n_jobs for group in comparison.groups) == 120
    assert comparison.total["B"].n_less == sum(group["B"].n_less for group in comparison.groups) > 0
    assert not comparison.total["A"].is_any, "the baseline does not differ from itself"


def test_a_job_that_is_never_admitted_waits_longest() -> None:
    starved = read_scenario(
        EXAMPLE, edits=[parse_edit(f"{QUOTA.replace('*', 'b')}=0"), parse_edit("ClusterQueue/*:spec.cohortName=null")]
    )
    comparison = compare(read_scenario(EXAMPLE), starved, seeds=[1])
    large = next(group for group in comparison.groups if group.work == "large")
    assert large["B"]["never_admitted"].value.values == (10.0,)
    assert (large["B"].n_less, large["B"].n_more) == (0, 10)
    assert "mean_wait_seconds" not in large["A"].measures


def test_jobs_that_fail_are_those_of_the_runs_in_all_and_by_group(run: Callable[..., Ran]) -> None:
    edits = [parse_edit("work[0].fails={share: 0.3}")]
    comparison = compare(read_scenario(EXAMPLE), read_scenario(EXAMPLE, edits=edits), seeds=[1, 2])
    failed = [
        sum(job.has_failed for job in run_scenario(read_scenario(EXAMPLE, seed=seed, edits=edits)).jobs)
        for seed in (1, 2)
    ]
    assert min(failed) > 0
    assert comparison.total["A"]["failed"].value.values == (0.0, 0.0)
    assert [*comparison.total["B"]["failed"].value.values] == failed
    by_work = {group.work: group["B"]["failed"].value.values for group in comparison.groups}
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
    [("work[0].count=3", "60 jobs arrive in A and 13 in B"), ("work[1].at=77", "arrives at")],
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
    assert [side["name"] for side in found["sides"]] == [side["name"] for side in found["total"]["sides"]] == ["A", "B"]
    assert found["sides"][1] == {**found["sides"][0], "name": "B", "edits": [f"{QUOTA}=7"]}
    wait = found["total"]["sides"][1]["measures"]["mean_wait_seconds"]
    assert len(wait["values"]) == len(wait["difference"]["values"]) == 2
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
    found, page = json.loads(ran.out)["total"]["sides"][1], path.read_text(encoding="utf-8")
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


def three(*, names: tuple[str, ...] = ("few", "some", "many"), baseline: str | None = None) -> Comparison:
    return compare(*map(with_quota, (4, 5, 6)), names=names, baseline=baseline, seeds=[1, 2])


def test_each_side_of_three_is_compared_with_the_baseline_as_two_are() -> None:
    found, two = three(), compare(with_quota(4), with_quota(6), seeds=[1, 2])
    assert (found.names, found.baseline, found.others) == (("few", "some", "many"), "few", ("some", "many"))
    assert (found.total["many"].n_less, found.total["many"].n_more) == (two.total["B"].n_less, two.total["B"].n_more)
    # Every job is admitted on all sides, so the means are of the same jobs.
    assert found.total["many"].measures == two.total["B"].measures
    assert found.total["some"]["mean_wait_seconds"] != found.total["many"]["mean_wait_seconds"]


def test_another_baseline_turns_the_differences_round() -> None:
    forward, back = three(), three(baseline="many")
    assert back.names == forward.names
    assert back.others == ("few", "some")
    assert (back.total["few"].n_less, back.total["few"].n_more) == (
        forward.total["many"].n_more,
        forward.total["many"].n_less,
    )
    for name, change in back.total["few"].measures.items():
        assert change.value == forward.total["few"][name].value
        assert [-value for value in change.difference.values] == [*forward.total["many"][name].difference.values]


def test_means_cover_the_jobs_admitted_on_all_sides() -> None:
    edits = [parse_edit(f"{QUOTA.replace('*', 'b')}=0"), parse_edit("ClusterQueue/*:spec.cohortName=null")]
    starved = read_scenario(EXAMPLE, edits=edits)
    found = compare(read_scenario(EXAMPLE), with_quota(6), starved, seeds=[1])
    small = [job.wait_ns or 0 for job in run_scenario(read_scenario(EXAMPLE, seed=1)).jobs if job.work == "small"]
    assert found.total["A"]["mean_wait_seconds"].value.median == pytest.approx(np.mean(small) / 1e9)
    large = next(group for group in found.groups if group.work == "large")
    assert all("mean_wait_seconds" not in side.measures for side in large.sides.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scenarios": 1}, "give two scenarios or more to compare, not 1"),
        ({"scenarios": 27}, "give at most 26 scenarios to compare, not 27; `sweep` runs more"),
        ({"scenarios": 2, "names": ["x"]}, "give a name for each of the 2 scenarios, not 1"),
        ({"scenarios": 3, "names": ["x", "y", "x"]}, 'two scenarios are called "x"; give each a name of its own'),
        ({"scenarios": 2, "names": ["x", " "]}, 'a name must have 1 to 63 printable characters, not " "'),
        ({"scenarios": 2, "names": ["x", "\x1b[2J"]}, r'printable characters, not "\\x1b\[2J"'),
        ({"scenarios": 2, "baseline": "C"}, 'baseline must be "A" or "B", not "C"'),
    ],
)
def test_wrong_sides_are_refused_before_anything_runs(arguments: dict[str, Any], message: str) -> None:
    arguments = {**arguments}
    scenarios = [read_scenario(EXAMPLE)] * arguments.pop("scenarios")
    with pytest.raises(ValueError, match=message):
        compare(*scenarios, **arguments)
    with pytest.raises(TypeError, match="scenarios must be of class Scenario, not str"):
        compare(read_scenario(EXAMPLE), EXAMPLE)  # type: ignore[arg-type]


def test_the_third_side_with_other_work_is_named() -> None:
    other = read_scenario(EXAMPLE, edits=[parse_edit("work[0].count=3")])
    with pytest.raises(ManifestError, match="with seed 0, 60 jobs arrive in A and 13 in C"):
        compare(read_scenario(EXAMPLE), with_quota(5), other, seeds=[0])


def test_the_command_has_a_column_for_each_side_and_a_table_for_each_but_the_baseline(run: Callable[..., Ran]) -> None:
    sides = ("--side", "five", "--set", f"{QUOTA}=5", "--side", "six", "--set", f"{QUOTA}=6")
    lines = run(EXAMPLE, *sides, "--seeds", "2", "--baseline", "five").out.splitlines()
    assert lines[:4] == [
        f"A: {EXAMPLE}",
        f"five: A with {QUOTA}=5",
        f"six: A with {QUOTA}=6",
        "2 seeds, 120 jobs",
    ]
    assert re.fullmatch(r"A: \d+ wait less, \d+ wait longer, \d+ unchanged", lines[4])
    assert lines[7].split() == ["MEASURE", "five", "A", "CHANGE", "95%", "INTERVAL", "six", "CHANGE", "95%", "INTERVAL"]
    heads = [line.split()[:7] for line in lines if line.startswith("WORK ")]
    assert heads == [["WORK", "CLUSTER", "QUEUE", "JOBS", "LESS", "MORE", "WAIT"]] * 2
    assert [re.search(r"WAIT five +(WAIT \S+) ", line)[1] for line in lines if line.startswith("WORK ")] == [  # type: ignore[index]
        "WAIT A",
        "WAIT six",
    ]
    assert lines[-1] == (
        "A, five, six and CHANGE are medians over seeds; CHANGE is from five; intervals need six seeds or more"
    )


def test_three_files_are_a_b_and_c(run: Callable[..., Ran], renamed: Path) -> None:
    found = json.loads(run(EXAMPLE, str(renamed), EXAMPLE, "--seeds", "1", "-o", "json").out)
    assert [(side["name"], side["scenario"]) for side in found["sides"]] == [
        ("A", EXAMPLE),
        ("B", str(renamed)),
        ("C", EXAMPLE),
    ]
    assert (found["baseline"], found["differs"]) == ("A", False)
    large = next(group for group in found["groups"] if group["work"] == "large")
    assert [side["clusterQueue"] for side in large["sides"]] == ["team-b", "beta", "team-b"]


def test_sides_may_be_files_releases_and_experiments(run: Callable[..., Ran]) -> None:
    edits = ("--side", f"old={EXAMPLE}", "--set", "cluster.kueue=0.17", "--side", "shared")
    found = json.loads(
        run("--side", f"new={EXAMPLE}", *edits, "--experiment", "timeShareSeconds=60", "--seeds", "1", "-o", "json").out
    )
    assert [side["name"] for side in found["sides"]] == ["new", "old", "shared"]
    assert [side["kueue"]["version"] for side in found["sides"]][1] == "v0.17.8"
    assert [side.get("experiments") for side in found["sides"]] == [None, None, {"timeShareSeconds": 60}]
    assert found["baseline"] == "new"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is nothing to compare with"),
        (["--side", "x"], '--side "x" has no scenario; write --side x=FILE, or a file before it'),
        (["--set", "a=1"], "there is no scenario that --set could change"),
        ([EXAMPLE, "--side", "A", "--set", "cluster.cycle=2s"], 'two scenarios are called "A"'),
        ([EXAMPLE, "--side", "=x"], '--side "=x" has no name or no file; write --side NAME, or --side NAME=FILE'),
        ([EXAMPLE, "--side", "x="], '--side "x=" has no name or no file; write --side NAME, or --side NAME=FILE'),
        (
            [EXAMPLE, EXAMPLE, "--baseline", "b"],
            'baseline must be "A" or "B", not "b"; write one of these names after --baseline',
        ),
        ([EXAMPLE] * 3 + ["--set", "a=1"], "--set does not say which of 3 scenarios it changes"),
        ([EXAMPLE] * 27, "at most 26 scenarios can be compared"),
        ([EXAMPLE, "--side", "x=nope.yaml"], "nope.yaml: there is no such file"),
    ],
)
def test_wrong_sides_of_the_command_are_named(run: Callable[..., Ran], arguments: list[str], message: str) -> None:
    ran = run(*arguments, "-q")
    assert ran.code == ExitCode.BAD_INPUT
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_the_page_of_three_has_a_picture_for_each_and_one_for_all(run: Callable[..., Ran], tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    path = tmp_path / "out.html"
    sides = ("--side", "five", "--set", f"{QUOTA}=5", "--side", "<six>", "--set", f"{QUOTA}=6")
    run(EXAMPLE, *sides, "--seeds", "6", "--report", str(path))
    page = path.read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    assert "Who waits less, and who more, under five" in page
    assert "under &lt;six&gt;" in page
    assert "<six>" not in page
    assert '<th scope="col">wait five</th>' in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(set(ids)) == len(ids), "pictures share no ids"
