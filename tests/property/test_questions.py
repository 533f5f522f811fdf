"""A question sees the objects that are there, whatever was called before it, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kueuecore._json import JsonObject
from kueuecore.answers import explain
from kueuecore.engine import Engine
from kueuecore.states import Stage
from kueuecore.steady_state import Ending, settle
from kueuecore.testing import History, Play, histories, observe, shown
from kueuecore.testing.drawn_topologies import random_topology
from kueuecore.times import TimeLike

DRAWN = [pytest.param(histories(), id="plain"), pytest.param(st.integers(0, 10**6).map(random_topology), id="nodes")]


@dataclass(frozen=True, slots=True)
class Questions:
    """What is asked about a state.

    Args:
        workloads: Workloads that are not there.
        now: The time at which all is asked.
    """

    workloads: tuple[JsonObject, ...]
    now: TimeLike

    @classmethod
    def of(cls, history: History, now: TimeLike) -> Questions:
        """Workloads like those of a history, half of them urgent enough to preempt."""
        known = [
            object_
            for object_ in history.objects
            if object_["kind"] == "Workload" and isinstance(object_["spec"], dict)
        ][:4]
        return cls(tuple(_asked(object_, number) for number, object_ in enumerate(known)), now)

    def what_if(self, engine: Engine) -> object:
        """The answers about workloads that are not there."""
        return [repr(engine.what_if(workload, now=self.now)) for workload in self.workloads]

    def explained(self, engine: Engine) -> object:
        """The answers about those that are."""
        states = engine.workloads()
        return [repr(explain(engine, state.name, namespace=state.namespace, now=self.now)) for state in states]

    def answers(self, engine: Engine) -> str:
        """All answers, each on a copy."""
        return json.dumps([ask(engine.fork()) for ask in self.all()])

    def all(self) -> tuple[Callable[[Engine], object], ...]:
        """Each kind of question."""
        return (self.what_if, self.explained, capacity, placements)


def _asked(known: JsonObject, number: int) -> JsonObject:
    metadata: JsonObject = {"namespace": "ns", "name": f"asked{number}", "uid": f"uid-asked{number}"}
    spec: Any = known["spec"]
    priority = {"priority": 10} if number % 2 else {}
    rest = {name: value for name, value in known.items() if name != "status"}
    return {**rest, "metadata": metadata, "spec": {**spec, **priority}}


def capacity(engine: Engine) -> object:
    return [asdict(domain_capacity) for domain_capacity in engine.domain_capacity()]


def placements(engine: Engine) -> object:
    return [asdict(placement) for placement in engine.placements()]


def played(history: History, data: st.DataObject) -> Play:
    """A play up to some move, or before the first cycle."""
    play = Play.of(history)
    for move in history.moves[: data.draw(st.integers(0, len(history.moves)))]:
        play.do(move)
    return play


@pytest.mark.parametrize("drawn", DRAWN)
@given(data=st.data())
def test_answers_do_not_depend_on_what_was_asked_before(drawn: st.SearchStrategy[History], data: st.DataObject) -> None:
    history = data.draw(drawn)
    order = data.draw(st.lists(st.sampled_from(range(4)), min_size=1, max_size=4))
    with shown(history):
        play = played(history, data)
        questions = Questions.of(history, play.now)
        alone = questions.answers(play.engine)
        asked = play.engine.fork()
        for index in order:
            questions.all()[index](asked)
        assert questions.answers(asked) == alone
        assert questions.answers(Engine.load(play.engine.save(), configuration=asked.configuration)) == alone


@pytest.mark.parametrize("drawn", DRAWN)
@given(data=st.data())
def test_answers_do_not_depend_on_cycles_that_change_nothing(
    drawn: st.SearchStrategy[History], data: st.DataObject
) -> None:
    history = data.draw(drawn)
    with shown(history):
        play = played(history, data)
        rests, questions = play.engine, Questions.of(history, play.now)
        assume(settle(rests, now=play.now).ending is Ending.SETTLED)
        before, seen = questions.answers(rests), observe(rests)
        rests.cycle(play.now)
        # A head that tries its next flavors has another message.
        assert observe(rests) != seen or questions.answers(rests) == before
        # A cycle without heads is none, and prepares all the same.
        for workload in rests.workloads():
            if workload.stage is Stage.PENDING:
                rests.delete("Workload", workload.name, namespace=workload.namespace, now=play.now)
        before = questions.answers(rests)
        assert rests.cycle(play.now).cycle == 0
        assert questions.answers(rests) == before


@pytest.mark.parametrize("drawn", DRAWN)
@given(data=st.data())
def test_a_question_leaves_every_byte_of_the_state(drawn: st.SearchStrategy[History], data: st.DataObject) -> None:
    history = data.draw(drawn)
    with shown(history):
        play = played(history, data)
        questions = Questions.of(history, play.now)
        # Names and slots that a question is the first to need stay.
        questions.what_if(play.engine)
        before = play.engine.save()
        for ask in questions.all():
            ask(play.engine)
            assert play.engine.save() == before
