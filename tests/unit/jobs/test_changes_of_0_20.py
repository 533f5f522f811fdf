"""Jobs as Kueue 0.20 treats them, and as it did before (rules/10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore.jobs import (
    JobReport,
    JobsConfiguration,
    StopReason,
    Sync,
    pod_group,
    reclaimable_pods,
    reconcile_job,
    start_job,
    stop_job,
    sync_workloads,
    update_problems,
    workloads_for,
)
from kueuecore.jobs.batch_job import BATCH_JOB
from kueuecore.jobs.context import INSTALLED_FRAMEWORKS, Surroundings
from kueuecore.jobs.webhook_defaults import with_webhook_defaults
from tests.jobs import batch_job, job
from tests.unit.jobs.sample_job import deed
from tests.unit.jobs.test_changes_of_kueue import with_and_without, without
from tests.unit.jobs.test_reconcile import FLAVOR, evicted, pod, with_status
from tests.unit.jobs.test_serving_sync import (
    admitted,
    conditions,
    leader_worker,
    made,
    pod_of_set,
    pods_written,
    stateful,
)
from tests.unit.jobs.test_workload_sync import AN, NOW, batch, elastic, holding, only_made

Json = dict[str, Any]


def in_release(name: str, **gates: bool) -> JobsConfiguration:
    manifest: Json = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
    configuration = JobsConfiguration.of(Configuration.of([manifest], feature_gates=gates, release=name))
    return replace(configuration, frameworks=INSTALLED_FRAMEWORKS)


def test_the_default_is_the_default_release() -> None:
    assert JobsConfiguration().absent_changes == JobsConfiguration.of(Configuration()).absent_changes
    assert in_release("0.20.0").absent_changes == frozenset()


@pytest.mark.parametrize(
    ("spec", "succeeded", "now", "before"),
    [
        ({"parallelism": 8, "completions": 4}, 1, 1, 4),
        ({"parallelism": 8, "completions": 4}, 2, 2, 4),
        ({"parallelism": 4, "completions": 10}, 7, 1, 1),
        ({"parallelism": 4, "completions": 10}, 6, 0, 0),
    ],
)
def test_a_job_reclaims_from_the_pods_that_it_has(spec: Json, succeeded: int, now: int, before: int) -> None:
    plain = batch_job(**spec)
    stored = workloads_for([plain]).workloads[0].object
    running = with_status(plain, succeeded=succeeded)
    found = [
        reclaimable_pods(running, stored, configuration=configuration)
        for configuration in with_and_without("JobReclaimsFromItsPodSet")
    ]
    assert [pods.get("main", 0) for pods in found] == [now, before]


# SparkApplication.


def spark(**spec: Any) -> Json:
    plain = job("SparkApplication")
    plain["spec"] |= spec
    return plain


def on(release: str) -> JobsConfiguration:
    framework = "sparkoperator.k8s.io/sparkapplication"
    manifest: Json = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "integrations": {"frameworks": [framework]},
    }
    gates = {"SparkApplicationIntegration": True}
    return JobsConfiguration.of(Configuration.of([manifest], feature_gates=gates, release=release))


def test_a_spark_application_requests_what_spark_does() -> None:
    plain = spark(driver={"cores": 2, "memory": "4g"}, executor={"instances": 2, "coreLimit": "3"})
    containers = []
    for release in ("0.20.0", "0.20.0-devel"):
        (found,) = workloads_for([plain], configuration=on(release)).workloads
        pod_sets: Any = found.object["spec"]["podSets"]  # type: ignore[index,call-overload]
        containers.append([pod_set["template"]["spec"]["containers"][0].get("resources") for pod_set in pod_sets])
    assert containers == [
        [
            {"requests": {"cpu": "2", "memory": "4505Mi"}},
            {"requests": {"cpu": "1", "memory": "1408Mi"}, "limits": {"cpu": "3"}},
        ],
        [{"requests": {"memory": "4Gi"}}, {"limits": {"cpu": "3"}}],
    ]


def test_a_node_selector_for_all_pods_of_spark_is_seen_and_kept() -> None:
    plain = spark(nodeSelector={"disk": "ssd", "zone": "a"})
    plain["spec"]["driver"]["nodeSelector"] = {"zone": "b"}
    for release, seen in (("0.20.0", {"disk": "ssd", "zone": "b"}), ("0.20.0-devel", {"zone": "b"})):
        configuration = on(release)
        result = workloads_for([plain], configuration=configuration)
        workload = holding(dict(result.workloads[0].object), "QuotaReserved", "Admitted")
        driver = workload["spec"]["podSets"][0]["template"]["spec"]
        assert driver["nodeSelector"] == seen
        started: Any = start_job(result.jobs[0], workload, flavors={"default": FLAVOR}, configuration=configuration)
        running = started[0].manifest
        assert running["spec"]["driver"]["nodeSelector"] == {
            **plain["spec"]["nodeSelector"],
            **(seen if release == "0.20.0" else {}),
        }
        stopped: Any = stop_job(running, workload, reason=StopReason.WORKLOAD_EVICTED, message="")
        assert stopped[-1].manifest["spec"]["driver"]["nodeSelector"] == seen


# Workloads and their jobs.


def test_resources_of_the_whole_pod_are_compared() -> None:
    plain = batch(1)
    plain["spec"]["template"]["spec"]["resources"] = {"requests": {"cpu": "1"}}
    stored = only_made(plain)
    plain["spec"]["template"]["spec"]["resources"] = {"requests": {"cpu": "2"}}
    new, old = (
        sync_workloads(plain, [stored], now=NOW, configuration=configuration)
        for configuration in with_and_without("PodLevelPartsAreCompared")
    )
    assert [str(step.action) for step in new.steps] == ["Update"]
    assert old.steps == ()


def test_a_set_that_is_scaled_up_again_asks_for_its_new_pods() -> None:
    (workload,) = made(stateful(3))
    held: Any = sync_workloads(stateful(0), [admitted(workload)], now=NOW).workload
    counted = []
    for configuration in with_and_without("StatefulSetCountFollowsScaleUp"):
        found = sync_workloads(stateful(5), [held], now=NOW, configuration=configuration)
        back: Any = found.workload
        assert conditions(back)["QuotaReserved"][1] == "PendingEvaluation"
        counted.append(([str(step.action) for step in found.steps], back["spec"]["podSets"][0]["count"]))
    assert counted == [(["Update", "UpdateStatus"], 5), (["UpdateStatus"], 3)]


def test_an_evicted_slice_keeps_its_quota_until_its_pods_are_gone() -> None:
    first = only_made(elastic(2))
    first["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "uid": "a"}
    running = with_status({**elastic(4, 2), "spec": {**elastic(4, 2)["spec"], "suspend": False}}, active=2)
    (step,) = sync_workloads(running, [holding(first, "QuotaReserved", "Admitted")], now=NOW).steps
    second: Any = {**step.workload}
    second["metadata"] = {**second["metadata"], "creationTimestamp": "2026-01-01T00:00:01Z", "uid": "b"}
    old_slice = evicted(first, "QuotaReserved", "Admitted")
    new, old = (
        reconcile_job(running, [old_slice, second], now=NOW, around=(FLAVOR,), configuration=configuration)
        for configuration in with_and_without("EvictedSlicesWaitForTheirPods")
    )
    key = ("n", first["metadata"]["name"])
    # The job is stopped first; before, its slice ended while its pods ran.
    assert [deed(write) for write in new.writes] == ["Update", "Update"]
    assert key not in new.reports
    assert old.reports[key].finished is not None
    stopped = {**running, "spec": {**running["spec"], "suspend": True}, "status": {}}
    found = reconcile_job(stopped, [old_slice, second], now=NOW, around=(FLAVOR,), configuration=without())
    assert found.reports == {key: JobReport(stopped=True)}
    # Another slice has taken over: the evicted one ends at once.
    taken = holding(second, "QuotaReserved", "Admitted")
    found = reconcile_job(running, [old_slice, taken], now=NOW, around=(FLAVOR,), configuration=without())
    assert found.reports[key].finished is not None


# Pods.


def test_the_workload_of_a_pod_of_a_deployment_is_labelled_with_its_uid() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "of-deployment", "controller": True}
    between: Json = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r", "namespace": "n"}}
    between["metadata"] |= {"uid": "of-set", "ownerReferences": [owner]}
    plain = pod("a", gated=True, group="")
    plain["metadata"]["annotations"] = {f"{AN}pod-suspending-parent": "deployment"}
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "of-set", "controller": True}
    plain["metadata"]["ownerReferences"] = [reference]
    labels = []
    for release in ("0.20.0", "0.20.0-devel"):
        found = reconcile_job(plain, [], now=NOW, around=(between,), configuration=in_release(release))
        created: Any = found.writes[0].manifest
        labels.append(created["metadata"]["labels"][f"{AN}job-uid"])
    assert labels == ["of-deployment", "a"]


def ready(plain: Json, phase: str = "Running") -> Json:
    is_ready = "True" if phase == "Running" else "False"
    return with_status(plain, phase=phase, conditions=[{"type": "Ready", "status": is_ready}])


def readiness(pods: list[Json], configuration: JobsConfiguration, said: tuple[str, str] | None = None) -> bool | None:
    created = reconcile_job(
        pod_group("g", [pod(other["metadata"]["name"], gated=True, total=len(pods)) for other in pods]), [], now=NOW
    )
    workload = holding(dict(created.writes[0].manifest), "QuotaReserved", "Admitted")
    if said is not None:
        condition = {"type": "PodsReady", "status": said[0], "reason": said[1]}
        workload = with_status(workload, conditions=[*workload["status"]["conditions"], condition])
    owners = [
        {"apiVersion": "v1", "kind": "Pod", "name": other["metadata"]["name"], "uid": other["metadata"]["uid"]}
        for other in pods
    ]
    workload["metadata"]["ownerReferences"] = owners
    found = reconcile_job(pod_group("g", pods), [workload], now=NOW, around=(FLAVOR,), configuration=configuration)
    return next((report.are_ready for report in found.reports.values() if report.are_ready is not None), None)


def test_a_pod_that_succeeded_is_ready() -> None:
    pods = [ready(pod("a")), ready(pod("b"), "Succeeded")]
    was_ready = ("True", "Started")
    assert readiness(pods, in_release("0.20.0"), was_ready) is None
    assert readiness(pods, in_release("0.20.0", PodIntegrationCountSucceededPodsAsReady=False), was_ready) is False
    assert readiness(pods, in_release("0.20.0-devel"), was_ready) is False


@pytest.mark.parametrize(
    ("allowed", "n_ready", "is_ready"),
    [
        (["2", "3"], 8, True),
        (["2", "3"], 7, False),
        (["2"] * 8, 6, True),
        (["2"] * 8, 5, False),
        (["2"] * 7 + ["8"], 6, False),
        (["2"] * 7 + ["-1"], 6, False),
    ],
)
def test_a_group_allows_some_pods_that_are_not_ready(allowed: list[str], n_ready: int, is_ready: bool) -> None:
    pods = [pod(str(index), total=8, phase="Running") for index in range(8)]
    for plain, text in zip(pods, allowed, strict=False):
        plain["metadata"]["annotations"][f"{AN}pod-group-max-not-ready-count"] = text
    pods = [ready(other) if number < n_ready else other for number, other in enumerate(pods)]
    assert readiness(pods, in_release("0.20.0", WaitForPodsReadyMaxNotReady=True)) is is_ready
    assert readiness(pods, in_release("0.20.0")) is (n_ready == 8)


def test_pod_sets_of_a_group_are_ordered_by_their_shapes() -> None:
    def roles(first: str, second: str, configuration: JobsConfiguration) -> list[str]:
        pods = [pod(name, gated=True) for name in ("a", "b")]
        for plain, role, cpu in zip(pods, (first, second), ("1", "2"), strict=True):
            plain["metadata"]["annotations"][f"{AN}role-hash"] = role
            plain["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
        created = reconcile_job(pod_group("g", pods), [], now=NOW, configuration=configuration)
        workload: Any = created.writes[0].manifest
        asked = [
            pod_set["template"]["spec"]["containers"][0]["resources"]["requests"]
            for pod_set in workload["spec"]["podSets"]
        ]
        # What was made in an order keeps it.
        stored = {**workload, "spec": {**workload["spec"], "podSets": workload["spec"]["podSets"][::-1]}}
        again = reconcile_job(pod_group("g", pods), [stored], now=NOW, configuration=configuration)
        assert (again.writes == ()) is configuration.enabled("PodGroupSchedulingShapeOrdering")
        return [requests["cpu"] for requests in asked]

    by_name = in_release("0.20.0", PodGroupSchedulingShapeOrdering=False)
    assert roles("x", "y", by_name) != roles("y", "x", by_name)
    by_shape = in_release("0.20.0")
    assert roles("x", "y", by_shape) == roles("y", "x", by_shape)


def test_a_group_that_goes_gets_no_new_workload() -> None:
    pods = [pod(name, gated=True) for name in ("a", "b")]
    for plain in pods:
        plain["metadata"]["deletionTimestamp"] = NOW
        plain["spec"]["nodeName"] = "node"
    found = reconcile_job(pod_group("g", pods), [], now=NOW, configuration=in_release("0.20.0"))
    assert [(deed(write), write.manifest["metadata"]["finalizers"]) for write in found.writes] == [("Update", [])] * 2  # type: ignore[index,call-overload]
    off = in_release("0.20.0", FinalizeTerminatingPodGroups=False)
    assert [deed(write) for write in reconcile_job(pod_group("g", pods), [], now=NOW, configuration=off).writes] == [
        "Create"
    ]


@pytest.mark.parametrize(
    ("strategy", "is_elastic", "release", "is_refused"),
    [
        ({"type": "NewCluster"}, False, "0.20.0", True),
        ({"type": "NewCluster"}, True, "0.20.0", False),
        ({"type": "None"}, False, "0.20.0", False),
        # KubeRay makes a new cluster by default.
        ({}, False, "0.20.0", True),
        ({}, True, "0.20.0", False),
        ({}, False, "0.20.0-devel", False),
        ({"type": "NewCluster"}, False, "0.20.0-devel", False),
    ],
)
def test_a_ray_service_is_upgraded_in_place(strategy: Json, is_elastic: bool, release: str, is_refused: bool) -> None:
    plain = job("RayService")
    plain["spec"]["upgradeStrategy"] = strategy
    if is_elastic:
        plain["metadata"]["annotations"] = {f"{AN}elastic-job": "true"}
    found = workloads_for([plain], configuration=in_release(release)).problems
    assert ["spec.upgradeStrategy.type" in problem.field for problem in found] == ([True] if is_refused else [])


# Sets of pods.


def synced(plain: Json, *workloads: Json, around: tuple[Json, ...] = (), change: str) -> list[Sync]:
    return [
        sync_workloads(plain, workloads, now=NOW, around=around, configuration=configuration)
        for configuration in with_and_without(change)
    ]


def test_surplus_groups_of_a_percentage_keep_their_workloads() -> None:
    first, second = made(leader_worker())
    surging = leader_worker(1) | {"status": {"replicas": 2, "updatedReplicas": 0}}
    surging["spec"]["rolloutStrategy"] = {"rollingUpdateConfiguration": {"maxSurge": "50%"}}
    new, old = synced(surging, first, second, change="LwsSurgeMayBePercentage")
    assert new.steps == ()
    assert [str(step.action) for step in old.steps] == ["Update", "Delete"]


def gates_of(found: Sync) -> list[Any]:
    return [entry["spec"].get("schedulingGates", []) for entry in pods_written(found).values()]


def test_pods_of_an_old_revision_wait_for_the_admission() -> None:
    (workload,) = made(stateful())
    rolling = stateful() | {"status": {"currentRevision": "1", "updateRevision": "2"}}
    (joined,) = pods_written(
        sync_workloads(stateful(), [workload], now=NOW, around=(pod_of_set("old", revision="1"),))
    ).values()
    new, old = synced(rolling, workload, around=(joined,), change="OldRevisionsWaitForAdmission")
    assert (gates_of(new), gates_of(old)) == ([], [[]])
    new, old = synced(rolling, admitted(workload), around=(joined,), change="OldRevisionsWaitForAdmission")
    assert (gates_of(new), gates_of(old)) == ([[]], [[]])


def test_a_changed_queue_reaches_gated_pods() -> None:
    (workload,) = made(stateful())
    gated, running = pods_written(
        sync_workloads(stateful(), [workload], now=NOW, around=(pod_of_set("gated"), pod_of_set("running")))
    ).values()
    running["spec"].pop("schedulingGates")
    new, old = synced(stateful(queue="other"), workload, around=(gated, running), change="QueueChangesReachGatedPods")
    assert ([*pods_written(new)], [*pods_written(old)]) == (["gated"], ["gated", "running"])


def test_the_default_priority_class_is_for_managed_namespaces() -> None:
    labels = []
    for configuration in with_and_without("DefaultPriorityClassNeedsManagedNamespace"):
        plain = batch_job()
        plain["metadata"] |= {"namespace": "kube-system", "labels": {}}
        around = Surroundings(configuration=configuration, workload_priority_classes={"default": 1})
        defaulted: Any = with_webhook_defaults(plain, BATCH_JOB, around)
        labels.append(defaulted["metadata"]["labels"])
    assert labels == [{}, {f"{AN}priority-class": "default"}]


# Waiting for pods.

OWN = f"{AN}wait-for-pods-ready"


def own_timeouts(**settings: Any) -> JobsConfiguration:
    return JobsConfiguration(feature_gates={"WorkloadLevelWaitForPodsReady": True}, **settings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"timeoutSeconds": 30, "recoveryTimeoutSeconds": 0}', ""),
        ('{"timeoutSeconds": 7200}', ""),
        ('{"timeoutSeconds": 7201}', "must be less than or equal to 7200"),
        ('{"timeoutSeconds": 0}', "at least 1"),
        ('{"timeoutSeconds": 1.5}', "at least 1"),
        ('{"recoveryTimeoutSeconds": 30}', "requires timeoutSeconds"),
        ('{"timeout": 30}', "unknown field timeout"),
        ("30s", "must be a JSON object"),
        ("30", "must be a JSON object"),
    ],
)
def test_timeouts_of_a_job_are_checked_and_reach_its_workload(text: str, words: str) -> None:
    result = workloads_for([batch_job({OWN: text})], configuration=own_timeouts())
    assert [words in problem.message for problem in result.problems] == ([True] if words else [])
    if not words:
        annotations: Any = result.workloads[0].object["metadata"]["annotations"]  # type: ignore[index,call-overload]
        assert annotations[OWN] == text
    (off,) = workloads_for([batch_job({OWN: text})]).workloads
    assert "annotations" not in off.object["metadata"]  # type: ignore[operator]


def test_timeouts_follow_a_suspended_job_and_stay_while_it_runs() -> None:
    configuration = own_timeouts()
    plain = batch(1, wait_for_pods_ready='{"timeoutSeconds": 30}')
    (step,) = sync_workloads(plain, [], now=NOW, configuration=configuration).steps
    changed = batch(1, wait_for_pods_ready='{"timeoutSeconds": 60}')
    (update,) = sync_workloads(changed, [step.workload], now=NOW, configuration=configuration).steps
    assert (str(update.action), update.workload["metadata"]["annotations"][OWN]) == ("Update", '{"timeoutSeconds": 60}')  # type: ignore[index,call-overload]
    old, new = ({**entry, "spec": {**entry["spec"], "suspend": False}} for entry in (plain, changed))
    assert [problem.field for problem in update_problems(old, new, configuration=configuration)] == [
        f"metadata.annotations[{OWN}]"
    ]
    assert update_problems(old, new) == ()


def test_pods_of_a_group_report_whether_they_have_nodes() -> None:
    manifest: Json = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "integrations": {"frameworks": ["pod"]},
        "waitForPodsReady": {"timeout": "10m", "unscheduledTimeout": "2m"},
    }
    gate = {"WaitForPodsReadyUnscheduledTimeout": True}
    configuration = JobsConfiguration.of(Configuration.of([manifest], feature_gates=gate, release="0.20.0"))
    pods = [pod("a", phase="Pending"), pod("b", phase="Pending")]
    created = reconcile_job(pod_group("g", [pod("a", gated=True), pod("b", gated=True)]), [], now=NOW)
    workload = holding(dict(created.writes[0].manifest), "QuotaReserved", "Admitted")
    workload["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name} for name in ("a", "b")
    ]
    for condition in workload["status"]["conditions"]:
        condition["lastTransitionTime"] = NOW

    def reports(*written: Json, placed: int = 0) -> list[JobReport]:
        stored = with_status(workload, conditions=[*workload["status"]["conditions"], *written])
        for plain in pods[:placed]:
            plain["spec"]["nodeName"] = "node"
            plain["status"]["conditions"] = [{"type": "PodScheduled", "status": "True"}]
        found = reconcile_job(pod_group("g", pods), [stored], now=NOW, around=(FLAVOR,), configuration=configuration)
        return list(found.reports.values())

    later = "2026-01-01T00:00:01Z"
    unscheduled = {
        "type": "PodsScheduled",
        "status": "False",
        "reason": "WaitForScheduling",
        "lastTransitionTime": later,
    }
    assert reports(placed=1) == [JobReport(are_scheduled=False)]
    assert reports(unscheduled) == [JobReport(are_ready=False)]
    waits = {"type": "PodsReady", "status": "False", "reason": "WaitForScheduling", "lastTransitionTime": later}
    assert reports(unscheduled, waits) == []
    assert reports(unscheduled, waits, placed=2) == [JobReport(are_scheduled=True)]
    scheduled = {**unscheduled, "status": "True", "reason": "AllRequiredPodsScheduled"}
    assert reports(scheduled, waits) == [JobReport(are_ready=False)]
