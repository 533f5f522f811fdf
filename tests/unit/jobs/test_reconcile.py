"""One reconcile of a job (rules/10 §2.3, §4)."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.jobs import JobReport, JobsConfiguration, Reconciliation, pod_group, reconcile_job, workloads_for
from kueuecore.times import nanoseconds
from kueuecore.writes import Verb
from tests.unit.jobs.sample_job import deed
from tests.unit.jobs.test_workload_sync import AN, NOW, batch, holding, only_made

Json = dict[str, Any]
FLAVOR: Json = {"apiVersion": f"{AN}v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "default"}}
KEY = ("n", "job-j-5cf3c")


SPOT: Json = {**FLAVOR, "spec": {"nodeLabels": {"pool": "spot"}}}


def look(plain: Json, *workloads: Json, around: tuple[Json, ...] = (FLAVOR,), **settings: Any) -> Reconciliation:
    configuration = JobsConfiguration(**({"waits_for_pods_ready": False} | settings))
    return reconcile_job(plain, workloads, now=NOW, around=around, configuration=configuration)


def wrote(found: Reconciliation) -> list[tuple[str, str]]:
    return [(deed(write), f"{write.kind} {write.name}") for write in found.writes]


def reported(found: Reconciliation) -> list[tuple[str, str]]:
    return [(event.reason, event.message) for event in found.events]


def with_status(plain: Json, **status: Any) -> Json:
    return {**plain, "status": {**plain.get("status", {}), **status}}


def evicted(workload: Json, *kinds: str, reason: str = "Preempted") -> Json:
    made = holding(workload, *kinds)
    condition = {"type": "Evicted", "status": "True", "reason": reason, "message": "to make room"}
    return with_status(made, conditions=[*made["status"]["conditions"], {**condition, "lastTransitionTime": NOW}])


def pod(name: str, *, phase: str = "Pending", gated: bool = False, group: str = "g", total: int = 2) -> Json:
    metadata: Json = {"name": name, "namespace": "n", "uid": name, "labels": {f"{AN}managed": "true"}}
    metadata["labels"][f"{AN}queue-name"] = "lq"
    metadata["finalizers"] = [f"{AN}managed"]
    if group:
        metadata["annotations"] = {f"{AN}pod-group-name": group, f"{AN}pod-group-total-count": str(total)}
    gates = [{"name": f"{AN}admission"}] if gated else []
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec: Json = {"containers": [container], "schedulingGates": gates, "restartPolicy": "Never"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def group_workload(*pods: Json) -> Json:
    found = reconcile_job(pod_group("g", pods), [], now=NOW)
    (made,) = [write.manifest for write in found.writes if write.verb is Verb.CREATE]
    return dict(made)


def test_a_group_without_a_webhook_keeps_its_roles_when_its_flavor_adds_a_node_selector() -> None:
    waiting = [pod("a", gated=True), pod("b", gated=True)]
    workload = holding(group_workload(*waiting), "QuotaReserved", "Admitted")
    started = look(pod_group("g", waiting), workload, around=(SPOT,))
    pods = [write.manifest for write in started.writes]
    (role,) = {pod["metadata"]["annotations"][f"{AN}role-hash"] for pod in pods}  # type: ignore[index,call-overload]
    assert role == workload["spec"]["podSets"][0]["name"]
    assert [pod["spec"]["nodeSelector"] for pod in pods] == [{"pool": "spot"}] * 2  # type: ignore[index,call-overload]
    running = look(pod_group("g", pods), workload, around=(SPOT,))
    assert (wrote(running), reported(running)) == ([], [])


# Eviction.


def test_whatever_is_evicted_is_stopped_also_if_it_counts_as_suspended() -> None:
    gated = [pod("a", gated=True), pod("b", gated=True)]
    workload = evicted(group_workload(*gated), "QuotaReserved", "Admitted")
    # The one that has ended counts as suspended, and no other one runs.
    group = pod_group("g", [pod("a", phase="Succeeded"), pod("b")])
    found = look(group, workload)
    assert wrote(found) == [("UpdateStatus", "Pod b"), ("Delete", "Pod b")]
    assert reported(found) == [("Stopped", "to make room")]
    assert found.events[0].object["metadata"]["name"] == "b"  # type: ignore[index,call-overload]
    condition = found.writes[0].manifest["status"]["conditions"][-1]  # type: ignore[index,call-overload]
    assert (condition["type"], condition["reason"]) == ("TerminationTarget", "WorkloadEvictedDueToPreempted")  # type: ignore[index,call-overload]
    assert found.reports == {("n", "g"): JobReport(stopped=True)}


def test_an_evicted_job_gives_its_quota_back_once_it_has_no_pods() -> None:
    workload = evicted(only_made(batch(2)), "QuotaReserved", "Admitted")
    running = with_status(batch(2, suspend=False), active=2)
    found = look(running, workload)
    assert (wrote(found), found.reports) == ([("Update", "Job j"), ("Update", "Job j")], {})
    assert reported(found) == [("Stopped", "to make room")]
    assert look(with_status(batch(2), active=1), workload) == Reconciliation(workload=workload)
    assert look(batch(2), workload).reports == {KEY: JobReport(stopped=True)}
    # Without quota there is nothing to give back.
    assert look(batch(2), evicted(only_made(batch(2)))).reports == {}


def test_the_job_of_a_deactivated_workload_goes_after_its_retention() -> None:
    workload = evicted(only_made(batch(1)), reason="DeactivatedDueToRequeuingLimitExceeded")
    workload = {**workload, "spec": {**workload["spec"], "active": False}}
    second = 10**9
    later = look(batch(1), workload, deactivated_retention_ns=90 * second)
    assert (later.writes, later.wake) == ((), nanoseconds(NOW) + 90 * second)
    found = look(batch(1), workload, deactivated_retention_ns=0)
    assert wrote(found) == [("Delete", "Job j")]
    assert reported(found) == [("Deleted", "Deleted job: deactivation retention period expired")]
    by_hand = {**workload, "spec": {**workload["spec"], "active": True}}
    assert look(batch(1), by_hand, deactivated_retention_ns=0) == Reconciliation(workload=by_hand)


# Readiness.


@pytest.mark.parametrize(
    ("kinds", "said", "is_ready", "report"),
    [
        ((), None, False, False),
        (("Admitted",), None, False, False),
        (("Admitted",), None, True, True),
        (("Admitted",), ("False", "WaitForStart"), False, None),
        (("Admitted",), ("False", "WaitForStart"), True, True),
        (("Admitted",), ("True", "Started"), True, None),
        (("Admitted",), ("True", "Started"), False, False),
        (("Admitted",), ("False", "WaitForRecovery"), False, None),
        # It has lost its admission since: it waits for a start again, not for a recovery.
        ((), ("True", "Started"), True, True),
        ((), ("False", "WaitForRecovery"), False, False),
        ((), ("False", "WaitForStart"), False, None),
    ],
)
def test_readiness_is_reported_where_the_workload_does_not_say_it(
    kinds: tuple[str, ...], said: tuple[str, str] | None, is_ready: bool, report: bool | None
) -> None:
    workload = holding(only_made(batch(1)), *(("QuotaReserved", *kinds) if kinds else ()))
    if said is not None:
        condition = {"type": "PodsReady", "status": said[0], "reason": said[1]}
        workload["status"]["conditions"].append(condition)
    plain = with_status(batch(1, suspend=not kinds), ready=int(is_ready))
    expected = {} if report is None else {KEY: JobReport(are_ready=report)}
    assert look(plain, workload, waits_for_pods_ready=True).reports == expected
    assert look(plain, workload).reports == {}


# Start.


def test_an_admitted_job_is_started_and_a_running_one_without_admission_stopped() -> None:
    workload = holding(only_made(batch(1)), "QuotaReserved", "Admitted")
    found = look(batch(1), workload)
    assert (wrote(found), reported(found)) == ([("Update", "Job j")], [("Started", "Admitted by clusterQueue cq")])
    assert found.writes[0].manifest["spec"]["suspend"] is False  # type: ignore[index,call-overload]
    assert look(batch(1, suspend=False), workload) == Reconciliation(workload=workload)
    waiting = only_made(batch(1))
    stopped = look(batch(1, suspend=False), waiting)
    assert reported(stopped) == [("Stopped", "Not admitted by cluster queue")]
    assert [write for write, _ in wrote(stopped)] == ["Update", "Update"]
    # An elastic one has gates for its new pods.
    elastic = batch(1, suspend=False, elastic_job="true")
    assert look(elastic, only_made(elastic)).writes == ()


def test_a_flavor_that_is_missing_is_waited_for_and_a_conflict_is_the_end() -> None:
    workload = holding(only_made(batch(1)), "QuotaReserved", "Admitted")
    missing = look(batch(1), workload, around=())
    assert (missing.writes, missing.reports) == ((), {})
    assert "ResourceFlavor" in missing.waits_for
    labels = {"spec": {"nodeLabels": {"pool": "spot"}}}
    plain = batch(1)
    plain["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "other"}
    workload = holding(only_made(plain), "QuotaReserved", "Admitted")
    (report,) = look(plain, workload, around=({**FLAVOR, **labels},)).reports.values()
    assert report.finished is not None
    assert report.finished[0] == "FailedToStart"


def test_pods_that_run_on_a_worker_keep_their_gates() -> None:
    gated = [pod("a", gated=True), pod("b", gated=True)]
    workload = holding(group_workload(*gated), "QuotaReserved", "Admitted")
    workload = with_status(workload, admissionChecks=[{"name": "mk", "state": "Ready"}])
    workload["status"]["admission"]["podSetAssignments"][0]["name"] = workload["spec"]["podSets"][0]["name"]
    check = {"apiVersion": f"{AN}v1beta2", "kind": "AdmissionCheck", "metadata": {"name": "mk"}}
    remote: Json = {**check, "spec": {"controllerName": f"{AN}multikueue"}}
    local: Json = {**check, "spec": {"controllerName": "example.com/other"}}
    group = pod_group("g", gated)
    assert look(group, workload, around=(FLAVOR, remote)).writes == ()
    started = look(group, workload, around=(FLAVOR, local))
    assert wrote(started) == [("Update", "Pod a"), ("Update", "Pod b")]
    assert len(started.events) == 2


def test_check_messages_are_reported_while_a_reservation_waits_for_them() -> None:
    workload = holding(only_made(batch(1)), "QuotaReserved")
    checks = [{"name": "a", "state": "Pending", "message": "no capacity"}, {"name": "b", "state": "Ready"}]
    found = look(batch(1), with_status(workload, admissionChecks=checks))
    assert reported(found) == [("UpdatedAdmissionCheck", "a: no capacity")]


# A Workload that follows its job.


def test_a_pending_job_may_change_queue_priority_and_size() -> None:
    workload = only_made(batch(2))
    moved = batch(2)
    moved["metadata"]["labels"] = {**moved["metadata"]["labels"], f"{AN}queue-name": "other"}
    (write,) = look(moved, workload).writes
    assert write.manifest["spec"]["queueName"] == "other"  # type: ignore[index,call-overload]
    urgent = batch(2)
    urgent["metadata"]["labels"] = {**urgent["metadata"]["labels"], f"{AN}priority-class": "high"}
    high = {"apiVersion": f"{AN}v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 7}
    (write,) = look(urgent, workload, around=(high,)).writes
    assert write.manifest["spec"]["priority"] == 7  # type: ignore[index,call-overload]
    found = look(batch(3), workload)
    assert found.writes[0].manifest["spec"]["podSets"][0]["count"] == 3  # type: ignore[index,call-overload]
    assert reported(found) == [("UpdatedWorkload", "Updated not matching Workload for suspended job: n/job-j-5cf3c")]


def test_why_a_job_gets_no_workload_is_said() -> None:
    urgent = batch(1)
    urgent["metadata"]["labels"] = {**urgent["metadata"]["labels"], f"{AN}priority-class": "high"}
    found = look(urgent)
    assert 'WorkloadPriorityClass "high"' in found.waits_for
    assert reported(found) == [("WorkloadPriorityClassNotFound", 'WorkloadPriorityClass "high" not found')]
    prebuilt = batch(1, suspend=False, prebuilt_workload_name="made")
    found = look(prebuilt)
    assert [kind for kind, _ in wrote(found)] == ["Update", "Update"]
    assert reported(found) == [("Stopped", "missing workload")]
    assert '"made"' in found.waits_for
    assert look(batch(1), frameworks=("pod",)).waits_for.startswith("the integration batch/job is not enabled")
    unnamed = batch(1)
    del unnamed["metadata"]["labels"]
    assert look(unnamed) == Reconciliation(waits_for="it names no queue")
    system = batch(1)
    system["metadata"]["namespace"] = "kube-system"
    assert "excludes" in look(system).waits_for
    stray = pod("a", group="")
    del stray["metadata"]["labels"][f"{AN}managed"]
    assert look(stray).waits_for == "it has no label kueue.x-k8s.io/managed: true"


def test_pods_that_are_done_give_their_quota_back_and_take_it_again() -> None:
    workload = holding(only_made(batch(3)), "QuotaReserved", "Admitted")
    running = with_status(batch(3, suspend=False), active=1, succeeded=2)
    (write,) = look(running, workload).writes
    assert (deed(write), write.manifest["status"]["reclaimablePods"]) == (  # type: ignore[index,call-overload]
        "UpdateStatus",
        [{"name": "main", "count": 2}],
    )
    told_so = with_status(workload, reclaimablePods=[{"name": "main", "count": 2}])
    assert look(running, told_so).writes == ()
    (write,) = look(with_status(batch(3, suspend=False), active=3), told_so).writes
    assert write.manifest["status"]["reclaimablePods"] == []  # type: ignore[index,call-overload]
    assert look(running, workload, feature_gates={"ReclaimablePods": False}).writes == ()


def test_a_job_on_hold_gives_its_quota_back() -> None:
    group = {"groupName": "w", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
    head = {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
    spec = {"suspend": True, "shutdownAfterJobFinishes": True, "submissionMode": "HTTPMode"}
    spec |= {"rayClusterSpec": {"headGroupSpec": head, "workerGroupSpecs": [group]}}
    metadata = {"name": "r", "namespace": "n", "uid": "u", "labels": {f"{AN}queue-name": "lq"}}
    plain: Json = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": spec}
    workload = holding(dict(look(plain).writes[0].manifest), "QuotaReserved")
    held = with_status(plain, jobDeploymentStatus="ValidationFailed")
    (write,) = look(held, workload).writes
    status: Any = write.manifest["status"]
    assert "admission" not in status
    reserved = status["conditions"][0]
    assert (reserved["type"], reserved["status"], reserved["reason"]) == ("QuotaReserved", "False", "OnHold")
    assert look(held, dict(write.manifest)).writes == ()


# Elastic jobs.


def elastic_pod(name: str, *, gated: bool = True, phase: str = "Pending", slice_name: str = "job-j-4b5ad") -> Json:
    made = pod(name, group="", phase=phase)
    made["metadata"] |= {"labels": {f"{AN}podset": "main"}, "annotations": {f"{AN}workload-slice-name": slice_name}}
    made["spec"]["schedulingGates"] = [{"name": f"{AN}elastic-job"}] * gated
    return made


def test_pods_of_an_elastic_job_go_as_far_as_its_admitted_slice_has_room() -> None:
    plain = batch(3, suspend=False, elastic_job="true")
    made = only_made(plain)
    name = made["metadata"]["name"]
    admitted = holding(made, "QuotaReserved", "Admitted")
    pods = [elastic_pod(text, slice_name=name) for text in ("c", "b", "a")]
    pods += [
        elastic_pod("runs", gated=False, slice_name=name),
        elastic_pod("ended", phase="Succeeded", slice_name=name),
    ]
    pods += [elastic_pod("other", slice_name="other")]
    found = look(plain, admitted, around=(FLAVOR, *pods))
    assert wrote(found) == [("Update", "Pod a"), ("Update", "Pod b")]
    assert all("schedulingGates" not in write.manifest["spec"] for write in found.writes)  # type: ignore[operator]
    assert look(plain, holding(made, "QuotaReserved"), around=(FLAVOR, *pods)).writes == ()
    assert look(plain, made, around=(FLAVOR, *pods)).writes == ()


def test_pods_of_an_elastic_job_get_what_a_check_says_of_them() -> None:
    plain = batch(2, suspend=False, elastic_job="true")
    made = only_made(plain)
    consumed = "autoscaling.x-k8s.io/consume-provisioning-request"
    update = {"name": "main", "annotations": {consumed: "new", "other": "x"}, "nodeSelector": {"pool": "new"}}
    admitted = with_status(
        holding(made, "QuotaReserved", "Admitted"), admissionChecks=[{"name": "p", "podSetUpdates": [update]}]
    )
    stale, fresh = (elastic_pod(name, slice_name=made["metadata"]["name"]) for name in ("a", "b"))
    stale["metadata"]["annotations"][consumed] = "old"
    (write,) = look(plain, admitted, around=(FLAVOR, stale, fresh)).writes
    released: Any = write.manifest
    assert (released["metadata"]["name"], released["spec"]["nodeSelector"]) == ("b", {"pool": "new"})
    assert released["metadata"]["annotations"][consumed] == "new"
    assert "other" not in released["metadata"]["annotations"]


# Children.


def child_and_parent() -> tuple[Json, Json, Json]:
    metadata = {"name": "p", "namespace": "n", "uid": "up", "labels": {f"{AN}queue-name": "lq"}}
    template = {"spec": {"template": batch(1)["spec"]["template"]}}
    spec = {"suspend": False, "replicatedJobs": [{"name": "r", "replicas": 1, "template": template}]}
    parent: Json = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}
    (made,) = workloads_for([{**parent, "spec": {**spec, "suspend": True}}]).workloads  # type: ignore[dict-item]
    child = batch(1, suspend=False)
    owner = {"apiVersion": parent["apiVersion"], "kind": "JobSet", "name": "p", "uid": "up", "controller": True}
    child["metadata"] |= {"ownerReferences": [owner]}
    return child, parent, dict(made.object)


def test_a_child_gets_no_workload_and_waits_for_its_parent() -> None:
    child, parent, workload = child_and_parent()
    found = look(child, workload, around=(parent,))
    assert (wrote(found), reported(found)) == (
        [("Update", "Job j")],
        [("Suspended", "Kueue managed child job suspended")],
    )
    assert found.writes[0].manifest["spec"]["suspend"] is True  # type: ignore[index,call-overload]
    assert found.waits_for == 'JobSet "n/p" owns it, and has the Workload'
    assert [kind for kind, _ in wrote(look(child, around=(parent,)))] == ["Update"]
    admitted = holding(workload, "QuotaReserved", "Admitted")
    assert look(child, admitted, around=(parent,)).writes == ()
    ended = with_status(child, conditions=[{"type": "Complete", "status": "True"}])
    assert look(ended, workload, around=(parent,)).writes == ()


def test_the_child_of_an_elastic_job_is_held_by_an_eviction_alone() -> None:
    child, parent, workload = child_and_parent()
    child["metadata"]["annotations"] = {f"{AN}elastic-job": "true"}
    assert look(child, workload, around=(parent,)).writes == ()
    assert len(look(child, evicted(workload), around=(parent,)).writes) == 1


def test_too_many_owners_are_reported() -> None:
    jobs = []
    for number in range(13):
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"j{number + 1}", "uid": "u", "controller": True}
        made = batch(1)
        made["metadata"] |= {"name": f"j{number}", "ownerReferences": [owner]}
        jobs.append(made)
    found = look(jobs[0], around=tuple(jobs))
    assert [(event.type, event.reason) for event in found.events] == [("Warning", "JobNestingTooDeep")]
    assert found.writes == ()


# The end.


def test_the_end_of_a_job_is_reported_once_and_finalizers_are_taken_off() -> None:
    workload = holding(only_made(batch(1)), "QuotaReserved", "Admitted")
    condition = {"type": "Failed", "status": "True", "message": "exit 1"}
    ended = with_status(batch(1, suspend=False), conditions=[condition])
    found = look(ended, workload)
    assert found.reports == {KEY: JobReport(finished=("Failed", "exit 1"))}
    assert reported(found) == [("FinishedWorkload", "Workload 'n/job-j-5cf3c' is declared finished")]
    finished = holding(only_made(batch(1)), "Finished")
    (write,) = look(ended, finished).writes
    assert write.manifest["metadata"]["finalizers"] == []  # type: ignore[index,call-overload]
    assert look(ended, dict(write.manifest)).writes == ()
    # Of a pod the finalizer goes with its end.
    single = pod("a", phase="Succeeded", group="")
    workload = dict(look(pod("a", gated=True, group="")).writes[0].manifest)
    found = look(single, holding(workload, "QuotaReserved", "Admitted"))
    assert wrote(found) == [("Update", "Pod a")]
    assert [report.finished for report in found.reports.values()] == [("Succeeded", "")]


def test_a_workload_that_is_deleted_stops_its_job() -> None:
    workload = holding(only_made(batch(1)), "QuotaReserved", "Admitted")
    workload["metadata"] |= {"deletionTimestamp": NOW}
    found = look(batch(1, suspend=False), workload)
    assert reported(found) == [("Stopped", "Workload is deleted")]
    assert wrote(found)[-1] == ("Update", "Workload job-j-5cf3c")


def running_on(pool: str, **status: Any) -> Json:
    """A Job that was started on a flavor with this label."""
    plain = with_status(batch(2, suspend=False), **{"startTime": NOW, "active": 2, "ready": 2, **status})
    plain["spec"]["template"]["spec"]["nodeSelector"] = {"pool": pool}
    return plain


def after(found: Reconciliation, **status: Any) -> Json:
    """The Job as the last of the writes leaves it, with what its controller says then."""
    return with_status(dict(found.writes[-1].manifest), **status)


def test_the_template_of_a_job_is_restored_once_its_pods_are_gone() -> None:
    workload = evicted(holding(only_made(batch(2)), "QuotaReserved", "Admitted"), "QuotaReserved")
    found = look(running_on("spot"), workload)
    assert (wrote(found), reported(found)) == ([("Update", "Job j")], [("Stopped", "to make room")])
    assert found.writes[0].manifest["spec"]["suspend"] is True  # type: ignore[index,call-overload]
    ending = after(found, startTime=NOW, active=1)
    waiting = look(ending, workload)
    assert (wrote(waiting), reported(waiting), dict(waiting.reports)) == ([], [], {})
    ended = look({**ending, "status": {"startTime": NOW}}, workload)
    assert (wrote(ended), reported(ended)) == ([("UpdateStatus", "Job j"), ("Update", "Job j")], [])
    assert "nodeSelector" not in ended.writes[-1].manifest["spec"]["template"]["spec"]  # type: ignore[index,call-overload,operator]
    assert ended.reports == {("n", workload["metadata"]["name"]): JobReport(stopped=True)}


def test_a_job_whose_template_stays_need_not_wait_for_its_pods() -> None:
    workload = evicted(holding(only_made(batch(2)), "QuotaReserved", "Admitted"), "QuotaReserved")
    plain = running_on("spot")
    del plain["spec"]["template"]["spec"]["nodeSelector"]
    assert wrote(look(plain, workload)) == [("Update", "Job j"), ("UpdateStatus", "Job j"), ("Update", "Job j")]


def test_a_job_that_is_admitted_while_it_stops_is_restored_all_the_same() -> None:
    workload = only_made(batch(2))
    ending = after(look(running_on("spot"), workload), active=0)
    admitted = holding(workload, "QuotaReserved", "Admitted")
    restored = look(ending, admitted)
    assert wrote(restored) == [("UpdateStatus", "Job j"), ("Update", "Job j")]
    (started,) = look(after(restored), admitted, around=(SPOT,)).writes
    assert started.manifest["spec"]["suspend"] is False  # type: ignore[index,call-overload]


@pytest.mark.parametrize("why", ["deleted", "does not fit"])
def test_a_workload_stays_until_the_template_of_its_job_is_restored_from_it(why: str) -> None:
    workload = holding(only_made(batch(2)), "QuotaReserved", "Admitted")
    if why == "deleted":
        workload["metadata"] |= {"deletionTimestamp": NOW}
    else:
        workload["spec"]["podSets"][0]["count"] = 7
    found = look(running_on("spot"), workload)
    assert wrote(found) == [("Update", "Job j")]
    ending = after(found, active=1)
    assert wrote(look(ending, workload)) == []
    ended = look(with_status(ending, active=0), workload)
    assert wrote(ended)[:2] == [("UpdateStatus", "Job j"), ("Update", "Job j")]
    assert "nodeSelector" not in ended.writes[1].manifest["spec"]["template"]["spec"]  # type: ignore[index,call-overload,operator]
    assert wrote(ended)[-1][1] == f"Workload {workload['metadata']['name']}"


def test_the_workloads_of_a_job_that_has_gone_end() -> None:
    workload: Json = holding(only_made(batch(1)), "QuotaReserved", "Admitted")
    gone = reconcile_job(batch(1), [workload], now=NOW, gone=True)
    owner_not_found = JobReport(finished=("OwnerNotFound", "The workload's owner no longer exists"))
    assert (gone.reports, gone.writes) == ({KEY: owner_not_found}, ())
    deleted = {**workload, "metadata": {**workload["metadata"], "deletionTimestamp": NOW}}
    gone = reconcile_job(batch(1), [deleted], now=NOW, gone=True)
    assert (gone.reports, wrote(gone)) == ({}, [("Update", "Workload job-j-5cf3c")])
    # A pod that is being deleted lets go of its Workload and itself.
    single = pod("a", group="")
    single["metadata"]["deletionTimestamp"] = NOW
    found = look(single, dict(look(pod("a", gated=True, group="")).writes[0].manifest))
    assert wrote(found) == [("Update", "Pod a")]
    assert list(found.reports.values()) == [owner_not_found]
