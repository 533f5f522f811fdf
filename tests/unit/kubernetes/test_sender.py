"""The work queue: order in a lane, pauses, failures, and its end."""

from __future__ import annotations

import threading
import time
from functools import partial

from kueuecore.kubernetes.sender import Sender, Stream


def test_tasks_of_a_lane_run_one_after_the_other_in_their_order() -> None:
    done: list[int] = []
    running = threading.Semaphore(1)

    def task(number: int) -> None:
        assert running.acquire(blocking=False)
        done.append(number)
        running.release()

    failures: list[BaseException] = []
    sender = Sender("test", n_threads=8, failed=failures.append)
    for number in range(200):
        sender.submit("lane", partial(task, number))
    assert sender.close(seconds=10)
    assert (done, failures) == ([*range(200)], [])


def test_tasks_of_other_lanes_go_on_while_one_waits() -> None:
    done: list[str] = []
    attempts = iter([60.0, None])

    def again() -> float | None:
        done.append("again")
        return next(attempts)

    other = threading.Event()
    sender = Sender("test", n_threads=1, failed=print)
    sender.submit("a", again)
    sender.submit("a", lambda: done.append("behind"))
    sender.submit("b", other.set)
    assert other.wait(5)
    assert (done, sender.n_tasks) == (["again"], 2)


def test_a_task_that_asks_for_a_pause_is_attempted_again_before_those_behind_it() -> None:
    done: list[str] = []
    pauses = iter([0.01, 0.01, None])

    def again() -> float | None:
        done.append("again")
        return next(pauses)

    over = threading.Event()
    sender = Sender("test", n_threads=4, failed=print)
    sender.submit("a", again)
    sender.submit("a", lambda: done.append("behind"))
    sender.submit("a", over.set)
    assert over.wait(5)
    assert done == ["again", "again", "again", "behind"]


def test_a_task_that_raises_is_reported_and_dropped() -> None:
    def broken() -> None:
        raise ZeroDivisionError

    failures: list[BaseException] = []
    done: list[str] = []
    sender = Sender("test", n_threads=1, failed=failures.append)
    sender.submit("a", broken)
    sender.submit("a", lambda: done.append("behind"))
    assert sender.close(seconds=5)
    assert ([type(failure) for failure in failures], done) == ([ZeroDivisionError], ["behind"])


def test_the_end_gives_up_what_has_to_wait() -> None:
    sender = Sender("test", n_threads=1, failed=print)
    sender.submit("a", lambda: 3600.0)
    began = time.monotonic()
    while sender.n_tasks and time.monotonic() - began < 0.05:
        time.sleep(0.001)
    assert not sender.close(seconds=0.05)


def test_no_stream_waits_behind_all_of_another() -> None:
    done: list[str] = []
    begun, goes_on = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        goes_on.wait(5)

    sender = Sender("test", n_threads=1, failed=print)
    sender.submit("first", first, Stream.WORKLOADS)
    assert begun.wait(5)
    for number in range(20):
        sender.submit(f"w{number}", partial(done.append, "workload"), Stream.WORKLOADS)
        sender.submit(f"o{number}", partial(done.append, "object"), Stream.OBJECTS)
    sender.submit("j", partial(done.append, "job"), Stream.JOBS)
    assert (sender.n_of(Stream.WORKLOADS), sender.n_of(Stream.JOBS)) == (21, 1)
    goes_on.set()
    assert sender.close(seconds=10)
    assert done.index("job") <= 2
    assert done.index("object") <= 4
    assert done[:12].count("workload") > done[:12].count("object") > 1
    assert sender.n_of(Stream.WORKLOADS) == 0
