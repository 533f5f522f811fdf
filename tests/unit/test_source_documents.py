"""What the source documents describe, line by line (docs/sources.md B to E; D7 has a file of its own)."""

from __future__ import annotations

import pytest

from kueuecore.configuration import Configuration
from kueuecore.objects import (
    BorrowWithinCohort,
    BorrowWithinCohortPolicy,
    ClusterQueuePreemption,
    Cohort,
    FlavorFungibility,
    FlavorFungibilityPolicy,
    QueueingStrategy,
    ReclaimWithinCohortPolicy,
    WithinClusterQueuePolicy,
)
from tests.quotas import (
    BORROW,
    CONFIGURATION,
    FAIR,
    HIGH,
    LOW,
    LOWER,
    NEWER,
    RECLAIM,
    RECLAIM_ANY,
    RECLAIM_LOWER,
    WITHIN,
    admitted,
    at,
    flavor_of,
    job,
    queue,
    run,
    start,
    victims,
    world,
)

# B. Queueing.


def test_best_effort_lets_the_next_be_tried_and_strict_blocks() -> None:
    """`big` needs more than there is; `small` behind it would fit."""
    for strategy, expected in [(QueueingStrategy.BEST_EFFORT_FIFO, ["small"]), (QueueingStrategy.STRICT_FIFO, [])]:
        engine = world(queue("q", {"default": "10"}, strategy=strategy))
        start(engine, job("running", "5", "q"))
        big, small = job("big", "6", "q", created=1), job("small", "5", "q", created=2)
        got = admitted(run(engine, big, small, second=2)) + admitted(engine.cycle(at(3)))
        assert got == expected, strategy


@pytest.mark.parametrize(
    ("by_priority", "winner"), [(True, "urgent"), (False, "older")], ids=["by priority", "by time alone"]
)
def test_heads_that_borrow_come_after_those_that_do_not(by_priority: bool, winner: str) -> None:
    """Three heads in one cohort, and 4 of 12 CPUs to be had beyond the own quota of `modest`.

    modest  |....|  <- mmmm       within its quota, lowest priority and last to come: first
    keen    ||      <- uuuu       borrows, high priority
    patient ||      <- oooo       borrows, low priority, but older
    spare   |....|
    """
    gates = {"PrioritySortingWithinCohort": by_priority}
    engine = world(
        queue("modest", {"default": "4"}, cohort="c"),
        queue("keen", {"default": "0"}, cohort="c"),
        queue("patient", {"default": "0"}, cohort="c"),
        queue("spare", {"default": "4"}, cohort="c"),
        configuration=Configuration.parse(CONFIGURATION, feature_gates=gates),
    )
    decision = run(
        engine,
        job("modest-job", "4", "modest", priority=-1, created=3),
        job("urgent", "4", "keen", priority=HIGH, created=2),
        job("older", "4", "patient", priority=LOW, created=1),
        second=4,
    )
    assert admitted(decision) == ["modest-job", winner]


def test_what_is_pending_where_and_why_can_be_seen() -> None:
    engine = world(queue("q", {"default": "1"}))
    run(engine, job("b", "2", "q", created=2), job("a", "3", "q", created=1), second=3)
    waiting = engine.pending("q")
    assert [(w.name, w.position_in_cluster_queue, w.place) for w in waiting] == [
        ("a", 0, "inadmissible"),
        ("b", 1, "active"),
    ]
    assert engine.workload("a", namespace="ns").message == (
        "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, "
        "previously considered podsets requests (0) + current podset request (3) > maximum capacity (1)"
    )


# C. Cohorts.


def test_unused_quota_is_lent_and_only_in_flavors_that_the_borrower_has() -> None:
    """`spot` of the lender is of no use to a queue that has no such flavor."""
    engine = world(
        queue("borrower", {"default": "2"}, cohort="c"),
        queue("lender", {"default": "3", "spot": "10"}, cohort="c"),
    )
    decision = run(engine, job("fits", "5", "borrower"), second=1)
    assert admitted(decision) == ["fits"]
    assert flavor_of(engine, "fits") == "default"
    assert admitted(run(engine, job("too-much", "1", "borrower"), second=2)) == []


