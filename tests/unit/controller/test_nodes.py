"""A controller in a cluster whose nodes fail: places, releases of pods, replacements, evictions (rules/08 §§11-13)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from kueuecore import Configuration, Engine
from kueuecore._json import object_at
from kueuecore.api_server import ApiServer, RefusedError
from kueuecore.controller import Controller, Metrics, Turn, is_heartbeat
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.times import SECOND_NS
from kueuecore.writes import Answer, Verb, Write
from tests.builders import at
from tests.topologies import HOST, RACK, flavor, namespace, node, pod_set, queue, topology, workload
from tests.unit.controller.world import IN_USE, KEPT

Json = dict[str, Any]
GATE = "kueue.x-k8s.io/topology"
RANKS: Json = {"podIndexLabel": "index", "required": RACK}


class Cluster:
    """An API server with nodes in two racks, and a controller that hears all at once."""

    def __init__(self, *nodes: Json, controller: Controller | None = None) -> None:
        self.server = ApiServer(now=at(0))
        self.controller = controller or Controller(status_delay_seconds=None, watches_nodes=True)
        self.seen = 0
        lots = node("n1", "r1"), node("n2", "r1"), node("n3", "r2"), node("n4", "r2")
        racks = flavor(nodeLabels={}), topology(RACK, HOST)
        for each in (namespace(), *racks, *queue(), *(nodes or lots)):
            if each["kind"] in KEPT:
                each["metadata"]["finalizers"] = [IN_USE]
            self.server.create(each)

    def hear(self, controller: Controller | None = None) -> None:
        """All that has happened since the last time; a new controller hears all of it."""
        first = 0 if controller is not None else self.seen
        for version, event in self.server.history:
            if version > first:
                (controller or self.controller).observe(event, now=self.server.now)
        self.seen = self.server.version

    def turn(self, seconds: int = 1) -> Turn:
        """Hear, take a turn, and write what it says."""
        self.server.now += seconds * SECOND_NS
        self.hear()
        turn = self.controller.turn(self.server.now)
        for write in turn.writes:
            self.controller.done(write, self.server.carry_out(write), now=self.server.now)
        return turn

    def settle(self) -> None:
        """Turns until nothing happens, with all that is to be done."""
        for _ in range(20):
            before = self.server.version
            for write in self.turn().objects:
                self.send(write)
            wake = self.controller.next_wake(self.server.now)
            # Parked workloads are retried a second later.
            if self.server.version == before and (wake is None or wake > self.server.now + SECOND_NS):
                return
        raise AssertionError("it does not come to rest")

    def send(self, write: Write) -> Json:
        ref = write.object
        assert write.verb is Verb.PATCH
        return self.server.patch(ref.kind, ref.name, write.manifest, namespace=ref.namespace)

    def pods(self, of: str, *indices: int, prefix: str = "") -> None:
        """Pods as the job of an admitted workload makes them."""
        for index in indices:
            metadata = {
                "name": f"{prefix}{of}-{index}",
                "namespace": "ns",
                "labels": {"kueue.x-k8s.io/podset": "main", "index": str(index)},
                "annotations": {"kueue.x-k8s.io/workload": of, "kueue.x-k8s.io/podset-required-topology": RACK},
            }
            container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
            spec = {"containers": [container], "schedulingGates": [{"name": GATE}]}
            made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            self.server.create({**made, "status": {"phase": "Pending"}})

    def hosts(self) -> dict[str, str]:
        """By pod, the host to which it was released; empty while it waits."""
        pods = self.server.list("Pod")[0]
        return {pod["metadata"]["name"]: pod["spec"].get("nodeSelector", {}).get(HOST, "") for pod in pods}

    def status(self, name: str) -> Json:
        status: Json = self.server.get("Workload", name, namespace="ns")["status"]
        return status

    def conditions(self, name: str) -> set[str]:
        return set(conditions_that_hold({"status": self.status(name)}))

    def fail(self, name: str) -> None:
        self.ready(name, status="False")

    def ready(self, name: str, *, status: str = "True") -> None:
        ready = {"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:01:00Z"}
        self.server.patch("Node", name, {"status": {"conditions": [ready]}}, subresource="status")


def started(count: int = 2, **more: Any) -> Cluster:
    """A workload that is admitted, with its pods behind gates."""
    cluster = Cluster(**more)
    cluster.server.create(workload("w", pod_set(count=count, **RANKS)))
    cluster.turn()
    cluster.pods("w", *range(count))
    return cluster


def test_kinds_of_nodes_are_watched_on_request() -> None:
    assert {"Topology", "Node", "Pod"}.isdisjoint(Controller().kinds)
    assert list(Controller(watches_nodes=True).kinds)[:3] == ["Topology", "Node", "Pod"]
    saved = Controller(watches_nodes=True).save()
    assert "Node" in Controller.load(saved, now=at(0), watches_nodes=True).kinds


def test_pods_are_released_once_their_workload_is_admitted() -> None:
    cluster = Cluster()
    cluster.server.create(workload("w", pod_set(count=2, **RANKS)))
    cluster.pods("w", 1, 0)
    cluster.server.now += SECOND_NS
    cluster.hear()
    turn = cluster.controller.turn(cluster.server.now)
    # Decided, and not yet stored.
    assert [write.gained for write in turn.writes] == [("QuotaReserved", "Admitted")]
    assert turn.objects == ()
    (write,) = turn.writes
    answer = cluster.server.patch("Workload", "w", write.manifest, namespace="ns", subresource="status")
    cluster.controller.done(write, Answer(answer), now=cluster.server.now)
    assert cluster.controller.next_wake(cluster.server.now) == cluster.server.now
    releases = cluster.controller.turn(cluster.server.now).objects
    assert [(release.verb, release.workload, release.object.key) for release in releases] == [
        (Verb.PATCH, ("ns", "w"), "ns/w-0"),
        (Verb.PATCH, ("ns", "w"), "ns/w-1"),
    ]
    assert releases[0].manifest == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "w-0", "namespace": "ns", **_guard(cluster, "w-0")},
        "spec": {"nodeSelector": {HOST: "n1"}, "schedulingGates": None},
    }
    for each in releases:
        assert "schedulingGates" not in cluster.send(each)["spec"]
    cluster.settle()
    assert cluster.hosts() == {"w-0": "n1", "w-1": "n2"}


def _guard(cluster: Cluster, name: str) -> Json:
    metadata = cluster.server.get("Pod", name, namespace="ns")["metadata"]
    return {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}


def test_the_next_round_waits_for_the_last_one() -> None:
    cluster = started()
    (first, second) = cluster.turn().objects
    cluster.send(first)
    cluster.server.delete("Pod", "w-0", namespace="ns")
    cluster.pods("w", 0, prefix="new-")
    # The watch has not shown what became of the other pod.
    assert cluster.turn().objects == ()
    cluster.send(second)
    (third,) = cluster.turn().objects
    cluster.send(third)
    assert cluster.hosts() == {"new-w-0": "n1", "w-1": "n2"}


def test_a_release_without_an_answer_is_sent_again() -> None:
    cluster = started(1)
    (lost,) = cluster.turn().objects
    assert cluster.controller.next_wake(cluster.server.now) == cluster.server.now + 10 * SECOND_NS
    assert cluster.turn(9).objects == ()
    assert cluster.turn(1).objects == (lost,)


def test_a_refused_release_is_sent_again_after_a_growing_pause() -> None:
    cluster = started(1)
    for pause in (1, 2, 4):
        (refused,) = cluster.turn(0).objects
        cluster.controller.done(refused, Answer(error="no"), now=cluster.server.now)
        assert cluster.controller.next_wake(cluster.server.now) == cluster.server.now + pause * SECOND_NS
        assert cluster.turn(pause - 1).objects == ()
        cluster.server.now += SECOND_NS


def test_after_a_conflict_the_newer_pod_is_released() -> None:
    cluster = started(1)
    (stale,) = cluster.turn().objects
    cluster.server.patch("Pod", "w-0", {"metadata": {"labels": {"mine": "1"}}}, namespace="ns")
    with pytest.raises(RefusedError):
        cluster.send(stale)
    cluster.controller.done(stale, Answer(error="conflict", code=409), now=cluster.server.now)
    (again,) = cluster.turn(0).objects
    cluster.send(again)
    assert cluster.hosts() == {"w-0": "n1"}


def test_a_controller_that_begins_anew_releases_who_is_left() -> None:
    cluster = started()
    (first, _) = cluster.turn().objects
    cluster.send(first)
    fresh = Controller(status_delay_seconds=None)
    cluster.hear(fresh)
    (left,) = fresh.turn(cluster.server.now).objects
    assert (left.object.name, left.manifest["spec"]) == (
        "w-1",
        {"nodeSelector": {HOST: "n2"}, "schedulingGates": None},
    )


def test_an_offset_that_is_no_number_releases_nobody(caplog: pytest.LogCaptureFixture) -> None:
    cluster = started()
    annotations = {"kueue.x-k8s.io/pod-index-offset": "one"}
    cluster.server.patch("Pod", "w-0", {"metadata": {"annotations": annotations}}, namespace="ns")
    assert cluster.turn().objects == ()
    assert "no pod of ns/w is released" in caplog.text
    assert cluster.controller.next_wake(cluster.server.now) is None
    annotations["kueue.x-k8s.io/pod-index-offset"] = "0"
    cluster.server.patch("Pod", "w-0", {"metadata": {"annotations": annotations}}, namespace="ns")
    assert len(cluster.turn().objects) == 2


def test_removed_gates_are_counted() -> None:
    metrics = Metrics()
    cluster = started(controller=Controller(status_delay_seconds=None, metrics=metrics))
    cluster.settle()
    text = metrics.text(cluster.controller.engine)
    (line,) = (line for line in text.splitlines() if line.startswith("kueue_pod_scheduling_gate_removal_seconds_count"))
    assert 'gate="kueue.x-k8s.io/topology"' in line or "kueue.x-k8s.io/topology" in line
    assert line.endswith(" 2")


# Nodes that fail.


def test_a_node_that_fails_is_recorded_and_replaced() -> None:
    cluster = started(1)
    cluster.fail("n1")
    (mark,) = cluster.turn().writes
    assert cluster.status("w")["unhealthyNodes"] == [{"name": "n1"}]
    assert mark.gained == ()
    # Its pod would go there.
    assert cluster.hosts() == {"w-0": ""}
    cluster.settle()
    assert "unhealthyNodes" not in cluster.status("w")
    assert cluster.hosts() == {"w-0": "n2"}


def test_pods_wait_while_their_node_is_to_be_replaced() -> None:
    # Without room elsewhere, and without failing fast.
    text = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}"
    off = Configuration.parse(text, feature_gates={"TASFailedNodeReplacementFailFast": False})
    controller = Controller(off, status_delay_seconds=None)
    cluster = Cluster(node("n1", "r1"), node("n2", "r1"), controller=controller)
    cluster.server.create(workload("w", pod_set(count=2, **RANKS)))
    cluster.turn()
    cluster.fail("n2")
    cluster.turn()
    cluster.pods("w", 0, 1)
    cluster.settle()
    assert cluster.hosts() == {"w-0": "n1", "w-1": ""}
    assert cluster.conditions("w") == {"QuotaReserved", "Admitted"}


def test_without_a_replacement_a_workload_is_evicted_at_once() -> None:
    cluster = started(2)
    cluster.settle()
    cluster.server.delete("Node", "n1")
    cluster.settle()
    message = "Workload was evicted as there was no replacement for unhealthy node(s): n1"
    assert _message(cluster, "Evicted") == message
    cluster.controller.stopped("w", namespace="ns")
    for name in ("w-0", "w-1"):
        cluster.server.delete("Pod", name, namespace="ns")
    cluster.settle()
    cluster.server.now += 3600 * SECOND_NS
    cluster.pods("w", 0, 1)
    cluster.settle()
    assert cluster.hosts() == {"w-0": "n3", "w-1": "n4"}


def _message(cluster: Cluster, kind: str) -> str:
    text: str = conditions_that_hold({"status": cluster.status("w")})[kind]["message"]  # type: ignore[assignment]
    return text


def test_a_second_node_that_fails_evicts() -> None:
    cluster = started(2)
    cluster.fail("n1")
    cluster.fail("n2")
    cluster.turn()
    expected = "Workload eviction triggered due to multiple TAS assigned node failures, including: n1, n2"
    assert _message(cluster, "Evicted") == expected


def test_a_node_that_comes_back_at_once_is_unmarked() -> None:
    cluster = started(2)
    cluster.fail("n1")
    cluster.hear()
    cluster.ready("n1")
    cluster.settle()
    assert cluster.hosts() == {"w-0": "n1", "w-1": "n2"}
    assert "unhealthyNodes" not in cluster.status("w")


def refuse(cluster: Cluster, is_refused: Callable[[Write], bool]) -> list[Write]:
    """Take a turn some of whose writes are refused, and return these."""
    cluster.server.now += SECOND_NS
    cluster.hear()
    refused = []
    for write in cluster.controller.turn(cluster.server.now).writes:
        if is_refused(write):
            refused.append(write)
            cluster.controller.done(write, Answer(error="refused"), now=cluster.server.now)
        else:
            cluster.controller.done(write, cluster.server.carry_out(write), now=cluster.server.now)
    return refused


def test_a_node_that_comes_back_is_unmarked_even_if_its_replacement_is_refused() -> None:
    cluster = Cluster(node("n1", "r1", cpu=2), node("n2", "r1", cpu=2))
    cluster.server.create(workload("w", pod_set(count=2, **RANKS)))
    cluster.turn()
    done = {"status": {"reclaimablePods": [{"name": "main", "count": 1}]}}
    cluster.server.patch("Workload", "w", done, namespace="ns", subresource="status")
    cluster.fail("n1")
    cluster.turn()
    cluster.ready("n1")
    # A second pass leaves out the pod that has ended, and an admission may not change (rules/08 §16).
    (first,) = refuse(cluster, lambda write: "admission" in object_at(write.manifest, "status"))
    # Both in one write: the node is well again, and the pass on the older copy replaces it all the same.
    assert object_at(first.manifest, "status")["unhealthyNodes"] is None
    assert cluster.controller.next_wake(cluster.server.now) == cluster.server.now
    refuse(cluster, lambda write: "admission" in object_at(write.manifest, "status"))
    assert "unhealthyNodes" not in cluster.status("w")


def test_a_refused_mark_or_eviction_is_written_again() -> None:
    cluster = started(2)
    cluster.fail("n1")
    assert len(refuse(cluster, lambda write: True)) == 1
    cluster.fail("n2")
    assert len(refuse(cluster, lambda write: True)) == 1
    cluster.turn()
    assert "n1, n2" in _message(cluster, "Evicted")


def test_capacity_that_comes_back_brings_back_workloads() -> None:
    cluster = Cluster(node("n1", "r1", ready="False"))
    cluster.server.create(workload("w", pod_set(**RANKS)))
    cluster.settle()
    assert cluster.conditions("w") == set()
    cluster.ready("n1")
    cluster.settle()
    assert cluster.conditions("w") == {"QuotaReserved", "Admitted"}


def test_pods_outside_kueue_take_room_until_they_end() -> None:
    cluster = Cluster(node("n1", "r1"))
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    foreign = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "daemon", "namespace": "system"}}
    cluster.server.create(
        {**foreign, "spec": {"nodeName": "n1", "containers": [container]}, "status": {"phase": "Running"}}
    )
    cluster.server.create(workload("w", pod_set(**RANKS)))
    cluster.settle()
    assert cluster.conditions("w") == set()
    cluster.server.patch("Pod", "daemon", {"status": {"phase": "Succeeded"}}, namespace="system", subresource="status")
    cluster.settle()
    assert cluster.conditions("w") == {"QuotaReserved", "Admitted"}


# Heartbeats.


def _ready(it: Json) -> Json:
    ready: Json = it["status"]["conditions"][0]
    return ready


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        (lambda it: _ready(it).update(lastHeartbeatTime="2026-01-01T00:00:10Z", message="fine"), False),
        (lambda it: it["status"].update(images=[{"names": ["busybox"]}], nodeInfo={"kubeletVersion": "v1"}), False),
        (lambda it: it["metadata"].update(managedFields=[{"manager": "kubelet", "operation": "Update"}]), False),
        (lambda it: it["status"].update(capacity={"cpu": "9"}), False),
        (lambda it: it["spec"].update(unschedulable=False), False),
        (lambda it: _ready(it).update(status="Unknown"), True),
        (lambda it: _ready(it).update(lastTransitionTime="2026-01-01T00:00:10Z"), True),
        (lambda it: it["status"]["conditions"].append({"type": "DiskPressure", "status": "True"}), True),
        (lambda it: it["status"]["allocatable"].update(cpu=7), True),
        (lambda it: it["metadata"]["labels"].update(zone="z"), True),
        (lambda it: it["metadata"].update(annotations={"a": "b"}), True),
        (lambda it: it["spec"].update(unschedulable=True), True),
        (lambda it: it["spec"].update(taints=[{"key": "gone", "effect": "NoSchedule"}]), True),
    ],
    ids=[
        "time and message of a condition",
        "images and versions",
        "who wrote what",
        "capacity",
        "what is so by default",
        "readiness",
        "since when it is ready",
        "another condition",
        "allocatable",
        "labels",
        "annotations",
        "cordoned",
        "taints",
    ],
)
def test_a_heartbeat_is_what_an_engine_takes_for_no_change(change: Callable[[Json], None], counts: bool) -> None:
    before = node("n1", "r1", cpu=8)
    after = copy.deepcopy(before)
    after["metadata"]["resourceVersion"] = "7"
    change(after)
    assert is_heartbeat(before, after) is not counts
    engine = Engine()
    engine.apply([before, after], now=at(0))
    assert engine._core._n_cluster_changes() == (2 if counts else 1)


def finalizers(turn: Turn) -> list[tuple[str, Any]]:
    """The finalizers that are to be written, by Topology."""
    written: list[tuple[str, Any]] = []
    for object_ in turn.objects:
        manifest: Any = object_.manifest
        assert (object_.verb, object_.object.kind, object_.workload) == (Verb.PATCH, "Topology", ("", ""))
        written.append((object_.object.name, manifest["metadata"]["finalizers"]))
    return written


def test_a_topology_stays_while_a_flavor_names_it() -> None:
    cluster = Cluster()
    cluster.server.delete("Topology", "default")
    assert finalizers(cluster.turn()) == []
    cluster.turn()
    assert cluster.controller.next_wake(cluster.server.now) is None
    # The flavor is in use by a ClusterQueue; somebody takes its finalizer off.
    cluster.server.patch("ResourceFlavor", "tas", {"metadata": {"finalizers": []}})
    cluster.server.delete("ResourceFlavor", "tas")
    turn = cluster.turn()
    assert finalizers(turn) == [("default", [])]
    cluster.send(turn.objects[0])
    assert cluster.server.find("Topology", "default") is None
    assert cluster.turn().objects == ()


def test_a_topology_gets_its_finalizer_beside_those_of_others() -> None:
    cluster = Cluster()
    other = topology(HOST, name="other")
    other["metadata"]["finalizers"] = ["example.com/mine"]
    cluster.server.create(other)
    turn = cluster.turn()
    assert finalizers(turn) == [("other", ["example.com/mine", IN_USE])]
    cluster.send(turn.objects[0])
    assert cluster.turn().objects == ()
    cluster.server.delete("Topology", "other")
    assert finalizers(cluster.turn()) == [("other", ["example.com/mine"])]


def test_a_finalizer_that_was_refused_is_written_for_the_next_version() -> None:
    cluster = Cluster()
    other = topology(HOST, name="other")
    cluster.server.create(other)
    (write,) = cluster.turn().objects
    cluster.server.patch("Topology", "other", {"metadata": {"finalizers": ["example.com/mine"]}})
    with pytest.raises(RefusedError) as refused:
        cluster.send(write)
    cluster.controller.done(write, Answer(error=str(refused.value), code=409), now=cluster.server.now)
    assert cluster.controller.next_wake(cluster.server.now) == cluster.server.now + SECOND_NS
    assert finalizers(cluster.turn(0)) == [("other", ["example.com/mine", IN_USE])]
