"""The policies by themselves: what they say in which situation."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from kueuecore._json import JsonObject
from kueuecore.multikueue import MANAGER, AllAtOnce, Attempt, AttemptOutcome, Dispatch, KnownCluster, Overflowing
from kueuecore.multikueue.attempts import ATTEMPTS, attempts_of, with_attempt
from kueuecore.multikueue.policies import (
    JsonPatchError,
    Overflow,
    Overridden,
    Scored,
    TakingBack,
    apply_json_patch,
    by_priority,
    cannot_hold,
    has_room,
    override_of,
)
from kueuecore.times import SECOND_NS, format_time
from tests.unit.multikueue.stage import MINUTE, START, Stage
from tests.unit.multikueue.worlds import job

POD_SET: JsonObject = {"name": "main", "count": 1}


def cluster(name: str, **fields: Any) -> KnownCluster:
    return KnownCluster(name=name, is_connected=True, **fields)


def dispatch(*clusters: KnownCluster, **fields: Any) -> Dispatch:
    return Dispatch(clusters=clusters, **{"workload": {}, "now": START, **fields})


def queue(*flavors: tuple[str, dict[str, Any]], cohort: str = "", used: int = 0) -> dict[str, Any]:
    """A ClusterQueue with flavors, and so much of the first one reserved."""
    resources = [{"name": name, "resources": [{"name": "cpu", **quota}]} for name, quota in flavors]
    spec: dict[str, Any] = {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": resources}]}
    if cohort:
        spec["cohortName"] = cohort
    reserved = [{"name": flavors[0][0], "resources": [{"name": "cpu", "total": str(used)}]}]
    return {"spec": spec, "status": {"flavorsReservation": reserved}}


def asks(*cpus: int, **pod_set: Any) -> dict[str, Any]:
    """A Workload that holds quota on the manager, with the given cpus for each of its pod sets."""
    names = [f"set-{index}" for index in range(len(cpus))]
    return {
        "spec": {"podSets": [{"name": name, "count": cpu, **pod_set} for name, cpu in zip(names, cpus, strict=True)]},
        "status": {
            "admission": {
                "podSetAssignments": [
                    {"name": name, "count": cpu, "resourceUsage": {"cpu": str(cpu)}}
                    for name, cpu in zip(names, cpus, strict=True)
                ]
            }
        },
    }


# What is known of quota.


@pytest.mark.parametrize(
    ("cpus", "cluster_queue", "reason"),
    [
        ((4,), queue(("a", {"nominalQuota": 4})), ""),
        ((5,), queue(("a", {"nominalQuota": 4})), "5 of cpu are asked for, and it has 4 at most"),
        # What is in use now may be free later.
        ((4,), queue(("a", {"nominalQuota": 4}), used=4), ""),
        # A pod set gets one flavor, several pod sets may get several.
        (
            (5,),
            queue(("a", {"nominalQuota": 4}), ("b", {"nominalQuota": 4})),
            "5 of cpu are asked for, and it has 8 at most",
        ),
        ((4, 4), queue(("a", {"nominalQuota": 4}), ("b", {"nominalQuota": 4})), ""),
        # In a cohort nobody knows, unless there is a limit to borrowing.
        ((9,), queue(("a", {"nominalQuota": 4}), cohort="all"), ""),
        (
            (9,),
            queue(("a", {"nominalQuota": 4, "borrowingLimit": 4}), cohort="all"),
            "9 of cpu are asked for, and it has 8 at most",
        ),
        ((1,), {"spec": {}}, "it has no quota of cpu"),
        ((1,), None, ""),
    ],
)
def test_what_a_worker_can_never_hold(cpus: tuple[int, ...], cluster_queue: Any, reason: str) -> None:
    assert cannot_hold(dispatch(workload=asks(*cpus)), cluster("west", cluster_queue=cluster_queue)) == reason


def test_partial_admission_asks_for_less() -> None:
    small = cluster("west", cluster_queue=queue(("a", {"nominalQuota": 4})))
    assert cannot_hold(dispatch(workload=asks(8)), small)
    assert cannot_hold(dispatch(workload=asks(8, minCount=4)), small) == ""


def test_room_is_what_is_free_now() -> None:
    quota = queue(("a", {"nominalQuota": "4"}), used=2)
    assert has_room(dispatch(workload=asks(2)), cluster("west", cluster_queue=quota))
    assert not has_room(dispatch(workload=asks(3)), cluster("west", cluster_queue=quota))


# Rounds of the one that scores.


def test_a_round_adds_the_next_best_and_keeps_the_others() -> None:
    policy = Scored(score=by_priority({"a": 1, "b": 3, "c": 2}), round_ns=MINUTE)
    reported = dispatch(cluster("a"), cluster("b"), cluster("c"))
    assert policy.nominate(reported).clusters == ("b",)
    during = replace(reported, nominated=("b",), nominated_at=START, now=START + MINUTE - 1)
    assert (policy.nominate(during).clusters, policy.nominate(during).look_again) == (("b",), START + MINUTE)
    assert policy.nominate(replace(during, now=START + MINUTE)).clusters == ("b", "c")


def test_room_that_is_found_elsewhere_ends_a_round() -> None:
    policy = Scored(score=by_priority({"a": 2, "b": 1}), round_ns=MINUTE, prefers_room=True)
    full, free = (queue(("f", {"nominalQuota": "4"}), used=used) for used in (4, 0))
    reported = dispatch(workload=asks(3), nominated=("a",), nominated_at=START, now=START + 1)

    def nominated(a: JsonObject, b: JsonObject, **of_a: Any) -> tuple[str, ...]:
        clusters = (cluster("a", cluster_queue=a, **of_a), cluster("b", cluster_queue=b))
        return policy.nominate(replace(reported, clusters=clusters)).clusters

    assert nominated(full, free) == ("a", "b")
    assert nominated(full, full) == ("a",)
    assert nominated(free, free) == ("a",)
    # What it uses of the quota there may be its own.
    reserved = {"status": {"conditions": [{"type": "QuotaReserved", "status": "True"}]}}
    assert nominated(full, free, workload=reserved) == ("a",)


def test_the_dispatcher_is_asked_again_when_the_quota_of_a_worker_changes() -> None:
    stage = Stage("a", "b", dispatcher=Scored(score=by_priority({"a": 1}), prefers_room=True))
    for name in ("a", "b"):
        stage.create("LocalQueue", "lq", {"clusterQueue": "cq"}, cluster=name, namespace="ns")
        stage.create("ClusterQueue", "cq", queue(("f", {"nominalQuota": "2"}))["spec"], cluster=name)
        stage.api[name].patch(
            "ClusterQueue", "cq", {"status": queue(("f", {}), used=2)["status"]}, subresource="status"
        )
    stage.job()
    stage.status(MANAGER, "Workload", "job", asks(1)["status"])
    stage.settle()
    assert stage.copies() == ["a"]
    stage.api["b"].patch("ClusterQueue", "cq", {"status": queue(("f", {}), used=0)["status"]}, subresource="status")
    stage.settle()
    assert stage.copies() == ["a", "b"]


def test_the_next_worker_follows_at_once_if_the_first_is_lost() -> None:
    stage = Stage("a", "b", dispatcher=Scored(score=by_priority({"a": 1})))
    stage.job()
    stage.settle()
    assert stage.copies() == ["a"]
    stage.cut("a")
    stage.settle()
    assert (stage.copies(), stage.nominated()) == (["a", "b"], ["b"])


# Taking back.


def stuck(name: str, since: int) -> KnownCluster:
    """A worker that holds quota for its copy, and does not admit it."""
    reserved = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": format_time(since)}
    return cluster(name, workload={"status": {"conditions": [reserved]}})


def test_a_copy_that_holds_quota_and_is_not_admitted_is_withdrawn() -> None:
    policy = TakingBack(inner=AllAtOnce(), admit_ns=MINUTE)
    early = policy.nominate(dispatch(stuck("a", START), cluster("b"), now=START + MINUTE - 1))
    assert (early.clusters, early.withdrawn, early.look_again) == (("a", "b"), "", START + MINUTE)
    late = policy.nominate(dispatch(stuck("a", START), cluster("b"), now=START + MINUTE))
    assert (late.clusters, late.withdrawn) == (("b",), "a")
    # Where it has nowhere else to go, it stays.
    assert policy.nominate(dispatch(stuck("a", START), now=START + MINUTE)).clusters == ("a",)


def test_a_worker_is_left_out_twice_as_long_each_time() -> None:
    policy = TakingBack(inner=AllAtOnce(), exclude_ns=MINUTE)
    attempts = (Attempt("a", AttemptOutcome.RECALLED, START), Attempt("a", AttemptOutcome.EVICTED, START + 2 * MINUTE))
    reported = dispatch(cluster("a"), cluster("b"), attempts=attempts)
    until = START + 4 * MINUTE
    assert policy.nominate(replace(reported, now=until - 1)).clusters == ("b",)
    assert policy.nominate(replace(reported, now=until)).clusters == ("a", "b")
    alone = policy.nominate(dispatch(cluster("a"), attempts=attempts, now=until - 1))
    assert (alone.clusters, alone.look_again) == ((), until)


def test_the_manager_takes_the_copy_away_and_notes_the_attempt() -> None:
    stage = Stage("a", "b", dispatcher=TakingBack(inner=AllAtOnce(), admit_ns=MINUTE, exclude_ns=10 * MINUTE))
    stage.job()
    stage.settle()
    stage.condition("a", "job", "QuotaReserved")
    stage.wait(MINUTE + 5 * SECOND_NS)
    assert (stage.copies(), stage.nominated()) == (["b"], ["b"])
    (attempt,) = stage.manager.attempts("job", namespace="ns")
    assert (attempt.cluster, attempt.outcome) == ("a", AttemptOutcome.RECALLED)
    stage.wait(10 * MINUTE)
    assert stage.copies() == ["a", "b"]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_manager_that_starts_anew_leaves_the_worker_out_as_long(is_restarted: bool) -> None:
    stage = Stage("a", "b", dispatcher=TakingBack(inner=AllAtOnce(), admit_ns=MINUTE, exclude_ns=10 * MINUTE))
    stage.job()
    stage.settle()
    stage.condition("a", "job", "QuotaReserved")
    stage.wait(MINUTE + 5 * SECOND_NS)
    if is_restarted:
        stage.restart()
    stage.wait(9 * MINUTE)
    assert stage.copies() == ["b"]
    stage.wait(MINUTE)
    assert stage.copies() == ["a", "b"]


def test_with_a_dispatcher_of_kueue_nothing_is_written_that_kueue_would_not_write() -> None:
    stage = Stage("a", "b")
    stage.job()
    stage.settle()
    stage.condition("a", "job", "Admitted")
    stage.settle()
    stage.condition("a", "job", "Evicted")
    stage.settle()
    assert stage.check_of()[0] == "Retry"
    workload = stage.get("Workload", "job")
    assert workload is not None
    assert {condition["type"] for condition in workload["status"]["conditions"]} == {"QuotaReserved"}
    assert stage.manager.attempts("job", namespace="ns") == ()


def test_the_last_hundred_attempts_are_kept_and_what_is_none_is_left_out() -> None:
    workload: JsonObject = {"status": {}}
    tried = [Attempt(f"w{index}", AttemptOutcome.LOST, START + index) for index in range(103)]
    for attempt in tried:
        workload = {"status": with_attempt(workload, attempt, attempt.at)}
    assert attempts_of(workload) == tuple(tried[3:])
    note: JsonObject = {
        "type": ATTEMPTS,
        "status": "True",
        "message": "a, b Recalled soon, c Recalled 2026-01-01T00:00:00Z",
    }
    assert attempts_of({"status": {"conditions": [note]}}) == (Attempt("c", AttemptOutcome.RECALLED, START),)


# Here first.


def test_a_job_goes_on_only_when_quota_is_short_for_long_enough() -> None:
    overflow = Overflow({"here": "workers"}, patience_ns=MINUTE)
    waiting = job(queue="here")

    def looked(reason: str, at: int, **condition: str) -> Any:
        reserved: Any = {"type": "QuotaReserved", "status": "False", "reason": reason, **condition}
        created: Any = {"creationTimestamp": format_time(START)}
        return overflow.look(waiting, {"metadata": created, "status": {"conditions": [reserved]}}, now=START + at)

    assert looked("WaitingForQuota", 0).look_again == START + MINUTE
    assert looked("WaitingForQuota", MINUTE).queue == "workers"
    # What is never going to fit here need not wait.
    assert looked("ExceedsMaxQuota", 0).queue == "workers"
    for reason, status in (("Suspended", "False"), ("Misconfigured", "False"), ("QuotaReserved", "True")):
        assert looked(reason, MINUTE, status=status) == Overflowing()


# Overrides.


def test_an_override_is_for_the_job_and_for_the_template_of_its_workload() -> None:
    template: JsonObject = {"spec": {"containers": [{"image": "i", "own": 1}]}}
    workload: JsonObject = {"spec": {"podSets": [{**POD_SET, "template": template}]}}
    image: JsonObject = {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "eu/i"}
    label: JsonObject = {"op": "add", "path": "/metadata/labels/region", "value": "eu"}
    override = override_of(job(), workload, [image, label])
    assert override.job["metadata"] == {"labels": {"region": "eu"}}
    # What the Workload has beside its job stays.
    changed: Any = {**POD_SET, "template": {"spec": {"containers": [{"image": "eu/i", "own": 1}]}}}
    assert override.workload == {"spec": {"podSets": [changed]}}
    assert override_of(job(), workload, [label]).workload == {}


def test_a_worker_whose_override_does_not_fit_is_left_out() -> None:
    absent: dict[str, Any] = {"op": "remove", "path": "/spec/nothing"}
    nomination = Overridden(AllAtOnce(), {"a": [absent]}).nominate(dispatch(cluster("a"), cluster("b"), job=job()))
    assert nomination.clusters == ("b",)
    assert nomination.problem.startswith("cluster a: its override does not fit the job: ")


@pytest.mark.parametrize(
    ("operation", "after"),
    [
        ({"op": "add", "path": "/args/-", "value": 2}, {"args": [1, 2]}),
        ({"op": "test", "path": "/args/0", "value": True}, None),
        ({"op": "replace", "path": "/args/01", "value": 3}, None),
        ({"op": "move", "from": "/args", "path": "/args/0"}, None),
        ({"op": "replace", "path": "", "value": [1]}, None),
        ({"op": "shout", "path": "/args"}, None),
        ({"op": "remove", "path": "args"}, None),
        ({"op": "add", "path": "/args"}, None),
    ],
)
def test_json_patches_are_those_of_the_standard(operation: dict[str, Any], after: JsonObject | None) -> None:
    before: JsonObject = {"args": [1]}
    if after is None:
        with pytest.raises(JsonPatchError):
            apply_json_patch(before, [operation])
    else:
        assert apply_json_patch(before, [operation]) == after
    assert before == {"args": [1]}


def test_what_is_no_patch_is_refused_before_any_job_comes() -> None:
    with pytest.raises(JsonPatchError, match="Unknown operation"):
        Overridden(AllAtOnce(), {"a": [{"op": "shout", "path": "/args"}]})


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonpatch", None)
    with pytest.raises(JsonPatchError, match=r"for overrides install 'kueuecore\[multikueue\]'"):
        Overridden(AllAtOnce(), {"a": []})
