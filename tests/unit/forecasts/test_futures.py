"""Futures played from one base."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kueuecore import Configuration
from kueuecore.forecasts import eta
from kueuecore.forecasts.base_state import Base, State
from kueuecore.forecasts.draws import ArrivalColumns
from kueuecore.forecasts.futures import Future, Played, Player
from kueuecore.forecasts.present_workloads import present_workloads
from kueuecore.manifests import Manifest, parse_manifests
from kueuecore.provisioning import Stock
from kueuecore.scenarios import ClusterPart, PatchObject, Scenario, Span, Target, TimedChange, Work
from tests.unit.forecasts.present_states import QUEUES, START, finished, state, workload

Times = npt.NDArray[np.float64]


@dataclass
class Fixed:
    """The same draws for each seed, but for run times, to which it is added."""

    run_seconds: Sequence[float]
    done_seconds: Sequence[float]
    rows: Sequence[tuple[float, float]] = ()
    windows: list[tuple[float, float]] = field(default_factory=list)

    @property
    def templates(self) -> Sequence[Manifest]:
        plain = workload("template", priority=5).object
        return [Manifest({**plain, "metadata": {"namespace": "ns", "name": "template"}})]

    def drawn(self, seed: int) -> FixedFuture:
        return FixedFuture(np.array(self.run_seconds) + seed, np.array(self.done_seconds), self)


@dataclass
class FixedFuture:
    run_seconds: Times
    done_seconds: Times
    draws: Fixed

    def arrivals(self, begin: float, end: float) -> ArrivalColumns:
        self.draws.windows.append((begin, end))
        rows = [(at, run) for at, run in self.draws.rows if begin <= at < end]
        at, runs = np.array(rows, np.float64).reshape(len(rows), 2).T
        return at, np.zeros(len(rows), np.intp), runs


def player(draws: Fixed, *workloads: Manifest, most_steps: int | None = None, **scenario: Any) -> Player:
    """A player of these Workloads in one queue; what waits is asked about."""
    objects = parse_manifests(QUEUES)
    here = State(
        scenario=Scenario(start=START, **scenario),
        objects=objects,
        workloads=present_workloads([*objects, *workloads]),
        trusted=False,
    )
    future = Future(
        state=here,
        draws=draws,
        targets=(("ns", "waits"),),
        horizon_seconds=10_000.0,
        window_seconds=60.0,
        first_uid=1,
        most_steps=most_steps,
    )
    return Player(future)


RUNS, WAITS = workload("runs", created=600, admitted=600), workload("waits")


def test_a_draw_says_how_long_each_present_workload_runs_and_how_much_is_done() -> None:
    one = player(Fixed([900.0, 50.0], [600.0, 0.0]), RUNS, WAITS)
    assert [one.play(seed) for seed in (0, 100)] == [Played((300.0,), 10_000.0), Played((400.0,), 10_000.0)]


def test_arrivals_are_asked_for_window_by_window_until_the_target_is_admitted() -> None:
    # Both arrivals go first; each preempts, so that what runs starts over.
    draws = Fixed([900.0, 50.0], [600.0, 0.0], [(10.0, 100.0), (200.0, 40.0)])
    found = player(draws, RUNS, WAITS).play(0)
    assert found.seconds[0] == pytest.approx(10 + 100 + 90 + 40 + 900, abs=4)
    edges = [0.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0]
    assert draws.windows == list(pairwise(edges))


def test_a_future_ends_early_after_so_many_steps_and_says_when() -> None:
    draws = Fixed([9000.0, 50.0], [0.0, 0.0], [(float(at), 5.0) for at in range(10, 900, 10)])
    found = player(draws, RUNS, WAITS, most_steps=50).play(0)
    assert found.seconds == (inf,)
    assert 10 < found.end < 200


def test_futures_played_in_threads_or_after_pickling_are_the_same() -> None:
    draws = Fixed([900.0, 50.0], [600.0, 0.0], [(400.0, 100.0), (401.0, 40.0)])
    one = player(draws, RUNS, WAITS)
    expected = [one.play(seed) for seed in range(40)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one.play, range(40))) == expected
    other: Player = pickle.loads(pickle.dumps(one))
    assert other.play_all(range(40)) == expected


def test_a_base_is_a_past_moment_as_well() -> None:
    """A day before, other Workloads ran and waited; nothing since then is seen."""
    day = 86_400.0
    then = START - round(day) * 10**9
    runs = workload("runs", created=day + 600, admitted=day + 600)
    waits = workload("waits", created=day + 10)
    one = player(Fixed([900.0, 50.0], [600.0, 0.0]), runs, waits)
    past = replace(one._future.state, scenario=Scenario(start=then))
    assert Player(replace(one._future, state=past)).play(0) == Played((300.0,), 10_000.0)


def test_a_timetable_changes_the_cluster_in_every_future() -> None:
    patch = PatchObject(Target(kind="ClusterQueue", name="cq"), {"spec": {"resourceGroups": [_group("8")]}})
    for at in (0.0, 100.0):
        change = TimedChange(at=at, action=patch)
        cluster = ClusterPart(objects=(*parse_manifests(QUEUES), RUNS, WAITS))
        one = player(Fixed([900.0, 50.0], [600.0, 0.0]), RUNS, WAITS, timetable=(change,), cluster=cluster)
        assert [one.play(seed).seconds for seed in (0, 1)] == [(at,), (at,)]


def _group(quota: str) -> Any:
    return {
        "coveredResources": ["cpu"],
        "flavors": [{"name": "main", "resources": [{"name": "cpu", "nominalQuota": quota}]}],
    }


def test_the_work_of_a_scenario_is_drawn_anew_for_each_seed() -> None:
    work = Work(name="urgent", job=workload("urgent", priority=9), at=10, runs=Span(100, 900))
    given = replace(state(workload("runs", created=600, admitted=600), workload("waits")), work=(work,))
    found = eta(given, ["waits"], seeds=range(6), run_seconds={"": Span(700)})
    assert len(set(found.forecasts[0].seconds)) > 3


CHECKED = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: prov}
spec:
  controllerName: kueue.x-k8s.io/provisioning-request
  parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: prov}
status:
  conditions:
  - {type: Active, status: "True", reason: Active, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ProvisioningRequestConfig
metadata: {name: prov}
spec: {provisioningClassName: queued-provisioning.gke.io, managedResources: [cpu]}
"""


