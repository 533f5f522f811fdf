from __future__ import annotations

from typing import Any

import pytest

from kueuecore.jobs import (
    Finished,
    JobsConfiguration,
    JobsResult,
    PodSetInfo,
    StartError,
    StopReason,
    start_job,
    stop_job,
    workload_name,
    workloads_for,
)
from kueuecore.jobs.pod import POD
from kueuecore.jobs.pod_group import POD_GROUP, pod_group
from kueuecore.jobs.role_hash import role_hash
from kueuecore.manifests import parse_manifests
from tests.unit.jobs.sample_job import deed

_GATES = [{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}]


def _pod(name: str = "p", *, cpu: int | str = 1, status: Any = None, **metadata: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    labels = {"kueue.x-k8s.io/queue-name": "q"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "n", "labels": labels, **metadata},
        "spec": {"containers": [container]},
        "status": status or {},
    }


def _member(name: str, *, count: int = 2, cpu: int | str = 1, status: Any = None, **annotations: str) -> dict[str, Any]:
    wanted = {"kueue.x-k8s.io/pod-group-name": "group", "kueue.x-k8s.io/pod-group-total-count": str(count)}
    return _pod(name, cpu=cpu, status=status, annotations={**wanted, **annotations})


def _only(result: JobsResult) -> dict[str, Any]:
    result.raise_for_problems()
    assert [str(ignored) for ignored in result.ignored] == []
    (workload,) = result.workloads
    return workload.object


def _reason(*manifests: Any, **options: Any) -> str:
    result = workloads_for(manifests, **options)
    result.raise_for_problems()
    assert result.workloads == ()
    return result.ignored[0].reason


def test_pod_is_gated_and_becomes_a_workload() -> None:
    result = workloads_for([_pod()])
    workload = _only(result)
    assert workload["metadata"]["name"] == workload_name("p", kind="Pod", group="")
    (pod_set,) = workload["spec"]["podSets"]
    assert (pod_set["name"], pod_set["count"]) == ("main", 1)
    assert "metadata" not in pod_set["template"]
    assert pod_set["topologyRequest"] == {"podIndexLabel": "kueue.x-k8s.io/pod-group-pod-index"}
    pod: Any = result.jobs[0]
    assert pod["spec"]["schedulingGates"] == _GATES
    assert pod["metadata"]["labels"]["kueue.x-k8s.io/managed"] == "true"
    assert pod["metadata"]["finalizers"] == ["kueue.x-k8s.io/managed"]


def test_pods_that_nobody_means_for_kueue_are_passed_over_without_a_word() -> None:
    pod = _pod(labels={})
    assert workloads_for([pod]) == JobsResult((), (), (), (), ())


def test_pod_of_a_managed_job_is_left_alone() -> None:
    parent: Any = parse_manifests("""
        apiVersion: batch/v1
        kind: Job
        metadata: {name: j, namespace: 'n', uid: u, labels: {kueue.x-k8s.io/queue-name: q}}
        spec: {template: {spec: {containers: [{name: c}]}}}
    """)[0].object
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    result = workloads_for([parent, _pod(ownerReferences=[owner])])
    assert len(result.workloads) == 1
    assert [ignored.reason for ignored in result.ignored] == ['Job "n/j" owns it, and has the Workload']


