"""The roles of deploy/kueuecore.yaml are enough, and no more: a server that knows them refuses nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from kueuecore import Configuration
from kueuecore.kubernetes import Api, Election, LeaseSettings, Process
from kueuecore.trials.http_replica import MortalApi
from kueuecore_apiserver import AccessRules, HttpApiServer, Request
from kueuecore_apiserver.plain_crds import framework_crds
from tests.unit.kubernetes.clusters import job, served, started, wait_for
from tests.unit.kubernetes.days_of_kinds import SERVING, KindDays
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


def deployed() -> tuple[list[dict[str, Any]], str]:
    """The roles with their bindings, and the Configuration."""
    manifests: list[dict[str, Any]] = list(yaml.safe_load_all(Path("deploy/kueuecore.yaml").read_text("utf-8")))
    roles = [manifest for manifest in manifests if manifest["kind"].endswith(("Role", "RoleBinding"))]
    (configured,) = (
        manifest["data"]["configuration.yaml"] for manifest in manifests if manifest["kind"] == "ConfigMap"
    )
    return roles, configured


def rights(requests: Iterable[Request]) -> set[tuple[str, str, str]]:
    """Verb, group and resource of requests."""
    return {
        (request.verb, request.group, "/".join(filter(None, (request.resource, request.subresource))))
        for request in requests
    }


def served_as_deployed(folder: Path) -> set[tuple[str, str, str]]:
    """What a process with its threads asks for, from its election until a Job runs."""
    roles, configured = deployed()
    access = AccessRules(users={"secret": USER}, manifests=roles)
    with served(access=access) as server:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(url=server.url))
        configuration = Configuration.parse(configured)
        process = Process(Api.connect(kubeconfig=kubeconfig), configuration=configuration, leads=False)
        lease = LeaseSettings("kueue-system", "one", "first", 3, 2, 1)
        election = Election(Api.connect(kubeconfig=kubeconfig), lease, won=process.lead, lost=process.end)
        with running(process) as failures:
            server.load(framework_crds())
            election.start()
            server.load([job("j")])
            wait_for(lambda: started(server) == {"j"}, "the job starts")
            wait_for(lambda: watches(server, process.api.kinds), "all kinds are watched")
            election.release()
        assert not failures
        asked = [request for request in server.requests if request.user_agent.startswith("kueuecore/")]
        assert {request.user for request in asked} == {USER}
        assert not [(request.verb, request.resource, request.subresource) for request in asked if request.code == 403]
        return rights(asked)


def watches(server: HttpApiServer, kinds: Mapping[str, tuple[str, str]]) -> bool:
    watched = {request.resource for request in server.requests if request.verb == "watch"}
    return watched >= {plural for _, plural in kinds.values()} - {"events"}


def lived_through(folder: Path) -> set[tuple[str, str, str]]:
    """What days of all kinds of jobs ask for."""
    roles, configured = deployed()
    days = KindDays(configured, AccessRules(users={"secret": USER}, manifests=roles))
    kubeconfig = folder / "kubeconfig"
    with days.server.serve() as url:
        kubeconfig.write_text(KUBECONFIG.format(url=url))
        days.begin(MortalApi.connect(kubeconfig=kubeconfig))
        days.live(5)
        for kind in days.kinds:
            days.come(kind, **{"kueue.x-k8s.io/max-exec-time-seconds": "10"})
            if kind in SERVING:
                days.pod_of(kind)
            days.live(40)
            assert kind in SERVING or not days.cluster.list(kind)[0], f"{kind} was not deleted after its retention"
        for queue in ("lq", "asks", "placed"):
            done = days.come("Job", queue)
            days.live(15)
            days.finish(done)
            days.live(15)
        days.pod_that_waits_for_a_lost_node()
    # Nothing is forbidden, and no template is restored that a server does not take.
    assert not [request for request in days.server.requests if request.code in (403, 422)]
    return rights(days.server.requests) | days.blocked_owners()


def test_a_queue_that_is_deleted_goes_once_its_jobs_have_ended(tmp_path: Path) -> None:
    roles, configured = deployed()
    days = KindDays(configured, AccessRules(users={"secret": USER}, manifests=roles))
    kubeconfig = tmp_path / "kubeconfig"

    def left(kind: str) -> set[str]:
        return {row["metadata"]["name"] for row in days.cluster.list(kind)[0]}

    with days.server.serve() as url:
        kubeconfig.write_text(KUBECONFIG.format(url=url))
        days.begin(MortalApi.connect(kubeconfig=kubeconfig))
        runs = days.come("Job", "placed")
        days.live(5)
        for kind, name in (("ClusterQueue", "placed"), ("ResourceFlavor", "placed"), ("ClusterQueue", "asks")):
            days.cluster.delete(kind, name)
        days.cluster.delete("AdmissionCheck", "capacity")
        days.live(10)
        assert left("ClusterQueue") == {"lq", "placed"}, "nothing runs in the third"
        assert (left("ResourceFlavor"), left("AdmissionCheck")) == ({"spot", "placed"}, set())
        (condition,) = days.cluster.get("ClusterQueue", "placed")["status"]["conditions"]
        assert (condition["status"], condition["reason"]) == ("False", "Terminating")
        days.finish(runs)
        days.live(10)
        assert (left("ClusterQueue"), left("ResourceFlavor")) == ({"lq"}, {"spot"})


def test_the_roles_allow_what_days_of_all_kinds_ask_for_and_no_more(tmp_path: Path) -> None:
    roles, _ = deployed()
    allowed = {
        (verb, group, resource)
        for role in roles
        for rule in role.get("rules", ())
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    asked = served_as_deployed(tmp_path) | lived_through(tmp_path)
    assert sorted(asked - allowed) == [], "asked for, and not allowed"
    assert sorted(allowed - asked) == [], "allowed, and never asked for"
