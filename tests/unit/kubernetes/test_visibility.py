"""The visibility API over TLS: positions, pages, users, and what is refused."""

from __future__ import annotations

import base64
import logging
import pickle
import queue
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from email.message import Message
from pathlib import Path
from typing import Any, cast

import pytest

from kueuecore import Engine
from kueuecore._json import object_at, text_at
from kueuecore.controller import Controller
from kueuecore.kubernetes import Api, Process
from kueuecore.kubernetes.https.certificates import Authority
from kueuecore.kubernetes.https.delegated_access import ANONYMOUS, DelegatedAccess, User
from kueuecore.kubernetes.https.front_proxy import FrontProxy, ProxySettings
from kueuecore.kubernetes.https.messages import Request
from kueuecore.kubernetes.https.tls import Peer
from kueuecore.kubernetes.settings import CertificateSettings
from kueuecore.kubernetes.visibility.api import VisibilityApi
from kueuecore.kubernetes.visibility.pending_pages import PendingPages, PendingQuery
from kueuecore.kubernetes.visibility.server import VisibilityServer
from kueuecore.states import PendingWorkload
from kueuecore_apiserver import Fault, HttpApiServer, refusal_of
from tests.unit.kubernetes.clusters import job, started, wait_for
from tests.unit.kubernetes.https import HERE, ask, client_pair, trusting
from tests.unit.kubernetes.test_process import running
from tests.unit.kubernetes.test_secured_metrics import UNTRUSTING
from tests.unit.kubernetes.visibility_clusters import (
    CLUSTER_QUEUE,
    GROUP,
    LOCAL_QUEUE,
    OTHER_CA,
    PROXY_CA,
    Cluster,
    cluster,
    is_open,
    proxy_settings,
)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Eight jobs run, nine wait in two LocalQueues, two of them with priority."""
    with cluster(tmp_path_factory.mktemp("full")) as found:
        found.server.load([job(f"runs{n}", priority="high") for n in range(8)])
        wait_for(lambda: len(started(found.server)) == 8, "all quota is used")
        for n in range(9):
            found.server.load([job(f"j{n}", "a2" if n % 3 == 1 else "a", priority="high" if n % 4 == 2 else "")])
        wait_for(lambda: len(found.names(CLUSTER_QUEUE)) == 9, "nine wait")
        yield found


def engine_of(server: HttpApiServer) -> Engine:
    """An engine that was given the objects of the server, as commands give it those of a cluster."""
    kinds = ("Namespace", "ResourceFlavor", "WorkloadPriorityClass", "ClusterQueue", "LocalQueue", "Workload")
    engine = Engine()
    engine.apply([entry for kind in kinds for entry in server.call(lambda api, kind=kind: api.list(kind)[0])])  # type: ignore[misc]
    return engine


def test_positions_are_the_engines(full: Cluster) -> None:
    answer = full.ask(CLUSTER_QUEUE)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert (answer.json["kind"], answer.json["apiVersion"]) == ("PendingWorkloadsSummary", GROUP[6:] + "/v1beta2")
    expected = [
        (row.name, row.local_queue, row.priority, row.position_in_cluster_queue, row.position_in_local_queue)
        for row in engine_of(full.server).pending("a")
    ]
    assert [
        (
            item["metadata"]["name"],
            item["localQueueName"],
            item["priority"],
            item["positionInClusterQueue"],
            item["positionInLocalQueue"],
        )
        for item in answer.json["items"]
    ] == expected
    assert [row[2:4] for row in expected] == [(100, 0), (100, 1), *((0, n) for n in range(2, 9))]
    assert {row[1] for row in expected} == {"a", "a2"}


def test_an_item_has_what_kueue_shows_of_the_workload(full: Cluster) -> None:
    item = full.ask(CLUSTER_QUEUE).json["items"][0]
    name = item["metadata"]["name"]
    workload = full.server.call(lambda api: api.get("Workload", name, namespace="lab"))
    (owner,) = workload["metadata"]["ownerReferences"]
    kept = ("apiVersion", "kind", "name", "uid")
    assert item["metadata"] == {
        "name": name,
        "namespace": "lab",
        "creationTimestamp": workload["metadata"]["creationTimestamp"],
        "ownerReferences": [{key: owner[key] for key in kept}],
    }
    assert owner["kind"] == "Job"


def test_a_local_queue_shows_its_own(full: Cluster) -> None:
    whole = full.ask(CLUSTER_QUEUE).json["items"]
    for name in ("a", "a2"):
        items = full.ask(LOCAL_QUEUE.replace("/a/", f"/{name}/")).json["items"]
        assert items == [item for item in whole if item["localQueueName"] == name]
        assert [item["positionInLocalQueue"] for item in items] == [*range(len(items))]
    assert full.ask(LOCAL_QUEUE.replace("v1beta2", "v1beta1")).json["apiVersion"] == GROUP[6:] + "/v1beta1"
    assert full.names(LOCAL_QUEUE.replace("/a/", "/lost/")) == []


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("", slice(0, 9)),
        ("?limit=2", slice(0, 2)),
        ("?limit=2&offset=3", slice(3, 5)),
        ("?offset=7", slice(7, 9)),
        ("?offset=99", slice(0, 0)),
        ("?limit=-1", slice(0, 0)),
        ("?limit=0&offset=-5", slice(0, 9)),
        ("?limit=9223372036854775807", slice(0, 9)),
        ("?limit=1&limit=x", slice(0, 1)),
    ],
)
def test_pages(full: Cluster, query: str, page: slice) -> None:
    assert full.names(CLUSTER_QUEUE + query) == full.names(CLUSTER_QUEUE)[page]
    local = full.names(LOCAL_QUEUE)
    assert full.names(LOCAL_QUEUE + query) == local[page]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=x", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("offset=", 'strconv.ParseInt: parsing "": invalid syntax'),
        ("offset=1.5", 'strconv.ParseInt: parsing "1.5": invalid syntax'),
        ("limit=%D9%A3", 'strconv.ParseInt: parsing "٣": invalid syntax'),
        ("limit=9223372036854775808", 'strconv.ParseInt: parsing "9223372036854775808": value out of range'),
        ("limit=" + "9" * 5000, f'strconv.ParseInt: parsing "{"9" * 100}": value out of range'),
    ],
)
def test_bad_numbers_are_refused(full: Cluster, query: str, message: str) -> None:
    answer = full.ask(f"{CLUSTER_QUEUE}?{query}")
    assert (answer.status, answer.json["reason"], answer.json["message"]) == (400, "BadRequest", message)


def test_what_does_not_exist_is_404(full: Cluster) -> None:
    for path, message, kind in (
        (CLUSTER_QUEUE.replace("/a/", "/no/"), 'clusterqueue.visibility.kueue.x-k8s.io "no" not found', "clusterqueue"),
        (LOCAL_QUEUE.replace("/a/", "/b%20c/"), 'localqueue.visibility.kueue.x-k8s.io "b c" not found', "localqueue"),
    ):
        answer = full.ask(path)
        assert (answer.status, answer.json["message"], answer.json["details"]["kind"]) == (404, message, kind)
    for path in ("/nope", f"{GROUP}/v1", f"{GROUP}/v1/clusterqueues/a/pendingworkloads", "/apis/batch/v1"):
        assert (full.ask(path).status, full.ask(path).json["kind"]) == (404, "Status")
    # The admin's role has no such subresources.
    for path in (CLUSTER_QUEUE + "/more", CLUSTER_QUEUE.replace("cluster", "local"), f"{GROUP}/v1beta2/clusterqueues"):
        assert full.ask(path).status == 403


class Generous:
    """An API server that allows everything."""

    def send(self, *_: object, **__: object) -> dict[str, Any]:
        return {"status": {"allowed": True}}


def test_a_resource_that_is_none_is_404_even_for_who_may_ask_for_it() -> None:
    api = cast("Api", Generous())
    asked: list[PendingQuery] = []

    def pending(query: PendingQuery) -> None:
        asked.append(query)

    visibility = VisibilityApi(pending, DelegatedAccess(api), FrontProxy(api), healthy=dict, ready=dict)
    answer = visibility.answer(Request("GET", CLUSTER_QUEUE.replace("clusterqueues", "cohorts")))
    assert (answer.status, asked) == (404, [])
    assert visibility.answer(Request("GET", CLUSTER_QUEUE)).status == 404
    assert [query.queue for query in asked] == ["a"]


def test_what_is_remembered_of_long_paths_is_short() -> None:
    access = DelegatedAccess(cast("Api", Generous()))
    for number in range(10):
        access.verdict(ANONYMOUS, {"nonResourceAttributes": {"path": f"/{number}" * 10_000, "verb": "get"}})
    assert len(pickle.dumps([*access._verdicts._held])) < 10_000


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "PATCH"])
def test_nothing_is_written(full: Cluster, method: str) -> None:
    assert full.ask(CLUSTER_QUEUE, "us", method=method).status == 405


def test_roles_decide(full: Cluster) -> None:
    assert full.ask(LOCAL_QUEUE, "ann").status == 200
    answer = full.ask(CLUSTER_QUEUE, "ann")
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    assert answer.json["message"] == (
        'clusterqueues.visibility.kueue.x-k8s.io "a" is forbidden: User "ann" cannot get resource '
        '"clusterqueues/pendingworkloads" in API group "visibility.kueue.x-k8s.io" at the cluster scope'
    )
    other = full.ask(LOCAL_QUEUE.replace("/lab/", "/other/"), "ann")
    assert (other.status, 'in the namespace "other"' in other.json["message"]) == (403, True)
    assert full.ask(CLUSTER_QUEUE, "nobody").status == 401
    anonymous = full.ask(CLUSTER_QUEUE, "")
    assert (anonymous.status, 'User "system:anonymous"' in anonymous.json["message"]) == (403, True)
    for path in ("/healthz", "/livez", "/readyz"):
        assert (full.ask(path, "").status, full.ask(path, "").body) == (200, b"ok")


def forwarded(
    found: Cluster,
    folder: Path,
    headers: Mapping[str, str],
    *,
    name: str = "front-proxy-client",
    ca: Authority = PROXY_CA,
) -> int:
    """The status for a request that the front proxy forwards."""
    pair = client_pair(ca, name)
    secret = found.server.call(lambda api: api.get("Secret", "kueuecore-visibility-cert", namespace="kueue-system"))
    trusted = base64.b64decode(secret["data"]["ca.crt"]).decode()
    context = trusting(trusted, client=pair, folder=folder)
    context.check_hostname = False
    return ask(found.visibility.port, CLUSTER_QUEUE, context, headers=headers).status


def test_the_front_proxy_says_for_whom_it_forwards(full: Cluster, tmp_path: Path) -> None:
    assert forwarded(full, tmp_path, {"X-Remote-User": "admin"}) == 200
    assert forwarded(full, tmp_path, {"X-Remote-User": "ann"}) == 403
    masters = {"X-Remote-User": "system:kube-aggregator", "X-Remote-Group": "system:masters"}
    assert forwarded(full, tmp_path, masters) == 200
    # Without a user, the token counts.
    assert forwarded(full, tmp_path, {"Authorization": "Bearer admin"}) == 200
    assert forwarded(full, tmp_path, {}) == 403


def test_nobody_else_says_so(full: Cluster, tmp_path: Path) -> None:
    assert forwarded(full, tmp_path, {"X-Remote-User": "admin"}, name="somebody") == 403
    with pytest.raises(OSError, match=r"alert|EOF|reset|closed|Broken"):
        forwarded(full, tmp_path, {"X-Remote-User": "admin"}, ca=OTHER_CA)
    answer = ask(full.visibility.port, CLUSTER_QUEUE, UNTRUSTING, headers={"X-Remote-User": "admin"})
    assert answer.status == 403


def test_groups_uid_and_extra_are_read_and_asked_about() -> None:
    settings = ProxySettings(
        "pem", (), ("X-Remote-User",), ("X-Remote-Uid",), ("X-Remote-Group",), ("X-Remote-Extra-",)
    )
    headers = Message()
    for name, text in (("X-Remote-Group", "g"), ("x-remote-group", "h"), ("X-Remote-Extra-Scopes%2fOf", "one")):
        headers[name] = text
    request = Request("GET", "/", headers=headers, peer=Peer("proxy"))
    assert settings.user_of(request) is None
    headers["X-Remote-User"], headers["X-Remote-Uid"] = "eve", "7"
    user = settings.user_of(request)
    groups = ("g", "h", "system:authenticated")
    assert user == User("eve", groups, "7", {"scopes/of": ("one",)})
    assert user.spec() == {"user": "eve", "groups": [*groups], "uid": "7", "extra": {"scopes/of": ["one"]}}
    assert (user.authenticated(), ANONYMOUS.authenticated()) == (user, ANONYMOUS)
    assert replace(settings, cas="").user_of(request) is None
    assert settings.user_of(replace(request, peer=None)) is None


def test_discovery_and_openapi(full: Cluster) -> None:
    groups = full.ask("/apis").json["groups"]
    assert [group["name"] for group in groups] == [GROUP[6:]]
    assert full.ask(GROUP).json["preferredVersion"]["version"] == "v1beta2"
    for version in ("v1beta1", "v1beta2"):
        listed = full.ask(f"{GROUP}/{version}").json["resources"]
        assert [(row["name"], row["namespaced"], row["verbs"]) for row in listed] == [
            ("clusterqueues", False, []),
            ("clusterqueues/pendingworkloads", False, ["get"]),
            ("localqueues", True, []),
            ("localqueues/pendingworkloads", True, ["get"]),
        ]
        place = full.ask("/openapi/v3").json["paths"][f"{GROUP[1:]}/{version}"]["serverRelativeURL"]
        assert full.ask(place).json["openapi"] == "3.0.0"
    assert CLUSTER_QUEUE.replace("/a/", "/{name}/") in full.ask("/openapi/v2").json["paths"]


def test_followers_answer_as_the_leader_does(full: Cluster) -> None:
    follower = Process(Api.connect(kubeconfig=full.kubeconfig), leads=False)
    with running(follower):
        wait_for(lambda: len(follower.pending(PendingQuery("a")) or ()) == 9, "it has seen all")
        assert follower.pending(PendingQuery("a")) == full.process.pending(PendingQuery("a"))


def replaced(
    found: Cluster, pending: Callable[[PendingQuery], Any], ready: Callable[[], dict[str, str]]
) -> VisibilityServer:
    """Another server beside it."""
    connect = lambda: Api.connect(kubeconfig=found.kubeconfig)  # noqa: E731
    server = VisibilityServer(HERE, CertificateSettings(), connect, pending, healthy=dict, ready=ready)
    server.start()
    wait_for(lambda: is_open(server.port) or bool(ready()), "it has a certificate")
    return server


def test_an_order_is_used_again_for_twenty_times_as_long_as_it_took() -> None:
    now = [0.0]
    asked: list[str] = []

    class Slow:
        """An engine that takes a second for an order."""

        def pending(self, cluster_queue: str) -> tuple[PendingWorkload, ...]:
            now[0] += 1
            asked.append(cluster_queue)
            return (PendingWorkload("lab", f"w{now[0]:g}", 0, "a", 0, 0, "active"),)

    class Loop:
        engine = Slow()

        def workload(self, name: str, *, namespace: str) -> None:
            return None

    pages = PendingPages(cast(Controller, Loop()), clock=lambda: now[0])

    def first(cluster_queue: str) -> str:
        (item,) = pages.page(PendingQuery(cluster_queue)) or [None]
        return text_at(object_at(item), "metadata", "name")

    assert [first("a"), first("b"), first("a")] == ["w1", "w2", "w1"]
    now[0] = 20.5
    assert first("a") == "w1"
    now[0] = 21
    assert [first("a"), first("b"), first("a")] == ["w22", "w23", "w22"]
    assert asked == ["a", "b", "a", "b"]


def test_it_says_when_it_cannot_answer(full: Cluster) -> None:
    def busy(asked: PendingQuery) -> None:
        raise queue.Empty

    server = replaced(full, busy, dict)
    answer = full._replace(visibility=server).ask(CLUSTER_QUEUE)
    assert (answer.status, answer.json["message"], answer.headers["Retry-After"]) == (503, "busy, ask again later", "1")
    server.stop()

    def unready() -> dict[str, str]:
        return {"Workload": "is not listed yet"}

    server = replaced(full, full.process.pending, unready)
    found = full._replace(visibility=server)
    wait_for(lambda: can_connect(server.port), "it has a certificate")
    assert found.ask(CLUSTER_QUEUE).json["message"] == "not ready yet: Workload is not listed yet"
    assert found.ask("/readyz", "").status == 500
    assert found.ask("/healthz", "").status == 200
    server.stop()


def can_connect(port: int) -> bool:
    try:
        return ask(port, "/healthz", UNTRUSTING).status == 200
    except OSError:
        return False


def test_a_server_that_cannot_be_asked_is_500_without_a_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with cluster(tmp_path) as found:
        found.server.faults = lambda request: (
            Fault(refusal=refusal_of(503)) if request.resource.endswith("reviews") else None
        )
        answer = found.ask(CLUSTER_QUEUE)
        assert (answer.status, answer.json["reason"]) == (500, "InternalError")
        found.server.faults = None
        assert found.ask(CLUSTER_QUEUE).status == 200
    assert not [record for record in caplog.records if record.exc_info and record.levelno > logging.DEBUG]


def test_settings_of_the_api_server_that_cannot_be_read_are_kept_and_logged_once(
    full: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = FrontProxy(Api.connect(kubeconfig=full.kubeconfig))
    proxy.look()
    before = proxy.settings
    assert before.names == ("front-proxy-client",)
    for broken in ('["a"', '{"a": 1}', "[" * 100_000):
        changed = proxy_settings(**{"requestheader-allowed-names": broken})
        full.server.call(
            lambda api, it=changed: api.update(  # type: ignore[misc]
                {**it, "metadata": {**it["metadata"], "resourceVersion": version_of(api, it)}}
            )
        )
        proxy.look()
        proxy.look()
        assert proxy.settings == before
    assert len(caplog.records) == 3
    assert not any(record.exc_info for record in caplog.records)


def version_of(api: Any, manifest: dict[str, Any]) -> str:
    its = manifest["metadata"]
    return str(api.get(manifest["kind"], its["name"], namespace=its["namespace"])["metadata"]["resourceVersion"])


def test_the_aggregation_layer_is_given_the_ca_where_it_comes_here(tmp_path: Path) -> None:
    with cluster(tmp_path) as found:
        for version, name in (("v1beta2", "kueuecore-visibility"), ("v1beta1", "kueue-visibility-server")):
            spec = {
                "group": GROUP[6:],
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {"namespace": "kueue-system", "name": name},
                "insecureSkipTLSVerify": True,
            }
            metadata = {"name": f"{version}.{GROUP[6:]}"}
            kind = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
            found.server.load([{**kind, "metadata": metadata, "spec": spec}])
        assert found.visibility._secret is not None
        found.visibility._secret.look()
        secret = found.server.call(lambda api: api.get("Secret", "kueuecore-visibility-cert", namespace="kueue-system"))

        def spec_of(version: str) -> dict[str, Any]:
            service: dict[str, Any] = found.server.call(lambda api: api.get("APIService", f"{version}.{GROUP[6:]}"))
            return dict(service["spec"])

        assert spec_of("v1beta2")["caBundle"] == secret["data"]["ca.crt"]
        assert "insecureSkipTLSVerify" not in spec_of("v1beta2")
        assert (spec_of("v1beta1").get("caBundle"), spec_of("v1beta1")["insecureSkipTLSVerify"]) == (None, True)
