"""The roles of deploy/dry-run.yaml are enough, and no more: a dry run as deployed, beside a Kueue that decides."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore.cli import main
from kueuecore.kubernetes import Api, Process
from kueuecore.kubernetes.dry_run.kueue_watch import KueueWatch
from kueuecore.releases import DEFAULT_RELEASE
from kueuecore_apiserver import AccessRules, HttpApiServer
from scripts.clusters.processes import free_port
from tests.unit.kubernetes.clusters import job, served, started, wait_for
from tests.unit.kubernetes.deployed import KUBECONFIG, allowed, manifests_of, rights, roles_in
from tests.unit.kubernetes.test_process import running
from tests.unit.kubernetes.test_roles import METRICS, METRICS_READER
from tests.unit.kubernetes.test_secured_metrics import scrape

FILE = "dry-run.yaml"
USER = "system:serviceaccount:kueue-system:kueuecore-dry-run"
LEASE = "c1f6bfd2.kueue.x-k8s.io"


def kueue() -> list[dict[str, Any]]:
    """What a dry run finds of Kueue itself."""
    image = f"registry.k8s.io/kueue/kueue:v{DEFAULT_RELEASE}"
    labels = {"app": "kueue"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "manager", "image": image}]}}
    renewed = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "kueue-controller-manager", "namespace": "kueue-system"},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        },
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": LEASE, "namespace": "kueue-system"},
            "spec": {"holderIdentity": "kueue", "renewTime": renewed},
        },
    ]


def arguments(folder: Path, metrics: int, health: int) -> list[str]:
    """Those of the pod, with its files in a folder and its ports free ones."""
    (deployment,) = (it for it in manifests_of(FILE) if it["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    places = {
        "/etc/kueue/controller_manager_config.yaml": str(folder / "kueue.yaml"),
        "/var/lib/kueuecore": str(folder / "journal"),
        ":8443": f":{metrics}",
        ":8081": f":{health}",
    }
    given = [argument.partition("=") for argument in container["args"]]
    assert {value for _, _, value in given if value} == {*places}
    return [f"{name}{sign}{places.get(value, value)}" for name, sign, value in given]


class Beside(threading.Thread):
    """What happens beside a dry run, which has the main thread; then it is ended."""

    def __init__(self, happens: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.failure: BaseException | None = None
        self._happens = happens

    def run(self) -> None:
        try:
            self._happens()
        except BaseException as error:
            self.failure = error
        finally:
            os.kill(os.getpid(), signal.SIGTERM)


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def resources(server: HttpApiServer, verb: str) -> set[str]:
    return {request.resource for request in server.requests if (request.user, request.verb) == (USER, verb)}


def test_the_roles_allow_what_a_dry_run_asks_for_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KueueWatch.__init__.__kwdefaults__ or {}, "seconds", 0.5)
    (tmp_path / "kueue.yaml").write_text(json.dumps(Configuration().to_dict()))
    port, health = free_port(), free_port()
    roles = roles_in(FILE)
    (reader,) = (it for it in manifests_of("roles-for-people.yaml") if it["metadata"]["name"] == METRICS)
    access = AccessRules(
        users={"secret": USER, "kueue": "kueue", "scraper": "prometheus"},
        manifests=[*roles, reader, METRICS_READER],
        admins=["kueue"],
    )
    with served(access=access) as server:
        server.load(kueue())
        for name, text in (("here", KUBECONFIG), ("kueue", KUBECONFIG.replace("token: secret", "token: kueue"))):
            (tmp_path / name).write_text(text.format(url=server.url))

        def happens() -> None:
            wait_for(lambda: is_ready(health), "all kinds are listed")
            wait_for(lambda: resources(server, "watch") == resources(server, "list"), "all kinds are watched")
            wait_for(lambda: "leases" in resources(server, "get"), "it looks at the Lease")
            process = Process(Api.connect(kubeconfig=tmp_path / "kueue"), configuration=Configuration())
            with running(process) as failures:
                server.load([job("j")])
                wait_for(lambda: started(server) == {"j"}, "the job starts")
                wait_for(lambda: bool(re.search(rb'decisions\{verdict="agreed"\} [1-9]', scraped())), "it is judged")
            assert not failures

        def scraped() -> bytes:
            answer = scrape(port, "scraper")
            assert answer.status == 200
            return answer.body

        beside = Beside(happens)
        beside.start()
        code = main(["serve", *arguments(tmp_path, port, health), "--kubeconfig", str(tmp_path / "here")])
        beside.join(20)
        if beside.failure is not None:
            raise beside.failure
        assert code == 0
        asked = [request for request in server.requests if request.user == USER]
    assert not [(request.verb, request.path) for request in asked if request.code == 403]
    assert sorted(rights(asked) - allowed(roles)) == [], "asked for, and not allowed"
    assert sorted(allowed(roles) - rights(asked)) == [], "allowed, and never asked for"
    # Reviews of clients are answered, and not stored.
    reviews = {("create", "tokenreviews"), ("create", "subjectaccessreviews")}
    writes = {(verb, resource) for verb, _, resource in allowed(roles) if verb not in ("get", "list", "watch")}
    assert writes == reviews
    journal = b"".join(path.read_bytes() for path in (tmp_path / "journal").glob("decisions-*.log"))
    assert b"lab/job-j-" in journal
