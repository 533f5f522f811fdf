"""What an event of a watch costs a controller, beside its apply by an engine alone: `python benches/events.py`.

A Workload of 2.3 kB and a Node of 6.6 kB, each as an API server sends it after another write of the same object. Both
take what a client hands over: an object of Python, and for `with its JSON` also the bytes that it was read from. CPU
time, the least of the rounds, in which all take turns. Exits with 1 if an event as `kueuecore serve` takes
it in, the last line, costs more than `--most` times its apply.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benches.figures import duration  # after the path to it is known
from benches.worlds import T0, World
from kueuecore.controller import Controller, JobController
from kueuecore.engine import Engine
from kueuecore.provisioning import ProvisioningController

N_EVENTS = 200
_TIME = "2026-01-01T00:00:00Z"


def workload() -> dict[str, Any]:
    """A Workload of a Job as Kueue makes it, 2.3 kB."""
    env = [{"name": f"SETTING_{index}", "value": f"value of setting {index}"} for index in range(15)]
    container = {
        "name": "main",
        "image": "registry.example.com/team/training:1.27.3",
        "command": ["python", "-m", "training", "--epochs=20"],
        "env": env,
        "resources": {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"cpu": "2", "memory": "4Gi"}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    spec = {
        "containers": [container],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
    }
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "training", "uid": "0c2f6a34-6d2b-4cf1-9d1f-5b5bb17f3b10"}
    pending = (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed"
    )
    condition = {
        "type": "QuotaReserved",
        "status": "False",
        "reason": "Pending",
        "message": pending,
        "observedGeneration": 1,
        "lastTransitionTime": _TIME,
    }
    requests = [{"name": "main", "resources": {"cpu": "6", "memory": "12Gi"}}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": "job-training-8f4b2",
            "namespace": "ns",
            "uid": "5a5a5a5a-6d2b-4cf1-9d1f-5b5bb17f3b10",
            "generation": 1,
            "creationTimestamp": _TIME,
            "finalizers": ["kueue.x-k8s.io/resource-in-use"],
            "labels": {"kueue.x-k8s.io/job-uid": "0c2f6a34-6d2b-4cf1-9d1f-5b5bb17f3b10"},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "active": True,
            "queueName": "queue-00000",
            "priority": 0,
            "priorityClassName": "",
            "podSets": [
                {"name": "main", "count": 3, "template": {"metadata": {"labels": {"app": "training"}}, "spec": spec}}
            ],
        },
        "status": {"conditions": [condition], "resourceRequests": requests},
    }


def node() -> dict[str, Any]:
    """A Node as a cloud shows it, 6.6 kB."""
    labels = {f"cloud.example.com/label-{index}": f"value-of-the-label-{index}" for index in range(18)}
    kinds = ("MemoryPressure", "DiskPressure", "PIDPressure", "FrequentKubeletRestart", "ReadonlyFilesystem", "Ready")
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": f"KubeletHas{kind}",
            "message": f"the kubelet says this of {kind}",
            "lastHeartbeatTime": _TIME,
            "lastTransitionTime": _TIME,
        }
        for kind in kinds
    ]
    names = [f"registry.example.com/library/image-{index}@sha256:{index:064}" for index in range(24)]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "node-0",
            "uid": "7b7b7b7b-6d2b-4cf1-9d1f-5b5bb17f3b10",
            "creationTimestamp": _TIME,
            "labels": {**labels, "kubernetes.io/hostname": "node-0"},
            "annotations": {"node.alpha.kubernetes.io/ttl": "0", "volumes.example.com/attach-detach": "true"},
        },
        "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"], "providerID": "cloud:///zone-a/node-0"},
        "status": {
            "capacity": {"cpu": "64", "memory": "263856Mi", "pods": "110", "ephemeral-storage": "98831908Ki"},
            "allocatable": {"cpu": "63770m", "memory": "257223Mi", "pods": "110", "ephemeral-storage": "47093746742"},
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "node-0"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "architecture": "amd64",
                "kernelVersion": "6.1.0",
                "osImage": "Linux",
                "operatingSystem": "linux",
            },
            "images": [{"names": [name], "sizeBytes": 104_857_600} for name in names],
        },
    }


class Clock:
    """Gives every event of an object another version."""

    def __init__(self, manifest: dict[str, Any]) -> None:
        self._manifest = manifest
        self._version = 1000

    def objects(self) -> list[dict[str, Any]]:
        """The next versions."""
        found = []
        for _ in range(N_EVENTS):
            self._version += 1
            text = json.dumps(self._manifest)
            found.append(json.loads(text))
            found[-1]["metadata"]["resourceVersion"] = str(self._version)
        return found


def nanoseconds_of(call: Callable[[Any], object], arguments: list[Any]) -> float:
    """CPU time of one call."""
    began = time.process_time_ns()
    for argument in arguments:
        call(argument)
    return (time.process_time_ns() - began) / len(arguments)


def controller() -> Controller:
    """A controller of a small cluster, with what `kueuecore serve` has by default."""
    made = Controller(checks=(ProvisioningController(),), watches_nodes=True)
    for index, line in enumerate(World(1).cluster().splitlines()):
        manifest = json.loads(line)
        manifest["metadata"] |= {"uid": f"uid-{index}", "resourceVersion": str(index + 1)}
        made.observe({"type": "ADDED", "object": manifest}, now=T0)
    return made


def measured(manifest: dict[str, Any], n_rounds: int) -> dict[str, float]:
    """CPU time of one event, by who takes it in."""
    clock = Clock(manifest)
    engine = Engine()
    engine.apply(World(1).cluster(), now=T0)
    loop, jobs = controller(), JobController(controller())

    def events() -> list[tuple[dict[str, Any], bytes]]:
        lines = [json.dumps(object_, separators=(",", ":")).encode() for object_ in clock.objects()]
        return [({"type": "MODIFIED", "object": json.loads(line)}, line) for line in lines]

    ways: dict[str, tuple[Callable[[Any], object], Callable[[], list[Any]]]] = {
        "apply": (lambda it: engine.apply(it[0]["object"], now=T0, trusted=True), events),
        "apply of its JSON alone": (lambda it: engine.apply(it[1], now=T0, trusted=True), events),
        "event": (lambda it: loop.observe(it[0], now=T0), events),
        "event with its JSON": (lambda it: loop.observe(it[0], now=T0, data=it[1]), events),
        "the same for jobs, too": (lambda it: jobs.observe(it[0], now=T0, data=it[1]), events),
    }
    rounds = [{name: nanoseconds_of(call, made()) for name, (call, made) in ways.items()} for _ in range(n_rounds)]
    return {name: min(other[name] for other in rounds) for name in ways}


def main() -> None:
    """Measure both objects and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="of which the quickest counts")
    parser.add_argument("--most", type=float, default=1.5, help="an event may cost this many times its apply")
    options = parser.parse_args()
    is_slow = False
    for name, manifest in (("Workload", workload()), ("Node", node())):
        times = measured(manifest, options.rounds)
        size = len(json.dumps(manifest, separators=(",", ":"))) / 1000
        print(f"{name} of {size:.1f} kB")
        for what, took in times.items():
            print(f"  {what:23} {duration(took):>10}  {took / times['apply']:5.2f} of its apply")
        is_slow |= times["the same for jobs, too"] > options.most * times["apply"]
    sys.exit(is_slow)


if __name__ == "__main__":
    main()
