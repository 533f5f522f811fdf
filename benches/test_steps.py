"""The single steps of the table through Python: a cycle, or what would become of a workload."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benches.states import STEPS
from benches.worlds import T0


@pytest.mark.parametrize("name", STEPS)
def test_step(benchmark: BenchmarkFixture, name: str) -> None:
    state = STEPS[name]()
    engine = state.engine()
    if state.asked is None:
        decision = benchmark.pedantic(  # type: ignore[no-untyped-call]  # the package has no types for it
            lambda fork: fork.cycle(T0), setup=lambda: ((engine.fork(),), {}), rounds=10
        )
        assert len(decision.admissions) == state.expected
    else:
        answer = benchmark.pedantic(  # type: ignore[no-untyped-call]
            engine.what_if, args=(state.asked,), kwargs={"now": T0, "trusted": True}, rounds=20
        )
        assert len(answer.preemptions) == state.expected
