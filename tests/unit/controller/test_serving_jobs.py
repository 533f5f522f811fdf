"""StatefulSets and LeaderWorkerSets under the controllers of jobs: their pods join them, wait, run and are let go."""

from __future__ import annotations

import itertools
from typing import Any

from kueuecore.api_server import ApiServer
from kueuecore.controller import Controller, JobController
from kueuecore.errors import ObjectRef
from kueuecore.jobs import JobsConfiguration
from kueuecore.jobs.leader_worker_set import LEADER_WORKER_SET
from kueuecore.objects import Namespace
from kueuecore.times import SECOND_NS
from tests.builders import cluster_queue, flavor
from tests.jobs import POD

Json = dict[str, Any]
AN = "kueue.x-k8s.io/"
LWS = "leaderworkerset.sigs.k8s.io/"
GATES = [{"name": f"{AN}admission"}, {"name": f"{AN}topology"}]


class Cluster:
    """An API server, and the two controllers that watch all of it, with one kind of jobs enabled."""

    def __init__(self, framework: str, cpu: int) -> None:
        self.api = ApiServer()
        self.loop = Controller()
        self.jobs = JobController(self.loop, configuration=JobsConfiguration(frameworks=[framework]))
        self.now = 0
        queue: Json = {"apiVersion": f"{AN}v1beta2", "kind": "LocalQueue", "metadata": {"name": "lq", "namespace": "n"}}
        for entry in (Namespace("n"), flavor(), cluster_queue(cpu=cpu)):
            self.api.create(entry.to_manifest())
        self.api.create(queue | {"spec": {"clusterQueue": "cq"}})
        self.look()

    def look(self) -> None:
        """Hear all that has happened, and do what follows, until nothing does."""
        for _ in range(30):
            for kind in self.jobs.kinds:
                objects, version = self.api.list(kind)
                self.jobs.resync(kind, objects, now=self.now, resource_version=version)
            works = self.jobs.take_due(self.now)
            for work in works:
                # If two jobs share a Workload, one is quicker, and the other refused.
                self.jobs.done(work.job, self.api.carry_out(*work.requests), now=self.now)
            writes = () if any(work.requests for work in works) else self.loop.turn(self.now).writes
            for write in writes:
                self.loop.done(write, self.api.carry_out(write), now=self.now)
            self.now += 2 * SECOND_NS
            if not any(work.requests for work in works) and not writes:
                return
        raise AssertionError("it never settles")

    def gated(self) -> list[str]:
        pods: Any = self.api.list("Pod")[0]
        return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("schedulingGates")]

    def conditions(self) -> list[dict[str, tuple[str, str]]]:
        workloads: Any = self.api.list("Workload")[0]
        return [
            {
                condition["type"]: (condition["status"], condition["reason"])
                for condition in workload["status"]["conditions"]
            }
            for workload in workloads
        ]


def stateful(replicas: int) -> Json:
    template = {"metadata": {"annotations": {f"{AN}pod-suspending-parent": "statefulset"}}, **POD}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "s", "namespace": "n", "labels": {f"{AN}queue-name": "lq"}},
        "spec": {"replicas": replicas, "template": template},
    }


def pod_of(owner: Json, name: str, **metadata: Any) -> Json:
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")} | {"controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "n", "ownerReferences": [reference], **metadata},
        "spec": {**POD["spec"], "schedulingGates": GATES},
    }


def test_pods_of_a_stateful_set_run_once_all_of_it_fits_and_make_room_at_zero() -> None:
    cluster = Cluster("statefulset", cpu=2)
    made: Any = cluster.api.create(stateful(2))
    cluster.look()
    annotations = {f"{AN}pod-suspending-parent": "statefulset"}
    for index in range(2):
        cluster.api.create(pod_of(made, f"s-{index}", annotations=annotations))
    cluster.look()
    assert cluster.gated() == []
    (workload,) = cluster.conditions()
    assert workload["Admitted"][0] == "True"
    # Scaled to zero it gives its quota back, which it gets again later.
    stored: Any = cluster.api.get("StatefulSet", "s", namespace="n")
    cluster.api.update({**stored, "spec": {**stored["spec"], "replicas": 0}})
    for index in range(2):
        cluster.api.delete("Pod", f"s-{index}", namespace="n")
    cluster.look()
    (workload,) = cluster.conditions()
    assert (workload["QuotaReserved"], workload["Admitted"]) == (("False", "OnHold"), ("False", "NoReservation"))
    cluster.api.update({**cluster.api.get("StatefulSet", "s", namespace="n"), "spec": stored["spec"]})
    cluster.look()
    (workload,) = cluster.conditions()
    assert workload["Admitted"][0] == "True"


def test_groups_of_a_leader_worker_set_run_one_by_one_and_go_free_when_it_is_deleted() -> None:
    cluster = Cluster("leaderworkerset.x-k8s.io/leaderworkerset", cpu=3)
    labels = {f"{AN}queue-name": "lq"}
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": POD}}
    made: Any = cluster.api.create(
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": "s", "namespace": "n", "labels": labels},
            "spec": spec,
        }
    )
    annotations = {f"{AN}pod-suspending-parent": "leaderworkerset.x-k8s.io/leaderworkerset"}
    template = {"metadata": {"annotations": annotations}, **POD}
    sets: Any = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "s", "namespace": "n", "labels": {f"{LWS}name": "s"}},
        "spec": {"replicas": 2, "template": template},
    }
    leaders: Any = cluster.api.create(sets)
    serving = {f"{AN}pod-group-serving": "true"}
    for group, index in itertools.product(range(2), range(2)):
        numbered = {f"{LWS}name": "s", f"{LWS}group-index": str(group), **labels}
        pod = pod_of(leaders, f"s-{group}-{index}", labels=numbered, annotations={**annotations, **serving})
        cluster.api.create(pod)
    cluster.look()
    assert cluster.gated() == ["s-1-0", "s-1-1"]
    cluster.api.delete("LeaderWorkerSet", made["metadata"]["name"], namespace="n")
    cluster.look()
    assert cluster.gated() == []


def test_a_set_is_looked_at_with_its_own_pods_alone() -> None:
    jobs = JobController(Controller(), configuration=JobsConfiguration(frameworks=[LEADER_WORKER_SET.framework]))
    store = jobs._store
    one, two = stateful(1), stateful(1)
    two["metadata"]["name"] = "t"
    group: Json = {f"{LWS}name": "s"}
    leader = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": one["metadata"]}
    for plain in (one, two):
        plain["metadata"]["uid"] = plain["metadata"]["name"]
        jobs.observe({"type": "ADDED", "object": plain}, now=0)
    own, other = pod_of(one, "s-0", labels=group), pod_of(two, "t-0")
    for pod in (own, other):
        jobs.observe({"type": "ADDED", "object": pod}, now=0)
    assert store.surroundings(one).members == [own]
    assert store.surroundings(leader).members == [own]
    jobs.observe({"type": "DELETED", "object": own}, now=0)
    assert store.surroundings(one).members == []
    assert set(store.touched_by(other)) == {ObjectRef("Pod", "t-0", "n"), ObjectRef("StatefulSet", "t", "n")}