def test_a_workload_takes_a_resource_from_one_flavor() -> None:
    """3 and 3 make 6, but not for one pod set."""
    engine = world(queue("q", {"on-demand": "3", "spot": "3"}))
    assert admitted(run(engine, job("split", "4", "q"), second=1)) == []


def test_limits_cap_what_is_borrowed_and_what_is_lent() -> None:
    """The lender has 10 and keeps 6; the borrower may take 2 beyond its own 2."""
    lender = queue("lender", {"default": "10"}, cohort="c", lending="4")
    for borrowing, most in [("2", 4), (None, 6)]:
        borrower = queue("borrower", {"default": "2"}, cohort="c", borrowing=borrowing)
        for cpu in (most, most + 1):
            engine = world(borrower, lender)
            decision = run(engine, job("one", str(cpu), "borrower"), second=1)
            assert admitted(decision) == (["one"] if cpu == most else [])


def test_quota_is_found_across_a_tree_of_cohorts() -> None:
    """A queue below `left` uses what a queue below `right` does not."""
    engine = world(
        Cohort("root"),
        Cohort("left", parent_name="root"),
        Cohort("right", parent_name="root"),
        queue("near", {"default": "1"}, cohort="left"),
        queue("far", {"default": "3"}, cohort="right"),
    )
    assert admitted(run(engine, job("one", "4", "near"), second=1)) == ["one"]


def test_a_queue_without_quota_borrows_from_its_cohort() -> None:
    """The quotas of worker clusters are held by siblings; the queue of the users has none, and takes them all.

    users     ||  <- 8 of 5 + 3
    worker-1  |.....|
    worker-2  |...|
    """
    engine = world(
        queue("users", {"default": "0"}, cohort="c"),
        queue("worker-1", {"default": "5"}, cohort="c"),
        queue("worker-2", {"default": "3"}, cohort="c"),
    )
    assert admitted(run(engine, job("all", "8", "users"), second=1)) == ["all"]
    assert admitted(run(engine, job("more", "1", "users"), second=2)) == []


# D. Preemption.


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (WithinClusterQueuePolicy.NEVER, []),
        (LOWER, ["lower"]),
        (NEWER, ["lower", "newer"]),
    ],
)
def test_within_cluster_queue(policy: WithinClusterQueuePolicy, expected: list[str]) -> None:
    """The queue is full; `older` and `newer` have the priority of the one that comes, `lower` has a lower one.

    q |lower|older|newer|  <- arriving, created between older and newer
    """
    for n_cpus in range(1, 4):
        engine = world(queue("q", {"default": "3"}, preemption=ClusterQueuePreemption(within_cluster_queue=policy)))
        start(
            engine,
            job("lower", "1", "q", priority=LOW, created=1),
            job("older", "1", "q", priority=HIGH, created=1),
            job("newer", "1", "q", priority=HIGH, created=5),
            first=6,
        )
        arriving = job("arriving", str(n_cpus), "q", priority=HIGH, created=3)
        found = victims(run(engine, arriving, second=10))
        assert sorted(found) == (expected[:n_cpus] if n_cpus <= len(expected) else [])
        assert set(found.values()) <= {"InClusterQueue"}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [(ReclaimWithinCohortPolicy.NEVER, []), (RECLAIM_LOWER, ["low"]), (RECLAIM_ANY, ["high", "low"])],
)
def test_reclaim_within_cohort(policy: ReclaimWithinCohortPolicy, expected: list[str]) -> None:
    """Both jobs of the other queue live on quota that is lent.

    owner    |..|    <- arriving, of middling priority
    borrower ||lh
    """
    for n_cpus in (1, 2):
        engine = world(
            queue(
                "owner", {"default": "2"}, cohort="c", preemption=ClusterQueuePreemption(reclaim_within_cohort=policy)
            ),
            queue("borrower", {"default": "0"}, cohort="c"),
        )
        start(engine, job("high", "1", "borrower", priority=HIGH), job("low", "1", "borrower", priority=LOW))
        found = victims(run(engine, job("arriving", str(n_cpus), "owner", priority=50), second=5))
        if n_cpus == 1:
            assert sorted(found) == [name for name in expected if name == "low"]
        else:
            assert sorted(found) == (expected if len(expected) == 2 else [])
        assert set(found.values()) <= {"InCohortReclamation"}


