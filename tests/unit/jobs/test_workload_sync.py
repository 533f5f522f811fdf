"""What becomes of the Workloads of a job that changes (rules/10 §3.4, §5.4, §6)."""

from __future__ import annotations

import copy
from typing import Any

from kueuecore import Engine
from kueuecore.jobs import JobsConfiguration, Sync, pod_group, sync_workloads, workloads_for
from kueuecore.objects import Namespace
from tests.builders import cluster_queue, flavor
from tests.jobs import job
from tests.unit.jobs.sample_job import deed

Json = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"
AN = "kueue.x-k8s.io/"


def batch(n_pods: int, *, suspend: bool = True, cpu: str = "1", generation: int = 1, **annotations: str) -> Json:
    made = job("Job")
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    made["metadata"] |= {"uid": "u", "generation": generation}
    made["metadata"]["annotations"] = {f"{AN}{key.replace('_', '-')}": text for key, text in annotations.items()}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    made["spec"] = {"parallelism": n_pods, "completions": n_pods, "suspend": suspend, "template": template}
    return made


def sync(plain: Json, *workloads: Json, around: tuple[Json, ...] = (), **gates: bool) -> Sync:
    configuration = JobsConfiguration(feature_gates=gates)
    return sync_workloads(plain, workloads, now=NOW, around=around, configuration=configuration)


def only_made(plain: Json) -> Json:
    (step,) = sync(plain).steps
    assert step.action == "Create"
    return copy.deepcopy(dict(step.workload))


def holding(workload: Json, *kinds: str, **reasons: str) -> Json:
    admission = {
        "clusterQueue": "cq",
        "podSetAssignments": [
            {"name": pod_set["name"], "flavors": {"cpu": "default"}, "count": pod_set["count"]}
            for pod_set in workload["spec"]["podSets"]
        ],
    }
    conditions = [{"type": kind, "status": "True", "reason": reasons.get(kind, kind)} for kind in kinds]
    return {**workload, "status": {"admission": admission, "conditions": conditions}}


def reported(found: Sync) -> list[tuple[str, str]]:
    return [(str(step.action), str(step.workload["metadata"]["name"])) for step in found.steps]  # type: ignore[index,call-overload]


def gone(name: Any) -> list[tuple[str, str]]:
    """The steps of a deletion: nothing holds it any more, then it goes."""
    return [("Update", name), ("Delete", name)]


def counts(workload: Any) -> list[int]:
    return [pod_set["count"] for pod_set in workload["spec"]["podSets"]]


def test_a_workload_that_fits_is_kept() -> None:
    stored = only_made(batch(3))
    assert stored["metadata"] == workloads_for([batch(3)]).workloads[0].object["metadata"]
    assert sync(batch(3), stored) == Sync(workloads=(stored,))
    reserved = holding(stored, "QuotaReserved", "Admitted")
    assert sync(batch(3), reserved).workload == reserved


def test_a_suspended_job_that_changed_gets_its_workload_changed_and_what_runs_is_stopped() -> None:
    stored = {**only_made(batch(3)), "spec": {**only_made(batch(3))["spec"], "active": False}}
    found = sync(batch(3, cpu="2"), stored)
    assert reported(found) == [("Update", stored["metadata"]["name"])]
    assert found.workload is not None
    assert found.workload["spec"]["active"] is False  # type: ignore[index,call-overload]
    # The Workload that holds quota is deleted, and the job reconciled again.
    reserved = holding(stored, "QuotaReserved")
    found = sync(batch(3, cpu="2"), reserved)
    assert (reported(found), found.workload, found.writes) == (gone(stored["metadata"]["name"]), None, ())
    found = sync(batch(3, cpu="2", suspend=False), reserved)
    assert reported(found) == gone(stored["metadata"]["name"])
    assert [write.manifest["spec"]["suspend"] for write in found.writes][-1] is True  # type: ignore[index,call-overload]


def test_of_two_workloads_one_is_kept() -> None:
    one = only_made(batch(3))
    two = {**one, "metadata": {**one["metadata"], "name": "other"}}
    assert reported(sync(batch(3), one, two)) == gone("other")


