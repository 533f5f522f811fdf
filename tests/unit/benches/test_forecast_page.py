"""What is measured is kept, judged, compared with recorded figures, and written on a page."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from benches.forecast.asking import ETA, Asked, Kept, Part, Settings, ask_all, read_part, write_part
from benches.forecast.baselines import BASELINES
from benches.forecast.failures import failures_table, groups_of
from benches.forecast.measure import measure, parts_of
from benches.forecast.moments import Way
from benches.forecast.oracles import Knows
from benches.forecast.page import write_page
from benches.forecast.quick import RECORDED, figures_of, regressions
from benches.forecast.scores import BLOCK_SECONDS, SHARES
from benches.forecast.tables import duration, judged, summary
from tests.unit.benches.forecast_logs import log_text

ABOUT = {
    "log": "a-log",
    "way": "waiting",
    "jobs": 1234,
    "processors": 64,
    "days": 80.2,
    "users": 7,
    "queues": 2,
    "load": 0.753,
    "dropped": {"no run time": 25},
    "limits": 1.0,
    "overrun": 0.1,
    "settings": {"n_asked": 200, "n_futures": 100, "n_oracle": 0, "seed": 1},
}


def kept(way: Way = Way.WAITING) -> Kept:
    """200 questions over 20 weeks: `eta` holds for small jobs and is too early for large ones."""
    asked = []
    for place in range(200):
        is_large = place % 2 == 0
        truth = 1000.0 * ((place // 2) % 20 + 0.5) * (3 if is_large else 1)
        own = tuple(round(20_000 * share, 1) for share in SHARES)
        forecasts = {name: tuple(round(100_000 * share, 1) for share in SHARES) for name in BASELINES}
        asked.append(
            Asked(
                at=place * BLOCK_SECONDS / 10,
                row=place,
                waited=100.0,
                truth=truth,
                queue="one",
                pods=40 if is_large else 1,
                n_waiting=3,
                n_running=4,
                seconds=0.25,
                forecasts={ETA: own, **forecasts},
            )
        )
    return Kept(about={**ABOUT, "way": way.value}, asked=tuple(asked))


def test_answers_are_read_as_they_were_written(tmp_path: Path) -> None:
    given = kept()
    first = replace(given.asked[0], forecasts={ETA: (*given.asked[0].forecasts[ETA][:-1], inf)})
    write_part(tmp_path / "a.jsonl", given.about, iter([first, *given.asked[1:]]))
    assert read_part(tmp_path / "a.jsonl") == replace(given, asked=(first, *given.asked[1:]))


def test_the_best_baseline_is_the_one_to_beat() -> None:
    part = judged(kept())
    assert part.best() in BASELINES
    expected = part.by[ETA].score.value / part.by[part.best()].score.value
    assert part.ratio().value == pytest.approx(expected)
    assert part.by[ETA].coverage[0.8].value == pytest.approx(0.55, abs=0.06)


def test_failures_are_the_kinds_of_questions_that_are_off() -> None:
    groups = {group.name: group for group in groups_of(kept())}
    large = groups["that request more than half of the machine"]
    assert large.scores.n == 100
    assert large.coverage.value < 0.4
    assert groups["that request up to a twentieth"].errors_off < 2
    found = failures_table([kept()])
    assert "more than half of the machine" in found
    assert "up to a twentieth" not in found


def test_the_page_has_the_figures_first_and_a_picture_of_each_log(tmp_path: Path) -> None:
    write_page([kept(), kept(Way.SUBMITTED)], tmp_path / "forecast.md", tmp_path / "forecast")
    text = (tmp_path / "forecast.md").read_text(encoding="utf-8")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings[:2] == ["## Figures", "## Where they fail"]
    assert "## What a forecast cannot know" not in headings, "no oracle was asked"
    cells = [" ".join(line.split()) for line in text.splitlines()]
    assert "| a-log | 1,234 | 64 | 80 | 7 | 2 | 75 % | 10.0 % | 25 no run time | 0.25 s |" in cells
    assert "![Reliability and PIT of a-log](forecast/a-log.svg)" in text
    assert (tmp_path / "forecast/a-log.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_figure_that_is_worse_by_more_than_is_tolerated_has_regressed() -> None:
    was = {"coverage": 0.75, "score": 0.6, "log_score": 0.7, "factor_two": 0.5}
    assert regressions(was, was) == []
    assert regressions({**was, "coverage": 0.88, "score": 0.65, "factor_two": 0.46}, was) == []
    assert regressions({**was, "coverage": 0.91}, was) == ["coverage 91.0% is farther from 80 % than 75.0%"]
    worse = regressions({**was, "score": 0.67, "log_score": 0.78, "factor_two": 0.44}, was)
    assert [line.partition(" ")[0] for line in worse] == ["factor", "score", "score"]


def test_recorded_figures_are_of_the_generated_log_in_both_ways() -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert {f"synthetic, {way.value}" for way in Way} <= set(recorded)
    assert all(set(figures) == set(figures_of(judged(kept()))) for figures in recorded.values())


def test_a_log_is_measured_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "a.swf"
    jobs = [(600 * number, 1500 + 100 * (number % 7), 1 + number % 4) for number in range(80)]
    file.write_text(log_text(*jobs), encoding="utf-8")
    settings = Settings(n_asked=3, n_futures=3, n_oracle=1)
    parts = parts_of([file], settings)
    paths = measure(parts, tmp_path / "kept", workers=1, quiet=True)
    assert [path.name for path in paths] == ["a.waiting.jsonl", "a.submitted.jsonl"]
    found = [read_part(path) for path in paths]
    for each in found:
        assert [set(asked.forecasts) for asked in each.asked].count({ETA, *BASELINES, *Knows}) == 1
        assert [asked.at for asked in each.asked] == sorted(asked.at for asked in each.asked)
        assert all(asked.truth > 0 for asked in each.asked)
    assert "asked: waiting" in summary(found)
    again = ask_all(Part(file=str(file), way=Way.WAITING, settings=settings), tmp_path / "again")
    assert [replace(asked, seconds=0) for asked in read_part(again).asked] == [
        replace(asked, seconds=0) for asked in found[0].asked
    ]


@pytest.mark.parametrize(
    ("seconds", "text"), [(59.94, "59.9 s"), (90, "1.50 min"), (36_000, "10.0 h"), (864_000, "10.0 d")]
)
def test_durations_have_three_digits(seconds: float, text: str) -> None:
    assert duration(seconds) == text
