"""The cycles of `make bench-kueue` are the same for Kueue and for the engine."""

from __future__ import annotations

import pytest

from benches.cycles import Cycle, flat, placing, preempting, tree
from benches.kueue import kueue_table
from kueuecore.conformance import answer


@pytest.mark.parametrize(
    ("cycle", "n_admitted", "n_preempted", "n_parked"),
    [
        pytest.param(flat(5, n_cohorts=2, n_queues=3), 6, 0, 0, id="fits"),
        pytest.param(flat(1_000_000, n_cohorts=2, n_queues=3), 0, 0, 6, id="fits-nowhere"),
        pytest.param(tree(15, n_heads=70), 70, 0, 0, id="levels"),
        pytest.param(tree(15, n_heads=70, is_fair=True), 70, 0, 0, id="fair"),
        pytest.param(preempting(2, 50), 0, 80, 0, id="preempts"),
        pytest.param(placing(50, 3), 3, 0, 0, id="places"),
    ],
)
def test_the_run_for_kueue_ends_with_the_cycle_that_is_due_for_the_engine(
    cycle: Cycle, n_admitted: int, n_preempted: int, n_parked: int
) -> None:
    decided = cycle.of_engine(cycle.engine().cycle(cycle.now))
    assert tuple(map(len, (decided.admitted, decided.preempted, decided.parked))) == (n_admitted, n_preempted, n_parked)
    run = answer(cycle.case("a-cycle"))
    assert cycle.of_kueue(run) == decided
    assert run["final"]["cycles"] == cycle.number + 1


def test_the_table_has_kueue_beside_the_engine() -> None:
    figure = {"kueue_ns": 4e6, "without_store_ns": 3e6, "deciding_ns": 2e6, "engine_ns": 1e5}
    row = kueue_table({"a cycle": figure}).splitlines()[2]
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        *("a cycle", "4.00 ms", "3.00 ms", "2.00 ms", "100 µs", "40.0x", "20.0x")
    ]
