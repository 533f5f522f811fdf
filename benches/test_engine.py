"""How long an engine takes: `make bench`."""

from collections.abc import Callable
from typing import Any

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from benches.worlds import T0, World
from kueuecore.decisions import Decision
from kueuecore.engine import Engine


def _pedantic(benchmark: BenchmarkFixture, target: Callable[..., Any], **settings: Any) -> Any:
    return benchmark.pedantic(target, **settings)  # type: ignore[no-untyped-call]  # the package has no types for it


def _engine(world: World, *, trusted: bool = False) -> Engine:
    engine = Engine()
    engine.apply(world.cluster(), now=T0)
    engine.apply(world.workloads(), now=T0, trusted=trusted)
    return engine


def _apply(benchmark: BenchmarkFixture, *, trusted: bool) -> None:
    world = World(100, 10, n_pending=100)
    cluster, workloads = world.cluster(), world.workloads()

    def fresh() -> tuple[tuple[Engine], dict[str, object]]:
        engine = Engine()
        engine.apply(cluster, now=T0)
        return (engine,), {}

    def run(engine: Engine) -> int:
        engine.apply(workloads, now=T0, trusted=trusted)
        return len(engine)

    assert _pedantic(benchmark, run, setup=fresh, rounds=5) == 10_000


def test_apply_10_000_workloads_from_people(benchmark: BenchmarkFixture) -> None:
    _apply(benchmark, trusted=False)


def test_apply_10_000_workloads_from_a_watch(benchmark: BenchmarkFixture) -> None:
    _apply(benchmark, trusted=True)


def test_submitting_100_000_workloads_as_arrays(benchmark: BenchmarkFixture) -> None:
    cluster = World(100, 10).cluster()
    queues = np.arange(100_000) % 100
    requests = {"cpu": queues % 8 * 1000 + 1000}

    def fresh() -> tuple[tuple[Engine], dict[str, object]]:
        engine = Engine()
        engine.apply(cluster, now=T0)
        return (engine,), {}

    def run(engine: Engine) -> int:
        names = [f"queue-{index:05}" for index in range(100)]
        engine.submit(namespace="ns", local_queues=names, queue=queues, requests=requests, created=T0, now=T0)
        return len(engine)

    assert _pedantic(benchmark, run, setup=fresh, rounds=3) == 100_000


def test_cycle_that_decides_nothing(benchmark: BenchmarkFixture) -> None:
    engine = _engine(World(100, n_pending=100, nominal_cpu=0))
    while engine.cycle(T0).has_changed_something:
        pass
    assert benchmark(engine.cycle, T0).cycle == 0


def test_apply_one_workload_from_a_watch(benchmark: BenchmarkFixture) -> None:
    """As a controller does: one event, one call."""
    engine = _engine(World(100, 10), trusted=True)
    lines = iter(World(100, 10, n_pending=100).workloads().splitlines())

    def run(line: bytes) -> None:
        engine.apply(line, now=T0, trusted=True)

    _pedantic(benchmark, run, setup=lambda: ((next(lines),), {}), rounds=9_000)
    assert len(engine) == 9_000


def _read(benchmark: BenchmarkFixture, *, fits: bool) -> None:
    """Each round reads anew what one cycle decided."""
    engine = _engine(World(10_000, 1_000, n_pending=1, nominal_cpu=100 if fits else 0), trusted=True)
    core = engine.cycle(T0)._core

    def run(decision: Decision) -> int:
        if fits:
            return len(decision.admission_table) + len(decision.flavor_table)
        return len(decision.pending_table)

    # Two resources each.
    n_rows = 30_000 if fits else 10_000
    assert _pedantic(benchmark, run, setup=lambda: ((Decision(core),), {}), rounds=200) == n_rows


def test_reading_10_000_admissions_as_arrays(benchmark: BenchmarkFixture) -> None:
    _read(benchmark, fits=True)


def test_reading_10_000_pending_decisions_as_arrays(benchmark: BenchmarkFixture) -> None:
    _read(benchmark, fits=False)


def _cycle(benchmark: BenchmarkFixture, world: World) -> Decision:
    engine = _engine(world)

    def run(fork: Engine) -> Decision:
        return fork.cycle(T0)

    decision: Decision = _pedantic(benchmark, run, setup=lambda: ((engine.fork(),), {}), rounds=5)
    return decision


def test_cycle_with_1_000_heads_that_fit(benchmark: BenchmarkFixture) -> None:
    assert len(_cycle(benchmark, World(1000, 100, n_pending=1)).admissions) == 1000


def test_cycle_with_1_000_heads_of_which_none_fits(benchmark: BenchmarkFixture) -> None:
    decision = _cycle(benchmark, World(1000, n_pending=1, nominal_cpu=0))
    assert (len(decision.admissions), len(decision.pending)) == (0, 1000)


def test_fork_of_10_000_workloads(benchmark: BenchmarkFixture) -> None:
    engine = _engine(World(100, 10, n_pending=100))
    assert len(benchmark(engine.fork)) == 10_000


def test_reading_10_000_workloads(benchmark: BenchmarkFixture) -> None:
    engine = _engine(World(100, 10, n_pending=100))
    assert len(_pedantic(benchmark, engine.workloads, rounds=3)) == 10_000
