"""Handles ProvisioningRequests as a cluster autoscaler does, together with a provider of capacity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at, texts_at
from kueuecore._quantities import number
from kueuecore.checks import WorkloadKey
from kueuecore.errors import ObjectRef
from kueuecore.manifests import object_ref
from kueuecore.provisioning.capacity import CapacityProvider, CapacityRequest, CapacityState, RequestedPodSet
from kueuecore.provisioning.requests import RequestCondition, workload_of
from kueuecore.times import format_time
from kueuecore.writes import Verb, Write

__all__ = ["Autoscaler", "RequestStep"]

_DECIDED = frozenset({RequestCondition.PROVISIONED, RequestCondition.FAILED})


@dataclass(frozen=True, slots=True)
class RequestStep:
    """One step in the life of a ProvisioningRequest.

    Args:
        time: When, in nanoseconds since 1970.
        name: `namespace/name` of the request.
        what: `Created`, `Deleted`, or the condition that became True.
        message: The message of the condition.
    """

    time: int
    name: str
    what: str
    message: str = ""


class Autoscaler:
    """Writes the outcomes of ProvisioningRequests into their statuses.

    Args:
        capacity: The provider of capacity.

    Example:
        >>> from kueuecore.provisioning import ScriptedCapacity
        >>> autoscaler = Autoscaler(ScriptedCapacity())
        >>> request = {"kind": "ProvisioningRequest", "metadata": {"namespace": "ns", "name": "job-dws-1"}}
        >>> autoscaler.create(request, {}, now=0)["status"]["conditions"][0]["type"]
        'Provisioned'
    """

    def __init__(self, capacity: CapacityProvider) -> None:
        self._capacity = capacity
        # By namespace and name, in order of creation.
        self._requests: dict[ObjectRef, CapacityRequest] = {}
        self._manifests: dict[ObjectRef, JsonObject] = {}
        self._wakes: dict[ObjectRef, int] = {}
        self._used: set[WorkloadKey] = set()
        self._waiting: set[ObjectRef] = set()
        # Whether stock was freed, so that all requests waiting for some are looked at.
        self._is_free = False
        # The nodes that came with each request, by name, and the writes of nodes to make.
        self._nodes: dict[ObjectRef, dict[str, JsonObject]] = {}
        self._node_writes: list[Write] = []
        self._steps: list[RequestStep] = []

    @property
    def steps(self) -> tuple[RequestStep, ...]:
        """What happened to the requests, in order of time."""
        return tuple(self._steps)

    @property
    def requests(self) -> tuple[JsonObject, ...]:
        """The existing ProvisioningRequests with their statuses, in order of creation."""
        return tuple(self._manifests.values())

    def create(self, request: JsonObject, templates: Mapping[str, JsonObject], *, now: int) -> JsonObject:
        """Take in a new request.

        Args:
            request: The ProvisioningRequest.
            templates: The PodTemplates of its namespace by name; at least its own.
            now: The time in nanoseconds since 1970.

        Returns:
            The request with its status.
        """
        ref = object_ref(request)
        self._manifests[ref] = request
        self._requests[ref] = _request_of(request, templates, now)
        self._steps.append(RequestStep(now, ref.key, "Created"))
        self._look(ref, now)
        return self._manifests[ref]

    def delete(self, request: ObjectRef, *, now: int) -> bool:
        """Remove a deleted request; return whether it existed."""
        if request not in self._requests:
            return False
        self._capacity.release(self._requests[request], now=now)
        del self._manifests[request]
        self._bring(request, ())
        del self._requests[request], self._nodes[request]
        self._wakes.pop(request, None)
        self._waiting.discard(request)
        self._is_free = True
        self._steps.append(RequestStep(now, request.key, "Deleted"))
        return True

    def note_workload(self, workload: JsonObject) -> None:
        """Take in the current version of a Workload: its pods use its capacity while it is admitted."""
        conditions = list_at(workload, "status", "conditions")
        held = {text_at(condition, "type") for condition in conditions if text_at(condition, "status") == "True"}
        ref = object_ref(workload)
        self._note_use((ref.namespace, ref.name), is_used="Admitted" in held and not held & {"Evicted", "Finished"})

    def forget_workload(self, workload: WorkloadKey, *, now: int) -> None:
        """Remove a deleted Workload and its requests."""
        self._used.discard(workload)
        for ref in [ref for ref, request in self._requests.items() if request.workload == workload]:
            self.delete(ref, now=now)

    def next_wake(self, *, after: int = -1) -> int | None:
        """Return when a request changes next; 0: at once; `None`: never."""
        times = [*self._wakes.values(), *([0] if self._is_free and self._waiting else [])]
        return min((time for time in times if time > after), default=None)

    def due(self, now: int) -> tuple[JsonObject, ...]:
        """Return the requests whose statuses have changed up to now, as of each change."""
        changed: list[JsonObject] = []
        while self._is_free or any(time <= now for time in self._wakes.values()):
            is_due = {ref for ref, at in self._wakes.items() if at <= now} | (self._waiting if self._is_free else set())
            self._is_free = False
            changed += (self._manifests[ref] for ref in list(self._requests) if ref in is_due and self._look(ref, now))
        return tuple(changed)

    def take_writes(self) -> tuple[Write, ...]:
        """Take the nodes that were created and deleted since the last call, in this order."""
        taken, self._node_writes = tuple(self._node_writes), []
        return taken

    def _bring(self, request: ObjectRef, nodes: Iterable[JsonObject]) -> None:
        """Create the nodes that came with a request, and delete its others."""
        workload = self._requests[request].workload
        before, after = self._nodes.get(request, {}), {text_at(node, "metadata", "name"): node for node in nodes}
        gone = [Write(Verb.DELETE, error, workload=workload) for name, error in before.items() if name not in after]
        new = [Write(Verb.CREATE, row, workload=workload) for name, row in after.items() if name not in before]
        self._node_writes += [*gone, *new]
        self._nodes[request] = after

    def _note_use(self, workload: WorkloadKey, *, is_used: bool) -> None:
        if is_used != (workload in self._used):
            (self._used.add if is_used else self._used.discard)(workload)
            # Bookings may no longer expire.
            self._wakes |= {ref: 0 for ref, request in self._requests.items() if request.workload == workload}

    def _look(self, ref: ObjectRef, now: int) -> bool:
        """Update a request; return whether its status has changed."""
        request, old = self._requests[ref], self._manifests[ref]
        self._wakes.pop(ref, None)
        state = self._capacity.look(request, is_used=request.workload in self._used, now=now)
        self._bring(ref, state.nodes)
        if state.look_again is not None:
            if state.look_again <= now:
                raise ValueError(f"who looks at {ref.key} again has to do so later than now")
            self._wakes[ref] = state.look_again
        if state.conditions.keys() & _DECIDED:
            self._waiting.discard(ref)
        else:
            self._waiting.add(ref)
        status = _status(object_at(old, "status"), state, format_time(now))
        if status == object_at(old, "status") and "status" in old:
            return False
        held = _held(old)
        self._manifests[ref] = {**old, "status": status}
        for kind, message in _held(self._manifests[ref]).items():
            if kind not in held:
                self._steps.append(RequestStep(now, ref.key, kind, message))
                # Others may get what an order gives up.
                self._is_free |= kind not in (RequestCondition.ACCEPTED, RequestCondition.PROVISIONED)
        return True


def _request_of(request: JsonObject, templates: Mapping[str, JsonObject], now: int) -> CapacityRequest:
    pod_sets = []
    for pods in list_at(request, "spec", "podSets"):
        spec = object_at(templates[text_at(pods, "podTemplateRef", "name")], "template", "spec")
        pod_sets.append(RequestedPodSet(int_at(pods, "count"), _amounts(spec), texts_at(spec, "nodeSelector")))
    return CapacityRequest(
        text_at(request, "metadata", "namespace"),
        text_at(request, "metadata", "name"),
        text_at(request, "spec", "provisioningClassName"),
        texts_at(request, "spec", "parameters"),
        tuple(pod_sets),
        workload_of(request),
        now,
    )


def _held(request: JsonObject) -> dict[str, str]:
    conditions = list_at(request, "status", "conditions")
    return {
        text_at(condition, "type"): text_at(condition, "message")
        for condition in conditions
        if text_at(condition, "status") == "True"
    }


def _status(old: JsonObject, state: CapacityState, now: str) -> JsonObject:
    """Return a status for a state; conditions that still hold keep their times."""
    said = [(str(kind), "True", message) for kind, message in state.conditions.items()]
    if state.expected is not None and RequestCondition.PROVISIONED not in state.conditions:
        said.append((RequestCondition.PROVISIONED, "False", state.expected))
    since = {
        (text_at(condition, "type"), text_at(condition, "status")): condition
        for condition in list_at(old, "conditions")
    }
    conditions: list[JsonValue] = [
        {
            "type": kind,
            "status": status,
            "reason": kind if status == "True" else f"Not{kind}",
            "message": message,
            "lastTransitionTime": text_at(since.get((kind, status)), "lastTransitionTime") or now,
        }
        for kind, status, message in said
    ]
    details: JsonObject = dict(state.details)
    return {"conditions": conditions, **({"provisioningClassDetails": details} if details else {})}


def _amounts(pod: JsonObject) -> dict[str, Fraction]:
    """Return what a pod requests: its containers together, or the largest init container."""
    total: dict[str, Fraction] = {}
    for requests in _requests(list_at(pod, "containers")):
        for resource, amount in requests.items():
            total[resource] = total.get(resource, Fraction(0)) + amount
    for requests in _requests(list_at(pod, "initContainers")):
        for resource, amount in requests.items():
            total[resource] = max(total.get(resource, Fraction(0)), amount)
    return total


def _requests(containers: Iterable[JsonValue]) -> Iterable[dict[str, Fraction]]:
    for container in containers:
        requests = object_at(container, "resources", "requests").items()
        yield {name: number(quantity) or Fraction(0) for name, quantity in requests}
