"""Groups of pods whose pods end or are gone, in Kueue 0.20 and before (rules/10 §5.4, §5.6)."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.jobs import JobReport, JobsConfiguration, pod_group, reconcile_job, sync_workloads
from kueuecore.jobs.leader_worker_set import joined_group
from kueuecore.jobs.stateful_set import joined_set
from tests.unit.jobs.sample_job import deed
from tests.unit.jobs.test_changes_of_kueue import with_and_without
from tests.unit.jobs.test_reconcile import FLAVOR, evicted, pod, with_status
from tests.unit.jobs.test_serving_sync import admitted, conditions, leader_worker, made, pod_of_set, stateful
from tests.unit.jobs.test_workload_sync import AN, NOW, holding

Json = dict[str, Any]


# Pods of serving groups that have ended.


def serving(name: str, *, going: bool = False, node: str = "node", **options: Any) -> Json:
    plain = pod(name, **options)
    plain["metadata"]["annotations"][f"{AN}pod-group-serving"] = "true"
    if going:
        plain["metadata"]["deletionTimestamp"] = NOW
    if node:
        plain["spec"]["nodeName"] = node
    return plain


def finalized(*pods: Json, configuration: JobsConfiguration, deleted: bool = False) -> list[str]:
    """The pods that lose their finalizer while their group is evicted, or those that are deleted."""
    gated = [serving(other["metadata"]["name"], gated=True, node="") for other in pods[:2]]
    created = reconcile_job(pod_group("g", gated), [], now=NOW)
    workload = evicted(dict(created.writes[0].manifest), "QuotaReserved", "Admitted")
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": other["metadata"]["name"], "uid": "u"} for other in pods]
    workload["metadata"]["ownerReferences"] = owners
    found = sync_workloads(pod_group("g", pods), [workload], now=NOW, around=(FLAVOR,), configuration=configuration)
    assert [str(step.action) for step in found.steps if step.action != "UpdateStatus"] == []
    kinds = ("Delete",) if deleted else ("Update",)
    return [write.name for write in found.writes if deed(write) in kinds]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_of_a_serving_group_that_is_deleted_and_has_ended_is_let_go(phase: str) -> None:
    pods = serving("a", going=True, phase=phase), serving("b", phase="Running")
    new, old = with_and_without("EndedServingPodsAreLetGo")
    assert finalized(*pods, configuration=new) == ["a"]
    # A StatefulSet could not make its successor, which has the same name.
    assert finalized(*pods, configuration=old) == []


def test_all_pods_of_a_serving_group_may_end_at_once() -> None:
    new, old = with_and_without("EndedServingPodsAreLetGo")
    pods = serving("a", going=True, phase="Failed"), serving("b", going=True, phase="Succeeded")
    # The Workload stays: the group is to come back.
    assert finalized(*pods, configuration=new) == ["a", "b"]
    assert finalized(*pods, configuration=old) == []


def test_the_successor_of_a_pod_that_has_ended_is_no_surplus() -> None:
    new, old = with_and_without("EndedServingPodsAreLetGo")
    pods = serving("a", going=True, phase="Succeeded"), serving("b", phase="Running"), serving("c", gated=True, node="")
    assert finalized(*pods, configuration=new, deleted=True) == []
    assert finalized(*pods, configuration=old, deleted=True) == ["c"]


@pytest.mark.parametrize(
    ("options", "is_serving"),
    [
        ({"phase": "Failed"}, True),
        ({"phase": "Running", "going": True}, True),
        ({"phase": "Failed", "going": True}, False),
    ],
)
def test_other_pods_wait_for_a_replacement(options: Json, is_serving: bool) -> None:
    pods = serving("a", **options), serving("b", phase="Running")
    if not is_serving:
        for other in pods:
            del other["metadata"]["annotations"][f"{AN}pod-group-serving"]
    for configuration in with_and_without("EndedServingPodsAreLetGo"):
        assert finalized(*pods, configuration=configuration) == []


# Evictions of sets without pods.

EVICTED = {"type": "Evicted", "status": "True", "reason": "PodsReadyTimeout", "message": "too late"}


def evicted_set(plain: Json) -> Json:
    workload = admitted(made(plain)[0])
    return with_status(workload, conditions=[*workload["status"]["conditions"], EVICTED])


def both(plain: Json, workload: Json, *around: Json, gone: bool = False) -> list[Any]:
    return [
        reconcile_job(plain, [workload], now=NOW, around=(FLAVOR, *around), gone=gone, configuration=configuration)
        for configuration in with_and_without("GroupsWithoutPodsEndEvictions")
    ]


@pytest.mark.parametrize("plain", [stateful(), leader_worker()], ids=["StatefulSet", "LeaderWorkerSet"])
def test_the_eviction_of_a_set_without_pods_ends(plain: Json) -> None:
    workload = evicted_set(plain)
    key = ("n", workload["metadata"]["name"])
    if plain["kind"] == "LeaderWorkerSet":
        plain = {**plain, "spec": {**plain["spec"], "replicas": 1}}
    new, old = both(plain, workload)
    assert (new.reports, old.reports) == ({key: JobReport(stopped=True)}, {})
    assert (new.writes, old.writes) == ((), ())
    assert both(plain, admitted(made(plain)[0]))[0].reports == {}
    configuration, bare = JobsConfiguration(), pod_of_set("p")
    if plain["kind"] == "StatefulSet":
        member = joined_set(bare, plain, key[1], configuration)
    else:
        bare["metadata"]["labels"] |= {
            "leaderworkerset.sigs.k8s.io/name": "s",
            "leaderworkerset.sigs.k8s.io/group-index": "0",
        }
        member = joined_group(bare, plain, configuration)
    # The pods report it themselves.
    assert both(plain, workload, member)[0].reports == {}


def test_the_last_pod_of_a_set_leaves_the_workload_to_its_set() -> None:
    workload = evicted_set(stateful())
    name = workload["metadata"]["name"]
    last = pod("p", group=name, phase="Failed")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p"}
    workload["metadata"] = {
        **workload["metadata"],
        "ownerReferences": [*workload["metadata"]["ownerReferences"], owner],
    }
    group = pod_group(name, [last])
    new, old = both(group, workload, stateful(), gone=True)
    assert (new.reports, new.writes) == ({("n", name): JobReport(stopped=True)}, ())
    assert old.reports == {}
    assert [write.manifest["metadata"]["finalizers"] for write in old.writes] == [[]]
    # Without the set, or with another one of its name, the Workload is let go.
    for around in ((), (stateful(uid="other"),)):
        for found in both(group, workload, *around, gone=True):
            assert ([deed(write) for write in found.writes], found.reports) == (["Update"], {})
    # One that was not evicted stays as it is.
    running = with_status(workload, conditions=workload["status"]["conditions"][:2])
    (new, _) = both(group, running, stateful(), gone=True)
    assert (new.reports, new.writes) == ({}, ())


def test_a_set_without_replicas_is_on_hold_after_an_eviction() -> None:
    workload = evicted_set(stateful())
    ended = with_status(
        {**workload, "status": {}},
        conditions=[{"type": "QuotaReserved", "status": "False", "reason": "PendingEvaluation"}, EVICTED],
    )
    new, old = both(stateful(0), ended)
    assert conditions(new.writes[0].manifest)["QuotaReserved"][1] == "OnHold"
    assert old.writes == ()
    held = new.writes[0].manifest
    assert both(stateful(0), held)[0].writes == ()
    (write,) = both(stateful(), held)[0].writes
    assert conditions(write.manifest)["QuotaReserved"][1] == "PendingEvaluation"


# Pods that run elsewhere.


@pytest.mark.parametrize("is_remote", [False, True])
def test_gated_pods_of_a_multikueue_manager_need_no_nodes(is_remote: bool) -> None:
    configuration = JobsConfiguration(follows_scheduling=True)
    pods = [pod("a", gated=True), pod("b", gated=True)]
    created = reconcile_job(pod_group("g", pods), [], now=NOW)
    workload = holding(dict(created.writes[0].manifest), "QuotaReserved", "Admitted")
    for condition in workload["status"]["conditions"]:
        condition["lastTransitionTime"] = NOW
    workload["status"]["admissionChecks"] = [{"name": "mk", "state": "Ready"}] if is_remote else []
    check: Json = {"apiVersion": f"{AN}v1beta2", "kind": "AdmissionCheck", "metadata": {"name": "mk"}}
    check["spec"] = {"controllerName": f"{AN}multikueue"}
    found = reconcile_job(
        pod_group("g", pods), [workload], now=NOW, around=(FLAVOR, check), configuration=configuration
    )
    wanted = JobReport(are_ready=False) if is_remote else JobReport(are_scheduled=False)
    assert found.reports == {("n", "g"): wanted}
