"""Which jobs get a Workload: queues, namespaces, owners, and jobs that have one already."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.jobs import (
    JobsConfiguration,
    workloads_for,
)
from kueuecore.objects import LabelSelector, LocalQueue, Namespace, Workload, WorkloadPriorityClass
from tests.unit.jobs.sample_job import reason_to_ignore, sample_job, workload_of


def test_jobs_without_queue_are_managed_on_request() -> None:
    configuration = JobsConfiguration(manage_jobs_without_queue_name=True)
    assert workload_of(workloads_for([sample_job(labels={})], configuration=configuration))["spec"]["queueName"] == ""


def test_managed_jobs_are_suspended() -> None:
    result = workloads_for([sample_job()])
    assert result.jobs[0]["spec"]["suspend"] is True  # type: ignore[index,call-overload]


@pytest.mark.parametrize("namespace", ["kube-system", "kueue-system"])
def test_namespaces_of_the_system_are_left_out(namespace: str) -> None:
    assert "managedJobsNamespaceSelector" in reason_to_ignore(sample_job(namespace=namespace))


def test_selector_looks_at_the_labels_of_the_namespace() -> None:
    configuration = JobsConfiguration(managed_jobs_namespace_selector=LabelSelector({"managed": "true"}))
    assert "managedJobsNamespaceSelector" in reason_to_ignore(sample_job(), configuration=configuration)
    namespace = Namespace("team-a", labels={"managed": "true"})
    assert workload_of(workloads_for([namespace, sample_job()], configuration=configuration))


def _owned_by(owner: dict[str, Any], **changes: Any) -> dict[str, Any]:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"].get("uid", ""),
        "controller": True,
    }
    return sample_job(name="child", ownerReferences=[{**reference, **changes}])


_JOB_SET: dict[str, Any] = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "set", "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "q"}, "uid": "u"},
    "spec": {
        "replicatedJobs": [
            {"name": "workers", "template": {"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}},
        ]
    },
}
_BOTH = JobsConfiguration(frameworks=["batch/job", "jobset.x-k8s.io/jobset"])


def test_job_of_a_managed_owner_has_no_workload_of_its_own() -> None:
    result = workloads_for([_JOB_SET, _owned_by(_JOB_SET)], configuration=_BOTH)
    assert [workload.object["spec"]["podSets"][0]["name"] for workload in result.workloads] == ["workers"]  # type: ignore[index,call-overload]
    assert [ignored.reason for ignored in result.ignored] == ['JobSet "team-a/set" owns it, and has the Workload']


def test_job_of_an_owner_that_is_not_managed_has_a_workload() -> None:
    without_queue = {**_JOB_SET, "metadata": {**_JOB_SET["metadata"], "labels": {}}}
    assert len(workloads_for([without_queue, _owned_by(without_queue)], configuration=_BOTH).workloads) == 1
    # The integration of the owner is off.
    alone = JobsConfiguration(frameworks=["batch/job"])
    assert len(workloads_for([_JOB_SET, _owned_by(_JOB_SET)], configuration=alone).workloads) == 1
    # The reference is to an earlier object of that name.
    assert len(workloads_for([_JOB_SET, _owned_by(_JOB_SET, uid="old")], configuration=_BOTH).workloads) == 2
    # Not the controller.
    assert len(workloads_for([_JOB_SET, _owned_by(_JOB_SET, controller=False)], configuration=_BOTH).workloads) == 2


def test_job_of_a_cron_job_is_on_its_own() -> None:
    cron_job: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c", "uid": "u"}}
    result = workloads_for([cron_job, _owned_by(cron_job)])
    assert len(result.workloads) == 1
    assert [str(ignored) for ignored in result.ignored] == [
        'CronJob "c": a CronJob makes Jobs when their time comes, and none is made here'
    ]


def test_job_of_an_external_framework_has_no_workload_of_its_own() -> None:
    external: dict[str, Any] = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "t", "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
    }
    configuration = JobsConfiguration(external_frameworks=["Thing.v1.example.com"])
    assert "owns it" in reason_to_ignore(external, _owned_by(external), configuration=configuration)
    assert len(workloads_for([external, _owned_by(external)]).workloads) == 1


def test_owner_behind_a_replica_set_is_found() -> None:
    replica_set: dict[str, Any] = {**_owned_by(_JOB_SET), "apiVersion": "apps/v1", "kind": "ReplicaSet"}
    child = _owned_by(replica_set)
    result = workloads_for([_JOB_SET, replica_set, child], configuration=_BOTH)
    assert result.ignored[-1].reason == 'JobSet "team-a/set" owns it, and has the Workload'


def test_job_below_a_job_without_queue_gets_no_defaults() -> None:
    without_queue = {**_JOB_SET, "metadata": {**_JOB_SET["metadata"], "labels": {}}}
    queue = LocalQueue("default", namespace="team-a", cluster_queue="c")
    child = _owned_by(without_queue)
    high = WorkloadPriorityClass("default", value=4)
    assert _priority_of_last(high, without_queue, child) == 0
    del child["metadata"]["labels"]
    result = workloads_for([queue, without_queue, child], configuration=_BOTH)
    assert len(result.workloads) == 1
    assert [ignored.reason for ignored in result.ignored] == ["it has no label kueue.x-k8s.io/queue-name"]


def _priority_of_last(*manifests: Any) -> int:
    spec: Any = workloads_for(manifests, configuration=_BOTH).workloads[-1].object["spec"]
    priority = spec["priority"]
    assert isinstance(priority, int)
    return priority


def test_owner_that_is_missing_or_cyclic_leaves_the_job_alone() -> None:
    assert "is not among the manifests" in reason_to_ignore(_owned_by(_JOB_SET), configuration=_BOTH)
    cyclic = sample_job(name="self")
    cyclic["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "self", "uid": "", "controller": True}
    ]
    assert reason_to_ignore(cyclic) == "cyclic ownership"


def test_owners_are_followed_ten_levels_up() -> None:
    def chain(length: int) -> list[dict[str, Any]]:
        jobs = [sample_job(name="top")]
        for level in range(length):
            child = _owned_by(jobs[-1])
            child["metadata"]["name"] = f"level-{level}"
            jobs.append(child)
        return jobs

    reasons = [ignored.reason for ignored in workloads_for(chain(10)).ignored]
    assert reasons == ['Job "team-a/top" owns it, and has the Workload'] * 10
    assert workloads_for(chain(11)).ignored[-1].reason == "managed owner chain limit reached"


def test_job_that_has_its_workload_gets_no_second_one() -> None:
    workload = workload_of(workloads_for([sample_job(uid="u")]))
    renamed = {**workload, "metadata": {**workload["metadata"], "name": "other"}}
    assert "is among the manifests" in reason_to_ignore(sample_job(uid="u"), workload)
    assert "is among the manifests" in reason_to_ignore(sample_job(uid="u"), renamed)
    elsewhere = {**workload, "metadata": {**workload["metadata"], "namespace": "team-b"}}
    assert len(workloads_for([sample_job(uid="u"), elsewhere]).workloads) == 1
    # That of an earlier Job of the same name does not count.
    assert len(workloads_for([sample_job(uid="new"), renamed]).workloads) == 1


def test_prebuilt_workload_is_used() -> None:
    job = sample_job(annotations={"kueue.x-k8s.io/prebuilt-workload-name": "w"})
    assert [problem.message for problem in workloads_for([job]).waiting] == ['Workload "team-a/w" not found']
    workload = Workload("w", namespace="team-a", pod_sets=[])
    assert reason_to_ignore(job, workload) == 'it uses the prebuilt Workload "team-a/w"'


@pytest.mark.parametrize(
    ("label", "annotation", "gate", "name"),
    [
        ("a", "b", True, "b"),
        ("a", "", True, "a"),
        ("a", "b", False, "a"),
        ("", "b" * 64, False, "b" * 64),
        ("", "b", False, None),
    ],
)
def test_prebuilt_workload_is_named_by_label_or_annotation(
    label: str, annotation: str, gate: bool, name: str | None
) -> None:
    key = "kueue.x-k8s.io/prebuilt-workload-name"
    labels = {"kueue.x-k8s.io/queue-name": "q", **({key: label} if label else {})}
    job = sample_job(labels=labels, annotations={key: annotation})
    configuration = JobsConfiguration(feature_gates={"WorkloadIdentifierAnnotations": gate})
    result = workloads_for([job], configuration=configuration)
    assert result.problems == ()
    if name is None:
        assert len(result.workloads) == 1
    else:
        (missing,) = result.waiting
        field = "metadata.annotations" if name.startswith("b") else "metadata.labels"
        assert (missing.message, missing.field) == (f'Workload "team-a/{name}" not found', f"{field}[{key}]")
        workload = Workload(name, namespace="team-a", queue_name="q", pod_sets=[])
        (ignored,) = workloads_for([job, workload], configuration=configuration).ignored
        assert ignored.reason == f'it uses the prebuilt Workload "team-a/{name}"'


def test_jobs_that_are_over_or_deleted_or_not_enabled_get_none() -> None:
    over = {**sample_job(), "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert reason_to_ignore(over) == "it has finished"
    assert reason_to_ignore(sample_job(deletionTimestamp="2026-01-01T00:00:00Z")) == "it is being deleted"
    assert reason_to_ignore(sample_job(), configuration=JobsConfiguration(frameworks=["pod"])) == (
        "the integration batch/job is not enabled: name it in integrations.frameworks"
    )
