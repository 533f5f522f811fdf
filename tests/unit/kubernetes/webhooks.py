"""Webhooks of a process, as deploy/webhooks.yaml configures them, on the strict API server."""

from __future__ import annotations

import base64
import http.client
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kueuecore import Configuration
from kueuecore.kubernetes import Address, Api, Process
from kueuecore.kubernetes.settings import WebhookSettings
from kueuecore.kubernetes.webhooks.server import WebhookServer
from kueuecore_apiserver import AccessRules, HttpApiServer
from kueuecore_apiserver.plain_crds import framework_crds
from tests.unit.kubernetes.clusters import served, wait_for
from tests.unit.kubernetes.deployed import KUBECONFIG, USER, deployed
from tests.unit.kubernetes.test_process import running

MANIFESTS = Path("deploy/webhooks.yaml")
SERVICE = "kueue-system/kueuecore-webhooks"


def manifests() -> list[dict[str, Any]]:
    return [row for row in yaml.safe_load_all(MANIFESTS.read_text("utf-8")) if row]


def is_role(row: dict[str, Any]) -> bool:
    return str(row["kind"]).endswith(("Role", "RoleBinding"))


class Webhooked(NamedTuple):
    """A cluster with webhooks."""

    server: HttpApiServer
    process: Process
    webhooks: WebhookServer
    client: http.client.HTTPSConnection


class _Client(http.client.HTTPSConnection):
    """Asks as an API server does, which goes by the name of the Service."""

    def __init__(self, port: int, cas: str) -> None:
        self._trusting = ssl.create_default_context(cadata=cas)
        super().__init__("127.0.0.1", port, timeout=30, context=self._trusting)

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._trusting.wrap_socket(self.sock, server_hostname="kueuecore-webhooks.kueue-system.svc")


def bundle(server: HttpApiServer) -> str:
    found = server.call(lambda api: api.get("ValidatingWebhookConfiguration", "kueuecore-validating-webhooks"))
    return base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"]).decode()


@contextmanager
def webhooked(folder: Path, *, leads: bool = True, **options: Any) -> Iterator[Webhooked]:
    """A cluster whose API server asks the webhooks of a process, which has the roles of deploy/ and no more."""
    roles, configured = deployed()
    access = AccessRules(users={"secret": USER}, manifests=[*roles, *filter(is_role, manifests())], admins=["me"])
    services: dict[str, tuple[str, int]] = {}
    configuration = Configuration.parse(configured)
    with served(access=access, services=services, **options) as server:
        server.load(framework_crds())
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(url=server.url))
        process = Process(Api.connect(kubeconfig=kubeconfig), configuration=configuration, leads=leads)
        settings = WebhookSettings(
            Address("127.0.0.1", 0), "kueue-system", "kueuecore-webhooks", "kueuecore-webhook-server-cert", folder
        )
        webhooks = WebhookServer(
            settings, Api.connect(kubeconfig=kubeconfig), configuration=configuration, kinds=process.api.kinds
        )
        process.also_hear(webhooks.hear)
        server.load([row for row in manifests() if not is_role(row)])
        port = webhooks.start()
        services[SERVICE] = "127.0.0.1", port
        with running(process) as failures:
            wait_for(lambda: not process.unready and not webhooks.unready, "everything is listed")
            with closing(_Client(port, bundle(server))) as client:
                yield Webhooked(server, process, webhooks, client)
        webhooks.stop()
        assert not failures
