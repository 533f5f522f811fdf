"""The states of `benches/engine`, which Kueue was measured with too, as manifests: the same steps through Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benches.worlds import T0
from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.times import SECOND_NS, format_time

__all__ = ["STEPS", "State"]

Json = dict[str, Any]
Amounts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class State:
    """A state and what is asked of it.

    Args:
        objects: Manifests.
        asked: The Workload of which is asked what would become of it; `None`: a cycle is run.
        expected: Admissions of the cycle, or preemptions of what would become of the Workload.
        is_fair: With fair sharing?
    """

    objects: Sequence[Json]
    asked: Json | None
    expected: int
    is_fair: bool = False

    def engine(self) -> Engine:
        """An engine in this state."""
        fair = {"fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}}
        kind = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
        engine = Engine(Configuration.parse(json.dumps({**kind, **fair})) if self.is_fair else None)
        engine.apply("\n".join(map(json.dumps, self.objects)).encode(), now=T0, trusted=True)
        return engine


def thing(kind: str, name: str, spec: Json | None = None, **meta: Any) -> Json:
    """An object as an API server shows it."""
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": format_time(T0), "generation": 1, **meta}
    found = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata}
    return found if spec is None else {**found, "spec": spec}


def basics(*flavors: str) -> list[Json]:
    """Namespace `ns` and flavors."""
    return [{**thing("Namespace", "ns"), "apiVersion": "v1"}, *(thing("ResourceFlavor", name) for name in flavors)]


def group(flavors: Sequence[str], nominal: Amounts) -> Json:
    """Flavors with the same quota of each resource."""
    quotas = [{"name": resource, "nominalQuota": amount} for resource, amount in nominal.items()]
    return {"coveredResources": list(nominal), "flavors": [{"name": flavor, "resources": quotas} for flavor in flavors]}


def queue(name: str, cohort: str, groups: Sequence[Json], *, preempts: bool) -> Iterator[Json]:
    """A ClusterQueue and its LocalQueue. `preempts`: lower priority within, anything in the cohort."""
    within, reclaim = ("LowerPriority", "Any") if preempts else ("Never", "Never")
    spec = {
        "cohortName": cohort,
        "namespaceSelector": {},
        "resourceGroups": list(groups),
        "queueingStrategy": "BestEffortFIFO",
        "preemption": {"withinClusterQueue": within, "reclaimWithinCohort": reclaim},
    }
    yield thing("ClusterQueue", name, spec)
    yield thing("LocalQueue", name, {"clusterQueue": name}, namespace="ns")


def pod_set(name: str, count: int, requests: Amounts) -> Json:
    """Pods that ask for the same each."""
    containers = [{"name": "main", "resources": {"requests": dict(requests)}}]
    return {"name": name, "count": count, "template": {"spec": {"containers": containers}}}


def workload(number: int, queue: str, priority: int, pod_sets: Sequence[Json]) -> Json:
    """One that waits. Its UID is spread, so that the order of UIDs is not that of creation."""
    spread = number * 2_654_435_761 % 2**32
    meta = {
        "namespace": "ns",
        "uid": f"{spread:08x}-0000-0000-0000-{number:012x}",
        "creationTimestamp": format_time(T0 - (number + 1) * SECOND_NS),
    }
    spec = {"queueName": queue, "priority": priority, "podSets": list(pod_sets), "active": True}
    return thing("Workload", f"w{number}", spec, **meta)


def admitted(waiting: Json, flavors: Amounts, at: int) -> Json:
    """The same, Admitted in the ClusterQueue for which it waits."""
    (pods,) = waiting["spec"]["podSets"]
    requests = pods["template"]["spec"]["containers"][0]["resources"]["requests"]
    assignment = {"name": pods["name"], "flavors": dict(flavors), "resourceUsage": requests, "count": pods["count"]}
    admission = {"clusterQueue": waiting["spec"]["queueName"], "podSetAssignments": [assignment]}
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": format_time(at)}
        for kind in ("QuotaReserved", "Admitted")
    ]
    return {**waiting, "status": {"admission": admission, "conditions": conditions}}


def cycle(cpu: str, *, admits: bool) -> State:
    """Ten cohorts with quota of their own, each with a hundred ClusterQueues with one workload."""
    objects = basics("rf")
    for c in range(10):
        quota = group(["rf"], {"cpu": "1000", "memory": "1000Gi"})
        objects.append(thing("Cohort", f"co{c}", {"resourceGroups": [quota]}))
        for q in range(100):
            name = f"cq{c}-{q}"
            objects += queue(name, f"co{c}", [group(["rf"], {"cpu": "10", "memory": "10Gi"})], preempts=False)
            objects.append(workload(c * 100 + q, name, 0, [pod_set("main", 1, {"cpu": cpu, "memory": "1Gi"})]))
    return State(objects, None, 1000 if admits else 0)


_F, _G = ([f"{letter}{number}" for number in range(8)] for letter in "fg")
_ALL = {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1", "example.com/nic": "1"}
_ONE = (pod_set("main", 2, {"cpu": "1", "memory": "1Gi"}),)
_THREE = tuple(pod_set(name, count, _ALL) for name, count in (("a", 1), ("b", 2), ("c", 2)))


def assignment(n_used: int, pod_sets: Sequence[Json]) -> State:
    """In each of a hundred ClusterQueues the first flavors of both groups are used up."""
    objects, number = basics(*_F, *_G), 1
    used = {"cpu": "10", "memory": "10Gi", "example.com/gpu": "10", "example.com/nic": "10"}
    for q in range(100):
        cpu, gpu = dict(list(used.items())[:2]), dict(list(used.items())[2:])
        objects += queue(f"cq{q}", "co", [group(_F, cpu), group(_G, gpu)], preempts=False)
        for f, g in zip(_F[:n_used], _G[:n_used], strict=True):
            flavors = {"cpu": f, "memory": f, "example.com/gpu": g, "example.com/nic": g}
            objects.append(admitted(workload(number, f"cq{q}", 0, [pod_set("main", 1, used)]), flavors, T0))
            number += 1
    return State(objects, workload(0, "cq0", 0, pod_sets), 0)


def _queue_of_cpu(name: str, cohort: str, nominal: int) -> Iterator[Json]:
    return queue(name, cohort, [group(["rf"], {"cpu": str(nominal)})], preempts=True)


def _candidate(number: int, name: str, n_candidates: int) -> Json:
    waiting = workload(number, name, number * 7919 % 10, [pod_set("main", 1, {"cpu": "1"})])
    return admitted(waiting, {"cpu": "rf"}, T0 - (number * 7919 % n_candidates + 1) * SECOND_NS)


def _preemption(objects: list[Json], n_victims: int, *, is_fair: bool = False) -> State:
    asked = workload(1_000_000, "p", 100, [pod_set("main", 1, {"cpu": str(n_victims)})])
    return State(objects, asked, n_victims, is_fair)


def classical(n_candidates: int, n_victims: int) -> State:
    """A cohort in which ten ClusterQueues without quota have borrowed all that `p` has."""
    objects = [*basics("rf"), *_queue_of_cpu("p", "co", n_candidates)]
    for b in range(10):
        objects += _queue_of_cpu(f"b{b}", "co", 0)
    objects += (_candidate(i, f"b{i % 10}", n_candidates) for i in range(n_candidates))
    return _preemption(objects, n_victims)


def hierarchical(n_candidates: int, n_victims: int) -> State:
    """The same with eighty borrowers in the sixteen leaves of a tree of cohorts, of three levels."""
    objects = [*basics("rf"), *_queue_of_cpu("p", "m0-l0", n_candidates), thing("Cohort", "root", {})]
    objects += (thing("Cohort", f"m{m}", {"parentName": "root"}) for m in range(4))
    leaves = [(m, leaf) for m in range(4) for leaf in range(4)]
    objects += (thing("Cohort", f"m{m}-l{leaf}", {"parentName": f"m{m}"}) for m, leaf in leaves)
    borrowers = [(f"m{m}-l{leaf}-q{q}", f"m{m}-l{leaf}") for m, leaf in leaves for q in range(5)]
    for name, cohort in borrowers:
        objects += _queue_of_cpu(name, cohort, 0)
    objects += (_candidate(i, borrowers[i % len(borrowers)][0], n_candidates) for i in range(n_candidates))
    return _preemption(objects, n_victims)


def fair(n_victims: int) -> State:
    """Fair sharing: a hundred ClusterQueues that have borrowed a little each."""
    objects = [*basics("rf"), *_queue_of_cpu("p", "co", 100)]
    for q in range(100):
        objects += _queue_of_cpu(f"b{q}", "co", 99)
        objects += (_candidate(q * 100 + k, f"b{q}", 10_000) for k in range(100))
    return _preemption(objects, n_victims, is_fair=True)


STEPS: Mapping[str, Callable[[], State]] = {
    "Cycle/fit": lambda: cycle("5", admits=True),
    "Cycle/borrow": lambda: cycle("15", admits=True),
    "Cycle/nofit": lambda: cycle("1000000", admits=False),
    "Assign/1podset-2res-8flavors/first": lambda: assignment(0, _ONE),
    "Assign/1podset-2res-8flavors/last": lambda: assignment(7, _ONE),
    "Assign/1podset-2res-8flavors/none": lambda: assignment(8, _ONE),
    "Assign/3podsets-4res-2x8flavors/first": lambda: assignment(0, _THREE),
    "Assign/3podsets-4res-2x8flavors/last": lambda: assignment(7, _THREE),
    "Assign/3podsets-4res-2x8flavors/none": lambda: assignment(8, _THREE),
    "Preempt/classical/candidates=1000/victims=10": lambda: classical(1_000, 10),
    "Preempt/hierarchical3/candidates=1000/victims=10": lambda: hierarchical(1_000, 10),
    "Preempt/classical/candidates=1000/victims=500": lambda: classical(1_000, 500),
    "Preempt/hierarchical3/candidates=1000/victims=500": lambda: hierarchical(1_000, 500),
    "Preempt/classical/candidates=10000/victims=10": lambda: classical(10_000, 10),
    "Preempt/hierarchical3/candidates=10000/victims=10": lambda: hierarchical(10_000, 10),
    "Preempt/classical/candidates=10000/victims=5000": lambda: classical(10_000, 5_000),
    "Preempt/hierarchical3/candidates=10000/victims=5000": lambda: hierarchical(10_000, 5_000),
    "Preempt/fair/100cqs-x-100/victims=10": lambda: fair(10),
    "Preempt/fair/100cqs-x-100/victims=50": lambda: fair(50),
}
"""By the name of the step in the tables."""
