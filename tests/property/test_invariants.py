"""What holds in every world, whatever happens in it (docs/invariants.md)."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from kueuecore.testing import History, Invariants, Limits, Play, histories, shown, worlds
from tests.builders import at
from tests.property.worlds import engine_of, times


@times(4)
@given(histories())
def test_invariants_hold_after_every_move(history: History) -> None:
    with shown(history):
        play = Play.of(history, watchers=[Invariants(history)])
        for _ in play.run(history.moves):
            pass
        play.check_parents()


def is_in_a_cycle(cohort: str, parents: Mapping[str, str | None]) -> bool:
    """Whether cohorts above one form a cycle: nothing is summed up there, so it keeps what it had (rules/02 §4)."""
    seen: set[str] = set()
    above: str | None = cohort
    while above and above not in seen:
        seen.add(above)
        above = parents.get(above)
    return bool(above)


@given(histories(Limits(edges=False), forks=False))
def test_an_empty_world_uses_nothing(history: History) -> None:
    with shown(history):
        engine = (play := Play.of(history)).engine
        for _ in play.run(history.moves):
            pass
        for workload in engine.workloads():
            engine.delete("Workload", workload.name, namespace=workload.namespace, now=play.now)
        quota = engine.quota()
        parents = {row.name: row.parent for row in quota if row.kind == "Cohort"}
        assert [row for row in quota if row.usage != "0" and not is_in_a_cycle(row.name, parents)] == []


@given(worlds(), st.integers(0, 3))
def test_forgetting_all_of_a_cycle_restores_quota(world: History, n_cycles: int) -> None:
    with shown(world):
        engine = engine_of(world)
        for second in range(1, n_cycles + 1):
            engine.cycle(at(second))
        now = at(n_cycles + 1)
        before = {(row.kind, row.name, row.flavor, row.resource): row for row in engine.quota()}
        statuses = {w.key: w.status for w in engine.workloads()}
        for admission in engine.cycle(now).admissions:
            assert engine.forget(admission.name, namespace=admission.namespace, now=now)
            assert engine.workload(admission.name, namespace=admission.namespace).status == statuses[admission.key]
        after = {(row.kind, row.name, row.flavor, row.resource): row for row in engine.quota()}
        assert {key: row for key, row in after.items() if key in before} == before
        assert {row.usage for key, row in after.items() if key not in before} <= {"0"}


@given(worlds())
def test_cycles_come_to_rest_while_no_job_stops(world: History) -> None:
    """What is reserved only grows then; once nothing moves in a cycle, nothing will."""
    with shown(world):
        engine = engine_of(world)
        n_held = -1
        for second in range(1, 60):
            decision = engine.cycle(at(second))
            held = sum(w.stage in ("QuotaReserved", "Admitted") for w in engine.workloads())
            assert held >= n_held
            n_held = held
            if not decision.has_changed_something:
                before = engine.quota()
                engine.cycle(at(second + 1))
                assert engine.quota() == before
                return
        raise AssertionError("still busy")
