"""The tree of cohorts: what is lent by whom, what has no limit, and what goes to a page of its own."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette")
from kueuecore.engine import Engine
from kueuecore.manifests import parse_manifests
from kueuecore.steady_state import settle
from kueuecore.ui.node_map import flavor_maps
from kueuecore.ui.quota_tree import QuotaBar, quota_tree, walked
from tests.quota_manifests import cohort, flavor, local_queue, namespace, queue, workload
from tests.unit.ui.pages import EXAMPLES, source_at

NOW = "2026-01-01T00:00:00Z"


def settled(*texts: str) -> Engine:
    engine = Engine()
    engine.apply(parse_manifests("".join([namespace("team"), flavor(), *texts])), now=NOW)
    settle(engine, now=NOW)
    return engine


def bars(engine: Engine) -> dict[str, QuotaBar]:
    tree = quota_tree(engine.quota(), engine.cluster_queues())
    return {node.name: node.bars[0] for node, _ in walked(tree) if node.bars}


def test_what_is_borrowed_is_lent_in_proportion_to_what_is_idle() -> None:
    queues = [queue(name, f"nominalQuota: {n}", cohort="all") for name, n in (("a", 0), ("b", 5), ("c", 3))]
    found = bars(settled(*queues, local_queue("a"), workload("w", "a", 5)))
    # The example of docs/simulate.md.
    assert {name: (bar.borrowed, bar.lent, bar.free) for name, bar in found.items()} == {
        "all": ("0", "0", "3"),
        "a": ("5", "0", "0"),
        "b": ("0", "3125m", "1875m"),
        "c": ("0", "1875m", "1125m"),
    }
    assert [(bar.kind, bar.at, bar.width) for bar in found["b"].bars] == [("lent", 375, 625)]
    assert [(bar.kind, bar.at, bar.width) for bar in found["a"].bars] == [("borrowed", 0, 1000)]


def test_what_a_cohort_lends_comes_from_its_children() -> None:
    tree = [cohort("top"), cohort("left", "{parentName: top}"), cohort("right", "{parentName: top}")]
    queues = [
        queue("a", "nominalQuota: 1", cohort="left"),
        queue("b", "nominalQuota: 6, lendingLimit: 4", cohort="right"),
        queue("c", "nominalQuota: 2", cohort="right"),
    ]
    work = [local_queue("a"), local_queue("b"), workload("w", "a", 4), workload("own", "b", 1)]
    found = bars(settled(*tree, *queues, *work))
    assert found["left"].borrowed == "3"
    assert found["right"].lent == "3"
    # Of b, 2 are kept from others and 1 of them is in use: 4 are idle for others. Of c, 2.
    assert (found["b"].lent, found["c"].lent) == ("2", "1")
    assert (found["b"].free, found["c"].free) == ("3", "1")


def test_a_quota_of_a_cohort_lends_too_and_unused_bars_are_empty() -> None:
    engine = settled(
        cohort("top", quota="default 3"),
        queue("a", "nominalQuota: 0", cohort="top"),
        local_queue("a"),
        workload("w", "a", 2),
    )
    found = bars(engine)
    assert (found["top"].row.usage, found["top"].total, found["top"].free) == ("2", "3", "1")
    assert found["a"].says == "2 of 0 used, 2 borrowed, 0 lent, 0 free"
    empty = bars(settled(queue("a", "nominalQuota: 0")))["a"]
    assert (empty.bars, empty.says) == ((), "0 of 0 used, 0 borrowed, 0 lent, 0 free")


def test_a_large_tree_is_cut_below_the_first_two_levels() -> None:
    cohorts = [cohort("top"), *(cohort(f"c{n}", "{parentName: top}") for n in range(30))]
    queues = [queue(f"c{n}-q{m}", cohort=f"c{n}") for n in range(30) for m in range(20)]
    engine = settled(*cohorts, *queues)
    tree = quota_tree(engine.quota(), engine.cluster_queues())
    shown = [node for node, _ in walked(tree)]
    assert [node.name for node in shown][:2] == ["top", "c0"]
    assert len(shown) == 31
    assert all(node.is_cut for node in shown[1:])
    below = [node.name for node, _ in walked(quota_tree(engine.quota(), engine.cluster_queues(), under="c7"))]
    assert below == ["c7", *sorted(f"c7-q{m}" for m in range(20))]


def test_lists_end_as_often_as_they_begin() -> None:
    engine = settled(
        cohort("top"), cohort("in", "{parentName: top}"), queue("a", cohort="in"), queue("b"), queue("c", cohort="top")
    )
    tree = quota_tree(engine.quota(), engine.cluster_queues())
    assert [(node.name, n_ends) for node, n_ends in walked(tree)] == [
        ("top", 0),
        ("in", 0),
        ("a", 2),
        ("c", 2),
        ("b", 1),
    ]


def test_many_nodes_are_reached_through_their_racks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kueuecore.ui.node_map._MOST", 4)
    engine = source_at(str(EXAMPLES / "topology")).state().engine
    capacity, placements = engine.domain_capacity(), engine.placements()
    (whole,) = flavor_maps(capacity, placements)
    assert [(domain.name, domain.is_cut) for domain in whole.domains] == [("block-1", True), ("block-2", True)]
    (block,) = flavor_maps(capacity, placements, flavor="gpu-nodes", under=("block-1",))
    (domain,) = block.domains
    assert (domain.is_cut, [rack.is_cut for rack in domain.below]) == (False, [False, False])
    assert domain.below[0].below[0].pods == [("research/job-notebooks-ceb8e", 3)]