@pytest.mark.parametrize(("threshold", "victim"), [(None, "victim"), (10, "victim"), (9, None)])
def test_borrow_within_cohort_up_to_a_threshold(threshold: int | None, victim: str | None) -> None:
    """The one that comes needs 3 of a quota of 2, so it borrows; the victim has priority 10.

    owner    |..|  <- 3 CPUs
    borrower |v|vv
    """
    borrow = BorrowWithinCohort(BorrowWithinCohortPolicy.LOWER_PRIORITY, max_priority_threshold=threshold)
    policy = ClusterQueuePreemption(reclaim_within_cohort=RECLAIM_ANY, borrow_within_cohort=borrow)
    engine = world(
        queue("owner", {"default": "2"}, cohort="c", preemption=policy),
        queue("borrower", {"default": "1"}, cohort="c"),
    )
    start(engine, job("victim", "3", "borrower", priority=10))
    found = victims(run(engine, job("arriving", "3", "owner", priority=HIGH), second=2))
    assert found == ({victim: "InCohortReclaimWhileBorrowing"} if victim else {})


def test_others_first_then_the_lowest_priority_then_the_most_recent() -> None:
    """Every CPU more takes one victim more, in this order.

    owner    |ab.... |  <- arriving
    borrower ||low, mid, mid-newer
    """
    policy = ClusterQueuePreemption(reclaim_within_cohort=RECLAIM_ANY, within_cluster_queue=LOWER)
    order = ["low", "mid-newer", "mid", "own-low", "own-mid"]
    for n_cpus in range(1, 6):
        engine = world(
            queue("owner", {"default": "5"}, cohort="c", preemption=policy),
            queue("borrower", {"default": "0"}, cohort="c"),
        )
        start(
            engine,
            job("own-low", "1", "owner", priority=1),
            job("own-mid", "1", "owner", priority=20),
            job("low", "1", "borrower", priority=2),
            job("mid", "1", "borrower", priority=20),
            job("mid-newer", "1", "borrower", priority=20),
        )
        found = victims(run(engine, job("arriving", str(n_cpus), "owner", priority=HIGH), second=9))
        assert sorted(found) == sorted(order[:n_cpus]), n_cpus


def test_as_few_victims_as_possible() -> None:
    """The small ones come first in the order, but the big one that is needed anyway makes them unnecessary.

    q |small small BIG|  <- arriving, as large as BIG
    """
    engine = world(queue("q", {"default": "6"}, preemption=WITHIN))
    start(
        engine,
        job("small-1", "1", "q", priority=1),
        job("small-2", "1", "q", priority=2),
        job("big", "4", "q", priority=3),
    )
    assert victims(run(engine, job("arriving", "4", "q", priority=HIGH), second=5)) == {"big": "InClusterQueue"}


@pytest.mark.parametrize(
    ("cpu", "policy", "reason"),
    [
        ("2", RECLAIM, "InCohortReclamation"),  # within nominal quota
        ("3", RECLAIM, None),  # beyond it
        ("3", BORROW, "InCohortReclaimWhileBorrowing"),  # beyond it, with borrowWithinCohort
    ],
)
def test_when_classical_preemption_happens(cpu: str, policy: ClusterQueuePreemption, reason: str | None) -> None:
    engine = world(
        queue("owner", {"default": "2"}, cohort="c", preemption=policy),
        queue("borrower", {"default": "1"}, cohort="c"),
    )
    start(engine, job("victim", "3", "borrower"))
    found = victims(run(engine, job("arriving", cpu, "owner", priority=HIGH), second=2))
    assert found == ({"victim": reason} if reason else {})


