"""The eleven worked cases of preemption (docs/sources.md D7), each with a drawing."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from kueuecore.engine import Engine
from kueuecore.objects import (
    ClusterQueuePreemption,
    Workload,
)
from tests.quotas import BORROW, HIGH, LOW, RECLAIM, WITHIN, Thing, admitted, at, job, queue, run, start, victims, world

# D7, the worked cases. One character of a drawing is 50m. Between the bars is the nominal quota of the queue: the digit
# of a job that uses it, or a dot where it is free or lent. Behind the second bar is what the queue borrows. An arrow is
# job-2, which comes last. job-0 and job-2 have high priority, job-1 has low.


@dataclass(frozen=True)
class Worked:
    drawing: str
    policy: ClusterQueuePreemption
    victim: str | None
    why: str


IN_QUEUE = "prioritization in the ClusterQueue"
RECLAMATION = "reclamation within the cohort"
WHILE_BORROWING = "reclamation within the cohort while borrowing"

WORKED = {
    # The queue could have 500 if only job-1 went, and job-1 is in the same queue.
    "w1": Worked(
        """
        cluster-queue |0000111111|  <- 2222222222
        cohort-queue  |....|
        """,
        WITHIN,
        "job-1",
        IN_QUEUE,
    ),
    # 200 of job-2 are nobody's business but the queue's: it fits without job-1, whatever job-0 does elsewhere.
    "w2": Worked(
        """
        cluster-queue |111111....|  <- 2222222222
        cohort-queue  |0000|
        """,
        WITHIN,
        "job-1",
        IN_QUEUE,
    ),
    # The only workload of lower priority is in the other queue.
    "w3": Worked(
        """
        cluster-queue |0000......|  <- 2222222222
        cohort-queue  |1111|11
        """,
        WITHIN,
        None,
        "insufficient unused quota for cpu in flavor default, 300m more needed",
    ),
    # 400 < 500: who needs more than the nominal quota may not preempt.
    "w4": Worked(
        """
        cluster-queue |111111..|  <- 2222222222
        cohort-queue  |0000|
        """,
        WITHIN,
        None,
        "insufficient unused quota for cpu in flavor default, 400m more needed",
    ),
    # 200 < 500, likewise.
    "w5": Worked(
        """
        cluster-queue |0000|111111  <- 2222222222
        cohort-queue  |..........|
        """,
        WITHIN,
        None,
        "insufficient unused quota for cpu in flavor default, 300m more needed",
    ),
    # 300 of the queue are lent to job-1: enough for job-2.
    "r1": Worked(
        """
        cluster-queue |0000......|  <- 2222
        cohort-queue  |1111|111111
        """,
        RECLAIM,
        "job-1",
        RECLAMATION,
    ),
    # job-1 is in the same queue, and reclaiming is about other queues.
    "r2": Worked(
        """
        cluster-queue |0000111111|1111  <- 2222
        cohort-queue  |....|
        """,
        RECLAIM,
        None,
        "insufficient unused quota for cpu in flavor default, 200m more needed",
    ),
    # Only 300 are lent, and job-2 needs 500 (see below for what happens when job-0 ends).
    "r3": Worked(
        """
        cluster-queue |0000......|  <- 2222222222
        cohort-queue  |1111|111111
        """,
        RECLAIM,
        None,
        "insufficient unused quota for cpu in flavor default, 500m more needed",
    ),
    # As r3, but the queue may preempt while it borrows the other 200 itself.
    "b1": Worked(
        """
        cluster-queue |0000......|  <- 2222222222
        cohort-queue  |1111|111111
        """,
        BORROW,
        "job-1",
        WHILE_BORROWING,
    ),
    # job-2 needs more than the nominal 400 by itself.
    "b2": Worked(
        """
        cluster-queue |0000....|  <- 2222222222
        cohort-queue  |111111|1111
        """,
        BORROW,
        "job-1",
        WHILE_BORROWING,
    ),
    # ... for which reclaimWithinCohort alone is not enough.
    "b2 without borrowing": Worked(
        """
        cluster-queue |0000....|  <- 2222222222
        cohort-queue  |111111|1111
        """,
        RECLAIM,
        None,
        "insufficient unused quota for cpu in flavor default, 500m more needed",
    ),
    # job-1 borrows nothing, so nothing of it can be reclaimed.
    "b3": Worked(
        """
        cluster-queue |0000......|  <- 2222222222
        cohort-queue  |1111111111|
        """,
        BORROW,
        None,
        "insufficient unused quota for cpu in flavor default, 200m more needed",
    ),
}

ROW = re.compile(r"^\s*(?P<name>[\w-]+) +\|(?P<own>[01.]*)\|(?P<borrowed>[01]*)(?: *<- (?P<arriving>2+))?\s*$")


def draw(case: Worked) -> tuple[Engine, Workload]:
    """The world of a drawing with job-0 and job-1 running, and job-2."""
    rows = [match for line in case.drawing.strip().splitlines() if (match := ROW.match(line))]
    queues: list[Thing] = []
    jobs: dict[str, Workload] = {}
    for row in rows:
        name, used = row["name"], row["own"] + row["borrowed"] + (row["arriving"] or "")
        policy = case.policy if name == "cluster-queue" else None
        queues += queue(name, {"default": f"{50 * len(row['own'])}m"}, cohort="team", preemption=policy)
        for digit in sorted(set(used) - {"."}):
            cpu, priority = f"{50 * used.count(digit)}m", LOW if digit == "1" else HIGH
            jobs[digit] = job(f"job-{digit}", cpu, name, priority=priority, created=int(digit))
    engine = world(queues)
    start(engine, jobs["0"], jobs["1"])
    borrowed = {row.name: row.borrowed for row in engine.quota() if row.kind == "ClusterQueue"}
    for row in rows:
        drawn = 50 * len(row["borrowed"])
        assert borrowed[row["name"]] == (f"{drawn}m" if drawn else "0")
    return engine, jobs["2"]


@pytest.mark.parametrize("name", WORKED)
def test_each_worked_case_preempts_the_documented_victims(name: str) -> None:
    case = WORKED[name]
    engine, job_2 = draw(case)
    decision = run(engine, job_2, second=3)
    if case.victim is None:
        assert victims(decision) == {}
        (pending,) = decision.pending
        assert pending.name == "job-2"
        assert pending.message == f"couldn't assign flavors to pod set main: {case.why}"
        return
    (preemption,) = decision.preemptions
    assert (preemption.name, preemption.preemptor) == (case.victim, "ns/job-2")
    assert f"due to {case.why};" in preemption.message
    # Its quota is free when its job has stopped, and not before.
    assert admitted(engine.cycle(at(4))) == []
    engine.release(case.victim, namespace="ns", now=at(5))
    assert admitted(engine.cycle(at(6))) == ["job-2"]


def test_the_quota_comes_back_when_the_other_job_ends() -> None:
    """Of the 500 of the queue 200 were used by job-0; when it ends, the 300 that are lent are all that is missing.

    cluster-queue |..........|  <- 2222222222
    cohort-queue  |1111|111111
    """
    engine, job_2 = draw(WORKED["r3"])
    assert victims(run(engine, job_2, second=3)) == {}
    engine.finish("job-0", namespace="ns", now=at(4))
    assert victims(engine.cycle(at(5))) == {"job-1": "InCohortReclamation"}
