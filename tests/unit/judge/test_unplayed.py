"""What an older release does that the engine does not imitate is not compared, and only there."""

from typing import Any

import pytest

from kueuecore.releases import Release
from tests.judge.comparing import parts
from tests.judge.unplayed import unplayed


def run(count: int, *flavors: str, passes: bool = False) -> dict[str, Any]:
    slices = [{"domainCount": 1, "podCounts": {"universal": count}}] if count else []
    pods = {
        "name": "main",
        "flavors": dict.fromkeys(flavors, "f"),
        "topologyAssignment": {"levels": ["l"], "slices": slices},
    }
    cycle = {"n": 1, "admitted": [{"key": "ns/w", "podSets": [pods]}], "assigned": [{"key": "ns/w", "podSets": [pods]}]}
    return {"cycles": [cycle if passes else {**cycle, "assigned": []}], "final": {}}


def ends_with(resource: str, used: str) -> dict[str, Any]:
    return {"cycles": [], "final": {"usage": {"q": {"f": {resource: used}}}}}


@pytest.mark.parametrize(
    ("release", "played", "word"),
    [
        ("0.17.0", run(1, "cpu", "memory", passes=True), "second pass"),
        ("0.17.0", run(1, "cpu", "memory"), ""),
        ("0.17.0", run(1, "cpu", passes=True), ""),
        ("0.17.3", run(1, "cpu", "memory", passes=True), ""),
        ("0.17.0", run(-1, "cpu"), "negative"),
        ("0.17.3", run(-1, "cpu"), ""),
        ("0.17.0", run(0, "cpu"), "no pods"),
        ("0.17.1", run(0, "cpu"), ""),
        ("0.19.2", ends_with("cpu", "9223372036854775807m"), "2^63-1"),
        ("0.19.2", ends_with("gpu", "9223372036854775807"), "2^63-1"),
        ("0.19.2", ends_with("gpu", "9223372036854775806"), ""),
        ("0.19.2", {"cycles": [], "final": {"cohortUsage": {"c": {"f": {"gpu": "2"}}}}}, "2^63-1"),
    ],
)
def test_a_run_that_is_not_compared(release: str, played: dict[str, Any], word: str) -> None:
    why = unplayed(Release.named(release), [parts(played)])
    assert bool(why) == bool(word)
    assert word in why


@pytest.mark.parametrize(("release", "is_left_out"), [("0.17.0", True), ("0.17.1", False)])
def test_pods_of_which_there_are_none(release: str, is_left_out: bool) -> None:
    pods = {"name": "main", "count": 0, "flavors": {"cpu": "f"}}
    admits = {"cycles": [{"n": 1, "admitted": [{"key": "ns/w", "podSets": [pods]}]}], "final": {}}
    waits: dict[str, Any] = {"cycles": [{"n": 1, "inadmissible": ["ns/w"]}], "final": {}}
    assert bool(unplayed(Release.named(release), [parts(waits), parts(admits)])) == is_left_out
    assert not unplayed(Release.named(release), [parts(admits), parts(admits)])
