"""Cycles that Kueue and the engine both run: states like those of `benches/engine`, as manifests, and their heads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benches.states import Amounts, Json, admitted, basics, group, pod_set, queue, thing, workload
from benches.worlds import T0
from kueuecore.configuration import Configuration
from kueuecore.decisions import Decision
from kueuecore.engine import Engine
from kueuecore.releases import Release
from kueuecore.times import SECOND_NS, format_time

__all__ = ["CYCLES", "RELEASE", "Cycle", "Decided", "flat", "placing", "preempting", "tree"]

RELEASE = "0.19.2"
"""The release of Kueue: the one that tests/oracle/0.19 is built from."""

_AFTER_SECONDS = 10
_RUN = {"cycleStepMs": 1000, "quietCycles": 2}
_CONFIGURATION = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
_BLOCK, _RACK, _HOST = "example.com/block", "example.com/rack", "kubernetes.io/hostname"
_N_CHILDREN, _N_LEVELS_BELOW_ROOT = 4, 3
_N_VICTIMS = 40
_N_RACKS, _N_HOSTS = 10, 25
_KEEPS_TREE = "TASCacheTopologyTree"


@dataclass(frozen=True, slots=True)
class Decided:
    """What a cycle decided.

    Args:
        admitted: Key to ClusterQueue, and name, count, flavors and place of each pod set.
        preempted: Key of a victim, the reason, and the key of its preemptor.
        parked: Keys of the workloads that wait until something changes.
    """

    admitted: Mapping[str, object]
    preempted: frozenset[tuple[str, str, str]]
    parked: frozenset[str]


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle, and what is there before it.

    Args:
        objects: What is there, admitted workloads included.
        heads: Workloads that come then, a head of each ClusterQueue.
        earlier: Workloads that came before them, and had a cycle of their own.
        is_fair: With fair sharing?
        gate: A feature gate to switch on; empty: none.
    """

    objects: Sequence[Json]
    heads: Sequence[Json]
    earlier: Sequence[Json] = ()
    is_fair: bool = False
    gate: str = ""

    @property
    def number(self) -> int:
        """Its number, from 0."""
        return 1 if self.earlier else 0

    @property
    def _gates(self) -> dict[str, bool]:
        return {self.gate: True} if self.gate else {}

    def _settings(self) -> Json:
        strategies = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
        return {"fairSharing": {"preemptionStrategies": strategies}} if self.is_fair else {}

    def case(self, name: str) -> Json:
        """A run for the program of tests/oracle that ends with this cycle."""
        created = [(0, entry) for entry in self.earlier] + [(_AFTER_SECONDS, head) for head in self.heads]
        return {
            "id": name,
            "kind": "trace",
            "kueue": Release.named(RELEASE).tag,
            "featureGates": self._gates,
            "config": {**_RUN, "now": format_time(T0), "maxCycles": self.number + 1, **self._settings()},
            "objects": list(self.objects),
            "input": {"events": [{"at": at, "op": "create", "object": entry} for at, entry in created]},
        }

    def engine(self) -> Engine:
        """An engine for which this cycle is due."""
        configuration = json.dumps({**_CONFIGURATION, **self._settings()})
        engine = Engine(Configuration.parse(configuration, feature_gates=self._gates, release=RELEASE))
        engine.apply(_lines(self.objects), now=T0, trusted=True)
        if self.earlier:
            engine.apply(_lines(self.earlier), now=T0, trusted=True)
            engine.cycle(T0)
        engine.apply(_lines(self.heads), now=self.now, trusted=True)
        return engine

    @property
    def now(self) -> int:
        """When it is."""
        return T0 + _AFTER_SECONDS * SECOND_NS

    def of_kueue(self, answer: Json) -> Decided:
        """What Kueue decided in it, by its answer to the case."""
        found: Json = next((cycle for cycle in answer["cycles"] if cycle["n"] == self.number + 1), {})
        return Decided(
            {
                error["key"]: (error["clusterQueue"], [_assigned(**pods) for pods in error["podSets"]])
                for error in found.get("admitted", ())
            },
            frozenset((error["key"], error["reason"], error["preemptor"]) for error in found.get("preempting", ())),
            frozenset(found.get("inadmissible", ())),
        )

    @staticmethod
    def of_engine(decision: Decision) -> Decided:
        """What the engine decided in it."""
        return Decided(
            {
                admission.key: (
                    admission.cluster_queue,
                    [
                        _assigned(pods.name, pods.count, pods.flavors, pods.topology_assignment)
                        for pods in admission.pod_sets
                    ],
                )
                for admission in decision.admissions
            },
            frozenset((preemption.key, preemption.reason, preemption.preemptor) for preemption in decision.preemptions),
            frozenset((*(pending.key for pending in decision.pending if pending.is_parked), *decision.parked)),
        )