def test_a_running_job_without_a_workload_is_stopped_and_gets_one_once_its_pods_are_gone() -> None:
    active = {**batch(3, suspend=False), "status": {"active": 3}}
    found = sync(active)
    assert (found.steps, found.reason) == ((), "it still has active pods")
    assert found.writes
    assert reported(sync(batch(3, suspend=False)))[0][0] == "Create"
    done = {**batch(3), "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert sync(done) == Sync(reason="it has finished")


def test_a_waiting_workload_follows_queue_priority_and_gates_of_its_job() -> None:
    gated = batch(1, admission_gated_by="a.io/x")
    stored = only_made(gated)
    changed = batch(1)
    changed["metadata"]["labels"] |= {f"{AN}queue-name": "other", f"{AN}priority-class": "high"}
    high = {"apiVersion": f"{AN}v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 7}
    found: Any = sync(changed, stored, around=(high,)).workload
    assert (found["spec"]["queueName"], found["spec"]["priority"]) == ("other", 7)
    assert f"{AN}admission-gated-by" not in found["metadata"]["annotations"]
    waits = sync(changed, stored)
    assert (waits.workload, waits.reason) == (None, 'WorkloadPriorityClass "high" not found')
    # One that holds quota without a class gets none any more.
    assert sync(changed, holding(stored, "QuotaReserved", "Admitted"), around=(high,)).workload is not None


def test_a_prebuilt_workload_is_taken_over_or_ends() -> None:
    uses = batch(3, prebuilt_workload_name="w")
    assert sync(uses).reason.startswith('its prebuilt Workload "w" is not there')
    made = only_made(batch(3))
    free = {**made, "metadata": {"name": "w", "namespace": "n"}}
    found = sync(uses, free)
    assert reported(found) == [("Update", "w")]
    assert found.workload is not None
    assert sync(uses, found.workload) == Sync(workloads=(found.workload,))
    (step,) = sync(batch(4, prebuilt_workload_name="w"), found.workload).steps
    assert (str(step.action), step.reason, step.message) == (
        "Finish", "OutOfSync", "The prebuilt workload is out of sync with its user job",
    )  # fmt: skip
    other = {
        **free,
        "metadata": {**free["metadata"], "ownerReferences": [{"controller": True, "uid": "x", "name": "y"}]},
    }
    assert sync(uses, other).workload is None


# Elastic jobs.


def elastic(n_pods: int, generation: int = 1, cpu: str = "1") -> Json:
    return batch(n_pods, cpu=cpu, suspend=False, generation=generation, elastic_job="true")


def first_slice(n_pods: int = 2) -> Json:
    made = only_made(elastic(n_pods))
    made["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "uid": "1"}
    return made


def test_a_slice_that_waits_or_shrinks_is_resized() -> None:
    waiting, running = first_slice(), holding(first_slice(), "QuotaReserved", "Admitted")
    for stored, n_pods in ((waiting, 5), (waiting, 1), (running, 1)):
        found = sync(elastic(n_pods, 2), stored)
        assert reported(found) == [("Update", stored["metadata"]["name"])]
        assert counts(found.workload) == [n_pods]
        # The job goes on running meanwhile.
        assert found.writes == ()
    assert sync(elastic(2), running) == Sync(workloads=(running,))


def test_a_running_slice_grows_by_a_new_one_that_replaces_it() -> None:
    running = holding(first_slice(), "QuotaReserved", "Admitted")
    name = running["metadata"]["name"]
    (step,) = sync(elastic(5, 2), running).steps
    new: Any = step.workload
    assert (str(step.action), counts(new)) == ("Create", [5])
    assert new["metadata"]["name"] != name
    assert new["metadata"]["annotations"] == {
        f"{AN}elastic-job": "true",
        f"{AN}workload-slice-name": name,
        f"{AN}workload-slice-replacement-for": f"n/{name}",
    }
    # While it waits it is resized; then the old one ends, which the scheduler does, and the chain goes on.
    new["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:09Z", "uid": "2"}
    found = sync(elastic(6, 3), running, new)
    assert (reported(found), counts(found.workload)) == ([("Update", new["metadata"]["name"])], [6])
    admitted = holding(new, "QuotaReserved", "Admitted")
    ended = holding(first_slice(), "QuotaReserved", "Admitted", "Finished")
    (step,) = sync(elastic(7, 4), ended, admitted).steps
    third: Any = step.workload
    assert third["metadata"]["annotations"][f"{AN}workload-slice-name"] == name
    assert third["metadata"]["annotations"][f"{AN}workload-slice-replacement-for"] == f"n/{new['metadata']['name']}"


def test_of_several_slices_the_newest_that_holds_quota_and_its_replacement_stay() -> None:
    old = holding(first_slice(), "QuotaReserved", "Admitted")
    new = copy.deepcopy(first_slice(5))
    new["metadata"] |= {"name": "new", "uid": "2", "creationTimestamp": "2026-01-01T00:00:01Z"}
    new["metadata"]["annotations"][f"{AN}workload-slice-replacement-for"] = f"n/{old['metadata']['name']}"
    stray = copy.deepcopy(first_slice(9))
    stray["metadata"] |= {"name": "stray", "uid": "3", "creationTimestamp": "2026-01-01T00:00:02Z"}
    found = sync(elastic(5), old, new, stray)
    assert [(step.reason, step.message) for step in found.steps] == [
        ("OutOfSync", "The workload slice is out of sync with its parent job")
    ]
    assert found.workload == new
    found = sync(elastic(5), old, holding(new, "QuotaReserved"))
    assert [(step.reason, step.message) for step in found.steps] == [
        ("WorkloadSliceReplaced", "Replaced to accommodate a new workload slice")
    ]


def test_a_job_that_stays_the_same_size_but_not_the_same_is_elastic_no_more() -> None:
    running = holding(first_slice(), "QuotaReserved", "Admitted")
    renamed = copy.deepcopy(running)
    renamed["spec"]["podSets"][0]["name"] = "other"
    found = sync(elastic(2, cpu="2"), renamed)
    assert reported(found) == gone(running["metadata"]["name"])


def test_the_engine_charges_a_new_slice_for_the_difference() -> None:
    engine = Engine()
    queue: Json = {"apiVersion": f"{AN}v1beta2", "kind": "LocalQueue", "metadata": {"name": "lq", "namespace": "n"}}
    engine.apply([Namespace("n"), flavor(), cluster_queue(cpu=5), queue | {"spec": {"clusterQueue": "cq"}}], now=0)
    engine.apply([first_slice(2) | {"metadata": {**first_slice()["metadata"], "uid": "1"}}], now=0)
    assert len(engine.cycle(0).admissions) == 1
    stored = engine.workload(first_slice()["metadata"]["name"], namespace="n")
    running = {**first_slice(), "status": dict(stored.status)}
    (step,) = sync(elastic(5, 2), running).steps
    engine.apply([dict(step.workload)], now=1)
    decision = engine.cycle(1)
    assert [admission.key for admission in decision.admissions] == [f"n/{step.workload['metadata']['name']}"]  # type: ignore[index,call-overload]
    assert [slice_.key for slice_ in decision.replaced_slices] == [f"n/{stored.name}"]


# Groups of pods.


def member(name: str, *, phase: str = "Pending", created: int = 0, n: int = 2, **status: Any) -> Json:
    pod = job("Pod", name)
    pod["metadata"] |= {
        "uid": name,
        "creationTimestamp": f"2026-01-01T00:00:{created:02}Z",
        "annotations": {f"{AN}pod-group-name": "g", f"{AN}pod-group-total-count": str(n)},
        "labels": {**pod["metadata"]["labels"], f"{AN}managed": "true"},
        "finalizers": [f"{AN}managed"],
    }
    return pod | {"status": {"phase": phase, **status}}


def group_of(*pods: Json) -> Json:
    (*made,) = workloads_for(pods).jobs
    return pod_group("g", made)


def written(found: Sync) -> list[tuple[str, str]]:
    return [(deed(write), write.name) for write in found.writes]


def test_a_failed_pod_of_a_group_waits_for_its_replacement_and_is_let_go_then() -> None:
    stored = only_made(group_of(member("one"), member("two", created=1)))
    one, two = member("one", phase="Running"), member("two", phase="Running", created=1)
    failed = {**two, "status": {"phase": "Failed"}}
    found: Any = sync(group_of(one, failed), stored)
    assert (reported(found), written(found)) == ([("UpdateStatus", "g")], [])
    (condition,) = found.workload["status"]["conditions"]
    assert condition == {
        "type": "WaitingForReplacementPods",
        "status": "True",
        "reason": "PodsFailed",
        "message": "Some Failed pods need replacement",
        "lastTransitionTime": NOW,
    }
    assert sync(group_of(one, failed), found.workload).steps == ()
    three = member("three", created=9)
    found = sync(group_of(one, failed, three), found.workload)
    assert written(found) == [("Update", "two")]
    assert next(step.workload["metadata"]["ownerReferences"][-1]["name"] for step in found.steps) == "three"
    (condition,) = found.workload["status"]["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "False", "PodsReady", "No pods need replacement",
    )  # fmt: skip


def test_a_group_that_was_evicted_waits_for_pods_for_that_reason() -> None:
    one, two = member("one"), member("two", created=1)
    stored = holding(only_made(group_of(one, two)), "Evicted", Evicted="Preempted")
    found: Any = sync(group_of(one, {**two, "status": {"phase": "Failed"}}), stored)
    assert [condition["reason"] for condition in found.workload["status"]["conditions"]] == ["Preempted", "Preempted"]


def test_pods_beyond_the_size_of_their_role_are_deleted_the_youngest_first() -> None:
    pods = [member(name, created=index) for index, name in enumerate(("one", "two", "three"))]
    stored = only_made(group_of(*pods[:2]))
    found = sync(group_of(*pods), stored)
    assert written(found) == [("Update", "three"), ("Delete", "three")]
    fresh = sync(group_of(*pods))
    assert written(fresh) == [("Update", "three"), ("Delete", "three")]
    assert reported(fresh) == [("Create", "g")]


def test_a_group_does_not_take_what_is_not_its_own() -> None:
    pods = member("one"), member("two", created=1)
    foreign = only_made(group_of(*pods))
    del foreign["metadata"]["annotations"]
    assert sync(group_of(*pods), foreign).reason == (
        'A Workload named "g" already exists but is not a pod group workload'
    )
    assert sync(group_of(*pods), foreign, PodIntegrationValidateGroupOwner=False).workload is not None
    # Pods of other roles are others; if there are only such, it is another group.
    odd = copy.deepcopy(list(pods))
    for pod in odd:
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = 2
    stored = only_made(group_of(*pods))
    assert reported(sync(group_of(pods[0], odd[1]), stored)) == [("UpdateStatus", "g")]
    assert reported(sync(group_of(*odd), stored)) == [("Update", "g")]


def test_too_few_pods_of_a_group_get_no_workload() -> None:
    found = sync(group_of(member("one"), {**member("two"), "status": {"phase": "Failed"}}))
    assert (found.steps, found.reason) == ((), "'g' group has fewer runnable pods than expected")


def test_a_deployment_has_no_workload_of_its_own() -> None:
    assert sync(job("Deployment")).reason.startswith("the pods of a Deployment have the Workloads")


def test_a_prebuilt_workload_of_a_group_belongs_to_all_of_its_pods() -> None:
    group: Any = group_of(member("one"), member("two", created=1))
    made = only_made(group)
    free = {key: manifest for key, manifest in made["metadata"].items() if key != "ownerReferences"}
    for pod in (group, *group["items"]):
        pod["metadata"]["annotations"][f"{AN}prebuilt-workload-name"] = "g"
    found: Any = sync(group, {**made, "metadata": free})
    assert reported(found) == [("Update", "g")]
    assert [reference["name"] for reference in found.workload["metadata"]["ownerReferences"]] == ["one", "two"]
    assert sync(group, found.workload) == Sync(workloads=(found.workload,))
