"""Provisioning in virtual time: requests are created, somebody makes capacity of them, and checks follow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at, texts_at
from kueuecore._quantities import number
from kueuecore.checks import Activity, CheckController, ObjectWrite, ObjectWriteKind, Review, WorkloadKey
from kueuecore.decisions import Event
from kueuecore.errors import ObjectRef
from kueuecore.manifests import object_ref
from kueuecore.provisioning.capacity import CapacityProvider, CapacityRequest, CapacityState, RequestedPodSet
from kueuecore.provisioning.controller import ProvisioningController
from kueuecore.provisioning.requests import KIND, RequestCondition
from kueuecore.times import format_time

__all__ = ["RequestStep", "VirtualProvisioning"]

_MOST_REVIEWS = 100
_DECIDED = frozenset({RequestCondition.PROVISIONED, RequestCondition.FAILED})


@dataclass(frozen=True, slots=True)
class RequestStep:
    """One moment in the life of a ProvisioningRequest.

    Args:
        time: When, in nanoseconds since 1970.
        name: `namespace/name` of the request.
        what: `Created`, `Deleted`, or the condition that holds from then on.
        message: What the condition says.
    """

    time: int
    name: str
    what: str
    message: str = ""


class VirtualProvisioning(CheckController):
    """A `ProvisioningController` with an API server for its requests, and somebody who makes capacity of them.

    Args:
        capacity: Who makes capacity.
        controller: Who asks for it; by default one as Kueue has it.

    Example:
        >>> from kueuecore.provisioning import ScriptedCapacity
        >>> VirtualProvisioning(ScriptedCapacity()).controller_name
        'kueue.x-k8s.io/provisioning-request'
    """

    def __init__(self, capacity: CapacityProvider, *, controller: ProvisioningController | None = None) -> None:
        self._controller = controller or ProvisioningController()
        self._capacity = capacity
        # By namespace and name, in the order in which they were created.
        self._requests: dict[ObjectRef, CapacityRequest] = {}
        self._manifests: dict[ObjectRef, JsonObject] = {}
        self._templates: dict[ObjectRef, JsonObject] = {}
        self._wakes: dict[ObjectRef, int] = {}
        self._used: set[WorkloadKey] = set()
        self._waiting: set[ObjectRef] = set()
        # Stock has come free, so that all are looked at that wait for some.
        self._is_free = False
        self._steps: list[RequestStep] = []

    @property
    def controller_name(self) -> str:
        """`spec.controllerName` of the AdmissionChecks for which capacity is asked for."""
        return self._controller.controller_name

    @property
    def kinds(self) -> Mapping[str, tuple[str, str]]:
        """Configs and flavors; requests are its own."""
        return {kind: it for kind, it in self._controller.kinds.items() if kind != KIND}

    @property
    def steps(self) -> tuple[RequestStep, ...]:
        """What became of the requests, in order of time."""
        return tuple(self._steps)

    @property
    def requests(self) -> tuple[JsonObject, ...]:
        """The ProvisioningRequests that are there, with their statuses, in the order in which they were created."""
        return tuple(self._manifests[ref] for ref in self._requests)

    def observe(self, manifest: JsonObject, *, now: int) -> Collection[WorkloadKey]:
        """As the controller."""
        return self._controller.observe(manifest, now=now)

    def forget(self, deleted: ObjectRef, *, now: int) -> Collection[WorkloadKey]:
        """As the controller; the requests of a Workload go with it."""
        if deleted.kind == "Workload":
            key = (deleted.namespace, deleted.name)
            self._used.discard(key)
            for ref in [ref for ref, request in self._requests.items() if request.workload == key]:
                self._delete(ref, now)
        return self._controller.forget(deleted, now=now)

    def activity(self, check: JsonObject, *, now: int) -> Activity | None:
        """As the controller."""
        return self._controller.activity(check, now=now)

    def review(self, workload: JsonObject, checks: Sequence[str], *, now: int) -> Review:
        """As the controller, whose writes are carried out."""
        ref = object_ref(workload)
        self._note_use((ref.namespace, ref.name), workload)
        events: list[Event] = []
        for _ in range(_MOST_REVIEWS):
            review = self._controller.review(workload, checks, now=now)
            events += review.events
            for write in review.writes:
                self._carry_out(write, now)
            if review.answers or not review.writes:
                return Review(answers=review.answers, events=tuple(events))
        raise RuntimeError(f"requests of {ref} come and go without an end")

    def next_wake(self, *, after: int) -> int | None:
        """When something becomes of a request."""
        times = (self._controller.next_wake(after=after), *self._wakes.values())
        return min((time for time in times if time is not None and time > after), default=None)

    def due(self, now: int) -> Collection[WorkloadKey]:
        """The workloads of the requests of which something has become."""
        found: dict[WorkloadKey, None] = dict.fromkeys(self._controller.due(now))
        while self._is_free or any(time <= now for time in self._wakes.values()):
            is_due = {ref for ref, at in self._wakes.items() if at <= now} | (self._waiting if self._is_free else set())
            self._is_free = False
            for ref in [ref for ref in self._requests if ref in is_due]:
                found |= dict.fromkeys(self._look(ref, now))
        return tuple(found)

    def _note_use(self, key: WorkloadKey, workload: JsonObject) -> None:
        conditions = list_at(workload, "status", "conditions")
        held = {text_at(it, "type") for it in conditions if text_at(it, "status") == "True"}
        is_used = "Admitted" in held and not held & {"Evicted", "Finished"}
        if is_used != (key in self._used):
            (self._used.add if is_used else self._used.discard)(key)
            # Bookings may no longer expire.
            self._wakes |= {ref: 0 for ref, request in self._requests.items() if request.workload == key}

    def _carry_out(self, write: ObjectWrite, now: int) -> None:
        ref = write.object
        if write.kind is ObjectWriteKind.DELETE:
            self._templates.pop(ref, None)
            if ref in self._requests:
                self._delete(ref, now)
                self._controller.forget(ref, now=now)
        elif ref.kind == KIND:
            metadata = {**object_at(write.manifest, "metadata"), "creationTimestamp": format_time(now)}
            self._manifests[ref] = {**write.manifest, "metadata": metadata}
            self._requests[ref] = self._request_of(write, now)
            self._steps.append(RequestStep(now, ref.key, "Created"))
            self._look(ref, now)
        else:
            self._templates[ref] = write.manifest

    def _delete(self, ref: ObjectRef, now: int) -> None:
        self._capacity.release(self._requests.pop(ref), now=now)
        del self._manifests[ref]
        self._wakes.pop(ref, None)
        self._waiting.discard(ref)
        self._is_free = True
        self._steps.append(RequestStep(now, ref.key, "Deleted"))

    def _request_of(self, write: ObjectWrite, now: int) -> CapacityRequest:
        manifest, namespace = write.manifest, write.object.namespace
        pod_sets = []
        for pods in list_at(manifest, "spec", "podSets"):
            template = self._templates[ObjectRef("PodTemplate", text_at(pods, "podTemplateRef", "name"), namespace)]
            spec = object_at(template, "template", "spec")
            selector = texts_at(spec, "nodeSelector")
            pod_sets.append(RequestedPodSet(int_at(pods, "count"), _amounts(spec), selector))
        return CapacityRequest(
            namespace,
            write.object.name,
            text_at(manifest, "spec", "provisioningClassName"),
            texts_at(manifest, "spec", "parameters"),
            tuple(pod_sets),
            write.workload,
            now,
        )

    def _look(self, ref: ObjectRef, now: int) -> Collection[WorkloadKey]:
        """See how it stands with a request, and tell the controller if that has changed."""
        request, old = self._requests[ref], self._manifests[ref]
        self._wakes.pop(ref, None)
        state = self._capacity.look(request, is_used=request.workload in self._used, now=now)
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
            return ()
        held = _held(old)
        new = self._manifests[ref] = {**old, "status": status}
        for kind, message in _held(new).items():
            if kind not in held:
                self._steps.append(RequestStep(now, ref.key, kind, message))
                # What an order gives up, others may get.
                self._is_free |= kind not in (RequestCondition.ACCEPTED, RequestCondition.PROVISIONED)
        return self._controller.observe(new, now=now)


def _held(request: JsonObject) -> dict[str, str]:
    conditions = list_at(request, "status", "conditions")
    return {text_at(it, "type"): text_at(it, "message") for it in conditions if text_at(it, "status") == "True"}


def _status(old: JsonObject, state: CapacityState, now: str) -> JsonObject:
    """A status that says what a state says; conditions keep the time since which they hold."""
    said = [(str(kind), "True", message) for kind, message in state.conditions.items()]
    if state.expected is not None and RequestCondition.PROVISIONED not in state.conditions:
        said.append((RequestCondition.PROVISIONED, "False", state.expected))
    since = {(text_at(it, "type"), text_at(it, "status")): it for it in list_at(old, "conditions")}
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
    """What a pod requests: its containers together, or the greediest of those before them."""
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
