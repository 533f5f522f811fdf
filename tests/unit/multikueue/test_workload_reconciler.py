"""What a manager does about a Workload and its copies: the rules of rules/06 §4.1 to §4.6, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.multikueue import MANAGER, AllAtOnce, Create, Delete, Dispatcher, Incremental, MultiKueueSettings, Patch
from kueuecore.webhooks import admit
from tests.unit.multikueue.stage import MINUTE, POD_SETS, SECOND, START, Stage

OUR_LABEL = {"kueue.x-k8s.io/multikueue-origin": "multikueue"}


def dispatched(*clusters: str, **options: Any) -> Stage:
    """A workload with a copy on each worker."""
    stage = Stage(*(clusters or ("west", "east")), **options)
    stage.job()
    stage.settle()
    return stage


def admitted(on: str = "west", **options: Any) -> Stage:
    """A workload that a worker has won."""
    stage = dispatched(**options)
    stage.condition(on, "job", "QuotaReserved")
    stage.condition(on, "job", "Admitted")
    stage.settle()
    assert stage.check_of() == ("Ready", f'The workload was admitted on "{on}"')
    return stage


# §4.1: what is reconciled, and what is rejected.


def test_a_workload_without_a_check_of_multikueue_is_left_alone() -> None:
    stage = Stage("west")
    stage.create("Workload", "w", {"queueName": "lq", "podSets": POD_SETS}, namespace="ns")
    stage.condition("", "w", "QuotaReserved")
    stage.done.clear()
    stage.settle()
    assert stage.done == []


def test_a_workload_that_nobody_owns_is_rejected() -> None:
    stage = Stage("west")
    stage.workload("w", None)
    stage.settle()
    assert stage.check_of("w") == ("Rejected", 'No multikueue adapter found, Previously: "Pending"')


def test_a_workload_of_a_kind_that_is_not_delegated_is_rejected() -> None:
    stage = Stage("west")
    owner = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": "s", "uid": "1"}
    stage.workload("w", {**owner, "controller": True})
    stage.settle()
    gvk = "sparkoperator.k8s.io/v1beta2, Kind=SparkApplication"
    message = f'No multikueue adapter found for owner kind "{gvk}", Previously: "Pending"'
    assert stage.check_of("w") == ("Rejected", message)


def test_a_job_that_somebody_else_manages_is_rejected() -> None:
    stage = Stage("west")
    stage.job(managedBy="example.com/other")
    stage.settle()
    expected = 'Expecting spec.managedBy to be "kueue.x-k8s.io/multikueue" not "example.com/other"'
    message = f'The owner is not managed by Kueue: {expected}, Previously: "Pending"'
    assert stage.check_of() == ("Rejected", message)
    assert stage.copies() == []


def test_what_was_rejected_stays_as_it_is() -> None:
    stage = dispatched()
    stage.check("job", "Rejected")
    stage.settle()
    assert stage.copies() == ["west", "east"]


def test_a_deleted_workload_is_removed_from_every_worker() -> None:
    stage = admitted()
    stage.delete("Job", "job")
    stage.delete("Workload", "job")
    stage.settle()
    assert stage.copies() == []
    assert stage.copies(kind="Job") == []


def test_a_check_whose_config_has_gone_is_told_and_tried_again() -> None:
    stage = Stage("west")
    stage.api[""].delete("MultiKueueConfig", "config")
    stage.job()
    stage.settle()
    assert stage.problems[0] == 'admission check "ac": MultiKueueConfig.kueue.x-k8s.io "config" not found'
    assert stage.copies() == []


# §4.2 rule 1: elastic jobs.


def elastic(stage: Stage, name: str, **annotations: str) -> None:
    job = stage.job(name)
    marked = {"kueue.x-k8s.io/elastic-job": "true", **annotations}
    stage.api[""].patch("Job", name, {"metadata": {"annotations": marked}}, namespace=job["metadata"]["namespace"])
    stage.api[""].patch("Workload", name, {"metadata": {"annotations": marked}}, namespace="ns")


def test_rule_1_the_copy_of_a_replaced_slice_is_left_alone() -> None:
    stage = Stage("west")
    elastic(stage, "job")
    stage.settle()
    stage.condition("", "job", "Finished", reason="WorkloadSliceReplaced")
    stage.settle()
    assert stage.copies() == ["west"]


def test_rule_1_a_slice_that_waits_to_replace_another_has_its_copies_left_alone() -> None:
    stage = Stage("west")
    elastic(stage, "job", **{"kueue.x-k8s.io/workload-slice-replacement-for": "ns/old"})
    stage.settle()
    stage.condition("", "job", "QuotaReserved", status="False")
    stage.settle()
    assert stage.copies() == ["west"]


# Rule 2: finished, or without quota.


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
    assert isinstance(first, Patch)
    assert first.patch["metadata"]["finalizers"] == ["other"]  # type: ignore[index,call-overload]
    assert isinstance(second, Delete)


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
    patches = [it for it in stage.done if isinstance(it, Patch)]
    assert [it.kind for it in patches] == ["Job", "Workload"]
    workload = stage.get("Workload", "job")
    assert workload is not None
    (finished,) = [it for it in workload["status"]["conditions"] if it["type"] == "Finished"]
    assert (finished["reason"], finished["message"]) == ("Succeeded", "Job finished successfully")
    assert stage.copies() == []


def test_rule_3_out_of_sync_on_the_worker_is_dispatched_anew() -> None:
    stage = admitted()
    stage.condition("west", "job", "Finished", reason="OutOfSync")
    stage.settle()
    reported = 'Remote workload on worker cluster "west" is out of sync with its user job, resetting for re-dispatch'
    assert stage.check_of() == ("Retry", f'{reported}, Previously: "Ready"')
    assert [(it.type, it.reason) for it in stage.events][-1] == ("Warning", "MultiKueue")


def test_rule_3_out_of_sync_never_finishes_anything_here() -> None:
    stage = dispatched("west")
    stage.condition("west", "job", "Finished", reason="OutOfSync")
    stage.settle()
    assert stage.check_of()[0] == "Pending"
    workload = stage.get("Workload", "job")
    assert workload is not None
    assert not [it for it in workload["status"]["conditions"] if it["type"] == "Finished"]


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
    assert [type(it) for it in stage.done] == [Delete, Create]
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
    assert [type(it) for it in stage.done] == [Patch]
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
    assert [type(it) for it in stage.done] == [Patch]
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


# Rule 6a: the worker that had won is lost (§4.4).


def test_rule_6a_a_lost_worker_is_waited_for_before_its_workloads_are_dispatched_anew() -> None:
    stage = admitted()
    stage.cut("west")
    stage.wait(14 * MINUTE)
    assert stage.check_of()[0] == "Ready"
    stage.wait(MINUTE + SECOND)
    assert stage.check_of() == ("Retry", 'Admitting remote lost, Previously: "Ready"')


def test_rule_6a_a_worker_that_comes_back_in_time_keeps_its_workload() -> None:
    stage = admitted()
    stage.cut("west")
    stage.wait(10 * MINUTE)
    stage.mend("west")
    stage.wait(20 * MINUTE)
    assert stage.check_of()[0] == "Ready"
    assert stage.copies(kind="Job") == ["west"]


def test_rule_6a_a_copy_that_has_gone_is_dispatched_anew_at_once() -> None:
    stage = admitted()
    stage.delete("Workload", "job", cluster="west")
    stage.settle()
    assert stage.check_of() == ("Retry", 'Admitting remote no longer exists, Previously: "Ready"')


def test_rule_6a_a_ready_check_without_a_worker_is_reported() -> None:
    stage = dispatched()
    stage.check("job", "Ready")
    stage.settle()
    reported = "Admission check is Ready but no admitting cluster is recorded; this is unexpected, please report it"
    assert stage.check_of() == ("Retry", f'{reported}, Previously: "Ready"')


def test_rule_6a_after_a_restart_the_time_of_a_worker_that_is_away_begins_anew() -> None:
    stage = admitted()
    stage.cut("west")
    stage.wait(14 * MINUTE)
    stage.restart()
    stage.wait(14 * MINUTE)
    assert stage.check_of()[0] == "Ready"
    stage.wait(2 * MINUTE)
    assert stage.check_of()[0] == "Retry"


# Rule 6b: a worker has won (§4.3).


def test_rule_6b_the_others_lose_their_copies_and_the_job_goes_to_the_winner() -> None:
    stage = admitted(on="east")
    assert stage.copies() == ["east"]
    assert stage.copies(kind="Job") == ["east"]
    assert (stage.winner(), stage.nominated()) == ("east", [])
    assert [(it.type, it.message) for it in stage.events] == [("Normal", 'The workload was admitted on "east"')]


def test_rule_6b_quota_alone_wins_nothing() -> None:
    stage = dispatched()
    stage.condition("west", "job", "QuotaReserved")
    stage.settle()
    assert stage.copies() == ["west", "east"]


def test_rule_6b_a_worker_that_is_nominated_no_more_is_nominated_again_before_it_wins() -> None:
    stage = dispatched()
    # Kueue's webhook refuses a clusterName that is not nominated.
    stage.api[MANAGER].webhooks = admit
    stage.cut("west")
    stage.api[MANAGER].patch("Workload", "job", {"metadata": {"labels": {"looked": "at"}}}, namespace="ns")
    stage.settle()
    assert stage.nominated() == ["east"]
    stage.condition("west", "job", "QuotaReserved")
    stage.condition("west", "job", "Admitted")
    stage.mend("west")
    stage.wait(10 * MINUTE)
    assert (stage.winner(), stage.nominated(), stage.copies()) == ("west", [], ["west"])


def test_rule_6b_the_job_is_there_before_the_check_is_ready() -> None:
    stage = dispatched("west")
    stage.condition("west", "job", "Admitted")
    stage.done.clear()
    stage.settle()
    first, *_, last = stage.done
    assert isinstance(first, Create)
    assert first.kind == "Job"
    assert isinstance(last, Patch)
    assert last.kind == "Workload"


def test_rule_6b_of_two_winners_the_first_wins_and_of_equal_ones_the_first_of_the_config() -> None:
    stage = dispatched("west", "east")
    stage.condition("west", "job", "Admitted", lastTransitionTime="2026-01-01T00:00:09Z")
    stage.condition("east", "job", "Admitted", lastTransitionTime="2026-01-01T00:00:08Z")
    stage.settle()
    assert stage.winner() == "east"
    stage = dispatched("west", "east")
    stage.condition("east", "job", "Admitted")
    stage.condition("west", "job", "Admitted")
    stage.settle()
    assert stage.winner() == "west"


def test_rule_6b_a_job_of_somebody_else_is_never_touched() -> None:
    stage = Stage("west")
    stage.create("Job", "job", {"parallelism": 7}, cluster="west", namespace="ns")
    stage.job()
    stage.settle()
    stage.condition("west", "job", "Admitted")
    stage.settle()
    what = '"kueue.x-k8s.io/multikueue-origin"="multikueue" on *v1.PartialObjectMetadata "ns/job"'
    assert stage.problems[-1] == f"remote object is not owned by MultiKueue: expected {what}"
    assert stage.check_of()[0] == "Pending"
    job = stage.get("Job", "job", cluster="west")
    assert job is not None
    assert job["spec"] == {"parallelism": 7}


def test_rule_6b_what_the_manager_evicts_is_evicted_on_the_worker() -> None:
    stage = admitted()
    stage.condition("", "job", "Evicted", reason="Preempted", message="Preempted to accommodate another")
    stage.settle()
    copy = stage.get("Workload", "job", cluster="west")
    assert copy is not None
    (reported,) = [it for it in copy["status"]["conditions"] if it["type"] == "DeactivationTarget"]
    assert (reported["status"], reported["reason"]) == ("True", "EvictedOnManagerCluster")
    assert reported["message"] == "Evicted on manager: Preempted to accommodate another"


def test_rule_6b_another_winner_than_the_one_that_is_written_is_an_error() -> None:
    stage = dispatched()
    stage.status("", "Workload", "job", {"clusterName": "east", "nominatedClusterNames": None})
    stage.condition("west", "job", "Admitted")
    stage.settle()
    assert stage.problems[-1] == 'attempting to change immutable ClusterName from "east" to "west"'


def test_rule_6b_places_that_the_worker_found_are_no_longer_waited_for() -> None:
    stage = dispatched("west")
    pods = {"name": "main", "count": 1}
    admission = {"clusterQueue": "cq", "podSetAssignments": [{**pods, "delayedTopologyRequest": "Pending"}]}
    stage.status("", "Workload", "job", {"admission": admission})
    placed = {"clusterQueue": "cq", "podSetAssignments": [{**pods, "topologyAssignment": {"levels": ["rack"]}}]}
    stage.status("west", "Workload", "job", {"admission": placed})
    stage.condition("west", "job", "Admitted")
    stage.settle()
    workload = stage.get("Workload", "job")
    assert workload is not None
    assert workload["status"]["admission"]["podSetAssignments"] == [{**pods, "delayedTopologyRequest": "Ready"}]


def test_a_worker_that_comes_back_does_not_win_a_workload_back_from_who_runs_it_now() -> None:
    stage = admitted(on="west")
    stage.cut("west")
    stage.wait(16 * MINUTE)
    # The scheduler of the manager evicts it, and gives it quota anew.
    stage.check("job", "Pending")
    stage.status("", "Workload", "job", {"clusterName": None})
    stage.settle()
    stage.condition("east", "job", "Admitted")
    stage.settle()
    assert stage.winner() == "east"
    stage.mend("west")
    stage.wait(10 * MINUTE)
    assert stage.check_of()[0] == "Ready"
    assert (stage.copies(), stage.copies(kind="Job")) == (["east"], ["east"])


# Rules 8 and 9: who is nominated.


@pytest.mark.parametrize("state", ["Retry", "Ready"])
def test_rule_8_nobody_is_nominated_unless_the_check_is_pending(state: str) -> None:
    stage = Stage("west", start=False)
    stage.job()
    stage.check("job", state)
    stage.status("", "Workload", "job", {"clusterName": "west"})
    stage.settle()
    assert stage.copies() == []


def test_rule_9_other_checks_come_first() -> None:
    stage = Stage("west")
    stage.job()
    stage.check("job", "Pending", check="other")
    stage.settle()
    assert (stage.nominated(), stage.copies()) == ([], [])
    stage.check("job", "Ready", check="other")
    stage.settle()
    assert (stage.nominated(), stage.copies()) == (["west"], ["west"])


def test_rule_9_a_copy_has_what_its_original_has_but_for_the_label_of_its_job() -> None:
    stage = Stage("west")
    stage.job()
    labels = {"kueue.x-k8s.io/job-uid": "1", "team": "a"}
    metadata = {"metadata": {"labels": labels, "annotations": {"note": "n"}}}
    original = stage.api[""].patch("Workload", "job", metadata, namespace="ns")
    stage.settle()
    copy = stage.get("Workload", "job", cluster="west")
    assert copy is not None
    assert copy["metadata"]["labels"] == {"team": "a", **OUR_LABEL}
    assert copy["metadata"]["annotations"] == {"note": "n"}
    assert "ownerReferences" not in copy["metadata"]
    assert copy["spec"] == original["spec"]


def test_rule_9_a_workload_of_somebody_else_is_never_touched() -> None:
    stage = Stage("west")
    stage.create("Workload", "job", {"queueName": "theirs", "podSets": POD_SETS}, cluster="west", namespace="ns")
    stage.job()
    stage.settle()
    assert "remote object is not owned by MultiKueue" in stage.problems[-1]
    copy = stage.get("Workload", "job", cluster="west")
    assert copy is not None
    assert copy["spec"]["queueName"] == "theirs"


# §4.6: garbage.


def stage_with_garbage() -> Stage:
    """A job and its copy on a worker that nothing here is about."""
    stage = Stage("west", start=False)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "old", "uid": "u", "controller": True}
    more = {"labels": OUR_LABEL, "namespace": "ns"}
    stage.create("Job", "old", {}, cluster="west", **more)
    stage.create("Workload", "old", {"podSets": POD_SETS}, cluster="west", ownerReferences=[owner], **more)
    return stage


def test_garbage_is_what_is_ours_and_has_nothing_here_any_more() -> None:
    stage = stage_with_garbage()
    stage.create("Workload", "theirs", {"podSets": POD_SETS}, cluster="west", namespace="ns")
    of_another = {"kueue.x-k8s.io/multikueue-origin": "another"}
    stage.create("Workload", "of-another", {"podSets": POD_SETS}, cluster="west", namespace="ns", labels=of_another)
    stage.wait(59 * SECOND)
    assert stage.copies("old") == ["west"]
    stage.wait(2 * SECOND)
    assert (stage.copies("old"), stage.copies("old", kind="Job")) == ([], [])
    assert (stage.copies("theirs"), stage.copies("of-another")) == (["west"], ["west"])


def test_a_copy_stays_until_its_job_has_gone_even_if_the_deletion_of_the_job_gets_lost() -> None:
    stage = stage_with_garbage()
    stage.loses = Delete
    stage.wait(61 * SECOND)
    assert (stage.copies("old"), stage.copies("old", kind="Job")) == (["west"], ["west"])
    stage.wait(60 * SECOND)
    assert (stage.copies("old"), stage.copies("old", kind="Job")) == ([], [])


def test_nothing_is_collected_without_an_interval() -> None:
    stage = Stage("west", start=False, settings=MultiKueueSettings(gc_interval_ns=0))
    stage.create("Workload", "old", {"podSets": POD_SETS}, cluster="west", namespace="ns", labels=OUR_LABEL)
    stage.wait(10 * MINUTE)
    assert stage.copies("old") == ["west"]


# §4.7: what makes a manager look.


def test_a_worker_that_is_added_to_the_config_gets_copies_a_moment_later() -> None:
    stage = Stage("west", "east")
    stage.api[""].patch("MultiKueueConfig", "config", {"spec": {"clusters": ["west"]}})
    stage.settle()
    stage.job()
    stage.settle()
    assert stage.copies() == ["west"]
    stage.api[""].patch("MultiKueueConfig", "config", {"spec": {"clusters": ["west", "east"]}})
    stage.settle(delay=SECOND // 2)
    assert stage.copies() == ["west"]
    stage.settle(delay=SECOND)
    assert stage.copies() == ["west", "east"]


def test_a_worker_that_comes_back_gets_copies() -> None:
    stage = Stage("west", "east")
    stage.cut("east")
    stage.job()
    stage.settle()
    assert stage.copies() == ["west"]
    stage.mend("east")
    stage.wait(MINUTE)
    assert stage.copies() == ["west", "east"]
    assert stage.now > START


@pytest.mark.parametrize("dispatcher", [AllAtOnce(), Incremental(step_size=2)])
def test_a_workload_that_has_lost_its_quota_for_a_moment_begins_anew(dispatcher: Dispatcher) -> None:
    stage = Stage("east", "west", dispatcher=dispatcher)
    stage.job()
    stage.settle()
    stage.condition("east", "job", "Admitted")
    stage.settle()
    assert stage.winner() == "east"
    stage.done.clear()
    # The scheduler evicts it, and gives it quota again before anybody has looked.
    stage.condition(MANAGER, "job", "QuotaReserved", status="False")
    stage.check("job", "Pending")
    stage.status(MANAGER, "Workload", "job", {"clusterName": None})
    stage.condition(MANAGER, "job", "QuotaReserved")
    stage.settle()
    # What was in the east can not win a second time.
    assert [type(it).__name__ for it in stage.done if it.cluster == "east"] == ["Delete", "Delete", "Create"]
    assert (stage.check_of()[0], stage.copies(), stage.nominated()) == ("Pending", ["east", "west"], ["east", "west"])
