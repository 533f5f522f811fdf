"""Jobs with a change of Kueue in effect, as in the newest, and without it, as in older releases (rules/10)."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore.jobs import (
    JobsConfiguration,
    pod_group,
    reclaimable_pods,
    reconcile_job,
    release_pods,
    sync_workloads,
    update_problems,
    workloads_for,
)
from kueuecore.jobs.batch_job import BATCH_JOB
from kueuecore.jobs.context import Surroundings, installed_frameworks
from kueuecore.jobs.leader_worker_set import pod_of_leader_worker_set
from kueuecore.jobs.validation import prebuilt_workload
from kueuecore.jobs.webhook_defaults import with_webhook_defaults
from kueuecore.releases import Release, changes
from tests.jobs import POD, batch_job, job
from tests.unit.jobs.sample_job import deed
from tests.unit.jobs.test_pod_release import HOST, place, pod, workload
from tests.unit.jobs.test_reconcile import FLAVOR, elastic_pod, evicted
from tests.unit.jobs.test_reconcile import pod as pod_of_group
from tests.unit.jobs.test_serving_sync import leader_worker
from tests.unit.jobs.test_workload_sync import AN, NOW, batch, elastic, holding, only_made

Json = dict[str, Any]


def without(*names: str) -> JobsConfiguration:
    return JobsConfiguration(absent_changes=frozenset(names), waits_for_pods_ready=False)


def with_and_without(change: str) -> tuple[JobsConfiguration, JobsConfiguration]:
    return without(), without(change)


def in_release(name: str) -> JobsConfiguration:
    return JobsConfiguration.of(Configuration(release=name))


def ray(kind: str = "RayCluster", **cluster: Any) -> Json:
    made = job(kind)
    own = made["spec"] if kind == "RayCluster" else made["spec"]["rayClusterSpec"]
    own.update(cluster)
    return made


def containers(made: Json, configuration: JobsConfiguration) -> Json:
    """The requests of the first pod set's containers."""
    (found,) = workloads_for([made], configuration=configuration).workloads
    template: Any = found.object["spec"]["podSets"][0]["template"]  # type: ignore[index,call-overload]
    return {container["name"]: container["resources"]["requests"] for container in template["spec"]["containers"]}


def problems(made: Json, configuration: JobsConfiguration) -> list[str]:
    return [problem.message for problem in workloads_for([made], configuration=configuration).problems]


def test_a_release_has_its_changes() -> None:
    newest = in_release("0.20.0-devel").absent_changes
    assert all(not change.is_in(Release.named("0.20.0-devel")) for change in changes() if change.name in newest)
    absent = in_release("0.18.6").absent_changes - newest
    assert {"RayAutoscalerCounted", "PodSetsUpToEighteen", "PriorityClassMissingEvent"} == absent
    known = {change.name for change in changes()}
    assert in_release("0.16.0").absent_changes <= known
    assert [in_release(name).most_pod_sets for name in ("0.17", "0.18", "0.19")] == [8, 10, 18]


def test_a_release_has_its_frameworks() -> None:
    old, middle, new = (set(installed_frameworks(Release.named(name))) for name in ("0.16", "0.18", "0.19"))
    assert middle - old == {"ray.io/rayservice"}
    assert {row.removeprefix("kubeflow.org/") for row in middle - new} == {
        *("paddlejob", "pytorchjob", "tfjob", "xgboostjob", "jaxjob")
    }
    assert new < middle


# Pod sets (rules/10 §1, §5.8, §5.9).


def test_containers_that_kube_ray_adds_count() -> None:
    options = {"enableInTreeAutoscaling": True, "gcsFaultToleranceOptions": {}}
    made = ray("RayJob", **options)
    made["spec"]["submissionMode"] = "SidecarMode"
    made["metadata"]["annotations"] = {f"{AN}elastic-job": "true"}
    counted = containers(made, without())
    assert [*counted] == ["c", "autoscaler", "ray-job-submitter"]
    assert counted["c"]["memory"] == "256Mi"
    assert [*containers(made, without("RayAutoscalerCounted"))] == ["c", "ray-job-submitter"]
    assert [*containers(made, without("RaySubmitterSidecarCounted"))] == ["c", "autoscaler"]
    assert containers(made, without("RayRedisCleanupCounted"))["c"] == {"cpu": 1}


