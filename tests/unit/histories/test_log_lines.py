"""A log of `kueuecore serve`: its Events, its other lines, and what is no log."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kueuecore.errors import ManifestError, ObjectRef
from kueuecore.histories import What, history_of, read_log
from kueuecore.times import nanoseconds
from tests.unit.histories.recorded_objects import OTHER_UID, PREEMPTED, UID, at, event, preempted_at, workload

WORKLOAD = 'Workload "lab/w"'


def line(message: str, second: int, **fields: Any) -> str:
    head = {"time": at(second).replace("Z", ".250Z"), "level": "info", "logger": "kueuecore.kubernetes"}
    return json.dumps({**head, "message": message, **fields})


def event_line(reason: str, note: str, second: int, about: str = WORKLOAD, uid: str = UID) -> str:
    return line("event", second, object=about, uid=uid, type="Normal", reason=reason, note=note)


def test_the_events_of_a_log_outlive_those_of_the_cluster() -> None:
    log = "\n".join(
        [
            line("listens", 0, metrics=8080),
            event_line("QuotaReserved", "Quota reserved in ClusterQueue a, wait time since queued was 4s", 4),
            event_line("QuotaReserved", "Quota reserved in ClusterQueue b", 5, about='Workload "lab/other"'),
            event_line("EvictedDueToPreempted", PREEMPTED, 120),
            event_line("Stopped", PREEMPTED, 121, about='Job "lab/train"', uid="4a5b"),
        ]
    )
    timeline = history_of(workload(*preempted_at(120, 150)), log=read_log(log))
    assert [(step.what, step.at) for step in timeline.steps[:4]] == [
        (What.CREATED, nanoseconds(at(0))),
        (What.QUOTA_RESERVED, nanoseconds(at(4))),
        (What.PREEMPTED, nanoseconds(at(120))),
        (What.STOPPED, nanoseconds(at(121))),
    ]
    assert timeline.steps[2].sources == ("condition Evicted", "condition Preempted", "log EvictedDueToPreempted")
    assert timeline.missing == ()


def test_a_log_has_the_name_of_a_preemptor_that_is_gone() -> None:
    log = read_log(event_line("Admitted", "Admitted by ClusterQueue b", 1, about='Workload "lab/gone"', uid=OTHER_UID))
    (step,) = [step for step in history_of(workload(*preempted_at(9, 9)), log=log).steps if step.what is What.PREEMPTED]
    assert step.by == "lab/gone"


def test_an_event_and_its_line_are_one_step() -> None:
    log = read_log(event_line("EvictedDueToPreempted", PREEMPTED, 60))
    timeline = history_of(workload(), events=[event("EvictedDueToPreempted", PREEMPTED, 61)], log=log)
    (step,) = timeline.steps[1:]
    assert step.sources == ("event EvictedDueToPreempted", "log EvictedDueToPreempted")


def test_lines_about_its_writes_its_job_and_other_decisions_are_steps_too() -> None:
    lines = [
        line("write not accepted", 3, object=WORKLOAD, error="the object has been modified"),
        line("job waits", 4, job='Job "lab/train"', **{"for": 'PriorityClass "high" not found'}),
        line("would decide otherwise", 5, workload="lab/w", kueue="pending: no", here="admitted: in a"),
        line("not taken in", 6, problem=f"{WORKLOAD}: spec.podSets: Required value"),
        line("not taken in", 7, problem='Workload "lab/w2": spec.podSets: Required value'),
        line("write not accepted", 8, object='Workload "lab/v"', error="no"),
    ]
    steps = history_of(workload(), log=read_log("\n".join(lines).encode())).steps[1:]
    assert [(step.sentence, step.sources) for step in steps] == [
        (f"write not accepted: object: {WORKLOAD}; error: the object has been modified", ("log line 1",)),
        ('waits: PriorityClass "high" not found', ("log line 2",)),
        ("would decide otherwise: workload: lab/w; kueue: pending: no; here: admitted: in a", ("log line 3",)),
        (f"not taken in: problem: {WORKLOAD}: spec.podSets: Required value", ("log line 4",)),
    ]


def test_lines_of_others_and_a_line_that_was_cut_off_are_left_out() -> None:
    text = "\n".join(
        ["usage: kueuecore serve", '["a"]', line("leads", 1), "{}", '{"time": 5, "message": "x"}', '{"time": "20']
    )
    (found,) = read_log(text)
    assert (found.message, found.number, found.level, found.at) == (
        "leads",
        3,
        "info",
        nanoseconds(at(1)) + 250_000_000,
    )


@pytest.mark.parametrize("text", ["hello", "apiVersion: v1\nkind: List", "{}", '{"a": 1}\n{"b": 2}', "[" * 100_000])
def test_what_is_no_log_is_refused(text: str) -> None:
    with pytest.raises(ManifestError) as raised:
        read_log(text, file="serve.log")
    assert str(raised.value.problems[0]) == (
        "serve.log: this is no log of `kueuecore serve`; "
        "give what it writes to standard error: JSON objects with `time` and `message`, one a line"
    )


def test_an_empty_log_says_nothing() -> None:
    assert read_log("") == ()
    assert str(ObjectRef("Workload", "w", "lab")) == WORKLOAD
