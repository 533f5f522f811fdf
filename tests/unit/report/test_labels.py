"""What a person reads on a page: numbers, dates, spans, and the names of jobs and values."""

from __future__ import annotations

import re
from itertools import pairwise

import altair as alt
import pytest

from kueuecore._json import JsonValue
from kueuecore._numbers import number_text
from kueuecore.report import Report
from kueuecore.report.axes import span_text
from kueuecore.report.dates import date_ticks, day_and_time
from kueuecore.report.figure import svg
from kueuecore.scenarios import read_scenario, run_scenario
from kueuecore.scenarios.waits import within_which
from kueuecore.studies.sweep_points import value_names
from kueuecore.times import nanoseconds

DAY = 86400


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (40_000, "40000"),
        (12_380, "12380"),
        (2_000_000.0, "2000000"),
        (9.5, "9.5"),
        (123.45, "123.5"),
        (1234.6, "1235"),
        (-3.0, "-3"),
    ],
)
def test_no_number_has_an_exponent(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize("days", [2, 3, 9, 10, 11, 30, 60, 100, 365, 800, 3650])
def test_an_axis_of_dates_has_a_few_midnights_in_equal_steps(days: int) -> None:
    start = nanoseconds("2026-03-02T08:30:00Z")
    ticks = date_ticks(start, days * DAY)
    assert 2 <= len(ticks) <= 11
    assert len({round(b[0] - a[0]) for a, b in pairwise(ticks)}) == 1
    assert all((start // 10**9 + at) % DAY == 0 and 0 <= at <= days * DAY for at, _ in ticks)
    assert len({label for _, label in ticks}) == len(ticks)


def test_weeks_begin_on_mondays() -> None:
    labels = [label for _, label in date_ticks(nanoseconds("2026-03-04T00:00:00Z"), 40 * DAY)]
    assert labels == ["9 Mar", "16 Mar", "23 Mar", "30 Mar", "6 Apr", "13 Apr"]
    assert day_and_time(nanoseconds("2026-03-04T00:00:00Z"), 3661) == "Wed 4 Mar, 01:01"


@pytest.mark.parametrize(
    ("seconds", "text"), [(10800, "3h"), (11700, "3h15m"), (0.5, "0.5s"), (90, "1m30s"), (432000, "5d")]
)
def test_ticks_have_the_unit_that_a_person_would_choose(seconds: float, text: str) -> None:
    assert span_text(seconds) == text


FAIR = {"kind": "Configuration", "fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]}}


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([1, 2, 1], ["1", "2", "1"]),
        ([{"kind": "Configuration"}, FAIR], ["no preemptionStrategies", "LessThanInitialShare"]),
        ([{"mean": "1m"}, {"from": "1s", "to": "2m"}], ["mean 1m", "from 1s, to 2m"]),
        ([["a"], ["a", "b"]], ['["a"]', '["a", "b"]']),
        (["x" * 60, "y" * 60], ["value 1", "value 2"]),
        ([{"a": "1"}, {"a": 1}], ["value 1", "value 2"]),
        ([{}, {"a": {}}], ["value {}", "a {}"]),
    ],
)
def test_names_of_values_are_short_and_tell_them_apart(values: list[JsonValue], names: list[str]) -> None:
    assert value_names(values) == names


def test_a_quantile_of_whole_numbers_is_one_of_them() -> None:
    for n in range(1, 2001):
        assert within_which(range(n), 0.95) == max(-(-95 * n // 100), 1) - 1


def test_descriptions_of_marks_become_titles_and_stay_text() -> None:
    rows = alt.Data(values=[{"x": 1, "title": "<b>&'"}])  # type: ignore[no-untyped-call]
    picture = svg(alt.Chart(rows).mark_rule().encode(x="x:Q", description="title:N"), name="p", has_titles=True)
    assert re.findall("<title>(.*?)</title>", picture) == ["&lt;b&gt;&amp;'"]


def test_rows_have_the_names_of_their_jobs_and_bars_say_what_they_are() -> None:
    page = Report(run_scenario(read_scenario("examples/scenario/scenario.yaml")).run).html  # type: ignore[arg-type]
    names = set(re.findall(r">(job-(?:small|large)-\d+-[0-9a-f]+)</text>", page))
    assert len(names) == 60
    titles = re.findall("<title>(.*?)</title>", page)
    assert sum(" ran " in title for title in titles) == 60 + 13
    assert any(
        re.search(r"^team-a/job-small-\S+ preempts team-b/job-large-\S+: InCohortReclamation$", title)
        for title in titles
    )
    assert not any(" waited 0s" in title for title in titles)
