"""The roles of deploy/kueuecore.yaml are enough: a server that knows them refuses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kueuecore import Configuration
from kueuecore.kubernetes import Api, Election, LeaseSettings, Process
from kueuecore_apiserver import AccessRules
from tests.unit.kubernetes.clusters import job, served, started, wait_for
from tests.unit.kubernetes.test_process import running

USER = "system:serviceaccount:kueue-system:kueuecore"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: here, cluster: {{server: "{url}"}}}}]
users: [{{name: kueuecore, user: {{token: secret}}}}]
contexts: [{{name: here, context: {{cluster: here, user: kueuecore}}}}]
"""


def test_what_the_roles_allow_is_enough(tmp_path: Path) -> None:
    manifests: list[dict[str, Any]] = list(yaml.safe_load_all(Path("deploy/kueuecore.yaml").read_text("utf-8")))
    roles = [manifest for manifest in manifests if manifest["kind"].endswith(("Role", "RoleBinding"))]
    (configured,) = (
        manifest["data"]["configuration.yaml"] for manifest in manifests if manifest["kind"] == "ConfigMap"
    )
    access = AccessRules(users={"secret": USER}, manifests=roles)
    with served(access=access) as server:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(url=server.url))
        configuration = Configuration.parse(configured)
        process = Process(Api.connect(kubeconfig=kubeconfig), configuration=configuration, leads=False)
        lease = LeaseSettings("kueue-system", "one", "first", 3, 2, 1)
        election = Election(Api.connect(kubeconfig=kubeconfig), lease, won=process.lead, lost=process.end)
        with running(process) as failures:
            election.start()
            server.load([job("j")])
            wait_for(lambda: started(server) == {"j"}, "the job starts")
            election.release()
        assert not failures
        asked = [request for request in server.requests if request.user_agent.startswith("kueuecore/")]
        assert {request.user for request in asked} == {USER}
        assert not [(request.verb, request.resource, request.subresource) for request in asked if request.code == 403]
        assert {"leases", "events", "workloads"} <= {request.resource for request in asked}
