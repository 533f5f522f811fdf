"""Forks of a run, each with its own run times and arrivals, that stop by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

import numpy as np
import pytest

from kueuecore import ManifestError
from kueuecore._json import JsonObject
from kueuecore.checks import CheckController
from kueuecore.manifests import Manifest, parse_manifests
from kueuecore.provisioning import QueuedCapacity, Stock, VirtualProvisioning
from kueuecore.simulation import Happening, Operation
from kueuecore.simulation.copies import Copies, joined_names
from kueuecore.simulation.look_ahead import LookAhead
from kueuecore.simulation.stepper import Stepper
from tests.unit.forecasts.present_states import QUEUES, START, workload


def stepper(*, checks: Sequence[CheckController] = ()) -> Stepper:
    return Stepper(
        parse_manifests(QUEUES),
        configuration=None,
        now=START,
        checks=checks,
        trusted=False,
        cycle_seconds=1.0,
        max_cycles=None,
        eviction_seconds=0.0,
        messages=False,
        cycles=False,
        finished=False,
        log=False,
    )


def base(*workloads: Manifest) -> LookAhead:
    """A run with these Workloads, before its first cycle."""
    run = stepper()
    run.schedule([create(workload) for workload in workloads])
    run.happened()
    ahead = LookAhead(run)
    ahead.arrive()
    return ahead


def create(object_: Manifest) -> Happening:
    return Happening(at=0, op=Operation.CREATE, object=object_)


def keys(*names: str) -> list[tuple[str, str]]:
    return [("ns", name) for name in names]


def set_runs(run: LookAhead, runs: dict[str, float], done: Iterable[float] = ()) -> None:
    given = list(done) or [0.0] * len(runs)
    run.set_runs(run.numbers_of(keys(*runs)), np.array(list(runs.values())), np.array(given))


def copies(at: Sequence[float], *, runs: float = 60.0) -> Copies:
    names, ends = joined_names([f"copy-{row}" for row in range(len(at))])
    n = len(at)
    return Copies(
        templates=[create(Manifest(template()))],
        template=np.zeros(n, np.uint32),
        names=names,
        ends=ends,
        at=np.array(at),
        run_seconds=np.full(n, runs),
    )


def template() -> JsonObject:
    plain = workload("template").object
    return {**plain, "metadata": {"namespace": "ns", "name": "template"}}


def test_what_is_due_now_happens_before_the_first_cycle() -> None:
    run = base(workload("runs", admitted=600), workload("waits"))
    assert (run.seconds, run.stepper.clock.n_cycles, run.n_counted) == (0.0, 0, 3)


def test_each_fork_has_its_own_run_times_and_leaves_its_base_alone() -> None:
    run = base(workload("runs", admitted=600), workload("waits"))
    run.watch(run.numbers_of(keys("waits", "runs")))
    for seconds, done, expected in [(100.0, 0.0, 100.0), (100.0, 60.0, 40.0), (60.0, 60.0, 0.0), (inf, 60.0, inf)]:
        fork = run.fork()
        set_runs(fork, {"runs": seconds}, [done])
        fork.play(1000)
        assert fork.admitted_seconds == (expected, 0.0)
        assert fork.has_seen_all == (expected < inf)
    assert (run.seconds, run.n_counted, run.admitted_seconds) == (0.0, 3, (inf, 0.0))


def test_a_fork_of_a_fork_goes_on_from_there() -> None:
    run = base(workload("runs", admitted=600), workload("waits", created=60), workload("last"))
    run.watch(run.numbers_of(keys("last")))
    set_runs(run, {"runs": 100.0, "waits": 50.0})
    run.play(120)
    for waits, expected in ((50.0, 150.0), (90.0, 120.0 + 90.0)):
        fork = run.fork()
        if waits != 50.0:
            # What is set later counts from then on.
            set_runs(fork, {"waits": waits})
        fork.play(1000)
        assert fork.admitted_seconds == pytest.approx((expected,), abs=1)


def test_it_stops_at_once_when_all_are_admitted_or_enough_has_happened() -> None:
    run = base(workload("runs", admitted=600), workload("next", created=60), workload("last"))
    set_runs(run, {"runs": 100.0, "next": 100.0, "last": 100.0})
    run.watch(run.numbers_of(keys("next")))
    fork = run.fork()
    assert fork.play(10_000)
    assert (fork.seconds, fork.has_seen_all) == (100.0, True)
    run.watch(run.numbers_of(keys("last")))
    # Three have come, one runs; it ends, and the next one begins.
    assert run.play(10_000, most_steps=6)
    assert (run.seconds, run.has_seen_all, run.n_counted) == (100.0, False, 6)


def test_templates_are_read_once_for_all_forks() -> None:
    run = base(workload("runs", admitted=600))
    read = run.templates(copies([]).templates)
    run.watch(run.numbers_of(keys("nobody")))
    for n in (1, 3):
        fork = run.fork()
        set_runs(fork, {"runs": 100.0})
        fork.schedule_copies(copies([10.0 * row for row in range(n)]), read)
        fork.play(10_000)
        assert fork.n_counted == 2 + 1 + 3 * n, "each comes, is admitted and ends"


def test_a_bad_template_is_an_error_that_names_it() -> None:
    bad: JsonObject = {**template(), "spec": {"podSets": 5}}
    with pytest.raises(ManifestError, match="podSets"):
        base().templates([create(Manifest(bad))])


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_impossible_run_times_are_refused(seconds: float) -> None:
    run = base(workload("runs", admitted=600))
    with pytest.raises(ValueError, match="run_seconds: must be 0 or more"):
        set_runs(run, {"runs": seconds})
    with pytest.raises(ValueError, match="must have 1 values"):
        run.set_runs(run.numbers_of(keys("runs")), np.zeros(2), np.zeros(2))


def test_a_workload_that_is_gone_is_ignored() -> None:
    run = base(workload("runs", admitted=600), workload("waits"))
    numbers = run.numbers_of(keys("runs", "nobody"))
    run.set_runs(numbers, np.array([5.0, 7.0]), np.zeros(2))
    run.watch(run.numbers_of(keys("waits", "nobody")))
    run.play(100)
    assert run.admitted_seconds == (5.0, inf)


def test_a_run_with_check_controllers_cannot_be_forked() -> None:
    given = stepper(checks=[VirtualProvisioning(QueuedCapacity({"check": Stock()}))])
    assert not given.can_fork
    with pytest.raises(ValueError, match="cannot be forked"):
        given.fork()


def test_a_fork_keeps_its_own_objects() -> None:
    run = base(workload("runs", admitted=600)).stepper
    twin = run.fork()
    twin.put(parse_manifests("{apiVersion: v1, kind: Namespace, metadata: {name: other}}"))
    assert len(twin.stored.of_kind("Namespace")) == 2
    assert len(run.stored.of_kind("Namespace")) == 1
