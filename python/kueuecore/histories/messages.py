"""Reads facts out of Kueue's messages."""

from __future__ import annotations

import re
from dataclasses import replace

from kueuecore.histories.facts import Facts

__all__ = ["facts_in", "reason_and_cause", "victim_in", "was_combined"]

# rules/04 §8: the UIDs of preemptor and job, the purpose, and the paths from the root cohort to the ClusterQueues.
_PREEMPTED = re.compile(r"to accommodate a workload \(UID: ([^,)\s]{1,253})(?:, JobUID: ([^)\s]{1,253}))?\)")
_PURPOSE = re.compile(r"due to ([^;]{1,100})")
_OUR_PATH = re.compile(r"preemptor path: ([^;\s]{1,4000})")
_THEIR_PATH = re.compile(r"preemptee path: ([^;\s]{1,4000})")
_OUR_PRIORITY = re.compile(r"preemptor effective priority: (-?\d{1,20})")
_THEIR_PRIORITY = re.compile(r"preemptee effective priority: (-?\d{1,20})")
_VICTIM = re.compile(r"Preempted workload ([^/\s]{1,253}/[^/\s]{1,253}) \(UID: ([^)\s]{0,253})\)")
_IN_QUEUE = re.compile(r"in ClusterQueue ([^;\s]{1,253})")
_RESERVED = re.compile(r"Quota reserved in ClusterQueue ([^,;\s]{1,253})(?:, wait time since queued was (\d{1,20})s)?")
_ADMITTED = re.compile(
    r"Admitted by [cC]luster ?[qQ]ueue ([^,;\s]{1,253})(?:, wait time since reservation was (\d{1,20})s)?"
)
_PURPOSES = {
    "prioritization in the ClusterQueue": "InClusterQueue",
    "reclamation within the cohort": "InCohortReclamation",
    "Fair Sharing within the cohort": "InCohortFairSharing",
    "reclamation within the cohort while borrowing": "InCohortReclaimWhileBorrowing",
    "migration to more favorable resource flavor": "FlavorMigration",
    "workload slice aggregation": "WorkloadSliceReplaced",
}
_UNKNOWN = "UNKNOWN"
# Of client-go's recorder, once a component has emitted ten similar Events within ten minutes.
_COMBINED = "(combined from similar events): "


def facts_in(message: str) -> Facts:
    """Return what a message of a condition or an Event says."""
    if found := _PREEMPTED.search(message):
        purpose = _PURPOSE.search(message)
        return Facts(
            by_uid=_known(found[1]),
            by_job_uid=_known(found[2] or ""),
            why=_PURPOSES.get(purpose[1].strip(), "") if purpose else "",
            by_queue=_queue(_first(_OUR_PATH, message)),
            queue=_queue(_first(_THEIR_PATH, message)),
            by_priority=_first(_OUR_PRIORITY, message),
            priority=_first(_THEIR_PRIORITY, message),
        )
    if found := _RESERVED.match(message):
        return Facts(queue=found[1], waited=found[2] or "")
    if found := _ADMITTED.match(message):
        return Facts(queue=found[1], waited=found[2] or "")
    return Facts()


def victim_in(message: str) -> Facts:
    """Return what the Event `PreemptedWorkload` says; the victim is the other workload there."""
    found = _VICTIM.match(message)
    if found is None:
        return Facts()
    priorities = Facts(priority=_first(_OUR_PRIORITY, message), by_priority=_first(_THEIR_PRIORITY, message))
    return replace(priorities, by=found[1], by_uid=_known(found[2]), by_queue=_first(_IN_QUEUE, message))


def reason_and_cause(event: str) -> tuple[str, str]:
    """Split the reason of an eviction's Event (rules/07 §8).

    Example:
        >>> reason_and_cause("EvictedDueToDeactivatedDueToAdmissionCheck")
        ('Deactivated', 'AdmissionCheck')
    """
    reason, _, cause = event.removeprefix("EvictedDueTo").partition("DueTo")
    return reason, cause


def was_combined(message: str) -> tuple[str, bool]:
    """Return a message without the words by which a recorder marks that it stands for similar ones."""
    return message.removeprefix(_COMBINED), message.startswith(_COMBINED)


def _first(expression: re.Pattern[str], message: str) -> str:
    found = expression.search(message)
    return found[1] if found else ""


def _known(text: str) -> str:
    return "" if text == _UNKNOWN else text


def _queue(path: str) -> str:
    """Return the ClusterQueue at the end of a path."""
    return _known(path.rpartition("/")[2])
