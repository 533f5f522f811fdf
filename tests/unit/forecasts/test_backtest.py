"""Forecasts of a cluster's own past."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from random import Random

import pytest

from kueuecore._json import object_at, text_at
from kueuecore.forecasts import Experience, eta
from kueuecore.forecasts.answer import Forecast
from kueuecore.forecasts.backtest import PastForecast, Record
from kueuecore.forecasts.base_state import State
from kueuecore.forecasts.calibration import Calibration, Curve
from kueuecore.forecasts.past_states import PastStates
from kueuecore.forecasts.present_workloads import Status, present_workloads
from kueuecore.manifests import Manifest
from kueuecore.scenarios import ClusterPart, Scenario
from kueuecore.scenarios.present import has_condition
from tests.unit.forecasts.present_states import START, ago, state, workload

SECOND = 10**9


def busy(n: int, *, seed: int = 1) -> Scenario:
    """A cluster of one place in which one job after the other has run, each after a wait; the last ones wait."""
    random = Random(seed)
    at, free, jobs = 0.0, 0.0, []
    for number in range(n):
        at += random.expovariate(1 / 500)
        begin = max(at, free)
        free = begin + random.choice([60, 600, 900])
        jobs.append((f"j-{number}", at, begin, free))
    now = jobs[-4][2] + 10
    workloads: list[Manifest] = []
    for name, created, begin, end in jobs:
        if created <= now:
            admitted = now - begin if begin <= now else None
            ended = now - end if end <= now else None
            workloads.append(workload(name, created=now - created, admitted=admitted, finished=ended))
    return state(*workloads)


def states(given: Scenario) -> PastStates:
    workloads = present_workloads(given.cluster.objects)
    alive = tuple(it for it in workloads if it.status is not Status.FINISHED)
    queues = tuple(it for it in given.cluster.objects if it.object["kind"] != "Workload")
    return PastStates(State(scenario=given, objects=queues, workloads=alive, trusted=True), workloads)


def test_a_past_state_shows_what_was_and_nothing_later() -> None:
    given = state(
        workload("gone", created=3000, admitted=3000, finished=2500),
        workload("ran", created=2000, admitted=1500, finished=500),
        workload("waited", created=1200, admitted=400),
        workload("later", created=900),
    )
    past, moment = states(given), START - 1000 * SECOND
    running, waiting = past.running_at(moment), past.waiting_at(moment)
    assert (running, waiting) == ([1], [2])
    then = past.state(moment, [1], [2])
    assert then.scenario.start == moment
    assert [(it.key, it.status, it.ended) for it in then.workloads] == [
        ("ns/ran", Status.ADMITTED, None),
        ("ns/waited", Status.PENDING, None),
    ]
    text = json.dumps([it.manifest.object for it in then.workloads])
    assert "Finished" not in text
    assert text.count('"admission"') == 1


def test_the_first_that_finds_no_room_is_one_that_still_waits_after_a_cycle() -> None:
    past = states(
        state(
            workload("at-once", created=950, admitted=950, finished=940),
            workload("waited", created=900, admitted=800),
            workload("waits", created=700),
        )
    )
    at = START - 1000 * SECOND
    assert past.first_wait(at, START) == (START - 898 * SECOND, 1)
    assert past.first_wait(START - 900 * SECOND, START) == (START - 698 * SECOND, 2)
    assert past.first_wait(at, START - 898 * SECOND) is None


def test_one_that_was_evicted_has_waited_since_then() -> None:
    evicted = json.loads(json.dumps(workload("evicted", created=3000).object))
    condition = {"type": "Evicted", "status": "True", "reason": "Preempted", "lastTransitionTime": ago(1000)}
    evicted["status"] = {"conditions": [condition]}
    past = states(state(Manifest(evicted)))
    assert past.waiting_at(START - 2000 * SECOND) == []
    assert past.waiting_at(START - 500 * SECOND) == [0]


def test_of_one_that_was_evicted_nobody_knows_how_long_its_first_wait_was() -> None:
    plain = json.loads(json.dumps(workload("again", created=900, admitted=300).object))
    evicted = {"type": "Evicted", "status": "False", "reason": "QuotaReserved", "lastTransitionTime": ago(300)}
    plain["status"]["conditions"].append(evicted)
    past = states(state(Manifest(plain), workload("once", created=800, admitted=300)))
    waiting = past.waiting_at(START - 500 * SECOND)
    assert (waiting, past.clear_waits(waiting)) == ([0, 1], [1])
    assert past.first_wait(START - 1000 * SECOND, START) == (START - 798 * SECOND, 1)


def test_where_a_job_ran_must_be_known() -> None:
    ran = json.loads(json.dumps(workload("ran", created=2000, admitted=1500, finished=500).object))
    del ran["status"]["admission"]
    past = states(state(Manifest(ran), workload("waits", created=1200)))
    assert past.running_at(START - 1000 * SECOND) is None
    assert past.running_at(START) == []


def test_the_past_is_forecast_and_says_how_often_that_held() -> None:
    found = eta(busy(200), seeds=range(20), n_moments=40)
    assert found.record is not None
    assert found.record.n >= 30
    assert found.record.n == found.record.n_held + found.record.n_early + found.record.n_late
    assert 0.6 <= found.record.n_held / found.record.n <= 1
    assert found.n_moments >= 20


def test_it_is_the_same_with_experience_and_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    given, experience = busy(120), Experience()
    once = eta(given, seeds=range(20))
    assert eta(given, seeds=range(20), experience=experience) == once
    monkeypatch.setattr("kueuecore.forecasts.backtest.Player", None)
    assert eta(given, seeds=range(20), experience=experience) == once


@pytest.mark.parametrize("options", [{"n_moments": 0}, {"arrivals": False}])
def test_without_a_backtest_there_is_no_record(options: dict[str, object]) -> None:
    found = eta(busy(120), seeds=range(5), **options)  # type: ignore[arg-type]
    assert (found.record, found.n_moments) == (None, 0)
    assert (found.forecasts[0].calibration is None) == ("arrivals" in options)


def test_a_record_counts_waits_within_and_beside_their_intervals() -> None:
    futures = Curve([float(100 * number) for number in range(1, 40)])

    def forecast(seconds: float, *, is_over: bool = True) -> PastForecast:
        return PastForecast(START, "ns/a", futures, seconds, is_over)

    held = [forecast(1000.0 + 100 * number) for number in range(20)]
    found = Record.of([*held, forecast(0.0), forecast(90000.0), forecast(90000.0, is_over=False)])
    assert (found.n_held, found.n_early, found.n_late) == (20, 1, 2)
    # Nobody knows how long a wait that is not over will be, unless it is too long already.
    assert Record.of([forecast(100.0, is_over=False)]) == Record(0, 0, 0, 0)


def test_an_end_long_before_1970_is_no_reason_to_fail() -> None:
    wrong = json.loads(json.dumps(workload("wrong", created=3000, admitted=3000, finished=2000).object))
    wrong["status"]["conditions"][-1]["lastTransitionTime"] = "1700-01-01T00:00:00Z"
    given = busy(40)
    found = eta(state(*given.cluster.objects[-30:], Manifest(wrong)), seeds=range(3), n_moments=6)
    assert found.forecasts


def test_quantiles_far_beyond_the_futures_are_never_rather_than_no_date() -> None:
    forecast = Forecast(
        workload="ns/a", job="", status=Status.PENDING, since=None, seconds=(1.0, 2e6), calibration=Calibration()
    )
    assert forecast.quantile(0.5) < 1e6
    assert forecast.quantile(0.999999) == inf


def test_experience_does_not_take_another_workload_of_the_same_name_for_the_one_that_waited() -> None:
    experience = Experience()
    given = busy(120)
    before = eta(given, seeds=range(2), experience=experience)
    assert before.record is not None
    ended = [it.object for it in given.cluster.objects if has_condition(it.object, "Finished")]
    names = [text_at(plain, "metadata", "name") for plain in ended]
    renamed = [
        Manifest({**plain, "metadata": {**object_at(plain, "metadata"), "name": name}})
        for plain, name in zip(ended, [*names[1:], names[0]], strict=True)
    ]
    others = [it for it in given.cluster.objects if not has_condition(it.object, "Finished")]
    after = eta(replace(given, cluster=ClusterPart(objects=(*others, *renamed))), seeds=range(2), experience=experience)
    assert after.record is None or after.record.n < before.record.n
