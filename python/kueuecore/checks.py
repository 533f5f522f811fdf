"""What stands behind admission checks: who is asked about a workload that holds quota, and what it answers (rules/07).

A `CheckController` decides and does nothing. A `kueuecore.controller.Controller` asks it in a real cluster, a
`kueuecore.VirtualCluster` in virtual time; neither knows what any check is about.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias, runtime_checkable

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.decisions import Event
from kueuecore.errors import ObjectRef
from kueuecore.objects import CheckState

__all__ = [
    "Activity",
    "CheckAnswer",
    "CheckController",
    "CheckState",
    "ObjectMaker",
    "ObjectWrite",
    "ObjectWriteKind",
    "Review",
    "WorkloadKey",
    "applied_review",
    "check_states",
]

WorkloadKey: TypeAlias = tuple[str, str]
"""Namespace and name of a Workload."""


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """What a check says of a workload: an entry of `status.admissionChecks`.

    Args:
        name: Name of the AdmissionCheck.
        state: The state.
        message: Why, for people.
        pod_set_updates: Labels, annotations, node selectors and tolerations for the pods, by pod set, as in the status.
        requeue_after_seconds: With `Retry`: when to try again, in seconds after the change of the state.
    """

    name: str
    state: CheckState
    message: str = ""
    pod_set_updates: tuple[JsonObject, ...] = ()
    requeue_after_seconds: int | None = None

    @classmethod
    def of(cls, entry: JsonObject) -> CheckAnswer:
        """The same of an entry of a status."""
        seconds = entry.get("requeueAfterSeconds")
        return cls(
            text_at(entry, "name"),
            CheckState(text_at(entry, "state") or CheckState.PENDING),
            text_at(entry, "message"),
            tuple(it for it in list_at(entry, "podSetUpdates") if isinstance(it, dict)),
            seconds if isinstance(seconds, int) else None,
        )


@dataclass(frozen=True, slots=True)
class Activity:
    """Whether an AdmissionCheck is active: its condition `Active`. ClusterQueues with one that is not admit nobody.

    Args:
        is_active: Is it?
        reason: Why, in one word.
        message: Why, in a sentence.
    """

    is_active: bool
    reason: str
    message: str


class ObjectWriteKind(StrEnum):
    """What is to be done with an object."""

    CREATE = "create"
    DELETE = "delete"
    PATCH_STATUS = "patch-status"
    """Write the manifest's status to an AdmissionCheck, queue, Cohort or Pod of the version it names."""
    PATCH = "patch"
    """Send the manifest as a JSON merge patch (RFC 7386) to the object that it names: a Pod that may go, a Topology."""


@dataclass(frozen=True, slots=True)
class ObjectWrite:
    """A write of an object: a ProvisioningRequest, a variant of a Workload, the status of a queue, or a Pod.

    Args:
        kind: What is to be done.
        manifest: The object to create, or the patch; of one to delete `apiVersion`, `kind` and `metadata` are enough.
        workload: The workload for which it is; of a variant its parent; empty names if it is for none.
        check: Name of the AdmissionCheck for which it is; empty if it is for none, or none any more.
    """

    kind: ObjectWriteKind
    manifest: JsonObject
    workload: WorkloadKey
    check: str = ""

    @property
    def object(self) -> ObjectRef:
        """Kind, name and namespace of the object."""
        metadata = object_at(self.manifest, "metadata")
        return ObjectRef(text_at(self.manifest, "kind"), text_at(metadata, "name"), text_at(metadata, "namespace"))


@dataclass(frozen=True, slots=True)
class Review:
    """What a check controller has to say about a workload.

    Args:
        answers: The checks whose entries are to change; the others stay as they are.
        writes: Objects to create and to delete, in this order; where one is refused, the rest is left out.
        status: What else is to change in the status of the workload, as a merge patch; `clusterName`, say.
        events: The events to record.
    """

    answers: tuple[CheckAnswer, ...] = ()
    writes: tuple[ObjectWrite, ...] = ()
    status: Mapping[str, JsonValue] = field(default_factory=dict)
    events: tuple[Event, ...] = ()

    def __bool__(self) -> bool:
        """Is there anything in it?"""
        return bool(self.answers or self.writes or self.status or self.events)


