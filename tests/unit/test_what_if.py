"""`Engine.what_if`: what would become of a workload, without changing anything."""

from __future__ import annotations

import pytest

from kueuecore import Engine, ManifestError, Outcome
from kueuecore.objects import Workload
from tests.quotas import HIGH, LOW, WITHIN, at, job, queue, run, start, world

QUEUE = "cluster-queue"


def _world() -> Engine:
    """A ClusterQueue of 500m, of which a job of low priority uses 300m."""
    engine = world(queue(QUEUE, {"default": "500m"}, preemption=WITHIN))
    start(engine, job("a", "300m", QUEUE, priority=LOW))
    return engine


def _asked(engine: Engine, workload: Workload) -> tuple[str, list[str], int]:
    def state() -> object:
        return engine.workloads(), engine.quota(), engine.pending(QUEUE), engine.now

    before = state()
    answer = engine.what_if(workload, now=at(99))
    assert state() == before
    return answer.outcome.value, [victim.name for victim in answer.preemptions], answer.n_ahead


def test_says_whether_a_workload_fits_preempts_or_waits() -> None:
    engine = _world()
    assert _asked(engine, job("b", "200m", QUEUE)) == ("Fits", [], 0)
    assert _asked(engine, job("b", "300m", QUEUE, priority=HIGH)) == ("Preempts", ["a"], 0)
    assert _asked(engine, job("b", "300m", QUEUE)) == ("Waits", [], 0)


def test_says_the_same_as_the_cycle_that_follows() -> None:
    engine = _world()
    asked = engine.what_if(job("b", "300m", QUEUE), now=at(9))
    (reported,) = run(engine, job("b", "300m", QUEUE), second=9).pending
    assert (asked.reason, asked.message, asked.cluster_queue) == (
        reported.reason,
        reported.message,
        reported.cluster_queue,
    )


def test_anything_but_a_new_workload_is_refused() -> None:
    engine = _world()
    with pytest.raises(ValueError, match="ns/a exists: ask about one that is not there yet"):
        engine.what_if(job("a", "1m", QUEUE))
    with pytest.raises(ValueError, match="give one object, a Workload"):
        engine.what_if({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
    with pytest.raises(ManifestError, match=r"spec\.priority"):
        engine.what_if({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "spec": {"priority": "much"}})
    assert engine.what_if(job("b", "900m", QUEUE)).outcome is Outcome.WAITS
