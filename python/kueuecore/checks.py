"""Admission checks: the controllers that review workloads holding quota, and their answers (rules/07).

A `CheckController` only decides; it does no I/O. `kueuecore.controller.Controller` runs it in a real cluster,
`kueuecore.VirtualCluster` in virtual time; neither knows what any check is about.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from kueuecore._json import JsonObject, JsonValue, list_at, text_at
from kueuecore.decisions import Event
from kueuecore.errors import ObjectRef
from kueuecore.objects._check_state import CheckState
from kueuecore.writes import Answer, WorkloadKey, Write

__all__ = [
    "Activity",
    "CheckAnswer",
    "CheckController",
    "CheckState",
    "ObjectMaker",
    "Review",
    "WorkloadKey",
    "applied_review",
    "check_states",
]


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """A check's answer about a workload: an entry of `status.admissionChecks`.

    Args:
        name: Name of the AdmissionCheck.
        state: The state.
        message: Why, for people to read.
        pod_set_updates: Labels, annotations, node selectors and tolerations for the pods, by pod set, as in the status.
        requeue_after_seconds: With `Retry`: how many seconds after the state changes to try again.
    """

    name: str
    state: CheckState
    message: str = ""
    pod_set_updates: tuple[JsonObject, ...] = ()
    requeue_after_seconds: int | None = None

    @classmethod
    def of(cls, entry: JsonObject) -> CheckAnswer:
        """Read the answer from an entry of a status."""
        seconds = entry.get("requeueAfterSeconds")
        return cls(
            text_at(entry, "name"),
            CheckState(text_at(entry, "state") or CheckState.PENDING),
            text_at(entry, "message"),
            tuple(update for update in list_at(entry, "podSetUpdates") if isinstance(update, dict)),
            seconds if isinstance(seconds, int) else None,
        )


@dataclass(frozen=True, slots=True)
class Activity:
    """Whether an AdmissionCheck is active: its condition `Active`. A ClusterQueue with an inactive check admits none.

    Args:
        is_active: Whether it is active.
        reason: Why, in one word.
        message: Why, in a sentence.
    """

    is_active: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Review:
    """What a check controller says about a workload.

    Args:
        answers: The checks whose entries change; the others stay as they are.
        writes: Objects to create and delete, in this order; if one is refused, the rest is skipped.
        status: Other changes to the status of the workload, such as `clusterName`, as a merge patch.
        events: The events to record.
    """

    answers: tuple[CheckAnswer, ...] = ()
    writes: tuple[Write, ...] = ()
    status: Mapping[str, JsonValue] = field(default_factory=dict)
    events: tuple[Event, ...] = ()

    def __bool__(self) -> bool:
        """Return whether there is anything in it."""
        return bool(self.answers or self.writes or self.status or self.events)


@runtime_checkable
class CheckController(Protocol):
    """The controller of the AdmissionChecks with one `spec.controllerName`. It does no I/O and has no clock.

    A subclass must define `controller_name` and `review`; the other methods do nothing by default. Times are
    nanoseconds since 1970 and never go back. Every answer follows from what it has observed and from its arguments:
    no clock, and no randomness without a seed.

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
        """The `spec.controllerName` of its AdmissionChecks."""
        ...

    @property
    def kinds(self) -> Mapping[str, tuple[str, str]]:
        """The kinds to watch besides Workloads and AdmissionChecks: apiVersion and plural, by kind."""
        return {}

    def observe(self, manifest: JsonObject, *, now: int) -> Collection[WorkloadKey]:
        """Take note of a new or changed AdmissionCheck, or object of its `kinds`. It may get the same object twice.

        Returns:
            The workloads about which it may have something new to say.
        """
        return ()

    def forget(self, deleted: ObjectRef, *, now: int) -> Collection[WorkloadKey]:
        """Take note that a Workload, an AdmissionCheck or an object of its `kinds` is gone.

        Returns:
            The workloads about which it may have something new to say.
        """
        return ()

    def activity(self, check: JsonObject, *, now: int) -> Activity | None:
        """Say whether an AdmissionCheck is active. Called after every `observe`.

        Args:
            check: The AdmissionCheck, with its status.
            now: The time.

        Returns:
            What its condition `Active` should say; `None` to leave it.
        """
        return None

    def review(self, workload: JsonObject, checks: Sequence[str], *, now: int) -> Review:
        """Review a workload. Called after every change of the workload, and whenever the controller asked for it.

        Most controllers answer only about workloads that hold quota and are not evicted, and clean up after the others.
        Deleted workloads go to `forget`.

        Args:
            workload: The workload as it is stored, with its status.
            checks: Names of its own AdmissionChecks in `status.admissionChecks`, in their order.
            now: The time.

        Returns:
            The changes to make; nothing, if called again once they are made.
        """
        ...

    def refused(self, write: Write, answer: Answer, *, now: int) -> Review:
        """React to a refused write.

        Args:
            write: The write.
            answer: Why, in the words of the API server; after a conflict, an object of that name exists already that no
                watch event has shown yet.
            now: The time.

        Returns:
            What to record about it.
        """
        return Review()

    def next_wake(self, *, after: int) -> int | None:
        """Return when time alone will next give it something to say about a workload; `None`: never."""
        return None

    def due(self, now: int) -> Collection[WorkloadKey]:
        """Return the workloads whose answer changed by `now` through time alone, each once."""
        return ()


@runtime_checkable
class ObjectMaker(Protocol):
    """A check controller that also makes and deletes objects of its own, such as nodes.

    Only a cluster in virtual time asks for them: in a real cluster others make them.
    """

    def take_writes(self) -> tuple[Write, ...]:
        """Return what it made and deleted since the last call, in order."""
        ...


def check_states(workload: JsonObject) -> dict[str, JsonObject]:
    """Return the entries of `status.admissionChecks` by name, in their order."""
    entries = list_at(workload, "status", "admissionChecks")
    return {text_at(entry, "name"): entry for entry in entries if isinstance(entry, dict)}


def applied_review(status: JsonObject, review: Review, *, now: str) -> JsonObject:
    """Apply a review to a status as Kueue's check controllers do (rules/07 §3).

    The transition time of a check changes only with its state; message, updates and delay are replaced; the retry
    count stays. A check that is no longer listed is not added again.

    Args:
        status: `status` of a Workload.
        review: The changes.
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
