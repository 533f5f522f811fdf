"""Providers of capacity for ProvisioningRequests in virtual time: the part of a cluster autoscaler and its cloud."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Protocol, runtime_checkable

from kueuecore._arguments import shown
from kueuecore._json import JsonObject
from kueuecore.provisioning.requests import RequestCondition
from kueuecore.times import SECOND_NS
from kueuecore.writes import WorkloadKey

__all__ = [
    "CapacityOutcome",
    "CapacityProvider",
    "CapacityRequest",
    "CapacityState",
    "CapacityWithNodes",
    "RequestedPodSet",
    "ScriptedCapacity",
]


@dataclass(frozen=True, slots=True)
class RequestedPodSet:
    """Pods of one shape in a request.

    Args:
        count: How many pods.
        amounts: What each pod requests of each resource, in whole units.
        node_selector: The labels of the nodes that they need.
    """

    count: int
    amounts: Mapping[str, Fraction]
    node_selector: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CapacityRequest:
    """A ProvisioningRequest as a provider of capacity sees it.

    Args:
        namespace: Its namespace.
        name: Its name, which ends with the number of the attempt.
        provisioning_class: Its class.
        parameters: Its parameters.
        pod_sets: The requested pods.
        workload: The workload that it is for.
        created: When it was created, in nanoseconds since 1970.
    """

    namespace: str
    name: str
    provisioning_class: str
    parameters: Mapping[str, str]
    pod_sets: tuple[RequestedPodSet, ...]
    workload: WorkloadKey
    created: int

    @property
    def amounts(self) -> dict[str, Fraction]:
        """What all pods together request of each resource, in whole units; `pods` is their number."""
        total = {"pods": Fraction(sum(pod_set.count for pod_set in self.pod_sets))}
        for pod_set in self.pod_sets:
            for resource, amount in pod_set.amounts.items():
                total[resource] = total.get(resource, Fraction(0)) + amount * pod_set.count
        return total


@dataclass(frozen=True, slots=True)
class CapacityState:
    """The state of a request.

    Args:
        conditions: The conditions that are True, each with its message. Once True, a condition stays True.
        expected: The message of its condition `Provisioned` while it is not True; `None`: no such condition.
        details: `status.provisioningClassDetails`.
        look_again: When the state next changes by time alone, in nanoseconds since 1970; `None`: never.
        nodes: The Nodes that came with it, with unique names. They are deleted when a later state leaves them out, and
            when the request is deleted.
    """

    conditions: Mapping[RequestCondition, str] = field(default_factory=dict)
    expected: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)
    look_again: int | None = None
    nodes: tuple[JsonObject, ...] = ()


@runtime_checkable
class CapacityProvider(Protocol):
    """Provides capacity. Its answers depend only on what it is asked: it has no clock or random source of its own."""

    def look(self, request: CapacityRequest, *, is_used: bool, now: int) -> CapacityState:
        """Return the state of a request.

        It is called when the request is created, when the last state said to look again, when the pods have come and,
        until the request is provisioned or has failed, after every `release`; oldest requests first.

        Args:
            request: The request.
            is_used: Whether its pods have come: its workload is admitted.
            now: The time in nanoseconds since 1970. It never goes back.
        """
        ...

    def release(self, request: CapacityRequest, *, now: int) -> None:
        """Free the capacity of a deleted request: its pods have ended, its workload was evicted, or nobody needs it."""
        ...


@dataclass(frozen=True, slots=True)
class CapacityOutcome:
    """A change in the state of a request.

    Args:
        after_seconds: Seconds from the creation of the request to the change.
        condition: The condition that becomes True.
        message: Its message.
        details: What is added to `provisioningClassDetails`.
    """

    after_seconds: float
    condition: RequestCondition
    message: str = ""
    details: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the arguments."""
        if not 0 <= self.after_seconds < 2**63 / SECOND_NS:
            raise ValueError(f"after_seconds is {shown(self.after_seconds)}; give seconds from 0 to 292 years")
        object.__setattr__(self, "condition", RequestCondition(self.condition))


