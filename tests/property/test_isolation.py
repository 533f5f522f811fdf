"""What is tried leaves no trace, and forks go their own ways."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kueuecore._json import JsonObject
from kueuecore.engine import Engine
from kueuecore.testing import History, Play, first_difference, histories, observe, shown


def all_bytes(engine: Engine) -> str:
    """All that an engine reports, with conditions in their order."""
    return json.dumps(observe(engine))


def questions(history: History) -> list[JsonObject]:
    """Workloads like those of the history, urgent enough to preempt."""
    known = [
        object_ for object_ in history.objects if object_["kind"] == "Workload" and isinstance(object_["spec"], dict)
    ]
    return [
        {
            **{name: value for name, value in object_.items() if name != "status"},
            "metadata": {"namespace": "ns", "name": f"asked{number}", "uid": f"uid-asked{number}"},
            "spec": {**object_["spec"], "priority": 10},  # type: ignore[dict-item]
        }
        for number, object_ in enumerate(known)
    ]


@given(histories(forks=False))
def test_what_is_tried_and_rolled_back_leaves_every_byte(history: History) -> None:
    """Victims, flavors and fewer pods are tried on the state itself; a question tries all of that and takes it back."""
    with shown(history):
        asked, other = Play.of(history), Play.of(history)
        for number, move in enumerate(history.moves):
            for question in questions(history)[number % 2 :: 2]:
                before = all_bytes(asked.engine)
                asked.engine.what_if(question)
                assert all_bytes(asked.engine) == before
            # And nothing that cannot be seen has changed: what follows is the same.
            assert first_difference(asked.do(move).to_json(), other.do(move).to_json()) is None
            assert all_bytes(asked.engine) == all_bytes(other.engine)


@given(st.data(), histories(forks=False))
def test_forks_go_their_own_ways(data: Any, history: History) -> None:
    """Two forks and what they were taken of, turn by turn: each as if it were alone."""
    with shown(history):
        first = data.draw(st.integers(0, len(history.moves)))
        stem, rest = history.moves[:first], history.moves[first:]
        trunk = Play.of(history)
        for move in stem:
            trunk.do(move)
        ways = [rest, rest[::-1], rest[1::2]]
        engines = [trunk.engine, trunk.engine.fork(), trunk.engine.fork()]
        plays = [Play(engine, seconds=trunk.seconds) for engine in engines]
        alone = []
        for way in ways:
            play = Play.of(history)
            for move in stem:
                play.do(move)
            alone.append([(play.do(move).to_json(), all_bytes(play.engine)) for move in way])
        turns = [index for index, way in enumerate(ways) for _ in way]
        done = [0, 0, 0]
        for index in data.draw(st.permutations(turns)):
            reported = plays[index].do(ways[index][done[index]]).to_json()
            expected, state = alone[index][done[index]]
            assert first_difference(reported, expected) is None
            assert all_bytes(engines[index]) == state
            done[index] += 1
