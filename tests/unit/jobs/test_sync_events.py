"""The events that Kueue creates when it does something about the Workloads of a job."""

from __future__ import annotations

import copy
from typing import Any

from kueuecore.jobs import JobsConfiguration, Sync, pod_group, sync_workloads, workloads_for
from tests.jobs import job

Json = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"
AN = "kueue.x-k8s.io/"


def batch(n_pods: int, *, suspend: bool = True, labels: dict[str, str] | None = None, **annotations: str) -> Json:
    made = job("Job", **(labels or {}))
    made["metadata"] |= {"uid": "u", "annotations": {f"{AN}{k.replace('_', '-')}": v for k, v in annotations.items()}}
    made["spec"] = {**made["spec"], "parallelism": n_pods, "completions": n_pods, "suspend": suspend}
    return made


def sync(plain: Json, *workloads: Json, around: tuple[Json, ...] = (), **gates: bool) -> Sync:
    configuration = JobsConfiguration(feature_gates=gates)
    return sync_workloads(plain, workloads, now=NOW, around=around, configuration=configuration)


def events(found: Sync) -> list[tuple[str, str, str, str]]:
    """Type, reason, message and name of the object, first those of writes, then those of steps."""
    every = [*found.events, *(step.event for step in found.steps if step.event is not None)]
    return [(event.type, event.reason, event.message, str(event.object["metadata"]["name"])) for event in every]  # type: ignore[index,call-overload]


def only_made(plain: Json) -> Json:
    (step,) = sync(plain).steps
    return copy.deepcopy(dict(step.workload))


def reserved(workload: Json) -> Json:
    return workload | {"status": {"conditions": [{"type": "QuotaReserved", "status": "True"}]}}


def test_making_changing_and_deleting_a_workload_are_events_on_the_job() -> None:
    stored = only_made(batch(3))
    key = f"n/{stored['metadata']['name']}"
    assert events(sync(batch(3))) == [("Normal", "CreatedWorkload", f"Created Workload: {key}", "j")]
    updated = f"Updated not matching Workload for suspended job: {key}"
    assert events(sync(batch(4), stored)) == [("Normal", "UpdatedWorkload", updated, "j")]
    stopped = "No matching Workload; restoring pod templates according to existent Workload"
    assert events(sync(batch(4, suspend=False), reserved(stored))) == [
        ("Normal", "Stopped", stopped, "j"),
        ("Normal", "DeletedWorkload", f"Deleted not matching Workload: {key}", "j"),
    ]
    # Nothing is there to be stopped by.
    (event, _) = events(sync(batch(4, suspend=False)))
    assert event == ("Normal", "Stopped", "Missing Workload; unable to restore pod templates", "j")


def test_what_a_workload_follows_is_an_event_but_for_its_queue() -> None:
    stored = only_made(batch(1, admission_gated_by="a.io/x"))
    key = f"n/{stored['metadata']['name']}"
    high = {"apiVersion": f"{AN}v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 7}
    changed = batch(1, labels={f"{AN}queue-name": "other", f"{AN}priority-class": "high"}, admission_gated_by="b.io/y")
    assert events(sync(changed, stored, around=(high,))) == [
        ("Normal", "UpdatedWorkload", 'Updated workload AdmissionGatedBy to "b.io/y"', "j"),
        ("Normal", "UpdatedWorkload", f"Updated workload priority class: {key}", "j"),
    ]


def test_a_missing_class_is_warned_of_and_waited_for() -> None:
    without = batch(1, suspend=False, labels={f"{AN}priority-class": "gone"})
    found = sync(without)
    message = 'WorkloadPriorityClass "gone" not found'
    assert (found.workloads, found.steps, found.reason) == ((), (), message)
    # It has been stopped, and goes on waiting.
    assert events(found)[1:] == [("Warning", "WorkloadPriorityClassNotFound", message, "j")]
    assert found.writes
    # Of a missing PriorityClass Kueue says nothing.
    pods = batch(1)
    pods["spec"]["template"] = {"spec": {"containers": [{"name": "c"}], "priorityClassName": "gone"}}
    assert sync(pods) == Sync(reason='PriorityClass "gone" not found')


def test_a_job_whose_prebuilt_workload_is_missing_is_stopped_and_waits() -> None:
    found = sync(batch(1, suspend=False, prebuilt_workload_name="w"))
    assert found.reason == 'its prebuilt Workload "w" is not there, or another object controls it'
    assert [write.manifest["spec"]["suspend"] for write in found.writes][-1] is True  # type: ignore[index,call-overload]
    assert events(found) == [("Normal", "Stopped", "missing workload", "j")]


def test_a_child_of_a_managed_job_gets_no_workload() -> None:
    parent = job("RayJob", "parent") | {"kind": "RayJob"}
    parent["metadata"]["uid"] = "p"
    owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "parent", "uid": "p", "controller": True}
    child = batch(1)
    child["metadata"]["ownerReferences"] = [owner]
    assert sync(child, around=(parent,)) == Sync(reason='RayJob "n/parent" owns it, and has the Workload')
    # Neither does it while nobody knows whose it is.
    assert sync(child) == Sync(reason='its owner RayJob "n/parent" is not among the manifests')
    # Who has another UID is another one.
    parent["metadata"]["uid"] = "other"
    assert [step.action for step in sync(child, around=(parent,)).steps] == ["Create"]


