"""Orders for a finite stock: they wait, are given up, expire, and are bound until somebody releases them."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest

from kueuecore.provisioning import (
    CapacityOutcome,
    CapacityRequest,
    CapacityState,
    QueuedCapacity,
    RequestCondition,
    RequestedPodSet,
    ScriptedCapacity,
    Stock,
)
from kueuecore.times import SECOND_NS

REGION = "topology.kubernetes.io/region"


def order(name: str, gpus: int = 4, *, region: str = "tokyo", at: int = 0, **parameters: str) -> CapacityRequest:
    pods = RequestedPodSet(1, {"gpu": Fraction(gpus)}, {REGION: region} if region else {})
    return CapacityRequest("ns", name, "queued", parameters, (pods,), ("ns", name), at * SECOND_NS)


class Cloud:
    """A cloud and its clock."""

    def __init__(self, seed: int | None = None, **stocks: Stock) -> None:
        self.capacity = QueuedCapacity(stocks, seed=seed)

    def look(self, request: CapacityRequest, at: int, *, is_used: bool = False) -> CapacityState:
        return self.capacity.look(request, is_used=is_used, now=at * SECOND_NS)

    def says(self, request: CapacityRequest, at: int, *, is_used: bool = False) -> tuple[str, int | None]:
        """The last condition, and when to look again."""
        state = self.look(request, at, is_used=is_used)
        return [*state.conditions][-1].value, None if state.look_again is None else state.look_again // SECOND_NS


def test_stock_is_bound_from_the_order_to_the_release() -> None:
    cloud = Cloud(tokyo=Stock(amounts={"gpu": 6}, delay_seconds=60))
    first, second = order("a"), order("b")
    assert cloud.says(first, 0) == ("Accepted", 60)
    assert cloud.says(second, 0) == ("Accepted", None)
    assert cloud.look(second, 0).expected == "Waiting for stock in tokyo"
    assert cloud.says(first, 60) == ("Provisioned", None)
    assert cloud.capacity.free("tokyo") == {"gpu": 2}
    cloud.capacity.release(first, now=100 * SECOND_NS)
    assert cloud.says(second, 100) == ("Accepted", 160)
    assert cloud.says(second, 160) == ("Provisioned", None)


def test_who_is_first_goes_first() -> None:
    cloud = Cloud(tokyo=Stock(amounts={"gpu": 6}))
    running, large, small = order("a"), order("b", 5), order("c", 1)
    for request in (running, large, small):
        cloud.look(request, 0)
    assert cloud.look(small, 1).expected == "Waiting for stock in tokyo"
    cloud.capacity.release(large, now=2 * SECOND_NS)
    assert cloud.says(small, 2) == ("Provisioned", None)


def test_each_region_has_its_own_stock() -> None:
    cloud = Cloud(tokyo=Stock(amounts={"gpu": 4}), osaka=Stock(amounts={"gpu": 4}))
    assert cloud.says(order("a"), 0)[0] == "Provisioned"
    assert cloud.says(order("b"), 0)[0] == "Accepted"
    assert cloud.says(order("c", region="osaka"), 0)[0] == "Provisioned"
    assert cloud.look(order("c", region="osaka"), 0).details == {"region": "osaka"}
    assert cloud.says(order("d", region="kyoto"), 0) == ("Failed", None)
    assert Cloud(tokyo=Stock()).says(order("e", region=""), 0)[0] == "Provisioned", "there is no other"


def test_an_order_is_given_up_after_a_while() -> None:
    cloud = Cloud(tokyo=Stock(amounts={"gpu": 4}, patience_seconds=30))
    cloud.look(order("a"), 0)
    late = order("b", at=10)
    assert cloud.says(late, 10) == ("Accepted", 40)
    assert cloud.says(late, 40) == ("Failed", None)
    cloud.capacity.release(order("a"), now=50 * SECOND_NS)
    assert cloud.says(late, 50) == ("Failed", None), "what has failed stays so"


def test_nodes_without_pods_go() -> None:
    cloud = Cloud(tokyo=Stock(amounts={"gpu": 4}, booking_seconds=20))
    idle, used = order("a"), order("b")
    assert cloud.says(idle, 0) == ("Provisioned", 20)
    assert cloud.says(idle, 20) == ("BookingExpired", None)
    assert cloud.says(used, 20, is_used=True) == ("Provisioned", None)
    assert cloud.says(used, 99, is_used=True) == ("Provisioned", None)


def test_nodes_go_when_their_time_is_over() -> None:
    cloud = Cloud(tokyo=Stock(amounts={"gpu": 4}, delay_seconds=10))
    request = order("a", maxRunDurationSeconds="100")
    cloud.look(request, 0)
    assert cloud.says(request, 10, is_used=True) == ("Provisioned", 110)
    assert cloud.says(request, 110, is_used=True) == ("CapacityRevoked", None)
    assert cloud.capacity.free("tokyo") == {"gpu": 4}


def test_chance_follows_from_the_seed_and_the_name() -> None:
    def said(seed: int) -> list[tuple[str, int | None]]:
        cloud = Cloud(seed, tokyo=Stock(delay_seconds=(10, 100), refused=0.5))
        return [cloud.says(order(f"n{n}"), 0) for n in range(20)]

    assert said(1) == said(1) != said(2)
    cloud = Cloud(1, tokyo=Stock(delay_seconds=(10, 100), refused=0.5))
    backwards = [cloud.says(order(f"n{n}"), 0) for n in reversed(range(20))]
    assert backwards[::-1] == said(1), "whoever asks first"
    assert {cloud.says(order(f"n{n}"), 100)[0] for n in range(20)} == {"Provisioned", "Failed"}


def test_all_are_refused_if_all_are_to_be() -> None:
    cloud = Cloud(tokyo=Stock(delay_seconds=5, refused=1.0))
    assert cloud.says(order("a"), 0) == ("Accepted", 5)
    assert cloud.says(order("a"), 5) == ("Failed", None)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"amounts": {"gpu": "4x"}}, "amounts['gpu'] is '4x'; give a quantity"),
        ({"amounts": {"gpu": -1}}, "amounts['gpu'] is -1; give a quantity"),
        ({"delay_seconds": (9, 1)}, "the least delay first"),
        ({"delay_seconds": -1}, "seconds from 0 to 292 years"),
        ({"booking_seconds": float("nan")}, "seconds from 0 to 292 years"),
        ({"refused": 2}, "give a share from 0 to 1"),
    ],
)
def test_a_wrong_stock_is_refused(options: Any, error: str) -> None:
    with pytest.raises(ValueError, match=re.escape(error)):
        Stock(**options)


def test_wrong_providers_are_refused() -> None:
    wrong: Any = {"tokyo": {"gpu": 4}}
    with pytest.raises(TypeError, match="stocks\\['tokyo'\\] must be a Stock, not dict"):
        QueuedCapacity(wrong)
    with pytest.raises(TypeError, match="script\\['tokyo'\\] must hold Outcomes, not str"):
        ScriptedCapacity(wrong)
    with pytest.raises(ValueError, match="after_seconds is -1"):
        CapacityOutcome(-1, RequestCondition.FAILED)
    with pytest.raises(ValueError, match="'Broken' is not a valid RequestCondition"):
        CapacityOutcome(0, "Broken")  # type: ignore[arg-type]  # as from a file
