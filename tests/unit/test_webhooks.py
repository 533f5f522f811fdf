"""What an API server with Kueue's webhooks makes of one object."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kueuecore import Configuration, Engine, parse_manifests
from kueuecore._json import text_at
from kueuecore.api_server import ApiServer, RefusedError
from kueuecore.webhooks import Stored, admit
from tests.jobs import ALL_KINDS, job

V1BETA2 = "kueue.x-k8s.io/v1beta2"
QUEUE = "kueue.x-k8s.io/queue-name"
EVERY_FRAMEWORK = Configuration.trusted(
    {
        "integrations": {
            "frameworks": [
                *("batch/job", "jobset.x-k8s.io/jobset", "pod", "deployment", "statefulset", "ray.io/rayjob"),
                *("leaderworkerset.x-k8s.io/leaderworkerset", "ray.io/raycluster", "ray.io/rayservice"),
                *(
                    f"kubeflow.org/{name}"
                    for name in ("pytorchjob", "tfjob", "xgboostjob", "paddlejob", "jaxjob", "mpijob")
                ),
                *("trainer.kubeflow.org/trainjob", "workload.codeflare.dev/appwrapper"),
                "sparkoperator.k8s.io/sparkapplication",
            ]
        }
    },
    feature_gates={"SparkApplicationIntegration": True},
)
RUNTIME: Any = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch"},
    "spec": {"template": {"spec": {"replicatedJobs": []}}},
}


def own(kind: str, spec: dict[str, Any], *, version: str = "v1beta2", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": "o", **metadata},
        "spec": spec,
    }


def workload(**status: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    pod_sets = [{"name": "main", "count": 1, "template": template}]
    return {**own("Workload", {"queueName": "lq", "podSets": pod_sets}, namespace="n"), "status": status}


def reserved() -> dict[str, Any]:
    condition = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "yes"}
    admission = {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "count": 1}]}
    return workload(conditions=[{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}], admission=admission)


def stored(new: Any, **arguments: Any) -> Any:
    return admit(new, **arguments).object


def refused(new: Any, **arguments: Any) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        admit(new, **arguments)
    return caught.value


# Kueue's own kinds.


def test_a_new_cluster_queue_is_stored_with_defaults_and_a_finalizer() -> None:
    queue = stored(own("ClusterQueue", {}))
    assert queue["metadata"] == {"name": "o", "finalizers": ["kueue.x-k8s.io/resource-in-use"]}
    assert queue["spec"] == {
        "queueingStrategy": "BestEffortFIFO",
        "stopPolicy": "None",
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
        "preemption": {
            "reclaimWithinCohort": "Never",
            "withinClusterQueue": "Never",
            "borrowWithinCohort": {"policy": "Never"},
        },
    }


def test_a_schema_refuses_with_causes() -> None:
    error = refused(own("ClusterQueue", {"stopPolicy": "Later", "cohortName": "-"}))
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.status["details"] == {
        "name": "o",
        "group": "kueue.x-k8s.io",
        "kind": "ClusterQueue",
        "causes": list(error.causes),
    }
    reasons = {cause["field"]: cause["reason"] for cause in error.causes}
    assert reasons["spec.stopPolicy"] == "FieldValueNotSupported"
    assert reasons["spec.cohortName"] == "FieldValueInvalid"
    assert str(error).startswith('ClusterQueue.kueue.x-k8s.io "o" is invalid: [spec.')


def test_a_webhook_refuses_with_one_message() -> None:
    error = refused(own("ClusterQueue", {"fairSharing": {"weight": "-1"}}))
    message = (
        'admission webhook "vclusterqueue.kb.io" denied the request: spec.fairSharing: Invalid value: "-1": '
        "must be greater than or equal to 0"
    )
    assert error.status == {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "Forbidden",
        "code": 403,
    }
    assert [problem.field for problem in error.problems] == ["spec.fairSharing"]


def test_an_older_version_is_stored_as_the_newest_with_a_warning() -> None:
    # Kueue 0.20.0 does not serve it.
    of_0_19 = Configuration(release="0.19")
    old = admit(own("ClusterQueue", {"cohort": "all", "typo": 1}, version="v1beta1"), configuration=of_0_19)
    assert (old.object["apiVersion"], text_at(old.object, "spec", "cohortName")) == (V1BETA2, "all")
    assert old.warnings == ("This version is deprecated. Use v1beta2 instead.", 'unknown field "spec.typo"')
    config = own("MultiKueueConfig", {"clusters": ["a"]}, version="v1beta1")
    assert not admit(config, configuration=of_0_19).warnings


@pytest.mark.parametrize(
    ("kind", "version"), [("ClusterQueues", "v1beta2"), ("Cohort", "v1alpha1"), ("Cohort", "v1beta1")]
)
def test_an_unserved_version_is_not_found(kind: str, version: str) -> None:
    error = refused(own(kind, {}, version=version))
    assert (error.code, error.reason) == (404, "NotFound")


def test_a_local_queue_keeps_its_cluster_queue_by_its_schema() -> None:
    old = own("LocalQueue", {"clusterQueue": "a"}, namespace="n")
    error = refused(own("LocalQueue", {"clusterQueue": "b"}, namespace="n"), old=old)
    assert (error.code, error.causes[0]["field"]) == (422, "spec.clusterQueue")


def test_a_workload_with_quota_keeps_its_pod_sets_by_the_webhook() -> None:
    old = reserved()
    new = {**old, "spec": {**old["spec"], "podSets": [{**old["spec"]["podSets"][0], "count": 2}]}}
    error = refused(new, old=old)
    assert str(error) == (
        'admission webhook "vworkload.kb.io" denied the request: spec.podSets.0: Invalid value: field is immutable'
    )
    assert isinstance(admit({**new, "status": {}}, old={**old, "status": {}}), Stored)


def test_a_condition_needs_its_time() -> None:
    condition = {"type": "Mine", "status": "True", "reason": "R", "message": ""}
    error = refused(workload(conditions=[condition]), old=workload())
    assert error.causes[0] == {
        "reason": "FieldValueRequired",
        "message": "Required value",
        "field": "status.conditions[0].lastTransitionTime",
    }


def test_without_partial_admission_a_new_workload_loses_its_least_count() -> None:
    without = Configuration.trusted({}, feature_gates={"PartialAdmission": False})
    new = workload()
    # It goes before the schema is asked, which would refuse it.
    new["spec"]["podSets"][0]["minCount"] = 5
    assert "minCount" not in stored(new, configuration=without)["spec"]["podSets"][0]
    assert refused(new).code == 422


# Jobs.


@pytest.mark.parametrize("kind", sorted(ALL_KINDS))
def test_a_job_of_every_kind_is_held_back_and_stored_as_it_is_from_then_on(kind: str) -> None:
    held = stored(job(kind), around=[RUNTIME], configuration=EVERY_FRAMEWORK)
    assert held != job(kind)
    again = partial(admit, held, around=[RUNTIME], configuration=EVERY_FRAMEWORK)
    assert again() == again(old=held) == Stored(held)


@pytest.mark.parametrize("kind", sorted(ALL_KINDS))
def test_a_job_of_every_kind_is_refused_by_its_own_webhook(kind: str) -> None:
    bad = job(kind, **{QUEUE: "No Queue"})
    error = refused(bad, around=[RUNTIME], configuration=EVERY_FRAMEWORK)
    assert str(error).startswith(f'admission webhook "v{kind.lower()}.kb.io" denied the request: ')
    assert (error.code, error.reason, error.causes) == (403, "Forbidden", ())


def test_a_job_of_an_integration_that_is_off_is_stored_as_it_came() -> None:
    only_job_sets = Configuration.trusted({"integrations": {"frameworks": ["jobset.x-k8s.io/jobset"]}})
    assert stored(job("Job", **{QUEUE: "No Queue"}), configuration=only_job_sets)["spec"]["suspend"] is False


def test_a_job_that_has_its_workload_is_held_back_like_any_other() -> None:
    new = job("Job")
    new["metadata"]["annotations"] = {"kueue.x-k8s.io/prebuilt-workload-name": "o"}
    assert stored(new, around=[workload()])["spec"]["suspend"] is True


def owner(name: str) -> dict[str, Any]:
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": name, "uid": "u", "controller": True}


def test_the_child_of_a_managed_job_is_not_suspended() -> None:
    parent = job("JobSet", "parent")
    parent["metadata"]["uid"] = "u"
    child = job("Job", "child")
    child["metadata"]["ownerReferences"] = [owner("parent")]
    assert not stored(child, around=[parent])["spec"].get("suspend")


def test_the_mutating_webhook_refuses_a_job_whose_owner_is_gone() -> None:
    child = job("Job", "child")
    child["metadata"]["ownerReferences"] = [owner("gone")]
    error = refused(child)
    assert str(error) == (
        'admission webhook "mjob.kb.io" denied the request: workload owner not found: JobSet "n/gone"'
    )
    # Garbage collection takes parents first.
    child["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not stored(child)["spec"].get("suspend")


def test_pods_of_namespaces_that_are_left_out_get_no_defaults() -> None:
    pod = job("Pod")
    del pod["metadata"]["labels"]
    pod["metadata"]["namespace"] = "kube-system"
    queue = own("LocalQueue", {"clusterQueue": "a"}, namespace="kube-system")
    queue["metadata"]["name"] = "default"
    assert "labels" not in stored(pod, around=[queue])["metadata"]
    pod["metadata"]["namespace"] = queue["metadata"]["namespace"] = "n"
    assert stored(pod, around=[queue])["metadata"]["labels"] == {
        QUEUE: "default",
        "kueue.x-k8s.io/managed": "true",
    }


def test_a_pod_that_is_managed_beside_its_owner_is_warned_of() -> None:
    parent = job("JobSet", "parent")
    del parent["metadata"]["labels"]
    parent["metadata"]["uid"] = "u"
    pod = job("Pod")
    pod["metadata"]["ownerReferences"] = [owner("parent")]
    assert admit(pod, around=[parent]).warnings == (
        "pod owner is managed by kueue, label 'kueue.x-k8s.io/managed=true' might lead to unexpected behaviour",
    )


def test_the_queue_of_a_running_job_may_not_change() -> None:
    old = job("Job")
    old["spec"] = {**old["spec"], "suspend": False}
    new = {**old, "metadata": {**old["metadata"], "labels": {QUEUE: "other"}}}
    message = f'metadata.labels[{QUEUE}]: Invalid value: "other": field is immutable'
    assert str(refused(new, old=old)) == f'admission webhook "vjob.kb.io" denied the request: {message}'


def test_what_serves_gets_its_defaults_in_a_change_too() -> None:
    old = job("Deployment")
    del old["metadata"]["labels"]
    labels = stored(job("Deployment"), old=old)["spec"]["template"]["metadata"]["labels"]
    assert labels == {"kueue.x-k8s.io/managed": "true", QUEUE: "lq"}


def test_unknown_fields_are_dropped_with_a_warning() -> None:
    new = job("Job")
    new["spec"] = {**new["spec"], "paralelism": 3}
    assert admit(new).warnings == ('unknown field "spec.paralelism"',)
    assert "paralelism" not in stored(new)["spec"]


def test_a_schema_refuses_jobs_with_fields_of_other_types() -> None:
    new = job("Job")
    new["spec"] = {"parallelism": "3"}
    error = refused(new)
    assert (error.code, error.details["kind"]) == (422, "Job")
    assert error.causes[0]["field"] == "spec.parallelism"


def test_a_problem_has_the_line_of_its_field() -> None:
    (manifest,) = parse_manifests(f"""
