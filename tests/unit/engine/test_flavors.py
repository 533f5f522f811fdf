"""Which flavor a workload gets, and with how many pods."""

from typing import Any

import pytest

from kueuecore.configuration import Configuration
from kueuecore.objects import (
    FlavorFungibility,
    FlavorFungibilityPolicy,
    PodSet,
    Taint,
    TaintEffect,
)
from tests.builders import (
    at,
    cluster_queue,
    condition,
    flavor,
    quota,
    settle,
    usage,
    workload,
    world,
)


def two_flavors(**settings: Any) -> Any:
    quotas = {"first": quota(4), "second": quota(4)}
    return cluster_queue(quotas=quotas, **settings)


def test_the_next_flavor_is_taken_when_the_first_is_full() -> None:
    engine = world(
        flavor("first"), flavor("second"), two_flavors(), *(workload(f"w{i}", 3, created=i) for i in range(3))
    )
    assert settle(engine, at(5)) == ["w0", "w1"]
    assert engine.workload("w0", namespace="ns").flavors == {"main": {"cpu": "first"}}
    assert engine.workload("w1", namespace="ns").flavors == {"main": {"cpu": "second"}}
    (_, reason, message) = condition(engine, "w2", "QuotaReserved") or ("", "", "")
    assert reason == "WaitingForQuota"
    assert message == (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor first, 2 more needed, "
        "insufficient unused quota for cpu in flavor second, 2 more needed"
    )


def test_a_tainted_flavor_is_for_those_that_tolerate_it() -> None:
    tainted = flavor("first", node_taints=[Taint("spot", value="yes", effect=TaintEffect.NO_SCHEDULE)])
    engine = world(tainted, flavor("second"), two_flavors(), workload("w", 3), workload("x", 5, created=1))
    decision = engine.cycle(at(1))
    assert engine.workload("w", namespace="ns").flavors == {"main": {"cpu": "second"}}
    assert "untolerated taint {spot yes NoSchedule <nil>} in flavor first" in decision.events[0].message
    (pending,) = engine.cycle(at(2)).pending
    assert pending.reason == "ExceedsMaxQuota"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [(FlavorFungibilityPolicy.MAY_STOP_SEARCH, "first"), (FlavorFungibilityPolicy.TRY_NEXT_FLAVOR, "second")],
)
def test_fungibility_decides_between_borrowing_and_the_next_flavor(
    policy: FlavorFungibilityPolicy, expected: str
) -> None:
    engine = world(
        flavor("first"),
        flavor("second"),
        cluster_queue(
            quotas={"first": quota(1), "second": quota(4)},
            cohort="team",
            flavor_fungibility=FlavorFungibility(when_can_borrow=policy),
        ),
        cluster_queue("lender", cohort="team", quotas={"first": quota(4), "second": quota(4)}),
        workload("w", 3),
    )
    engine.cycle(at(1))
    assert engine.workload("w", namespace="ns").flavors == {"main": {"cpu": expected}}


def test_an_uncovered_resource_is_refused_by_name() -> None:
    engine = world(workload("w", pod_sets=[PodSet(requests={"cpu": 1, "example.com/gpu": 1})]))
    (pending,) = engine.cycle(at(1)).pending
    assert pending.message == (
        "couldn't assign flavors to pod set main: resource example.com/gpu unavailable in ClusterQueue"
    )
    assert pending.reason == "NoMatchingFlavor"


# Partial admission.


@pytest.mark.parametrize(("cpu", "count"), [(10, 10), (7, 7), (3, 3)])
def test_the_largest_count_that_fits_is_admitted(cpu: int, count: int) -> None:
    engine = world(cluster_queue(cpu=cpu), workload("w", 1, count=10, min_count=3))
    (admission,) = engine.cycle(at(1)).admissions
    assert (admission.pod_sets[0].count, dict(admission.pod_sets[0].resource_usage)) == (count, {"cpu": str(count)})
    assert usage(engine) == str(count)


def test_fewer_than_the_least_count_are_not_admitted() -> None:
    engine = world(cluster_queue(cpu=2), workload("w", 1, count=10, min_count=3))
    (pending,) = engine.cycle(at(1)).pending
    assert "current podset request (10) > maximum capacity (2)" in pending.message


def test_without_the_gate_the_least_count_is_dropped() -> None:
    off = Configuration.parse(
        "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, featureGates: {PartialAdmission: false}}"
    )
    engine = world(cluster_queue(cpu=7), workload("w", 1, count=10, min_count=3), configuration=off)
    assert engine.cycle(at(1)).admissions == ()
