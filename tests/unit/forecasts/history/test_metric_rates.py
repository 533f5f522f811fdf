"""Kueue's metrics, hour by hour."""

from __future__ import annotations

import json
from math import inf
from random import Random

import pytest

from kueuecore._json import JsonObject, JsonValue
from kueuecore.errors import ManifestError
from kueuecore.forecasts.history.metric_answers import read_answers
from kueuecore.forecasts.history.metric_rates import asked_rates, rates_of
from kueuecore.forecasts.history.queue_rates import QueueRates, SpanHistogram
from kueuecore.forecasts.history.taken import Taken
from tests.unit.forecasts.history.recorded_metrics import HOUR, MONDAY, Job, Pod, matrix, range_answer, series

NOW = round((MONDAY + 60 * 86400) * 1e9)
ADMITTED = "kueue_admitted_workloads_total"


def taken(*answers: JsonObject, now: int = NOW) -> Taken:
    data = "\n".join(map(json.dumps, answers)).encode()
    return rates_of(read_answers(data, "prometheus.json"), "prometheus.json", now=now)


def rates(*answers: JsonObject) -> QueueRates:
    (found,) = taken(*answers).rates
    return found


def poisson_jobs(seed: int, *, days: int, per_hour: float, run_seconds: float, wait_seconds: float) -> list[Job]:
    random = Random(seed)
    jobs, at = [], 0.0
    while (at := at + random.expovariate(per_hour / HOUR)) < days * 24 * HOUR:
        started = at + random.expovariate(1 / wait_seconds)
        jobs.append(Job(at, started, started + random.expovariate(1 / run_seconds)))
    return jobs


def test_counts_are_those_of_the_jobs_and_littles_law_finds_their_run_time() -> None:
    jobs = poisson_jobs(1, days=14, per_hour=20, run_seconds=1800, wait_seconds=300)
    times = [minutes * 60.0 for minutes in range(0, 14 * 24 * 60 + 1, 5)]
    found = rates(range_answer(jobs, [Pod("a", 0, inf)], times))
    assert len(found.windows) == 14 * 24
    last = times[-1]
    assert sum(window.admitted or 0 for window in found.windows) == pytest.approx(
        sum(job.started <= last for job in jobs)
    )
    assert sum(window.arrivals or 0 for window in found.windows) == pytest.approx(len(jobs), abs=1)
    for hour, window in enumerate(found.windows):
        begin, end = hour * HOUR, (hour + 1) * HOUR
        assert window.begin == round((MONDAY + begin) * 1e9)
        assert window.arrivals == pytest.approx(sum(begin < job.created <= end for job in jobs))
        assert window.finished == pytest.approx(sum(begin < job.ended <= end for job in jobs))
    mean = sum(job.ended - job.started for job in jobs) / len(jobs)
    assert found.mean_run_seconds == pytest.approx(mean, rel=0.03)
    assert found.arrivals_per_hour == pytest.approx(len(jobs) / (14 * 24), rel=0.01)
    short = sum(job.started <= last and job.started - job.created <= 60 for job in jobs)
    assert found.waits.counts[1] + found.waits.counts[0] == pytest.approx(short)
    assert found.waits.bound(0.5) == 600.0


def test_a_counter_that_is_reset_and_a_pod_that_takes_over_count_on() -> None:
    jobs = poisson_jobs(2, days=3, per_hour=10, run_seconds=900, wait_seconds=60)
    times = [minutes * 60.0 for minutes in range(0, 3 * 24 * 60 + 1, 5)]
    # The process `a` is restarted under its name, then replaced by `b`.
    first = range_answer(jobs, [Pod("a", 0, 86_450)], times)
    second = range_answer(jobs, [Pod("a", 86_450, 2 * 86_400 + 50)], times)
    third = range_answer(jobs, [Pod("b", 2 * 86_400 + 50, inf)], times)
    found = rates(first, second, third)
    admitted = sum(window.admitted or 0 for window in found.windows)
    assert admitted == pytest.approx(sum(job.started <= times[-1] for job in jobs), abs=3)
    assert found.waits.total == pytest.approx(admitted)


def test_replicas_that_report_the_same_gauges_count_once() -> None:
    jobs = [Job(0, 600, 4200), Job(0, 600, 4200)]
    times = [0.0, 1800.0, 3600.0]
    both = range_answer(jobs, [Pod("a", 0, inf), Pod("b", 0, inf)], times)
    assert rates(both).windows[0].mean_running == 2.0


def test_evicted_workloads_that_are_admitted_again_have_not_arrived_again() -> None:
    labels = {"cluster_queue": "cq", "instance": "a"}
    found = rates(
        matrix(
            [
                series(ADMITTED, [(0, 1), (3600, 6)], **labels),
                series("kueue_evicted_workloads_total", [(0, 0), (3600, 2)], reason="Preempted", **labels),
                series("kueue_pending_workloads", [(0, 4), (3600, 5)], status="active", **labels),
            ]
        )
    )
    (window,) = found.windows
    assert (window.admitted, window.arrivals, window.finished, window.mean_pending) == (5.0, 4.0, None, 5.0)


