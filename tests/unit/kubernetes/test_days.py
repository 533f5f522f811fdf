"""What `kueuecore serve` runs, through days of jobs: over HTTP, in virtual time, killed now and then."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueuecore import Configuration
from kueuecore._json import object_at
from kueuecore.api_server import ApiServer, RefusedError
from kueuecore.jobs import INTEGRATIONS, Surroundings, integration_of, workloads_for
from kueuecore.jobs.context import group_of
from kueuecore.kubernetes import Api, Process, ServeSettings
from kueuecore.testing import check_invariants
from kueuecore.times import SECOND_NS, format_time, nanoseconds
from kueuecore.trials.http_replica import DiedError, HttpReplica, MortalApi
from kueuecore_apiserver import Fault, Faults, HttpApiServer, Request
from kueuecore_apiserver.crd_schema import CrdSchema
from kueuecore_apiserver.crds import crds
from kueuecore_apiserver.plain_crds import framework_crds

START = 1_767_225_600 * SECOND_NS
MINUTE = 60 * SECOND_NS
KUEUE = "kueue.x-k8s.io/v1beta2"
HOST = "kubernetes.io/hostname"
CONFIGURATION = Configuration.parse("""
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations: {frameworks: [batch/job, jobset.x-k8s.io/jobset, ray.io/rayjob, pod]}
""")
API_VERSIONS = {"Job": "batch/v1", "JobSet": "jobset.x-k8s.io/v1alpha2", "RayJob": "ray.io/v1", "Pod": "v1"}


def served(faults: Faults = lambda request: None) -> HttpApiServer:
    """A server with Kueue's kinds, whose watches end as soon as everything is sent, as a server may at any time."""

    def all_faults(request: Request) -> Fault | None:
        return Fault(watch_ends_when_idle=True) if request.verb == "watch" else faults(request)

    server = HttpApiServer(ApiServer(now=START), schemas=CrdSchema.of, faults=all_faults)
    server.load([*crds(), *framework_crds()])
    return server


def status_of(job: dict[str, Any], *, n_pods: int, stage: str) -> dict[str, Any]:
    """What the controller of a job writes into its status while it waits, runs, or when it is done."""
    runs, is_done = n_pods * (stage == "runs"), stage == "done"
    match job["kind"]:
        case "Job":
            status: dict[str, Any] = {"active": runs, "ready": runs, "succeeded": n_pods * is_done}
            return status | {"conditions": [{"type": "Complete", "status": "True", "message": "done"}] * is_done}
        case "JobSet":
            (replicated,) = job["spec"]["replicatedJobs"]
            counts = {"active": runs, "ready": runs, "succeeded": n_pods * is_done}
            status = {"replicatedJobsStatus": [{"name": replicated["name"], **counts}]}
            return status | {"conditions": [{"type": "Completed", "status": "True", "message": "done"}] * is_done}
        case "RayJob":
            deployment = {"waits": "Suspended", "runs": "Running", "done": "Complete"}[stage]
            cluster = {"state": "ready" if runs else "suspended"}
            ended = {"jobStatus": "SUCCEEDED", "message": "done"} if is_done else {}
            return {"jobDeploymentStatus": deployment, "rayClusterStatus": cluster, **ended}
        case _:
            phase = {"waits": "Pending", "runs": "Running", "done": "Succeeded"}[stage]
            return {"phase": phase, "conditions": [{"type": "Ready", "status": str(bool(runs))}]}


def is_finished(job: dict[str, Any]) -> bool:
    kind = integration_of(job)
    return kind is not None and kind.finished(job) is not None


def is_terminating(job: dict[str, Any]) -> bool:
    return "deletionTimestamp" in job["metadata"]


