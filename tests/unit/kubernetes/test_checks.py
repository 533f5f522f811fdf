"""Admission checks in a cluster: capacity that is asked for, and the approvals of the example."""

from __future__ import annotations

from typing import Any

from examples.controller.controller import ANNOTATION, Approval
from kueuecore import Configuration
from kueuecore.kubernetes import Api, Process
from kueuecore_apiserver import HttpApiServer
from kueuecore_apiserver.plain_crds import plain_crd
from tests.unit.kubernetes.clusters import KUEUE, job, served, started, wait_for
from tests.unit.kubernetes.test_process import running


def with_check(server: HttpApiServer, controller: str, parameters: dict[str, str] | None = None) -> None:
    """Queue `a` asks for a check."""
    spec = {"controllerName": controller} | ({"parameters": parameters} if parameters else {})
    check = {"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": {"name": "check"}, "spec": spec}
    server.load([check])
    strategy = {"admissionChecksStrategy": {"admissionChecks": [{"name": "check"}]}}
    server.call(lambda api: api.patch("ClusterQueue", "a", {"spec": strategy}))


def only(server: HttpApiServer, kind: str) -> dict[str, Any] | None:
    found = server.call(lambda api: api.list(kind)[0])
    return found[0] if len(found) == 1 else None


def test_capacity_is_asked_for_and_the_job_starts_once_it_is_there() -> None:
    with served() as server:
        server.load([plain_crd("autoscaling.x-k8s.io/v1", "ProvisioningRequest")])
        config = {"provisioningClassName": "queued.example.com", "managedResources": ["cpu"]}
        made = {"apiVersion": KUEUE, "kind": "ProvisioningRequestConfig", "metadata": {"name": "c"}, "spec": config}
        server.load([made])
        process = Process(Api.connect(server=server.url), configuration=Configuration())
        with running(process) as failures:
            parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "c"}
            with_check(server, "kueue.x-k8s.io/provisioning-request", parameters)
            server.load([job("j")])
            wait_for(lambda: only(server, "ProvisioningRequest") is not None, "capacity is asked for")
            request = only(server, "ProvisioningRequest")
            assert request is not None
            assert request["spec"]["provisioningClassName"] == "queued.example.com"
            assert only(server, "PodTemplate") is not None
            assert started(server) == set()
            done = {"type": "Provisioned", "status": "True", "reason": "Provisioned", "message": "here it is"}
            patch = {"status": {"conditions": [{**done, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
            its = request["metadata"]
            server.call(
                lambda api: api.patch(
                    "ProvisioningRequest", its["name"], patch, namespace=its["namespace"], subresource="status"
                )
            )
            wait_for(lambda: started(server) == {"j"}, "the job starts")
        assert not failures


def test_the_example_starts_what_somebody_has_approved() -> None:
    with served() as server:
        process = Process(Api.connect(server=server.url), configuration=Configuration(), checks=[Approval()])
        with running(process) as failures:
            with_check(server, Approval.controller_name)
            server.load([job("j")])

            def is_reserved() -> bool:
                workload = only(server, "Workload") or {}
                return bool(workload.get("status", {}).get("admission"))

            wait_for(is_reserved, "it has quota")
            assert started(server) == set()
            workload = only(server, "Workload")
            assert workload is not None
            patch = {"metadata": {"annotations": {ANNOTATION: "ann"}}}
            name = workload["metadata"]["name"]
            server.call(lambda api: api.patch("Workload", name, patch, namespace="lab"))
            wait_for(lambda: started(server) == {"j"}, "the job starts")
        assert not failures
        (state,) = (only(server, "Workload") or {})["status"]["admissionChecks"]
        assert (state["state"], state["message"]) == ("Ready", "approved by ann")
