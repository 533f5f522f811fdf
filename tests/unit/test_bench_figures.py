from pathlib import Path

import pytest

from benches import figures
from benches.binaries import kernel_names, lines
from benches.compare import change
from benches.growth import slope


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "-"),
        (0.4, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (12_345, "12.3 µs"),
        (999_000, "999 µs"),
        (70_280_000, "70.3 ms"),
        (106_290_000_000, "106 s"),
    ],
)
def test_durations_have_three_digits_and_a_unit(ns: float | None, text: str) -> None:
    assert figures.duration(ns) == text


def test_a_ratio_says_how_many_times_smaller_ours_is() -> None:
    assert figures.ratio(2.0, 25.0) == "12.5x"
    assert figures.ratio(None, 25.0) == figures.ratio(2.0, None) == "-"


def test_a_change_is_told_of_what_was_before() -> None:
    assert change(200, 206) == "+3.0 %"
    assert change(200, None) == "-"


def test_columns_of_a_table_are_aligned() -> None:
    rows = [["a", "1", "22"], ["bbb", "33", "4"]]
    assert figures.table(["name", "x", "y"], rows).splitlines() == [
        "| name |  x |  y |",
        "| ---- | -: | -: |",
        "| a    |  1 | 22 |",
        "| bbb  | 33 |  4 |",
    ]


@pytest.mark.parametrize("power", [0, 1, 2])
def test_the_slope_is_the_power_with_which_it_grows(power: int) -> None:
    assert slope([(size, 3.0 * size**power) for size in (10, 100, 1000)]) == pytest.approx(power)


def test_one_point_has_no_slope() -> None:
    assert slope([(10, 1.0)]) is None


def test_goals_and_recorded_figures_are_of_kernels_that_there_are() -> None:
    goals, recorded = figures.goals()["kernels_ns"], figures.recorded()["kernels_ns"]
    assert set(goals) <= set(recorded)


def test_a_program_that_fails_is_no_figure(tmp_path: Path) -> None:
    program = tmp_path / "kernels"
    program.write_text("#!/bin/sh\necho Cycle/fit\nexit 3\n", encoding="utf-8")
    program.chmod(0o755)
    with pytest.raises(Exception, match="returned non-zero exit status 3"):
        kernel_names(tmp_path)
    with pytest.raises(Exception, match="returned non-zero exit status 3"):
        list(lines(program))
