"""Answers to a case are compared by what they say, level by level."""

from __future__ import annotations

from typing import Any

from tests.judge.comparing import Level, closest, differing, parts


def run(**final: Any) -> dict[str, Any]:
    granted = {"key": "ns/w1", "clusterQueue": "q1", "podSets": [{"name": "main", "count": 1, "flavors": {"cpu": "f"}}]}
    said = {"key": "ns/w1", "type": "Normal", "reason": "QuotaReserved", "message": "Quota reserved"}
    cycle = {"n": 1, "t": 0, "admitted": [granted], "messages": [said]}
    return {"cycles": [cycle], "quietMessages": [], "final": {"t": 0, "cycles": 1, **final}}


def test_amounts_are_equal_by_value_and_nothing_is_as_good_as_absent() -> None:
    one = run(usage={"q1": {"f": {"cpu": "1", "memory": "1Ki"}}}, queued={}, inadmissible={"q1": []})
    other = run(usage={"q1": {"f": {"cpu": "1000m", "memory": "1024", "gpu": "0"}}})
    assert differing(parts(one), parts(other)) is None


def test_a_different_decision_comes_before_a_different_text() -> None:
    other = run()
    other["cycles"][0]["admitted"][0]["podSets"][0]["count"] = 2
    other["cycles"][0]["messages"] = []
    found = differing(parts(run()), parts(other))
    assert found is not None
    assert (found.level, found.path) == (Level.DECISIONS, "cycles[0].admitted[0].podSets[0].count")
    assert found.told == "Kueue says 1, we say 2"
    assert found.kind == "decisions cycles.admitted.podSets.count"


def test_an_entry_that_only_one_side_has_is_named() -> None:
    other = run()
    other["cycles"] = []
    found = differing(parts(run()), parts(other))
    assert found is not None
    assert found.told.startswith('Kueue has 1, not 0; also: {"admitted"')


def test_messages_have_no_order_and_are_left_out_where_chance_decides() -> None:
    one, other = run(), run()
    first = {"key": "ns/w0", "type": "Normal", "reason": "Other", "message": "x"}
    one["cycles"][0]["messages"].append(first)
    other["cycles"][0]["messages"].insert(0, first)
    assert differing(parts(one), parts(other)) is None
    first["message"] = "y"
    other["cycles"][0]["messages"] = other["cycles"][0]["messages"][1:]
    found = differing(parts(one), parts(other))
    assert found is not None
    assert found.level is Level.MESSAGES
    assert differing(parts(one), parts(other), {"messages"}) is None


def test_names_do_not_make_another_kind() -> None:
    def kind(key: str) -> str:
        condition = {"type": "QuotaReserved", "status": "False", "reason": key, "message": ""}
        found = differing(
            parts(run(statuses={key: {"conditions": [condition]}})),
            parts(run(statuses={key: {"conditions": [{**condition, "status": "True"}]}})),
        )
        assert found is not None
        return found.kind

    assert kind("ns/w1") == kind("ns/other-2") == "statuses conditions.status"


def test_what_the_plays_of_kueue_disagree_about_may_be_as_in_any_of_them() -> None:
    def told(*messages: str) -> dict[str, Any]:
        said = [
            {"key": f"ns/w{n}", "type": "Normal", "reason": "Pending", "message": message}
            for n, message in enumerate(messages)
        ]
        return run() | {"cycles": [{"n": 1, "t": 0, "inadmissible": ["ns/w0"], "messages": said}]}

    plays = [parts(told("a", "x")), parts(told("b", "y"))]
    for mine in (told("a", "y"), told("b", "x")):
        want = closest(plays, parts(mine))
        assert want is not None
        assert differing(want, parts(mine)) is None
    want = closest(plays, parts(told("a", "z")))
    assert want is not None
    found = differing(want, parts(told("a", "z")))
    assert found is not None
    assert found.told == 'Kueue says "x", we say "z"'


def test_decisions_of_which_no_play_has_ours_are_chance_only_if_plays_disagree() -> None:
    other, third = run(), run()
    other["cycles"][0]["admitted"][0]["key"] = "ns/w2"
    third["cycles"][0]["admitted"][0]["key"] = "ns/w3"
    assert closest([parts(run()), parts(other)], parts(third)) is None
    assert closest([parts(run()), parts(run())], parts(third)) == parts(run())
