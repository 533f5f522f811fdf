"""What goes to a worker of each kind of jobs, and what comes back (rules/06 §7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kueuecore.configuration import Configuration
from kueuecore.jobs import INTEGRATIONS, workload_name
from kueuecore.multikueue import Adapter, Manager, MultiKueueSettings, SyncContext, adapters_of
from tests.unit.multikueue.stage import START, Stage

ORIGIN = "kueue.x-k8s.io/multikueue-origin"
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
WITH_MANAGED_BY = {
    "batch/v1, Kind=Job": "spec.managedBy",
    "jobset.x-k8s.io/v1alpha2, Kind=JobSet": "spec.managedBy",
    "kubeflow.org/v2beta1, Kind=MPIJob": "spec.runPolicy.managedBy",
    "kubeflow.org/v1, Kind=PyTorchJob": "spec.managedBy",
    "kubeflow.org/v1, Kind=TFJob": "spec.managedBy",
    "kubeflow.org/v1, Kind=XGBoostJob": "spec.managedBy",
    "kubeflow.org/v1, Kind=PaddleJob": "spec.managedBy",
    "kubeflow.org/v1, Kind=JAXJob": "spec.managedBy",
    "ray.io/v1, Kind=RayJob": "spec.managedBy",
    "ray.io/v1, Kind=RayCluster": "spec.managedBy",
    "ray.io/v1, Kind=RayService": "spec.managedBy",
    "trainer.kubeflow.org/v1alpha1, Kind=TrainJob": "spec.managedBy",
    "workload.codeflare.dev/v1beta2, Kind=AppWrapper": "spec.managedBy",
}


EVERY_KIND = MultiKueueSettings(frameworks=[integration.framework for integration in INTEGRATIONS.values()])


def context(settings: MultiKueueSettings | None = None) -> SyncContext:
    return SyncContext(workload="wl", settings=settings or MultiKueueSettings(), now=START)


def adapter(kind: str, settings: MultiKueueSettings | None = None) -> Adapter:
    return next(other for other in adapters_of(settings or EVERY_KIND).values() if other.kind == kind)


def made(kind: str, **spec: Any) -> dict[str, Any]:
    """A job as the manager has it."""
    metadata = {"name": "j", "namespace": "ns", "uid": "u", "resourceVersion": "7", "labels": {"team": "a"}}
    owner = {"ownerReferences": [{"kind": "X", "name": "x", "uid": "y"}]}
    api_version = adapter(kind).api_version
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {**metadata, **owner},
        "spec": spec,
        "status": {"x": 1},
    }


def test_all_kinds_that_kueue_delegates_have_an_adapter() -> None:
    others = {"/v1, Kind=Pod", "apps/v1, Kind=StatefulSet", "leaderworkerset.x-k8s.io/v1, Kind=LeaderWorkerSet"}
    assert set(adapters_of(EVERY_KIND)) == others | set(WITH_MANAGED_BY)


def test_kinds_that_are_not_enabled_have_no_adapter() -> None:
    # A Configuration that names none has Jobs alone; without one they are those of Kueue's release manifest.
    assert set(adapters_of(MultiKueueSettings.of(Configuration()))) == {"batch/v1, Kind=Job"}
    frameworks = "integrations: {frameworks: [ray.io/rayjob, deployment]}"
    named = Configuration.parse(f"{{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, {frameworks}}}")
    assert set(adapters_of(MultiKueueSettings.of(named))) == {"ray.io/v1, Kind=RayJob"}
    for manager in (Manager(), Manager(settings=MultiKueueSettings())):
        assert "ray.io/v1, Kind=RayJob" in manager.adapters
        assert "kubeflow.org/v1, Kind=PyTorchJob" not in manager.adapters


def test_settings_without_a_configuration_are_those_of_an_empty_one_but_for_the_kinds() -> None:
    assert replace(MultiKueueSettings(), frameworks=["batch/job"], external_frameworks=[]) == MultiKueueSettings.of(
        Configuration()
    )


@pytest.mark.parametrize("gvk", WITH_MANAGED_BY)
def test_a_kind_with_managed_by_has_to_name_multikueue_and_its_copy_names_nobody(gvk: str) -> None:
    it, shown = adapters_of(EVERY_KIND)[gvk], WITH_MANAGED_BY[gvk]
    assert it.managed_by is not None
    spec: dict[str, Any] = {"replicas": 2}
    within = spec.setdefault("runPolicy", {}) if "runPolicy" in it.managed_by else spec
    within["managedBy"] = "other"
    job = made(it.kind, **spec)
    assert it.why_unmanaged(job, MultiKueueSettings()) == f'Expecting {shown} to be "{MULTIKUEUE}" not "other"'
    within["managedBy"] = MULTIKUEUE
    assert it.why_unmanaged(made(it.kind, **spec), MultiKueueSettings()) == ""
    copy = it.copy(made(it.kind, **spec), context())
    assert copy["metadata"] == {
        "name": "j",
        "namespace": "ns",
        "labels": {"team": "a", ORIGIN: "multikueue"},
        "annotations": {PREBUILT: "wl"},
    }
    del within["managedBy"]
    assert copy["spec"] == spec
    assert "status" not in copy


def test_without_the_gate_for_annotations_a_copy_names_its_workload_in_a_label() -> None:
    settings = MultiKueueSettings(has_identifier_annotations=False)
    copy: dict[str, Any] = adapter("JobSet").copy(made("JobSet"), context(settings))
    assert copy["metadata"]["labels"] == {"team": "a", ORIGIN: "multikueue", PREBUILT: "wl"}


def test_a_job_leaves_its_selector_and_what_its_controller_wrote_behind() -> None:
    labels = {"controller-uid": "1", "batch.kubernetes.io/controller-uid": "1", "job-name": "j", "mine": "m"}
    kept = {"batch.kubernetes.io/job-name": "j", "mine": "m"}
    template = {"metadata": {"labels": labels | {"batch.kubernetes.io/job-name": "j"}}}
    copy = adapter("Job").copy(made("Job", selector={"matchLabels": {}}, template=template), context())
    assert copy["spec"] == {"template": {"metadata": {"labels": kept}}}


def test_a_train_job_leaves_the_patch_of_kueue_behind() -> None:
    patches = [{"manager": "kueue.x-k8s.io/manager"}, {"manager": "mine"}]
    copy = adapter("TrainJob").copy(made("TrainJob", runtimePatches=patches), context())
    assert copy["spec"] == {"runtimePatches": [{"manager": "mine"}]}


def test_the_status_of_the_worker_is_copied_as_a_whole() -> None:
    there = {**made("JobSet"), "status": {"conditions": [], "restarts": 2}}
    assert adapter("JobSet").status(made("JobSet"), there, context()).status == there["status"]


@pytest.mark.parametrize(
    ("local", "remote", "ended", "is_copied"),
    [
        (False, False, False, True),
        (True, True, False, True),
        (True, False, True, True),
        (True, False, False, False),
    ],
    ids=["runs here", "waits on both", "has ended there", "is about to run here"],
)
def test_the_status_of_a_job_is_left_for_later_while_it_has_yet_to_start_here(
    local: bool, remote: bool, ended: bool, is_copied: bool
) -> None:
    complete = [{"type": "Complete", "status": "True"}] if ended else []
    there = {**made("Job", suspend=remote), "status": {"active": 1, "conditions": complete}}
    found = adapter("Job").status({**made("Job", suspend=local), "status": {}}, there, context())
    assert found.is_deferred is not is_copied
    if is_copied:
        assert found.status == there["status"]
        return
    suspended = {
        "type": "Suspended",
        "status": "True",
        "reason": "MultiKueueAdapter",
        "message": "Set by MultiKueue adapter",
        "lastProbeTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    assert found.status == {"conditions": [suspended]}


@pytest.mark.parametrize("kind", ["StatefulSet", "LeaderWorkerSet"])
def test_a_kind_that_serves_keeps_its_own_status_and_its_copy_knows_its_original(kind: str) -> None:
    assert adapter(kind).status(made(kind), {**made(kind), "status": {"replicas": 3}}, context()).status is None
    copy: dict[str, Any] = adapter(kind).copy(made(kind), context())
    assert copy["metadata"]["annotations"]["kueue.x-k8s.io/multikueue-origin-uid"] == "u"
    # A LeaderWorkerSet has a Workload for each replica, and names none.
    assert (PREBUILT in copy["metadata"]["annotations"]) == (kind == "StatefulSet")


def pod(scheduled: str | None = None, **spec: Any) -> dict[str, Any]:
    conditions = [{"type": "PodScheduled", "status": scheduled, "reason": "Of"}] if scheduled else []
    return {**made("Pod", **spec), "status": {"phase": "Pending", "conditions": conditions}}


def test_a_gated_pod_stays_gated_here_until_the_worker_has_found_a_node_for_it() -> None:
    gated = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    here, waiting, placed = pod("False", **gated), pod("False"), pod("True")
    waiting["status"]["conditions"][0]["reason"] = "Unschedulable"
    status = adapter("Pod").status(here, waiting, context()).status
    assert status == {"phase": "Pending", "conditions": here["status"]["conditions"]}
    assert adapter("Pod").status(here, placed, context()).status == placed["status"]


def test_a_pod_that_is_being_deleted_keeps_its_status() -> None:
    here = pod()
    here["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert adapter("Pod").status(here, pod("True"), context()).status is None


def test_the_pods_of_a_group_go_together() -> None:
    group = {"annotations": {"kueue.x-k8s.io/pod-group-name": "g"}}
    pods = [{**pod(), "metadata": {"name": name, **more}} for name, more in (("a", group), ("b", {}), ("c", group))]
    members = adapter("Pod").members(pods[0], pods)
    assert [member["metadata"]["name"] for member in members] == ["a", "c"]  # type: ignore[index,call-overload]
    assert adapter("Pod").members(pods[1], pods) == (pods[1],)


def test_what_a_ray_service_serves_is_handed_on() -> None:
    here, there = made("RayService", serveConfigV2="new"), made("RayService", serveConfigV2="old", own=1)
    assert adapter("RayService").update(here, there, context())["spec"] == {"serveConfigV2": "new", "own": 1}
    without = MultiKueueSettings(syncs_remote_spec=False)
    assert adapter("RayService", without).update(here, there, context(without)) == there


def test_an_elastic_job_grows_on_the_worker_only_with_the_slice_that_is_larger() -> None:
    here, there = made("Job", parallelism=5), made("Job", parallelism=2)
    here["metadata"] |= {"annotations": {"kueue.x-k8s.io/elastic-job": "true"}, "generation": 2}
    old = adapter("Job").update(here, there, context())
    assert old == there
    slice_name = workload_name("j", kind="Job", group="batch", uid="u", extra="2")
    new: dict[str, Any] = adapter("Job").update(
        here, there, SyncContext(workload=slice_name, settings=MultiKueueSettings(), now=START)
    )
    assert new["spec"]["parallelism"] == 5
    assert new["metadata"]["annotations"][PREBUILT] == slice_name


def test_a_kind_of_an_external_framework_has_the_common_adapter() -> None:
    settings = MultiKueueSettings(external_frameworks=["PipelineRun.v1.tekton.dev"])
    it = adapter("PipelineRun", settings)
    assert it.gvk == "tekton.dev/v1, Kind=PipelineRun"
    run: dict[str, Any] = {"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "metadata": {"name": "r"}, "spec": {}}
    assert it.why_unmanaged(run, settings) == f'Expecting .spec.managedBy to be "{MULTIKUEUE}" not ""'
    assert "tekton.dev/v1, Kind=PipelineRun" not in adapters_of(
        MultiKueueSettings(external_frameworks=["PipelineRun.v1.tekton.dev"], has_custom_jobs=False)
    )


# G3: with and without MultiKueueBatchJobWithManagedBy.


def test_with_managed_by_the_manager_shows_what_runs_on_the_worker() -> None:
    stage = Stage("west")
    stage.job()
    stage.settle()
    stage.condition("west", "job", "Admitted")
    stage.settle()
    stage.api[""].patch("Job", "job", {"spec": {"suspend": False}}, namespace="ns")
    stage.status("west", "Job", "job", {"active": 1})
    stage.settle()
    job = stage.get("Job", "job")
    assert job is not None
    assert (stage.check_of()[0], job["status"]["active"]) == ("Ready", 1)


def test_without_managed_by_the_check_stays_pending_and_the_end_alone_is_shown() -> None:
    stage = Stage("west", settings=MultiKueueSettings(batch_job_with_managed_by=False))
    stage.job(managedBy=None)
    stage.settle()
    stage.condition("west", "job", "Admitted")
    stage.settle()
    stage.status("west", "Job", "job", {"active": 1})
    stage.settle()
    job = stage.get("Job", "job")
    assert job is not None
    assert stage.check_of() == ("Pending", 'The workload was admitted on "west"')
    assert job.get("status", {}) == {}
    ended = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}
    stage.status("west", "Job", "job", {**ended, "active": None})
    stage.condition("west", "job", "Finished", reason="Succeeded")
    stage.settle()
    job = stage.get("Job", "job")
    assert job is not None
    assert job["status"] == ended
    assert stage.copies() == []


def test_a_job_without_managed_by_is_rejected_where_it_is_needed() -> None:
    stage = Stage("west")
    stage.job(managedBy=None)
    stage.settle()
    expected = f'Expecting spec.managedBy to be "{MULTIKUEUE}" not ""'
    message = f'The owner is not managed by Kueue: {expected}, Previously: "Pending"'
    assert stage.check_of() == ("Rejected", message)


def test_a_kind_without_managed_by_keeps_an_old_status() -> None:
    stage = Stage("west")
    job = stage.create("StatefulSet", "job", {"replicas": 1}, namespace="ns")
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "job", "uid": job["metadata"]["uid"]}
    stage.workload("job", owner)
    stage.settle()
    stage.condition("west", "job", "Admitted")
    stage.settle()
    assert stage.check_of()[0] == "Ready"
    stage.status("west", "StatefulSet", "job", {"readyReplicas": 1})
    stage.settle()
    shown = stage.get("StatefulSet", "job")
    assert shown is not None
    assert shown.get("status", {}) == {}


# A job with several Workloads (rules/06 §5.3).


def test_the_workloads_of_a_leader_worker_set_go_to_one_worker_and_the_first_leads() -> None:
    stage = Stage("west", "east")
    job = stage.create("LeaderWorkerSet", "lws", {"replicas": 2}, namespace="ns")
    gvk = "leaderworkerset.x-k8s.io/v1, Kind=LeaderWorkerSet"
    owner = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "lws"}
    for index in range(2):
        annotations = {
            "kueue.x-k8s.io/job-owner-gvk": gvk,
            "kueue.x-k8s.io/job-owner-name": "lws",
            "kueue.x-k8s.io/component-workload-index": str(index),
        }
        stage.workload(f"lws-{index}", {**owner, "uid": job["metadata"]["uid"]}, annotations=annotations)
        stage.settle()
        if not index:
            # It waits for its sibling.
            assert stage.copies("lws-0") == []
    assert (stage.copies("lws-0"), stage.copies("lws-1")) == (["west", "east"], [])
    stage.condition("east", "lws-0", "Admitted")
    stage.settle()
    assert (stage.winner("lws-0"), stage.copies("lws-1")) == ("east", ["east"])
    assert stage.copies("lws", kind="LeaderWorkerSet") == ["east"]
    stage.condition("east", "lws-1", "Admitted")
    stage.settle()
    assert stage.winner("lws-1") == "east"
