"""Which Workloads a change affects."""

from __future__ import annotations

from kueuecore._json import JsonObject
from kueuecore.checks import WorkloadKey
from kueuecore.multikueue.affected_workloads import AffectedWorkloads
from kueuecore.multikueue.object_store import ObjectStore
from kueuecore.multikueue.work_queue import WorkQueue


def test_deleted_workloads_leave_nothing_behind() -> None:
    queue = WorkQueue[WorkloadKey]()
    found = AffectedWorkloads(ObjectStore(), {}, queue)
    reserved: JsonObject = {"conditions": [{"type": "QuotaReserved", "status": "True"}]}
    one: JsonObject = {"metadata": {"namespace": "ns", "name": "w"}, "status": reserved}
    found.note({}, one)
    found.by_worker(1)
    assert queue.take(1) == [("ns", "w")]
    found.note(one, None)
    found.by_worker(2)
    assert queue.take(2) == []
    assert not found._of_owner
