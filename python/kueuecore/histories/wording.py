"""Writes the sentence of a step, with its rule. All sources are worded here, so they agree."""

from __future__ import annotations

from collections.abc import Callable

from kueuecore._text import counted
from kueuecore.histories.facts import Facts, Found
from kueuecore.histories.timeline import Step, What
from kueuecore.times import format_time

__all__ = ["rule_of_preemption", "step_of", "why_it_gave_way"]

# rules/04 §4.1, §5.4; rules/09 §4.4.
_PREEMPTION_RULES = {
    "InClusterQueue": "04 §2",
    "InCohortReclamation": "04 §4.1",
    "InCohortReclaimWhileBorrowing": "04 §4.1",
    "InCohortFairSharing": "04 §5.4",
    "FlavorMigration": "09 §4.4",
}
# rules/07 §8.
_EVICTIONS = {
    "PodsReadyTimeout": ("07 §6", "its pods were not ready in time"),
    "AdmissionCheck": ("07 §3", "an admission check asks for another try"),
    "ClusterQueueStopped": ("07 §10", "its ClusterQueue was stopped and drained"),
    "LocalQueueStopped": ("07 §10", "its LocalQueue was stopped and drained"),
    "NodeFailures": ("08 §13", "a node failed, and no other could take its place"),
    "FlavorMigration": ("09 §4.4", "a variant on a preferred flavor takes its place"),
    "VariantEvicted": ("09 §4.3", "the variant that ran was evicted"),
    "Deactivated": ("07 §9", "it was deactivated"),
    "Preempted": ("04 §8", "it was preempted"),
}
_CAUSES = {
    "WaitForStart": "they never became ready",
    "WaitForScheduling": "a pod had no node",
    "WaitForRecovery": "they were ready and then failed",
    "AdmissionCheck": "an admission check rejects it",
    "RequeuingLimitExceeded": "it was requeued too often",
    "MaximumExecutionTimeExceeded": "it ran longer than it may",
    "EvictedOnManagerCluster": "it was evicted on the manager",
}
_CAUSE_RULES = {"MaximumExecutionTimeExceeded": "07 §7", "RequeuingLimitExceeded": "07 §6", "AdmissionCheck": "07 §3"}
_REQUEUED = {
    "BackoffFinished": ("07 §8", "its backoff is over"),
    "Reactivated": ("07 §9", "it was reactivated"),
    "ClusterQueueRestarted": ("07 §10", "its ClusterQueue runs again"),
    "LocalQueueRestarted": ("07 §10", "its LocalQueue runs again"),
    "Preempted": ("04 §9", "at once, as a preempted workload is"),
    "NodeFailures": ("07 §8", "at once, as after a failed node"),
}
_WAITING_RULES = {
    "AdmissionGated": "07 §8",
    "Deactivated": "07 §9",
    "Misconfigured": "07 §11",
    "PendingEvaluation": "07 §11",
    "PreemptionGated": "09 §4.3",
    "Suspended": "07 §10",
    "UnsatisfiedAdmissionChecks": "07 §1",
    "UnsatisfiedChecks": "07 §1",
    "WaitingForPodsReady": "07 §6",
}
_WAITING_WORDS = {
    "couldn't assign flavors": "03 §7",
    "failed to assign flavors": "03 §7",
    "Bypassed scheduling evaluation": "05 §4",
    "Workload has overlapping preemption targets": "04 §7",
    "Workload no longer fits": "05 §6.4",
}
_READY = {"Started": "all its pods are ready", "Recovered": "all its pods are ready again"}
_NOT_READY = {
    "WaitForStart": "not all its pods are ready yet",
    "WaitForScheduling": "not all its pods are ready, as one has no node",
    "WaitForRecovery": "its pods were ready, and one has failed",
}
_ENDED = {"Succeeded": "its job has succeeded", "Failed": "its job has failed"}


def step_of(found: Found) -> Step:
    """Write the sentence of a step."""
    rule, sentence = _WORDS[found.what](found)
    if found.facts.place:
        sentence += f" (on {found.facts.place})"
    if found.count > 1:
        until = "" if found.until is None else f", until {format_time(found.until)}"
        sentence += f" ({counted(found.count, 'time')}{until})"
    return Step(
        at=found.at,
        before=found.before,
        what=found.what,
        by="" if found.what is What.PREEMPTS else found.facts.by,
        cluster=found.facts.place,
        rule=rule,
        sentence=sentence,
        reason=found.reason,
        message=found.message,
        count=found.count,
        until=found.until,
        sources=found.sources,
    )


