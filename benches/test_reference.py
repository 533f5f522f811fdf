"""What it costs to say the rules in the dull way: the reference model beside the engine, in the same cycle."""

import json

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benches.worlds import T0, World
from kueuecore import reference
from kueuecore.engine import Engine

_N_HEADS = 100


def _world(*, fits: bool) -> World:
    return World(_N_HEADS, 10, n_pending=1, nominal_cpu=100 if fits else 0)


@pytest.mark.parametrize("fits", [True, False], ids=["fits", "does_not_fit"])
def test_engine_cycle_with_100_heads(benchmark: BenchmarkFixture, *, fits: bool) -> None:
    world = _world(fits=fits)
    engine = Engine()
    engine.apply(world.cluster(), now=T0)
    engine.apply(world.workloads(), now=T0)
    decision = benchmark.pedantic(  # type: ignore[no-untyped-call]  # the package has no types for it
        lambda fork: fork.cycle(T0), setup=lambda: ((engine.fork(),), {}), rounds=20
    )
    assert len(decision.admissions) == (_N_HEADS if fits else 0)


@pytest.mark.parametrize("fits", [True, False], ids=["fits", "does_not_fit"])
def test_reference_cycle_with_100_heads(benchmark: BenchmarkFixture, *, fits: bool) -> None:
    world = _world(fits=fits)
    manifests = [json.loads(line) for part in (world.cluster(), world.workloads()) for line in part.splitlines()]
    model = reference.World(manifests, now=T0)
    decision = benchmark.pedantic(  # type: ignore[no-untyped-call]
        lambda copy: copy.cycle(T0), setup=lambda: ((model.fork(),), {}), rounds=3
    )
    assert len(decision.admissions) == (_N_HEADS if fits else 0)