def test_capacity_takes_its_time_in_each_future_and_none_sees_that_of_others() -> None:
    strategy = "admissionChecksStrategy: {admissionChecks: [{name: prov}]}"
    queues = QUEUES.replace("namespaceSelector: {}", f"namespaceSelector: {{}}\n  {strategy}")
    queues = queues.replace(
        "kind: ResourceFlavor, metadata: {name: main}",
        "kind: ResourceFlavor, metadata: {name: main}, spec: {nodeLabels: {topology.kubernetes.io/region: tokyo}}",
    )
    objects = (*parse_manifests(queues), *parse_manifests(CHECKED), workload("waits"), *finished(10))
    cluster = ClusterPart(objects=objects, capacity={"tokyo": Stock(delay_seconds=(60, 600))})
    given = Scenario(cluster=cluster, start=START)
    found = eta(given, ["waits"], seeds=range(6), arrivals=False)
    waits = found.forecasts[0].seconds
    assert all(60 <= wait <= 602 for wait in waits)
    assert len(set(waits)) == 6
    with ThreadPoolExecutor(2) as pool:
        assert eta(given, ["waits"], seeds=range(6), arrivals=False, executor=pool) == found


def test_variants_are_made_in_each_future() -> None:
    text = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfeatureGates: {ConcurrentAdmission: true}\n"
    objects = (*parse_manifests(QUEUES), workload("runs", created=600, admitted=600), workload("waits"))
    cluster = ClusterPart(objects=objects, configuration=Configuration.parse(text))
    found = eta(Scenario(cluster=cluster, start=START), ["waits"], seeds=range(3), run_seconds={"": Span(700)})
    assert {round(second) for second in found.forecasts[0].seconds} == {100}


def test_a_base_shares_its_fork_and_does_not_change() -> None:
    here = player(Fixed([900.0, 50.0], [600.0, 0.0]), RUNS, WAITS)._future.state
    base = Base(here, [("ns", "waits")])
    for _ in range(3):
        run, numbers = base.future(1)
        assert (run.seconds, run.n_counted, run.has_seen_all) == (0.0, 3, False)
        run.set_runs(numbers, np.array([900.0, 50.0]), np.array([600.0, 0.0]))
        run.play(1000.0)
        assert run.admitted_seconds == (300.0,)