def rule_of_preemption(reason: str) -> str:
    """Return the section of the rules for a preemption with this reason, such as `InClusterQueue`."""
    return _PREEMPTION_RULES.get(reason, "04 §8")


def why_it_gave_way(facts: Facts, *, victim: str) -> str:
    """Say by which of Kueue's rules a workload had to give way (rules/04 §1, §4.1, §5); empty if that is unknown.

    Args:
        facts: `by` is the preemptor, `queue` and `priority` those of the victim.
        victim: What to call the victim.
    """
    who, ours, theirs = facts.by or "the other", facts.by_queue or "its ClusterQueue", facts.queue or "the other one"
    is_known = bool(facts.priority and facts.by_priority)
    match facts.why:
        case "InClusterQueue":
            first = f"{who} goes first in {facts.queue or facts.by_queue or 'the ClusterQueue'}"
            if not is_known:
                return first
            if int(facts.by_priority) <= int(facts.priority):
                return f"{first}: among equal priorities it has waited longer"
            return f"{first}: its priority is {facts.by_priority}, that of {victim} {facts.priority}"
        case "InCohortReclamation":
            return f"{ours} takes back quota of its own that {theirs} has borrowed"
        case "InCohortReclaimWhileBorrowing":
            order = f": the priority of {who} is {facts.by_priority}, that of {victim} {facts.priority}"
            return f"{ours} may preempt even to borrow (borrowWithinCohort)" + (order if is_known else "")
        case "InCohortFairSharing":
            return f"the shares of the cohort let {ours} take from {theirs} (fair sharing)"
        case "FlavorMigration":
            return f"{who} takes its place on a preferred flavor"
    return ""


def _created(found: Found) -> tuple[str, str]:
    facts = found.facts
    of = f" for {facts.owner}" if facts.owner else ""
    local = f"LocalQueue {facts.local_queue}" if facts.local_queue else ""
    queue = f"ClusterQueue {facts.queue}" if facts.queue else ""
    queues = " of ".join(filter(None, (local, queue)))
    priority = f" with priority {facts.priority}" if queues and facts.priority else ""
    return "10 §3", f"created{of}" + (f", queued in {queues}{priority}" if queues else "")


def _waiting(found: Found) -> tuple[str, str]:
    by_words = (rule for words, rule in _WAITING_WORDS.items() if found.message.startswith(words))
    rule = next(by_words, _WAITING_RULES.get(found.reason, "05 §6.5"))
    return rule, f"waits: {found.message or found.reason}"


def _reserved(found: Found) -> tuple[str, str]:
    facts = found.facts
    queue = f" in ClusterQueue {facts.queue}" if facts.queue else ""
    flavors = f" ({facts.flavors})" if facts.flavors else ""
    waited = f", {facts.waited}s after it was queued" if facts.waited not in ("", "0") else ""
    return "05 §6.6", f"gets quota{queue}{flavors}{waited}"


def _check(found: Found) -> tuple[str, str]:
    facts = found.facts
    if not facts.check:
        return "07 §3", found.message or found.reason
    return "07 §3", f"admission check {facts.check} is {facts.state or 'Pending'}" + _said(found)


def _admitted(found: Found) -> tuple[str, str]:
    waited = found.facts.waited
    after = f", {waited}s after it got quota" if waited not in ("", "0") else ""
    return "07 §1", f"admitted: its job may start{after}"


def _scheduled(found: Found) -> tuple[str, str]:
    return "07 §6", "a pod has no node yet" if found.facts.state == "False" else "all its pods have nodes"


def _preempts(found: Found) -> tuple[str, str]:
    facts = found.facts
    queue = f" in ClusterQueue {facts.by_queue}" if facts.by_queue else ""
    return "04 §8", f"preempts {facts.by or 'another workload'}{queue}"


def _preempted(found: Found) -> tuple[str, str]:
    facts = found.facts
    who = facts.by or "another workload"
    if not facts.by and (facts.by_uid or facts.by_owner):
        whose = f"Workload of {facts.by_owner}" if facts.by_owner else "workload"
        who = f"a {whose} that is gone (UID {facts.by_uid})" if facts.by_uid else f"a {whose}"
    why = why_it_gave_way(facts, victim="this one")
    return rule_of_preemption(facts.why), f"preempted by {who}" + (f": {why}" if why else "")


