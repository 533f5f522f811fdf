"""Which workers are nominated, and what makes a manager look again (rules/06 §4.2 rules 8 and 9, §4.7)."""

from __future__ import annotations

import pytest

from kueuecore.multikueue import MANAGER, AllAtOnce, Dispatcher, Incremental
from kueuecore.times import SECOND_NS
from tests.unit.multikueue.stage import MINUTE, OUR_LABEL, POD_SETS, START, Stage


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


def test_rule_9_a_copy_has_what_its_original_has_but_for_the_label_of_its_job_and_a_gate() -> None:
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
    assert copy["spec"] == {**original["spec"], "preemptionGates": [{"name": "kueue.x-k8s.io/multikueue"}]}


def test_rule_9_a_workload_of_somebody_else_is_never_touched() -> None:
    stage = Stage("west")
    stage.create("Workload", "job", {"queueName": "theirs", "podSets": POD_SETS}, cluster="west", namespace="ns")
    stage.job()
    stage.settle()
    assert "remote object is not owned by MultiKueue" in stage.problems[-1]
    copy = stage.get("Workload", "job", cluster="west")
    assert copy is not None
    assert copy["spec"]["queueName"] == "theirs"


def test_a_worker_that_is_added_to_the_config_gets_copies_a_moment_later() -> None:
    stage = Stage("west", "east")
    stage.api[""].patch("MultiKueueConfig", "config", {"spec": {"clusters": ["west"]}})
    stage.settle()
    stage.job()
    stage.settle()
    assert stage.copies() == ["west"]
    stage.api[""].patch("MultiKueueConfig", "config", {"spec": {"clusters": ["west", "east"]}})
    stage.settle(delay=SECOND_NS // 2)
    assert stage.copies() == ["west"]
    stage.settle(delay=SECOND_NS)
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
    # What was in the east cannot win a second time.
    assert [number.verb.value for number in stage.done if number.cluster == "east"] == ["delete", "delete", "create"]
    assert (stage.check_of()[0], stage.copies(), stage.nominated()) == ("Pending", ["east", "west"], ["east", "west"])
