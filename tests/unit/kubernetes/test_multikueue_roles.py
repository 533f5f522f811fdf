"""The roles of deploy/ for a manager of MultiKueue and its workers are enough, and no more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kueuecore.api_server import RefusedError
from kueuecore.jobs import workloads_for
from kueuecore_apiserver import AccessRules, Fault, HttpApiServer, Request
from kueuecore_apiserver.plain_crds import framework_crds
from tests.jobs import POD, job
from tests.unit.kubernetes.days_of_kinds import completed
from tests.unit.kubernetes.deployed import allowed, deployed, rights, roles_in
from tests.unit.kubernetes.http_fleet import HttpFleet
from tests.unit.kubernetes.multikueue_objects import KUEUES_TOKEN

Json = dict[str, Any]
MANAGER = "system:serviceaccount:kueue-system:kueuecore"
ON_WORKERS = "system:serviceaccount:kueue-system:multikueue"
SYSTEM = "kueue-system"
TIME = "2026-01-01T00:00:00Z"
ELASTIC = {"kueue.x-k8s.io/elastic-job": "true"}
MORE: dict[str, Json] = {"RayJob": {"submissionMode": "HTTPMode"}}
# What a job may change while it runs: elastic ones shrink.
_GROUP = {"groupName": "w", "template": POD}
CHANGES: dict[str, tuple[Json, Json]] = {
    "Job": ({"annotations": ELASTIC, "parallelism": 2, "completions": 2}, {"spec": {"parallelism": 1}}),
    "RayCluster": (
        {"annotations": ELASTIC, "workerGroupSpecs": [{**_GROUP, "replicas": 2}]},
        {"spec": {"workerGroupSpecs": [{**_GROUP, "replicas": 1}]}},
    ),
    "RayService": ({}, {"spec": {"serveConfigV2": "new"}}),
}


class RefusesOnce:
    """Refuses the first creation of a copy, so that nobody knows what has become of it."""

    def __init__(self) -> None:
        self.n_left = 1

    def __call__(self, cluster: str, request: Request) -> Fault | None:
        if self.n_left and cluster and (request.verb, request.resource) == ("create", "workloads"):
            self.n_left -= 1
            return Fault(refusal=RefusedError(500, "no"))
        return None


class Days:
    """A fleet in which jobs of all kinds come, run on a worker and end."""

    def __init__(self) -> None:
        roles, configuration = deployed()
        here = AccessRules(users={"secret": MANAGER}, manifests=[*roles, *roles_in("multikueue.yaml")])
        users = {"secret": ON_WORKERS, KUEUES_TOKEN: "kueue"}
        there = AccessRules(users=users, manifests=roles_in("multikueue-worker.yaml"), admins=["kueue"])
        runtime = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime"}
        template = completed(
            {"spec": {"template": {"spec": {"containers": [{"name": "node", "resources": {"requests": {"cpu": 1}}}]}}}}
        )
        node = {"name": "node", "template": template}
        spec = {"template": {"spec": {"replicatedJobs": [node]}}, "mlPolicy": {"numNodes": 1}}
        objects = [*framework_crds(), {**runtime, "metadata": {"name": "torch"}, "spec": spec}]
        gates = "featureGates: {ElasticJobsViaWorkloadSlices: true}\n"
        self.fleet = HttpFleet(
            configuration + gates,
            access=here,
            access_to_workers=there,
            objects=objects,
            refuses=RefusesOnce(),
        )

    @property
    def kinds(self) -> list[str]:
        return sorted(adapter.kind for adapter in self.fleet.replica.multikueue.manager.adapters.values())

    def come(self, kind: str, **more: Any) -> Json:
        """Create a job on the manager as Kueue's webhook leaves it."""
        plain = completed(job(kind, kind.lower()))
        plain["metadata"] |= {"namespace": "lab", "annotations": {"minutes": "1", **more.pop("annotations", {})}}
        plain["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "a"
        if kind == "StatefulSet":
            plain["spec"]["selector"] = {"matchLabels": {"app": "a"}}
            plain["spec"]["template"]["metadata"] = {"labels": {"app": "a"}}
            del plain["spec"]["template"]["spec"]["restartPolicy"]
        if kind == "Pod":
            plain["metadata"]["labels"]["kueue.x-k8s.io/managed"] = "true"
        plain["spec"] |= more
        manager = self.fleet.manager.api
        around = ("ClusterTrainingRuntime", "LocalQueue", "ClusterQueue", "AdmissionCheck", "Namespace")
        beside = [row for name in around for row in manager.list(name)[0]]
        made, *_ = workloads_for([plain, *beside]).jobs
        self.fleet.manager.load([made])
        return made

    def run(self, kind: str, **more: Any) -> HttpApiServer:
        """Let a job come, and return the server of the worker that runs it."""
        self.come(kind, **more)
        self.fleet.live(30, until=lambda: self.worker_of(kind) is not None)
        server = self.worker_of(kind)
        assert server is not None, kind
        return server

    def worker_of(self, kind: str) -> HttpApiServer | None:
        for name in self.fleet.workers:
            if self.fleet.servers[name].api.find(kind, kind.lower(), namespace="lab") is not None:
                return self.fleet.servers[name]
        return None

    def change(self, kind: str, patch: Json) -> None:
        self.fleet.manager.api.patch(kind, kind.lower(), patch, namespace="lab")
        self.fleet.live(5)

    def drain(self, kind: str) -> None:
        """Let the manager evict what runs on a worker."""
        self.fleet.manager.api.patch("ClusterQueue", "a", {"spec": {"stopPolicy": "HoldAndDrain"}})
        self.fleet.live(30, until=lambda: not self.fleet.left())
        assert not self.fleet.left()
        self.delete(kind)
        self.fleet.manager.api.patch("ClusterQueue", "a", {"spec": {"stopPolicy": "None"}})

    def delete(self, kind: str) -> None:
        self.fleet.manager.api.delete(kind, kind.lower(), namespace="lab")
        self.fleet.manager.collect_garbage()
        self.fleet.live(20, until=lambda: not self.fleet.left() and not self.fleet.manager.api.list("Workload")[0])
        self.fleet.live(2)
        assert self.worker_of(kind) is None

    def end(self, kind: str) -> None:
        """Let the Workload end on its worker, as Kueue there would say, and delete the job on the manager."""
        server = self.worker_of(kind)
        assert server is not None
        for workload in server.api.list("Workload")[0]:
            done = {
                "type": "Finished",
                "status": "True",
                "reason": "Succeeded",
                "message": "",
                "lastTransitionTime": TIME,
            }
            conditions = [*workload["status"]["conditions"], done]
            name, status = workload["metadata"]["name"], {"status": {"conditions": conditions}}
            server.api.patch("Workload", name, status, namespace="lab", subresource="status")
        self.fleet.live(20, until=lambda: not self.fleet.left())
        assert not self.fleet.left(), kind
        self.delete(kind)

    def asked(self, servers: Iterable[str]) -> list[Request]:
        return [
            request
            for name in servers
            for request in self.fleet.servers[name].requests
            if request.user in (MANAGER, ON_WORKERS)
        ]


def test_the_roles_allow_what_days_of_all_kinds_ask_for_and_no_more() -> None:
    days = Days()
    with days.fleet.running():
        days.fleet.live(5)
        # The same kubeconfig, so that nobody connects anew.
        days.fleet.manager.api.patch("Secret", "west-secret", {"metadata": {"labels": {"a": "b"}}}, namespace=SYSTEM)
        for kind in days.kinds:
            server = days.run(kind, **MORE.get(kind, {}))
            if kind not in ("StatefulSet", "LeaderWorkerSet"):
                told = {"type": "Told", "status": "True", "reason": "Told", "message": "", "lastTransitionTime": TIME}
                status = {"status": {"phase": "Running"} if kind == "Pod" else {"conditions": [told]}}
                server.api.patch(kind, kind.lower(), status, namespace="lab", subresource="status")
            days.fleet.live(5)
            days.end(kind)
        for kind, (elastic, change) in CHANGES.items():
            days.run(kind, **elastic)
            days.fleet.live(5)
            days.change(kind, change)
            days.delete(kind)
        days.run("JobSet")
        days.fleet.live(3)
        days.drain("JobSet")
    forbidden = [request for request in days.asked(["", "west", "east"]) if request.code in (403, 422)]
    assert not [(request.verb, request.path, request.code) for request in forbidden]
    here, there = rights(days.asked([""])), rights(days.asked(["west", "east"]))
    more, workers = allowed(roles_in("multikueue.yaml")), allowed(roles_in("multikueue-worker.yaml"))
    assert sorted(here - allowed(deployed()[0]) - more) == [], "asked for, and not allowed"
    assert sorted(more - here) == [], "allowed on the manager, and never asked for"
    assert sorted(there - workers) == [], "asked for on a worker, and not allowed"
    assert sorted(workers - there) == [], "allowed on a worker, and never asked for"


def test_without_a_right_it_says_so_and_does_not_ask_all_the_time() -> None:
    roles, configuration = deployed()
    without_secrets = [role for role in roles_in("multikueue.yaml") if role["kind"].startswith("ClusterRole")]
    for more in ([], without_secrets):
        access = AccessRules(users={"secret": MANAGER}, manifests=[*roles, *more])
        fleet = HttpFleet(configuration, access=access)
        with fleet.running():
            fleet.live(60)
        refused = [request for request in fleet.manager.requests if request.code == 403]
        n_patches = len([request for request in refused if request.resource == "multikueueclusters"])
        assert n_patches < 100, "two clusters, later each time"
        assert bool(n_patches) == (not more)
    status, reason, message = fleet.active("west")
    assert (status, reason) == ("False", "BadKubeConfig")
    problem = "load client config failed: the Secrets of namespace kueue-system cannot be watched: secrets is forbidden"
    assert message.startswith(problem)
