import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benches import figures
from benches.binaries import kernel_names, lines
from benches.compare import change
from benches.endurance import endurance_table
from benches.growth import kueues_tournament, slope
from benches.plots import Line, log_log


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


def polylines(svg: str) -> list[list[tuple[float, float]]]:
    found = re.findall(r'<polyline [^>]*points="([^"]*)"', svg)
    return [[(float(x), float(y)) for x, y in (pair.split(",") for pair in points.split())] for points in found]


def test_a_power_is_a_straight_line_in_a_plot() -> None:
    svg = log_log("Time", "n", [Line("square", [(n, 5.0 * n * n) for n in (10, 100, 1000)])])
    ((x0, y0), (x1, y1), (x2, y2)) = polylines(svg)[0]
    assert (x1 - x0, y1 - y0) == pytest.approx((x2 - x1, y2 - y1), abs=0.2)
    assert x1 > x0, "more is to the right"
    assert y1 < y0, "and above"


def test_a_plot_is_xml_and_tells_its_lines_apart() -> None:
    lines = [Line("a < b", [(1, 10.0), (10, 10.0)]), Line("c", [(1, 10.0), (10, 10.0)], is_model=True)]
    root = ElementTree.fromstring(log_log("Time & more", "n", lines))
    texts = {text.text: float(text.get("y", "")) for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert "Time & more" in texts
    assert abs(texts["a < b"] - texts["c"]) > 12, "one below the other"
    assert sum("stroke-dasharray" in line.attrib for line in root.iter("{http://www.w3.org/2000/svg}polyline")) == 1


def test_the_model_of_kueues_tournament_is_quadratic_in_the_end() -> None:
    points = [{"size": 10**power, "share_ns": 50.0} for power in range(1, 9)]
    line = kueues_tournament(points, 70_000)
    assert list(line.points[0]) == [10, 10 * 70_000 + 55 * 50.0]
    assert slope(line.points[-2:]) == pytest.approx(2, abs=0.01)


def test_memory_over_time_is_told_beside_what_it_was_at_first() -> None:
    points = [
        {"workloads": 10.0**5, "bytes": 100 * 2**20, "seconds": 2},
        {"workloads": 10.0**6, "bytes": 2**27, "seconds": 30},
    ]
    assert endurance_table(points).splitlines()[2:] == [
        "|        100,000 | 100.0 MiB |  +0.0 % |          20.0 µs |",
        "|      1,000,000 | 128.0 MiB | +28.0 % |          30.0 µs |",
    ]


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
