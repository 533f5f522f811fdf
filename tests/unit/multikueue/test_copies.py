"""When copies on workers are removed, follow their original, and report back (rules/06 §4.2 rules 2 to 5)."""

from __future__ import annotations

from kueuecore.writes import Verb
from tests.unit.multikueue.stage import MINUTE, POD_SETS, Stage, admitted, dispatched, elastic


def test_rule_2_a_finished_workload_is_removed_everywhere() -> None:
    stage = admitted()
    stage.condition("", "job", "Finished")
    stage.settle()
    assert stage.copies() == []
    assert stage.copies(kind="Job") == []


def test_rule_2_a_workload_without_quota_is_removed_everywhere() -> None:
    stage = dispatched()
    stage.condition("", "job", "QuotaReserved", status="False")
    stage.settle()
    assert stage.copies() == []


def test_rule_2_what_could_not_be_removed_because_a_worker_was_away_is_removed_later() -> None:
    stage = dispatched()
    stage.cut("west")
    stage.condition("", "job", "QuotaReserved", status="False")
    stage.settle()
    assert stage.copies() == ["west"]
    stage.mend("west")
    stage.wait(5 * MINUTE)
    assert stage.copies() == []


def test_rule_2_the_finalizer_of_a_copy_is_taken_off_before_it_is_deleted() -> None:
    stage = dispatched("west")
    finalizers = {"metadata": {"finalizers": ["kueue.x-k8s.io/resource-in-use", "other"]}}
    stage.api["west"].patch("Workload", "job", finalizers, namespace="ns")
    stage.settle()
    stage.done.clear()
    stage.condition("", "job", "QuotaReserved", status="False")
    stage.settle()
    first, second = stage.done
    assert first.verb is Verb.PATCH
    assert first.manifest["metadata"]["finalizers"] == ["other"]  # type: ignore[index,call-overload]
    assert second.verb is Verb.DELETE


# Rule 3: finished on a worker.


def test_rule_3_what_finished_on_a_worker_finishes_here_after_its_last_status() -> None:
    stage = admitted()
    stage.status("", "Job", "job", {"active": 1})
    stage.api[""].patch("Job", "job", {"spec": {"suspend": False}}, namespace="ns")
    ended = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}
    stage.status("west", "Job", "job", ended)
    stage.condition("west", "job", "Finished", reason="Succeeded", message="Job finished successfully")
    stage.done.clear()
    stage.settle()
    job = stage.get("Job", "job")
    assert job is not None
    assert job["status"] == ended
    patches = [number for number in stage.done if number.verb is Verb.PATCH]
    assert [patch.kind for patch in patches] == ["Job", "Workload"]
    workload = stage.get("Workload", "job")
    assert workload is not None
    (finished,) = [condition for condition in workload["status"]["conditions"] if condition["type"] == "Finished"]
    assert (finished["reason"], finished["message"]) == ("Succeeded", "Job finished successfully")
    assert stage.copies() == []


def test_rule_3_out_of_sync_on_the_worker_is_dispatched_anew() -> None:
    stage = admitted()
    stage.condition("west", "job", "Finished", reason="OutOfSync")
    stage.settle()
    reported = 'Remote workload on worker cluster "west" is out of sync with its user job, resetting for re-dispatch'
    assert stage.check_of() == ("Retry", f'{reported}, Previously: "Ready"')
    assert [(event.type, event.reason) for event in stage.events][-1] == ("Warning", "MultiKueue")


def test_rule_3_out_of_sync_never_finishes_anything_here() -> None:
    stage = dispatched("west")
    stage.condition("west", "job", "Finished", reason="OutOfSync")
    stage.settle()
    assert stage.check_of()[0] == "Pending"
    workload = stage.get("Workload", "job")
    assert workload is not None
    assert not [condition for condition in workload["status"]["conditions"] if condition["type"] == "Finished"]


# Rule 4: evicted.


def test_rule_4_what_a_worker_evicts_is_dispatched_anew() -> None:
    stage = admitted()
    stage.condition("west", "job", "Admitted", status="False")
    stage.condition("west", "job", "Evicted", reason="Preempted")
    stage.settle()
    reported = 'Workload evicted on worker cluster: "west", resetting for re-admission.'
    assert stage.check_of() == ("Retry", f'{reported} Previously: "Ready"')


def test_rule_4_while_the_manager_evicts_it_the_status_of_the_job_still_comes() -> None:
    stage = admitted()
    stage.status("", "Job", "job", {"active": 1})
    stage.condition("", "job", "Evicted", reason="Preempted")
    stage.condition("west", "job", "Evicted", reason="Deactivated")
    stage.api["west"].patch("Job", "job", {"spec": {"suspend": True}}, namespace="ns")
    stage.status("west", "Job", "job", {"failed": 1})
    stage.settle()
    job = stage.get("Job", "job")
    assert job is not None
    assert job["status"] == {"failed": 1}
    assert stage.copies() == ["west"]


# Rule 5: copies that are not what they should be.


def test_rule_5_a_copy_that_asks_for_something_else_is_removed_and_made_anew() -> None:
    stage = dispatched("west")
    stage.api["west"].patch("Workload", "job", {"spec": {"queueName": "other"}}, namespace="ns")
    stage.done.clear()
    stage.settle()
    assert [number.verb for number in stage.done] == [Verb.DELETE, Verb.CREATE]
    copy = stage.get("Workload", "job", cluster="west")
    assert copy is not None
    assert copy["spec"]["queueName"] == "lq"


def test_rule_5_another_priority_is_handed_on() -> None:
    stage = Stage("west")
    stage.job()
    reference = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "low"}
    stage.api[""].patch("Workload", "job", {"spec": {"priority": 1, "priorityClassRef": reference}}, namespace="ns")
    stage.settle()
    higher = {"spec": {"priority": 9, "priorityClassRef": {**reference, "name": "high"}}}
    stage.api[""].patch("Workload", "job", higher, namespace="ns")
    stage.done.clear()
    stage.settle()
    assert [number.verb for number in stage.done] == [Verb.PATCH]
    copy = stage.get("Workload", "job", cluster="west")
    assert copy is not None
    assert (copy["spec"]["priority"], copy["spec"]["priorityClassRef"]["name"]) == (9, "high")


def test_rule_5_fewer_pods_of_an_elastic_job_are_handed_on() -> None:
    stage = Stage("west")
    elastic(stage, "job")
    three = [{**POD_SETS[0], "count": 3}]
    stage.api[""].patch("Workload", "job", {"spec": {"podSets": three}}, namespace="ns")
    stage.settle()
    gates = {"spec": {"preemptionGates": [{"name": "of-the-worker"}]}}
    stage.api["west"].patch("Workload", "job", gates, namespace="ns")
    stage.api[""].patch("Workload", "job", {"spec": {"podSets": POD_SETS}}, namespace="ns")
    stage.done.clear()
    stage.settle()
    assert [number.verb for number in stage.done] == [Verb.PATCH]
    copy = stage.get("Workload", "job", cluster="west")
    assert copy is not None
    assert copy["spec"]["podSets"] == POD_SETS
    assert copy["spec"]["preemptionGates"] == [{"name": "of-the-worker"}]


def test_rule_5_gates_of_a_worker_make_no_difference() -> None:
    stage = dispatched("west")
    gates = {"spec": {"preemptionGates": [{"name": "of-the-worker"}]}}
    stage.api["west"].patch("Workload", "job", gates, namespace="ns")
    stage.done.clear()
    stage.settle()
    assert stage.done == []
