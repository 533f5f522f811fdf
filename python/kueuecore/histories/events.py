"""Finds the steps in Kubernetes' Events, of `v1` and of `events.k8s.io/v1`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from kueuecore._json import JsonObject, int_at, object_at, text_at
from kueuecore._text import counted
from kueuecore.histories.conditions import eviction, time_in
from kueuecore.histories.facts import Facts, Found
from kueuecore.histories.messages import facts_in, reason_and_cause, victim_in, was_combined
from kueuecore.histories.timeline import What

__all__ = ["WAITING_REASONS", "found_in_event", "steps_of_events"]

WAITING_REASONS = frozenset(
    (
        "",  # rules/03 §7.1
        "AdmissionGated",
        "DRAResourcesUnresolved",
        "ExceedsMaxQuota",
        "Inadmissible",
        "Misconfigured",
        "NoMatchingFlavor",
        "OnHold",
        "Pending",
        "PendingEvaluation",
        "Suspended",
        "TopologyPlacementFailed",
        "Waiting",
        "WaitingForPodsReady",
        "WaitingForPreemptedWorkloads",
        "WaitingForQuota",
    )
)
"""Why a workload has no quota, as reasons of conditions and Events (rules/05 §6.5, rules/07 §11)."""
_WHAT = {
    "QuotaReserved": What.QUOTA_RESERVED,
    "Admitted": What.ADMITTED,
    "Preempted": What.PREEMPTED,
    "PreemptedWorkload": What.PREEMPTS,
    "AdmissionCheckRejected": What.CHECK,
    "WorkloadSliceReplaced": What.FINISHED,
}
# About the job (rules/10 §4.7).
_OF_JOB = {
    "CreatedWorkload": What.CREATED,
    "Started": What.STARTED,
    "Stopped": What.STOPPED,
    "FinishedWorkload": What.FINISHED,
    "UpdatedAdmissionCheck": What.CHECK,
    "Deleted": What.DELETED,
}
# These name the Workload, of which a job may have several.
_NAMING = ("CreatedWorkload", "DeletedWorkload", "FinishedWorkload", "UpdatedWorkload")


@dataclass(frozen=True, slots=True)
class _Times:
    """When an Event happened.

    Args:
        first: The first time.
        last: The last time.
        count: How often.
        is_series: Whether later ones lost their messages, as in a series of `events.k8s.io`.
    """

    first: int
    last: int
    count: int
    is_series: bool


def steps_of_events(
    events: Iterable[JsonObject],
    *,
    key: str,
    uid: str = "",
    jobs: Collection[tuple[str, str]] = (),
    source: str = "event",
) -> tuple[list[Found], list[str]]:
    """Find what Events say about a workload.

    Args:
        events: The Events about it and about its jobs, and maybe others.
        key: The `namespace/name` of the Workload.
        uid: Its UID: Events about an earlier Workload of that name are left out.
        jobs: Kind and name of each of its jobs.
        source: What to call these sources: `event`, or `log`.

    Returns:
        The steps, and what is not recorded, in sentences.
    """
    found: list[Found] = []
    missing: list[str] = []
    n_earlier = 0
    for event in sorted(events, key=_version):
        about = object_at(event, "involvedObject") or object_at(event, "regarding")
        kind, is_of_job = text_at(about, "kind"), (text_at(about, "kind"), text_at(about, "name")) in jobs
        is_ours = kind == "Workload" and f"{text_at(about, 'namespace')}/{text_at(about, 'name')}" == key
        if not (is_ours or is_of_job):
            continue
        if is_ours and uid and text_at(about, "uid") not in ("", uid):
            n_earlier += 1
            continue
        reason, (message, is_combined) = text_at(event, "reason"), was_combined(_message(event))
        if reason in _NAMING and key not in message:
            continue
        times = _times(event)
        if times is None:
            missing.append(f"an Event {reason} has no time that can be read, and is left out")
            continue
        step = found_in_event(times.first, reason, message, is_of_job=not is_ours)
        place = _version(event)
        # Events about another object may overtake those about this one, and one that is counted has a new version.
        orders = ((f"{source} {kind}", place),) if place and times.count == 1 else ()
        step = replace(step, sources=(f"{source} {reason}".rstrip(),), orders=orders)
        found += _each(step, times, is_combined=is_combined)
        missing += _between(reason, times, is_combined=is_combined)
    if n_earlier:
        events_are = "Event is" if n_earlier == 1 else "Events are"
        missing.append(f"{n_earlier} {events_are} about an earlier Workload of this name, and left out")
    return found, missing


def found_in_event(at: int, reason: str, message: str, *, is_of_job: bool = False) -> Found:
    """Return the step that an Event reports."""
    if reason.startswith("EvictedDueTo"):
        why, cause = reason_and_cause(reason)
        return eviction(at, why, message, cause)
    what = _OF_JOB.get(reason, What.OTHER) if is_of_job else _WHAT.get(reason, What.OTHER)
    if not is_of_job and reason in WAITING_REASONS:
        what = What.WAITING
    facts = victim_in(message) if what is What.PREEMPTS else facts_in(message)
    if what is What.PREEMPTED:
        reason = facts.why or reason
    elif reason == "FinishedWorkload":
        reason = ""
    if what in (What.STARTED, What.STOPPED):
        facts = Facts()
    return Found(at=at, what=what, facts=facts, reason=reason, message=message)


def _each(step: Found, times: _Times, *, is_combined: bool) -> Iterator[Found]:
    """The first and the last time; why it waits is one step, however often it was said."""
    if times.count == 1:
        yield step
    elif step.what in (What.WAITING, What.OTHER):
        yield replace(step, count=times.count, until=times.last)
    else:
        # The message is that of the last if similar Events were combined, and that of the first in a series.
        bare = replace(step, facts=Facts(), message="")
        yield bare if is_combined else step
        yield replace(bare if times.is_series else step, at=times.last)


def _between(reason: str, times: _Times, *, is_combined: bool) -> Iterator[str]:
    if times.count > 2 and reason not in WAITING_REASONS:
        n_between = times.count - 2
        lost = "is one whose time is" if n_between == 1 else f"are {n_between} whose times are"
        yield f"between the first and the last of {counted(times.count, 'Event')} {reason} {lost} not recorded"


def _version(event: JsonObject) -> int:
    text = text_at(event, "metadata", "resourceVersion")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _message(event: JsonObject) -> str:
    return text_at(event, "message") or text_at(event, "note")


def _times(event: JsonObject) -> _Times | None:
    series = object_at(event, "series")
    first = _first(event, "firstTimestamp", "deprecatedFirstTimestamp", "eventTime")
    last = _first(event, "lastTimestamp", "deprecatedLastTimestamp") or time_in(series, "lastObservedTime")
    created = time_in(event, "metadata", "creationTimestamp")
    first = first if first is not None else last if last is not None else created
    if first is None:
        return None
    count = int_at(event, "count") or int_at(event, "deprecatedCount") or int_at(series, "count") or 1
    last = first if last is None or last < first else last
    return _Times(first, last, max(count, 1) if last > first else 1, bool(series))


def _first(event: JsonObject, *names: str) -> int | None:
    times = (time_in(event, name) for name in names)
    return next((time for time in times if time is not None), None)