def _assigned(
    name: str,
    count: int,
    flavors: Mapping[str, str],
    topologyAssignment: Mapping[str, Any] | None = None,  # noqa: N803
) -> tuple[str, int, Json, Json | None]:
    place = None if topologyAssignment is None else dict(topologyAssignment)
    return name, count, dict(flavors), place


def _lines(objects: Sequence[Json]) -> bytes:
    return "\n".join(map(json.dumps, objects)).encode()


def _pods(cpu: int, _: int) -> Json:
    return pod_set("main", 1, {"cpu": str(cpu), "memory": "1Gi"})


def _pods_of_a_shape(cpu: int, number: int) -> Json:
    """No two numbers have the same requests, nor the same node selector."""
    pods = pod_set("main", 1, {"cpu": f"{cpu * 1000 + number}m", "memory": f"{1024 * 1024 + number}Ki"})
    pods["template"]["spec"]["nodeSelector"] = {"example.com/rack": f"r{number}"}
    return pods


def _with_quota(name: str, cohort: str) -> Iterator[Json]:
    return queue(name, cohort, [group(["rf"], {"cpu": "10", "memory": "10Gi"})], preempts=False)


def flat(cpu: int, pods: Callable[[int, int], Json] = _pods, *, n_cohorts: int = 10, n_queues: int = 100) -> Cycle:
    """Cohorts with quota of their own, each with ClusterQueues with a head."""
    objects, heads = basics("rf"), []
    for c in range(n_cohorts):
        quota = group(["rf"], {"cpu": "1000", "memory": "1000Gi"})
        objects.append(thing("Cohort", f"co{c}", {"resourceGroups": [quota]}))
        for q in range(n_queues):
            number = c * n_queues + q
            objects += _with_quota(f"cq{c}-{q}", f"co{c}")
            heads.append(workload(number, f"cq{c}-{q}", 0, [pods(cpu, number)]))
    return Cycle(objects, heads)


def tree(cpu: int, *, is_fair: bool = False, n_heads: int = 1000) -> Cycle:
    """Five levels: a root that has all that can be borrowed, three levels of cohorts, and ClusterQueues with a head."""
    quota = group(["rf"], {"cpu": str(n_heads * 10), "memory": f"{n_heads * 10}Gi"})
    objects = [*basics("rf"), thing("Cohort", "co", {"resourceGroups": [quota]})]
    level = ["co"]
    for _ in range(_N_LEVELS_BELOW_ROOT):
        below = [(parent, f"{parent}-{child}") for parent in level for child in range(_N_CHILDREN)]
        objects += (thing("Cohort", name, {"parentName": parent}) for parent, name in below)
        level = [name for _, name in below]
    for number in range(n_heads):
        objects += _with_quota(f"cq{number}", level[number % len(level)])
    heads = [workload(number, f"cq{number}", 0, [_pods(cpu, number)]) for number in range(n_heads)]
    return Cycle(objects, heads, is_fair=is_fair)


