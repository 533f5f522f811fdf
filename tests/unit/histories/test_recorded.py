"""The history of a workload from its conditions, and from conditions and Events together."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.histories import Timeline, What, history_of
from kueuecore.times import nanoseconds
from tests.unit.histories.recorded_objects import (
    JOB_UID,
    OTHER_UID,
    PREEMPTED,
    PRIORITIES,
    admission,
    at,
    condition,
    event,
    new_event,
    preempted_at,
    workload,
)

NO_EVENTS = "no Events about it are known: conditions hold only the last change of each kind"


def told(timeline: Timeline) -> list[tuple[str, str, str]]:
    """When, by which rule, and what, of each step."""
    found = []
    for step in timeline.steps:
        time = step.at if step.at is not None else step.before
        assert time is not None
        seconds = (time - nanoseconds(at(0))) // 10**9
        found.append((f"{'' if step.at is not None else 'before '}{seconds}", step.rule, step.sentence))
    return found


def preemptor(**metadata: Any) -> dict[str, Any]:
    named = workload(name="urgent", uid=OTHER_UID)
    return {**named, "metadata": {**named["metadata"], **metadata}, "spec": {**named["spec"], "priority": 100}}


def test_conditions_alone_tell_the_last_of_each_kind() -> None:
    timeline = history_of(workload(*preempted_at(120, 150)), objects=[preemptor()])
    assert told(timeline) == [
        ("0", "10 §3", "created for Job lab/train, queued in LocalQueue lq with priority 0"),
        ("120", "04 §4.1", "preempted by lab/urgent: b takes back quota of its own that a has borrowed"),
        ("150", "04 §9", "its quota is free again"),
        ("150", "04 §9", "queued again at once, as a preempted workload is"),
    ]
    assert (timeline.stage, timeline.missing) == ("Pending", (NO_EVENTS,))
    preempted = timeline.steps[1]
    assert (preempted.by, preempted.reason, preempted.message) == ("lab/urgent", "InCohortReclamation", PREEMPTED)
    assert preempted.sources == ("condition Evicted", "condition Preempted")


def test_events_add_what_the_conditions_have_lost_and_the_same_step_stands_once() -> None:
    events = [
        event("CreatedWorkload", "Created Workload: lab/w", 0, kind="Job", name="train", uid="4a5b"),
        event("QuotaReserved", "Quota reserved in ClusterQueue a, wait time since queued was 9s", 9),
        event("Admitted", "Admitted by ClusterQueue a, wait time since reservation was 0s", 9),
        event("Started", "Admitted by clusterQueue a", 10, kind="Job", name="train", uid="4a5b"),
        # The recorder is a second late.
        event("EvictedDueToPreempted", PREEMPTED, 121),
        event("Preempted", PREEMPTED + PRIORITIES, 121),
        event("Stopped", PREEMPTED, 121, kind="Job", name="train", uid="4a5b"),
    ]
    timeline = history_of(workload(*preempted_at(120, 150)), events=events, objects=[preemptor()])
    assert [
        (text.split()[0], str(step.what)) for (text, _, _), step in zip(told(timeline), timeline.steps, strict=True)
    ] == [
        ("0", "Created"),
        ("9", "QuotaReserved"),
        ("9", "Admitted"),
        ("10", "JobStarted"),
        ("120", "Preempted"),
        ("121", "JobStopped"),
        ("150", "QuotaReleased"),
        ("150", "Requeued"),
    ]
    assert timeline.steps[1].sentence == "gets quota in ClusterQueue a, 9s after it was queued"
    assert timeline.steps[4].sources == (
        "condition Evicted",
        "condition Preempted",
        "event EvictedDueToPreempted",
        "event Preempted",
    )
    assert timeline.missing == ()


def test_two_evictions_a_second_apart_stay_two() -> None:
    first = PREEMPTED.replace(OTHER_UID, "ffff")
    events = [event("EvictedDueToPreempted", first, 119), event("EvictedDueToPreempted", PREEMPTED, 120)]
    timeline = history_of(workload(*preempted_at(120, 150)), events=events)
    assert timeline.count(What.PREEMPTED) == 2
    # The same preemptor twice: the time tells them apart.
    events = [event("EvictedDueToPreempted", PREEMPTED, 119), event("EvictedDueToPreempted", PREEMPTED, 120)]
    assert history_of(workload(*preempted_at(120, 150)), events=events).count(What.PREEMPTED) == 2


def test_a_whole_life_within_a_second_is_in_order() -> None:
    events = [
        event("QuotaReserved", "Quota reserved in ClusterQueue a, wait time since queued was 0s", 5, version=10),
        event("Admitted", "Admitted by ClusterQueue a, wait time since reservation was 0s", 5, version=11),
        event("EvictedDueToPreempted", PREEMPTED, 5, version=12),
        event("WaitingForQuota", "Workload no longer fits after processing another workload", 5, version=13),
    ]
    timeline = history_of(workload(*preempted_at(5, 5)), events=reversed(events))
    assert [step.what for step in timeline.steps] == [
        What.CREATED,
        What.QUOTA_RESERVED,
        What.ADMITTED,
        What.PREEMPTED,
        What.RELEASED,
        What.REQUEUED,
        What.WAITING,
    ]


def test_a_second_eviction_comes_before_what_follows_from_it() -> None:
    # That it was admitted again in between is no longer recorded.
    events = [event("EvictedDueToPreempted", PREEMPTED, 60), event("EvictedDueToPreempted", PREEMPTED, 120)]
    timeline = history_of(workload(*preempted_at(120, 120)), events=events)
    assert [step.what for step in timeline.steps] == [
        What.CREATED,
        What.PREEMPTED,
        What.PREEMPTED,
        What.RELEASED,
        What.REQUEUED,
    ]


def test_a_past_eviction_of_which_only_the_words_are_left_has_no_time() -> None:
    again = workload(
        condition("QuotaReserved", "True", "QuotaReserved", 200, "Quota reserved in ClusterQueue a"),
        condition("Admitted", "True", "Admitted", 200, "The workload is admitted"),
        condition("Evicted", "False", "QuotaReserved", 200, f"Previously: {PREEMPTED}"),
        condition("Preempted", "False", "QuotaReserved", 200, f"Previously: {PREEMPTED}"),
        condition("Requeued", "True", "Preempted", 150, PREEMPTED),
        admission=admission(),
    )
    timeline = history_of(again)
    assert told(timeline)[1:] == [
        ("150", "04 §9", "queued again at once, as a preempted workload is"),
        ("before 200", "04 §4.1", f"preempted by a workload that is gone (UID {OTHER_UID}): "
         "b takes back quota of its own that a has borrowed"),
        ("200", "05 §6.6", "gets quota in ClusterQueue a (main: cpu, memory on spot)"),
        ("200", "07 §1", "admitted: its job may start"),
    ]  # fmt: skip
    (gone,) = [step for step in timeline.steps if step.what is What.PREEMPTED]
    assert (gone.at, gone.before, gone.by) == (None, nanoseconds(at(200)), "")
    # An Event has the time.
    known = history_of(again, events=[event("EvictedDueToPreempted", PREEMPTED, 140)])
    assert [step.at for step in known.steps if step.what is What.PREEMPTED] == [nanoseconds(at(140))]


def test_a_second_eviction_does_not_move_the_time_of_requeued_which_was_true_before() -> None:
    conditions = preempted_at(120, 150)
    conditions[-1]["lastTransitionTime"] = at(40)
    steps = history_of(workload(*conditions)).steps
    assert [(step.what, step.at) for step in steps[1:]] == [
        (What.PREEMPTED, nanoseconds(at(120))),
        (What.RELEASED, nanoseconds(at(150))),
        (What.REQUEUED, nanoseconds(at(150))),
    ]


def test_evictions_that_were_counted_and_are_gone_are_named() -> None:
    counted = [{"reason": "Preempted", "underlyingCause": "", "count": 3}]
    counted.append({"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 1})
    timeline = history_of(
        workload(
            *preempted_at(120, 150), schedulingStats={"evictions": counted}, accumulatedPastExecutionTimeSeconds=340
        )
    )
    assert timeline.missing == (
        "evicted 1 time (PodsReadyTimeout), which is no longer recorded",
        "evicted 3 times (Preempted), of which 2 are no longer recorded",
        "it ran for 340 s in earlier admissions, which are no longer recorded",
        NO_EVENTS,
    )


def test_who_preempted_it_is_found_by_uid_by_its_job_or_not_at_all() -> None:
    victim = workload(*preempted_at(120, 150))

    def by(*objects: dict[str, Any]) -> tuple[str, str]:
        (step,) = [step for step in history_of(victim, objects=objects).steps if step.what is What.PREEMPTED]
        return step.by, step.sentence.partition(":")[0]

    assert by(preemptor()) == ("lab/urgent", "preempted by lab/urgent")
    owner = [{"kind": "Job", "name": "rush", "uid": JOB_UID}]
    gone = f"that is gone (UID {OTHER_UID})"
    assert by(preemptor(uid="new", ownerReferences=owner)) == ("", f"preempted by a Workload of Job lab/rush {gone}")
    job = {"kind": "Job", "metadata": {"namespace": "lab", "name": "rush", "uid": JOB_UID}}
    assert by(job) == ("", f"preempted by a Workload of Job lab/rush {gone}")
    assert by() == ("", f"preempted by a workload {gone}")
    # Kueue writes UNKNOWN if it does not know.
    victim = workload(condition("Preempted", "True", "InCohortReclamation", 9, PREEMPTED.replace(OTHER_UID, "UNKNOWN")))
    assert by(job) == ("", "preempted by a Workload of Job lab/rush")
    assert by() == ("", "preempted by another workload")


@pytest.mark.parametrize(
    ("reason", "purpose", "rule", "why"),
    [
        ("InClusterQueue", "prioritization in the ClusterQueue", "04 §2",
         "lab/urgent goes first in a: its priority is 100, that of this one 0"),
        ("InCohortReclamation", "reclamation within the cohort", "04 §4.1",
         "b takes back quota of its own that a has borrowed"),
        ("InCohortReclaimWhileBorrowing", "reclamation within the cohort while borrowing", "04 §4.1",
         "b may preempt even to borrow (borrowWithinCohort): the priority of lab/urgent is 100, that of this one 0"),
        ("InCohortFairSharing", "Fair Sharing within the cohort", "04 §5.4",
         "the shares of the cohort let b take from a (fair sharing)"),
    ],
)  # fmt: skip
def test_each_reason_to_give_way_has_its_rule(reason: str, purpose: str, rule: str, why: str) -> None:
    message = PREEMPTED.replace("reclamation within the cohort", purpose) + PRIORITIES
    # Without the condition, the purpose tells the reason.
    timeline = history_of(workload(), events=[event("Preempted", message, 9)], objects=[preemptor()])
    step = timeline.steps[-1]
    assert (step.reason, step.rule, step.sentence) == (reason, rule, f"preempted by lab/urgent: {why}")


def test_checks_pods_and_a_timeout_are_told_with_their_rules() -> None:
    timeout = "Exceeded the PodsReady timeout lab/w"
    timeline = history_of(
        workload(
            condition("QuotaReserved", "False", "PendingEvaluation", 90, timeout),
            condition("Admitted", "False", "NoReservation", 90, "The workload has no reservation"),
            condition("Evicted", "True", "PodsReadyTimeout", 80, timeout),
            condition("Requeued", "False", "PodsReadyTimeout", 90, timeout),
            admissionChecks=[
                {"name": "dws", "state": "Pending", "lastTransitionTime": at(80),
                 "message": "Reset to Pending after eviction. Previously: Ready"},
            ],
            requeueState={"count": 2, "requeueAt": at(210)},
        )
    )  # fmt: skip
    assert told(timeline)[1:] == [
        ("80", "07 §6", "evicted: its pods were not ready in time"),
        ("80", "07 §3", "admission check dws is Pending: Reset to Pending after eviction. Previously: Ready"),
        ("90", "04 §9", "its quota is free again"),
        ("90", "07 §6", "is not tried again before 2026-03-02T09:03:30Z, after 2 requeues"),
    ]
    assert "put back with a delay 2 times, of which only the last is recorded" in timeline.missing


def test_a_job_that_runs_and_ends() -> None:
    timeline = history_of(
        workload(
            condition("QuotaReserved", "True", "QuotaReserved", 3, "Quota reserved in ClusterQueue a"),
            condition("Admitted", "True", "Admitted", 7, "The workload is admitted"),
            condition("PodsReady", "True", "Recovered", 40, "All pods are ready"),
            condition("Finished", "True", "Failed", 99, "Job has reached the specified backoff limit"),
            condition("example.com/Seen", "True", "ByUs", 50, "seen"),
            admission=admission(),
            admissionChecks=[{"name": "dws", "state": "Ready", "lastTransitionTime": at(7), "message": "is there"}],
        ),
        objects=[{"kind": "LocalQueue", "metadata": {"namespace": "lab", "name": "lq"}, "spec": {"clusterQueue": "a"}}],
    )
    assert timeline.stage == "Finished"
    assert told(timeline) == [
        ("0", "10 §3", "created for Job lab/train, queued in LocalQueue lq of ClusterQueue a with priority 0"),
        ("3", "05 §6.6", "gets quota in ClusterQueue a (main: cpu, memory on spot)"),
        ("7", "07 §3", "admission check dws is Ready: is there"),
        ("7", "07 §1", "admitted: its job may start"),
        ("40", "07 §6", "all its pods are ready again"),
        ("50", "", "condition example.com/Seen is True: seen"),
        ("99", "07 §8", "its job has failed: Job has reached the specified backoff limit"),
    ]


@pytest.mark.parametrize(
    ("reason", "message", "rule", "sentence"),
    [
        ("DeactivatedDueToRequeuingLimitExceeded",
         "The workload is deactivated due to exceeding the maximum number of re-queuing retries",
         "07 §6", "deactivated: it was requeued too often"),
        ("Deactivated", "The workload is deactivated", "07 §9", "deactivated by somebody who set spec.active"),
    ],
)  # fmt: skip
def test_a_deactivation_names_its_cause(reason: str, message: str, rule: str, sentence: str) -> None:
    timeline = history_of(
        workload(condition("Evicted", "True", reason, 60, message)),
        events=[event(f"EvictedDueTo{reason}", message, 60)],
    )
    assert told(timeline)[1:] == [("60", rule, sentence)]


def test_why_it_waits_has_the_time_at_which_that_was_said() -> None:
    fits = "Workload no longer fits after processing another workload"
    quota = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor spot, 1 more needed"
    timeline = history_of(
        workload(condition("QuotaReserved", "False", "WaitingForQuota", 1, quota)),
        events=[
            event("WaitingForQuota", fits, 1),
            event("WaitingForQuota", quota, 30, last=90, count=7),
        ],
    )
    assert told(timeline)[1:] == [
        ("1", "05 §6.4", f"waits: {fits}"),
        ("30", "03 §7", f"waits: {quota} (7 times, until 2026-03-02T09:01:30Z)"),
    ]
    assert timeline.steps[2].sources == ("event WaitingForQuota", "condition QuotaReserved")
    assert new_event("WaitingForQuota", quota, 30)["note"] == quota
