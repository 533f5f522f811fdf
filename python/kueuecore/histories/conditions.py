"""Finds the steps in the Workload itself: conditions, admission checks, admission."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kueuecore._conditions import OF_WORKLOADS, condition, is_true
from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from kueuecore.histories.facts import Facts, Found
from kueuecore.histories.messages import facts_in
from kueuecore.histories.timeline import What
from kueuecore.times import saturated_ns

__all__ = ["created_facts", "flavors_of", "stage_of", "steps_of_workload", "time_in"]

_BEFORE = "Previously: "
# Steps within a second are in this order where it is certain.
_STATUS, _RESET = "status", "reset"
_POD_CONDITIONS = {
    "PodsReady": {"True": What.READY, "False": What.NOT_READY},
    "PodsScheduled": {"True": What.SCHEDULED, "False": What.SCHEDULED},
}
# The reason of an eviction that has only its message left.
_REASONS = {
    "Exceeded the PodsReady timeout": "PodsReadyTimeout",
    "Evicted due to AdmissionCheck": "AdmissionCheck",
    "At least one admission check is false": "AdmissionCheck",
    "The ClusterQueue is stopped": "ClusterQueueStopped",
    "The LocalQueue is stopped": "LocalQueueStopped",
    "The workload is deactivated": "Deactivated",
    "Workload was evicted as there was no replacement": "NodeFailures",
    "Workload eviction triggered due to multiple TAS": "NodeFailures",
}
_CAUSES = {
    "exceeding the maximum number of re-queuing retries": "RequeuingLimitExceeded",
    "exceeding the maximum execution time": "MaximumExecutionTimeExceeded",
    "AdmissionCheck(s) in Rejected state": "AdmissionCheck",
    "Admission check(s)": "AdmissionCheck",
}


def steps_of_workload(workload: JsonObject, *, cluster_queue: str = "") -> tuple[list[Found], list[str]]:
    """Find what the conditions and checks of a Workload record: each holds its last transition.

    Args:
        workload: The Workload.
        cluster_queue: The ClusterQueue of its LocalQueue.

    Returns:
        The steps, and what is not recorded, in sentences.
    """
    found = [
        *_creation(workload, cluster_queue),
        *_evictions(workload),
        *_quota(workload),
        *_checks(workload),
        *_pods(workload),
        *_queue(workload),
        *_end(workload),
        *_others(workload),
    ]
    timeless = [step for step in found if step.at is None and step.before is None]
    missing = [f"{step.sources[0]} has no time that can be read, and is left out" for step in timeless]
    return [step for step in found if step not in timeless], missing


def stage_of(workload: JsonObject) -> str:
    """Return the stage of a Workload by its conditions (rules/07 §1)."""
    for kind in ("Finished", "Admitted", "QuotaReserved"):
        if is_true(workload, kind):
            return kind
    return "Pending"


def time_in(value: JsonObject | None, *path: str) -> int | None:
    """Return the time at a path, in nanoseconds since 1970; `None` if it is missing or unreadable."""
    text = text_at(value, *path)
    try:
        return saturated_ns(text) if text else None
    except ValueError:
        return None


def flavors_of(workload: JsonObject) -> str:
    """Return the flavors of a Workload's admission, pod set by pod set."""
    parts = []
    for assignment in list_at(workload, "status", "admission", "podSetAssignments"):
        by_flavor: dict[str, list[str]] = {}
        for resource, flavor in sorted(object_at(assignment, "flavors").items()):
            by_flavor.setdefault(str(flavor), []).append(resource)
        named = ", ".join(f"{', '.join(resources)} on {flavor}" for flavor, resources in by_flavor.items())
        if named:
            parts.append(f"{text_at(assignment, 'name')}: {named}")
    return "; ".join(parts)


