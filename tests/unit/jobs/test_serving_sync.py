"""What becomes of the Workloads and pods of StatefulSets and LeaderWorkerSets that change (rules/10 §5.6, §5.7)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kueuecore import Engine
from kueuecore.jobs import JobsConfiguration, Sync, sync_workloads, ungate_pods, update_problems, workload_name
from kueuecore.objects import Namespace
from tests.builders import cluster_queue, flavor
from tests.jobs import POD

Json = dict[str, Any]
NOW = "2026-01-01T00:01:00Z"
AN = "kueue.x-k8s.io/"
LWS = "leaderworkerset.sigs.k8s.io/"
ADMISSION, TOPOLOGY = {"name": f"{AN}admission"}, {"name": f"{AN}topology"}


def stateful(replicas: int = 3, *, queue: str = "lq", **metadata: Any) -> Json:
    labels = {f"{AN}queue-name": queue} if queue else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "s", "namespace": "n", "uid": "u", "labels": labels, **metadata},
        "spec": {"replicas": replicas, "template": POD},
    }


def leader_worker(replicas: int = 2, *, leader: bool = False, queue: str = "lq", **metadata: Any) -> Json:
    groups = {"size": 2, "workerTemplate": POD, **({"leaderTemplate": POD} if leader else {})}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "s", "namespace": "n", "uid": "u", "labels": {f"{AN}queue-name": queue}, **metadata},
        "spec": {"replicas": replicas, "leaderWorkerTemplate": groups},
    }


def sync(plain: Json, *workloads: Any, around: tuple[Json, ...] = (), **gates: bool) -> Sync:
    configuration = JobsConfiguration(feature_gates=gates)
    return sync_workloads(plain, workloads, now=NOW, around=around, configuration=configuration)


def steps(found: Sync) -> list[tuple[str, str]]:
    return [(str(step.action), str(step.workload["metadata"]["name"])) for step in found.steps]  # type: ignore[index,call-overload]


def messages(found: Sync) -> list[str]:
    return [event.message for event in (*found.events, *(s.event for s in found.steps if s.event is not None))]


def made(plain: Json) -> list[Json]:
    return [copy.deepcopy(dict(step.workload)) for step in sync(plain).steps]


def admitted(workload: Json, **status: Any) -> Json:
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind in ("QuotaReserved", "Admitted")
    ]
    return workload | {"status": {"conditions": conditions, "admission": {"clusterQueue": "cq"}, **status}}


def conditions(workload: Any) -> dict[str, tuple[str, str, str]]:
    return {
        condition["type"]: (condition["status"], condition["reason"], condition["message"])
        for condition in workload["status"]["conditions"]
    }


def pods_written(found: Sync) -> dict[str, Json]:
    return {write.manifest["metadata"]["name"]: dict(write.manifest) for write in found.writes}  # type: ignore[index,call-overload,misc]


# StatefulSets.


def test_a_stateful_set_gets_its_workload_once_it_has_replicas() -> None:
    name = workload_name("s", kind="StatefulSet", group="apps", uid="u")
    found = sync(stateful())
    assert steps(found) == [("Create", name)]
    assert messages(found) == [f"Created Workload: n/{name}"]
    assert found.workload == found.steps[0].workload
    assert sync(stateful(), found.workload) == Sync(workloads=found.workloads)
    assert sync(stateful(0)) == Sync(reason="it has no replicas")
    assert sync(stateful(queue="")) == Sync(reason=f"it has no label {AN}queue-name")
    assert sync(stateful(deletionTimestamp=NOW)).reason == "it is being deleted"
    remote = stateful()
    remote["metadata"]["labels"][f"{AN}multikueue-origin"] = "multikueue"
    assert sync(remote).reason == "its Workload comes from the manager cluster"


def test_a_missing_class_leaves_a_set_waiting() -> None:
    for plain in (stateful(), leader_worker()):
        plain["metadata"]["labels"][f"{AN}priority-class"] = "gone"
        found = sync(plain)
        assert (found.steps, found.reason) == ((), 'WorkloadPriorityClass "gone" not found')
        assert [(event.type, event.reason, event.message) for event in found.events] == [
            ("Warning", "WorkloadPriorityClassNotFound", 'WorkloadPriorityClass "gone" not found')
        ]


def test_a_set_that_is_scaled_to_zero_gives_its_quota_back_and_gets_it_again() -> None:
    (workload,) = made(stateful())
    found = sync(stateful(0), admitted(workload))
    assert steps(found) == [("UpdateStatus", workload["metadata"]["name"])]
    held: Any = found.workload
    assert conditions(held) == {
        "QuotaReserved": ("False", "OnHold", "StatefulSet scaled to zero; workload on hold"),
        "Admitted": ("False", "NoReservation", "The workload has no reservation"),
    }
    assert "admission" not in held["status"]
    assert held["status"]["accumulatedPastExecutionTimeSeconds"] == 60
    assert {condition["lastTransitionTime"] for condition in held["status"]["conditions"]} == {NOW}
    # The owner stays, and so does the hold.
    assert held["metadata"]["ownerReferences"] == workload["metadata"]["ownerReferences"]
    assert sync(stateful(0), held) == Sync(workloads=(held,))
    back: Any = sync(stateful(), held).workload
    assert conditions(back)["QuotaReserved"] == (
        "False",
        "PendingEvaluation",
        "Workload no longer on hold; waiting for quota reservation",
    )
    assert sync(stateful(), back) == Sync(workloads=(back,))
    plain: Any = sync(stateful(), held, UnadmittedWorkloadsObservability=False).workload
    assert conditions(plain)["QuotaReserved"][1] == "Pending"


@pytest.mark.parametrize("change", [{"spec": {"active": False}}, {"finished": True}, {"pending": True}])
def test_what_holds_no_quota_is_not_held(change: Json) -> None:
    (workload,) = made(stateful())
    stored = workload if "pending" in change else admitted(workload)
    stored = {**stored, "spec": {**stored["spec"], **change.get("spec", {})}}
    if "finished" in change:
        stored["status"]["conditions"].append({"type": "Finished", "status": "True"})
    assert sync(stateful(0), stored).steps == ()


def test_checks_that_are_not_ready_are_reported_without_observability() -> None:
    (workload,) = made(stateful())
    for state, reason in (("Ready", "NoReservation"), ("Pending", "NoReservationUnsatisfiedChecks")):
        stored = admitted(workload, admissionChecks=[{"name": "c", "state": state}])
        found = sync(stateful(0), stored, UnadmittedWorkloadsObservability=False)
        assert conditions(found.workload)["Admitted"][1] == reason


def test_the_engine_leaves_what_is_on_hold_alone_until_the_hold_ends() -> None:
    engine = Engine()
    queue: Json = {"apiVersion": f"{AN}v1beta2", "kind": "LocalQueue", "metadata": {"name": "lq", "namespace": "n"}}
    queue["spec"] = {"clusterQueue": "cq"}
    engine.apply([Namespace("n"), flavor(), cluster_queue(cpu=3), queue], now=0)
    (workload,) = made(stateful())
    workload["metadata"]["uid"] = "1"
    engine.apply([workload], now=0)
    assert len(engine.cycle(0).admissions) == 1
    running = workload | {"status": dict(engine.workload(workload["metadata"]["name"], namespace="n").status)}
    held: Any = sync(stateful(0), running).workload
    engine.apply([held], now=1)
    assert len(engine.cycle(1).admissions) == 0
    engine.apply([dict(sync(stateful(), held).workload or {})], now=2)
    assert len(engine.cycle(2).admissions) == 1


def test_a_workload_of_before_is_taken_over() -> None:
    older = workload_name("s", kind="StatefulSet", group="apps")
    stored: Json = {"apiVersion": f"{AN}v1beta2", "kind": "Workload", "metadata": {"name": older, "namespace": "n"}}
    found: Any = sync(stateful(), stored)
    assert steps(found) == [("Update", older)]
    assert found.workload["metadata"]["annotations"] == {
        f"{AN}job-owner-gvk": "apps/v1, Kind=StatefulSet",
        f"{AN}job-owner-name": "s",
    }
    assert found.workload["metadata"]["ownerReferences"][0]["kind"] == "StatefulSet"
    assert found.workload["spec"]["queueName"] == "lq"
    # Without replicas it is nobody's.
    assert sync(stateful(0), stored).steps == ()
    # Nor may the set grow again before it is on hold.
    (problem,) = update_problems(stateful(0), stateful(), around=[stored])
    assert "workload from previous scale-down is still being deleted" in str(problem)


def test_a_workload_of_a_set_follows_its_queue_and_gates_in_one_update() -> None:
    (workload,) = made(stateful())
    gated = stateful(queue="other", annotations={f"{AN}admission-gated-by": "a.io/x"})
    found: Any = sync(gated, workload)
    assert steps(found) == [("Update", workload["metadata"]["name"])]
    assert messages(found) == ['Updated workload AdmissionGatedBy to "a.io/x"']
    assert found.workload["spec"]["queueName"] == "other"
    # A set without replicas keeps its queue.
    assert sync(stateful(0, queue="other"), workload).steps == ()


def test_a_queue_name_that_a_server_leaves_out_is_no_change() -> None:
    configuration = JobsConfiguration(manage_jobs_without_queue_name=True)

    def look(plain: Json, *workloads: Json) -> Sync:
        return sync_workloads(plain, workloads, now=NOW, configuration=configuration)

    for plain in (stateful(queue=""), leader_worker(1, labels={})):
        stored = copy.deepcopy(dict(look(plain).steps[0].workload))
        spec: Any = stored["spec"]
        stored["spec"] = {key: value for key, value in spec.items() if key != "queueName"}
        assert look(plain, stored).steps == ()


def pod_of_set(name: str, *, gates: tuple[Json, ...] = (ADMISSION, TOPOLOGY), revision: str = "", **more: Any) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "u", "controller": True}
    metadata = {
        "name": name,
        "namespace": "n",
        "labels": {"controller-revision-hash": revision} if revision else {},
        "annotations": {f"{AN}pod-suspending-parent": "statefulset"},
        "ownerReferences": [owner],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | more.pop("metadata", {}),
        "spec": {"schedulingGates": list(gates)} if gates else {},
        **more,
    }


def test_pods_of_a_set_join_its_group_and_follow_its_queue() -> None:
    (workload,) = made(stateful())
    name = workload["metadata"]["name"]
    over = pod_of_set("over", status={"phase": "Succeeded"})
    going = pod_of_set("going", metadata={"deletionTimestamp": NOW})
    foreign = pod_of_set("foreign", metadata={"ownerReferences": []})
    (joined,) = pods_written(sync(stateful(), workload, around=(pod_of_set("new"), over, going, foreign))).values()
    assert joined["metadata"]["name"] == "new"
    assert joined["metadata"]["annotations"][f"{AN}pod-group-name"] == name
    assert joined["metadata"]["labels"][f"{AN}queue-name"] == "lq"
    assert joined["spec"]["schedulingGates"] == [ADMISSION, TOPOLOGY]
    assert sync(stateful(), workload, around=(joined,)).writes == ()
    moved = sync(stateful(queue="other"), workload, around=({**joined, "status": {"phase": "Failed"}},))
    assert pods_written(moved)["new"]["metadata"]["labels"][f"{AN}queue-name"] == "other"


def test_pods_of_an_old_revision_are_let_go_with_the_admission() -> None:
    (workload,) = made(stateful())
    rolling = stateful() | {"status": {"currentRevision": "1", "updateRevision": "2"}}
    pods = (pod_of_set("old", revision="1"), pod_of_set("new", revision="2"))
    for found, left in ((workload, [ADMISSION, TOPOLOGY]), (admitted(workload), [])):
        written = pods_written(sync(rolling, found, around=pods))
        gates = {name: entry["spec"].get("schedulingGates", []) for name, entry in written.items()}
        assert gates == {"old": left, "new": [ADMISSION, TOPOLOGY]}


def test_a_set_that_another_one_gates_is_left_alone() -> None:
    owned = stateful()
    template = {"metadata": {"annotations": {f"{AN}pod-suspending-parent": "leaderworkerset"}}, "spec": POD["spec"]}
    owned["spec"]["template"] = template
    assert sync(owned) == Sync(reason="its pods belong to a leaderworkerset")
    parent = leader_worker(uid="p")
    child = stateful()
    owner = {"apiVersion": parent["apiVersion"], "kind": "LeaderWorkerSet", "name": "s", "uid": "p", "controller": True}
    child["metadata"]["ownerReferences"] = [owner]
    assert sync(child, around=(parent,)) == Sync(reason='LeaderWorkerSet "n/s" owns it, and has the Workload')


# LeaderWorkerSets.


def names(n_groups: int, uid: str = "u") -> list[str]:
    kind: Any = {"kind": "LeaderWorkerSet", "group": "leaderworkerset.x-k8s.io", "uid": uid}
    return [workload_name(f"s-{index}", **kind) for index in range(n_groups)]


def test_every_group_gets_its_workload_and_surplus_ones_go() -> None:
    first, second = made(leader_worker())
    found = sync(leader_worker())
    assert steps(found) == [("Create", name) for name in names(2)]
    assert messages(found) == [f"Created Workload: n/{name}" for name in names(2)]
    assert [workload["metadata"]["name"] for workload in found.workloads] == names(2)  # type: ignore[index,call-overload]
    assert found.workload is None
    assert sync(leader_worker(), first, second) == Sync(workloads=(first, second))
    assert steps(sync(leader_worker(), first)) == [("Create", names(2)[1])]
    # Its finalizer goes first, without an event.
    found = sync(leader_worker(1), first, second)
    assert (steps(found), messages(found)) == ([("Update", names(2)[1]), ("Delete", names(2)[1])], [])
    assert found.workloads == (first,)
    # While groups are replaced one by one, those that are too many for a time have theirs.
    surging = leader_worker(1) | {"status": {"replicas": 2, "updatedReplicas": 0}}
    surging["spec"]["rolloutStrategy"] = {"rollingUpdateConfiguration": {"maxSurge": 1}}
    assert sync(surging, first, second).steps == ()
    assert sync(leader_worker(deletionTimestamp=NOW), first).reason == "it is being deleted"


def test_workloads_of_another_set_of_that_name_are_not_touched() -> None:
    others = made(leader_worker(uid="before"))
    assert steps(sync(leader_worker(1), *others)) == [("Create", names(1)[0])]
    first = made(leader_worker())[0]
    del first["metadata"]["ownerReferences"]
    found = sync(leader_worker(1), first)
    assert (found.steps, found.reason) == ((), f'a Workload named "{names(1)[0]}" is still there')


def test_workloads_of_groups_follow_queue_gates_and_priority() -> None:
    stored = made(leader_worker())
    high = {"apiVersion": f"{AN}v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 7}
    changed = leader_worker(queue="other", annotations={f"{AN}admission-gated-by": "a.io/x"})
    changed["metadata"]["labels"][f"{AN}priority-class"] = "high"
    found: Any = sync(changed, *stored, around=(high,))
    assert steps(found) == [("Update", name) for name in names(2) for _ in range(2)]
    assert messages(found)[:2] == [
        'Updated workload AdmissionGatedBy to "a.io/x"',
        f"Updated workload priority class: n/{names(1)[0]}",
    ]
    assert {(workload["spec"]["queueName"], workload["spec"]["priority"]) for workload in found.workloads} == {
        ("other", 7)
    }
    # The queue does not wait for the class.
    without: Any = sync(changed, *stored)
    assert [workload["spec"]["queueName"] for workload in without.workloads] == ["other"] * 2
    assert messages(without)[0] == 'WorkloadPriorityClass "high" not found'
    assert len(without.events) == 1


def pod_of_group(name: str, *, index: str = "0", owner: str = "s", gated: bool = True, **metadata: Any) -> Json:
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "uid": owner, "controller": True}
    labels = {f"{LWS}name": "s", **({f"{LWS}group-index": index} if index else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "n", "labels": labels, "ownerReferences": [reference], **metadata},
        "spec": {"schedulingGates": [ADMISSION, TOPOLOGY]} if gated else {},
    }


def set_of_leaders(**status: str) -> Json:
    plain = stateful(queue="", labels={f"{LWS}name": "s"}, uid="s")
    return plain | {"status": status}


def test_pods_of_groups_join_them_once_they_are_numbered() -> None:
    plain = leader_worker(leader=True)
    leader, worker = pod_of_group("leader"), pod_of_group("worker", annotations={f"{LWS}leader-name": "leader"})
    around = (set_of_leaders(), leader, worker, pod_of_group("without", index=""))
    written = pods_written(sync(plain, *made(plain), around=around))
    assert {name: entry["metadata"]["annotations"][f"{AN}role-hash"] for name, entry in written.items()} == {
        "leader": "leader",
        "worker": "worker",
    }
    joined = written["leader"]["metadata"]
    assert joined["annotations"][f"{AN}pod-group-name"] == names(1)[0]
    assert joined["annotations"][f"{AN}pod-group-total-count"] == "2"
    assert (joined["labels"][f"{AN}managed"], joined["labels"][f"{AN}queue-name"]) == ("true", "lq")
    assert sync(plain, *made(plain), around=(set_of_leaders(), written["leader"])).writes == ()
    # The queue of those that wait follows the set; others may not change theirs any more.
    other = leader_worker(leader=True, queue="other")
    runs = {**written["leader"], "spec": {}}
    for pod, n_written in ((written["leader"], 1), (runs, 0)):
        assert len(sync(other, *made(plain), around=(set_of_leaders(), pod)).writes) == n_written


def test_pods_that_wait_for_nothing_any_more_are_let_go() -> None:
    plain = leader_worker()
    rolling = set_of_leaders(currentRevision="1", updateRevision="2")
    old, orphan = pod_of_group("old"), pod_of_group("orphan", owner="gone")
    old["metadata"]["labels"]["controller-revision-hash"] = "1"
    joined = pods_written(sync(plain, *made(plain), around=(rolling, old, orphan)))
    assert {name: bool(entry["spec"]) for name, entry in joined.items()} == {"old": True, "orphan": False}
    workloads = [admitted(entry) for entry in made(plain)]
    (freed,) = pods_written(sync(plain, *workloads, around=(rolling, *joined.values()))).values()
    assert (freed["metadata"]["name"], freed["spec"]) == ("old", {})
    (write,) = ungate_pods([old, pod_of_group("runs", gated=False)])
    assert (write.manifest["metadata"]["name"], write.manifest["spec"]) == ("old", {})  # type: ignore[index,call-overload]


def test_on_a_worker_the_names_are_those_of_the_manager() -> None:
    origin: Json = {"labels": {f"{AN}queue-name": "lq", f"{AN}multikueue-origin": "multikueue"}}
    origin |= {"annotations": {f"{AN}multikueue-origin-uid": "there"}, "uid": "here"}
    found = sync(leader_worker(1, **origin), around=(set_of_leaders(), pod_of_group("p")))
    assert (found.steps, found.reason) == ((), "its Workloads come from the manager cluster")
    annotations = pods_written(found)["p"]["metadata"]["annotations"]
    assert annotations[f"{AN}prebuilt-workload-name"] == names(1, uid="there")[0]
