"""A cluster in virtual time, step by step."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import ManifestError
from kueuecore.errors import UnknownObjectError
from kueuecore.simulation import Happening, JobPlan, Operation, RunEnding, VirtualCluster
from kueuecore.times import SECOND_NS, nanoseconds
from tests.unit.test_simulation import NOW, QUEUES, workload

START = nanoseconds(NOW)


def cluster(**options: Any) -> VirtualCluster:
    return VirtualCluster(QUEUES, now=NOW, **options)


def reported(steps: Any) -> list[tuple[float, str, str]]:
    return [((step.time - START) / SECOND_NS, step.kind.value, step.key) for step in steps]


def test_time_advances_only_as_far_as_asked() -> None:
    here = cluster()
    assert here.submit(workload("a"), JobPlan(run_seconds=60)) == ("ns/a",)
    assert here.next_event_time == START
    assert reported(here.advance(START + 59 * SECOND_NS)) == [(0, "Admitted", "ns/a")]
    assert (here.now, here.is_running("a", namespace="ns")) == (START + 59 * SECOND_NS, True)
    assert here.next_event_time == START + 60 * SECOND_NS
    assert reported(here.advance()) == [(60, "Finished", "ns/a")]
    assert [here.next_event_time] == [None]
    assert not here.step()


def test_outside_events_happen_now() -> None:
    here = cluster()
    here.advance(START + 10 * SECOND_NS)
    here.submit(workload("a"), now=START + 5 * SECOND_NS)
    here.advance()
    here.evict("a", namespace="ns", reason="NodeFailures", now=START + 20 * SECOND_NS)
    here.advance()
    assert here.finish("a", namespace="ns", now=START + 30 * SECOND_NS)
    assert not here.finish("a", namespace="ns")
    assert here.delete("Workload", "a", namespace="ns")
    assert not here.delete("Workload", "a", namespace="ns")
    assert reported(here.steps) == [
        (10, "Created", "ns/a"),
        (10, "Admitted", "ns/a"),
        (20, "Stopped", "ns/a"),
        (20, "Admitted", "ns/a"),
        (30, "Finished", "ns/a"),
        (30, "Deleted", "ns/a"),
    ]


def test_the_job_of_an_evicted_workload_takes_its_time_to_stop() -> None:
    here = cluster(eviction_seconds=7)
    here.submit(workload("a"))
    here.advance()
    here.evict("a", namespace="ns", reason="Preempted", now=START + 20 * SECOND_NS)
    assert reported(here.advance()) == [(27, "Stopped", "ns/a"), (27, "Admitted", "ns/a")]


def test_several_clusters_can_share_one_timeline() -> None:
    here, there = cluster(), cluster()
    here.submit(workload("a"), JobPlan(run_seconds=10))
    log = []
    while True:
        times = [(time, n) for n, entry in enumerate((here, there)) if (time := entry.next_event_time) is not None]
        if not times:
            break
        _, n = min(times)
        first = len((here, there)[n].steps)
        (here, there)[n].step()
        for step in (here, there)[n].steps[first:]:
            log.append((n, *reported([step])[0]))
            if n == 0 and step.kind.value == "Finished":
                there.submit(workload("b"), JobPlan(run_seconds=5), now=step.time)
    assert log == [
        (0, 0, "Admitted", "ns/a"),
        (0, 10, "Finished", "ns/a"),
        (1, 10, "Admitted", "ns/b"),
        (1, 15, "Finished", "ns/b"),
    ]


def test_objects_can_be_asked_for() -> None:
    here = cluster()
    here.submit(workload("a"))
    here.advance()
    found: Any = here.workload("a", namespace="ns")
    assert found["metadata"]["creationTimestamp"] == NOW
    assert {condition["type"] for condition in found["status"]["conditions"]} == {"QuotaReserved", "Admitted"}
    assert here.object("Workload", "a", namespace="ns") == found
    assert here.object("Workload", "x", namespace="ns") is None
    assert here.object("ClusterQueue", "cluster-queue") is not None
    with pytest.raises(UnknownObjectError):
        here.workload("x", namespace="ns")


def test_others_may_write_to_a_status() -> None:
    here = cluster()
    here.submit(workload("a"))
    here.advance()
    here.write_status("a", namespace="ns", patch={"reclaimablePods": [{"name": "main", "count": 1}]})
    assert here.engine.quota()[0].usage == "0"
    name = "accumulatedPastExecutionTimeSeconds"
    here.write_status("a", namespace="ns", patch={name: 5})
    assert here.engine.workload("a", namespace="ns").status[name] == 5
    here.write_status("a", namespace="ns", patch={name: None})
    assert name not in here.engine.workload("a", namespace="ns").status
    with pytest.raises(ManifestError, match="cannot be removed"):
        here.write_status("a", namespace="ns", patch={"reclaimablePods": None})


def test_messages_are_kept_if_they_are_wanted() -> None:
    here = cluster(messages=True)
    here.submit(workload("a"))
    here.advance()
    assert [event.reason for _, event in here.events] == ["QuotaReserved", "Admitted"]
    assert cluster().events == ()


def test_no_cycle_runs_beyond_the_limit() -> None:
    here = cluster(max_cycles=1)
    here.schedule(Happening(at=at, op=Operation.CREATE, object=workload(f"w{at}", cpu="1")) for at in (0, 5))
    here.advance()
    assert (here.is_cut, here.run().ending, here.run().n_cycles) == (True, RunEnding.CYCLE_LIMIT, 1)
    assert here.next_event_time is None


def test_a_job_that_gets_no_workload_is_refused_with_the_reason() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    spec = {"template": template}
    job: Any = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "ns", "name": "a"}, "spec": spec}
    with pytest.raises(ManifestError, match='Job "ns/a": it has no label kueue'):
        cluster().submit(job)


@pytest.mark.parametrize(
    ("event", "error"),
    [
        ({"at": 1, "op": "finish", "key": "w"}, "finish or delete with the key"),
        ({"at": 1, "op": "create", "key": "ns/w"}, "create or update with an object"),
        ({"at": 1, "op": "stop", "key": "ns/w"}, "op: Invalid value: must be create or update"),
        ({"at": 1, "op": "finish", "key": "ns/w", "runFor": 1}, "runFor"),
        ({"op": "finish", "key": "ns/w"}, "at"),
    ],
)
def test_odd_events_are_refused(event: dict[str, Any], error: str) -> None:
    here = cluster()
    with pytest.raises(ManifestError, match=error):
        here.schedule([event])
    assert here.next_event_time is None


def test_wrong_options_are_refused() -> None:
    with pytest.raises(TypeError, match="max_cycles must be a number of cycles or None, not str"):
        cluster(max_cycles="1")
    with pytest.raises(ValueError, match="eviction_seconds is -1"):
        cluster(eviction_seconds=-1)
    with pytest.raises(ManifestError):
        cluster().apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: A_B}}")
    wrong: Any = "soon"
    with pytest.raises(TypeError, match="run_seconds must be a number of seconds, not str"):
        cluster().submit(workload("a"), JobPlan(run_seconds=wrong))