def created_facts(workload: JsonObject, cluster_queue: str = "") -> Facts:
    """Return the job of a Workload and where it is queued."""
    owners = list_at(workload, "metadata", "ownerReferences")
    owner = next(
        (entry for entry in owners if object_at(entry).get("controller") is True), owners[0] if owners else None
    )
    namespace = text_at(workload, "metadata", "namespace")
    return Facts(
        owner=f"{text_at(owner, 'kind')} {namespace}/{text_at(owner, 'name')}" if owner else "",
        local_queue=text_at(workload, "spec", "queueName"),
        queue=cluster_queue,
        priority=str(int_at(workload, "spec", "priority")),
    )


def _creation(workload: JsonObject, cluster_queue: str) -> Iterator[Found]:
    at = time_in(workload, "metadata", "creationTimestamp")
    if at is not None:
        facts = created_facts(workload, cluster_queue)
        yield Found(at=at, what=What.CREATED, facts=facts, sources=("metadata.creationTimestamp",))


def _evictions(workload: JsonObject) -> Iterator[Found]:
    evicted, preempted = condition(workload, "Evicted"), condition(workload, "Preempted")
    for other in (evicted, preempted):
        if other is None or other.get("status") not in ("True", "False"):
            continue
        is_over, at = other.get("status") == "False", time_in(other, "lastTransitionTime")
        message = text_at(other, "message")
        if is_over and not message.startswith(_BEFORE):
            continue
        message = message.removeprefix(_BEFORE)
        reason = "" if is_over else text_at(other, "reason")
        if other is preempted and not is_over:
            # The two are written together; this one has the reason why it had to give way.
            found = Found(at=at, what=What.PREEMPTED, facts=replace(facts_in(message), why=reason), reason=reason)
        else:
            found = eviction(at, reason, message)
        # A condition that is False again shows when that was, not when the workload was evicted.
        sources = (f"condition {text_at(other, 'type')}",)
        found = replace(found, message=message, sources=sources, orders=((_RESET, 1),))
        yield replace(found, at=None, before=at) if is_over else found


def eviction(at: int | None, reason: str, message: str, cause: str = "") -> Found:
    """Return the step of an eviction for a reason, as the condition Evicted has it."""
    facts = facts_in(message)
    reason = reason or next((known for words, known in _REASONS.items() if message.startswith(words)), "")
    if reason == "Preempted" or (not reason and facts.by_uid):
        return Found(at=at, what=What.PREEMPTED, facts=facts, reason=facts.why or "Preempted", message=message)
    reason, _, derived = reason.partition("DueTo")
    cause = cause or derived
    if reason == "Deactivated":
        cause_words = message.partition(" due to ")[2]
        cause = cause or next((known for words, known in _CAUSES.items() if cause_words.startswith(words)), "")
        reason += f"DueTo{cause}" if cause else ""
    what = What.DEACTIVATED if reason.startswith("Deactivated") else What.EVICTED
    return Found(at=at, what=what, facts=replace(facts, cause=cause), reason=reason, message=message)


def _quota(workload: JsonObject) -> Iterator[Found]:
    reserved, admitted = condition(workload, "QuotaReserved"), condition(workload, "Admitted")
    at, source = time_in(reserved, "lastTransitionTime"), ("condition QuotaReserved",)
    message, reason = text_at(reserved, "message"), text_at(reserved, "reason")
    if is_true(workload, "QuotaReserved"):
        queue = text_at(workload, "status", "admission", "clusterQueue")
        facts = Facts(queue=queue, flavors=flavors_of(workload)).filled(facts_in(message))
        order = ((_STATUS, 1),)
        yield Found(
            at=at, what=What.QUOTA_RESERVED, facts=facts, reason=reason, message=message, sources=source, orders=order
        )
    elif reserved is not None:
        evicted = condition(workload, "Evicted") if is_true(workload, "Evicted") else None
        lost = time_in(evicted, "lastTransitionTime")
        if at is not None and lost is not None and lost <= at and condition(workload, "Requeued") is not None:
            yield Found(at=at, what=What.RELEASED, sources=source, orders=((_STATUS, 1),))
        if message != text_at(evicted, "message"):
            order = ((_STATUS, 2),)
            yield Found(at=at, what=What.WAITING, reason=reason, message=message, sources=source, orders=order)
    if admitted is None:
        return
    found = Found(
        at=time_in(admitted, "lastTransitionTime"),
        what=What.ADMITTED,
        reason=text_at(admitted, "reason"),
        message=text_at(admitted, "message"),
        sources=("condition Admitted",),
    )
    if is_true(workload, "Admitted"):
        yield found
    elif is_true(workload, "QuotaReserved"):
        yield replace(found, what=What.WAITING, orders=((_STATUS, 2),))


