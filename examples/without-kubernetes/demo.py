"""A batch system without Kubernetes: jobs are tuples, the clock is virtual, Kueue's rules say which of them run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kueuecore.controller import Controller
from kueuecore.manifests import read_manifests

SECOND = 10**9
# Name, team, processors, seconds that it takes, and when it comes.
JOBS = [("proteins", "biology", 5, 60, 0), ("plasma", "physics", 2, 30, 10), ("cells", "biology", 1, 20, 12)]


def workload(name: str, team: str, cpus: int) -> dict[str, Any]:
    container = {"name": "job", "image": "none", "resources": {"requests": {"cpu": cpus}}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    metadata = {"namespace": "lab", "name": name}
    spec = {"queueName": team, "podSets": [pods]}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata, "spec": spec}


def main() -> None:
    # Nobody reads the statuses of queues here.
    controller = Controller(status_delay_seconds=None)
    for manifest in read_manifests(Path(__file__).parent / "cluster.yaml"):
        controller.observe({"type": "ADDED", "object": manifest.object}, now=0)
    coming = {second: (name, team, cpus) for name, team, cpus, _, second in JOBS}
    seconds = {name: seconds for name, _, _, seconds, _ in JOBS}
    ends: dict[str, int] = {}  # of what runs
    now = 0
    while now < 1000 and (coming or len(ends) or controller.next_wake(now * SECOND) is not None):
        if now in coming:
            controller.observe({"type": "ADDED", "object": workload(*coming.pop(now))}, now=now * SECOND)
        for name in [name for name, end in ends.items() if end <= now]:
            del ends[name]
            print(f"{now:4} s  {name} has ended")
            controller.finished(name, namespace="lab")
        for write in controller.turn(now * SECOND).writes:
            # Nobody else writes here, so it is as good as done.
            controller.confirm(write, now=now * SECOND)
            if "Evicted" in write.gained and ends.pop(write.name, None) is not None:
                print(f"{now:4} s  {write.name} has to give way")
                controller.stopped(write.name, namespace="lab")
            elif controller.may_run(write.name, namespace="lab") and write.name not in ends:
                print(f"{now:4} s  {write.name} starts")
                ends[write.name] = now + seconds[write.name]
        now += 1


if __name__ == "__main__":
    main()
