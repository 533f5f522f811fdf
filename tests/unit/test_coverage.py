"""Which resource an uncovered one may mean: hints, not guesses that mislead."""

from __future__ import annotations

import pytest

from kueuecore.coverage import coverage_hint, meant_resource


@pytest.mark.parametrize(
    ("resource", "covered", "meant"),
    [
        ("npu", ["cpu", "acme.io/npu"], "acme.io/npu"),
        ("acme.io/npu", ["npu"], "npu"),
        ("memroy", ["cpu", "memory"], "memory"),
        ("acme.io/nup", ["acme.io/npu"], "acme.io/npu"),
        ("cup", ["cpu"], "cpu"),
        # Another resource, though only a letter or a number differs.
        ("gpu", ["cpu", "memory"], ""),
        ("hugepages-2Mi", ["hugepages-1Gi"], ""),
        ("acme.io/v4", ["acme.io/v5"], ""),
        ("acme.io/link", ["cpu", "memory"], ""),
    ],
)
def test_a_resource_is_meant_if_only_its_spelling_differs(resource: str, covered: list[str], meant: str) -> None:
    assert meant_resource(resource, covered) == meant


def test_clusterqueues_that_cover_it_are_named() -> None:
    covered = {"a": ["cpu"], **{name: ["npu"] for name in "bcdef"}}
    assert coverage_hint("npu", "a", covered) == "ClusterQueues b, c, d and 2 more cover npu"
    assert coverage_hint("npus", "a", {"a": ["cpu"], "b": ["npu"]}) == (
        "no ClusterQueue covers npus; did you mean npu, which ClusterQueue b covers?"
    )
    assert coverage_hint("link", "a", covered) == ""
