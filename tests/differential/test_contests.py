"""Where many contend at once the engine decides as the reference does, in worlds that have the shapes they are for."""

from __future__ import annotations

import pytest

from kueuecore.testing import shown
from kueuecore.testing.drawn_contests import Contest, random_contest
from kueuecore.trials.comparison import compare
from kueuecore.trials.shapes import noted_shapes
from kueuecore.trials.shares import Shares

N_WORLDS = 100
# In what share of the worlds a shape is met at least. They follow from fixed seeds, so a share less is a generator
# that draws something else, or a reference that no longer gets there.
LEAST: dict[Contest, dict[str, float]] = {
    Contest.BRANCHES: {
        "6 heads in a cycle": 0.4,
        "fair sharing, 3 heads, 4 levels": 0.2,
        "fair sharing, 3 heads, 5 levels": 0.2,
        "fair sharing, 3 heads, deep, a weight of 0": 0.3,
        "fair sharing, deep, decisions on several branches": 0.3,
        "fair sharing, deep, decisions on several branches, a preemption": 0.1,
        "fair sharing, deep, decisions on several branches, huge amounts": 0.05,
    },
    Contest.FLAVORS: {
        "5 flavors in a group": 0.4,
        "3 flavors for a workload": 0.3,
        "targets on several flavors": 0.4,
        "preemption on several flavors, whenCanPreempt TryNextFlavor": 0.2,
        "preemption on several flavors, whenCanPreempt MayStopSearch": 0.01,
        "preemption on several flavors, huge amounts": 0.02,
        "two flavors contested by two heads": 0.06,
    },
    Contest.POOL: {
        "several heads preempt many": 0.04,
        "recomputed: new_targets": 0.2,
        "recomputed: deferred_fit": 0.05,
        "overlapping targets, recomputation on": 0.2,
        "overlapping targets, recomputation off": 0.05,
        "overlapping targets, 3 preemptors": 0.1,
        "overlapping targets, an admission between": 0.05,
        "overlapping targets, a slice": 0.1,
        "overlapping targets, fewer pods": 0.02,
        "overlapping targets, lending limits on 2 levels": 0.08,
        "overlapping targets, borrowing limits on 2 levels": 0.08,
        "overlapping targets, huge amounts": 0.03,
    },
    Contest.CROWD: {
        "many candidates suffice": 0.2,
        "many candidates do not suffice": 0.15,
        "many candidates, shared fairly, suffice": 0.08,
        "many candidates, shared fairly, do not suffice": 0.06,
        "many candidates of several ClusterQueues suffice": 0.06,
        "many candidates of several ClusterQueues do not suffice": 0.04,
        "many candidates, some evicted": 0.15,
        "many candidates, some of equal priority": 0.05,
        "many candidates below a threshold": 0.03,
        "many candidates, huge amounts": 0.05,
        "many targets of one search": 0.15,
    },
}


@pytest.mark.parametrize("kind", Contest)
def test_contests(kind: Contest) -> None:
    shares = Shares()
    for seed in range(1, N_WORLDS + 1):
        history = random_contest(seed, kind)
        with shown(history), noted_shapes() as seen:
            compare(history)
        shares.add(seen)
    rare = {what: shares.of(what) for what, least in LEAST[kind].items() if shares.of(what) < least}
    assert not rare, f"{rare} of\n{shares}"
