"""The tables of a decision say what its tuples say, in the same order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from hypothesis import given

from kueuecore._quantities import number
from kueuecore.decision_tables import NONE
from kueuecore.decisions import Decision
from kueuecore.engine import Engine
from kueuecore.testing import History, Move, MoveResult, Play, histories, shown
from kueuecore.testing.engine_view import EngineView


class Reader:
    """Looks at each decision before anything else happens, as numbers of workloads are given again."""

    def before(self, seen: EngineView, move: Move) -> None:
        self.keys = seen.engine.workload_keys()

    def after(self, seen: EngineView, result: MoveResult) -> None:
        if result.decision is not None:
            check(seen.engine, result.decision, self.keys)

    def settled(self, seen: EngineView) -> None:
        pass


def check(engine: Engine, decision: Decision, keys: tuple[str | None, ...]) -> None:
    names = engine.names()

    def queue(number: int) -> str:
        return "" if number == NONE else names.cluster_queues[number]

    def rows(table: npt.NDArray[np.void]) -> Iterator[tuple[int, ...]]:
        return (tuple(row) for row in table.tolist())

    assert [(keys[w], queue(q), admitted, time) for w, q, admitted, time in rows(decision.admission_table)] == [
        (admission.key, admission.cluster_queue, admission.is_admitted, admission.time)
        for admission in decision.admissions
    ]
    assert [(keys[w], queue(q), keys[by], names.reasons[r]) for w, q, by, r in rows(decision.preemption_table)] == [
        (preemption.key, preemption.cluster_queue, preemption.preemptor, preemption.reason)
        for preemption in decision.preemptions
    ]
    assert [(keys[w], queue(q), names.reasons[r], parked) for w, q, r, parked in rows(decision.pending_table)] == [
        (pending.key, pending.cluster_queue, pending.reason, pending.is_parked) for pending in decision.pending
    ]
    got = [
        (a, p, count, names.resources[resource], names.flavors[flavor], amount)
        for a, p, count, resource, flavor, amount in rows(decision.flavor_table)
    ]
    assert got == [
        (a, p, pod_set.count, resource, flavor, amount_of(resource, pod_set.resource_usage[resource]))
        for a, admission in enumerate(decision.admissions)
        for p, pod_set in enumerate(admission.pod_sets)
        for resource, flavor in sorted(pod_set.flavors.items())
    ]


def amount_of(resource: str, quantity: str) -> int:
    amount = number(quantity)
    assert amount is not None
    return int(amount * 1000 if resource == "cpu" else amount)


@given(histories())
def test_tables_say_what_tuples_say(history: History) -> None:
    with shown(history):
        play = Play.of(history, watchers=[Reader()])
        for _ in play.run(history.moves):
            pass
