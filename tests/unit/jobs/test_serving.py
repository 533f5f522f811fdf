"""Deployments, StatefulSets and LeaderWorkerSets."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.jobs import JobsConfiguration, workload_name, workloads_for
from kueuecore.jobs.leader_worker_set import pod_of_leader_worker_set
from kueuecore.jobs.stateful_set import pod_of_stateful_set
from kueuecore.objects import PriorityClass

_TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c"}]}}
_LWS = "leaderworkerset.x-k8s.io/v1"


def _set(api_version: str, kind: str, **spec: Any) -> dict[str, Any]:
    labels = {"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/priority-class": "", "team": "x"}
    metadata = {"name": "s", "namespace": "n", "uid": "u1", "labels": labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _made(job: dict[str, Any], **options: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    result = workloads_for([job], **options)
    result.raise_for_problems()
    assert [str(ignored) for ignored in result.ignored] == []
    return list(result.jobs), [workload.object for workload in result.workloads]


def test_every_pod_of_a_deployment_has_its_workload() -> None:
    jobs, workloads = _made(_set("apps/v1", "Deployment", replicas=2, template=_TEMPLATE))
    deployment, *pods = jobs
    template = deployment["spec"]["template"]["metadata"]
    assert template["annotations"] == {"kueue.x-k8s.io/pod-suspending-parent": "deployment"}
    assert template["labels"] == {"app": "a", "kueue.x-k8s.io/managed": "true", "kueue.x-k8s.io/queue-name": "q"}
    assert [pod["metadata"]["name"] for pod in pods] == ["s-00001", "s-00002"]
    assert pods[0]["spec"]["schedulingGates"][0] == {"name": "kueue.x-k8s.io/admission"}
    assert [workload["metadata"]["ownerReferences"][0]["name"] for workload in workloads] == ["s-00001", "s-00002"]
    assert [workload["spec"]["podSets"][0]["count"] for workload in workloads] == [1, 1]


def test_pods_of_a_deployment_count_though_pods_are_off() -> None:
    configuration = JobsConfiguration(frameworks=["deployment"])
    _, workloads = _made(_set("apps/v1", "Deployment", template=_TEMPLATE), configuration=configuration)
    assert len(workloads) == 1


def test_pods_of_a_deployment_that_are_there_are_not_made_again() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "s-7d9f", "uid": "r", "controller": True}
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "s-7d9f-abcde",
            "namespace": "n",
            "labels": {"kueue.x-k8s.io/queue-name": "q"},
            "annotations": {"kueue.x-k8s.io/pod-suspending-parent": "deployment"},
            "ownerReferences": [owner],
        },
        "spec": _TEMPLATE["spec"],
    }
    result = workloads_for([_set("apps/v1", "Deployment", replicas=2, template=_TEMPLATE), pod])
    owners: Any = [workload.object["metadata"]["ownerReferences"] for workload in result.workloads]  # type: ignore[index,call-overload]
    assert [owner[0]["name"] for owner in owners] == ["s-7d9f-abcde"]


def test_stateful_set_is_one_workload() -> None:
    jobs, (workload,) = _made(
        _set("apps/v1", "StatefulSet", replicas=3, template=_TEMPLATE),
        configuration=JobsConfiguration(label_keys_to_copy=["team"]),
    )
    assert workload["metadata"]["name"] == workload_name("s", kind="StatefulSet", group="apps", uid="u1")
    assert workload["metadata"]["labels"] == {"kueue.x-k8s.io/job-uid": "u1"}
    assert workload["metadata"]["annotations"] == {
        "kueue.x-k8s.io/is-group-workload": "true",
        "kueue.x-k8s.io/job-owner-gvk": "apps/v1, Kind=StatefulSet",
        "kueue.x-k8s.io/job-owner-name": "s",
    }
    assert workload["metadata"]["ownerReferences"] == [
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "u1"}
    ]
    (pod_set,) = workload["spec"]["podSets"]
    assert (pod_set["name"], pod_set["count"]) == ("main", 3)
    assert pod_set["template"] == {"spec": _TEMPLATE["spec"]}
    assert pod_set["topologyRequest"] == {"podIndexLabel": "apps.kubernetes.io/pod-index"}
    annotations = jobs[0]["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"kueue.x-k8s.io/pod-suspending-parent": "statefulset"}


def test_pod_of_a_stateful_set_joins_its_group() -> None:
    job = _set("apps/v1", "StatefulSet", replicas=3, template=_TEMPLATE)
    name = workload_name("s", kind="StatefulSet", group="apps", uid="u1")
    metadata: Any = pod_of_stateful_set({"kind": "Pod"}, job, JobsConfiguration())["metadata"]
    assert metadata["labels"] == {"kueue.x-k8s.io/managed": "true", "kueue.x-k8s.io/queue-name": "q"}
    assert metadata["annotations"] == {
        "kueue.x-k8s.io/prebuilt-workload-name": name,
        "kueue.x-k8s.io/pod-group-name": name,
        "kueue.x-k8s.io/pod-group-total-count": "3",
        "kueue.x-k8s.io/pod-group-fast-admission": "true",
        "kueue.x-k8s.io/pod-group-serving": "true",
        "kueue.x-k8s.io/pod-group-pod-index-label": "apps.kubernetes.io/pod-index",
        "kueue.x-k8s.io/role-hash": "main",
    }


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"replicas": 0, "template": _TEMPLATE}, "it has no replicas"),
        (
            {
                "template": {
                    **_TEMPLATE,
                    "metadata": {"annotations": {"kueue.x-k8s.io/pod-suspending-parent": "leaderworkerset"}},
                }
            },
            "its pods belong to a leaderworkerset",
        ),
    ],
)
def test_stateful_set_without_a_workload_of_its_own(spec: dict[str, Any], reason: str) -> None:
    (ignored,) = workloads_for([_set("apps/v1", "StatefulSet", **spec)]).ignored
    assert ignored.reason == reason


def _leader_worker_set(**changes: Any) -> dict[str, Any]:
    leader = {"metadata": {"labels": {"leaderworkerset.sigs.k8s.io/x": "y", "app": "a"}}, "spec": _TEMPLATE["spec"]}
    groups = {"size": 3, "leaderTemplate": leader, "workerTemplate": _TEMPLATE, **changes}
    return _set(_LWS, "LeaderWorkerSet", replicas=2, leaderWorkerTemplate=groups)


def test_every_group_of_a_leader_worker_set_has_its_workload() -> None:
    _, workloads = _made(_leader_worker_set(), configuration=JobsConfiguration(label_keys_to_copy=["team"]))
    assert [workload["metadata"]["name"] for workload in workloads] == [
        workload_name(f"s-{index}", kind="LeaderWorkerSet", group="leaderworkerset.x-k8s.io", uid="u1")
        for index in (0, 1)
    ]
    second = workloads[1]
    assert second["metadata"]["annotations"]["kueue.x-k8s.io/component-workload-index"] == "1"
    assert second["metadata"]["labels"] == {"team": "x", "kueue.x-k8s.io/job-uid": "u1"}
    leader, worker = second["spec"]["podSets"]
    assert (leader["name"], leader["count"], worker["name"], worker["count"]) == ("leader", 1, "worker", 2)
    assert "topologyRequest" not in leader
    assert worker["topologyRequest"] == {"podIndexLabel": "leaderworkerset.sigs.k8s.io/worker-index"}
    assert leader["template"]["metadata"]["labels"] == {"app": "a", "kueue.x-k8s.io/queue-name": "q"}
    assert worker["template"]["metadata"]["annotations"]["kueue.x-k8s.io/pod-index-offset"] == "1"


def test_a_leader_worker_set_gives_its_workloads_the_annotations_that_are_measured() -> None:
    made = _leader_worker_set()
    made["metadata"]["annotations"] = {"cost": "low", "other": "x"}
    _, workloads = _made(made, configuration=JobsConfiguration(annotation_keys_to_copy=["cost"]))
    annotations = workloads[0]["metadata"]["annotations"]
    assert (annotations.get("cost"), annotations.get("other")) == ("low", None)


def test_groups_that_have_their_workload_get_no_second_one() -> None:
    job = _leader_worker_set()
    first, second = (workload.object for workload in workloads_for([job]).workloads)
    result = workloads_for([first, job])
    assert [workload.object for workload in result.workloads] == [second]


def test_leader_worker_set_without_leaders_is_one_pod_set() -> None:
    job = _leader_worker_set()
    del job["spec"]["leaderWorkerTemplate"]["leaderTemplate"]
    _, workloads = _made(job)
    assert [(pod_set["name"], pod_set["count"]) for pod_set in workloads[0]["spec"]["podSets"]] == [("main", 3)]


def test_leader_alone_leaves_no_workers() -> None:
    _, workloads = _made(_leader_worker_set(size=1))
    assert [pod_set["count"] for pod_set in workloads[0]["spec"]["podSets"]] == [1, 0]


def test_groups_that_are_too_many_for_a_time_have_workloads_too() -> None:
    job = _leader_worker_set()
    job["spec"]["rolloutStrategy"] = {"rollingUpdateConfiguration": {"maxSurge": 1}}
    job["status"] = {"replicas": 3, "updatedReplicas": 1}
    assert len(_made(job)[1]) == 3
    for surge, n_workloads in (("1", 3), ("50%", 2)):
        job["spec"]["rolloutStrategy"] = {"rollingUpdateConfiguration": {"maxSurge": surge}}
        assert len(_made(job)[1]) == n_workloads
    job["status"]["updatedReplicas"] = 2
    assert len(_made(job)[1]) == 2


def test_pods_of_a_leader_worker_set_know_their_role() -> None:
    def role(**metadata: Any) -> Any:
        labels = {"leaderworkerset.sigs.k8s.io/group-index": "1"}
        pod: Any = {"kind": "Pod", "metadata": {"labels": labels, **metadata}}
        marked: Any = pod_of_leader_worker_set(pod, _leader_worker_set(), JobsConfiguration())
        return marked["metadata"].get("annotations", {}).get("kueue.x-k8s.io/role-hash")

    assert role() == "leader"
    assert role(annotations={"leaderworkerset.sigs.k8s.io/leader-name": "s-1"}) == "worker"
    assert role(labels={}) is None


def test_too_many_groups_are_rejected() -> None:
    job = _leader_worker_set()
    job["spec"]["replicas"] = 1_000_001
    (problem,) = workloads_for([job]).problems
    assert problem.message == (
        "Invalid value: 1000001: invalid LeaderWorkerSet replicas: must be <= 1000000, got 1000001"
    )


def test_workload_of_a_set_is_made_in_any_namespace_and_only_its_pods_are_left_out() -> None:
    for kind, n_workloads in (("StatefulSet", 1), ("Deployment", 0)):
        job = _set("apps/v1", kind, template=_TEMPLATE)
        job["metadata"]["namespace"] = "kube-system"
        result = workloads_for([job])
        assert len(result.workloads) == n_workloads
        assert [ignored.job.kind for ignored in result.ignored] == ["Pod"] * (1 - n_workloads)


def test_time_of_a_set_that_makes_no_sense_is_passed_over() -> None:
    job = _set("apps/v1", "StatefulSet", template=_TEMPLATE)
    job["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "-1"
    (workload,) = _made(job)[1]
    assert "maximumExecutionTimeSeconds" not in workload["spec"]


def test_priority_is_that_of_the_pods() -> None:
    template = {"spec": {"containers": [{"name": "c"}], "priorityClassName": "high"}}
    job = _set("apps/v1", "StatefulSet", template=template)
    result = workloads_for([PriorityClass("high", value=9), job])
    spec: Any = result.workloads[0].object["spec"]
    assert spec["priority"] == 9


def test_a_deployment_of_more_pods_than_any_cluster_has_is_refused() -> None:
    job = _set("apps/v1", "Deployment", replicas=2_147_483_647, template=_TEMPLATE)
    (problem,) = workloads_for([job]).problems
    assert str(problem).endswith("must be at most 200000: each pod gets a Workload of its own")
