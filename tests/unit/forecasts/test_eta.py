"""When workloads will be admitted."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from math import inf
from threading import Event
from typing import Any

import pytest
import yaml

from kueuecore import ManifestError
from kueuecore._json import JsonObject
from kueuecore.forecasts import Eta, eta
from kueuecore.forecasts.answer import quantile
from kueuecore.forecasts.present_workloads import Status
from kueuecore.manifests import parse_manifests
from kueuecore.scenarios import ClusterPart, Empirical, LogNormal, Present, Scenario, Span, Work
from kueuecore.simulation.look_ahead import LookAhead
from tests.unit.forecasts.present_states import finished, state, workload

HOUR = {"": Span(3600)}


def seconds(found: Eta, place: int = 0) -> set[int]:
    """The seconds of all futures; the cycle after an end begins up to a second later."""
    return {round(second) for second in found.forecasts[place].seconds}


def test_a_job_waits_for_the_rest_of_the_one_that_runs() -> None:
    given = state(workload("runs", created=600, admitted=600), workload("waits"))
    found = eta(given, ["ns/waits"], seeds=range(3), run_seconds=HOUR, arrivals=False)
    assert found.forecasts[0].status is Status.PENDING
    assert seconds(found) == {3000}


def test_workloads_ahead_run_their_whole_time() -> None:
    given = state(workload("runs", created=600, admitted=600), workload("next", created=60), workload("last"))
    found = eta(given, ["last", "next"], seeds=range(2), run_seconds=HOUR, arrivals=False)
    assert [forecast.workload for forecast in found.forecasts] == ["ns/last", "ns/next"]
    assert [seconds(found, 0), seconds(found, 1)] == [{6600}, {3000}]


def test_a_preempted_job_starts_over() -> None:
    urgent = workload("urgent", priority=10)
    given = state(workload("runs", created=600, admitted=600), urgent, workload("last"))
    found = eta(given, ["last", "urgent"], seeds=range(2), run_seconds=HOUR, arrivals=False)
    # The urgent one runs at once, then that which ran before, all of its hour.
    assert seconds(found, 1) <= {0, 1}
    assert all(7200 <= second <= 7203 for second in seconds(found, 0))


def test_a_future_with_evictions_is_looked_at_for_fewer_steps() -> None:
    """Where workloads preempt each other in turn, nearly all that happens is evictions, and each takes a search."""
    quiet = state(workload("runs", created=600, admitted=600), workload("next", created=60), workload("last"))
    busy = state(workload("runs", created=600, admitted=600), workload("urgent", priority=10), workload("last"))
    found = [eta(entry, ["last"], seeds=[0], run_seconds=HOUR, arrivals=False, most_steps=9) for entry in (quiet, busy)]
    assert [error.is_shortened for error in found] == [False, True]


def test_by_default_all_pending_workloads_are_forecast() -> None:
    given = state(workload("runs", admitted=0), workload("b"), workload("a"), *finished(1))
    found = eta(given, seeds=range(1), arrivals=False)
    assert [forecast.workload for forecast in found.forecasts] == ["ns/b", "ns/a"]


def test_run_times_are_those_of_jobs_of_the_same_queue_and_priority_if_enough_have_ended() -> None:
    ended = [*finished(10, seconds=60, name="w"), *finished(10, seconds=7200, priority=5, name="v")]
    given = state(*ended, workload("v-99", admitted=0, priority=5), workload("w-99"))
    found = eta(given, ["w-99"], seeds=range(40), arrivals=False)
    notes = [(time.priority, time.source, time.n_finished) for time in found.assumptions.run_times]
    assert notes == [(0, "Program", 20), (5, "Program", 20)]
    assert found.forecasts[0].quantile(0.5) == pytest.approx(7200, abs=2)


@pytest.mark.parametrize(
    ("ended", "source", "n"),
    [
        ([("lq", 0, 9), ("lq", 5, 1)], "Program", 10),
        ([("lq", 5, 10)], "LocalQueue", 10),
        ([("other", 0, 10)], "ClusterQueue", 0),
    ],
)
def test_otherwise_run_times_come_from_more_jobs(ended: list[tuple[str, int, int]], source: str, n: int) -> None:
    done = [
        value for queue, priority, count in ended for value in finished(count, queue=queue, priority=priority, name="w")
    ]
    found = eta(state(*done, workload("w-99")), ["w-99"], seeds=range(1), arrivals=False)
    (note,) = found.assumptions.run_times
    assert (note.source, note.n_finished, note.n_running) == (source, n, 0)
    assert bool(found.assumptions.warnings) == (n < 10)


def test_a_job_that_has_run_longer_than_any_is_warned_of() -> None:
    given = state(*finished(10), workload("runs", created=9000, admitted=9000), workload("waits"))
    found = eta(given, ["waits"], seeds=range(3), arrivals=False)
    assert found.assumptions.warnings == ("1 job of ns/lq has run longer than any that finished",)


def test_without_finished_jobs_limits_are_assumed() -> None:
    given = state(workload("runs", admitted=600, limit=3600), workload("waits", limit=60))
    found = eta(given, ["waits"], seeds=range(5), arrivals=False)
    assert seconds(found) == {3000}
    assert found.assumptions.run_times[0].source == "Limit"
    assert found.assumptions.warnings == ("no Workload has finished: jobs of ns/lq are assumed to run to their limits",)


def test_without_finished_jobs_there_are_bounds_instead_of_times() -> None:
    found = eta(state(workload("runs", admitted=60), workload("waits")), ["waits"], seeds=range(1))
    (forecast,) = found.forecasts
    assert forecast.seconds == ()
    assert forecast.bounds is not None
    assert forecast.bounds.not_before is not None
    assert forecast.bounds.not_before.workloads == ("ns/runs",)
    assert "no Workload has finished" in found.unknown


def test_a_queue_may_have_its_own_run_times() -> None:
    running = workload("runs", admitted=0, queue="other")
    given = state(running, workload("next", created=60), workload("last"))
    of_queue = eta(given, ["last"], seeds=[1], run_seconds={"ns/other": Span(100), "": Span(10)}, arrivals=False)
    of_all = eta(given, ["last"], seeds=[1], run_seconds={"cq": Span(100), "": Span(10)}, arrivals=False)
    assert (seconds(of_queue), seconds(of_all)) == ({110}, {200})


def test_a_queue_without_workloads_is_an_error_that_names_it() -> None:
    with pytest.raises(ManifestError, match=r"no Workload is in a queue lq.*write one of cq, ns/lq"):
        eta(state(workload("waits")), ["waits"], seeds=range(1), run_seconds={"lq": Span(5)})


def test_new_arrivals_may_go_first() -> None:
    """Ten urgent jobs of a minute came in the last hour, and so one will come and preempt."""
    urgent = [
        workload(f"urgent-{n}", created=60 + 300 * n, admitted=60 + 300 * n, finished=300 * n, priority=9)
        for n in range(12)
    ]
    given = state(*urgent, workload("runs", created=30, admitted=30), workload("waits"))
    without = eta(given, ["waits"], seeds=range(20), run_seconds={"": Span(600)}, arrivals=False)
    found = eta(given, ["waits"], seeds=range(20), run_seconds={"": Span(600)})
    assert seconds(without) == {570}
    assert found.forecasts[0].quantile(0.5) > 1000
    (note,) = found.assumptions.arrivals
    assert (note.local_queue, note.n_seen) == ("ns/lq", 13)


def test_a_workload_that_fits_nowhere_is_never_admitted() -> None:
    (found,) = eta(state(workload("big", cpu=5)), ["big"], seeds=range(2), run_seconds=HOUR).forecasts
    assert found.seconds == (inf, inf)
    assert "insufficient quota for cpu" in found.never
    assert (found.quantile(0.1), found.share_not_admitted) == (inf, 1.0)


def test_a_workload_not_admitted_by_the_horizon_is_infinite() -> None:
    given = state(workload("runs", admitted=0), workload("waits"))
    times = {"": Empirical(values=(600.0, 7200.0))}
    found = eta(given, ["waits"], seeds=range(20), horizon_seconds=3600, run_seconds=times, arrivals=False)
    (forecast,) = found.forecasts
    assert set(map(round, filter(lambda second: second < inf, forecast.seconds))) == {600}
    assert forecast.share_not_admitted == forecast.seconds.count(inf) / 20 > 0


def test_an_admitted_or_finished_workload_says_since_when() -> None:
    given = state(workload("runs", created=600, admitted=300), *finished(1))
    found = eta(given, ["runs", "done-lq-0-0"], seeds=range(2))
    runs, done = found.forecasts
    assert (runs.status, runs.seconds, found.now - (runs.since or 0)) == (Status.ADMITTED, (), 300 * 10**9)
    assert (done.status, found.now - (done.since or 0)) == (Status.FINISHED, 10**9)


def test_an_admitted_workload_needs_no_run_times() -> None:
    (found,) = eta(state(workload("runs", created=600, admitted=300)), ["runs"], seeds=[1]).forecasts
    assert found.status is Status.ADMITTED


def test_a_trusted_namespace_may_have_slashes() -> None:
    given = state(workload("big", cpu=5))
    text = yaml.dump_all([object_.object for object_ in given.cluster.objects]).replace(
        "namespace: ns", "namespace: a/b"
    )
    objects = parse_manifests(text.replace("name: ns", "name: a/b"))
    (found,) = eta(replace(given, cluster=ClusterPart(objects=objects)), run_seconds=HOUR, trusted=True).forecasts
    assert found.workload == "a/b/big"
    assert "insufficient quota for cpu" in found.never


def test_a_job_that_has_always_run_and_never_ends_is_accepted() -> None:
    ancient = replace(workload("runs"), object=_since_1700(workload("runs", admitted=0).object))
    times = {"": LogNormal(median=1e9, sigma=10)}
    found = eta(state(ancient, workload("waits")), ["waits"], seeds=range(30), run_seconds=times, arrivals=False)
    assert found.forecasts[0].share_not_admitted > 0.5


def _since_1700(workload: JsonObject) -> JsonObject:
    text = json.dumps(workload["status"]).replace("2026-01-05T12:00:00Z", "1700-01-01T00:00:00Z")
    return {**workload, "status": json.loads(text)}


def test_nothing_is_looked_for_after_the_end_of_a_scenario() -> None:
    given = replace(state(workload("runs", admitted=0), workload("waits")), until_seconds=600.0)
    found = eta(given, ["waits"], seeds=[1], run_seconds=HOUR, arrivals=False)
    assert (found.horizon_seconds, found.forecasts[0].seconds) == (600.0, (inf,))


def test_a_workload_is_found_by_the_name_of_its_job() -> None:
    given = state(workload("job-train-1a2b3", job="train"))
    for name in ("train", "ns/train", "job-train-1a2b3", "ns/job-train-1a2b3"):
        (found,) = eta(given, [name], seeds=[1], run_seconds=HOUR).forecasts
        assert (found.workload, found.job) == ("ns/job-train-1a2b3", "Job/train")


def test_names_that_are_near_are_named() -> None:
    given = state(workload("job-train-1a2b3", job="train"), workload("b"))
    with pytest.raises(ManifestError, match=r"there is no Workload .*tran.*write train"):
        eta(given, ["tran"], seeds=[1], run_seconds=HOUR)
    with pytest.raises(ManifestError, match=r"name one that waits: ns/job-train-1a2b3, ns/b"):
        eta(given, ["zzz"], seeds=[1], run_seconds=HOUR)


def test_a_scenario_has_its_own_arrivals_and_run_times() -> None:
    present = Present(runs=Span(100), waiting_runs=Span(50))
    work = Work(name="urgent", job=workload("urgent", priority=9), at=10, runs=Span(1000))
    given = state(workload("runs", created=600, admitted=600), workload("waits"))
    given = replace(given, present=present)
    assert seconds(eta(given, ["waits"], seeds=[1], arrivals=False)) == {100}
    found = eta(replace(given, work=(work,)), ["waits"], seeds=[1])
    # The urgent one preempts after 10 seconds; the other was there before and goes first.
    assert all(1110 <= second <= 1114 for second in seconds(found))
    assert found.assumptions.arrivals == ()
    assert found.assumptions.n_work == 1


def test_the_results_do_not_depend_on_who_runs_them() -> None:
    given = state(*finished(30), workload("runs", admitted=0), workload("waits"), workload("last"))
    here = eta(given, seeds=range(25))
    with ThreadPoolExecutor(2) as executor:
        assert eta(given, seeds=range(25), executor=executor) == here
    assert [forecast.seconds[:3] for forecast in eta(given, seeds=range(3)).forecasts] == [
        forecast.seconds[:3] for forecast in here.forecasts
    ]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"seeds": []}, "seeds"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"horizon_seconds": 0}, "horizon_seconds"),
        ({"horizon_seconds": inf}, "horizon_seconds"),
    ],
)
def test_impossible_arguments_are_refused(options: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        eta(Scenario(), **options)  # type: ignore[arg-type]


def test_an_interval_contains_the_next_value_as_often_as_it_claims() -> None:
    # Of 9 values, the next one is below the least, or above the greatest, in a tenth of all cases each.
    values = [float(number) for number in range(9)]
    assert (quantile(values, 0.1), quantile(values, 0.9)) == (0.0, 8.0)
    assert quantile([1.0, 2.0, inf], 0.5) == 2.0
    assert quantile([1.0, 2.0, inf], 0.6) == inf


def test_it_may_stop_early_and_its_answer_is_that_of_so_many_futures() -> None:
    given = state(workload("runs", admitted=0), workload("waits"))
    times = {"": Empirical(values=(600.0, 1200.0, 7200.0))}

    def ask(n_seeds: int, **more: Any) -> Eta:
        return eta(given, ["waits"], seeds=range(n_seeds), run_seconds=times, arrivals=False, **more)

    seen: list[int] = []
    stopped = ask(200, is_enough=lambda n: n >= 24, interim=lambda found: seen.append(len(found.seeds)))
    every = ask(24)
    assert (stopped.seeds, stopped.forecasts) == (every.seeds, every.forecasts)
    assert (stopped.n_asked, every.n_asked, seen) == (200, 24, [20])
    seen.clear()
    ask(100, interim=lambda found: seen.append(len(found.seeds)))
    assert seen == [20, 40, 80]


def test_an_early_answer_has_the_first_futures_whichever_ends_first() -> None:
    given = state(workload("runs", admitted=0), workload("waits"))
    times = {"": Empirical(values=(600.0, 1200.0, 7200.0))}
    with ThreadPoolExecutor(3) as executor:
        found = eta(
            given,
            ["waits"],
            seeds=range(30),
            run_seconds=times,
            arrivals=False,
            executor=_Backwards(executor),
            is_enough=lambda n: n >= 2,
        )
    n = len(found.seeds)
    assert found.seeds == tuple(range(n))
    again = eta(given, ["waits"], seeds=range(n), run_seconds=times, arrivals=False)
    assert found.forecasts == again.forecasts


class _Backwards(Executor):
    """Runs the calls of each three in the opposite order."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._events = [Event() for _ in range(100)]
        self._n = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        number, self._n = self._n, self._n + 1
        waits_for = number + 1 if number % 3 < 2 else None

        def run() -> Any:
            if waits_for is not None:
                self._events[waits_for].wait(1)
            result = fn(*args, **kwargs)
            self._events[number].set()
            return result

        return self._executor.submit(run)


def test_a_future_is_not_played_further_than_the_admission(monkeypatch: pytest.MonkeyPatch) -> None:
    given = state(workload("runs", admitted=0), workload("waits"))
    ends: list[float] = []
    play = LookAhead.play

    def noted(self: LookAhead, until_seconds: float, **more: Any) -> bool:
        is_of_use = play(self, until_seconds, **more)
        ends.append(self.seconds)
        return is_of_use

    monkeypatch.setattr(LookAhead, "play", noted)
    times = {"": Empirical(values=(4000.0,))}
    found = eta(given, ["waits"], seeds=[1], run_seconds=times, arrivals=False)
    assert ends[-1] == found.forecasts[0].seconds[0] == 4000