_AT_ONCE = (CapacityOutcome(0, RequestCondition.PROVISIONED, "Provisioned at once"),)


class ScriptedCapacity:
    """Provides capacity according to a script.

    Args:
        script: What happens to a request: by its name, which ends with the number of the attempt, or by its class.
        otherwise: What happens to all others; by default the capacity is available at once.

    Example:
        >>> capacity = ScriptedCapacity({
        ...     "job-sample-dws-1": [CapacityOutcome(30, RequestCondition.FAILED, "out of stock")],
        ...     "queued-provisioning.gke.io": [CapacityOutcome(300, RequestCondition.PROVISIONED, "here it is")],
        ... })
        >>> request = CapacityRequest("ns", "job-sample-dws-1", "queued-provisioning.gke.io", {}, (), ("ns", "w"), 0)
        >>> capacity.look(request, is_used=False, now=30 * 10**9).conditions
        {<RequestCondition.FAILED: 'Failed'>: 'out of stock'}
    """

    def __init__(
        self,
        script: Mapping[str, Sequence[CapacityOutcome]] | None = None,
        *,
        otherwise: Sequence[CapacityOutcome] = _AT_ONCE,
    ) -> None:
        for name, outcomes in {**(script or {}), "otherwise": otherwise}.items():
            for outcome in outcomes:
                if not isinstance(outcome, CapacityOutcome):
                    raise TypeError(f"script[{shown(name)}] must hold Outcomes, not {type(outcome).__name__}")
        self._script = dict(script or {})
        self._otherwise = tuple(otherwise)

    def look(self, request: CapacityRequest, *, is_used: bool, now: int) -> CapacityState:
        """Return the state of a request according to the script up to now."""
        outcomes = self._script.get(request.name, self._script.get(request.provisioning_class, self._otherwise))
        conditions, details, look_again = dict[RequestCondition, str](), dict[str, str](), None
        for outcome in sorted(outcomes, key=lambda outcome: outcome.after_seconds):
            time = request.created + round(outcome.after_seconds * SECOND_NS)
            if time > now:
                look_again = time
                break
            conditions[outcome.condition] = outcome.message
            details |= outcome.details
        return CapacityState(conditions, None, details, look_again)

    def release(self, request: CapacityRequest, *, now: int) -> None:
        """Do nothing: no capacity was taken."""


_NODES_GONE = frozenset({RequestCondition.BOOKING_EXPIRED, RequestCondition.CAPACITY_REVOKED})


class CapacityWithNodes:
    """Adds Nodes to capacity: they exist while a request is provisioned and has lost nothing.

    Args:
        capacity: The provider of the capacity.
        nodes: Returns the Nodes of a request, as an API server has them: always the same, with unique names.

    Example:
        >>> def nodes(request):
        ...     return [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"{request.name}-1"}}]
        >>> capacity = CapacityWithNodes(ScriptedCapacity(), nodes)
        >>> request = CapacityRequest("ns", "job-dws-1", "queued-provisioning.gke.io", {}, (), ("ns", "job"), 0)
        >>> [node["metadata"]["name"] for node in capacity.look(request, is_used=False, now=0).nodes]
        ['job-dws-1-1']
    """

    def __init__(self, capacity: CapacityProvider, nodes: Callable[[CapacityRequest], Sequence[JsonObject]]) -> None:
        self._capacity = capacity
        self._nodes = nodes

    def look(self, request: CapacityRequest, *, is_used: bool, now: int) -> CapacityState:
        """Return the state of a request with its nodes."""
        state = self._capacity.look(request, is_used=is_used, now=now)
        held = state.conditions.keys()
        if RequestCondition.PROVISIONED not in held or held & _NODES_GONE:
            return state
        return replace(state, nodes=(*state.nodes, *self._nodes(request)))

    def release(self, request: CapacityRequest, *, now: int) -> None:
        """Free the capacity of a deleted request; its nodes are deleted."""
        self._capacity.release(request, now=now)