def test_owners_without_end_are_warned_of() -> None:
    chain: list[Json] = []
    for index in range(12):
        link = job("JobSet", f"j{index}")
        owner = {"apiVersion": link["apiVersion"], "kind": "JobSet", "name": f"j{index + 1}", "uid": f"u{index + 1}"}
        link["metadata"] |= {"uid": f"u{index}", "ownerReferences": [{**owner, "controller": True}]}
        chain.append(link)
    message = "Terminated search for Kueue-managed Job because ancestor depth exceeded limit of 10"
    assert events(sync(chain[0], around=tuple(chain))) == [("Warning", "JobNestingTooDeep", message, "j0")]


def test_a_variant_is_no_workload_of_the_job_itself() -> None:
    stored = only_made(batch(3))
    parent = {"apiVersion": f"{AN}v1beta2", "kind": "Workload", "name": stored["metadata"]["name"], "uid": "w"}
    owners = [{**parent, "controller": True}, {**stored["metadata"]["ownerReferences"][0], "controller": False}]
    variant = {**stored, "metadata": {**stored["metadata"], "name": "variant", "ownerReferences": owners}}
    assert sync(batch(3), stored, variant) == Sync(workloads=(stored,))
    assert sync(batch(4), variant).steps[0].action == "Create"


def test_a_workload_that_goes_already_is_not_deleted_again() -> None:
    stored = only_made(batch(3))
    going = {**stored, "metadata": {**stored["metadata"], "deletionTimestamp": NOW, "finalizers": []}}
    found = sync(batch(4), reserved(going))
    name = stored["metadata"]["name"]
    assert (found.steps, found.reason) == ((), f'a Workload named "{name}" is still there')


# Groups of pods.


def member(name: str, *, created: int = 0) -> Json:
    pod = job("Pod", name)
    pod["metadata"] |= {
        "uid": name,
        "creationTimestamp": f"2026-01-01T00:00:{created:02}Z",
        "annotations": {f"{AN}pod-group-name": "g", f"{AN}pod-group-total-count": "2"},
    }
    return pod


def group_of(*pods: Json) -> Json:
    (*made,) = workloads_for(pods).jobs
    return pod_group("g", made)


def test_pods_of_a_group_have_their_events() -> None:
    one, two, three = (member(name, created=index) for index, name in enumerate(("one", "two", "three")))
    stored = only_made(group_of(one, two))
    excess = ("Normal", "ExcessPodDeleted", "Excess pod deleted", "three")
    assert events(sync(group_of(one, two, three), stored)) == [excess]
    assert events(sync(group_of(one, two, three)))[0] == excess
    failed = {**two, "status": {"phase": "Failed"}}
    assert ("Normal", "OwnerReferencesAdded", "Added 1 owner reference(s)", "g") in events(
        sync(group_of(one, failed, three), stored)
    )
    few = "'g' group has fewer runnable pods than expected"
    assert events(sync(group_of(one, failed))) == [("Warning", "ErrWorkloadCompose", few, "one")]


def test_pods_of_a_group_are_let_go_though_its_name_is_taken() -> None:
    one, two = member("one"), {**member("two", created=1), "status": {"phase": "Failed"}}
    foreign = only_made(group_of(one, member("two", created=1)))
    del foreign["metadata"]["annotations"]
    found = sync(group_of(one, two), foreign)
    message = 'A Workload named "g" already exists but is not a pod group workload; this pod group cannot be admitted'
    assert events(found) == [("Warning", "WorkloadNameConflict", message, "one")]
    assert [write.manifest["metadata"]["name"] for write in found.writes] == ["two"]  # type: ignore[index,call-overload]
    assert [write.manifest["metadata"]["finalizers"] for write in found.writes] == [[]]  # type: ignore[index,call-overload]


def test_stopped_pods_of_a_group_each_have_an_event() -> None:
    one, two = ({**member(name), "status": {"phase": "Running"}} for name in ("one", "two"))
    made = group_of(one, two)
    for pod in made["items"]:
        pod["spec"] = {key: value for key, value in pod["spec"].items() if key != "schedulingGates"}
    found = sync(made)
    message = "Missing Workload; unable to restore pod templates"
    assert [event[:3] for event in events(found)] == [("Normal", "Stopped", message)] * 2
    targets: Any = found.writes[0].manifest["status"]
    assert targets["conditions"][-1]["message"] == message
