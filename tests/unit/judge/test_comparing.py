"""Answers to a case are compared by what they say, level by level."""

from __future__ import annotations

from typing import Any

from tests.judge.comparing import Level, differing, parts


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
