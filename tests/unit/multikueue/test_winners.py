"""Which worker wins a workload, and what happens when that worker is lost (rules/06 §4.2 rule 6)."""

from __future__ import annotations

from dataclasses import replace

from kueuecore.multikueue import MANAGER
from kueuecore.times import SECOND_NS
from kueuecore.webhooks import admit
from kueuecore.writes import Verb, Write
from tests.unit.multikueue.stage import MINUTE, Stage, admitted, dispatched


def test_rule_6a_a_lost_worker_is_waited_for_before_its_workloads_are_dispatched_anew() -> None:
    stage = admitted()
    stage.cut("west")
    stage.wait(14 * MINUTE)
    assert stage.check_of()[0] == "Ready"
    stage.wait(MINUTE + SECOND_NS)
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
    assert [(event.type, event.message) for event in stage.events] == [
        ("Normal", 'The workload was admitted on "east"')
    ]


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
    assert isinstance(first, Write)
    assert first.verb is Verb.CREATE
    assert first.kind == "Job"
    assert isinstance(last, Write)
    assert last.verb is Verb.PATCH
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
    (reported,) = [condition for condition in copy["status"]["conditions"] if condition["type"] == "DeactivationTarget"]
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


def test_a_status_of_which_the_manager_drops_fields_is_written_once() -> None:
    stage = admitted()
    drops: list[Write] = []

    def without_ready(write: Write) -> None:
        """Store the status of a job without a field, as an API server does whose definition is older."""
        sent = write
        if (write.cluster, write.kind, write.subresource) == (MANAGER, "Job", "status"):
            drops.append(write)
            kept = {key: value for key, value in write.manifest["status"].items() if key != "ready"}  # type: ignore[union-attr]
            sent = replace(write, manifest={**write.manifest, "status": kept})
        stage.manager.done(write, stage.api[write.cluster].carry_out(sent), now=stage.now)

    stage.carry_out = without_ready  # type: ignore[method-assign]
    stage.status(MANAGER, "Job", "job", {"conditions": []})
    stage.api[MANAGER].patch("Job", "job", {"spec": {"suspend": False}}, namespace="ns")
    stage.status("west", "Job", "job", {"ready": 1})
    stage.wait(MINUTE)
    assert len(drops) < 5
    stage.condition("west", "job", "Finished", reason="Succeeded")
    stage.settle()
    local = stage.get("Workload", "job")
    assert local is not None
    assert local["status"]["conditions"][-1]["type"] == "Finished"
