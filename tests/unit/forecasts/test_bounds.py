"""Bounds on admissions that hold however long jobs run."""

from __future__ import annotations

from itertools import combinations
from math import inf
from random import Random

import pytest

from kueuecore.forecasts import Forecast, eta
from kueuecore.forecasts.bounds import Bounds, Latest, NotBefore
from kueuecore.forecasts.history import QueueRates, SpanHistogram
from kueuecore.manifests import Manifest
from kueuecore.scenarios import Span
from tests.unit.forecasts.present_states import finished, state, workload


def running(name: str, cpu: int, *, limit: int | None = None, priority: int = 0) -> Manifest:
    return workload(name, cpu=cpu, created=700, admitted=600, limit=limit, priority=priority)


def bounds(*workloads: Manifest, target: str = "waits") -> Bounds:
    found = forecast(*workloads, target=target).bounds
    assert found is not None
    return found


def forecast(*workloads: Manifest, target: str = "waits") -> Forecast:
    (found,) = eta(state(*workloads), [target], seeds=range(2), n_moments=0).forecasts
    return found


def test_of_equal_workloads_any_may_end() -> None:
    found = bounds(*(running(f"r{n}", 1) for n in range(4)), workload("waits", cpu=1))
    assert found.not_before == NotBefore(
        n_ends=1, is_exact=True, n_holding=4, workloads=("ns/r0", "ns/r1", "ns/r2", "ns/r3")
    )


@pytest.mark.parametrize("seed", range(8))
def test_so_many_must_end_as_a_search_of_all_sets_finds(seed: int) -> None:
    random = Random(seed)
    sizes = [2, 1, 1] if random.random() < 0.3 else [1, 1, 1, 1] if random.random() < 0.5 else [3, 1]
    wanted = random.randint(1, 4)
    held = [running(f"r{n}", cpu) for n, cpu in enumerate(sizes)]
    found = bounds(*held, workload("waits", cpu=wanted)).not_before
    least = next(
        n
        for n in range(1, len(sizes) + 1)
        for chosen in combinations(sizes, n)
        if 4 - sum(sizes) + sum(chosen) >= wanted
    )
    assert found is not None
    assert (found.n_ends, found.is_exact, found.n_holding) == (least, True, len(sizes))
    ended = {f"ns/r{n}": cpu for n, cpu in enumerate(sizes)}
    freed = sum(ended[key] for key in found.workloads) if least > 1 else min(ended[key] for key in found.workloads)
    assert freed >= wanted


def test_those_that_wait_and_go_first_count_as_well() -> None:
    first = workload("first", cpu=3, created=50)
    found = bounds(first, workload("waits", cpu=2, created=30)).not_before
    assert found == NotBefore(n_ends=1, is_exact=True, n_holding=1, n_first=1, workloads=("ns/first",))
    found = bounds(running("r", 1), first, workload("waits", cpu=2, created=30)).not_before
    assert found == NotBefore(n_ends=1, is_exact=True, n_holding=2, n_first=1, workloads=("ns/first",))


def test_who_may_preempt_waits_for_no_end() -> None:
    urgent = workload("waits", cpu=4, priority=10)
    assert bounds(running("r", 4), urgent).not_before is None
    assert bounds(running("r", 4, priority=20), urgent).not_before is not None


def test_time_limits_give_the_latest_time_even_if_others_have_none() -> None:
    short, endless = running("short", 2, limit=900), running("endless", 2)
    found = bounds(short, endless, workload("waits", cpu=2))
    assert found.latest == Latest(seconds=300.0, is_bound=True)
    assert bounds(short, endless, workload("waits", cpu=3)).latest is None


def test_a_latest_time_that_shorter_runs_delay_is_no_bound() -> None:
    # If `a` ends early, the one in the middle starts in its place, and holds up the last one.
    held = [running("a", 2, limit=1000), running("b", 2, limit=1000)]
    middle = workload("middle", cpu=2, created=20, limit=36000)
    waits = workload("waits", cpu=4, created=30)
    found = bounds(*held, middle, waits).latest
    assert found is not None
    assert found.seconds == pytest.approx(400, abs=2)
    assert not found.is_bound


def test_past_waits_are_those_of_the_cluster_queue() -> None:
    waits = SpanHistogram((60.0, 600.0, inf), (6.0, 3.0, 1.0))
    rates = [
        QueueRates(cluster_queue="other", windows=(), waits=SpanHistogram((1.0,), (5.0,))),
        QueueRates(cluster_queue="cq", windows=(), waits=waits),
    ]
    found = eta(state(running("r", 4), workload("waits")), rates=rates).forecasts[0].bounds
    assert found is not None
    assert found.past_waits is not None
    assert (found.past_waits.n, found.past_waits.quantiles) == (10, ((50.0, 60.0), (80.0, 600.0), (95.0, inf)))


def test_there_are_bounds_only_where_too_few_have_ended() -> None:
    waiting = (running("r", 4), workload("waits"))
    few, enough = forecast(*finished(9), *waiting), forecast(*finished(10), *waiting)
    assert few.bounds is not None
    assert len(few.seconds) == len(enough.seconds) == 2
    assert enough.bounds is None
    given = eta(state(*waiting), seeds=range(2), run_seconds={"": Span(5)}).forecasts[0]
    assert given.bounds is None
    none = forecast(*waiting)
    assert none.bounds is not None
    assert none.seconds == ()
    with pytest.raises(ValueError, match="ns/waits has no futures"):
        none.quantile(0.5)


def test_one_that_never_fits_has_no_bounds() -> None:
    found = forecast(running("r", 4), workload("waits", cpu=9))
    assert found.never
    assert found.bounds is None