def _checks(workload: JsonObject) -> Iterator[Found]:
    for check in list_at(workload, "status", "admissionChecks"):
        name, state = text_at(check, "name"), text_at(check, "state") or "Pending"
        is_reset = text_at(check, "message").startswith("Reset to Pending after eviction")
        yield Found(
            at=time_in(object_at(check), "lastTransitionTime"),
            what=What.CHECK,
            facts=Facts(check=name, state=state),
            message=text_at(check, "message"),
            sources=(f"admission check {name}",),
            orders=((_RESET, 2),) if is_reset else (),
        )


def _pods(workload: JsonObject) -> Iterator[Found]:
    if not is_true(workload, "Admitted") and not is_true(workload, "Finished"):
        # An eviction resets both; that says nothing new.
        return
    for kind, whats in _POD_CONDITIONS.items():
        known = condition(workload, kind)
        if known is not None and (status := text_at(known, "status")) in whats:
            yield _of_condition(known, whats[status], Facts(state=status))


def _queue(workload: JsonObject) -> Iterator[Found]:
    requeued, status = condition(workload, "Requeued"), object_at(workload, "status")
    if requeued is not None:
        is_queued = text_at(requeued, "status") == "True"
        count = int_at(status, "requeueState", "count")
        facts = Facts(until=text_at(status, "requeueState", "requeueAt"), attempt=str(count) if count else "")
        step = _of_condition(requeued, What.REQUEUED if is_queued else What.HELD_BACK, facts)
        yield replace(step, at=_released_at(workload, requeued) or step.at)
    gates = condition(workload, "BlockedOnPreemptionGates")
    if gates is not None and text_at(gates, "status") == "True":
        yield _of_condition(gates, What.WAITING, Facts())


def _released_at(workload: JsonObject, requeued: JsonObject) -> int | None:
    """When the last eviction ended, if Requeued is of it: the two are written together (rules/04 §9).

    The condition's own time is that of an earlier eviction if it was True before.
    """
    evicted, reserved = condition(workload, "Evicted"), condition(workload, "QuotaReserved")
    is_of_it = is_true(workload, "Evicted") and text_at(requeued, "message") == text_at(evicted, "message")
    return time_in(reserved, "lastTransitionTime") if is_of_it and not is_true(workload, "QuotaReserved") else None


def _end(workload: JsonObject) -> Iterator[Found]:
    target, finished = condition(workload, "DeactivationTarget"), condition(workload, "Finished")
    if target is not None and text_at(target, "status") == "True":
        yield _of_condition(target, What.DEACTIVATED, Facts(cause=text_at(target, "reason")))
    if finished is not None and text_at(finished, "status") == "True":
        yield _of_condition(finished, What.FINISHED, facts_in(text_at(finished, "message")))
    if (at := time_in(workload, "metadata", "deletionTimestamp")) is not None:
        source = ("metadata.deletionTimestamp",)
        yield Found(at=at, what=What.OTHER, message="its deletion was requested", sources=source)


def _others(workload: JsonObject) -> Iterator[Found]:
    for entry in list_at(workload, "status", "conditions"):
        kind = text_at(entry, "type")
        if kind and kind not in OF_WORKLOADS:
            said = f"condition {kind} is {text_at(entry, 'status')}"
            yield replace(_of_condition(object_at(entry), What.OTHER, Facts()), reason=said)


def _of_condition(known: JsonObject, what: What, facts: Facts) -> Found:
    return Found(
        at=time_in(known, "lastTransitionTime"),
        what=what,
        facts=facts,
        reason=text_at(known, "reason"),
        message=text_at(known, "message"),
        sources=(f"condition {text_at(known, 'type')}",),
    )
