"""Histories of fleets with faults, drawn by seed, and what must hold nevertheless.

Connections break and are restored, requests and answers are lost, events are delayed, repeated and reordered, the
manager and the workers restart, jobs of all kinds are deleted and preempted. In half of the histories the workers have
nodes that fail, leave and return (`FleetNodes`). `FleetInvariants` checks the fleet all the time.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from kueuecore._kinds import KUEUE
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.errors import ObjectRef
from kueuecore.fleet.fleet import Fleet
from kueuecore.fleet.links import LinkSettings
from kueuecore.manifests import object_ref
from kueuecore.multikueue import MANAGER, AllAtOnce, Dispatcher, Incremental, MultiKueueSettings
from kueuecore.multikueue.settings import ORIGIN_LABEL
from kueuecore.testing.fleet_invariants import FleetInvariants
from kueuecore.trials.drawn_jobs import DRAWN, drawn_job
from kueuecore.trials.fleet_nodes import FleetNodes
from kueuecore.trials.strict_objects import StrictWebhooks

__all__ = ["FleetHistory"]

_START = "2026-01-01T00:00:00Z"
_NAMESPACE = "ns"
_MINUTE = 60.0
_CHECK = "multikueue"
_WITH_NODES = 0.5
# Half of the jobs are Jobs.
_KINDS = (*DRAWN, *["Job"] * (len(DRAWN) - 2))


class FleetHistory:
    """A fleet and its faults.

    Args:
        seed: The seed from which everything follows.
        dispatcher: Decides which workers get copies; by default one of Kueue's.
        n_steps: How many steps to take before the faults end.

    Example:
        >>> happened = FleetHistory(1).play()
        >>> happened["jobs"] > 0
        True
    """

    def __init__(self, seed: int, *, dispatcher: Dispatcher | None = None, n_steps: int = 14) -> None:
        self.random = Random(seed)
        self.n_steps = n_steps
        self.happened: Counter[str] = Counter()
        # The objects of each job that was created on the manager.
        self._made: dict[str, list[ObjectRef]] = {}
        self.workers = ["west", "east", "north"][: self.random.choice((2, 2, 3))]
        settings = MultiKueueSettings(worker_lost_timeout_ns=self.random.choice((60, 900)) * 10**9)
        of_kueue = self.random.choice((AllAtOnce(), AllAtOnce(), Incremental(step_size=1, round_ns=30 * 10**9)))
        self.invariants = FleetInvariants(grace_seconds=120)
        self.nodes: FleetNodes | None = None
        self.fleet = Fleet(
            self.workers,
            now=_START,
            seed=self.random.randrange(2**32),
            links={name: self._way() for name in self.workers},
            settings=settings,
            dispatcher=dispatcher or of_kueue,
            watch=self._look,
        )
        # As strict as servers with Kueue's definitions and webhooks.
        self.checked: Counter[str] = Counter()
        self.refused: list[str] = []
        for node in self.fleet.nodes.values():
            node.api.webhooks = StrictWebhooks(self.checked, self.refused)
        self.quota: dict[str, int] = {name: self.random.randint(2, 5) for name in self.workers}
        # With a random source of their own, so that histories without nodes do not depend on it.
        of_nodes = Random(f"{seed}/nodes")
        if of_nodes.random() < _WITH_NODES:
            self.nodes = FleetNodes(self.quota, of_nodes)
        self._create_queues()
        if self.nodes is not None:
            self.nodes.create(self.fleet)
            self.happened["with nodes"] += 1
        self._create_of_others()

    def play(self) -> Counter[str]:
        """Play the history.

        Raises:
            AssertionError: An invariant does not hold.

        Returns:
            What happened, and how often.
        """
        self.fleet.wait(3)
        happenings = [self._submit] * 6 + [self._cut] * 3 + [self._mend] * 2
        happenings += [self._delete, self._drop_watch, self._restart_manager, self._restart_worker, self._intrude]
        if self.nodes is not None:
            happenings += [self._change_nodes] * 6
        for _ in range(self.n_steps if self.nodes is None else self.n_steps + 6):
            self.random.choice(happenings)()
            self.fleet.wait(self.random.choice((0.0, 0.1, 0.5, 2.0, 5.0, 20.0, 70.0, 16 * _MINUTE)))
        self._end_well()
        return self.happened

    # The objects.

    def _way(self) -> LinkSettings:
        is_bad = self.random.random() < 0.5
        return LinkSettings(
            least_ms=5,
            most_ms=self.random.choice((20, 400)),
            lost_requests=50 if is_bad else 0,
            lost_answers=50 if is_bad else 0,
            repeated_events=100,
            timeout_ms=2000,
        )

    def _create_queues(self) -> None:
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "config"}
        check = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
        self.fleet.apply([self._object("AdmissionCheck", _CHECK, check)])
        self.fleet.apply([self._object("MultiKueueConfig", "config", {"clusters": list(self.workers)})])
        for name in self.workers:
            source = {"kubeConfig": {"location": name, "locationType": "Secret"}}
            self.fleet.apply([self._object("MultiKueueCluster", name, {"clusterSource": source})])
            self.fleet.apply(self._queues(self.quota[name], {}), cluster=name)
        # The manager may have less quota than its workers together, or more.
        total = sum(self.quota.values()) + self.random.choice((-1, 0, 3))
        strategy = {"admissionChecksStrategy": {"admissionChecks": [{"name": _CHECK}]}}
        self.fleet.apply(self._queues(total, strategy))

    def _queues(self, cpu: int, more: dict[str, Any]) -> list[dict[str, Any]]:
        flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": str(cpu)}]}
        queue = {
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
            **more,
        }
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}
        flavors = [self._object("ResourceFlavor", "default", {})] if self.nodes is None else self.nodes.objects()
        return [
            namespace,
            *flavors,
            self._object("ClusterQueue", "cq", queue),
            self._object("LocalQueue", "lq", {"clusterQueue": "cq"}, _NAMESPACE),
            self._object("WorkloadPriorityClass", "high", None) | {"value": 10},
        ]

    def _create_of_others(self) -> None:
        """Create objects on the workers that are none of the manager's business."""
        for name in self.workers:
            (theirs,) = self._job("of-another", 1, "nobody")
            theirs["metadata"] = {**object_at(theirs, "metadata"), "labels": {ORIGIN_LABEL: "another"}}
            theirs["spec"] = {**object_at(theirs, "spec"), "suspend": True}
            self.fleet.apply(theirs, cluster=name)

    def _object(self, kind: str, name: str, spec: dict[str, Any] | None, namespace: str = "") -> dict[str, Any]:
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        made: dict[str, Any] = {"apiVersion": KUEUE, "kind": kind, "metadata": metadata}
        return made if spec is None else made | {"spec": spec}

    def _job(self, name: str, cpu: int, priority: str = "", kind: str = "Job") -> list[JsonObject]:
        labels = {"kueue.x-k8s.io/queue-name": "lq"}
        labels |= {"kueue.x-k8s.io/priority-class": priority} if priority else {}
        return drawn_job(kind, name, cpu, namespace=_NAMESPACE, labels=labels)

    # Events.

    def _submit(self) -> None:
        self.happened["jobs"] += 1
        name = f"job-{self.happened['jobs']}"
        # Some are too large for every worker, and wait forever.
        cpu = self.random.choice((1, 1, 2, 2, 3, 9))
        priority = self.random.choice(("", "", "high"))
        kind = self.random.choice(_KINDS)
        self.happened[kind] += 1
        run_seconds = self.random.choice((1, 10, 60, 300, 1500))
        made = self._job(name, cpu, priority, kind)
        if self.nodes is not None:
            made = [self.nodes.ask(manifest) for manifest in made]
        self._made[name] = [object_ref(manifest) for manifest in made]
        for manifest in made:
            self.fleet.submit(manifest, run_seconds=run_seconds)

    def _delete(self) -> None:
        there = [row for row in self._made.values() if self.fleet.get(row[0].kind, row[0].name, namespace=_NAMESPACE)]
        if there and not self.fleet.nodes[MANAGER].is_down:
            self.happened["deletions"] += 1
            for ref in self.random.choice(there):
                self.fleet.delete(ref.kind, ref.name, namespace=_NAMESPACE)

    def _cut(self) -> None:
        self.happened["cuts"] += 1
        self.fleet.cut(self.random.choice(self.workers))

    def _mend(self) -> None:
        self.fleet.mend(self.random.choice(self.workers))

    def _drop_watch(self) -> None:
        self.happened["ended watches"] += 1
        self.fleet.drop_watch(self.random.choice(self.workers))

    def _restart_manager(self) -> None:
        self.happened["restarts of the manager"] += 1
        self.fleet.stop_manager()
        self.fleet.wait(self.random.choice((0.0, 5.0, 60.0)))
        self.fleet.start_manager()

    def _restart_worker(self) -> None:
        self.happened["restarts of workers"] += 1
        self.fleet.restart_worker(self.random.choice(self.workers))

    def _intrude(self) -> None:
        """Create a job on a worker that is local to it and more important than those of the manager."""
        self.happened["jobs of others"] += 1
        name = f"own-{self.happened['jobs of others']}"
        worker = self.random.choice(self.workers)
        (job,) = self._job(name, self.quota[worker], "high")
        self.fleet.submit(job, run_seconds=30, cluster=worker)

    def _change_nodes(self) -> None:
        if self.nodes is not None:
            self.nodes.change(self.fleet, self.happened)

    def _look(self, fleet: Fleet) -> None:
        """Check what must always hold."""
        self.invariants(fleet)
        assert not self.refused, f"a server refuses what is written: {self.refused}"
        if self.nodes is not None:
            self.nodes.check(fleet)

    def _end_well(self) -> None:
        """End the faults, and leave enough time for everything."""
        if self.nodes is not None:
            self.nodes.end_well(self.fleet)
        for name in self.workers:
            self.fleet.mend(name)
            self.fleet.links[name].settings = LinkSettings()
        # Longer than any wait: attempts to connect, lost workers, and the run time of all jobs.
        for _ in range(60):
            self.fleet.wait(20 * _MINUTE)
            if all(self._is_done(object_) for object_ in self.fleet.objects("Workload")):
                break
        self.fleet.wait(20 * _MINUTE)
        self.invariants.check_end(self.fleet)
        self.happened["finished"] += sum(self._is_finished(object_) for object_ in self.fleet.objects("Workload"))

    def _is_finished(self, workload: JsonObject) -> bool:
        return "Finished" in conditions_that_hold(workload)

    def _is_done(self, workload: JsonObject) -> bool:
        """Return whether a Workload has finished, or is too large for every worker."""
        return _cpus(workload) > max(self.quota.values()) or self._is_finished(workload)


def _cpus(workload: JsonObject) -> int:
    """Return how many cpus a Workload requests."""
    total = 0
    for pods in list_at(workload, "spec", "podSets"):
        for container in list_at(pods, "template", "spec", "containers"):
            total += int_at(pods, "count", default=1) * int(text_at(container, "resources", "requests", "cpu"))
    return total