class Day:
    """A cluster with queues, jobs that come and run in virtual time, and who watches over them."""

    def __init__(
        self, url: str, server: HttpApiServer, dies_at: dict[int, str], *, creates_events: bool = False
    ) -> None:
        self.creates_events = creates_events
        self.cluster, self.server = server.api, server
        self.api = MortalApi.connect(server=url)
        self.api.dies, self.api.compares = self.dies, lambda path: lambda: None
        self.dies_at, self.n_writes = dies_at, 0
        self.coming: list[tuple[int, dict[str, Any]]] = []
        self.owned: list[dict[str, Any]] = []
        self.n_starts = 0
        self.most_cpus = 0
        for made in (
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}},
            {
                "apiVersion": KUEUE,
                "kind": "ResourceFlavor",
                "metadata": {"name": "spot"},
                "spec": {"nodeLabels": {"pool": "spot"}},
            },
        ):
            self.cluster.create(made)
        for name, priority in (("urgent", 100), ("normal", 0)):
            metadata = {"name": name}
            self.cluster.create(
                {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": metadata, "value": priority}
            )
        flavor = {"name": "spot", "resources": [{"name": "cpu", "nominalQuota": "4"}]}
        spec: dict[str, Any] = {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
            "preemption": {"withinClusterQueue": "LowerPriority"},
        }
        self.cluster.create({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "lab"}, "spec": spec})
        queue = {"metadata": {"name": "jobs", "namespace": "lab"}, "spec": {"clusterQueue": "lab"}}
        self.cluster.create({"apiVersion": KUEUE, "kind": "LocalQueue", **queue})

    def add_nodes(self, *names: str) -> None:
        """Nodes with a cpu each, to which pods go from now on."""
        hosts = {"kind": "Topology", "metadata": {"name": "nodes"}, "spec": {"levels": [{"nodeLabel": HOST}]}}
        self.cluster.create({"apiVersion": KUEUE, **hosts})
        self.cluster.patch("ResourceFlavor", "spot", {"spec": {"topologyName": "nodes"}})
        for name in names:
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(START)}
            metadata = {"name": name, "labels": {"pool": "spot", HOST: name}}
            status = {"allocatable": {"cpu": "1", "pods": "9"}, "conditions": [ready]}
            self.cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})

    def add(
        self, minute: int, name: str, *, pods: int, minutes: int, kind: str = "Job", priority: str = "normal"
    ) -> None:
        """A job that arrives at some minute; of kind Pod, a group of pods or a single pod."""
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        template: dict[str, Any] = {"metadata": {}, "spec": {"containers": [container], "restartPolicy": "Never"}}
        head, worker = {"template": template}, {"groupName": "w", "replicas": pods - 1, "template": template}
        replicated = {"name": "r", "replicas": pods, "template": {"spec": {"template": template}}}
        spec = {
            "Job": {"parallelism": pods, "completions": pods, "template": template},
            "JobSet": {"replicatedJobs": [replicated]},
            "RayJob": {
                "rayClusterSpec": {"headGroupSpec": head, "workerGroupSpecs": [worker]},
                "shutdownAfterJobFinishes": True,
                "submissionMode": "HTTPMode",
            },
            "Pod": template["spec"],
        }[kind]
        labels = {"kueue.x-k8s.io/queue-name": "jobs", "kueue.x-k8s.io/priority-class": priority}
        annotations = {"minutes": str(minutes)}
        if kind == "Pod" and pods > 1:
            annotations |= {
                f"kueue.x-k8s.io/pod-group-{key}": entry for key, entry in (("name", name), ("total-count", str(pods)))
            }
        for index in range(pods if kind == "Pod" else 1):
            own = f"{name}-{index}" if kind == "Pod" else name
            metadata = {"name": own, "namespace": "lab", "labels": labels, "annotations": annotations}
            made = {"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": metadata, "spec": spec}
            self.coming.append((START + minute * MINUTE, made))

    def jobs(self) -> list[dict[str, Any]]:
        return [job for kind in API_VERSIONS for job in self.cluster.list(kind)[0]]

    def dies(self) -> str:
        """Which of the writes to Workloads, jobs and pods end the process, before or after it."""
        self.n_writes += 1
        return self.dies_at.pop(self.n_writes, "")

    def restart(self) -> None:
        """A process begins: it knows nothing."""
        self.replica = HttpReplica(self.api, self.cluster, CONFIGURATION, creates_events=self.creates_events)

    def create(self, job: dict[str, Any]) -> None:
        """As Kueue's webhook leaves it: suspended, or behind a gate."""
        (made,) = workloads_for([job, *self.cluster.list("WorkloadPriorityClass")[0]]).jobs
        self.server.load([made])

    def work(self) -> None:
        """What Kubernetes does: jobs come, start, stop, and end when their time is over."""
        while self.coming and self.coming[0][0] <= self.cluster.now:
            _, job = self.coming.pop(0)
            self.create(job)
            if job["kind"] == "Pod":
                self.owned.append(job)
        for job in self.jobs():
            if is_terminating(job) and not is_finished(job):  # the kubelet kills the containers of a deleted pod
                ended = {"status": {**job.get("status", {}), "phase": "Failed"}}
                self.cluster.patch("Pod", job["metadata"]["name"], ended, namespace="lab", subresource="status")
        there = {(job["kind"], job["metadata"]["name"]) for job in self.jobs()}
        for workload in self.cluster.list("Workload")[0]:
            owners = {(reference["kind"], reference["name"]) for reference in workload["metadata"]["ownerReferences"]}
            if not owners & there:  # garbage collection
                self.cluster.delete("Workload", workload["metadata"]["name"], namespace="lab")
        alive = {job["metadata"]["name"] for job in self.jobs() if job["kind"] == "Pod" and not is_terminating(job)}
        for pod in self.owned:
            if pod["metadata"]["name"] not in alive:  # whoever wants these pods makes others
                pod["metadata"] = {**pod["metadata"], "name": f"{pod['metadata']['name']}-again"}
                self.create(pod)
        cpus = 0
        for job in self.jobs():
            kind = integration_of(job)
            assert kind is not None
            if kind.finished(job) is not None or is_terminating(job):
                continue
            n_pods = sum(pod_set.count for pod_set in kind.pod_sets(job, Surroundings()))
            stage, began = "waits", None
            if not (kind.is_suspended(job) or job["spec"].get("suspend")):
                began = job.get("status", {}).get("startTime")
                stage = "done" if began is not None and self.end_of(job) <= self.cluster.now else "runs"
                self.n_starts += n_pods * (began is None)
                cpus += n_pods
                began = began or format_time(self.cluster.now)
            status = {**status_of(job, n_pods=n_pods, stage=stage), "startTime": began}
            name = job["metadata"]["name"]
            self.cluster.patch(job["kind"], name, {"status": status}, namespace="lab", subresource="status")
        self.most_cpus = max(self.most_cpus, cpus)

    def end_of(self, job: dict[str, Any]) -> int:
        began: str = job["status"]["startTime"]
        return nanoseconds(began) + int(job["metadata"]["annotations"]["minutes"]) * MINUTE

    def next_end(self) -> int | None:
        """When something happens by itself."""
        running = [job for job in self.jobs() if job["status"].get("startTime") and not is_finished(job)]
        times = [self.end_of(job) for job in running] + [at for at, _ in self.coming[:1]]
        return min(times, default=None)

    def live(self) -> None:
        """Until nothing happens any more."""
        self.coming.sort(key=lambda entry: entry[0])
        self.restart()
        quiet = 0
        for _ in range(500):
            self.work()
            before = self.cluster.version
            try:
                self.replica.hear()
                wake = self.replica.decider.step()
            except DiedError:
                self.cluster.now += 5 * SECOND_NS
                self.restart()
                continue
            check_invariants(self.replica.decider.loop.engine)
            quiet = quiet + 1 if self.cluster.version == before else 0
            times = [time for time in (wake, self.next_end()) if time is not None]
            if quiet > 1 and not times:
                return
            # What was written is heard of a second later.
            soon = self.cluster.now + SECOND_NS
            self.cluster.now = soon if quiet < 2 else max(soon, min(times))
        raise AssertionError("it does not come to an end")


