"""What holds in every world, whatever was decided in it (rules/02 §2)."""

import json
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.states import QuotaRow
from tests.builders import T0, at, snapshot, story
from tests.property.worlds import CONFIGURATIONS, Json, worlds

quick = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
configurations = st.sampled_from(CONFIGURATIONS)

Cell = tuple[str, str, str]
"""Name of a node, flavor, resource."""


def engine_of(objects: list[Json], configuration: Configuration | None) -> Engine:
    engine = Engine(configuration)
    engine.apply(json.dumps(objects).encode(), now=T0)
    return engine


def number(quantity: str | None) -> Fraction:
    """The amounts of these worlds: plain decimals, perhaps in thousandths or thousands."""
    assert quantity is not None
    for suffix, factor in (("m", Fraction(1, 1000)), ("k", Fraction(1000))):
        if quantity.endswith(suffix):
            return Fraction(Decimal(quantity[:-1])) * factor
    return Fraction(Decimal(quantity))


def reserved(engine: Engine) -> dict[Cell, Fraction]:
    """What the statuses of the workloads say is reserved, by ClusterQueue, flavor and resource."""
    total: dict[Cell, Fraction] = defaultdict(Fraction)
    for workload in engine.workloads():
        if workload.stage not in ("QuotaReserved", "Admitted"):
            continue
        admission = workload.status["admission"]
        for pod_set in admission["podSetAssignments"]:
            for resource, flavor in pod_set.get("flavors", {}).items():
                cell = (admission["clusterQueue"], flavor, resource)
                total[cell] += number(pod_set["resourceUsage"][resource])
    return total


def tree(engine: Engine) -> dict[tuple[str, Cell], QuotaRow]:
    return {(row.kind, (row.name, row.flavor, row.resource)): row for row in engine.quota()}


def check_usage(engine: Engine) -> None:
    rows = tree(engine)
    expected = {cell: amount for cell, amount in reserved(engine).items() if cell[0] in engine.cluster_queues()}
    found = {cell: number(row.usage) for (kind, cell), row in rows.items() if kind == "ClusterQueue"}
    assert {c: a for c, a in found.items() if a} == {c: a for c, a in expected.items() if a}
    below: dict[Cell, Fraction] = defaultdict(Fraction)
    lent: dict[Cell, Fraction] = defaultdict(Fraction)
    for (_, (_, flavor, resource)), row in rows.items():
        subtree, used = number(row.subtree_quota), number(row.usage)
        local = Fraction(0) if row.lending_limit is None else max(Fraction(0), subtree - number(row.lending_limit))
        if row.parent is not None:
            below[row.parent, flavor, resource] += max(Fraction(0), used - local)
            lent[row.parent, flavor, resource] += subtree - local
    for (kind, cell), row in rows.items():
        if kind == "Cohort":
            assert number(row.usage) == below[cell], cell
            assert number(row.subtree_quota) == number(row.nominal) + lent[cell], cell
        else:
            assert number(row.subtree_quota) == number(row.nominal)


@quick
@given(worlds(), configurations)
def test_usage_is_what_is_reserved_all_the_way_up(objects: list[Json], configuration: Configuration | None) -> None:
    engine = engine_of(objects, configuration)
    check_usage(engine)
    for second in range(1, 6):
        engine.cycle(at(second))
        check_usage(engine)
    for workload in engine.workloads():
        if workload.stage == "Admitted":
            engine.finish(workload.name, namespace=workload.namespace, now=at(9))
            check_usage(engine)
        elif workload.stage == "QuotaReserved":
            engine.evict(workload.name, namespace=workload.namespace, now=at(9))
            check_usage(engine)
    for workload in engine.workloads():
        engine.delete("Workload", workload.name, namespace=workload.namespace, now=at(10))
    assert [row for row in engine.quota() if row.usage != "0"] == []


