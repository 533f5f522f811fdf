"""Scores of forecasts, and forecasts from past waits, on cases that can be worked out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from xml.etree import ElementTree

import numpy as np
import pytest

from benches.forecast.baselines import BASELINES, Baselines, lindy, lognormal, past_quantiles
from benches.forecast.moments import Question, Way, questions
from benches.forecast.oracles import Knows, Oracle
from benches.forecast.past import Past
from benches.forecast.pictures import Curve, picture, pit_shares, reliability
from benches.forecast.qbets import Qbets, lower_rank, upper_rank
from benches.forecast.replay import replay
from benches.forecast.scores import (
    BLOCK_SECONDS,
    HORIZON_SECONDS,
    SHARES,
    Answer,
    covered,
    interval_score,
    jackknife,
    pit,
    scores,
)
from kueuecore.times import SECOND_NS
from tests.unit.benches.forecast_logs import small_log

WEEK = BLOCK_SECONDS


def binomial(n: int, k: int, share: float) -> float:
    """The probability of k of n; in logarithms, because factors of large ones are no floats."""
    return math.exp(math.log(math.comb(n, k)) + k * math.log(share) + (n - k) * math.log1p(-share))


def uniform(truth: float, *, at: float = 0.0, scale: float = 100.0) -> Answer:
    """A forecast that is uniform from 0 to scale."""
    return Answer(at, tuple(share * scale for share in SHARES), truth)


def test_a_truth_at_the_end_of_an_interval_is_within() -> None:
    assert covered(uniform(10.0), 0.8)
    assert not covered(uniform(9.9), 0.8)
    assert covered(uniform(9.9), 0.95)
    assert covered(uniform(90.0), 0.8)
    assert not covered(uniform(90.1), 0.8)


def test_a_score_is_the_width_and_ten_times_the_miss() -> None:
    assert interval_score(2, 7, 2) == 5
    assert interval_score(2, 7, 1.5) == pytest.approx(10)
    assert interval_score(2, 7, 8, level=0.5) == pytest.approx(9)


def test_forecasts_that_hold_have_their_coverage_and_a_uniform_pit() -> None:
    answers = [uniform((number + 0.5) / 10, at=number * WEEK / 100) for number in range(1000)]
    own = scores(answers)
    assert own.n == 1000
    assert [own.coverage[level].value for level in (0.5, 0.8, 0.95)] == pytest.approx([0.5, 0.8, 0.95])
    assert (own.below.value, own.above.value) == pytest.approx((0.1, 0.1))
    assert pit_shares(answers) == pytest.approx([0.1] * 10)
    assert [seen for _, seen in reliability(answers)] == pytest.approx(list(SHARES))
    assert own.score.value == pytest.approx(80 + 10 * 2 * 0.1 * 5)


def test_medians_count_within_a_factor_of_two_of_waits_over_a_minute() -> None:
    truths = [1.0, 60.0, 99.0, 100.0, 101.0]
    answers = [uniform(truth, at=place * WEEK) for place, truth in enumerate(truths)]
    assert scores(answers).factor_two.value == pytest.approx(2 / 3)


def test_what_is_beyond_the_horizon_counts_as_the_horizon() -> None:
    never = Answer(0.0, (*(0.0 for _ in SHARES[:-3]), *(math.inf,) * 3), 2 * HORIZON_SECONDS)
    assert covered(never, 0.95)
    assert not covered(never, 0.8), "its upper end, the 90 % quantile, is a time"
    assert math.isfinite(scores([never]).score.value)


def test_pit_of_a_forecast_of_one_value_is_the_middle_of_its_share() -> None:
    assert pit(Answer(0.0, (5.0,) * len(SHARES), 5.0)) == 0.5
    assert pit(Answer(0.0, (5.0,) * len(SHARES), 4.0)) == SHARES[0] / 2
    assert pit(Answer(0.0, (5.0,) * len(SHARES), 6.0)) == (1 + SHARES[-1]) / 2
    assert pit(uniform(37.0)) == pytest.approx(0.37)


def truths(answers: Sequence[Answer]) -> list[float]:
    return [answer.truth for answer in answers]


def test_the_error_counts_weeks_and_not_answers() -> None:
    # Ten weeks of a hundred equal answers each: as good as ten answers.
    weekly = [uniform(float(week % 2), at=week * WEEK + place) for week in range(10) for place in range(100)]
    alone = [uniform(float(week % 2), at=week * WEEK) for week in range(10)]
    assert jackknife(weekly, truths(weekly)).error == pytest.approx(jackknife(alone, truths(alone)).error)
    assert jackknife(alone, truths(alone)).error == pytest.approx(np.std([0, 1] * 5, ddof=1) / math.sqrt(10))
    assert math.isnan(jackknife(weekly[:100], truths(weekly[:100])).error)


def test_a_ratio_of_equal_scores_is_certain() -> None:
    answers = [uniform(float(place), at=place * WEEK) for place in range(1, 20)]
    found = jackknife(answers, [2 * truth for truth in truths(answers)], truths(answers))
    assert (found.value, found.error) == pytest.approx((2.0, 0.0))
    assert found.plain() == "2.00 ± 0.00"


def test_past_waits_that_were_shorter_do_not_count_and_small_groups_give_way_to_all() -> None:
    alike, every = np.arange(0.0, 30.0), np.arange(0.0, 1000.0)
    median = SHARES.index(0.5)
    assert past_quantiles([alike, every], 0.0)[median] == pytest.approx(14.5)
    assert past_quantiles([alike, every], 10.0)[median] == pytest.approx(9.5), "20 are left"
    assert past_quantiles([alike, every], 11.0)[median] == pytest.approx((999 - 11) / 2)
    assert past_quantiles([alike, every], 5000.0) == lindy(5000.0)


def test_half_of_waits_longer_than_any_are_twice_as_long() -> None:
    assert lindy(3600.0)[SHARES.index(0.5)] == pytest.approx(3600.0)


def test_a_lognormal_has_the_median_of_its_waits_and_forgets_what_has_gone_by() -> None:
    waits = [math.e**power - 1 for power in (3.0, 5.0, 7.0)]
    at = {share: place for place, share in enumerate(SHARES)}
    assert lognormal(waits, 0.0)[at[0.5]] == pytest.approx(math.e**5 - 1, rel=0.01)
    some = lognormal(waits, math.e**5 - 1)
    # Of those above the median, half are below the 75 % quantile.
    assert some[at[0.5]] == pytest.approx(math.exp(5 + 0.6745 * math.sqrt(8 / 3)) - math.e**5, rel=0.01)
    assert lognormal(waits[:1], 50.0) == lindy(50.0)


@pytest.mark.parametrize(("n", "share"), [(59, 0.95), (100, 0.9), (100, 0.5), (2000, 0.9), (30, 0.75)])
def test_a_binomial_bound_is_above_the_quantile_with_its_confidence_and_not_a_place_too_far(
    n: int, share: float
) -> None:
    rank = upper_rank(n, share)
    assert rank is not None

    def below(k: int) -> float:
        """The probability that at most k of n are below the quantile."""
        return math.fsum(binomial(n, i, share) for i in range(k + 1))

    # Of many, it is taken as normal.
    assert below(rank) >= 0.95
    assert below(rank - 1 - (n > 1000)) < 0.95
    assert lower_rank(n, round(1 - share, 9)) == n - 1 - rank


def test_few_waits_have_no_bound() -> None:
    assert upper_rank(58, 0.95) is None
    assert lower_rank(58, 0.05) is None


def test_qbets_cuts_its_history_when_waits_change() -> None:
    """A machine that is nearly idle, then full: soon the bounds are those of the full one."""
    random = Random(1)
    calm = [(500 * number, 400, random.randint(1, 2)) for number in range(300)]
    busy = [(150_000 + 200 * number, 390, 2) for number in range(700)]
    played = replay(small_log(*calm, *busy, processors=2))
    past, row = Past(played), 999
    before = Qbets(past).quantiles(Question(played.log.start + 150_000 * SECOND_NS, row), 0.0)
    now = int(played.created[row])
    after = Qbets(past).quantiles(Question(now, row), 0.0)
    known = past.between(0, past.n_at(now)).seconds
    high = SHARES.index(0.9)
    assert before[high] < 600
    assert after[SHARES.index(0.1)] > np.quantile(known, 0.3), "the calm days are forgotten"
    assert after[high] <= known.max()


def test_baselines_know_only_waits_that_are_over() -> None:
    jobs = [(300 * number, 1400, 1 + number % 2) for number in range(400)]
    played = replay(small_log(*jobs, processors=6))
    other = replay(small_log(*jobs[:300], *((at, 9000, pods) for at, _, pods in jobs[300:]), processors=6))
    asked = [question for question in questions(played, Way.WAITING, 40) if question.row < 290]
    asked = [question for question in asked if question.now < played.created[300]]
    assert len(asked) > 5
    one, two = Baselines(Past(played)), Baselines(Past(other))
    for question in asked:
        found = one.quantiles(question, 100.0)
        assert found == two.quantiles(question, 100.0), "later jobs do not matter"
        assert sorted(found) == sorted(BASELINES)
        for quantiles in found.values():
            assert len(quantiles) == len(SHARES)
            assert list(quantiles) == sorted(quantiles)
            assert quantiles[0] >= 0


def test_an_oracle_that_knows_run_times_is_right_where_arrivals_do_not_matter() -> None:
    jobs = [(200 * number, 300 + 37 * (number % 11), 4) for number in range(120)]
    played = replay(small_log(*jobs))
    oracle = Oracle(played, 3)
    for question in questions(played, Way.WAITING, 4):
        truth = (int(played.admitted[question.row]) - question.now) / SECOND_NS
        found = oracle.quantiles(question, Knows.RUN_TIMES)
        assert found[0] == found[-1] == pytest.approx(truth, abs=2)
        assert oracle.quantiles(question, Knows.ARRIVALS)[0] < truth * 1.5


def test_a_picture_has_a_line_for_each_forecaster_and_ten_columns() -> None:
    answers = [uniform(float(number)) for number in range(100)]
    svg = picture("a < b", [Curve("eta", answers), Curve("past", answers, is_other=True)])
    root = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    lines = list(root.iter(f"{space}polyline"))
    assert ["stroke-dasharray" in line.attrib for line in lines] == [False, True]
    columns = [column for column in root.iter(f"{space}rect") if column.get("fill", "").startswith("#")]
    assert len(columns) == 10
    assert "a < b" in [text.text for text in root.iter(f"{space}text")]