def test_start_removes_the_gates_and_stop_ends_the_pod() -> None:
    result = workloads_for([_pod()])
    pod: Any = result.jobs[0]
    workload: Any = result.workloads[0].object
    assignments = [{"name": "main", "flavors": {"cpu": "f"}}]
    workload = {**workload, "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": assignments}}}
    (write,) = start_job(pod, workload, flavors={"f": {"spec": {"nodeLabels": {"a": "b"}}}})
    started: Any = write.manifest
    assert "schedulingGates" not in started["spec"]
    assert started["spec"]["nodeSelector"] == {"a": "b"}
    assert started["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "main"
    assert start_job(started, workload, flavors={"f": {}}) == ()

    evicted = {**workload, "status": {"conditions": [{"type": "Evicted", "status": "True", "reason": "Preempted"}]}}
    status, deletion = stop_job(started, evicted, reason=StopReason.WORKLOAD_EVICTED, message="make room")
    assert (deed(status), deed(deletion)) == ("UpdateStatus", "Delete")
    assert status.manifest["status"] == {
        "conditions": [
            {
                "type": "TerminationTarget",
                "status": "True",
                "reason": "WorkloadEvictedDueToPreempted",
                "message": "make room",
            }
        ]
    }
    assert stop_job(pod, evicted, reason=StopReason.WORKLOAD_EVICTED) == ()


def test_pod_ends_with_its_phase() -> None:
    assert POD.finished(_pod(status={"phase": "Running"})) is None
    assert POD.finished(_pod(status={"phase": "Succeeded"})) == Finished("", success=True)
    assert POD.finished(_pod(status={"phase": "Failed", "message": "no"})) == Finished("no", success=False)
    assert POD.pods_ready(_pod(status={"conditions": [{"type": "Ready", "status": "True"}]}))


@pytest.mark.parametrize(
    ("metadata", "field", "message"),
    [
        (
            {"labels": {"kueue.x-k8s.io/managed": "no"}},
            "metadata.labels[kueue.x-k8s.io/managed]",
            "Forbidden: managed label value can only be 'true'",
        ),
        (
            {"annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"}},
            "metadata.labels[kueue.x-k8s.io/pod-group-name]",
            "Required value: both the 'kueue.x-k8s.io/pod-group-total-count' annotation and the "
            "'kueue.x-k8s.io/pod-group-name' label should be set",
        ),
        (
            {"annotations": {"kueue.x-k8s.io/pod-group-name": "g"}},
            "metadata.annotations[kueue.x-k8s.io/pod-group-total-count]",
            "Required value: both the 'kueue.x-k8s.io/pod-group-total-count' annotation and the "
            "'kueue.x-k8s.io/pod-group-name' annotation should be set",
        ),
        (
            {"annotations": {"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/pod-group-total-count": "0"}},
            "metadata.annotations[kueue.x-k8s.io/pod-group-total-count]",
            "Invalid value: \"0\": incorrect annotation value 'kueue.x-k8s.io/pod-group-total-count=0': "
            "group total count should be greater than zero",
        ),
    ],
)
def test_pods_that_are_rejected(metadata: dict[str, Any], field: str, message: str) -> None:
    (problem,) = workloads_for([_pod(**metadata)]).problems
    assert (problem.field, problem.message) == (field, message)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}, "dc85db45"),
        ({"containers": [{"name": "c", "image": "other", "resources": {"requests": {"cpu": "1000m"}}}]}, "dc85db45"),
        ({"containers": [{"name": "c", "resources": {"requests": {"cpu": "20e2"}}}]}, "75fd3558"),
    ],
)
def test_role_hash_is_that_of_kueue(spec: dict[str, Any], expected: str) -> None:
    assert role_hash({"spec": spec}) == expected


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_BARE = {"containers": [{"name": "c"}]}
# Empty as an API server never gives it back.
_EMPTY_TERM = {
    "topologyKey": "zone",
    "namespaces": [],
    "namespaceSelector": {},
    "labelSelector": {"matchLabels": {}},
}


# The hashes are those of Kueue's function, in Go, for pods that went through JSON and protobuf as in a server.
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (_BARE, "7aa6c7b8"),
        ({"containers": [{"name": "c", "ports": [], "resources": {"requests": {}}}]}, "7aa6c7b8"),
        (
            {
                **_BARE,
                **{key: [] for key in ("initContainers", "tolerations", "resourceClaims", "topologySpreadConstraints")},
                **{key: {} for key in ("nodeSelector", "overhead")},
            },
            "7aa6c7b8",
        ),
        # What is optional and an object stays, though it is empty.
        ({**_BARE, "affinity": {}}, "96014d6b"),
        ({**_BARE, "resources": {}}, "b4376854"),
        (
            {**_BARE, "affinity": {"nodeAffinity": {_PREFERRED: []}, "podAffinity": {_REQUIRED: [_EMPTY_TERM]}}},
            "43ab002e",
        ),
        (
            {
                "containers": [
                    {"name": "c", "ports": [{"containerPort": 80, "hostPort": 0, "hostIP": "", "name": ""}]}
                ],
                "tolerations": [{"key": "", "operator": "Exists", "tolerationSeconds": 0, "note": "nobody knows it"}],
            },
            "205e1be6",
        ),
    ],
)
def test_role_hash_leaves_out_what_a_server_drops(spec: dict[str, Any], expected: str) -> None:
    assert role_hash({"spec": spec}) == expected


def test_group_has_a_pod_set_for_each_role() -> None:
    pods = [_member("a", count=3), _member("b", count=3, cpu="1000m"), _member("c", count=3, cpu=2)]
    result = workloads_for(pods)
    workload = _only(result)
    assert workload["metadata"]["name"] == "group"
    assert workload["metadata"]["annotations"] == {"kueue.x-k8s.io/is-group-workload": "true"}
    assert [reference["name"] for reference in workload["metadata"]["ownerReferences"]] == ["a", "b", "c"]
    assert not any("controller" in reference for reference in workload["metadata"]["ownerReferences"])
    roles = [pod_set["name"] for pod_set in workload["spec"]["podSets"]]
    assert roles == sorted(roles)
    assert sorted(pod_set["count"] for pod_set in workload["spec"]["podSets"]) == [1, 2]
    assert result.positions == (2,)


def test_group_waits_until_it_is_complete() -> None:
    assert _reason(_member("a")) == "'group' group has fewer runnable pods than expected"
    lost = _member("b", status={"phase": "Failed"})
    assert _reason(_member("a"), lost) == "'group' group has fewer runnable pods than expected"