@quick
@given(worlds(), configurations)
def test_what_is_admitted_was_available(objects: list[Json], configuration: Configuration | None) -> None:
    engine = engine_of(objects, configuration)
    for second in range(1, 6):
        before = tree(engine)
        decision = engine.cycle(at(second))
        taken: dict[Cell, Fraction] = defaultdict(Fraction)
        for admission in decision.admissions:
            for pod_set in admission.pod_sets:
                for resource, flavor in pod_set.flavors.items():
                    taken[admission.cluster_queue, flavor, resource] += number(pod_set.resource_usage[resource])
        for cell, amount in taken.items():
            row = before["ClusterQueue", cell]
            if amount:
                assert amount <= number(row.available) <= max(Fraction(0), number(row.potential_available)), cell
        # Together they still fit: nothing that was in order at the root is beyond its quota now.
        after = tree(engine)
        for key, row in after.items():
            old = before.get(key)
            if row.parent is None and old is not None and number(old.usage) <= number(old.subtree_quota):
                assert number(row.usage) <= number(row.subtree_quota), key


@quick
@given(worlds(), configurations)
def test_limits_hold_unless_they_were_broken_before(objects: list[Json], configuration: Configuration | None) -> None:
    engine = engine_of(objects, configuration)
    for second in range(1, 6):
        before = tree(engine)
        engine.cycle(at(second))
        for key, row in tree(engine).items():
            old = before.get(key)
            if row.parent is None or row.borrowing_limit is None or old is None:
                continue
            limit = number(row.subtree_quota) + number(row.borrowing_limit)
            if number(old.usage) <= limit:
                assert number(row.usage) <= limit, key


@quick
@given(worlds(), configurations)
def test_a_fork_decides_the_same_and_leaves_its_parent_alone(
    objects: list[Json], configuration: Configuration | None
) -> None:
    engine = engine_of(objects, configuration)
    for second in range(1, 5):
        before = snapshot(engine)
        fork = engine.fork()
        told = story(fork, at(second), 1)
        fork.reconcile(at(second))
        assert snapshot(engine) == before
        assert story(engine, at(second), 1) == told
        engine.reconcile(at(second))
        assert snapshot(engine) == snapshot(fork)


@quick
@given(worlds(), configurations)
def test_a_cycle_without_admissions_leaves_quota_alone(
    objects: list[Json], configuration: Configuration | None
) -> None:
    engine = engine_of(objects, configuration)
    for second in range(1, 7):
        before = engine.quota()
        if not engine.cycle(at(second)).admissions:
            assert engine.quota() == before


@quick
@given(worlds(), configurations)
def test_forgetting_all_of_a_cycle_restores_quota(objects: list[Json], configuration: Configuration | None) -> None:
    engine = engine_of(objects, configuration)
    for second in range(1, 4):
        before = tree(engine)
        statuses = {w.key: w.status for w in engine.workloads()}
        for admission in engine.cycle(at(second)).admissions:
            assert engine.forget(admission.name, namespace=admission.namespace, now=at(second))
            assert engine.workload(admission.name, namespace=admission.namespace).status == statuses[admission.key]
        after = tree(engine)
        assert {k: r for k, r in after.items() if k in before} == before
        assert {r.usage for k, r in after.items() if k not in before} <= {"0"}


@quick
@given(worlds(), configurations)
def test_every_workload_is_in_one_place_at_most(objects: list[Json], configuration: Configuration | None) -> None:
    engine = engine_of(objects, configuration)
    for second in range(1, 6):
        engine.cycle(at(second))
        waiting = [w.key for name in engine.cluster_queues() for w in engine.pending(name)]
        assert len(waiting) == len(set(waiting))
        stages = {w.key: w for w in engine.workloads()}
        assert {stages[key].stage for key in waiting} <= {"Pending"}
        assert {key for key, w in stages.items() if w.place is not None} == set(waiting)
        for name in engine.cluster_queues():
            state = engine.cluster_queue(name)
            assert state.pending_workloads == len(engine.pending(name))


@quick
@given(worlds(), configurations)
def test_cycles_come_to_rest(objects: list[Json], configuration: Configuration | None) -> None:
    """While no job stops, what is reserved only grows; once nothing moves in a cycle, nothing will."""
    engine = engine_of(objects, configuration)
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
