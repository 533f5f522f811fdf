"""Syncs a group of pods with its Workload: failed pods are replaced, and surplus ones deleted (rules/10 §5.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore.jobs.context import MANAGED_LABEL, JobsConfiguration, annotations_of
from kueuecore.jobs.field_paths import with_value
from kueuecore.jobs.integration import NoWorkload
from kueuecore.jobs.job_event import JobEvent
from kueuecore.jobs.job_status import has_condition
from kueuecore.jobs.pod import finalize_pod, total_count
from kueuecore.jobs.pod_group import (
    IS_GROUP_WORKLOAD,
    by_precedence,
    has_left,
    is_fast,
    is_runnable_or_succeeded,
)
from kueuecore.jobs.role_hash import role_hash
from kueuecore.jobs.sync_steps import Action, WorkloadStep, normal
from kueuecore.jobs.workload_builder import max_exec_time_seconds
from kueuecore.jobs.workload_names import owner_reference
from kueuecore.writes import Verb, Write

__all__ = [
    "MatchedGroup",
    "NotMatching",
    "PreparedGroup",
    "RefusedWorkload",
    "ended_group",
    "fits_group",
    "match_group",
    "owned_by_all",
    "prepared_group",
    "refused_workload",
]

_WAITING = "WaitingForReplacementPods"


class NotMatching(Exception):  # noqa: N818  # it never leaves this package
    """The Workload does not fit the group as it is."""


@dataclass(frozen=True, slots=True)
class MatchedGroup:
    """A group that fits its Workload.

    Args:
        workload: The updated Workload.
        steps: The changes to it.
        writes: The writes of pods.
        events: The events about these writes.
    """

    workload: JsonObject
    steps: Sequence[WorkloadStep]
    writes: Sequence[Write]
    events: Sequence[JobEvent]


@dataclass(frozen=True, slots=True)
class PreparedGroup:
    """A group that is ready for its Workload to be created.

    Args:
        group: The group without surplus pods.
        writes: The writes of the other pods.
        events: The events about these writes.
    """

    group: JsonObject
    writes: Sequence[Write]
    events: Sequence[JobEvent]


@dataclass(frozen=True, slots=True)
class RefusedWorkload:
    """A Workload that has the name of a group but belongs to something else.

    Args:
        reason: Why the group gets no Workload.
        writes: The writes that remove finalizers from pods anyway: nothing else would.
    """

    reason: NoWorkload
    writes: Sequence[Write]


def match_group(group: JsonObject, workload: JsonObject, configuration: JobsConfiguration, *, now: str) -> MatchedGroup:
    """Return what happens to the pods of a group with an existing Workload.

    Args:
        group: The group.
        workload: The Workload with its name.
        configuration: Has the changes of Kueue.
        now: The time as RFC 3339.

    Raises:
        NotMatching: The Workload has to be deleted.
    """
    pods = [object_at(item) for item in list_at(group, "items")]
    inactive = [pod for pod in pods if not is_runnable_or_succeeded(pod, configuration)]
    if object_at(workload, "spec").get("maximumExecutionTimeSeconds") != max_exec_time_seconds(group):
        raise NotMatching
    is_finished = has_condition(workload, "Finished")
    # Before the change, a group that is admitted at once lacked all pods that were not there.
    lacks_one = configuration.has("FastAdmissionNeedsTrue") and is_fast(group, configuration)
    n_absent, kept, excess, writes = 0, [], [], []
    for pod_set in list_at(workload, "spec", "podSets"):
        role, count = text_at(pod_set, "name"), int_at(pod_set, "count", default=1)
        running = sorted((pod for pod in pods if pod not in inactive and role_hash(pod) == role), key=by_precedence)
        failed = sorted((pod for pod in inactive if role_hash(pod) == role), key=_by_last_activity)
        n_absent += (1 if count and not running else 0) if lacks_one else max(0, count - len(running))
        n_failed = min(len(failed), max(0, count - len(running)))
        kept += running[:count] + failed[:n_failed]
        excess += running[count:]
        # The place of a pod that keeps its finalizer would never be filled: a StatefulSet gives its name to the next.
        leaving = [pod for number, pod in enumerate(failed) if number >= n_failed or has_left(pod, configuration)]
        writes += [write for pod in leaving for write in finalize_pod(pod)]
    if not kept or not _fits(kept, workload, configuration, is_finished=is_finished):
        raise NotMatching
    owned, event = _with_owners(workload, kept)
    steps = [] if event is None else [WorkloadStep(Action.UPDATE, owned, event=event)]
    reported = _with_condition(owned, are_absent=n_absent > 0, now=now)
    if reported is not owned:
        steps.append(WorkloadStep(Action.UPDATE_STATUS, reported))
    writes = [*(write for pod in excess for write in _deleted(pod)), *writes]
    return MatchedGroup(reported, steps, writes, _excess_events(excess))


def refused_workload(
    group: JsonObject, workload: JsonObject, configuration: JobsConfiguration
) -> RefusedWorkload | None:
    """Return why a group does not accept the Workload with its name; None if it does.

    Args:
        group: The group.
        workload: The Workload with its name.
        configuration: Has the feature gates.
    """
    is_group_workload = annotations_of(workload).get(IS_GROUP_WORKLOAD) == "true"
    if is_group_workload or not configuration.enabled("PodIntegrationValidateGroupOwner"):
        return None
    pods = [object_at(item) for item in list_at(group, "items")]
    name = text_at(workload, "metadata", "name")
    reason = f'A Workload named "{name}" already exists but is not a pod group workload'
    note = f"{reason}; this pod group cannot be admitted"
    inactive = (pod for pod in pods if not is_runnable_or_succeeded(pod, configuration))
    return RefusedWorkload(
        NoWorkload(reason, warning="WorkloadNameConflict", note=note),
        [write for pod in inactive for write in finalize_pod(pod)],
    )


def fits_group(group: JsonObject, workload: JsonObject, configuration: JobsConfiguration) -> bool:
    """Return whether a Workload made by somebody else fits a group."""
    pods = [object_at(item) for item in list_at(group, "items")]
    return _fits(pods, workload, configuration, is_finished=has_condition(workload, "Finished"))


def owned_by_all(group: JsonObject, workload: JsonObject) -> tuple[JsonObject, JobEvent | None]:
    """Return the Workload with all pods of a group as owners, and the event; unchanged and None if it has them."""
    return _with_owners(workload, [object_at(item) for item in list_at(group, "items")])


def prepared_group(group: JsonObject, configuration: JobsConfiguration) -> PreparedGroup:
    """Prepare a group for its Workload: failed pods lose their finalizers, surplus ones are deleted."""
    pods = [object_at(item) for item in list_at(group, "items")]
    running = sorted((pod for pod in pods if is_runnable_or_succeeded(pod, configuration)), key=by_precedence)
    writes = [write for pod in pods if pod not in running for write in finalize_pod(pod)]
    n_expected, _ = total_count(group)
    if n_expected is None or len(running) <= n_expected:
        return PreparedGroup(group, writes, ())
    kept: list[JsonValue] = list(running[:n_expected])
    excess = running[n_expected:]
    writes += [write for pod in excess for write in _deleted(pod)]
    return PreparedGroup({**group, "items": kept}, writes, _excess_events(excess))


def ended_group(group: JsonObject, configuration: JobsConfiguration) -> Sequence[Write] | None:
    """Return the writes that let the pods of a group go whose pods are all being deleted; None for any other group.

    Args:
        group: The group, which has no Workload.
        configuration: Has the feature gates.
    """
    pods = [object_at(item) for item in list_at(group, "items")]
    are_going = all(text_at(pod, "metadata", "deletionTimestamp") for pod in pods)
    if not are_going or not configuration.enabled("FinalizeTerminatingPodGroups"):
        return None
    return [write for pod in pods for write in finalize_pod(pod)]


def _fits(
    pods: Sequence[JsonObject], workload: JsonObject, configuration: JobsConfiguration, *, is_finished: bool
) -> bool:
    """Return whether the Workload has the roles of the pods, in their order, and none too often."""
    wanted: dict[str, int] = {}
    for pod in pods:
        wanted[role_hash(pod)] = wanted.get(role_hash(pod), 0) + 1
    held = {
        text_at(pod_set, "name"): int_at(pod_set, "count", default=1)
        for pod_set in list_at(workload, "spec", "podSets")
    }
    order = list(held)
    positions = [order.index(role) if role in held else -1 for role in sorted(wanted)]
    # A Workload keeps the order that it was made in.
    has_order = configuration.enabled("PodGroupSchedulingShapeOrdering") or positions == sorted(positions)
    if -1 in positions or not has_order:
        return False
    return is_finished or all(count <= held[role] for role, count in wanted.items())


def _by_last_activity(pod: JsonObject) -> tuple[bool, _Descending, str]:
    """Sort pods with the finalizer first, then the most recently active; pods without an end time are active."""
    has_finalizer = MANAGED_LABEL in list_at(pod, "metadata", "finalizers")
    ready = (
        condition
        for condition in list_at(pod, "status", "conditions")
        if text_at(condition, "type") == "ContainersReady"
    )
    condition = next(ready, None)
    ended = text_at(condition, "status") == "False" and text_at(condition, "reason") == "PodFailed"
    times = [text_at(condition, "lastTransitionTime") if ended else "", text_at(pod, "metadata", "deletionTimestamp")]
    last = min(filter(None, times), default="9")
    return not has_finalizer, _Descending(last), text_at(pod, "metadata", "creationTimestamp")


class _Descending(str):
    """A text that sorts before smaller ones."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


