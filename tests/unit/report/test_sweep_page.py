"""The page of a sweep."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kueuecore import ManifestError
from kueuecore.cli import ExitCode, main
from kueuecore.scenarios import parse_edit, parse_target
from kueuecore.studies import Axis, Sweep, drawn_points, grid_points
from kueuecore.studies.sweep_points import best_first
from tests.html_page import Page, contrast, rows_of

pytest.importorskip("altair")
pytest.importorskip("vl_convert")
from kueuecore.report import SweepReport

EXAMPLE = "examples/scenario/scenario.yaml"
QUOTA = "ClusterQueue/team-*:spec.resourceGroups[0].flavors[name=default].resources[name=cpu].nominalQuota"


def sweep_of(*axes: tuple[str, tuple[object, ...]], **figures: list[list[float]]) -> Sweep:
    """A sweep over a grid, with these figures of each point with each seed."""
    points = grid_points([Axis(parse_target(target), values) for target, values in axes])  # type: ignore[arg-type]
    n_seeds = len(next(iter(figures.values()))[0])
    runs = [
        {name: rows[point][seed] for name, rows in figures.items()} | {"never_admitted": 0.0, "cut_off": 0.0}
        for point in range(len(points))
        for seed in range(n_seeds)
    ]
    return Sweep(points=tuple(points), seeds=tuple(range(n_seeds)), figures=tuple(runs))


def pictures_of(page: str) -> list[str]:
    return re.findall(r"<svg.*?</svg>", page, re.DOTALL)


def best_rows(page: str) -> list[list[str]]:
    table = page[page.index(">Points, best first</h2>") :]
    return [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(<td>.*?)</tr>", table)]


def test_one_field_is_a_curve_with_medians_intervals_and_seeds() -> None:
    seeds = [600.0, 100.0, 200.0, 300.0, 400.0, 500.0]
    found = sweep_of((QUOTA, (4, 8)), mean_wait_seconds=[seeds, [60.0] * 6])
    text = SweepReport(found, title="Quota").html
    page = Page(text)
    assert page.headings == ["Quota", "Mean wait by nominalQuota", "Points, best first"]
    assert not page.tags & {"script", "link", "iframe", "img", "object"}
    assert rows_of(text, "Mean wait by nominalQuota") == [
        ["4", "5m50s", "1m40s to 10m00s", "1m40s", "10m00s"],
        ["8", "1m00s", "1m00s to 1m00s", "1m00s", "1m00s"],
    ]
    assert "Least, 1m00s, with nominalQuota 8; most, 5m50s, with nominalQuota 4." in text
    (picture,) = pictures_of(text)
    # Two medians, and a dot for each run.
    assert len(re.findall(r'aria-roledescription="(?:point|circle)"', picture)) == 2 + 12
    assert picture.count('aria-roledescription="rule mark"') == 2
    assert best_rows(text) == [["8", "1m00s", "0"], ["4", "5m50s", "0"]]


def test_a_measure_that_is_the_same_at_all_points_is_a_number_not_a_chart() -> None:
    found = sweep_of((QUOTA, (4, 8)), mean_wait_seconds=[[1.0], [2.0]], failed=[[3.0], [3.0]])
    text = SweepReport(found).html
    assert len(pictures_of(text)) == 1
    assert "<dt>jobs failed at all points</dt><dd>3</dd>" in text


def test_jobs_that_fail_have_a_picture() -> None:
    text = SweepReport(sweep_of(("work[0].fails.share", (0.0, 0.5)), failed=[[0.0], [7.0]])).html
    assert rows_of(text, "Jobs failed by share") == [["0", "0", "-", "0", "0"], ["0.5", "7", "-", "7", "7"]]


def test_a_grid_of_two_fields_is_a_heat_map_with_numbers_that_can_be_read() -> None:
    axes = ((QUOTA, (4, 8, 16)), ("cluster.cycle", ("10s", "1s")))
    found = sweep_of(*axes, evictions=[[5.0], [4.0], [3.0], [2.0], [1.0], [0.0]], mean_wait_seconds=[[9.0]] * 6)
    text = SweepReport(found).html
    (picture,) = pictures_of(text)
    cells = re.findall(r'<path aria-label="cycle: \w+; nominalQuota: (\d+);[^>]*? fill="(#\w+)"', picture)
    assert [row for row, _ in cells] == ["4", "4", "8", "8", "16", "16"]
    words = re.findall(r'aria-roledescription="text mark"[^>]*? fill="(#\w+)"[^>]*>(.*?)</text>', picture)
    assert [word for _, word in words] == ["★ 5", "4", "3", "2", "1", "0"], "all waits are alike, so the first is best"
    for (_, ground), (ink, _) in zip(cells, words, strict=True):
        assert contrast(ground, ink) >= 4.5
    # Spans are in the order of their length.
    assert re.findall(r">(1s|10s)</text>", picture) == ["1s", "10s"]


def test_more_fields_and_points_drawn_at_random_have_a_panel_for_each_field() -> None:
    axes = [Axis(parse_target(QUOTA), (4, 8)), Axis(parse_target("work[0].count"), (10, 90), is_range=True)]
    points = tuple(drawn_points(axes, 20, seed=1))
    runs = tuple({"mean_wait_seconds": float(n), "never_admitted": 0.0, "cut_off": 0.0} for n in range(20))
    text = SweepReport(Sweep(points=points, seeds=(1,), figures=runs)).html
    (picture,) = pictures_of(text)
    assert len(re.findall(r'aria-roledescription="point"', picture)) == 2 * 20
    assert [title in picture for title in (">nominalQuota</text>", ">count</text>")] == [True, True]
    assert len(best_rows(text)) == 20


def test_fields_with_the_same_last_part_are_numbered() -> None:
    one, two = (f"ClusterQueue/{name}:spec.fairSharing.weight" for name in ("a", "b"))
    text = SweepReport(sweep_of((one, (1, 2)), (two, (1, 2)), evictions=[[1.0], [2.0], [3.0], [4.0]])).html
    assert f"weight 1 is {one}; weight 2 is {two}." in text


def test_values_that_are_no_numbers_have_points_without_a_curve() -> None:
    values = ("BestEffortFIFO", "StrictFIFO", None)
    text = SweepReport(sweep_of(("ClusterQueue/*:spec.queueingStrategy", values), evictions=[[1.0], [2.0], [3.0]])).html
    (picture,) = pictures_of(text)
    assert 'aria-roledescription="line mark"' not in picture
    assert [f">{name}</text>" in picture for name in ("BestEffortFIFO", "StrictFIFO", "null")] == [True] * 3


def test_the_best_point_admits_all_jobs_unless_a_figure_is_given() -> None:
    point = [{"mean_wait_seconds": wait, "never_admitted": never, "fairness": fair, "cut_off": cut}
             for wait, never, fair, cut in ((1.0, 5.0, 0.2, 0.0), (9.0, 0.0, 0.9, 0.0), (8.0, 0.0, 0.5, 0.0),
                                            (0.5, 0.0, 1.0, 1.0))]  # fmt: skip
    points = tuple((parse_edit(f"work[0].count={n}"),) for n in range(4))
    found = Sweep(points=points, seeds=(1,), figures=tuple(point))
    assert best_first(found) == [2, 1, 0, 3]
    assert best_first(found, "fairness") == [1, 2, 0, 3]
    text = SweepReport(found, by="fairness").html
    assert "The best point has the highest fairness, then the fewest jobs never admitted" in text
    assert [row[0] for row in best_rows(text)] == ["1", "2", "0", "3"]
    assert "<dt>runs cut off</dt><dd>1</dd>" in text
    with pytest.raises(ValueError, match="no run has speed"):
        SweepReport(found, by="speed")


def test_points_without_a_wait_are_in_the_table_and_not_in_the_picture() -> None:
    points = tuple((parse_edit(f"work[0].count={n}"),) for n in (0, 5, 6))
    figures = [{}, {"mean_wait_seconds": 5.0}, {"mean_wait_seconds": 6.0}]
    runs = tuple({**figure, "never_admitted": 0.0, "cut_off": 0.0} for figure in figures)
    text = SweepReport(Sweep(points=points, seeds=(1,), figures=runs)).html
    assert rows_of(text, "Mean wait by count")[0] == ["0", "-", "-", "-", "-"]
    (picture,) = pictures_of(text)
    assert len(re.findall(r'aria-roledescription="point"', picture)) == 2


def test_a_single_point_has_a_table_alone_and_values_are_text_whatever_is_in_them() -> None:
    text = SweepReport(sweep_of(("cluster.x", ("<script>alert(1)</script>",)), evictions=[[1.0]])).html
    assert pictures_of(text) == []
    assert "script" not in Page(text).tags
    assert best_rows(text)[0][0] == "&lt;script&gt;alert(1)&lt;/script&gt;"


def test_the_command_writes_the_page_in_addition_to_its_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.html"
    arguments = ["sweep", EXAMPLE, "--grid", f"{QUOTA}=[4, 6]", "--sort", "fairness", "-o", "csv", "--workers", "1"]
    assert main(arguments) == ExitCode.OK
    plain = capsys.readouterr().out
    assert main([*arguments, "--report", str(path)]) == ExitCode.OK
    ran = capsys.readouterr()
    assert (ran.out, ran.err) == (plain, f"note: wrote {path}\n")
    text = path.read_text(encoding="utf-8")
    assert Page(text).headings[:3] == [f"Sweep of {EXAMPLE}", "Fairness by nominalQuota", "Mean wait by nominalQuota"]


def test_a_missing_extra_is_reported_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path | None) -> None:
        raise ManifestError.of("a report needs the extra `report`", remedy="pip install 'kueuecore[report]'")

    monkeypatch.setattr("kueuecore.cli.commands.sweep.require_page", refuse)
    path = tmp_path / "out.html"
    arguments = ["sweep", EXAMPLE, "--grid", f"{QUOTA}=[4]", "--checkpoint", str(tmp_path / "c"), "--report", str(path)]
    assert main(arguments) == ExitCode.BAD_INPUT
    assert "a report needs the extra `report`" in capsys.readouterr().err
    assert not path.exists()
    assert not (tmp_path / "c").exists()
