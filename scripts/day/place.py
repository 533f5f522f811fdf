"""Where the day is played: a fake API server in this process, or a given cluster."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from kueuecore._json import text_at
from kueuecore.kubernetes import Api, list_all
from kueuecore.webhooks import admit
from kueuecore_apiserver import Closing, Fault, HttpApiServer, Request
from kueuecore_apiserver.crd_schema import CrdSchema
from kueuecore_apiserver.crds import crds
from scripts.day.life import Life
from scripts.day.timetable import Kill
from scripts.day.timetable import nodes as planned_nodes

__all__ = ["Fake", "Given", "Place"]

_Object = dict[str, Any]
_KINDS = {
    "Job": ("batch/v1", "jobs"),
    "Workload": ("kueue.x-k8s.io/v1beta2", "workloads"),
    "Namespace": ("v1", "namespaces"),
    "Node": ("v1", "nodes"),
    "Topology": ("kueue.x-k8s.io/v1beta2", "topologies"),
    "ResourceFlavor": ("kueue.x-k8s.io/v1beta2", "resourceflavors"),
    "WorkloadPriorityClass": ("kueue.x-k8s.io/v1beta2", "workloadpriorityclasses"),
    "ClusterQueue": ("kueue.x-k8s.io/v1beta2", "clusterqueues"),
    "LocalQueue": ("kueue.x-k8s.io/v1beta2", "localqueues"),
}


class Place(Protocol):
    """Where the day is played."""

    pause_seconds: float
    """How long to wait for late events."""

    @property
    def arguments(self) -> list[str]:
        """Return the arguments that point `kueuecore serve` at it."""

    def connect(self) -> Api:
        """Return a client."""

    def nodes(self) -> list[_Object]:
        """Return the nodes to create."""

    def begin_step(self) -> None:
        """Let time pass."""

    def mark(self) -> int:
        """Return a number that changes with every event of jobs and Workloads."""

    def advance(self) -> None:
        """Let jobs and pods react to what was written to them."""

    def end(self, job: str) -> bool:
        """End a job that has run long enough; return whether ending jobs is our task here."""

    def lose(self, node: str) -> bool:
        """Lose a node; return whether there is one to lose."""

    def restore(self, node: str) -> bool:
        """Restore it."""

    def kill(self, kill: Kill, pid: int) -> threading.Event:
        """Kill a replica at the next such moment; return an event that is then set."""


class Fake:
    """A fake API server, as strict as a real one, with Kubernetes' controllers around it."""

    pause_seconds = 0.04

    def __init__(self) -> None:
        # Kueue's kinds by their CustomResourceDefinitions, and its webhooks.
        self._server = HttpApiServer(clock=time.time_ns, schemas=CrdSchema.of, webhooks=admit, collects_garbage=True)
        self._server.load([*crds(), *_namespaces()])
        self._life = Life(self._server.api)
        self._lost: dict[str, _Object] = {}
        self._n_changes = 0
        self._server.api.listeners.append(self._count)

    def _count(self, kind: str, event: _Object, before: _Object | None) -> None:
        self._n_changes += kind in ("Job", "Workload", "Pod")

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.stop()

    @property
    def arguments(self) -> list[str]:
        """Return the arguments that point `kueuecore serve` at it."""
        return ["--server", self._server.url]

    def connect(self) -> Api:
        """Return a client."""
        return Api.connect(server=self._server.url, kinds=_KINDS)

    def nodes(self) -> list[_Object]:
        """Return the nodes to create."""
        return list(planned_nodes())

    def begin_step(self) -> None:
        """Let time pass."""
        self._server.call(lambda _: self._life.begin_step())

    def mark(self) -> int:
        """Return a number that changes with every event of jobs and Workloads."""
        return self._n_changes

    def advance(self) -> None:
        """Let jobs and pods react to what was written to them."""
        self._server.call(lambda _: self._life.advance())

    def end(self, job: str) -> bool:
        """End a job that has run long enough; return whether it was running."""
        return self._server.call(lambda _: self._life.end(job))

    def lose(self, node: str) -> bool:
        """Lose a node and everything that runs on it."""
        self._lost[node] = self._server.call(lambda _: self._life.lose(node))
        return True

    def restore(self, node: str) -> bool:
        """Restore it."""
        self._server.call(lambda _: self._life.restore(self._lost.pop(node)))
        return True

    def kill(self, kill: Kill, pid: int) -> threading.Event:
        """Kill a replica at the next such moment; return an event that is then set."""
        happened = threading.Event()

        def strike() -> None:
            os.kill(pid, signal.SIGKILL)
            happened.set()

        def written(kind: str, event: _Object, before: _Object | None) -> None:
            # Called once it is stored, before any watch shows it.
            if kind == "Workload" and event["type"] == "MODIFIED" and not happened.is_set():
                strike()
                self._server.api.listeners.remove(written)

        def asked(request: Request) -> Fault | None:
            if request.verb != "patch" or request.subresource != "status" or request.resource != "workloads":
                return None
            strike()
            self._server.faults = None
            return Fault(closing=Closing.BEFORE)

        if kill.moment == "after a write":
            self._server.call(lambda api: api.listeners.append(written))
        elif kill.moment == "in a status write":
            self._server.faults = asked
        else:
            strike()
        return happened


class Given:
    """A given cluster. Its jobs run by themselves, and its nodes are left alone.

    Args:
        kubeconfig: How to reach it.
        context: A context in that file.
    """

    pause_seconds = 2.0

    def __init__(self, kubeconfig: Path, context: str | None) -> None:
        self._kubeconfig, self._context = kubeconfig, context

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def arguments(self) -> list[str]:
        """Return the arguments that point `kueuecore serve` at it."""
        context = ["--context", self._context] if self._context else []
        return ["--kubeconfig", str(self._kubeconfig), *context]

    def connect(self) -> Api:
        """Return a client."""
        return Api.connect(kubeconfig=self._kubeconfig, context=self._context, kinds=_KINDS)

    def nodes(self) -> list[_Object]:
        """Return none: nodes with GPUs must exist, or jobs that need them wait."""
        return []

    def begin_step(self) -> None:
        """Do nothing: the cluster has its own clock."""

    def mark(self) -> int:
        """Return the sum of the versions of jobs and Workloads."""
        api = self.connect()
        versions = (list_all(api, kind)[0] for kind in ("Job", "Workload"))
        return sum(int(text_at(object_, "metadata", "resourceVersion")) for objects in versions for object_ in objects)

    def advance(self) -> None:
        """Do nothing: the cluster does it."""

    def end(self, job: str) -> bool:
        """Do nothing: the cluster does it."""
        return False

    def lose(self, node: str) -> bool:
        """Do nothing: nodes are left alone."""
        return False

    def restore(self, node: str) -> bool:
        """Do nothing: nodes are left alone."""
        return False

    def kill(self, kill: Kill, pid: int) -> threading.Event:
        """Kill the replica at once: the moments of a foreign server are unknown."""
        os.kill(pid, signal.SIGKILL)
        happened = threading.Event()
        happened.set()
        return happened


def _namespaces() -> list[_Object]:
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("default", "kueue-system")
    ]
