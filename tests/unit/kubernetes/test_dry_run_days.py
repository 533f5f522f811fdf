"""Days of a Kueue with a dry run beside it: what both see late is no difference, and a Kueue that is none differs."""

from __future__ import annotations

from collections import Counter

import pytest

from kueuecore.kubernetes.dry_run.decisions_seen import Kind
from kueuecore.kubernetes.dry_run.judge import Verdict
from kueuecore.times import SECOND_NS
from tests.unit.kubernetes.dry_run_days import Day, reversed_priority


def verdicts(day: Day) -> Counter[tuple[Kind, Verdict]]:
    return Counter((it.kind, it.verdict) for it in day.judged)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_day_in_which_both_see_each_change_up_to_a_second_late_has_no_difference(seed: int) -> None:
    day = Day(seed)
    day.run(seconds=50, n_jobs=40)
    found = verdicts(day)
    assert [it for it in day.judged if it.verdict is not Verdict.AGREED] == []
    assert found[Kind.ADMISSION, Verdict.AGREED] >= 40
    assert found[Kind.PREEMPTION, Verdict.AGREED] >= 5
    assert found[Kind.MESSAGE, Verdict.AGREED] >= 40
    # Some agree only on a state that this process saw earlier or later.
    assert any(it.why for it in day.judged)


def test_who_sees_each_change_at_once_agrees_mostly_on_the_last_state() -> None:
    day = Day(3, kueue_late_ns=0, judge_late_ns=0)
    day.run(seconds=40, n_jobs=30)
    assert {it.verdict for it in day.judged} == {Verdict.AGREED}
    assert sum(not it.why for it in day.judged) > 0.9 * len(day.judged)


def test_the_same_day_is_judged_the_same_again() -> None:
    days = [Day(4), Day(4)]
    for day in days:
        day.run(seconds=20, n_jobs=20)
    assert days[0].judged == days[1].judged


def test_a_kueue_that_puts_the_least_important_first_differs() -> None:
    day = Day(1, alters=reversed_priority)
    day.run(seconds=40, n_jobs=40)
    found = verdicts(day)
    assert found[Kind.PREEMPTION, Verdict.DIFFERED] >= 10
    # No workload preempts a more important one of its ClusterQueue.
    reported = [it for it in day.judged if it.verdict is Verdict.DIFFERED and it.kind is Kind.PREEMPTION]
    assert all(it.why and it.objects for it in reported)


def test_memory_is_bounded_while_a_day_goes_on() -> None:
    day = Day(5, judge_late_ns=SECOND_NS // 10)
    day.run(seconds=50, n_jobs=40)
    view = day.judge.view
    recent = view.moments(since=0)
    assert recent[-1].at - recent[0].at <= 15 * SECOND_NS
    assert view.next_number > 2 * len(recent)


def test_a_reservation_that_was_made_later_may_be_stored_first() -> None:
    day = Day(11)
    day.run(seconds=100, n_jobs=60, until=24)
    assert [it for it in day.judged if it.verdict is not Verdict.AGREED] == []
    assert any("but wrote that first" in it.why for it in day.judged)
