"""`kueuecore serve` in a cluster, as the ServiceAccount of deploy/kueuecore.yaml: on our server, and on a real one."""

from __future__ import annotations

from kueuecore._json import text_at
from scripts.clusters.place import wait_for
from tests.cluster.scenes import Scene


def test_jobs_run_once_within_quota_and_leave_few_events(scene: Scene) -> None:
    replicas = scene.serve()
    queue = scene.queue("a", 4)
    names = [f"j{number:02}" for number in range(12)]
    for name in names:
        scene.job(name, queue)
    scene.wait_for_completion(names, seconds=60)
    scene.check()
    wait_for(lambda: scene.events_by_reason()["FinishedWorkload"] >= len(names), "events have arrived")
    reasons = scene.events_by_reason()
    # Those of Kueue for a Job that waits, runs and ends.
    assert {"CreatedWorkload", "QuotaReserved", "Admitted", "Started", "FinishedWorkload"} <= reasons.keys()
    for about, events in scene.ledger.events_of(scene.name).items():
        ours = [event for event in events if text_at(event, "source", "component").startswith("kueue")]
        assert len(ours) <= 5, (about, [text_at(event, "reason") for event in ours])
    replicas.close()


def test_a_group_of_pods_runs_without_webhooks(scene: Scene) -> None:
    replicas = scene.serve(n=1)
    queue = scene.queue("a", 4)
    for name in ("first", "second"):
        scene.group(name, queue, pods=3, seconds=3.0)
    names = {f"{group}-{index}" for group in ("first", "second") for index in range(3)}
    wait_for(lambda: scene.ledger.succeeded(scene.name) >= names, "all pods have succeeded", seconds=60)
    pods = scene.ledger.of("Pod", namespace=scene.name)
    assert {row.name for row in pods} == names
    assert not [row.name for row in pods if text_at(row.object, "status", "phase") == "Failed"]
    # The hash is that of the pod before it got a node selector, as Kueue's webhook would have written it.
    latest = scene.ledger.latest("Pod", namespace=scene.name)
    hashes = {text_at(pod, "metadata", "annotations", "kueue.x-k8s.io/role-hash") for pod in latest.values()}
    assert len(hashes) == 1
    assert "" not in hashes
    scene.check()
    replicas.close()


def test_queue_and_flavor_stay_until_jobs_have_ended(scene: Scene) -> None:
    replicas = scene.serve(n=1)
    queue = scene.queue("a", 4)
    unused = scene.queue("b", 4)
    scene.job("runs", queue, seconds=8.0)
    wait_for(lambda: "Admitted" in scene.events_by_reason(), "the job runs")
    for kind, name in (("ClusterQueue", queue), ("ClusterQueue", unused), ("ResourceFlavor", scene.name)):
        scene.delete(kind, name)
    wait_for(lambda: scene.find("ClusterQueue", unused) is None, "an unused ClusterQueue goes at once", seconds=5)
    found = scene.find("ClusterQueue", queue)
    assert found is not None
    assert found["metadata"]["finalizers"] == ["kueue.x-k8s.io/resource-in-use"]
    assert scene.find("ResourceFlavor", scene.name) is not None
    wait_for(lambda: scene.reason("ClusterQueue", queue, "Active") == "Terminating", "it says so")
    scene.wait_for_completion(["runs"], seconds=30)
    wait_for(lambda: scene.find("ClusterQueue", queue) is None, "a ClusterQueue goes after its jobs", seconds=10)
    wait_for(lambda: scene.find("ResourceFlavor", scene.name) is None, "a flavor goes with its queues", seconds=10)
    scene.check()
    replicas.close()


def test_it_is_ready_soon_after_the_server_is_back(scene: Scene) -> None:
    replicas = scene.serve(n=2)
    scene.cluster.restart(seconds=2.0)
    wait_for(lambda: not any(it.unready() for it in replicas.all if it.is_alive), "all are ready again", seconds=15)
    replicas.wait_for_leader()
    queue = scene.queue("a", 4)
    scene.job("later", queue)
    scene.wait_for_completion(["later"], seconds=30)
    scene.check()
    replicas.close()
