"""Two replicas of `kueuecore serve` while leaders die, servers are away, and queues and quotas change under way."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from scripts.clusters.place import wait_for
from tests.cluster.scenes import Scene

LEASE_LOST = 69
QUEUES = ("a", "b", "c")


@contextmanager
def fed(scene: Scene, queues: list[str], *, every: float) -> Iterator[Callable[[], set[str]]]:
    """Create jobs all the time; give a function that ends that and returns their names."""
    chosen, over, names = random.Random(1), threading.Event(), list[str]()

    def feed() -> None:
        while not over.wait(every):
            name = f"j{len(names):03}"
            pods, priority = chosen.choice((1, 1, 2, 3)), chosen.choice(("low", "low", "high"))
            scene.job(name, chosen.choice(queues), pods=pods, seconds=chosen.choice((0.5, 2.0, 5.0)), priority=priority)
            names.append(name)

    def end() -> set[str]:
        over.set()
        feeder.join()
        return set(names)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        yield end
    finally:
        end()


@pytest.mark.slow
def test_no_job_is_lost_or_runs_twice_whatever_fails(scene: Scene) -> None:
    replicas = scene.serve()
    queues = [
        scene.queue("a", 4, cohort="all", borrowing=4),
        scene.queue("b", 4, cohort="all", lending=2),
        scene.queue("c", 4, cohort="all"),
    ]
    more_done = _progress(scene)
    with fed(scene, queues, every=0.25) as end:
        more_done("at first")
        replicas.kill_leader()
        more_done("after a killed leader")
        stopped = replicas.stop_leader(seconds=30)
        assert stopped.process.wait(10) == LEASE_LOST, "it leaves once it goes on"
        more_done("after a stopped leader")
        scene.give(queues[0], 1)
        scene.cluster.restart(seconds=1.5)
        more_done("after a restart of the server")
        scene.give(queues[0], 6)
        scene.delete("ClusterQueue", queues[1])
        scene.delete("LocalQueue", queues[2])
        replicas.kill_leader()
        wait_for(lambda: scene.find("ClusterQueue", queues[1]) is None, "the deleted queue has gone", seconds=60)
        scene.queue("b", 4, cohort="all", lending=2)
        scene.queue("c", 4, cohort="all")
        more_done("after queues were deleted")
        scene.cluster.stall(seconds=4.0)
        more_done("after the storage was away")
        names = end()
    scene.wait_for_completion(names, seconds=180)
    scene.check()
    assert len(names) > 80
    replicas.close()


def _progress(scene: Scene) -> Callable[[str], None]:
    def more_done(when: str) -> None:
        wanted = len(scene.ledger.completed(scene.name)) + 5

        def is_done() -> bool:
            assert scene.replicas is not None
            scene.replicas.tend()
            return len(scene.ledger.completed(scene.name)) >= wanted

        wait_for(is_done, f"five more jobs end {when}", seconds=60)

    return more_done
