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
from kueuecore.objects import LabelSelector, LocalQueue, Namespace, PriorityClass, Workload, WorkloadPriorityClass

JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: sample-job
  namespace: team-a
  labels: {kueue.x-k8s.io/queue-name: user-queue}
spec:
  parallelism: 3
  completions: 3
  template:
    spec:
      containers:
      - name: main
        resources: {requests: {cpu: 1, memory: 200Mi}}
      restartPolicy: Never
"""


def _job(**metadata: Any) -> dict[str, Any]:
    job: dict[str, Any] = dict(parse_manifests(JOB)[0].object)
    job["metadata"] = {**job["metadata"], **metadata}
    return job


def _only(result: JobsResult) -> dict[str, Any]:
    assert result.problems == ()
    assert [str(it) for it in result.ignored] == []
    assert len(result.workloads) == 1
    return result.workloads[0].object


def _reason(*manifests: Any, configuration: JobsConfiguration | None = None) -> str:
    result = workloads_for(manifests, configuration=configuration)
    assert result.workloads == ()
    assert result.problems == ()
    (ignored,) = result.ignored
    return ignored.reason


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
    job = _job(
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
    workload = _only(workloads_for([job], configuration=JobsConfiguration(label_keys_to_copy=["team", "absent"])))
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
    workload = _only(workloads_for([_job(uid=uid)]))
    assert "labels" not in workload["metadata"]


def test_priority_of_the_class_in_the_label_comes_first() -> None:
    job = _job(labels={"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/priority-class": "high"})
    job["spec"]["template"]["spec"]["priorityClassName"] = "pods"
    classes = [WorkloadPriorityClass("high", value=100), PriorityClass("pods", value=5)]
    spec = _only(workloads_for([*classes, job]))["spec"]
    assert spec["priorityClassRef"] == {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}
    assert spec["priority"] == 100


def test_priority_of_the_pods_comes_second() -> None:
    job = _job()
    job["spec"]["template"]["spec"]["priorityClassName"] = "pods"
    default = PriorityClass("default", value=7, global_default=True)
    spec = _only(workloads_for([PriorityClass("pods", value=5), default, job]))["spec"]
    assert spec["priorityClassRef"] == {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "pods"}
    assert spec["priority"] == 5


def test_lowest_default_class_comes_third() -> None:
    defaults = [PriorityClass(name, value=value, global_default=True) for name, value in (("a", 7), ("b", 3), ("c", 5))]
    spec = _only(workloads_for([*defaults, _job()]))["spec"]
    assert (spec["priorityClassRef"]["name"], spec["priority"]) == ("b", 3)


def test_classes_of_the_system_are_always_there() -> None:
    job = _job()
    job["spec"]["template"]["spec"]["priorityClassName"] = "system-node-critical"
    assert _only(workloads_for([job]))["spec"]["priority"] == 2_000_001_000


def test_a_job_waits_for_its_workload_priority_class() -> None:
    text = JOB.replace("queue-name: user-queue", "queue-name: user-queue, kueue.x-k8s.io/priority-class: high")
    result = workloads_for(parse_manifests(text, file="job.yaml"))
    assert (result.workloads, result.problems, result.ignored) == ((), (), ())
    # It is held back until then.
    assert [it["spec"]["suspend"] for it in result.jobs] == [True]  # type: ignore[index,call-overload]
    assert [str(it) for it in result.waiting] == [
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
    result = workloads_for([*surroundings, _job(labels={})])
    spec = _only(result)["spec"]
    assert (spec["queueName"], spec["priority"]) == ("default", 4)
    (job,) = result.jobs
    assert job["metadata"]["labels"] == {  # type: ignore[index,call-overload]
        "kueue.x-k8s.io/queue-name": "default",
        "kueue.x-k8s.io/priority-class": "default",
    }
    gates = {"WorkloadPriorityClassDefaulting": False}
    without = workloads_for([*surroundings, _job(labels={})], configuration=JobsConfiguration(feature_gates=gates))
    assert _only(without)["spec"]["priority"] == 0


def test_default_local_queue_of_another_namespace_does_not_count() -> None:
    other = LocalQueue("default", namespace="team-b", cluster_queue="c")
    assert "no label kueue.x-k8s.io/queue-name" in _reason(other, _job(labels={}))


def test_jobs_without_queue_are_managed_on_request() -> None:
    configuration = JobsConfiguration(manage_jobs_without_queue_name=True)
    assert _only(workloads_for([_job(labels={})], configuration=configuration))["spec"]["queueName"] == ""


def test_managed_jobs_are_suspended() -> None:
    result = workloads_for([_job()])
    assert result.jobs[0]["spec"]["suspend"] is True  # type: ignore[index,call-overload]


@pytest.mark.parametrize("namespace", ["kube-system", "kueue-system"])
def test_namespaces_of_the_system_are_left_out(namespace: str) -> None:
    assert "managedJobsNamespaceSelector" in _reason(_job(namespace=namespace))


def test_selector_looks_at_the_labels_of_the_namespace() -> None:
    configuration = JobsConfiguration(managed_jobs_namespace_selector=LabelSelector({"managed": "true"}))
    assert "managedJobsNamespaceSelector" in _reason(_job(), configuration=configuration)
    namespace = Namespace("team-a", labels={"managed": "true"})
    assert _only(workloads_for([namespace, _job()], configuration=configuration))


def _owned_by(owner: dict[str, Any], **changes: Any) -> dict[str, Any]:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"].get("uid", ""),
        "controller": True,
    }
    return _job(name="child", ownerReferences=[{**reference, **changes}])


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
    assert [it.object["spec"]["podSets"][0]["name"] for it in result.workloads] == ["workers"]  # type: ignore[index,call-overload]
    assert [it.reason for it in result.ignored] == ['JobSet "team-a/set" owns it, and has the Workload']


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
    assert [str(it) for it in result.ignored] == [
        'CronJob "c": a CronJob makes Jobs when their time comes, and none is made here'
    ]


def test_job_of_an_external_framework_has_no_workload_of_its_own() -> None:
    external: dict[str, Any] = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "t", "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
    }
    configuration = JobsConfiguration(external_frameworks=["Thing.v1.example.com"])
    assert "owns it" in _reason(external, _owned_by(external), configuration=configuration)
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
    assert [it.reason for it in result.ignored] == ["it has no label kueue.x-k8s.io/queue-name"]


def _priority_of_last(*manifests: Any) -> int:
    spec: Any = workloads_for(manifests, configuration=_BOTH).workloads[-1].object["spec"]
    priority = spec["priority"]
    assert isinstance(priority, int)
    return priority


def test_owner_that_is_missing_or_cyclic_leaves_the_job_alone() -> None:
    assert "is not among the manifests" in _reason(_owned_by(_JOB_SET), configuration=_BOTH)
    cyclic = _job(name="self")
    cyclic["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "self", "uid": "", "controller": True}
    ]
    assert _reason(cyclic) == "cyclic ownership"


def test_owners_are_followed_ten_levels_up() -> None:
    def chain(length: int) -> list[dict[str, Any]]:
        jobs = [_job(name="top")]
        for level in range(length):
            child = _owned_by(jobs[-1])
            child["metadata"]["name"] = f"level-{level}"
            jobs.append(child)
        return jobs

    reasons = [it.reason for it in workloads_for(chain(10)).ignored]
    assert reasons == ['Job "team-a/top" owns it, and has the Workload'] * 10
    assert workloads_for(chain(11)).ignored[-1].reason == "managed owner chain limit reached"


def test_job_that_has_its_workload_gets_no_second_one() -> None:
    workload = _only(workloads_for([_job(uid="u")]))
    renamed = {**workload, "metadata": {**workload["metadata"], "name": "other"}}
    assert "is among the manifests" in _reason(_job(uid="u"), workload)
    assert "is among the manifests" in _reason(_job(uid="u"), renamed)
    elsewhere = {**workload, "metadata": {**workload["metadata"], "namespace": "team-b"}}
    assert len(workloads_for([_job(uid="u"), elsewhere]).workloads) == 1
    # That of an earlier Job of the same name does not count.
    assert len(workloads_for([_job(uid="new"), renamed]).workloads) == 1


def test_prebuilt_workload_is_used() -> None:
    job = _job(annotations={"kueue.x-k8s.io/prebuilt-workload-name": "w"})
    assert [it.message for it in workloads_for([job]).waiting] == ['Workload "team-a/w" not found']
    workload = Workload("w", namespace="team-a", pod_sets=[])
    assert _reason(job, workload) == 'it uses the prebuilt Workload "team-a/w"'


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
    job = _job(labels=labels, annotations={key: annotation})
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
    over = {**_job(), "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert _reason(over) == "it has finished"
    assert _reason(_job(deletionTimestamp="2026-01-01T00:00:00Z")) == "it is being deleted"
    assert _reason(_job(), configuration=JobsConfiguration(frameworks=["pod"])) == (
        "the integration batch/job is not enabled: name it in integrations.frameworks"
    )


def test_other_objects_are_no_jobs() -> None:
    service: dict[str, Any] = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    assert workloads_for([Namespace("a"), LocalQueue("q", cluster_queue="c"), service]) == JobsResult(
        (), (), (), (), ()
    )


def test_generated_names_are_numbered_and_avoid_those_that_exist() -> None:
    def generated() -> dict[str, Any]:
        job = _job(generateName="sample-job-")
        del job["metadata"]["name"]
        return job

    result = workloads_for([generated(), _job(name="sample-job-00002"), generated()])
    names = [job["metadata"]["name"] for job in result.jobs]  # type: ignore[index,call-overload]
    assert names == ["sample-job-00001", "sample-job-00002", "sample-job-00003"]


def test_namespace_is_filled_in() -> None:
    job = _job()
    del job["metadata"]["namespace"]
    assert _only(workloads_for([job]))["metadata"]["namespace"] == "default"


def test_given_manifests_are_not_changed() -> None:
    job = _job(labels={})
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
    result = workloads_for([_job(**metadata)])
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
    queues = [{"apiVersion": "kueue.x-k8s.io/v1beta2", **it} for it in _queues(controller=controller)]
    job = _job()
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
    job = {**_job(), "apiVersion": "example.com/v1", "kind": "Film"}
    assert workloads_for([job]) == JobsResult((), (), (), (), ())
    workload = _only(workloads_for([job], integrations=with_kinds(film)))
    assert (workload["metadata"]["name"], workload["spec"]["podSets"][0]["name"]) == (
        workload_name("sample-job", kind="Film", group="example.com"),
        "frames",
    )
