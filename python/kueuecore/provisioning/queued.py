"""Simulates queued provisioning as clouds offer it, such as GKE's Dynamic Workload Scheduler: orders wait for stock."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from kueuecore._arguments import shown
from kueuecore._quantities import number
from kueuecore.provisioning.capacity import CapacityRequest, CapacityState
from kueuecore.provisioning.requests import RequestCondition
from kueuecore.times import SECOND_NS

__all__ = ["QueuedCapacity", "Stock"]

_MAX_RUN = "maxRunDurationSeconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """The stock of a region, and how it is handed out.

    Args:
        amounts: The amount of each resource, as quantities; other resources are unlimited.
        delay_seconds: How long nodes take to come once there is stock: a number, or minimum and maximum.
        refused: The share of orders that are refused, from 0 to 1; after the delay.
        patience_seconds: An order that has waited this long for stock is refused; `None`: never.
        booking_seconds: Nodes are released if no pods have come after this long; `None`: never.
    """

    amounts: Mapping[str, str | int] = field(default_factory=dict)
    delay_seconds: float | tuple[float, float] = 0.0
    refused: float = 0.0
    patience_seconds: float | None = None
    booking_seconds: float | None = None

    def __post_init__(self) -> None:
        """Check the arguments."""
        for resource, quantity in self.amounts.items():
            amount = number(quantity)
            if amount is None or amount < 0:
                raise ValueError(
                    f'amounts[{shown(resource)}] is {shown(quantity)}; give a quantity, such as 8 or "36Gi"'
                )
        low, high = self.delays
        spans = [low, high, *(entry for entry in (self.patience_seconds, self.booking_seconds) if entry is not None)]
        if not all(0 <= span < 2**63 / SECOND_NS for span in spans) or low > high:
            raise ValueError("delays, patience and booking are seconds from 0 to 292 years, the least delay first")
        if not 0 <= self.refused <= 1:
            raise ValueError(f"refused is {shown(self.refused)}; give a share from 0 to 1")

    @property
    def delays(self) -> tuple[float, float]:
        """The minimum and maximum delay, in seconds."""
        delay = self.delay_seconds
        return (delay[0], delay[1]) if isinstance(delay, tuple) else (delay, delay)


@dataclass(slots=True)
class _Order:
    """The state of an order.

    Args:
        request: The request.
        region: The region that it is for; empty: any.
        is_refused: Whether it will be refused.
        delay_ns: How long its nodes take.
        given_up: When it was given up.
        booked: When stock was bound to it.
        expired: When its nodes went, because no pods came.
        revoked: When its nodes were taken away.
        is_bound: Whether it holds stock.
    """

    request: CapacityRequest
    region: str
    is_refused: bool
    delay_ns: int
    given_up: int | None = None
    booked: int | None = None
    expired: int | None = None
    revoked: int | None = None
    is_bound: bool = False


class QueuedCapacity:
    """Queues orders until there is stock for all of their pods at once; in a region, first come, first served.

    The region of a request comes from its pods' node selectors, and so from the assigned flavors.
    Nodes stay bound until the request is deleted: when the job ends, or its workload is evicted. A request with the
    parameter `maxRunDurationSeconds` loses its nodes that long after they have come.

    Args:
        stocks: The stock by region. Orders for any other region are refused.
        region_label: The node label that names the region.
        seed: The seed of delays and refusals. Without one, an order takes the minimum delay, and is refused only if all
            are.

    Example:
        >>> from kueuecore.provisioning import RequestedPodSet
        >>> capacity = QueuedCapacity({"tokyo": Stock(amounts={"nvidia.com/gpu": 8}, delay_seconds=90)})
        >>> pods = RequestedPodSet(2, {"nvidia.com/gpu": Fraction(4)}, {"topology.kubernetes.io/region": "tokyo"})
        >>> request = CapacityRequest("ns", "job-dws-1", "queued-provisioning.gke.io", {}, (pods,), ("ns", "job"), 0)
        >>> state = capacity.look(request, is_used=False, now=0)
        >>> state.expected, state.look_again // 10**9
        ('Nodes are on their way in tokyo', 90)
        >>> list(capacity.look(request, is_used=False, now=state.look_again).conditions)
        [<RequestCondition.ACCEPTED: 'Accepted'>, <RequestCondition.PROVISIONED: 'Provisioned'>]
    """

    def __init__(
        self,
        stocks: Mapping[str, Stock],
        *,
        region_label: str = "topology.kubernetes.io/region",
        seed: int | None = None,
    ) -> None:
        for region, stock in stocks.items():
            if not isinstance(stock, Stock):
                raise TypeError(f"stocks[{shown(region)}] must be a Stock, not {type(stock).__name__}")
        self._stocks = dict(stocks)
        self._label = region_label
        self._seed = seed
        self._orders: dict[tuple[str, str], _Order] = {}

    def free(self, region: str) -> dict[str, Fraction]:
        """Return what is left of the stock of a region, in whole units."""
        left = {name: number(quantity) or Fraction(0) for name, quantity in self._stocks[region].amounts.items()}
        for order in self._orders.values():
            if order.is_bound and order.region == region:
                for resource, amount in order.request.amounts.items():
                    if resource in left:
                        left[resource] -= amount
        return left

    def look(self, request: CapacityRequest, *, is_used: bool, now: int) -> CapacityState:
        """Return the state of a request."""
        key = (request.namespace, request.name)
        order = self._orders.get(key)
        if order is None:
            order = self._orders[key] = self._ordered(request)
        stock = self._stocks.get(order.region)
        if stock is None:
            return CapacityState({RequestCondition.FAILED: f"There is no capacity in region {order.region!r}"})
        conditions = {RequestCondition.ACCEPTED: "The order is taken"}
        if order.booked is None and order.given_up is None:
            self._try(order, stock, now)
        if order.given_up is not None:
            return CapacityState({**conditions, RequestCondition.FAILED: self._refusal(order)})
        if order.booked is None:
            end = _end_of_waiting(order, stock)
            return CapacityState(conditions, f"Waiting for stock in {order.region}", {}, end)
        came = order.booked + order.delay_ns
        if came > now:
            return CapacityState(conditions, f"Nodes are on their way in {order.region}", {}, came)
        conditions[RequestCondition.PROVISIONED] = f"Nodes have come in {order.region}"
        return self._state_of_nodes(order, stock, conditions, came, is_used=is_used, now=now)

    def release(self, request: CapacityRequest, *, now: int) -> None:
        """Free the stock bound to an order, which is over."""
        self._orders.pop((request.namespace, request.name), None)

    def _ordered(self, request: CapacityRequest) -> _Order:
        region = next((it for pods in request.pod_sets if (it := pods.node_selector.get(self._label))), "")
        stock = self._stocks.get(region)
        if not region and len(self._stocks) == 1:
            region, stock = next(iter(self._stocks.items()))
        if stock is None:
            return _Order(request, region, is_refused=True, delay_ns=0)
        low, high = stock.delays
        if self._seed is None:
            return _Order(request, region, is_refused=stock.refused == 1, delay_ns=_ns(low))
        chance = random.Random(f"{self._seed}/{request.namespace}/{request.name}")
        is_refused = chance.random() < stock.refused
        # Whole seconds, like times in Kubernetes.
        return _Order(request, region, is_refused=is_refused, delay_ns=_ns(round(chance.uniform(low, high))))

    def _try(self, order: _Order, stock: Stock, now: int) -> None:
        """Bind stock to an order if there is enough, and no earlier order waits."""
        end = _end_of_waiting(order, stock)
        if end is not None and end <= now:
            order.given_up = now
        if order.is_refused or order.given_up is not None:
            return
        waiting = (other for other in self._orders.values() if other.region == order.region and other.booked is None)
        if next((order for order in waiting if order.given_up is None and not order.is_refused), order) is not order:
            return
        left = self.free(order.region)
        if all(amount <= left.get(resource, amount) for resource, amount in order.request.amounts.items()):
            order.booked, order.is_bound = now, True

    def _refusal(self, order: _Order) -> str:
        return f"The order was refused in {order.region}" if order.is_refused else f"No stock came in {order.region}"

    def _state_of_nodes(
        self,
        order: _Order,
        stock: Stock,
        conditions: dict[RequestCondition, str],
        came: int,
        *,
        is_used: bool,
        now: int,
    ) -> CapacityState:
        details, ends = {"region": order.region}, list[int]()
        if stock.booking_seconds is not None and not is_used and order.revoked is None:
            ends.append(came + _ns(stock.booking_seconds))
            if ends[-1] <= now:
                order.expired = order.expired or now
        longest = order.request.parameters.get(_MAX_RUN, "")
        if longest.isascii() and longest.isdigit() and order.expired is None:
            ends.append(came + int(longest) * SECOND_NS)
            if ends[-1] <= now:
                order.revoked = order.revoked or now
        if order.expired is not None:
            order.is_bound = False
            conditions[RequestCondition.BOOKING_EXPIRED] = f"No pods came to the nodes in {order.region}"
        if order.revoked is not None:
            order.is_bound = False
            conditions[RequestCondition.CAPACITY_REVOKED] = f"The nodes in {order.region} have had their time"
        return CapacityState(conditions, None, details, min((end for end in ends if end > now), default=None))


def _end_of_waiting(order: _Order, stock: Stock) -> int | None:
    """Return when an order without stock is given up."""
    if order.is_refused:
        return order.request.created + order.delay_ns
    return None if stock.patience_seconds is None else order.request.created + _ns(stock.patience_seconds)


def _ns(seconds: float) -> int:
    return round(seconds * SECOND_NS)
