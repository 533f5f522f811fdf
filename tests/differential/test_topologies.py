"""Pods go to nodes that fail, fill up and come back: the engine decides as the reference, and no host overflows."""

from __future__ import annotations

from kueuecore.testing import Invariants, shown
from kueuecore.testing.drawn_topologies import random_topology
from kueuecore.trials.comparison import compare
from kueuecore.trials.shares import Shares, Witness
from kueuecore.trials.topology_invariants import Places

N_WORLDS = 400
# They follow from fixed seeds, so a share less is a generator that draws something else.
LEAST = {
    "pods with a place": 0.6,
    "a required level": 0.4,
    "a host with room": 0.45,
    "slices": 0.05,
    "preemption": 0.1,
    "a lost node replaced": 0.03,
    "reservation before checks": 0.05,
    "fair sharing": 0.4,
}


def test_topologies() -> None:
    shares = Shares()
    for seed in range(1, N_WORLDS + 1):
        history = random_topology(seed)
        witness, places = Witness(history), Places(history)
        with shown(history):
            compare(history, watchers=[witness, places, Invariants(history)])
        shares.add(witness.seen | places.seen)
    rare = {what: shares.of(what) for what, least in LEAST.items() if shares.of(what) < least}
    assert not rare, f"{rare} of\n{shares}"
