"""Which workloads a manager reconciles, which it rejects, and slices of elastic jobs (rules/06 §4.1, §4.2 rule 1)."""

from __future__ import annotations

from tests.unit.multikueue.stage import POD_SETS, Stage, admitted, dispatched, elastic


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
    stage.workload("old", None)
    stage.settle()
    stage.condition("", "job", "QuotaReserved", status="False")
    stage.settle()
    assert stage.copies() == ["west"]