@pytest.mark.parametrize(
    ("release", "fits", "refusal"),
    [
        ("0.17", 7, "Too many: 8: must have at most 7 items"),
        ("0.18", 9, "Too many: 11: must have at most 10 items"),
        ("0.19", 17, "Too many: 19: must have at most 18 items"),
    ],
)
def test_a_ray_cluster_has_as_many_groups_of_workers_as_the_release_allows(
    release: str, fits: int, refusal: str
) -> None:
    groups = [{"groupName": f"g{number}", "template": POD} for number in range(fits + 1)]
    configuration = in_release(release)
    configuration = JobsConfiguration(absent_changes=configuration.absent_changes)
    assert problems(ray(workerGroupSpecs=groups[:-1]), configuration) == []
    assert problems(ray(workerGroupSpecs=groups), configuration) == [refusal]


def test_a_group_of_pods_has_as_many_roles_as_the_release_allows() -> None:
    pods = [pod_of_group(str(number), gated=True, total=9) for number in range(9)]
    for other, plain in enumerate(pods):
        plain["spec"]["nodeSelector"] = {"role": str(other)}
    group = pod_group("g", pods)
    old = reconcile_job(group, [], now=NOW, configuration=without("PodSetsUpToTen"))
    assert old.waits_for == "pod group can't include more than 8 roles"
    new = reconcile_job(group, [], now=NOW, configuration=without("PodSetsUpToEighteen"))
    assert [deed(write) for write in new.writes] == ["Create"]


def test_fast_admission_is_asked_for_with_true() -> None:
    lone = pod_of_group("a", gated=True, total=3)
    lone["metadata"]["annotations"][f"{AN}pod-group-fast-admission"] = "yes"
    new, old = (
        reconcile_job(pod_group("g", [lone]), [], now=NOW, configuration=configuration)
        for configuration in with_and_without("FastAdmissionNeedsTrue")
    )
    assert new.writes == ()
    made: Any = old.writes[0].manifest
    assert [pod_set["count"] for pod_set in made["spec"]["podSets"]] == [3]


# Whose jobs are managed (rules/10 §2).


def test_the_default_queue_is_for_managed_namespaces() -> None:
    queue = frozenset({("kube-system", "default")})
    labels = []
    for configuration in with_and_without("DefaultQueueNeedsManagedNamespace"):
        made = batch_job()
        made["metadata"] |= {"namespace": "kube-system", "labels": {}}
        around = Surroundings(configuration=configuration, local_queues=queue)
        defaulted: Any = with_webhook_defaults(made, BATCH_JOB, around)
        labels.append(defaulted["metadata"]["labels"])
    assert labels == [{}, {f"{AN}queue-name": "default"}]


def test_an_owner_is_known_by_its_uid() -> None:
    parent, child = job("JobSet", "set"), batch(1)
    parent["metadata"]["uid"] = "new"
    owner = {"apiVersion": parent["apiVersion"], "kind": "JobSet", "name": "set", "uid": "old", "controller": True}
    child["metadata"]["ownerReferences"] = [owner]
    new, old = (
        reconcile_job(child, [], now=NOW, around=(parent,), configuration=configuration)
        for configuration in with_and_without("AncestorUidsChecked")
    )
    assert [deed(write) for write in new.writes] == ["Create"]
    assert (old.writes, old.waits_for) == ((), 'JobSet "n/set" owns it, and has the Workload')


def test_a_missing_priority_class_is_told() -> None:
    made = batch(1)
    made["metadata"]["labels"][f"{AN}priority-class"] = "gone"
    new, old = (
        reconcile_job(made, [], now=NOW, configuration=configuration)
        for configuration in with_and_without("PriorityClassMissingEvent")
    )
    assert [event.reason for event in new.events] == ["WorkloadPriorityClassNotFound"]
    assert old.events == ()
    assert new.waits_for == old.waits_for != ""


# The life of a job (rules/10 §4).


def test_indexes_that_have_ended_are_reclaimable() -> None:
    made = batch_job(parallelism=4, completions=6, completionMode="Indexed")
    made["status"] = {"completedIndexes": "0-2", "failedIndexes": "3", "succeeded": 5}
    stored = workloads_for([batch_job(parallelism=4, completions=6)]).workloads[0].object
    absent: list[tuple[str, ...]] = [
        (),
        ("FailedIndexesReclaimed",),
        ("FailedIndexesReclaimed", "CompletedIndexesReclaimed"),
    ]
    assert [reclaimable_pods(made, stored, configuration=without(*row)) for row in absent] == [
        {"main": 2},
        {"main": 1},
        {"main": 3},
    ]