def _deleted(pod: JsonObject) -> list[Write]:
    released = finalize_pod(pod)
    if text_at(pod, "metadata", "deletionTimestamp"):
        return released
    return [*released, Write(Verb.DELETE, released[0].manifest if released else pod)]


def _excess_events(pods: Sequence[JsonObject]) -> list[JobEvent]:
    going = (pod for pod in pods if not text_at(pod, "metadata", "deletionTimestamp"))
    return [normal(pod, "ExcessPodDeleted", "Excess pod deleted") for pod in going]


def _with_owners(workload: JsonObject, pods: Sequence[JsonObject]) -> tuple[JsonObject, JobEvent | None]:
    """Return the Workload with all pods as owners, and the event about it; unchanged and None if it has them."""
    owners = list_at(workload, "metadata", "ownerReferences")
    names = {(text_at(owner, "kind"), text_at(owner, "name")) for owner in owners}
    added: list[JsonValue] = [
        owner_reference(pod, controller=False) for pod in pods if ("Pod", text_at(pod, "metadata", "name")) not in names
    ]
    if not added:
        return workload, None
    event = normal(workload, "OwnerReferencesAdded", f"Added {len(added)} owner reference(s)")
    return with_value(workload, ("metadata", "ownerReferences"), [*owners, *added]), event