def test_group_with_fast_admission_does_not_wait() -> None:
    workload = _only(workloads_for([_member("a", count=5, **{"kueue.x-k8s.io/pod-group-fast-admission": "true"})]))
    assert [pod_set["count"] for pod_set in workload["spec"]["podSets"]] == [5]


def test_group_agrees_on_queue_and_size() -> None:
    other = _member("b")
    other["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "other"}
    assert _reason(_member("a"), other) == "pods 'a' and 'b' has different queue names: q!=other"
    assert _reason(_member("a"), _member("b", count=3)) == (
        "pods 'a' and 'b' has different 'kueue.x-k8s.io/pod-group-total-count' values: 2!=3"
    )


def test_older_pods_of_too_many_stay() -> None:
    pods = [_member(name) for name in "abc"]
    for pod, created in zip(pods, ("03", "01", "02"), strict=True):
        pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{created}Z"
    pods[0]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = 9
    (pod_set,) = _only(workloads_for(pods))["spec"]["podSets"]
    assert pod_set["count"] == 2


def test_labels_of_a_group_are_those_of_its_pods() -> None:
    configuration = JobsConfiguration(label_keys_to_copy=["team"])
    pods = [_member("a"), _member("b")]
    pods[0]["metadata"]["labels"] = {**pods[0]["metadata"]["labels"], "team": "x"}
    assert _only(workloads_for(pods, configuration=configuration))["metadata"]["labels"] == {"team": "x"}
    pods[1]["metadata"]["labels"] = {**pods[1]["metadata"]["labels"], "team": "y"}
    assert _reason(*pods, configuration=configuration) == "constructing workload: pods have different label values"


def test_annotations_of_a_group_that_are_measured_are_those_of_its_pods() -> None:
    configuration = JobsConfiguration(annotation_keys_to_copy=["cost"])
    pods = [_member("a"), _member("b")]
    pods[1]["metadata"]["annotations"] = {**pods[1]["metadata"].get("annotations", {}), "cost": "low"}
    assert _only(workloads_for(pods, configuration=configuration))["metadata"]["annotations"]["cost"] == "low"
    pods[0]["metadata"]["annotations"] = {**pods[0]["metadata"].get("annotations", {}), "cost": "high"}
    assert _reason(*pods, configuration=configuration) == "constructing workload: pods have different annotation values"


def _group(*pods: dict[str, Any]) -> dict[str, Any]:
    return pod_group("group", pods)


def test_group_ends_when_all_its_pods_succeeded_or_it_gives_up() -> None:
    done, lost, runs = ({"phase": name} for name in ("Succeeded", "Failed", "Running"))
    assert POD_GROUP.finished(_group(_member("a", status=done), _member("b", status=runs))) is None
    assert POD_GROUP.finished(_group(_member("a", status=done), _member("b", status=done))) == Finished(
        "Pods succeeded: 2/2."
    )
    assert POD_GROUP.finished(_group(_member("a", status=done), _member("b", status=lost))) is None
    final: Any = {"kueue.x-k8s.io/retriable-in-group": "false"}
    assert POD_GROUP.finished(_group(_member("a", status=done), _member("b", status=lost, **final))) == Finished(
        "Pods succeeded: 1/2."
    )


def test_serving_groups_never_end_and_give_nothing_back() -> None:
    serving: Any = {"kueue.x-k8s.io/pod-group-serving": "true"}
    group = _group(*(_member(name, status={"phase": "Succeeded"}, **serving) for name in "ab"))
    assert POD_GROUP.finished(group) is None
    assert POD_GROUP.reclaimable_pods(group, JobsConfiguration()) == {}


def test_pods_of_a_group_that_succeeded_are_reclaimable() -> None:
    group = _group(_member("a", status={"phase": "Succeeded"}), _member("b", status={"phase": "Running"}))
    assert POD_GROUP.reclaimable_pods(group, JobsConfiguration()) == {role_hash(_member("a")): 1}
    assert POD_GROUP.is_active(group)


def test_start_of_a_group_starts_each_pod_by_its_role() -> None:
    result = workloads_for([_member("a"), _member("b", cpu=2)])
    group = _group(*result.jobs)
    spec: Any = result.workloads[0].object["spec"]
    roles = [pod_set["name"] for pod_set in spec["podSets"]]
    infos = [PodSetInfo(role, node_selector={"role": role}) for role in roles]
    writes: Any = POD_GROUP.start(group, infos, JobsConfiguration())
    assert [write.manifest["spec"]["nodeSelector"]["role"] for write in writes] == [
        role_hash(pod) for pod in result.jobs
    ]
    with pytest.raises(StartError, match="is not found"):
        POD_GROUP.start(group, infos[:1], JobsConfiguration())
    assert len(stop_job(_group(*(write.manifest for write in writes)), None, reason=StopReason.NOT_ADMITTED)) == 4