@runtime_checkable
class CheckController(Protocol):
    """What stands behind the AdmissionChecks of one `spec.controllerName`. It does no I/O and has no clock.

    A class that derives from this one has to write `controller_name` and `review`; all else does nothing by default.
    Times are nanoseconds since 1970, and never go back. Every answer follows from what it has observed and from its own
    arguments: no clock, no random source but one with a seed.

    Example:
        >>> class Approval(CheckController):
        ...     controller_name = "example.com/approval"
        ...     def review(self, workload, checks, *, now):
        ...         return Review(answers=tuple(CheckAnswer(name, CheckState.READY, "approved") for name in checks))
        >>> Approval().review({}, ["approval"], now=0).answers[0].state
        <CheckState.READY: 'Ready'>
    """

    @property
    def controller_name(self) -> str:
        """`spec.controllerName` of the AdmissionChecks that are its own."""
        ...

    @property
    def kinds(self) -> Mapping[str, tuple[str, str]]:
        """The kinds to watch besides Workloads and AdmissionChecks: apiVersion and plural by kind."""
        return {}

    def observe(self, manifest: JsonObject, *, now: int) -> Collection[WorkloadKey]:
        """An AdmissionCheck, or an object of its `kinds`, is there, or has changed; twice the same is no news.

        Returns:
            The workloads about which it may have something new to say.
        """
        return ()

    def forget(self, deleted: ObjectRef, *, now: int) -> Collection[WorkloadKey]:
        """A Workload, an AdmissionCheck or an object of its `kinds` has gone.

        Returns:
            The workloads about which it may have something new to say.
        """
        return ()

    def activity(self, check: JsonObject, *, now: int) -> Activity | None:
        """Is an AdmissionCheck active? It is asked after everything that it observes.

        Args:
            check: The AdmissionCheck, with its status.
            now: The time.

        Returns:
            What its condition `Active` is to say; `None`: what it says.
        """
        return None

    def review(self, workload: JsonObject, checks: Sequence[str], *, now: int) -> Review:
        """What does it say of a workload? It is asked after every change of the workload, and whenever it asked for it.

        Most have something to say only about workloads that hold quota and are not evicted; the others tell it to clean
        up. `forget` gets what is deleted.

        Args:
            workload: The workload as it is stored, with its status.
            checks: Names of the AdmissionChecks of its own in `status.admissionChecks`, in their order.
            now: The time.

        Returns:
            What is to change; nothing, if asked again with that done.
        """
        ...

    def refused(self, write: ObjectWrite, error: str, *, is_there: bool = False, now: int) -> Review:
        """One of the `writes` was refused.

        Args:
            write: The write.
            error: Why, in the words of the API server.
            is_there: Does one of that name exist already that no watch event has shown yet?
            now: The time.

        Returns:
            What to tell about it.
        """
        return Review()

    def next_wake(self, *, after: int) -> int | None:
        """When time alone gives it something to say about some workload, at the earliest; `None`: never."""
        return None

    def due(self, now: int) -> Collection[WorkloadKey]:
        """The workloads whose answer changed by `now` through time alone. Each is returned once."""
        return ()


@runtime_checkable
class ObjectMaker(Protocol):
    """A check controller that makes and deletes objects of its own, whatever becomes of the workloads: nodes, say.

    Only who runs a cluster in virtual time asks for them: in a real cluster others make them.
    """

    def take_writes(self) -> tuple[ObjectWrite, ...]:
        """What was made and deleted since the last call, in this order."""
        ...


def check_states(workload: JsonObject) -> dict[str, JsonObject]:
    """The entries of `status.admissionChecks` by name, in their order."""
    entries = list_at(workload, "status", "admissionChecks")
    return {text_at(entry, "name"): entry for entry in entries if isinstance(entry, dict)}


def applied_review(status: JsonObject, review: Review, *, now: str) -> JsonObject:
    """A status after a review, as Kueue's check controllers write it (rules/07 §3).

    The transition time of a check changes with its state only; message, updates and delay are replaced; the count of
    retries is left alone. A check that is not listed any more is not listed again.

    Args:
        status: `status` of a Workload.
        review: What is to change.
        now: The time in RFC 3339.

    Returns:
        The status; the same object if nothing changes.

    Example:
        >>> entry = {"name": "a", "state": "Pending", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        >>> review = Review(answers=(CheckAnswer("a", CheckState.READY, "done"),))
        >>> applied_review({"admissionChecks": [entry]}, review, now="2026-01-02T00:00:00Z")["admissionChecks"][0]
        {'name': 'a', 'state': 'Ready', 'lastTransitionTime': '2026-01-02T00:00:00Z', 'message': 'done'}
    """
    answers = {answer.name: answer for answer in review.answers}
    entries: list[JsonValue] = [
        _entry(entry, answers[text_at(entry, "name")], now)
        if isinstance(entry, dict) and text_at(entry, "name") in answers
        else entry
        for entry in list_at(status, "admissionChecks")
    ]
    after = {**status, **review.status}
    if entries:
        after["admissionChecks"] = entries
    for name, value in review.status.items():
        if value is None:
            del after[name]
    return status if after == status else after


def _entry(entry: JsonObject, answer: CheckAnswer, now: str) -> JsonObject:
    after = {**entry, "state": str(answer.state), "message": answer.message}
    if entry.get("state") != answer.state:
        after["lastTransitionTime"] = now
    after.pop("podSetUpdates", None)
    after.pop("requeueAfterSeconds", None)
    if answer.pod_set_updates:
        after["podSetUpdates"] = list(answer.pod_set_updates)
    if answer.requeue_after_seconds is not None:
        after["requeueAfterSeconds"] = answer.requeue_after_seconds
    return after
