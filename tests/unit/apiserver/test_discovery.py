"""What clients ask before they ask for objects."""

from __future__ import annotations

import pytest

from kueuecore_apiserver import HttpApiServer
from kueuecore_apiserver.plain_crds import framework_crds, plain_crd
from tests.unit.apiserver.wire import CRDS, cluster


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_a_server_is_healthy(path: str) -> None:
    with cluster() as client:
        reply = client.get(path)
        assert (reply.code, reply.body) == (200, b"ok")


def test_groups_name_their_versions_and_the_preferred_one() -> None:
    crd = plain_crd("example.com/v1beta1", "Thing")
    versions = crd["spec"]["versions"]
    crd["spec"]["versions"] = [
        {**versions[0], "name": name, "storage": name == "v1beta1"} for name in ("v1alpha1", "v1beta1", "v2", "v10")
    ]
    with cluster() as client:
        assert client.post(CRDS, crd).code == 201
        group = client.get("/apis/example.com").body
        named = {group["name"] for group in client.get("/apis").body["groups"]}
    assert [version["version"] for version in group["versions"]] == ["v10", "v2", "v1beta1", "v1alpha1"]
    assert group["preferredVersion"] == {"groupVersion": "example.com/v10", "version": "v10"}
    assert {"batch", "apps", "example.com"} <= named


def test_resources_of_a_version_have_names_verbs_and_subresources() -> None:
    with cluster() as client:
        core = {resource["name"]: resource for resource in client.get("/api/v1").body["resources"]}
        apps = {resource["name"]: resource for resource in client.get("/apis/apps/v1").body["resources"]}
    assert core["pods"] == {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["po"],
        "categories": ["all"],
    }
    assert {"pods/status", "namespaces/finalize"} <= core.keys()
    assert (core["namespaces/finalize"]["verbs"], apps["deployments/status"]["kind"]) == (["update"], "Deployment")
    assert core["nodes"]["namespaced"] is False


def test_what_is_not_there_is_not_found() -> None:
    with cluster() as client:
        for path in ("/apis/nobody.io", "/apis/nobody.io/v1", "/nonsense", "/apis/batch/v2", "/apis/batch/v1/nobodies"):
            reply = client.get(path)
            assert (reply.code, reply.message) == (404, "the server could not find the requested resource"), path


def test_open_api_says_nothing_in_all_forms() -> None:
    with cluster() as client:
        protobuf = client.get("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
        assert client.get("/openapi/v2").body["paths"] == {}
        assert client.get("/openapi/v3").body == {"paths": {}}
        assert protobuf.body.startswith(b"\n\x032.0")
        assert client.get("/version").body["gitVersion"].startswith("v1.")


def test_frameworks_have_kinds_of_their_own() -> None:
    server = HttpApiServer()
    server.load(framework_crds())
    kinds = {(kind.group, kind.kind) for kind in server.kinds}
    assert {
        ("jobset.x-k8s.io", "JobSet"),
        ("ray.io", "RayCluster"),
        ("kubeflow.org", "MPIJob"),
        ("trainer.kubeflow.org", "ClusterTrainingRuntime"),
        ("workload.codeflare.dev", "AppWrapper"),
    } <= kinds


@pytest.mark.parametrize("host", ["0.0.0.0", "example.com", "192.168.1.1", ""])
def test_only_loopback_is_served(host: str) -> None:
    with pytest.raises(ValueError, match=r"^host must be a loopback address"):
        HttpApiServer(host=host)
