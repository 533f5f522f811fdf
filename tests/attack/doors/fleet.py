"""Fleets and clusters in virtual time."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from kueuecore import Configuration
from kueuecore.fleet import Fleet, LinkSettings, NodeSettings
from kueuecore.multikueue import Manager
from kueuecore.multikueue.policies import Overflow
from kueuecore.objects import Namespace
from kueuecore.simulation import VirtualCluster
from tests.attack.case import Case
from tests.attack.documents import JOBS, KINDS, WORKLOAD, examples
from tests.attack.doors.calls import Call, case_of
from tests.builders import T0, cluster_queue, flavor, local_queue

__all__ = ["draw"]

_PARTS = (*KINDS, *JOBS)
_JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"namespace": "ns", "name": "a", "labels": {"kueue.x-k8s.io/queue-name": "lq"}},
    "spec": {
        "template": {
            "spec": {
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}],
                "restartPolicy": "Never",
            }
        }
    },
}
_CREATE = {"at": 0, "op": "create", "object": WORKLOAD, "runSeconds": 5, "readySeconds": [1, 2], "failSeconds": 1}
_OBJECTS = [entry.to_manifest() for entry in (Namespace("ns"), flavor(), cluster_queue(), local_queue())]


def draw(rng: Random) -> Case:
    """A wrong call of a fleet, a cluster, or their settings."""
    call = rng.choice([_fleet, _fleet_call, _cluster, _cluster_call, _settings, _story])(rng)
    return case_of(rng, call, parts=_PARTS)


def _fleet(rng: Random) -> Call:
    def made(**given: Any) -> None:
        fleet = Fleet(given.pop("workers"), **given)
        fleet.apply(_OBJECTS)
        fleet.submit(_JOB, run_seconds=5)
        fleet.wait(5)

    given = {
        "workers": ["west", "east"],
        "now": T0,
        "seed": 1,
        "nodes": {"west": NodeSettings()},
        "overflow": Overflow({"lq": "user-queue"}),
        "links": {"west": LinkSettings()},
    }
    return Call("Fleet", made, given, seconds=10, others=("nodes", "links"))


def _fleet_call(rng: Random) -> Call:
    fleet = Fleet(["west"], now=T0)
    fleet.apply(_OBJECTS)
    name = rng.choice(["apply", "submit", "cut", "mend", "drop_watch", "restart_worker", "advance", "wait", "objects"])
    calls: dict[str, dict[str, Any]] = {
        "apply": {"manifests": _OBJECTS, "cluster": "west"},
        "submit": {"job": _JOB, "run_seconds": 5},
        "advance": {"until": T0 + 10**9},
        "wait": {"seconds": 5},
        "objects": {"kind": "Job", "cluster": "west"},
    }
    given = calls.get(name, {"cluster": "west"})
    function = getattr(fleet, name)
    positional = next(iter(given))

    def called(**arguments: Any) -> object:
        first = arguments.pop(positional)
        return function(first, **arguments)

    state = _state(fleet)
    return Call(f"Fleet.{name}", called, given, state, lambda _: fleet.wait(5), seconds=10, others=("worker",))


def _state(fleet: Fleet) -> Callable[[], object]:
    return lambda: (fleet.now, [node.api.version for node in fleet.nodes.values()])


def _cluster(rng: Random) -> Call:
    def made(**given: Any) -> None:
        events = given.pop("events")
        cluster = VirtualCluster(given.pop("objects"), **given)
        cluster.schedule(events)
        cluster.advance()
        cluster.run()

    given = {
        "objects": _OBJECTS,
        "events": [copy.deepcopy(_CREATE)],
        "configuration": rng.choice([None, Configuration()]),
        "now": T0,
        "trusted": False,
        "cycle_seconds": 1.0,
        "max_cycles": 100,
        "eviction_seconds": 1.0,
        "messages": True,
        "checks": (),
    }
    return Call("VirtualCluster", made, given, seconds=10, others=("run_seconds", "fail_seconds", "ready_seconds"))


def _cluster_call(rng: Random) -> Call:
    cluster = VirtualCluster(_OBJECTS, now=T0, max_cycles=100)
    given = {
        "manifest": WORKLOAD,
        "run_seconds": 5,
        "ready_seconds": [1],
        "fail_seconds": 1,
        "recover_seconds": 1,
        "now": T0,
    }

    def submit(**arguments: Any) -> None:
        cluster.submit(arguments.pop("manifest"), **arguments)
        cluster.advance()

    return Call("VirtualCluster.submit", submit, given, seconds=10, others=("run_seconds",))


def _settings(rng: Random) -> Call:
    return rng.choice(
        [
            Call(
                "LinkSettings",
                LinkSettings,
                {
                    "least_ms": 1,
                    "most_ms": 2,
                    "lost_requests": 1,
                    "lost_answers": 1,
                    "repeated_events": 1,
                    "timeout_ms": 9,
                },
            ),
            Call("Overflow", Overflow, {"queues": {"a": "b"}, "patience_ns": 10**9}),
            Call("Manager", Manager, {"overflow": Overflow({"a": "b"}), "dispatcher": None, "configuration": None}),
            Call(
                "NodeSettings",
                NodeSettings,
                {"configuration": None, "checks": (), "capacity": None, "starts_pods": True},
            ),
        ]
    )


def _story(rng: Random) -> Call:
    """Objects of an example of a fleet, damaged, and a job."""
    found = examples()
    fleet = Fleet(["west", "east"], now=T0)

    def apply(manager: Any, west: Any, job: Any) -> None:
        fleet.apply(manager)
        fleet.apply(west, cluster="west")
        fleet.submit(job, run_seconds=5)
        fleet.wait(60)

    given = {
        "manager": list(found["multikueue/manager.yaml"]),
        "west": list(found["multikueue/west.yaml"]),
        "job": copy.deepcopy(found["multikueue/job.yaml"][0]),
    }
    names = ("job", "manifests")
    return Call("Fleet of an example", apply, given, seconds=20, others=names)
