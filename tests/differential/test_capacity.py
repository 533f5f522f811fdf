"""What the engine says that nodes have free is what the reference counts with, and pods stand where it says."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping

from kueuecore.testing import shown
from kueuecore.testing.drawn_topologies import random_topology
from kueuecore.testing.invariants import amount
from kueuecore.topology import DomainCapacity
from kueuecore.trials.comparison import Comparison

N_WORLDS = 40
Free = Mapping[tuple[str, tuple[str, ...], str], int]


def counted(resource: str, quantity: str) -> int:
    return amount(quantity) // (1 if resource == "cpu" else 1000)


def leaves_of(rows: tuple[DomainCapacity, ...]) -> list[DomainCapacity]:
    depth = Counter({row.flavor: 0 for row in rows})
    for row in rows:
        depth[row.flavor] = max(depth[row.flavor], len(row.path))
    return [row for row in rows if len(row.path) == depth[row.flavor]]


def free_of_reference(comparison: Comparison) -> Free:
    # A snapshot notes which ClusterQueues are active, and nothing is to change.
    snapshot = copy.deepcopy(comparison.world).snapshot()
    return {
        (flavor, leaf.path, resource): free
        for flavor, nodes in snapshot.topologies.items()
        for name, leaf in nodes.named.items()
        for resource, free in nodes.remaining(name).items()
    }


def check_capacity(comparison: Comparison) -> bool:
    """Returns whether there is any."""
    rows = comparison.play.engine.domain_capacity()
    leaves = leaves_of(rows)
    of_engine = {(leaf.flavor, leaf.path, leaf.resource): counted(leaf.resource, leaf.free) for leaf in leaves}
    of_reference = free_of_reference(comparison)
    # Where a resource is missing, one of the two may have a zero, and nothing fits what is used.
    shared = of_engine.keys() & {key for key, _ in of_reference.items()}
    assert {key: of_engine[key] for key in shared} == {key: of_reference[key] for key in shared}
    assert {key: n for key, n in of_engine.items() if n and key not in shared} == {}
    for row in rows:
        below = [leaf for leaf in leaves if leaf.flavor == row.flavor and leaf.path[: len(row.path)] == row.path]
        same = [leaf for leaf in below if leaf.resource == row.resource]
        for field in ("allocatable", "outside", "used", "free"):
            total = sum(amount(getattr(leaf, field)) for leaf in same)
            assert amount(getattr(row, field)) == total, (row, field)
        assert row.n_nodes == sum(leaf.n_nodes for leaf in same)
        assert amount(row.allocatable) == amount(row.outside) + amount(row.used) + amount(row.free)
    return bool(of_engine)


def test_capacity_is_what_the_reference_counts_with() -> None:
    n_checked = n_placed = 0
    for seed in range(1, N_WORLDS + 1):
        history = random_topology(seed)
        comparison = Comparison(history)
        with shown(history):
            for move in history.moves:
                reported = comparison.do(move)
                # A cycle that waits has tried places that are not taken yet.
                if reported.decision is not None and reported.decision.waits_for_pods:
                    break
                n_checked += check_capacity(comparison)
                n_placed += len(comparison.play.engine.placements())
    assert n_checked > N_WORLDS
    assert n_placed > N_WORLDS
