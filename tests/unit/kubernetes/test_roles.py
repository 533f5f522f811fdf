"""The roles of deploy/kueuecore.yaml are enough, and no more: a server that knows them refuses nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kueuecore import Configuration
from kueuecore.kubernetes import Api, Election, LeaseSettings, Process, ServeSettings
from kueuecore.kubernetes.preflight.rights import needed_rights
from kueuecore.kubernetes.settings import CertificateSettings
from kueuecore.kubernetes.visibility.server import VisibilityServer
from kueuecore.trials.http_replica import MortalApi
from kueuecore_apiserver import AccessRules, HttpApiServer
from kueuecore_apiserver.plain_crds import framework_crds
from tests.unit.kubernetes.clusters import job, served, started, wait_for
from tests.unit.kubernetes.days_of_kinds import KindDays
from tests.unit.kubernetes.deployed import KUBECONFIG, USER, allowed, deployed, manifests_of, rights
from tests.unit.kubernetes.https import HERE, ask
from tests.unit.kubernetes.test_process import running
from tests.unit.kubernetes.test_secured_metrics import UNTRUSTING, metrics_port, scrape
from tests.unit.kubernetes.visibility_clusters import CLUSTER_QUEUE, is_open, namespace, proxy_settings

METRICS = "kueuecore-metrics-reader"
METRICS_READER = {
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "prometheus"},
    "roleRef": {"kind": "ClusterRole", "name": METRICS},
    "subjects": [{"kind": "User", "name": "prometheus"}],
}


# What Kubernetes brings itself.
AUTH_READER = {
    "kind": "Role",
    "metadata": {"name": "extension-apiserver-authentication-reader", "namespace": "kube-system"},
    "rules": [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["extension-apiserver-authentication"],
            "verbs": ["get", "list", "watch"],
        }
    ],
}


def served_as_deployed(folder: Path) -> set[tuple[str, str, str]]:
    """What a process with its threads asks for, from its election until a Job runs and its metrics are read."""
    roles, configured = deployed()
    (reader,) = (it for it in manifests_of("roles-for-people.yaml") if it["metadata"]["name"] == METRICS)
    access = AccessRules(users={"secret": USER, "scraper": "prometheus"}, manifests=[*roles, reader, METRICS_READER])
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
            connected = Api.connect(kubeconfig=kubeconfig)
            assert scrape(metrics_port(connected), "scraper").status == 200
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
        days.live_through_all()
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


def test_the_rights_that_a_preflight_asks_about_are_those_of_the_roles() -> None:
    roles, configured = deployed()
    configuration = Configuration.parse(configured)
    lease = ServeSettings.of(configuration).lease
    needed = needed_rights(Api.connect(server="http://127.0.0.1:1"), configuration, lease)
    assert {(right.verb, right.group, right.resource) for right in needed} == allowed(roles)
    assert {right.namespace for right in needed if right.resource == "leases"} == {"kueue-system"}


def test_the_roles_allow_what_days_of_all_kinds_ask_for_and_no_more(tmp_path: Path) -> None:
    roles, _ = deployed()
    asked = served_as_deployed(tmp_path) | lived_through(tmp_path)
    assert sorted(asked - allowed(roles)) == [], "asked for, and not allowed"
    assert sorted(allowed(roles) - asked) == [], "allowed, and never asked for"


def test_the_roles_of_the_visibility_api_allow_what_it_asks_for_and_no_more(tmp_path: Path) -> None:
    roles, _ = deployed()
    manifests = manifests_of("visibility.yaml")
    own = [manifest for manifest in manifests if manifest["kind"].endswith(("Role", "RoleBinding"))]
    access = AccessRules(users={"secret": USER, "ann": "ann"}, manifests=[*roles, *own, AUTH_READER])
    with served(access=access) as server:
        server.load([namespace("kube-system"), proxy_settings()])
        server.load(manifest for manifest in manifests if manifest["kind"] in ("Secret", "APIService"))
        (tmp_path / "kubeconfig").write_text(KUBECONFIG.format(url=server.url))
        visibility = VisibilityServer(
            HERE,
            CertificateSettings(),
            lambda: Api.connect(kubeconfig=tmp_path / "kubeconfig"),
            lambda _: [],
            healthy=dict,
            ready=dict,
        )
        visibility.start()
        wait_for(lambda: is_open(visibility.port), "it has a certificate")
        headers = {"Authorization": "Bearer ann"}
        assert ask(visibility.port, CLUSTER_QUEUE, UNTRUSTING, headers=headers).status == 403
        wait_for(lambda: len([row for row in server.requests if row.verb == "patch"]) == 2, "both APIServices have it")
        visibility.stop()
        asked = [row for row in server.requests if row.user == USER]
    assert [row for row in asked if row.code >= 400] == []
    reviews = {
        ("create", "authentication.k8s.io", "tokenreviews"),
        ("create", "authorization.k8s.io", "subjectaccessreviews"),
    }
    assert rights(asked) == allowed(own) | reviews | {("get", "", "configmaps")}