apiVersion: {V1BETA2}
kind: Cohort
metadata: {{name: all}}
spec:
  fairSharing: {{weight: -1}}
""")
    assert [problem.line for problem in refused(manifest).problems] == [6]


def test_old_and_new_are_one_object() -> None:
    with pytest.raises(ValueError, match="must be the same object"):
        admit(job("Job", "a"), old=job("Job", "b"))


def test_objects_of_others_are_stored_as_they_are() -> None:
    secret: Any = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": None}}
    assert admit(secret) == Stored(secret)


# A server that asks.


def test_a_server_stores_what_the_webhooks_leave_and_nothing_that_they_refuse() -> None:
    server = ApiServer(webhooks=partial(admit, configuration=EVERY_FRAMEWORK))
    server.create(
        own("LocalQueue", {"clusterQueue": "a"}, namespace="n") | {"metadata": {"name": "default", "namespace": "n"}}
    )
    new = job("Job")
    del new["metadata"]["labels"]
    assert server.create(new)["metadata"]["labels"] == {QUEUE: "default"}
    assert server.get("Job", "j", namespace="n")["spec"]["suspend"] is True
    with pytest.raises(RefusedError) as caught:
        server.patch("LocalQueue", "default", {"spec": {"clusterQueue": "b"}}, namespace="n")
    assert caught.value.code == 422
    assert server.get("LocalQueue", "default", namespace="n")["spec"]["clusterQueue"] == "a"


def test_an_engine_takes_what_is_stored() -> None:
    flavor, queue = admit(own("ResourceFlavor", {})), admit(own("ClusterQueue", {}))
    engine = Engine()
    engine.apply([flavor.object, queue.object, admit(workload()).object])
    assert [other.name for other in engine.workloads()] == ["o"]