def _with_condition(workload: JsonObject, *, are_absent: bool, now: str) -> JsonObject:
    """Return the Workload with its condition about pods to be replaced; unchanged if it has it."""
    conditions = [object_at(condition) for condition in list_at(workload, "status", "conditions")]
    by_type = {text_at(condition, "type"): condition for condition in conditions}
    before, evicted = by_type.get(_WAITING), by_type.get("Evicted", {})
    if before is None and not are_absent:
        return workload
    after: JsonObject = dict(before or {"type": _WAITING})
    if are_absent and text_at(evicted, "status") == "True":
        after |= {"status": "True", "reason": text_at(evicted, "reason"), "message": text_at(evicted, "message")}
    elif are_absent and text_at(after, "status") != "True":
        after |= {"status": "True", "reason": "PodsFailed", "message": "Some Failed pods need replacement"}
    elif not are_absent and text_at(after, "status") != "False":
        after |= {"status": "False", "reason": "PodsReady", "message": "No pods need replacement"}
    if after == before:
        return workload
    after["lastTransitionTime"] = now
    if "generation" in object_at(workload, "metadata"):
        after["observedGeneration"] = int_at(workload, "metadata", "generation")
    changed: list[JsonValue] = [*(condition for condition in conditions if condition is not before), after]
    return with_value(workload, ("status", "conditions"), changed)
