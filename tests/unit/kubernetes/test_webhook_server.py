"""Webhooks over real sockets and TLS: what an API server is told, and what clients of it see."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from kueuecore.api_server import ApiServer, RefusedError
from tests.jobs import job as job_of
from tests.unit.kubernetes.clusters import KUEUE, job, queues, started, wait_for
from tests.unit.kubernetes.deployed import rights
from tests.unit.kubernetes.https import Answered
from tests.unit.kubernetes.webhooks import SERVICE, Webhooked, is_role, manifests, webhooked

QUEUE = "kueue.x-k8s.io/queue-name"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhooked]:
    with webhooked(tmp_path_factory.mktemp("webhooks")) as found:
        yield found


def review(new: Any, *, old: Any = None, **more: Any) -> dict[str, Any]:
    operation = "CREATE" if old is None else "UPDATE"
    request = {"uid": "u-1", "operation": operation, "object": new, "oldObject": old, **more}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def asked(cluster: Webhooked, path: str, body: object) -> Answered:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    cluster.client.request("POST", path, body=text, headers={"Content-Type": "application/json"})
    answer = cluster.client.getresponse()
    return Answered(answer.status, dict(answer.getheaders()), answer.read())


def response(cluster: Webhooked, path: str, body: object) -> dict[str, Any]:
    answer = asked(cluster, path, body)
    assert answer.status == 200
    assert answer.json["apiVersion"] == "admission.k8s.io/v1"
    assert answer.json["kind"] == "AdmissionReview"
    found: dict[str, Any] = answer.json["response"]
    return found


def patched_by(answer: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    assert answer["allowed"], answer
    assert answer["patchType"] == "JSONPatch"
    found: dict[str, Any] = jsonpatch.apply_patch(copy.deepcopy(new), json.loads(base64.b64decode(answer["patch"])))
    return found


def running_job(name: str, **labels: str) -> dict[str, Any]:
    new = job(name)
    new["spec"]["suspend"] = False
    new["metadata"]["labels"] |= labels
    return new


# A day without any Kueue.


def test_a_job_is_suspended_by_the_webhook_then_admitted_then_runs(cluster: Webhooked) -> None:
    server = cluster.server
    seen: list[bool] = []

    def hear(kind: str, event: dict[str, Any], _: object) -> None:
        if kind == "Job" and event["object"]["metadata"]["name"] == "day":
            seen.append(event["object"]["spec"]["suspend"])

    server.call(lambda api: api.listeners.append(hear))
    server.load([running_job("day")])
    wait_for(lambda: "day" in started(server), "the job starts")
    assert (seen[0], seen[-1]) == (True, False), "it was stored suspended"


def test_a_bad_queue_is_refused_in_kueues_words(cluster: Webhooked) -> None:
    (queue,) = (row for row in queues(4) if row["kind"] == "ClusterQueue" and row["metadata"]["name"] == "a")
    queue["metadata"]["name"] = "bad"
    queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["lendingLimit"] = "5"
    with pytest.raises(RefusedError) as caught:
        cluster.server.load([queue])
    assert (caught.value.code, str(caught.value)) == (
        403,
        'admission webhook "vclusterqueue.kb.io" denied the request: spec.resourceGroups[0].flavors[0].resources[0].'
        'lendingLimit: Invalid value: "5": must be less than or equal to the nominalQuota',
    )


def test_the_queue_of_a_running_job_is_immutable(cluster: Webhooked) -> None:
    server = cluster.server
    server.load([running_job("fixed")])
    wait_for(lambda: "fixed" in started(server), "the job starts")
    held = server.call(lambda api: api.get("Job", "fixed", namespace="lab"))
    moved = {**held, "metadata": {**held["metadata"], "labels": {QUEUE: "b"}}}
    answer = response(cluster, "/validate-batch-v1-job", review(moved, old=held))
    assert answer == {
        "uid": "u-1",
        "allowed": False,
        "status": {
            "metadata": {},
            "status": "Failure",
            "reason": "Forbidden",
            "code": 403,
            "message": f'metadata.labels[{QUEUE}]: Invalid value: "b": field is immutable',
        },
    }


def test_queues_and_flavors_get_their_finalizer(cluster: Webhooked) -> None:
    new = {
        "apiVersion": KUEUE,
        "kind": "ResourceFlavor",
        "metadata": {"name": "f", "finalizers": ["a.b/c"]},
        "spec": {},
    }
    stored = patched_by(response(cluster, "/mutate-kueue-x-k8s-io-v1beta2-resourceflavor", review(new)), new)
    assert stored["metadata"]["finalizers"] == ["a.b/c", "kueue.x-k8s.io/resource-in-use"]


def test_a_pod_waits_behind_gates_and_has_its_role(cluster: Webhooked) -> None:
    new = job_of("Pod")
    new["metadata"]["namespace"] = "lab"
    new["spec"]["containers"][0]["unknownHere"] = {"stays": 1}
    stored = patched_by(response(cluster, "/mutate--v1-pod", review(new)), new)
    assert stored["metadata"]["labels"]["kueue.x-k8s.io/managed"] == "true"
    assert stored["metadata"]["finalizers"] == ["kueue.x-k8s.io/managed"]
    assert [gate["name"] for gate in stored["spec"]["schedulingGates"]] == [
        "kueue.x-k8s.io/admission",
        "kueue.x-k8s.io/topology",
    ]
    assert "kueue.x-k8s.io/role-hash" in stored["metadata"]["annotations"]
    # Nothing else is touched, neither by defaults nor where fields are not known.
    assert stored["spec"]["containers"] == new["spec"]["containers"]
    assert set(stored["spec"]) == {"containers", "schedulingGates"}


def test_a_namespace_with_a_default_queue_gives_it(cluster: Webhooked) -> None:
    server = cluster.server
    server.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dflt"}}])
    metadata = {"name": "default", "namespace": "dflt"}
    server.load([{"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": "a"}}])
    new = running_job("d")
    new["metadata"] = {"name": "d", "namespace": "dflt"}

    def labels() -> dict[str, str]:
        answer = response(cluster, "/mutate-batch-v1-job", review(new))
        found: dict[str, str] = patched_by(answer, new)["metadata"]["labels"] if "patch" in answer else {}
        return found

    wait_for(lambda: labels() == {QUEUE: "default"}, "the watch has shown the queue")


def test_the_pods_of_a_managed_job_are_left_alone_even_before_a_watch_has_shown_it(cluster: Webhooked) -> None:
    server = cluster.server
    server.load([job("parent")])
    held = server.call(lambda api: api.get("Job", "parent", namespace="lab"))
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "parent",
        "uid": held["metadata"]["uid"],
        "controller": True,
    }
    new = job_of("Pod")
    new["metadata"] |= {"namespace": "lab", "ownerReferences": [owner]}
    assert response(cluster, "/mutate--v1-pod", review(new)) == {"uid": "u-1", "allowed": True}
    owner["name"] = "nobody"
    answer = response(cluster, "/mutate--v1-pod", review(new))
    assert not answer["allowed"]
    assert answer["status"]["message"].startswith("workload owner not found")


def test_the_pods_of_a_deployment_are_marked_when_it_comes_and_when_it_changes(cluster: Webhooked) -> None:
    new = job_of("Deployment")
    new["metadata"]["namespace"] = "lab"
    for body in (review(new), review(new, old=new)):
        template = patched_by(response(cluster, "/mutate-apps-v1-deployment", body), new)["spec"]["template"]
        assert template["metadata"]["labels"][QUEUE] == "lq"
        assert template["metadata"]["annotations"] == {"kueue.x-k8s.io/pod-suspending-parent": "deployment"}
        assert template["spec"] == new["spec"]["template"]["spec"]


def test_a_replica_that_does_not_lead_answers_too(tmp_path: Path) -> None:
    with webhooked(tmp_path, leads=False) as cluster:
        cluster.server.load([running_job("waits")])
        held = cluster.server.call(lambda api: api.get("Job", "waits", namespace="lab"))
        assert held["spec"]["suspend"] is True


def test_deletions_are_allowed(cluster: Webhooked) -> None:
    old = job("j")
    body = review(None, old=old) | {}
    body["request"]["operation"] = "DELETE"
    assert response(cluster, "/validate-batch-v1-job", body) == {"uid": "u-1", "allowed": True}


# Bad input: an answer, whatever it is.


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "request body is empty"),
        (b"{", "couldn't decode the review"),
        (b"\xff\xfe", "couldn't decode the review"),
        (json.dumps(review({**job("j"), "spec": float("nan")})).encode(), "couldn't decode the review: NaN is no JSON"),
        (b"[" * 100_000, "couldn't decode the review"),
        ([], "couldn't decode the review"),
        ({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}, "couldn't decode the review"),
        ({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}, "the review has no request"),
        (review(job("j"), uid=""), "request.uid: Required value"),
        (review(job("j"), operation="LOOK"), 'unknown operation "LOOK"'),
        (review(None), "there is no content to decode"),
        (review("job"), "there is no content to decode"),
        (review(job("j"), operation="UPDATE"), "there is no content to decode in oldObject"),
        (
            review({"apiVersion": "batch/v2", "kind": "Job"}),
            "unable to decode 'Job' of 'batch/v2' into Job of batch/v1",
        ),
        (review({"apiVersion": 3, "kind": ["Job"]}), "unable to decode"),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["/mutate-batch-v1-job", "/validate-batch-v1-job"])
def test_what_is_no_review_is_refused(cluster: Webhooked, path: str, body: object, why: str) -> None:
    answer = response(cluster, path, body)
    assert (answer["allowed"], answer["status"]["code"]) == (False, 400)
    assert answer["status"]["message"].startswith(why)


def test_half_a_pair_of_surrogates_is_answered(cluster: Webhooked) -> None:
    text = json.dumps(review(running_job("j", **{"kueue.x-k8s.io/queue-name": "a"})))
    answer = response(cluster, "/validate-batch-v1-job", text.replace("u-1", "\\ud800").encode())
    assert answer["uid"] == "?"
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {"uid": "\ud800"}}
    assert asked(cluster, "/convert", body).json["response"]["uid"] == "?"


NONSENSE: list[Any] = [None, 3, True, "x", [], [3], {"a": {"b": []}}, "\ud800", 1e308, -1]


@pytest.mark.parametrize("what", NONSENSE, ids=repr)
def test_nonsense_in_an_object_gets_an_answer(cluster: Webhooked, what: Any) -> None:
    objects = [row for row in queues(4) if row["kind"] in ("ClusterQueue", "ResourceFlavor")]
    for new in [job("j"), job_of("Pod"), job_of("RayCluster"), job_of("LeaderWorkerSet"), *objects]:
        for broken in (
            {**new, "spec": what},
            {**new, "metadata": what},
            {**new, "metadata": {**new["metadata"], "labels": what, "ownerReferences": what}},
            {**new, "spec": dict.fromkeys(new["spec"], what)},
        ):
            for path in paths_of(new):
                for body in (review(broken), review(broken, old=new), review(new, old=broken)):
                    answer = response(cluster, path, body)
                    assert isinstance(answer["allowed"], bool)
                    if not answer["allowed"]:
                        assert answer["status"]["message"]
                        assert answer["status"]["code"] != 500, answer["status"]["message"]


def paths_of(new: dict[str, Any]) -> list[str]:
    group, _, version = new["apiVersion"].rpartition("/")
    end = f"{group.replace('.', '-')}-{version}-{new['kind'].lower()}"
    return [f"/mutate-{end}", f"/validate-{end}"]


def test_unknown_paths_methods_and_huge_bodies_are_refused(cluster: Webhooked) -> None:
    assert asked(cluster, "/validate-batch-v1-cronjob", review(job("j"))).status == 404
    assert asked(cluster, "/nothing", b"").status == 404
    cluster.client.request("GET", "/validate-batch-v1-job")
    assert cluster.client.getresponse().read() == b""
    cluster.client.putrequest("POST", "/validate-batch-v1-job")
    cluster.client.putheader("Content-Length", str(8 << 20))
    cluster.client.endheaders()
    answer = cluster.client.getresponse()
    assert (answer.status, answer.read()) == (413, b"Request Entity Too Large\n")
    cluster.client.close()
    assert response(cluster, "/validate-batch-v1-job", review(job("j")))["allowed"]


# What is configured.


def test_the_roles_allow_what_is_asked_for_and_no_more(tmp_path: Path) -> None:
    with webhooked(tmp_path) as cluster:
        server = cluster.server
        definition = server.call(lambda api: api.get("CustomResourceDefinition", "cohorts.kueue.x-k8s.io"))
        service = {"namespace": "kueue-system", "name": "kueuecore-webhooks", "path": "/convert"}
        webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
        spec = {**definition["spec"], "conversion": {"strategy": "Webhook", "webhook": webhook}}
        server.call(lambda api: api.replace({**definition, "spec": spec}, kind="CustomResourceDefinition"))
        secret = cluster.webhooks._secret
        assert secret is not None
        secret.look()
        changed = server.call(lambda api: api.get("CustomResourceDefinition", "cohorts.kueue.x-k8s.io"))
        assert changed["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"]
        for kind, plural in (("Job", "jobs"), *OWNERS):
            owner = {"apiVersion": job_of(kind)["apiVersion"] if kind != "ReplicaSet" else "apps/v1", "kind": kind}
            owner |= {"name": "nobody", "uid": "u", "controller": True}
            new = job_of("Pod")
            new["metadata"] |= {"namespace": "lab", "ownerReferences": [owner]}
            response(cluster, "/mutate--v1-pod", review(new))
            assert any(request.resource == plural and request.name == "nobody" for request in server.requests)
        server.call(secret_without_certificate)
        secret.look()
        wait_for(lambda: not cluster.webhooks.unready, "all is well")
        asked_for = [request for request in server.requests if request.user_agent.startswith("kueuecore/")]
        assert not [request for request in asked_for if request.code == 403]
    of_role = {
        (verb, group, resource)
        for row in filter(is_role, manifests())
        for rule in row.get("rules", ())
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert of_role <= rights(asked_for)


OWNERS = (
    *(("Pod", "pods"), ("Deployment", "deployments"), ("ReplicaSet", "replicasets"), ("StatefulSet", "statefulsets")),
    *(("JobSet", "jobsets"), ("MPIJob", "mpijobs"), ("LeaderWorkerSet", "leaderworkersets")),
    *(("RayCluster", "rayclusters"), ("RayJob", "rayjobs"), ("RayService", "rayservices")),
    *(("TrainJob", "trainjobs"), ("AppWrapper", "appwrappers")),
)


def secret_without_certificate(api: ApiServer) -> None:
    held = api.get("Secret", "kueuecore-webhook-server-cert", namespace="kueue-system")
    api.replace({**held, "data": {}}, kind="Secret")


def test_every_configured_path_is_served_and_every_enabled_kind_is_configured(cluster: Webhooked) -> None:
    configured = {
        webhook["clientConfig"]["service"]["path"]
        for row in manifests()
        if row["kind"].endswith("WebhookConfiguration")
        for webhook in row["webhooks"]
    }
    for path in configured:
        answer = asked(cluster, path, review({"apiVersion": "x/v1", "kind": "X"}))
        assert answer.status == 200, path
    enabled = ["Job", "MPIJob", "RayJob", "RayCluster", "RayService", "JobSet", "AppWrapper", "TrainJob", "Pod"]
    kinds = [*enabled, "Deployment", "StatefulSet", "LeaderWorkerSet"]
    of_jobs = {path for kind in kinds for path in paths_of(job_of(kind))}
    own = {
        f"/validate-kueue-x-k8s-io-v1beta2-{kind}" for kind in ("clusterqueue", "cohort", "resourceflavor", "workload")
    }
    own |= {f"/mutate-kueue-x-k8s-io-v1beta2-{kind}" for kind in ("clusterqueue", "resourceflavor", "workload")}
    assert configured == of_jobs | own


def test_without_its_webhooks_nothing_is_stored(tmp_path: Path) -> None:
    with webhooked(tmp_path) as found:
        found.server._admission._webhooks._services[SERVICE] = "127.0.0.1", 1  # type: ignore[index]
        with pytest.raises(RefusedError) as caught:
            found.server.load([job("j")])
        assert caught.value.code == 500
        assert 'failed calling webhook "mjob.kb.io"' in str(caught.value)


# Conversion.


def test_objects_of_v1beta1_are_converted_and_others_not(cluster: Webhooked) -> None:
    old = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ClusterQueue",
        "metadata": {"name": "q"},
        "spec": {"cohort": "c"},
    }
    request = {"uid": "u-2", "desiredAPIVersion": KUEUE, "objects": [old]}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    answer = asked(cluster, "/convert", body).json["response"]
    assert (answer["uid"], answer["result"]) == ("u-2", {"status": "Success"})
    (new,) = answer["convertedObjects"]
    assert (new["apiVersion"], new["spec"]["cohortName"]) == (KUEUE, "c")
    request |= {"desiredAPIVersion": "kueue.x-k8s.io/v1beta1", "objects": [new]}
    answer = asked(cluster, "/convert", body).json["response"]
    assert answer["result"]["status"] == "Failure"
    assert "v1beta2 alone" in answer["result"]["message"]
    assert asked(cluster, "/convert", {}).status == 400