def test_an_increase_over_a_gap_is_spread_over_its_hours() -> None:
    found = rates(matrix([series(ADMITTED, [(0, 0), (3600, 2), (7200, 4), (5 * 3600, 10)], cluster_queue="cq")]))
    assert [window.admitted for window in found.windows] == pytest.approx([2.0] * 5)
    assert [window.arrivals for window in found.windows] == [None] * 5


def test_samples_that_are_not_on_the_hour_are_split() -> None:
    found = rates(matrix([series(ADMITTED, [(1800, 0), (5400, 8)], cluster_queue="cq")]))
    assert [(window.seconds, window.admitted) for window in found.windows] == [(1800.0, 4.0), (1800.0, 4.0)]


def test_a_queue_that_shows_later_has_come_from_zero() -> None:
    (late, steady) = taken(
        matrix(
            [
                series(ADMITTED, [(0, 7), (3600, 7), (7200, 8)], cluster_queue="steady"),
                series(ADMITTED, [(7200, 3)], cluster_queue="late"),
            ]
        )
    ).rates
    assert [window.admitted for window in late.windows] == [0.0, 3.0]
    assert [window.admitted for window in steady.windows] == [0.0, 1.0]


def test_one_moment_gives_waits_and_no_rates() -> None:
    labels = {"cluster_queue": "cq"}
    vector: list[JsonValue] = [
        {
            "metric": {"__name__": "kueue_admission_wait_time_seconds_bucket", "le": le, **labels},
            "value": [MONDAY, count],
        }
        for le, count in (("1", "3"), ("60", "9"), ("+Inf", "10"))
    ]
    found = taken({"status": "success", "data": {"resultType": "vector", "result": vector}})
    assert found.rates[0].windows == ()
    assert found.rates[0].waits == SpanHistogram((1.0, 60.0, inf), (3.0, 6.0, 1.0))
    assert found.notes == (
        "prometheus.json: it has one moment only: waits since Kueue started, and no rates; query a range",
    )


def test_later_samples_and_those_without_a_number_or_queue_are_counted() -> None:
    now = round((MONDAY + 7200) * 1e9)
    answer = matrix(
        [
            series(ADMITTED, [(0, 0), (3600, 1), (7200, 2), (10800, 9)], cluster_queue="cq"),
            series("kueue_pending_workloads", [(0, float("nan")), (3600, 1)], cluster_queue="cq"),
            series("kueue_pending_workloads", [(0, 1)], pod="a"),
        ]
    )
    found = taken(answer, now=now)
    assert found.summary(0) == (
        "prometheus.json: 1 ClusterQueue taken, 2 hours on average; left out: 1 (samples that are no number), "
        "1 (series without a ClusterQueue), 1 (samples later than now)"
    )
    assert [window.admitted for window in found.rates[0].windows] == [1.0, 1.0]


def test_one_wrong_time_does_not_make_millions_of_windows() -> None:
    values = [(hour * HOUR, float(hour)) for hour in range(48)]
    found = rates(matrix([series(ADMITTED, [(-MONDAY + 1, 0.0), *values], cluster_queue="cq")]))
    assert len(found.windows) <= 20_001


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (matrix([]), "prometheus.json: no series of Kueue's ClusterQueues; check that Prometheus scrapes"),
        (matrix([series("up", [(0, 1)])]), "no series of Kueue's ClusterQueues; there are up; check that"),
        (
            matrix([series("kueue_admission_wait_time_seconds_bucket", [(0, 1)], le="x", cluster_queue="cq")]),
            'le: kueue_admission_wait_time_seconds_bucket has a bound "x", which is no number',
        ),
    ],
)
def test_what_is_of_no_use_is_an_error(answer: JsonObject, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        taken(answer)
    assert message in str(caught.value.problems[0])


def test_a_server_is_asked_for_each_metric_by_queue_and_process() -> None:
    asked: list[tuple[str, int, int, int]] = []

    def ask(query: str, begin: int, end: int, step: int) -> JsonValue:
        asked.append((query, begin, end, step))
        result: list[JsonValue] = []
        if "(kueue_admitted_workloads_total)" in query:
            sample: list[JsonValue] = [[MONDAY, "1"], [MONDAY + 3600, "3"]]
            result = [{"metric": {"cluster_queue": "cq"}, "values": sample}]
        return matrix(result)

    found = asked_rates(ask, "http://prometheus:9090", now=NOW + 5)
    assert [window.admitted for window in found.rates[0].windows] == [2.0]
    assert asked[0] == (
        "sum by (cluster_queue, cluster, job, instance, pod, replica_role) (kueue_admitted_workloads_total)",
        NOW - 28 * 86_400 * 10**9,
        NOW,
        3600,
    )
    assert len({query for query, *_ in asked}) == 9