def test_fair_sharing_evens_out_the_shares() -> None:
    """`left` has borrowed all 6 of `spare`; `right` gets 2 of them by shares, whatever the priorities, and not 4.

    left   ||aabbcc
    right  ||        <- 2, then 2 more
    spare  |......|
    """
    engine = world(
        queue(
            "left", {"default": "0"}, cohort="c", preemption=ClusterQueuePreemption(reclaim_within_cohort=RECLAIM_ANY)
        ),
        queue(
            "right", {"default": "0"}, cohort="c", preemption=ClusterQueuePreemption(reclaim_within_cohort=RECLAIM_ANY)
        ),
        queue("spare", {"default": "6"}, cohort="c"),
        configuration=Configuration.parse(FAIR),
    )
    start(engine, *(job(name, "2", "left", priority=HIGH) for name in "abc"))
    assert victims(run(engine, job("first", "2", "right", priority=LOW), second=5)) == {"c": "InCohortFairSharing"}
    engine.release("c", namespace="ns", now=at(6))
    assert admitted(engine.cycle(at(7))) == ["first"]
    # 4 for one and 2 for the other would only change places.
    engine.delete("Workload", "c", namespace="ns", now=at(8))
    assert victims(run(engine, job("second", "2", "right", priority=LOW), second=9)) == {}


# E. Flavor fungibility.


@pytest.mark.parametrize(
    ("policy", "flavor"),
    [(FlavorFungibilityPolicy.MAY_STOP_SEARCH, "on-demand"), (FlavorFungibilityPolicy.TRY_NEXT_FLAVOR, "spot")],
)
def test_when_can_borrow(policy: FlavorFungibilityPolicy, flavor: str) -> None:
    """The first flavor is to be had by borrowing, the second without."""
    engine = world(
        queue(
            "q",
            {"on-demand": "1", "spot": "2"},
            cohort="c",
            fungibility=FlavorFungibility(when_can_borrow=policy),
        ),
        queue("lender", {"on-demand": "1", "spot": "0"}, cohort="c"),
    )
    start(engine, job("one", "2", "q"))
    assert flavor_of(engine, "one") == flavor


@pytest.mark.parametrize(
    ("policy", "expected"),
    [(FlavorFungibilityPolicy.TRY_NEXT_FLAVOR, None), (FlavorFungibilityPolicy.MAY_STOP_SEARCH, "running")],
)
def test_when_can_preempt(policy: FlavorFungibilityPolicy, expected: str | None) -> None:
    """The first flavor is to be had by preemption, the second is free."""
    engine = world(
        queue(
            "q",
            {"on-demand": "2", "spot": "2"},
            preemption=WITHIN,
            fungibility=FlavorFungibility(when_can_preempt=policy),
        )
    )
    start(engine, job("running", "2", "q", priority=LOW))
    decision = run(engine, job("arriving", "2", "q", priority=HIGH), second=2)
    assert [*victims(decision)] == ([expected] if expected else [])
    if expected is None:
        assert flavor_of(engine, "arriving") == "spot"


def test_the_old_names_are_read() -> None:
    """An article of 2024 writes Borrow and Preempt; the words of today are MayStopSearch.

    These are of v1beta1, which Kueue 0.19 is the last to serve.
    """
    engine = world(
        queue("lender", {"on-demand": "1", "spot": "0"}, cohort="c"),
        queue("q", {})[1],
        configuration=Configuration(release="0.19"),
    )
    engine.apply(
        """
        apiVersion: kueue.x-k8s.io/v1beta1
        kind: ClusterQueue
        metadata: {name: q}
        spec:
          cohort: c
          namespaceSelector: {}
          flavorFungibility: {whenCanBorrow: Borrow, whenCanPreempt: Preempt}
          resourceGroups:
          - coveredResources: [cpu]
            flavors:
            - {name: on-demand, resources: [{name: cpu, nominalQuota: 1}]}
            - {name: spot, resources: [{name: cpu, nominalQuota: 2}]}
        """,
        now=at(0),
    )
    start(engine, job("one", "2", "q"))
    assert flavor_of(engine, "one") == "on-demand"


def test_why_a_flavor_was_passed_over_can_be_seen() -> None:
    """The reservation message lists the flavors considered, and why the first was not taken."""
    engine = world(queue("q", {"on-demand": "1", "spot": "2"}))
    decision = run(engine, job("one", "2", "q"), second=1)
    (reported,) = [event.message for event in decision.events if event.reason == "QuotaReserved"]
    assert "Flavors considered: " in reported
    assert "on-demand" in reported
