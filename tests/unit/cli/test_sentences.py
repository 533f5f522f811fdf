"""Why somebody has to give way, in a sentence."""

from __future__ import annotations

import pytest

from kueuecore import Configuration, Engine
from kueuecore.cli.sentences import why_preempted
from kueuecore.objects import ClusterQueuePreemption
from kueuecore.states import WorkloadState
from tests.quotas import BORROW, FAIR, HIGH, LOW, NEWER, RECLAIM_ANY, WITHIN, job, queue, run, start, world

SENTENCES = {
    "InClusterQueue": "ns/new goes first in ours: its priority is 100, that of ns/old 0",
    "InCohortReclamation": "ours takes back quota of its own that theirs has borrowed",
    "InCohortReclaimWhileBorrowing": "ours may preempt even to borrow (borrowWithinCohort): "
    "the priority of ns/new is 100, that of ns/old 0",
    "InCohortFairSharing": "the shares of the cohort let ours take from theirs (fair sharing)",
}


def _told(engine: Engine, old: str, priority: int, cpu: str) -> tuple[str, str]:
    start(engine, job("old", "400m", old, priority=LOW))
    (preemption,) = run(engine, job("new", cpu, "ours", priority=priority), second=9).preemptions

    def state(name: str) -> WorkloadState:
        return engine.workload(name, namespace="ns")

    return preemption.reason, why_preempted(preemption, state("old"), state("new"))


def _cohort(
    policy: ClusterQueuePreemption, ours: str, theirs: str, configuration: Configuration | None = None
) -> Engine:
    queues = queue("ours", {"f": ours}, cohort="all", preemption=policy), queue("theirs", {"f": theirs}, cohort="all")
    return world(*queues, configuration=configuration)


@pytest.mark.parametrize("reason", SENTENCES)
def test_every_preemption_reason_has_a_sentence(reason: str) -> None:
    any_reclaim = ClusterQueuePreemption(reclaim_within_cohort=RECLAIM_ANY)
    match reason:
        case "InClusterQueue":
            reported = _told(world(queue("ours", {"f": "500m"}, preemption=WITHIN)), "ours", HIGH, "400m")
        case "InCohortReclamation":
            reported = _told(_cohort(any_reclaim, "400m", "0"), "theirs", LOW, "400m")
        case "InCohortReclaimWhileBorrowing":
            reported = _told(_cohort(BORROW, "300m", "200m"), "theirs", HIGH, "400m")
        case _:
            reported = _told(_cohort(any_reclaim, "300m", "100m", Configuration.parse(FAIR)), "theirs", LOW, "350m")
    assert reported == (reason, SENTENCES[reason])


def test_among_equal_priorities_the_older_goes_first() -> None:
    engine = world(queue("ours", {"f": "500m"}, preemption=ClusterQueuePreemption(within_cluster_queue=NEWER)))
    start(engine, job("old", "400m", "ours", created=30))
    (preemption,) = run(engine, job("new", "400m", "ours", created=1), second=9).preemptions
    states = engine.workload("old", namespace="ns"), engine.workload("new", namespace="ns")
    assert (
        why_preempted(preemption, *states) == "ns/new goes first in ours: among equal priorities it has waited longer"
    )
