import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benches import figures
from benches.binaries import Counts, kernel_names, lines, read_counts
from benches.compare import change
from benches.endurance import endurance_table
from benches.growing import SERIES, growing_plot, growing_table
from benches.growth import kueues_tournament
from benches.measure import kernel_table
from benches.page import heads_table, kernels_table, replaced
from benches.plots import Line, log_log
from benches.shapes import SHAPES, group_of, shapes_of
from benches.slopes import slope


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


def test_a_change_is_relative_to_the_value_before() -> None:
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


def test_memory_is_shown_relative_to_the_start() -> None:
    points = [
        {"workloads": 10.0**5, "bytes": 100 * 2**20, "seconds": 2},
        {"workloads": 10.0**6, "bytes": 2**27, "seconds": 30},
    ]
    assert endurance_table(points).splitlines()[2:] == [
        "|        100,000 | 100.0 MiB |  +0.0 % |          20.0 µs |",
        "|      1,000,000 | 128.0 MiB | +28.0 % |          30.0 µs |",
    ]


def test_what_callgrind_says_of_several_calls_is_shared_out_among_them() -> None:
    reported = """
==7== Events    : Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw
==7== Collected : 5000 900 400 20 30 10 1 2 3
==7==
==7== I   refs:      5,000
"""
    assert read_counts(reported, calls=10) == Counts(instructions=500, d1_misses=4, i1_misses=2)
    short = reported.replace("20 30 10 1 2 3", "20 30")
    assert read_counts(short, calls=10) == Counts(instructions=500, d1_misses=3, i1_misses=2), "no writes missed"
    assert read_counts("valgrind: no such program", calls=10) is None


KERNELS: dict[str, dict[str, float | None]] = {
    "Cycle/fit": {
        "heads": 1000,
        "best_ns": 3e6,
        "median_ns": 4e6,
        "instructions": 19_000_000,
        "d1_misses": 200_000,
        "i1_misses": 177_000,
        "allocations": 20_400,
    },
    "Fork/admitted=50000": {
        "heads": None,
        "best_ns": 8e6,
        "median_ns": 9e6,
        "instructions": None,
        "d1_misses": None,
        "i1_misses": None,
        "allocations": 17_000,
    },
}


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_the_table_of_kernels_has_what_is_counted_beside_the_time() -> None:
    head, _, fit, fork = cells(kernel_table(KERNELS, {"Cycle/fit": 66e6}))
    assert head[3:7] == ["instructions", "D1 misses", "I1 misses", "allocations"]
    assert fit == ["Cycle/fit", "3.00 ms", "4.00 ms", "19.0 M", "200 k", "177 k", "20.4 k", "66.0 ms", "22.0x"]
    assert fork == ["Fork/admitted=50000", "8.00 ms", "9.00 ms", "-", "-", "-", "17.0 k", "-", "-"]


def test_the_page_says_what_cycles_take_for_a_head() -> None:
    _, _, *rows = cells(heads_table(KERNELS))
    assert rows == [["`Cycle/fit`", "1,000", "3.00 µs", "19.0 k", "200", "177", "20"]], "and no other calls"


def test_a_row_belongs_to_the_most_specific_group_and_each_group_is_listed_once() -> None:
    assert group_of("Cycle/borrow/shapes=1000") == "Cycle"
    assert group_of("Cycle/5levels/fit") == "Cycle/5levels"
    assert group_of("Cycle/preempt-40/heads=25") == "Cycle/preempt"
    reported = shapes_of(["Cycle/fit", "Cycle/borrow", "Assign/1podset/last/cold"])
    assert [line[:12] for line in reported.splitlines() if line.startswith("- ")] == ["- `Cycle`: o", "- `Assign`: "]
    assert max(map(len, reported.splitlines())) <= 120


def test_a_row_without_a_state_is_refused() -> None:
    with pytest.raises(KeyError, match="Cycles/fit"):
        shapes_of(["Cycles/fit"])


def test_single_steps_in_a_series_of_sizes_are_a_line_with_a_slope() -> None:
    sizes = [250, 500, 1000, 2000]
    steps = {f"Cycle/fair-5levels/fit/heads={n}": {"best_ns": 4.0 * n * n} for n in reversed(sizes)}
    steps |= {f"Cycle/fair-5levels/borrow/heads={n}": {"best_ns": 1000.0 * n} for n in sizes}
    steps |= {"Cycle/preempt-40/heads=25": {"best_ns": 1.0}}
    head, _, *rows, slopes = cells(growing_table(steps, SERIES["fair-tree"]))
    assert head[1:] == ["all fit", "all fit, a head", "all borrow", "all borrow, a head"]
    assert rows[0] == ["250", "250 µs", "1.00 µs", "250 µs", "1.00 µs"]
    assert [row[0] for row in rows] == ["250", "500", "1,000", "2,000"]
    assert slopes == ["slope", "+2.00", "+1.00", "+1.00", "+0.00"]
    svg = growing_plot(steps, SERIES["fair-tree"])
    assert [len(line) for line in polylines(svg)] == [4, 4]
    assert "all fit, slope +2.00" in svg


def test_what_grows_belongs_to_groups_that_there_are() -> None:
    rows = [row for series in SERIES.values() for row in series.lines.values()]
    assert {group_of(row) for row in rows} <= set(SHAPES)
    assert all(row.count("#") == 1 for row in rows)


def test_every_goal_and_recorded_figure_is_of_a_group_that_the_page_explains() -> None:
    assert {group_of(name) for name in [*figures.goals()["kernels_ns"], *figures.recorded()["kernels_ns"]]} <= set(
        SHAPES
    )


def test_a_goal_for_a_kernel_that_was_not_measured_stops_the_page() -> None:
    with pytest.raises(SystemExit, match=r"goals\.json: no kernel Cycle/gone was measured"):
        kernels_table({}, goals={"Cycle/gone": 1.0}, recorded={}, steps={})


def test_a_program_that_fails_is_no_figure(tmp_path: Path) -> None:
    program = tmp_path / "kernels"
    program.write_text("#!/bin/sh\necho Cycle/fit\nexit 3\n", encoding="utf-8")
    program.chmod(0o755)
    with pytest.raises(Exception, match="returned non-zero exit status 3"):
        kernel_names(tmp_path)
    with pytest.raises(Exception, match="returned non-zero exit status 3"):
        list(lines(program))


def test_a_section_of_the_page_is_replaced_and_the_others_stay() -> None:
    page = "# Page\n\n## One\n\nold\n\n### Below\n\nold\n\n## Two\n\ntext\n"
    assert replaced(page, "## One\n", "## One\n\nnew\n") == "# Page\n\n## One\n\nnew\n\n## Two\n\ntext\n"
    with pytest.raises(ValueError, match="no section '## Three'"):
        replaced(page, "## Three\n", "")
