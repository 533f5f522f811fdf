"""The nodes of the workers in histories of fleets: they fail, leave and return; their events are late or repeated."""

from __future__ import annotations

from collections import Counter
from random import Random

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._kinds import KUEUE
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.fleet.fleet import Fleet
from kueuecore.reference.topology.encoding import decoded
from kueuecore.times import SECOND_NS, format_time

__all__ = ["HOST", "RACK", "FleetNodes"]

HOST, RACK = "kubernetes.io/hostname", "example.com/rack"
_TAINT = {"key": "example.com/broken", "effect": "NoExecute"}


class FleetNodes:
    """Two racks of nodes on each worker.

    Args:
        cpus: How many cpus of quota each worker has: its nodes have as many together, or more.
        random: The source of all choices.

    Example:
        >>> nodes = FleetNodes({"west": 4}, Random(1))
        >>> sum(nodes.capacity["west"].values()) >= 4
        True
    """

    def __init__(self, cpus: dict[str, int], random: Random) -> None:
        self._random = random
        self.capacity: dict[str, dict[str, int]] = {}
        """The cpus of each node, by worker and node."""
        for worker, quota in cpus.items():
            sizes = [random.choice((1, 2, 3))]
            while sum(sizes) < quota or len(sizes) < 2:
                sizes.append(random.choice((1, 2, 3)))
            self.capacity[worker] = {f"{worker}-{index}": size for index, size in enumerate(sizes)}
        # The version of each API server up to which it was checked.
        self._seen: dict[str, int] = {}

    def objects(self) -> list[JsonObject]:
        """Return the Topology and the flavor that every cluster has, including the manager."""
        levels: JsonObject = {"levels": [{"nodeLabel": RACK}, {"nodeLabel": HOST}]}
        flavor: JsonObject = {"topologyName": "racks", "nodeLabels": {"pool": "all"}}
        return [_kueue("Topology", "racks", levels), _kueue("ResourceFlavor", "default", flavor)]

    def create(self, fleet: Fleet) -> None:
        """Create all nodes."""
        for worker, nodes in self.capacity.items():
            fleet.apply([self._node(worker, name, fleet.now) for name in nodes], cluster=worker)

    def ask(self, job: JsonObject) -> JsonObject:
        """Return the same Job; it may now require or prefer a single rack."""
        wanted = self._random.choice(("", "preferred", "preferred", "required"))
        n_pods = object_at(job, "spec").get("parallelism")
        # Each worker has a rack with room for one pod, once it is empty.
        if text_at(job, "kind") != "Job" or not wanted or (wanted == "required" and n_pods != 1):
            return job
        spec = object_at(job, "spec")
        annotations: JsonObject = {f"kueue.x-k8s.io/podset-{wanted}-topology": RACK}
        template: JsonObject = {**object_at(spec, "template"), "metadata": {"annotations": annotations}}
        return {**job, "spec": {**spec, "template": template}}

    # Events.

    def change(self, fleet: Fleet, happened: Counter[str]) -> None:
        """Change a node, or which events about its nodes a worker receives."""
        worker = self._random.choice([*self.capacity])
        match self._random.choice(("fail", "fail", "taint", "delete", "come back", "hold back", "catch up")):
            case "hold back":
                happened["workers that hear late of nodes"] += 1
                fleet.hold_back(worker, "Node")
            case "catch up":
                fleet.catch_up(worker, repeats=self._random.random() < 0.5)
            case what:
                self._change_node(fleet, worker, self._random.choice([*self.capacity[worker]]), what, happened)

    def end_well(self, fleet: Fleet) -> None:
        """Heal all nodes, and let every worker know."""
        self.create(fleet)
        for worker in self.capacity:
            fleet.catch_up(worker)

    def _change_node(self, fleet: Fleet, worker: str, name: str, what: str, happened: Counter[str]) -> None:
        is_there = fleet.get("Node", name, cluster=worker) is not None
        if what == "delete":
            if is_there:
                happened["nodes that go"] += 1
                fleet.delete("Node", name, cluster=worker)
            return
        happened["nodes that come back" if what == "come back" else "nodes that fail"] += 1
        fleet.apply(self._node(worker, name, fleet.now, what), cluster=worker)

    def _node(self, worker: str, name: str, now: int, what: str = "") -> JsonObject:
        number = int(name.rpartition("-")[2])
        cpu = self.capacity[worker][name]
        ready: JsonObject = {
            "type": "Ready",
            "status": "False" if what == "fail" else "True",
            "lastTransitionTime": format_time(now // SECOND_NS * SECOND_NS),
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {HOST: name, RACK: f"rack-{number % 2}", "pool": "all"}},
            "spec": {"taints": [dict(_TAINT)] if what == "taint" else []},
            "status": {"allocatable": {"cpu": str(cpu), "pods": "20"}, "conditions": [ready]},
        }

    # Invariants.

    def check(self, fleet: Fleet) -> None:
        """Check that no node has more pods of jobs with quota than cpus, whoever knows what of it.

        Two things are not counted: inactive workloads, whose quota Kueue gives away before their jobs have stopped, and
        nodes with a workload of several pod sets, which a cycle does not add up (rules/08 §11.6).

        Raises:
            AssertionError: A node has more.
        """
        for worker, capacity in self.capacity.items():
            api = fleet.nodes[worker].api
            if self._seen.get(worker) == api.version:
                continue
            self._seen[worker] = api.version
            used, left_out = Counter[str](), set[str]()
            for workload in fleet.objects("Workload", cluster=worker):
                held = conditions_that_hold(workload)
                is_active = object_at(workload, "spec").get("active") is not False
                if "QuotaReserved" not in held or "Finished" in held or not is_active:
                    continue
                hosts = _hosts(workload)
                used += hosts
                if len(list_at(workload, "spec", "podSets")) > 1:
                    left_out |= hosts.keys()
            for name, count in used.items():
                assert count <= capacity[name] or name in left_out, f"{count} pods on {name} of {capacity[name]} cpus"


def _hosts(workload: JsonObject) -> Counter[str]:
    """Return how many pods of a Workload are on each node; each requests one cpu."""
    hosts: Counter[str] = Counter()
    for pods in list_at(workload, "status", "admission", "podSetAssignments"):
        place = decoded(object_at(pods, "topologyAssignment") or None)
        for values, count in place.domains if place is not None else ():
            hosts[values[-1]] += count
    return hosts


def _kueue(kind: str, name: str, spec: JsonObject) -> JsonObject:
    return {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name}, "spec": spec}
