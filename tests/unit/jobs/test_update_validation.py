"""What webhooks refuse when a job is changed (rules/10 §5, §7)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kueuecore.jobs import (
    INTEGRATIONS,
    JobsConfiguration,
    StopReason,
    stop_job,
    update_problems,
    workload_name,
    workloads_for,
)
from tests.jobs import ALL_KINDS, job

Json = dict[str, Any]
QUEUE = "metadata.labels[kueue.x-k8s.io/queue-name]"
PRIORITY = "metadata.labels[kueue.x-k8s.io/priority-class]"
GATES = "metadata.annotations[kueue.x-k8s.io/admission-gated-by]"


def changed(plain: Json, *, spec: Json | None = None, status: Json | None = None, **annotations: str | None) -> Json:
    """The job with other fields of its spec and status, and with labels and annotations; None removes one."""
    result = copy.deepcopy(plain)
    result["spec"] |= spec or {}
    result["status"] = {**result.get("status", {}), **(status or {})}
    for name, value in annotations.items():
        key = f"kueue.x-k8s.io/{name.replace('_', '-')}"
        where = "labels" if name in ("queue_name", "priority_class", "max_exec_time_seconds") else "annotations"
        texts = result["metadata"].setdefault(where, {})
        texts.pop(key, None)
        if value is not None:
            texts[key] = value
    return result


def said(old: Json, new: Json, *around: Json, **gates: bool) -> list[tuple[str, str]]:
    configuration = JobsConfiguration(feature_gates=gates)
    problems = update_problems(old, new, around=around, configuration=configuration)
    assert all(problem.object is not None and problem.object.name == "j" for problem in problems)
    return [(problem.field, problem.message) for problem in problems]


RUNNING = job("Job") | {"spec": {**job("Job")["spec"], "suspend": False}}
WAITING = job("Job") | {"spec": {**job("Job")["spec"], "suspend": True}}
DEFAULT: Json = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "LocalQueue",
    "metadata": {"name": "default", "namespace": "n"},
}
IMMUTABLE = "field is immutable"


@pytest.mark.parametrize("kind", sorted(ALL_KINDS))
def test_a_job_that_stays_as_its_webhook_left_it_is_taken(kind: str) -> None:
    everything = JobsConfiguration(frameworks=[integration.framework for integration in INTEGRATIONS.values()])
    made = workloads_for([job(kind)], configuration=everything).jobs
    for other in made or (job(kind),):
        runtime = [("", "runtime 'torch' not found")] if kind == "TrainJob" else []
        assert said(dict(other), copy.deepcopy(dict(other))) == runtime


def test_a_queue_changes_only_while_the_job_is_suspended() -> None:
    moved = changed(RUNNING, queue_name="other")
    assert said(RUNNING, moved) == [(QUEUE, f'Invalid value: "other": {IMMUTABLE}')]
    assert said(WAITING, changed(WAITING, queue_name="other")) == []
    # As the job is suspended in the same change, it may move.
    assert said(RUNNING, changed(moved, spec={"suspend": True})) == []
    odd = "must consist of lower case alphanumeric characters"
    assert [odd in message for _, message in said(WAITING, changed(WAITING, queue_name="No"))] == [True]


def test_a_queue_is_not_removed_where_there_is_a_default_one() -> None:
    gone = changed(WAITING, queue_name=None)
    assert said(WAITING, gone) == []
    message = 'Invalid value: "": queue-name must not be empty in namespace with default queue'
    assert said(WAITING, gone, DEFAULT) == [(QUEUE, message)]


def test_a_priority_class_is_not_added_while_a_job_runs_and_never_removed() -> None:
    message = "WorkloadPriorityClass cannot be added to a non-suspended workload"
    high = changed(RUNNING, priority_class="high")
    assert said(RUNNING, high) == [(PRIORITY, f'Invalid value: "high": {message}')]
    assert said(high, changed(high, priority_class="low")) == []
    message = "WorkloadPriorityClass cannot be removed from a workload"
    assert said(changed(WAITING, priority_class="high"), WAITING) == [(PRIORITY, f'Invalid value: "": {message}')]


def test_a_time_limit_changes_only_while_the_job_is_suspended_before_and_after() -> None:
    field = "metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]"
    for old, new in ((RUNNING, RUNNING), (RUNNING, WAITING), (WAITING, RUNNING)):
        limited = changed(new, max_exec_time_seconds="60")
        assert said(old, limited) == [(field, f'Invalid value: "60": {IMMUTABLE}')]
    assert said(WAITING, changed(WAITING, max_exec_time_seconds="60")) == []
    # The same problem in two places is reported once.
    assert len(said(WAITING, changed(WAITING, max_exec_time_seconds="-1"))) == 1


def test_a_running_job_keeps_the_workload_that_it_names() -> None:
    field = "metadata.annotations[kueue.x-k8s.io/prebuilt-workload-name]"
    assert said(RUNNING, changed(RUNNING, prebuilt_workload_name="w")) == [(field, f'Invalid value: "w": {IMMUTABLE}')]
    assert said(WAITING, changed(WAITING, prebuilt_workload_name="w")) == []


def test_a_job_stays_elastic_or_not() -> None:
    field = "metadata.annotations[kueue.x-k8s.io/elastic-job]"
    elastic = changed(WAITING, elastic_job="true")
    assert said(WAITING, elastic) == [(field, f"Invalid value: true: {IMMUTABLE}")]
    assert said(elastic, WAITING) == [(field, f"Invalid value: false: {IMMUTABLE}")]
    assert said(WAITING, elastic, ElasticJobsViaWorkloadSlices=False) == []


def test_gates_of_admission_only_go() -> None:
    gated = changed(WAITING, admission_gated_by="a.io/x,a.io/y")
    assert said(WAITING, gated) == [(GATES, "Forbidden: cannot add admission gate after creation")]
    assert said(gated, changed(gated, admission_gated_by="a.io/y")) == []
    assert said(gated, WAITING) == []
    other = changed(gated, admission_gated_by="a.io/z")
    assert said(gated, other) == [(GATES, "Forbidden: can only remove gates, not add new ones")]
    assert said(gated, other, AdmissionGatedBy=False) == []


def test_partial_admission_fixes_the_parallelism_of_a_running_job() -> None:
    spec = {"parallelism": 5, "completions": 5, "completionMode": "Indexed"}
    partial = changed(RUNNING, spec=spec, job_min_parallelism="2")
    fewer = changed(partial, spec={"parallelism": 2})
    message = "Forbidden: cannot change when partial admission is enabled and the job is not suspended"
    # The minimum itself is only looked at when it changes.
    assert said(partial, fewer) == [("spec.parallelism", message)]
    assert said(changed(partial, spec={"suspend": True}), changed(fewer, spec={"suspend": True})) == []
    field = "metadata.annotations[kueue.x-k8s.io/job-min-parallelism]"
    assert said(partial, changed(partial, job_min_parallelism="5")) == [
        (field, "Invalid value: 5: should be between 0 and 4")
    ]
    synced = changed(partial, job_completions_equal_parallelism="true")
    field = "metadata.annotations[kueue.x-k8s.io/job-completions-equal-parallelism]"
    assert said(partial, synced) == [(field, "Forbidden: field is immutable while the job is not suspended")]


def test_what_starting_and_stopping_write_is_taken() -> None:
    (made,) = workloads_for([job("Job")]).jobs
    started = changed(dict(made), spec={"suspend": False})
    assert said(dict(made), started) == []
    (write, *_) = stop_job(started, None, reason=StopReason.NOT_ADMITTED)
    assert said(started, dict(write.manifest)) == []


def test_a_kubeflow_job_is_not_checked_as_a_new_one() -> None:
    waiting = job("PyTorchJob")
    waiting["spec"]["runPolicy"] = {"suspend": True}
    assert said(waiting, changed(waiting, queue_name="No")) == []
    assert said(job("MPIJob"), changed(job("MPIJob"), queue_name="No")) != []


def test_a_ray_job_is_looked_at_if_it_is_managed_or_was() -> None:
    keeps = job("RayJob")
    keeps["spec"]["shutdownAfterJobFinishes"] = False
    unmanaged = changed(keeps, queue_name=None)
    field = "spec.shutdownAfterJobFinishes"
    assert [row for row, _ in said(unmanaged, keeps)] == [QUEUE, field]
    assert [row for row, _ in said(keeps, unmanaged)] == [QUEUE]
    assert said(keeps, unmanaged, ValidateRayAndSparkJobUpdates=False) == []
    assert said(unmanaged, unmanaged) == []
    # One that runs in somebody else's cluster is none of Kueue's.
    selects = changed(job("RayJob"), spec={"clusterSelector": {"a": "b"}})
    del selects["spec"]["rayClusterSpec"]
    assert said(selects, selects) == []


def test_an_elastic_ray_cluster_keeps_its_gates() -> None:
    (made,) = workloads_for([changed(job("RayCluster"), elastic_job="true")]).jobs
    assert said(dict(made), copy.deepcopy(dict(made))) == []
    ungated = copy.deepcopy(dict[str, Any](made))
    del ungated["spec"]["headGroupSpec"]["template"]["spec"]["schedulingGates"]
    field = "spec.headGroupSpec.template.spec.schedulingGates"
    assert said(dict(made), ungated) == [
        (field, "Invalid value: null: an elastic job must have the ElasticJobSchedulingGate")
    ]


def test_a_pod_stays_in_its_group_and_its_group_as_it_ends() -> None:
    field = "metadata.annotations[kueue.x-k8s.io/pod-group-name]"
    member = changed(job("Pod"), pod_group_name="g", pod_group_total_count="1")
    assert said(member, changed(member, pod_group_name="h")) == [(field, f'Invalid value: "h": {IMMUTABLE}')]
    final = changed(member, retriable_in_group="false")
    assert said(member, final) == []
    field = "metadata.annotations[kueue.x-k8s.io/retriable-in-group]"
    assert said(final, member) == [(field, "Forbidden: unretriable pod group can't be converted to retriable")]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "LeaderWorkerSet"])
def test_what_serves_moves_only_while_none_of_its_pods_is_ready(kind: str) -> None:
    moved = changed(job(kind), queue_name="other")
    assert said(job(kind), moved) == []
    ready = changed(job(kind), status={"readyReplicas": 1})
    assert said(ready, changed(ready, queue_name="other")) == [(QUEUE, f'Invalid value: "other": {IMMUTABLE}')]
    # Without a queue nobody would let go its pods.
    assert said(job(kind), changed(job(kind), queue_name=None)) == [(QUEUE, f'Invalid value: "": {IMMUTABLE}')]
    assert said(job(kind), changed(job(kind), queue_name=None), DEFAULT) == []
    assert said(ready, changed(ready, priority_class="high"))[0][0] == PRIORITY


def test_a_stateful_set_is_scaled_to_zero_and_back_only() -> None:
    zero, one, two = (changed(job("StatefulSet"), spec={"replicas": n}) for n in range(3))
    assert said(one, two) == [("spec.replicas", f"Invalid value: 2: {IMMUTABLE}")]
    assert said(one, zero) == []
    assert said(zero, two) == []
    assert said(zero, changed(two, status={"replicas": 1})) == [
        ("spec.replicas", "Forbidden: scaling down is still in progress")
    ]
    name = workload_name("j", kind="StatefulSet", group="apps")
    workload: Json = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "n"},
    }
    message = "Forbidden: workload from previous scale-down is still being deleted"
    assert said(zero, two, workload) == [("spec.replicas", message)]
    workload["status"] = {"conditions": [{"type": "QuotaReserved", "status": "False", "reason": "OnHold"}]}
    assert said(zero, two, workload) == []
    # One that does not wait for its admission may do as it likes.
    assert said(changed(one, queue_name=None), changed(two, queue_name=None)) == []


def test_pods_that_serve_stay_as_they_were_admitted() -> None:
    for kind, *path in (
        ("StatefulSet", "template"),
        ("LeaderWorkerSet", "leaderWorkerTemplate", "workerTemplate"),
    ):
        larger, renamed = copy.deepcopy(job(kind)), copy.deepcopy(job(kind))
        for plain, key, value in ((larger, "resources", {"requests": {"cpu": "2"}}), (renamed, "image", "other")):
            at = plain["spec"]
            for step in path:
                at = at[step]
            at["spec"]["containers"][0][key] = value
        field = f"spec.{'.'.join(path)}.spec.containers[0].resources.requests"
        assert said(job(kind), larger) == [(field, f'Invalid value: {{"cpu":"2"}}: {IMMUTABLE}')]
        assert said(job(kind), renamed) == []


def test_a_leader_worker_set_keeps_the_size_of_its_groups() -> None:
    grown = copy.deepcopy(job("LeaderWorkerSet"))
    grown["spec"]["leaderWorkerTemplate"]["size"] = 3
    field = "spec.leaderWorkerTemplate.size"
    assert said(job("LeaderWorkerSet"), grown) == [(field, f"Invalid value: 3: {IMMUTABLE}")]
    assert said(job("LeaderWorkerSet"), grown, LWSImmutableGroupSize=False) == []
    led = copy.deepcopy(job("LeaderWorkerSet"))
    template = led["spec"]["leaderWorkerTemplate"]
    template["leaderTemplate"] = copy.deepcopy(template["workerTemplate"])
    assert said(led, job("LeaderWorkerSet")) == [
        ("spec.leaderWorkerTemplate.leaderTemplate", f"Invalid value: null: {IMMUTABLE}")
    ]


def test_two_objects_are_no_change() -> None:
    with pytest.raises(ValueError, match='Job "n/j" and Job "n/k" are not one object'):
        update_problems(job("Job"), job("Job", "k"))