def test_a_ray_job_that_cannot_run_gives_its_quota_back() -> None:
    made = ray("RayJob")
    made["spec"]["suspend"] = True
    stored: Any = reconcile_job(made, [], now=NOW).writes[0].manifest
    made["status"] = {"jobDeploymentStatus": "ValidationFailed"}
    made["spec"]["suspend"] = False
    admitted = holding(stored, "QuotaReserved", "Admitted")
    new, old = (
        reconcile_job(made, [admitted], now=NOW, around=(FLAVOR,), configuration=configuration)
        for configuration in with_and_without("RayValidationFailedOnHold")
    )
    (write,) = new.writes
    status: Any = write.manifest["status"]
    assert [condition["reason"] for condition in status["conditions"] if condition["type"] == "QuotaReserved"] == [
        "OnHold"
    ]
    assert old.writes == ()


def test_the_submitter_of_a_ray_job_gets_what_its_flavor_demands() -> None:
    made = ray("RayJob")
    made["spec"]["suspend"] = True
    stored: Any = reconcile_job(made, [], now=NOW).writes[0].manifest
    admitted = holding(stored, "QuotaReserved", "Admitted")
    flavor = {**FLAVOR, "spec": {"nodeLabels": {"pool": "a"}}}
    started: list[Any] = [
        reconcile_job(made, [admitted], now=NOW, around=(flavor,), configuration=configuration).writes[0].manifest
        for configuration in with_and_without("RaySubmitterIsConstrained")
    ]
    assert started[0]["spec"]["submitterPodTemplate"]["spec"]["nodeSelector"] == {"pool": "a"}
    assert "submitterPodTemplate" not in started[1]["spec"]
    assert all(row["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["nodeSelector"] for row in started)


def test_a_long_name_of_a_workload_is_in_the_annotation() -> None:
    made = batch(1, prebuilt_workload_name="a" * 64)
    off = {"WorkloadIdentifierAnnotations": False}
    names = [
        prebuilt_workload(made, JobsConfiguration(feature_gates=off, absent_changes=configuration.absent_changes))[0]
        for configuration in with_and_without("PrebuiltNameByAnnotation")
    ]
    assert names == ["a" * 64, ""]


def test_pods_on_a_worker_are_marked() -> None:
    made = batch(1)
    stored = only_made(made)
    stored["metadata"]["labels"][f"{AN}multikueue-origin"] = "manager"
    admitted = holding(stored, "QuotaReserved", "Admitted")
    found = [
        reconcile_job(made, [admitted], now=NOW, around=(FLAVOR,), configuration=configuration)
        for configuration in with_and_without("WorkerPodsAreMarked")
    ]
    jobs: list[Any] = [work.writes[0].manifest for work in found]
    labels = [manifest["spec"]["template"]["metadata"]["labels"] for manifest in jobs]
    assert labels[0].keys() - labels[1].keys() == {f"{AN}multikueue-worker-workload-pod"}


def test_no_pod_is_released_to_a_node_that_failed() -> None:
    its = workload(("main", 2, {}, place(("x", 1), ("y", 1), level=HOST)), unhealthyNodes=[{"name": "x"}])
    new, old = (
        release_pods(its, [pod("a"), pod("b")], configuration=configuration)
        for configuration in with_and_without("NoUngateOntoFailedNode")
    )
    assert [row.node_selector for row in new] == [{HOST: "y"}]
    assert [entry.node_selector for entry in old] == [{HOST: "x"}, {HOST: "y"}]


# Elastic jobs (rules/10 §6).


def test_slices_follow_the_priority_class_of_their_job() -> None:
    made = elastic(2)
    stored = only_made(made)
    made["metadata"]["labels"][f"{AN}priority-class"] = "high"
    high: Json = {
        "apiVersion": f"{AN}v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": "high"},
        "value": 7,
    }
    new, old = (
        sync_workloads(made, [stored], now=NOW, around=(high,), configuration=configuration)
        for configuration in with_and_without("SlicesFollowPriority")
    )
    assert [step.workload["spec"]["priority"] for step in new.steps] == [7]  # type: ignore[index,call-overload]
    assert old.steps == ()


def test_a_slice_that_another_replaces_says_so_at_its_end() -> None:
    first = holding(only_made(elastic(2)), "QuotaReserved")
    (step,) = sync_workloads(elastic(5, 2), [first], now=NOW).steps
    second = holding(dict(step.workload), "QuotaReserved")
    found = (
        sync_workloads(elastic(5, 2), [first, second], now=NOW, configuration=configuration).steps
        for configuration in with_and_without("ReplacedSlicesAreNamed")
    )
    assert [[step.reason for step in steps] for steps in found] == [["WorkloadSliceReplaced"], ["OutOfSync"]]


def test_pods_of_an_elastic_job_wait_for_the_checks() -> None:
    plain = batch(1, suspend=False, elastic_job="true")
    stored = only_made(plain)
    waiting = elastic_pod("a", slice_name=stored["metadata"]["name"])
    reserved, leaving = holding(stored, "QuotaReserved"), evicted(stored, "QuotaReserved", "Admitted")
    for its in (reserved, leaving):
        new, old = (
            reconcile_job(plain, [its], now=NOW, around=(FLAVOR, waiting), configuration=configuration)
            for configuration in with_and_without("ActiveSliceReleasesPods")
        )
        released = [[write.manifest["metadata"]["name"] for write in each.writes] for each in (new, old)]  # type: ignore[index,call-overload]
        assert ["a" in row for row in released] == [False, True]


# LeaderWorkerSets (rules/10 §5.7).


def lws_pod(**labels: str) -> Json:
    keys = {f"leaderworkerset.sigs.k8s.io/{key.replace('_', '-')}": text for key, text in labels.items()}
    gates = [{"name": f"{AN}admission"}]
    spec = {**POD["spec"], "schedulingGates": gates}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "labels": keys},
        "spec": spec,
    }