def _evicted(found: Found) -> tuple[str, str]:
    reason = found.reason.partition("DueTo")[0]
    cause = found.facts.cause or found.reason.partition("DueTo")[2]
    rule, why = _EVICTIONS.get(reason, ("07 §8", found.message or found.reason or "for a reason that is not recorded"))
    if cause:
        why += f", as {_CAUSES.get(cause, cause)}"
        rule = _CAUSE_RULES.get(cause, rule) if reason == "Deactivated" else rule
    why_so = _said(found) if reason in ("AdmissionCheck", "NodeFailures") else ""
    return rule, f"evicted: {why}{why_so}"


def _held_back(found: Found) -> tuple[str, str]:
    facts = found.facts
    attempt = f", after {counted(int(facts.attempt), 'requeue')}" if facts.attempt.isdigit() else ""
    if facts.until:
        return "07 §6", f"is not tried again before {facts.until}{attempt}"
    waits_for = {
        "Deactivated": ("07 §9", "it is active again"),
        "ClusterQueueStopped": ("07 §10", "its ClusterQueue runs again"),
        "LocalQueueStopped": ("07 §10", "its LocalQueue runs again"),
        "PodsReadyTimeout": ("07 §6", "its backoff is over"),
        "AdmissionCheck": ("07 §8", "its backoff is over"),
    }
    rule, until = waits_for.get(found.reason.partition("DueTo")[0], ("07 §8", ""))
    return rule, f"is not queued until {until}{attempt}" if until else f"is not queued again{_said(found)}"


def _requeued(found: Found) -> tuple[str, str]:
    rule, why = _REQUEUED.get(found.reason, ("07 §8", found.message))
    return rule, "queued again" + (f" {why}" if why.startswith("at once") else f": {why}" if why else "")


def _deactivated(found: Found) -> tuple[str, str]:
    cause = found.facts.cause
    why = _CAUSES.get(cause, found.message or cause) if cause else ""
    return _CAUSE_RULES.get(cause, "07 §9"), "deactivated" + (f": {why}" if why else " by somebody who set spec.active")


def _finished(found: Found) -> tuple[str, str]:
    if found.reason == "WorkloadSliceReplaced":
        return "09 §2.3", f"finished: {found.facts.by or 'a larger slice'} took its place and its quota"
    return "07 §8", _ENDED.get(found.reason, f"finished: {found.reason or 'Finished'}") + _said(found)


def _ready(found: Found) -> tuple[str, str]:
    return "07 §6", _READY.get(found.reason, "all its pods are ready")


def _not_ready(found: Found) -> tuple[str, str]:
    return "07 §6", _NOT_READY.get(found.reason, "not all its pods are ready")


def _other(found: Found) -> tuple[str, str]:
    return "", ": ".join(filter(None, (found.reason, found.message)))


def _said(found: Found) -> str:
    return f": {found.message}" if found.message else ""


def _always(rule: str, sentence: str) -> Callable[[Found], tuple[str, str]]:
    return lambda _: (rule, sentence)


_WORDS: dict[What, Callable[[Found], tuple[str, str]]] = {
    What.CREATED: _created,
    What.WAITING: _waiting,
    What.QUOTA_RESERVED: _reserved,
    What.CHECK: _check,
    What.ADMITTED: _admitted,
    What.STARTED: _always("10 §4.2", "its job is started"),
    What.SCHEDULED: _scheduled,
    What.READY: _ready,
    What.NOT_READY: _not_ready,
    What.PREEMPTS: _preempts,
    What.REPLACED: _always("08 §13", "its pods got other nodes in place of failed ones"),
    What.PREEMPTED: _preempted,
    What.EVICTED: _evicted,
    What.STOPPED: _always("10 §4.3", "its job is stopped"),
    What.RELEASED: _always("04 §9", "its quota is free again"),
    What.HELD_BACK: _held_back,
    What.REQUEUED: _requeued,
    What.DEACTIVATED: _deactivated,
    What.FINISHED: _finished,
    What.DELETED: _always("", "deleted"),
    What.OTHER: _other,
}