def preempting(n_heads: int, n_candidates: int) -> Cycle:
    """Each head is within the quota of its ClusterQueue, which two others of its cohort have borrowed."""
    objects, heads = basics("rf"), []

    def of_cpu(name: str, cohort: str, cpu: int) -> Iterator[Json]:
        return queue(name, cohort, [group(["rf"], {"cpu": str(cpu)})], preempts=True)

    for h in range(n_heads):
        cohort, preemptor, borrowers = f"co{h}", f"p{h}", (f"b{h}-0", f"b{h}-1")
        objects += of_cpu(preemptor, cohort, n_candidates)
        for name in borrowers:
            objects += of_cpu(name, cohort, 0)
        for c in range(n_candidates):
            number = h * n_candidates + c
            candidate = workload(number, borrowers[c % 2], 0, [pod_set("main", 1, {"cpu": "1"})])
            objects.append(admitted(candidate, {"cpu": "rf"}, T0 - number * SECOND_NS))
        pods = pod_set("main", 1, {"cpu": str(_N_VICTIMS)})
        heads.append(workload(n_heads * n_candidates + h, preemptor, 100, [pods]))
    return Cycle(objects, heads)


def placing(n_nodes: int, n_heads: int = 1, *, gate: str = "") -> Cycle:
    """Heads of 64 pods, each for one of the racks in blocks; such a head has had its place before."""
    levels = [{"nodeLabel": label} for label in (_BLOCK, _RACK, _HOST)]
    flavor = {"nodeLabels": {"example.com/site": "here"}, "topologyName": "default"}
    objects = [
        *basics(),
        thing("Topology", "default", {"levels": levels}),
        thing("ResourceFlavor", "tas", flavor),
        *(_node(number, {"cpu": "8", "memory": "64Gi", "pods": "110"}) for number in range(n_nodes)),
    ]
    quota = group(["tas"], {"cpu": "1000000", "memory": "1000000Gi"})
    for number in range(n_heads):
        objects += queue(f"cq{number}", "co", [quota], preempts=False)
    pods = {**pod_set("main", 64, {"cpu": "1", "memory": "1Gi"}), "topologyRequest": {"required": _RACK}}
    heads = [workload(number, f"cq{number}", 0, [pods]) for number in range(n_heads)]
    return Cycle(objects, heads, earlier=[workload(n_heads, "cq0", 0, [pods])], gate=gate)


def _node(number: int, room: Amounts) -> Json:
    name, rack, block = f"n{number:05}", number // _N_HOSTS, number // _N_HOSTS // _N_RACKS
    labels = {_BLOCK: f"b{block:04}", _RACK: f"r{rack:04}", _HOST: name, "example.com/site": "here"}
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": format_time(T0)}
    node = {**thing("Node", name, labels=labels), "apiVersion": "v1"}
    return {**node, "status": {"allocatable": dict(room), "conditions": [ready]}}


CYCLES: Mapping[str, Callable[[], Cycle]] = {
    "1,000 heads, all fit": lambda: flat(5),
    "1,000 heads, all borrow": lambda: flat(15),
    "1,000 heads, none fits": lambda: flat(1_000_000),
    "1,000 heads of distinct shapes": lambda: flat(5, _pods_of_a_shape),
    "1,000 heads, five cohort levels": lambda: tree(15),
    "1,000 heads, five cohort levels, fair sharing": lambda: tree(15, is_fair=True),
    "25 heads that preempt 40 of 400 candidates each": lambda: preempting(25, 400),
    "64 pods in a rack, 40,000 nodes": lambda: placing(40_000),
    f"64 pods in a rack, 40,000 nodes, {_KEEPS_TREE}": lambda: placing(40_000, gate=_KEEPS_TREE),
    "20 heads of 64 pods, 40,000 nodes": lambda: placing(40_000, 20),
    f"20 heads of 64 pods, 40,000 nodes, {_KEEPS_TREE}": lambda: placing(40_000, 20, gate=_KEEPS_TREE),
}
"""By what they are."""