def test_a_day_of_jobs_runs_to_its_end_though_the_controller_is_killed() -> None:
    conflicts = [5, 11]
    n_patches = 0

    def meddle(request: Request) -> Fault | None:
        nonlocal n_patches
        is_patch = request.verb == "patch"
        n_patches += is_patch
        if is_patch and n_patches in conflicts:
            conflicts.remove(n_patches)
            kind = {"workloads": "Workload", "jobs": "Job", "jobsets": "JobSet", "rayjobs": "RayJob", "pods": "Pod"}
            touched = {"metadata": {"labels": {"touched": "yes"}}}
            server.api.patch(kind[request.resource], request.name, touched, namespace="lab")
        if n_patches % 9 == 8 and request.method != "GET":
            server.api.compact()
        return None

    server = served(meddle)
    kinds = {0: ("JobSet", "Job", "RayJob"), 8: ("Pod", "Pod", "JobSet"), 16: ("RayJob", "Job", "Job")}
    with server.serve() as url:
        day = Day(
            url,
            server,
            {
                2: "dies before",
                7: "dies after",
                12: "dies before",
                16: "dies after",
                30: "dies before",
                33: "dies after",
            },
        )
        for hour, (night, small, urgent) in kinds.items():
            day.add(hour * 60, f"night-{hour}", kind=night, pods=3, minutes=150)
            day.add(hour * 60 + 7, f"small-{hour}", kind=small, pods=1, minutes=20)
            day.add(hour * 60 + 30, f"urgent-{hour}", kind=urgent, pods=4, minutes=30, priority="urgent")
        day.live()
    assert len(day.jobs()) == 11
    assert all(map(is_finished, day.jobs()))
    selectors = [
        object_at(pod_set.template, "spec", "nodeSelector")
        for job in day.jobs()
        for pod_set in INTEGRATIONS[group_of(job["apiVersion"]), job["kind"]].pod_sets(job, Surroundings())
    ]
    assert selectors == [{"pool": "spot"}] * 13
    # The three that run when something urgent comes are stopped, and begin again.
    assert (day.n_starts, day.most_cpus) == (3 * (3 + 1 + 4) + 3 * 3, 4)
    workloads = server.api.list("Workload")[0]
    holding = [
        workload for workload in workloads if {"QuotaReserved"} <= true(workload) and "Finished" not in true(workload)
    ]
    assert (len(workloads), holding) == (9, [])
    assert all("Finished" in true(workload) for workload in workloads)
    assert {request.code for request in server.requests} == {200, 201, 409, 410}
    assert not day.dies_at


