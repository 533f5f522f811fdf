"""The engine decides, says, counts and queues as the reference does, whatever happens."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from kueuecore._json import JsonObject
from kueuecore.testing import History, Limits, Move, MoveKind, histories, shown
from kueuecore.testing.history import key_of
from kueuecore.testing.strategies import contents, moves, stocks
from kueuecore.trials.comparison import Comparison, compare
from tests.property.worlds import times


@times(8)
@given(histories())
def test_histories(history: History) -> None:
    with shown(history):
        compare(history)


@times(2)
@given(histories(Limits(fair_sharing=True, missing=False, stops=False)))
def test_histories_with_fair_sharing(history: History) -> None:
    with shown(history):
        compare(history)


class EngineAndReference(RuleBasedStateMachine):
    """Hypothesis chooses what happens next, on both, and looks at both after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[Move] = []

    @initialize(data=st.data())
    def a_world(self, data: st.DataObject) -> None:
        self.stock = data.draw(stocks(Limits(workloads=4)))
        self.scenario = History(*data.draw(contents(self.stock)))
        self.known = {key_of(object_): object_ for object_ in self.scenario.objects if object_["kind"] == "Workload"}
        with shown(self.scenario):
            self.comparison = Comparison(self.scenario)

    def happens(self, data: st.DataObject, kind: MoveKind) -> None:
        known: tuple[JsonObject, ...] = tuple(self.known.values())
        move = data.draw(moves(self.stock, known, number=len(self.done), kind=kind))
        if move.object is not None and move.object["kind"] == "Workload":
            self.known[key_of(move.object)] = move.object
        self.done.append(move)
        with shown(self.scenario.with_moves(self.done)):
            self.comparison.do(move)

    @rule(data=st.data())
    def apply(self, data: st.DataObject) -> None:
        self.happens(data, MoveKind.APPLY)

    @rule(data=st.data())
    def cycle(self, data: st.DataObject) -> None:
        self.happens(data, MoveKind.CYCLE)

    @rule(data=st.data())
    def linger(self, data: st.DataObject) -> None:
        self.happens(data, MoveKind.LINGER)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.happens(data, MoveKind.DELETE)

    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        self.happens(data, MoveKind.FINISH)

    @rule(data=st.data())
    def evict(self, data: st.DataObject) -> None:
        self.happens(data, MoveKind.EVICT)

    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        self.happens(data, MoveKind.FORK)

    @rule(data=st.data())
    def wait(self, data: st.DataObject) -> None:
        self.happens(data, MoveKind.WAIT)

    def teardown(self) -> None:
        if self.done:
            self.comparison.play.check_parents()


def test_whatever_happens_next() -> None:
    run_state_machine_as_test(EngineAndReference, settings=settings(times(1), stateful_step_count=15))
