"""The server as the Python client of Kubernetes sees it."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client as kubernetes
from kubernetes import watch
from kubernetes.client.exceptions import ApiException

from kueuecore_apiserver import Fault, Request, refusal_of
from kueuecore_apiserver.plain_crds import kueue_crds
from tests.unit.apiserver.wire import Client, cluster, job

KUEUE: tuple[str, str, str, str] = ("kueue.x-k8s.io", "v1beta2", "lab", "workloads")
WORKLOAD: dict[str, Any] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "Workload",
    "metadata": {"name": "w"},
    "spec": {"queueName": "q"},
}


def api_of(client: Client) -> Any:
    configuration = kubernetes.Configuration(host=client.server.url)
    return kubernetes.ApiClient(configuration)


def first(count: int, *call: Any, **settings: Any) -> list[Any]:
    """The first events of a watch."""
    watching: Any = watch.Watch()
    seen = []
    for event in watching.stream(*call, timeout_seconds=10, **settings):
        seen.append(event)
        if len(seen) == count:
            watching.stop()
    return seen


def test_jobs_are_created_listed_patched_and_deleted() -> None:
    with cluster() as client, api_of(client) as api:
        batch: Any = kubernetes.BatchV1Api(api)
        made = batch.create_namespaced_job("lab", job())
        listed = batch.list_job_for_all_namespaces(label_selector="!x", limit=5)
        patched = batch.patch_namespaced_job("sum", "lab", {"spec": {"parallelism": 3}})
        status = batch.patch_namespaced_job_status("sum", "lab", {"status": {"active": 2}})
        patched.spec.suspend = False
        patched.metadata.resource_version = status.metadata.resource_version
        replaced = batch.replace_namespaced_job("sum", "lab", patched)
        batch.delete_namespaced_job("sum", "lab", propagation_policy="Background")
        with pytest.raises(ApiException) as missing:
            batch.read_namespaced_job("sum", "lab")
    assert (made.metadata.name, made.spec.backoff_limit) == ("sum", 6)
    assert ([item.metadata.name for item in listed.items], patched.spec.parallelism) == (["sum"], 3)
    assert (replaced.spec.suspend, replaced.status.active) == (False, 2)
    assert (missing.value.status, missing.value.reason) == (404, "Not Found")


def test_custom_objects_are_watched_and_applied() -> None:
    with cluster() as client, api_of(client) as api:
        client.server.load(kueue_crds())
        custom: Any = kubernetes.CustomObjectsApi(api)
        custom.create_namespaced_custom_object(*KUEUE, WORKLOAD)
        version = custom.list_namespaced_custom_object(*KUEUE)["metadata"]["resourceVersion"]
        status = {**WORKLOAD, "status": {"conditions": [{"type": "Admitted", "status": "True"}]}}
        api.set_default_header("Content-Type", "application/apply-patch+yaml")
        custom.patch_namespaced_custom_object_status(*KUEUE, "w", status, field_manager="kueue", force=True)
        custom.delete_namespaced_custom_object(*KUEUE, "w")
        events = first(2, custom.list_namespaced_custom_object, *KUEUE, resource_version=version)
        seen = [(event["type"], event["object"]["status"]["conditions"][0]["type"]) for event in events]
    assert seen == [("MODIFIED", "Admitted"), ("DELETED", "Admitted")]


def test_typed_watches_read_what_happens() -> None:
    with cluster() as client, api_of(client) as api:
        core: Any = kubernetes.CoreV1Api(api)
        for name in ("a", "b"):
            body = kubernetes.V1ConfigMap(metadata=kubernetes.V1ObjectMeta(name=name), data={"x": "y"})
            core.create_namespaced_config_map("lab", body)
        events = first(2, core.list_namespaced_config_map, "lab")
        seen = [(event["type"], event["object"].metadata.name) for event in events]
    assert seen == [("ADDED", "a"), ("ADDED", "b")]


def test_refusals_are_read_by_the_library() -> None:
    def plan(request: Request) -> Fault | None:
        return Fault(refusal=refusal_of(409)) if request.verb == "update" else None

    with cluster(faults=plan) as client, api_of(client) as api:
        core: Any = kubernetes.CoreV1Api(api)
        body = kubernetes.V1ConfigMap(metadata=kubernetes.V1ObjectMeta(name="a"))
        core.create_namespaced_config_map("lab", body)
        with pytest.raises(ApiException) as refused:
            core.replace_namespaced_config_map("a", "lab", body)
    assert (refused.value.status, "please apply your changes" in str(refused.value.body)) == (409, True)


def test_leases_and_events_are_written() -> None:
    with cluster() as client, api_of(client) as api:
        leases: Any = kubernetes.CoordinationV1Api(api)
        body = kubernetes.V1Lease(
            metadata=kubernetes.V1ObjectMeta(name="leader"), spec=kubernetes.V1LeaseSpec(holder_identity="me")
        )
        held = leases.create_namespaced_lease("lab", body)
        held.spec.holder_identity = "you"
        assert leases.replace_namespaced_lease("leader", "lab", held).spec.holder_identity == "you"
        with pytest.raises(ApiException) as late:
            leases.replace_namespaced_lease("leader", "lab", held)
        assert late.value.status == 409