def test_pods_go_to_nodes_though_the_controller_is_killed() -> None:
    server = served()
    with server.serve() as url:
        day = Day(url, server, {4: "dies before", 6: "dies after", 7: "dies before"})
        day.add_nodes("n1", "n2", "n3")
        day.add(0, "pair", kind="Pod", pods=2, minutes=30)
        day.live()
    hosts = [job["spec"]["nodeSelector"].get(HOST) for job in day.jobs()]
    assert (hosts, all(map(is_finished, day.jobs()))) == (["n1", "n2"], True)
    assert not day.dies_at


def true(manifest: dict[str, Any]) -> set[str]:
    return {condition["type"] for condition in manifest["status"]["conditions"] if condition["status"] == "True"}


def test_a_write_of_which_nobody_knows_is_asked_for_until_somebody_does() -> None:
    codes: list[int] = []

    def refuse(request: Request) -> Fault | None:
        if request.verb != "patch" or request.resource != "workloads" or not codes:
            return None
        return Fault(refusal=RefusedError(codes.pop(0), "no"))

    server = served(refuse)
    with server.serve() as url:
        day = Day(url, server, {})
        day.add(0, "small", pods=1, minutes=5)
        codes += [500, 503, 429, 403]
        day.live()
    assert not codes
    assert all(map(is_finished, day.jobs()))


def test_the_roles_allow_what_is_asked_for() -> None:
    """Every request of a day of all kinds is allowed, by a role of deploy/kueuecore.yaml."""
    rules = [
        rule for manifest in manifests() if manifest["kind"] in ("ClusterRole", "Role") for rule in manifest["rules"]
    ]
    allowed = {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    server = served()
    with server.serve() as url:
        day = Day(url, server, {}, creates_events=True)
        day.add_nodes("n1", "n2", "n3", "n4")
        for hour, kind in enumerate(API_VERSIONS):
            day.add(hour * 120, f"{kind.lower()}-night", kind=kind, pods=3, minutes=50)
            day.add(hour * 120 + 20, f"{kind.lower()}-urgent", kind=kind, pods=4, minutes=5, priority="urgent")
        day.live()
    asked = {
        (request.verb, request.group, "/".join(filter(None, (request.resource, request.subresource))))
        for request in server.requests
        if request.user_agent.startswith("kueuecore/")
    }
    assert asked <= allowed, "asked for, and not allowed"
    # What such a day has no occasion for.
    kinds = {group_of(version): f"{kind.lower()}s" for kind, version in API_VERSIONS.items()}
    unused = {
        rule for rule in allowed - asked if kinds.get(rule[1]) == rule[2] and rule[0] in ("list", "watch", "patch")
    }
    assert not unused, "allowed, and not asked for"
    assert {("create", "", "events"), ("patch", "kueue.x-k8s.io", "workloads/status")} <= asked


def manifests() -> list[dict[str, Any]]:
    folder = Path(__file__).parents[3] / "deploy"
    return list(yaml.safe_load_all((folder / "kueuecore.yaml").read_text(encoding="utf-8")))


def test_each_kind_that_is_watched_may_be_listed_and_watched() -> None:
    (configured,) = (
        manifest["data"]["configuration.yaml"] for manifest in manifests() if manifest["kind"] == "ConfigMap"
    )
    process = Process(Api.connect(server="http://127.0.0.1:1"), configuration=Configuration.parse(configured))
    (role,) = (manifest for manifest in manifests() if manifest["kind"] == "ClusterRole")
    watched = {
        (group, resource)
        for rule in role["rules"]
        if {"list", "watch"} <= set(rule["verbs"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    written_only = {("", "events")}
    assert watched == {(group_of(version), plural) for version, plural in process.api.kinds.values()} - written_only | {
        ("apiextensions.k8s.io", "customresourcedefinitions")
    }
    assert ServeSettings.of(Configuration.parse(configured)).lease is not None


def test_another_job_system_prints_what_its_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(__file__).parents[3] / "examples" / "without-kubernetes"
    runpy.run_path(str(folder / "demo.py"), run_name="__main__")
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert f"```text\n{capsys.readouterr().out}```" in page
