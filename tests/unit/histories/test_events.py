"""What Events say: of both APIs, counted, in series, combined, without a time, about others."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.histories import What, history_of
from kueuecore.histories.events import steps_of_events
from kueuecore.times import nanoseconds
from tests.unit.histories.recorded_objects import OTHER_UID, PREEMPTED, PRIORITIES, UID, at, event, new_event, workload

RESERVED = "Quota reserved in ClusterQueue a, wait time since queued was 9s"


def read(*events: dict[str, Any]) -> tuple[list[tuple[What, int | None, str]], list[str]]:
    found, missing = steps_of_events(events, key="lab/w", uid=UID, jobs=[("Job", "train")])
    return [(step.what, step.at, step.facts.queue) for step in found], missing


@pytest.mark.parametrize("made", [event, new_event])
def test_both_apis_say_the_same(made: Any) -> None:
    assert read(made("QuotaReserved", RESERVED, 9)) == ([(What.QUOTA_RESERVED, nanoseconds(at(9)), "a")], [])


def test_of_a_counted_event_the_first_and_the_last_time_are_known() -> None:
    reserved = event("QuotaReserved", RESERVED, 9, last=90, count=4)
    assert read(reserved) == (
        [(What.QUOTA_RESERVED, nanoseconds(at(9)), "a"), (What.QUOTA_RESERVED, nanoseconds(at(90)), "a")],
        ["between the first and the last of 4 Events QuotaReserved are 2 whose times are not recorded"],
    )
    assert read(event("QuotaReserved", RESERVED, 9, last=90, count=2))[1] == []


def test_a_series_keeps_the_words_of_the_first_only() -> None:
    reserved = new_event("QuotaReserved", RESERVED, 9, series=(3, 90))
    assert read(reserved) == (
        [(What.QUOTA_RESERVED, nanoseconds(at(9)), "a"), (What.QUOTA_RESERVED, nanoseconds(at(90)), "")],
        ["between the first and the last of 3 Events QuotaReserved is one whose time is not recorded"],
    )


def test_similar_events_that_were_combined_keep_the_words_of_the_last() -> None:
    combined = event("QuotaReserved", f"(combined from similar events): {RESERVED}", 9, last=90, count=2)
    assert read(combined)[0] == [
        (What.QUOTA_RESERVED, nanoseconds(at(9)), ""),
        (What.QUOTA_RESERVED, nanoseconds(at(90)), "a"),
    ]


@pytest.mark.parametrize("time", [None, "", "yesterday", 5])
def test_an_event_without_a_time_is_named_and_left_out(time: Any) -> None:
    timeless = {**event("Preempted", PREEMPTED, 9), "firstTimestamp": time, "lastTimestamp": time}
    assert read(timeless) == ([], ["an Event Preempted has no time that can be read, and is left out"])


def test_an_event_without_times_of_its_own_has_that_of_its_creation() -> None:
    created = event("Preempted", PREEMPTED, 9)
    created |= {"firstTimestamp": None, "lastTimestamp": None}
    created["metadata"]["creationTimestamp"] = at(11)
    assert [step[1] for step in read(created)[0]] == [nanoseconds(at(11))]


def test_events_about_an_earlier_workload_of_the_name_are_left_out() -> None:
    earlier = event("QuotaReserved", RESERVED, 1, uid="before")
    assert read(earlier) == ([], ["1 Event is about an earlier Workload of this name, and left out"])
    two = read(earlier, event("Admitted", "Admitted by ClusterQueue a", 1, uid="before"))[1]
    assert two == ["2 Events are about an earlier Workload of this name, and left out"]


def test_events_about_other_objects_and_other_workloads_of_the_job_do_not_count() -> None:
    others = [
        event("QuotaReserved", RESERVED, 1, name="v"),
        event("Killing", "Stopping container c", 1, kind="Pod"),
        event("CreatedWorkload", "Created Workload: lab/second", 1, kind="Job", name="train"),
        event("Started", "Admitted by clusterQueue a", 1, kind="Job", name="other"),
        {"kind": "Event"},
        {"kind": "Event", "involvedObject": "w"},
    ]
    assert read(*others) == ([], [])


def test_what_kueue_never_says_is_shown_as_it_is() -> None:
    timeline = history_of(workload(), events=[event("Surprised", "by\x1b[2J nothing", 5)])
    step = timeline.steps[-1]
    assert (step.what, step.sentence, step.rule) == (What.OTHER, "Surprised: by\x1b[2J nothing", "")


def test_a_preemptor_is_told_whom_it_preempted() -> None:
    message = f"Preempted workload lab/big (UID: {OTHER_UID}) in ClusterQueue b{PRIORITIES}"
    step = history_of(workload(), events=[event("PreemptedWorkload", message, 5)]).steps[-1]
    assert (step.what, step.sentence, step.by) == (What.PREEMPTS, "preempts lab/big in ClusterQueue b", "")


@pytest.mark.parametrize("message", ["", "Preempted to accommodate a workload (UID: ", "Preempted " * 200, "\udcff"])
def test_any_words_are_read(message: str) -> None:
    for reason in ("Preempted", "EvictedDueTo", "EvictedDueToPreempted", "PreemptedWorkload", "QuotaReserved", ""):
        assert len(read(event(reason, message, 5))[0]) == 1