def test_pods_of_a_leader_worker_set_get_its_queue() -> None:
    made, its = leader_worker(), lws_pod(name="s", group_index="0")
    absent: list[tuple[str, ...]] = [(), ("LwsPodsGetQueueName",), ("LwsPodsGetQueueName", "LwsQueueMayChange")]
    joined: list[Any] = [pod_of_leader_worker_set(its, made, without(*row)) for row in absent]
    assert [row["metadata"]["labels"].get(f"{AN}queue-name") for row in joined] == ["lq", None, "lq"]
    elsewhere = leader_worker(queue="other")
    moved: list[Any] = [pod_of_leader_worker_set(joined[0], elsewhere, without(*row)) for row in absent]
    assert [row["metadata"]["labels"][f"{AN}queue-name"] for row in moved] == ["other", "lq", "lq"]


def test_the_queue_of_a_leader_worker_set_may_change_while_none_is_ready() -> None:
    before, after = leader_worker(), leader_worker(queue="other")
    new, old = (
        update_problems(before, after, configuration=configuration)
        for configuration in with_and_without("LwsQueueMayChange")
    )
    assert new == ()
    assert [entry.message for entry in old] == ['Invalid value: "other": field is immutable']
    stored = [dict(step.workload) for step in sync_workloads(before, [], now=NOW).steps]
    follows = (
        sync_workloads(after, stored, now=NOW, configuration=configuration).workloads[0]["spec"]["queueName"]  # type: ignore[index,call-overload]
        for configuration in with_and_without("LwsQueueMayChange")
    )
    assert [*follows] == ["other", "lq"]


# Refusals (rules/10 §7).


def test_only_some_kinds_may_be_elastic() -> None:
    made = job("JobSet")
    made["metadata"]["annotations"] = {f"{AN}elastic-job": "true"}
    new, old = (problems(made, configuration) for configuration in with_and_without("ElasticAnnotationNeedsSupport"))
    assert new == ['Forbidden: elastic job is not supported for "jobset.x-k8s.io/v1alpha2, Kind=JobSet"']
    assert old == []
    partial = batch(3, elastic_job="true", job_min_parallelism="2")
    new, old = (problems(partial, configuration) for configuration in with_and_without("ElasticAnnotationNeedsSupport"))
    assert new == ['Invalid value: "2": partial admission and elastic job cannot be used together']
    assert old == []


def test_refusals_are_spelled_as_the_release_does() -> None:
    unequal = batch(3, job_completions_equal_parallelism="true")
    unequal["spec"] |= {"completions": 4, "completionMode": "Indexed"}
    scaled = ray(enableInTreeAutoscaling=True)
    texts = [
        [*problems(unequal, configuration), *problems(scaled, configuration)]
        for configuration in with_and_without("JobTextsAreCorrected")
    ]
    shown = [[" ".join(text.split()[-4:]) for text in each] for each in texts]
    key = f"{AN}job-completions-equal-parallelism"
    assert shown == [
        [f"{key} annotation is true", 'the "kueue.x-k8s.io/elastic-job": "true" annotation'],
        ["is annotation is true", "is an elastic job"],
    ]


def test_an_elastic_ray_cluster_is_scaled_in_one_cluster() -> None:
    made = ray(enableInTreeAutoscaling=True, managedBy=f"{AN}multikueue")
    made["metadata"]["annotations"] = {f"{AN}elastic-job": "true"}
    new, old = (problems(made, configuration) for configuration in with_and_without("RayAutoscalingNeedsOneCluster"))
    assert new == ["Forbidden: in-tree autoscaling is not supported for a MultiKueue-managed elastic RayCluster"]
    assert old == []
