"""Simulates provisioning in virtual time: requests are created and answered, and checks follow."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kueuecore._json import JsonObject, object_at
from kueuecore.checks import Activity, CheckController, Review, WorkloadKey
from kueuecore.decisions import Event
from kueuecore.errors import ObjectRef
from kueuecore.manifests import object_ref
from kueuecore.provisioning.autoscaler import Autoscaler, RequestStep
from kueuecore.provisioning.capacity import CapacityProvider
from kueuecore.provisioning.controller import ProvisioningController
from kueuecore.provisioning.requests import KIND
from kueuecore.times import format_time
from kueuecore.writes import Verb, Write

__all__ = ["VirtualProvisioning"]

_MAX_REVIEWS = 100


class VirtualProvisioning(CheckController):
    """Combines a `ProvisioningController` with an API server for its requests and a provider of capacity.

    Nodes that come with the capacity (`CapacityWithNodes`) belong to the cluster until the capacity is released.

    Args:
        capacity: The provider of capacity.
        controller: The controller that requests it; by default one like Kueue's.

    Example:
        >>> from kueuecore.provisioning import ScriptedCapacity
        >>> VirtualProvisioning(ScriptedCapacity()).controller_name
        'kueue.x-k8s.io/provisioning-request'
    """

    def __init__(self, capacity: CapacityProvider, *, controller: ProvisioningController | None = None) -> None:
        self._controller = controller or ProvisioningController()
        self._autoscaler = Autoscaler(capacity)
        # By namespace and name.
        self._templates: dict[str, dict[str, JsonObject]] = {}

    @property
    def controller_name(self) -> str:
        """`spec.controllerName` of the AdmissionChecks that request capacity."""
        return self._controller.controller_name

    @property
    def kinds(self) -> Mapping[str, tuple[str, str]]:
        """Configs and flavors; it stores requests and their PodTemplates itself."""
        return {kind: other for kind, other in self._controller.kinds.items() if kind not in (KIND, "PodTemplate")}

    @property
    def steps(self) -> tuple[RequestStep, ...]:
        """What happened to the requests, in order of time."""
        return self._autoscaler.steps

    @property
    def requests(self) -> tuple[JsonObject, ...]:
        """The existing ProvisioningRequests with their statuses, in order of creation."""
        return self._autoscaler.requests

    def observe(self, manifest: JsonObject, *, now: int) -> Collection[WorkloadKey]:
        """Take in an object, as the controller does."""
        return self._controller.observe(manifest, now=now)

    def forget(self, deleted: ObjectRef, *, now: int) -> Collection[WorkloadKey]:
        """Take in a deletion, as the controller does; the requests of a Workload are deleted with it."""
        if deleted.kind == "Workload":
            self._autoscaler.forget_workload((deleted.namespace, deleted.name), now=now)
        return self._controller.forget(deleted, now=now)

    def activity(self, check: JsonObject, *, now: int) -> Activity | None:
        """Return whether a check is active, as the controller does."""
        return self._controller.activity(check, now=now)

    def review(self, workload: JsonObject, checks: Sequence[str], *, now: int) -> Review:
        """Review a workload as the controller does, and carry out the writes."""
        self._autoscaler.note_workload(workload)
        events: list[Event] = []
        for _ in range(_MAX_REVIEWS):
            review = self._controller.review(workload, checks, now=now)
            events += review.events
            for write in review.writes:
                self._carry_out(write, now)
            if review.answers or not review.writes:
                return Review(answers=review.answers, events=tuple(events))
        raise RuntimeError(f"requests of {object_ref(workload)} come and go without an end")

    def take_writes(self) -> tuple[Write, ...]:
        """Take the nodes that came with capacity, and those that went."""
        return self._autoscaler.take_writes()

    def next_wake(self, *, after: int) -> int | None:
        """Return when a request changes next."""
        times = (self._controller.next_wake(after=after), self._autoscaler.next_wake(after=after))
        return min((time for time in times if time is not None), default=None)

    def due(self, now: int) -> Collection[WorkloadKey]:
        """Return the workloads whose requests have changed."""
        found: dict[WorkloadKey, None] = dict.fromkeys(self._controller.due(now))
        for request in self._autoscaler.due(now):
            found |= dict.fromkeys(self._controller.observe(request, now=now))
        return tuple(found)

    def _carry_out(self, write: Write, now: int) -> None:
        ref = write.object
        templates = self._templates.setdefault(ref.namespace, {})
        if ref.kind != KIND:
            if write.verb is Verb.DELETE:
                templates.pop(ref.name, None)
            else:
                templates[ref.name] = write.manifest
        elif write.verb is Verb.DELETE:
            if self._autoscaler.delete(ref, now=now):
                self._controller.forget(ref, now=now)
        else:
            metadata = {**object_at(write.manifest, "metadata"), "creationTimestamp": format_time(now)}
            created = self._autoscaler.create({**write.manifest, "metadata": metadata}, templates, now=now)
            self._controller.observe(created, now=now)
