"""Small worlds with nodes in racks, for what Kueue 0.20 decides otherwise about topology."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from kueuecore.conformance import answer
from kueuecore.testing.play import first_difference
from tests.unit.releases.test_changes import compared

Json = dict[str, Any]

HOST, RACK, BLOCK = "kubernetes.io/hostname", "example.com/rack", "example.com/block"
RACKS, HOSTS = (BLOCK, RACK), (BLOCK, RACK, HOST)


def node(name: str, rack: str = "r1", cpu: int = 4, *, block: str = "b1", **parts: Any) -> Json:
    """A node in a rack; `labels` are added to its own, `taints` are its taints."""
    labels = {BLOCK: block, RACK: rack, HOST: name, "pool": "p", **parts.get("labels", {})}
    ready = {"type": "Ready", "status": "True", "reason": "r", "message": "", "lastTransitionTime": _time(0)}
    status = {"allocatable": {"cpu": str(cpu), "pods": "110"}, "conditions": [ready]}
    spec = {"taints": parts["taints"]} if "taints" in parts else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def pod_set(count: int, cpu: int, request: Json | None = None, *, name: str = "main", **spec: Any) -> Json:
    """A pod set whose pods ask for so many CPUs."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    pod = {"containers": [container], "restartPolicy": "Never", **spec}
    made: Json = {"name": name, "count": count, "template": {"spec": pod}}
    return made if request is None else {**made, "topologyRequest": request}


def created(name: str, at: int, *pod_sets: Json, queue: str = "a", **parts: Any) -> Json:
    """The creation of a workload that does not end: `annotations`, and fields of its spec in `spec`."""
    metadata: Json = {
        "name": name,
        "namespace": "ns",
        "uid": parts.get("uid", f"uid-{name}"),
        "creationTimestamp": _time(at),
    }
    if "annotations" in parts:
        metadata["annotations"] = parts["annotations"]
    spec = {"queueName": queue, "priority": 0, "podSets": list(pod_sets), **parts.get("spec", {})}
    made = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata, "spec": spec}
    return {"at": at, "op": "create", "object": made}


def world(
    levels: Iterable[str],
    nodes: Iterable[Json],
    events: Iterable[Json],
    *,
    gates: Mapping[str, bool] | None = None,
    queues: Mapping[str, str] | None = None,
    objects: Iterable[Json] = (),
    **case: Any,
) -> Json:
    """A run: nodes of one flavor, a ClusterQueue for each LocalQueue with the flavor it names."""
    topology = {"levels": [{"nodeLabel": level} for level in levels]}
    pairs = queues or {"a": "tas"}
    made = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "labels": {}}},
        _object("Topology", "default", topology),
        *(
            _object("ResourceFlavor", pair, {"topologyName": "default", "nodeLabels": {"pool": "p"}})
            for pair in sorted({*pairs.values()})
        ),
        *nodes,
        *objects,
    ]
    for name, flavor in pairs.items():
        quota = {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": "1000"}]}
        groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
        spec = {"namespaceSelector": {}, "queueingStrategy": "BestEffortFIFO", "resourceGroups": groups}
        made.append(_object("ClusterQueue", f"queue-{name}", {**spec, **case.get("queue", {})}))
        made.append(_object("LocalQueue", name, {"clusterQueue": f"queue-{name}"}, namespace="ns"))
    config = {"now": _time(0), "cycleStepMs": 1000, "maxCycles": 200, "quietCycles": 2, **case.get("config", {})}
    return {
        "kind": "trace",
        "id": "a world",
        "featureGates": dict(gates or {}),
        "config": config,
        "objects": made,
        "input": {"events": list(events)},
        "changes": case.get("changes", {}),
    }


def played(case: Json) -> Json:
    """What engine and reference answer alike."""
    of_engine, of_reference = answer(case), answer(case, by="reference")
    assert first_difference(compared(of_engine), compared(of_reference)) is None
    return of_engine


def places(case: Json, workload: str = "w") -> list[list[Any]] | None:
    """Where the pods of a workload were placed first, by pod set in order: `[values, count]` in the published order."""
    for cycle in played(case)["cycles"]:
        for admitted in cycle.get("admitted", ()):
            if admitted["key"] == f"ns/{workload}":
                return [list(domains(set_.get("topologyAssignment"))) for set_ in admitted["podSets"]]
    return None


def says(case: Json, text: str) -> bool:
    """Whether any message or status says this."""
    return text in json.dumps(played(case), ensure_ascii=False).replace('\\"', '"')


def domains(assignment: Json | None) -> Iterable[tuple[str, int]]:
    """The domains of an assignment in the published order, each with its pods."""
    for part in (assignment or {}).get("slices", ()):
        n = part["domainCount"]
        columns = [_column(values, n) for values in part["valuesPerLevel"]]
        counts = part["podCounts"]
        per_domain = counts["individual"] if "individual" in counts else [counts["universal"]] * n
        for index in range(n):
            yield "/".join(column[index] for column in columns), per_domain[index]


def _column(values: Json, n: int) -> list[str]:
    if "universal" in values:
        return [values["universal"]] * n
    parts = values["individual"]
    return [f"{parts.get('prefix', '')}{root}{parts.get('suffix', '')}" for root in parts["roots"]]


def _object(kind: str, name: str, spec: Json, **metadata: str) -> Json:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def _time(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"
