"""The Workload of a job: its name, what it carries over, its priority and defaults."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.jobs import (
    Integration,
    JobPodSet,
    JobsConfiguration,
    JobsResult,
    with_kinds,
    workload_name,
    workloads_for,
)
from kueuecore.manifests import Manifest, parse_manifests
from kueuecore.objects import LocalQueue, Namespace, PriorityClass, Workload, WorkloadPriorityClass
from tests.unit.jobs.sample_job import JOB, reason_to_ignore, sample_job, workload_of


@pytest.mark.parametrize(
    ("owner", "kind", "group", "uid", "extra", "name"),
    [
        ("name", "Job", "batch", "uid", "", "job-name-ef3a1"),
        ("name", "Job", "batch", "uid", "1", "job-name-2514c"),
        ("sample-job", "Job", "batch", "", "", "job-sample-job-4b8c4"),
        ("p1", "Pod", "", "u1", "", "pod-p1-35acc"),
        ("lws-0", "LeaderWorkerSet", "leaderworkerset.x-k8s.io", "u1", "", "leaderworkerset-lws-0-08fc3"),
    ],
)
def test_name_ends_in_a_hash_of_the_owner(owner: str, kind: str, group: str, uid: str, extra: str, name: str) -> None:
    assert workload_name(owner, kind=kind, group=group, uid=uid, extra=extra) == name


def test_long_name_is_cut_before_the_hash() -> None:
    long, short = (workload_name("a" * 250, kind="Job", group="batch", short=short) for short in (False, True))
    assert (len(long), len(short)) == (253, 63)
    assert long[:247] == "job-" + "a" * 243
    assert long[-6:] == short[-6:]


def test_workload_carries_what_the_job_says() -> None:
    job = sample_job(
        uid="u-1",
        creationTimestamp="2026-01-01T00:00:00Z",
        labels={
            "kueue.x-k8s.io/queue-name": "user-queue",
            "kueue.x-k8s.io/max-exec-time-seconds": "60",
            "team": "a",
            "other": "b",
        },
        annotations={
            "provreq.kueue.x-k8s.io/maxRunDurationSeconds": "600",
            "kueue.x-k8s.io/admission-gated-by": "example.com/gate",
            "note": "not copied",
        },
    )
    workload = workload_of(workloads_for([job], configuration=JobsConfiguration(label_keys_to_copy=["team", "absent"])))
    name = workload_name("sample-job", kind="Job", group="batch", uid="u-1")
    assert (workload["apiVersion"], workload["kind"]) == ("kueue.x-k8s.io/v1beta2", "Workload")
    assert workload["metadata"] == {
        "name": name,
        "namespace": "team-a",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"team": "a", "kueue.x-k8s.io/job-uid": "u-1"},
        "annotations": {
            "provreq.kueue.x-k8s.io/maxRunDurationSeconds": "600",
            "kueue.x-k8s.io/admission-gated-by": "example.com/gate",
        },
        "finalizers": ["kueue.x-k8s.io/resource-in-use"],
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "sample-job",
                "uid": "u-1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    spec = dict(workload["spec"])
    assert [pod_set["name"] for pod_set in spec.pop("podSets")] == ["main"]
    assert spec == {"queueName": "user-queue", "maximumExecutionTimeSeconds": 60, "active": True, "priority": 0}
    assert Workload.from_manifest(workload).queue_name == "user-queue"


@pytest.mark.parametrize("uid", ["-bad-", "u" * 64])
def test_uid_that_is_no_label_value_is_left_out(uid: str) -> None:
    workload = workload_of(workloads_for([sample_job(uid=uid)]))
    assert "labels" not in workload["metadata"]


def test_priority_of_the_class_in_the_label_comes_first() -> None:
    job = sample_job(labels={"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/priority-class": "high"})
    job["spec"]["template"]["spec"]["priorityClassName"] = "pods"
    classes = [WorkloadPriorityClass("high", value=100), PriorityClass("pods", value=5)]
    spec = workload_of(workloads_for([*classes, job]))["spec"]
    assert spec["priorityClassRef"] == {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}
    assert spec["priority"] == 100


@pytest.mark.parametrize("value", [-(2**31), 2**31 - 1])
def test_priorities_at_the_ends_of_32_bits_count(value: int) -> None:
    label = {"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/priority-class": "edge"}
    of_label = workload_of(workloads_for([WorkloadPriorityClass("edge", value=value), sample_job(labels=label)]))
    assert of_label["spec"]["priority"] == value
    job = sample_job()
    job["spec"]["template"]["spec"]["priorityClassName"] = "edge"
    of_pods = workload_of(workloads_for([PriorityClass("edge", value=value), job]))
    assert of_pods["spec"]["priority"] == value


def test_priority_of_the_pods_comes_second() -> None:
    job = sample_job()
    job["spec"]["template"]["spec"]["priorityClassName"] = "pods"
    default = PriorityClass("default", value=7, global_default=True)
    spec = workload_of(workloads_for([PriorityClass("pods", value=5), default, job]))["spec"]
    assert spec["priorityClassRef"] == {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "pods"}
    assert spec["priority"] == 5


def test_lowest_default_class_comes_third() -> None:
    defaults = [PriorityClass(name, value=value, global_default=True) for name, value in (("a", 7), ("b", 3), ("c", 5))]
    spec = workload_of(workloads_for([*defaults, sample_job()]))["spec"]
    assert (spec["priorityClassRef"]["name"], spec["priority"]) == ("b", 3)


def test_classes_of_the_system_are_always_there() -> None:
    job = sample_job()
    job["spec"]["template"]["spec"]["priorityClassName"] = "system-node-critical"
    assert workload_of(workloads_for([job]))["spec"]["priority"] == 2_000_001_000


def test_a_job_waits_for_its_workload_priority_class() -> None:
    text = JOB.replace("queue-name: user-queue", "queue-name: user-queue, kueue.x-k8s.io/priority-class: high")
    result = workloads_for(parse_manifests(text, file="job.yaml"))
    assert (result.workloads, result.problems, result.ignored) == ((), (), ())
    # It is held back until then.
    assert [job["spec"]["suspend"] for job in result.jobs] == [True]  # type: ignore[index,call-overload]
    assert [str(problem) for problem in result.waiting] == [
        'job.yaml:7 (document 1): Job "team-a/sample-job": metadata.labels[kueue.x-k8s.io/priority-class]: '
        'WorkloadPriorityClass "high" not found; add the class to the manifests, or correct the label'
    ]


def test_a_job_waits_for_the_priority_class_of_its_pods() -> None:
    text = JOB.replace("restartPolicy: Never", "priorityClassName: pods")
    (problem,) = workloads_for(parse_manifests(text)).waiting
    assert (problem.field, problem.line) == ("spec.template.spec.priorityClassName", 16)


def test_default_local_queue_and_priority_class_are_given_to_jobs_without() -> None:
    surroundings = [
        LocalQueue("default", namespace="team-a", cluster_queue="c"),
        WorkloadPriorityClass("default", value=4),
    ]
    result = workloads_for([*surroundings, sample_job(labels={})])
    spec = workload_of(result)["spec"]
    assert (spec["queueName"], spec["priority"]) == ("default", 4)
    (job,) = result.jobs
    assert job["metadata"]["labels"] == {  # type: ignore[index,call-overload]
        "kueue.x-k8s.io/queue-name": "default",
        "kueue.x-k8s.io/priority-class": "default",
    }
    gates = {"WorkloadPriorityClassDefaulting": False}
    plain = workloads_for([*surroundings, sample_job(labels={})], configuration=JobsConfiguration(feature_gates=gates))
    assert workload_of(plain)["spec"]["priority"] == 0


def test_default_local_queue_of_another_namespace_does_not_count() -> None:
    other = LocalQueue("default", namespace="team-b", cluster_queue="c")
    assert "no label kueue.x-k8s.io/queue-name" in reason_to_ignore(other, sample_job(labels={}))


def test_other_objects_are_no_jobs() -> None:
    service: dict[str, Any] = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    assert workloads_for([Namespace("a"), LocalQueue("q", cluster_queue="c"), service]) == JobsResult(
        (), (), (), (), ()
    )


def test_generated_names_are_numbered_and_avoid_those_that_exist() -> None:
    def generated() -> dict[str, Any]:
        job = sample_job(generateName="sample-job-")
        del job["metadata"]["name"]
        return job

    result = workloads_for([generated(), sample_job(name="sample-job-00002"), generated()])
    names = [job["metadata"]["name"] for job in result.jobs]  # type: ignore[index,call-overload]
    assert names == ["sample-job-00001", "sample-job-00002", "sample-job-00003"]


def test_namespace_is_filled_in() -> None:
    job = sample_job()
    del job["metadata"]["namespace"]
    assert workload_of(workloads_for([job]))["metadata"]["namespace"] == "default"


def test_given_manifests_are_not_changed() -> None:
    job = sample_job(labels={})
    before = repr(job)
    workloads_for([LocalQueue("default", namespace="team-a", cluster_queue="c"), job])
    assert repr(job) == before


def test_problems_of_the_workload_have_lines_of_the_job() -> None:
    (manifest,) = workloads_for(parse_manifests(JOB, file="job.yaml")).workloads
    assert isinstance(manifest, Manifest)
    path = "spec.podSets[0].template.spec.containers[0].resources.requests"
    assert manifest.source.line_of(path) == 15
    assert manifest.source.line_of("spec.queueName") == 7
    assert manifest.source.line_of("spec.podSets[0].count") == 9


@pytest.mark.parametrize(
    ("metadata", "field", "message"),
    [
        (
            {"labels": {"kueue.x-k8s.io/queue-name": "User_Queue"}},
            "metadata.labels[kueue.x-k8s.io/queue-name]",
            'Invalid value: "User_Queue": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric '
            "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex "
            r"used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
        (
            {"labels": {"kueue.x-k8s.io/queue-name": "a" * 254}},
            "metadata.labels[kueue.x-k8s.io/queue-name]",
            f'Invalid value: "{"a" * 253}...": must be no more than 253 characters',
        ),
        (
            {"labels": {"kueue.x-k8s.io/max-exec-time-seconds": "0"}},
            "metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]",
            "Invalid value: 0: should be greater than 0",
        ),
        (
            {"labels": {"kueue.x-k8s.io/max-exec-time-seconds": "1m"}},
            "metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]",
            'Invalid value: "1m": strconv.Atoi: parsing "1m": invalid syntax',
        ),
        (
            {"annotations": {"kueue.x-k8s.io/admission-gated-by": "example.com/a,,b.com/b"}},
            "metadata.annotations[kueue.x-k8s.io/admission-gated-by]",
            'Invalid value: "example.com/a,,b.com/b": cannot contain empty gate names',
        ),
        (
            {"annotations": {"kueue.x-k8s.io/admission-gated-by": "example.com/a, example.com/a"}},
            "metadata.annotations[kueue.x-k8s.io/admission-gated-by]",
            'Invalid value: "example.com/a, example.com/a": duplicate gate name: example.com/a',
        ),
        (
            {"annotations": {"kueue.x-k8s.io/admission-gated-by": "gate"}},
            "metadata.annotations[kueue.x-k8s.io/admission-gated-by]",
            'Invalid value: "gate": must be a domain-prefixed path (such as "acme.io/foo")',
        ),
        (
            {"annotations": {"kueue.x-k8s.io/admission-gated-by": "example.com/" + "a" * 52}},
            "metadata.annotations[kueue.x-k8s.io/admission-gated-by]",
            "Too long: may not be more than 63 bytes",
        ),
        (
            {"annotations": {"kueue.x-k8s.io/prebuilt-workload-name": "A"}},
            "metadata.annotations[kueue.x-k8s.io/prebuilt-workload-name]",
            'Invalid value: "A": a lowercase RFC 1123 subdomain must consist of',
        ),
    ],
)
def test_rejections_of_every_kind(metadata: dict[str, Any], field: str, message: str) -> None:
    result = workloads_for([sample_job(**metadata)])
    assert result.workloads == ()
    (problem,) = result.problems
    assert problem.field == field
    assert problem.message.startswith(message)
    assert problem.index == 0


def _queues(*, controller: str) -> list[dict[str, Any]]:
    return [
        {"kind": "AdmissionCheck", "metadata": {"name": "ac"}, "spec": {"controllerName": controller}},
        {
            "kind": "ClusterQueue",
            "metadata": {"name": "cq"},
            "spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": "ac"}]}},
        },
        {
            "kind": "LocalQueue",
            "metadata": {"name": "user-queue", "namespace": "team-a"},
            "spec": {"clusterQueue": "cq"},
        },
    ]


@pytest.mark.parametrize(
    ("controller", "before", "after"),
    [
        ("kueue.x-k8s.io/multikueue", None, "kueue.x-k8s.io/multikueue"),
        ("kueue.x-k8s.io/multikueue", "kubernetes.io/job-controller", "kueue.x-k8s.io/multikueue"),
        ("kueue.x-k8s.io/multikueue", "example.com/mine", "example.com/mine"),
        ("kueue.x-k8s.io/provisioning-request", None, None),
    ],
)
def test_job_for_other_clusters_is_managed_by_multikueue(
    controller: str, before: str | None, after: str | None
) -> None:
    queues = [{"apiVersion": "kueue.x-k8s.io/v1beta2", **queue} for queue in _queues(controller=controller)]
    job = sample_job()
    if before:
        job["spec"] = {**job["spec"], "managedBy": before}
    spec: Any = workloads_for([*queues, job]).jobs[0]["spec"]
    assert spec.get("managedBy") == after


def test_own_kinds_are_enabled_without_being_named() -> None:
    film = Integration(
        framework="example.com/film",
        api_version="example.com/v1",
        kind="Film",
        pod_sets=lambda job, _: [JobPodSet.at(job, ("spec", "template"), name="Frames", count=2)],
    )
    job = {**sample_job(), "apiVersion": "example.com/v1", "kind": "Film"}
    unknown = workloads_for([job])
    assert (unknown.workloads, unknown.jobs, unknown.problems) == ((), (), ())
    workload = workload_of(workloads_for([job], integrations=with_kinds(film)))
    assert (workload["metadata"]["name"], workload["spec"]["podSets"][0]["name"]) == (
        workload_name("sample-job", kind="Film", group="example.com"),
        "frames",
    )
