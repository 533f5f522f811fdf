"""Policies and webhooks of deploy/ on a real kube-apiserver, where KUBE_APISERVER and ETCD name its binaries."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import Address, Api, Process
from kueuecore.kubernetes.settings import WebhookSettings
from kueuecore.kubernetes.webhooks.server import WebhookServer
from kueuecore_apiserver.crds import crds
from kueuecore_apiserver.plain_crds import framework_crds
from tests.unit.apiserver.test_admission_policies import REFUSED, by_webhook, policies, problems
from tests.unit.kubernetes.clusters import job, queues, wait_for
from tests.unit.kubernetes.deployed import deployed
from tests.unit.kubernetes.real_servers import needs_real_server, real_server
from tests.unit.kubernetes.test_process import running
from tests.unit.kubernetes.webhooks import is_role, manifests

pytestmark = [needs_real_server, pytest.mark.slow]
QUEUE = "kueue.x-k8s.io/queue-name"
# Kubernetes' own names need an approval that the definition for tests does not have.
UNAPPROVED = "sparkapplications.sparkoperator.k8s.io"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with real_server(tmp_path) as kubeconfig:
        found = Api.connect(kubeconfig=kubeconfig)
        definitions = [row for row in [*crds(), *framework_crds()] if row["metadata"]["name"] != UNAPPROVED]
        load(found, definitions)
        wait_for(lambda: is_served(found, "/apis/kueue.x-k8s.io/v1beta2/workloads"), "the kinds are served")
        load(found, [named("Namespace", "lab"), named("Namespace", "n"), named("Namespace", "kueue-system")])
        load(found, [{**named("ServiceAccount", "default"), "metadata": {"name": "default", "namespace": "lab"}}])
        yield found
        found.close()


def named(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def is_served(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except RefusedError:
        return False
    return True


def path_of(row: dict[str, Any], name: str = "") -> str:
    kind = str(row["kind"]).lower()
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}es" if kind.endswith("s") else f"{kind}s"
    prefix = "apis" if "/" in row["apiVersion"] else "api"
    place = f"/namespaces/{row['metadata']['namespace']}" if "namespace" in row["metadata"] else ""
    return "/".join(filter(None, (f"/{prefix}/{row['apiVersion']}{place}/{plural}", name)))


def load(api: Api, rows: Iterable[dict[str, Any]]) -> None:
    for row in rows:
        api.send("POST", path_of(row), copy.deepcopy(row))


def created(api: Api, row: dict[str, Any]) -> Any:
    """What is stored, or why not."""
    try:
        return api.send("POST", path_of(row), copy.deepcopy(row))
    except RefusedError as refused:
        return str(refused)


def test_policies_are_taken_and_say_what_the_webhooks_say(api: Api) -> None:
    load(api, policies())
    first, *others = (row for row in REFUSED if row["apiVersion"].startswith("kueue."))
    wait_for(
        lambda: isinstance(created(api, {**first, "metadata": {"name": f"t{time.monotonic_ns()}"}}), str), "they act"
    )
    for row in (first, *others):
        assert problems(created(api, row)) == problems(by_webhook(row))
    load(api, [row for row in queues(4) if row["kind"] != "Namespace"])
    new = job("sum")
    new["spec"]["suspend"] = False
    stored = created(api, new)
    assert stored["spec"]["suspend"] is True
    started: dict[str, Any] = {"spec": {"suspend": False}}
    path = path_of(new, "sum")
    api.send("PATCH", path, started, content_type="application/merge-patch+json")
    change: dict[str, Any] = {"metadata": {"labels": {QUEUE: "b"}}}
    with pytest.raises(RefusedError) as caught:
        api.send("PATCH", path, change, content_type="application/merge-patch+json")
    assert f'metadata.labels[{QUEUE}]: Invalid value: "b": field is immutable' in str(caught.value)
    load(api, [{**named("LocalQueue", "default"), "apiVersion": "kueue.x-k8s.io/v1beta2",
                "metadata": {"name": "default", "namespace": "lab"}, "spec": {"clusterQueue": "a"}}])  # fmt: skip
    container = {"name": "c", "image": "i"}
    pod = {**named("Pod", "p"), "metadata": {"name": "p", "namespace": "lab"}, "spec": {"containers": [container]}}

    def gates() -> list[str]:
        pod["metadata"]["name"] = f"p{time.monotonic_ns()}"
        return [gate["name"] for gate in created(api, pod)["spec"].get("schedulingGates", [])]

    wait_for(lambda: gates() == ["kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"], "the default queue is known")


def test_a_day_with_webhooks_and_without_any_kueue(api: Api, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    configuration = Configuration.parse(deployed()[1])
    process = Process(Api.connect(kubeconfig=kubeconfig), configuration=configuration)
    settings = WebhookSettings(
        Address("127.0.0.1", 0), "kueue-system", "kueuecore-webhooks", "kueuecore-webhook-server-cert", tmp_path
    )
    webhooks = WebhookServer(
        settings, Api.connect(kubeconfig=kubeconfig), configuration=configuration, kinds=process.api.kinds
    )
    process.also_hear(webhooks.hear)
    port = webhooks.start()
    load(api, [reached_at(row, port) for row in manifests() if not is_role(row)])
    with running(process) as failures:
        wait_for(lambda: not process.unready, "everything is listed")
        # Within seconds, as the process sees that they lack its CA.
        wait_for(
            lambda: 'admission webhook "vclusterqueue.kb.io" denied the request: spec.' in str(bad(api)), "they act"
        )
        load(api, [row for row in queues(4) if row["kind"] != "Namespace"])
        new = job("day")
        new["spec"]["suspend"] = False
        assert created(api, new)["spec"]["suspend"] is True
        wait_for(lambda: is_started(api, new), "it starts")
        queue: Any = api.get(path_of({**named("ClusterQueue", "a"), "apiVersion": "kueue.x-k8s.io/v1beta2"}, "a"))
        assert queue["metadata"]["finalizers"] == ["kueue.x-k8s.io/resource-in-use"]
    webhooks.stop()
    assert not failures


def is_started(api: Api, new: dict[str, Any]) -> bool:
    found: Any = api.get(path_of(new, new["metadata"]["name"]))
    return found["spec"]["suspend"] is False


def bad(api: Api) -> Any:
    (queue,) = (row for row in queues(4) if row["kind"] == "ClusterQueue" and row["metadata"]["name"] == "a")
    queue["metadata"]["name"] = f"bad{time.monotonic_ns()}"
    queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["lendingLimit"] = "5"
    return created(api, queue)


def reached_at(row: dict[str, Any], port: int) -> dict[str, Any]:
    """The same, for webhooks outside of the cluster: the Service stands for this machine."""
    if row["kind"] == "Service":
        return {**row, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    changed = copy.deepcopy(row)
    for webhook in changed["webhooks"]:
        webhook["clientConfig"]["service"]["port"] = port
    return changed
