"""Who is spared because the preemptor would borrow, and for whom a cycle keeps quota."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import Configuration, Engine
from kueuecore.answers import Explanation, Fate, explain
from kueuecore.answers.kept_quota import kept_for
from kueuecore.steady_state import settle
from kueuecore.times import nanoseconds
from kueuecore.world import World
from tests.topologies import kueue, namespace, pod_set, queue

NOW = "2026-01-01T01:00:00Z"
FAIR = """
{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration,
  fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare]}}
"""


def workload(name: str, on: str, cpu: int, priority: int = 0, minute: int = 0) -> dict[str, Any]:
    made = kueue("Workload", name, "ns", queueName=on, priority=priority, podSets=[pod_set(cpu=cpu)])
    made["metadata"]["creationTimestamp"] = f"2026-01-01T00:{minute:02}:00Z"
    return made


def settled(objects: list[dict[str, Any]], *later: dict[str, Any], configuration: str = "") -> Engine:
    """The objects, settled, and again after each later one."""
    engine = Engine(Configuration.parse(configuration) if configuration else None)
    World.of([namespace(), kueue("ResourceFlavor", "f"), *objects]).apply_to(engine, now=NOW)
    for entry in later:
        engine.apply([entry], now=NOW)
        settle(engine, now=NOW)
    return engine


def shared(preemption: dict[str, Any], *, own: int = 0) -> list[dict[str, Any]]:
    """Ten CPUs of a cohort, and ClusterQueues that have (almost) none of their own."""
    return [
        *queue("spare", 10, ("f",), cohortName="all"),
        *queue("a", own, ("f",), cohortName="all", preemption={"reclaimWithinCohort": "Any", **preemption}),
        *queue("b", 0, ("f",), cohortName="all"),
    ]


def fates(found: Explanation) -> dict[str, Fate]:
    return {holder.name: holder.fate for holder in found.searches[-1].holders}


def policy(**threshold: int) -> dict[str, Any]:
    return {"borrowWithinCohort": {"policy": "LowerPriority", **threshold}}


@pytest.mark.parametrize(
    ("preemption", "priority", "fate"),
    [
        (policy(maxPriorityThreshold=100), 200, Fate.THRESHOLD),
        (policy(maxPriorityThreshold=100), 900, Fate.THRESHOLD),
        (policy(), 900, Fate.THRESHOLD),
    ],
)
def test_borrowing_spares_who_is_above_the_threshold_or_no_less_important(
    preemption: dict[str, Any], priority: int, fate: Fate
) -> None:
    engine = settled(shared(preemption), workload("held", "b", 10, priority), workload("w", "a", 4, 500))
    assert fates(explain(engine, "w", namespace="ns")) == {"held": fate}


def test_without_a_policy_for_borrowers_nobody_gives_way_to_one() -> None:
    lower = {"withinClusterQueue": "LowerPriority"}
    held = [workload("mine", "a", 1, 100), workload("held", "b", 11, 200), workload("w", "a", 4, 500)]
    engine = settled(shared(lower, own=2), *held)
    assert fates(explain(engine, "w", namespace="ns")) == {"mine": Fate.WOULD_BORROW, "held": Fate.WOULD_BORROW}


def test_who_is_not_enough_stays_so_where_borrowing_is_not_why() -> None:
    # Both together would be enough; one of them is too important, whoever borrows.
    engine = settled(
        shared({"reclaimWithinCohort": "LowerPriority"}, own=6),
        workload("low", "b", 2, 100),
        workload("high", "b", 14, 900),
        workload("w", "a", 6, 500),
    )
    assert fates(explain(engine, "w", namespace="ns")) == {"low": Fate.NOT_ENOUGH, "high": Fate.PRIORITY}


def test_shares_have_verdicts_of_their_own() -> None:
    held, new = workload("held", "b", 5, 200), workload("w", "a", 6, 500)
    engine = settled(shared(policy(maxPriorityThreshold=100)), held, new, configuration=FAIR)
    assert fates(explain(engine, "w", namespace="ns")) == {"held": Fate.SHARE}


def guaranteed(reclaim: str) -> Engine:
    """The head of a StrictFIFO queue waits for quota, of which a part is free."""
    strict = {"queueingStrategy": "StrictFIFO", "preemption": {"reclaimWithinCohort": reclaim}}
    return settled(
        [*queue("own", 4, ("f",), cohortName="all", **strict), *queue("spare", 0, ("f",), cohortName="all")],
        workload("first", "own", 2, minute=1),
        workload("second", "own", 4, minute=2),
        workload("late", "spare", 2, minute=3),
    )


def test_who_keeps_quota_from_others_is_found() -> None:
    engine = guaranteed("LowerPriority")
    late = engine.workload("late", namespace="ns")
    (found,) = kept_for(engine, late, now=nanoseconds(NOW))
    assert (found[0], found[1].key) == ("own", "ns/second")
    assert engine.workload("second", namespace="ns").stage == "Pending"


def test_a_head_that_keeps_nothing_is_not_named() -> None:
    engine = settled(
        [*queue("own", 4, ("f",), cohortName="all"), *queue("other", 0, ("f",), cohortName="all")],
        workload("first", "own", 4),
        workload("second", "own", 4),
        workload("late", "other", 2),
    )
    assert kept_for(engine, engine.workload("late", namespace="ns"), now=nanoseconds(NOW)) == ()
