"""What an API server refuses, empties or drops of Kueue's objects, and was taken or refused otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kueuecore import Engine
from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import Manifest

BIG = 2**63


def manifest(kind: str, spec: dict[str, Any], **metadata: Any) -> Manifest:
    meta = {"name": "x", **({"namespace": "ns"} if kind in ("Workload", "LocalQueue") else {}), **metadata}
    return Manifest({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": meta, "spec": spec})


def workload(**pod: Any) -> Manifest:
    containers = pod.pop("containers", [{"name": "c"}])
    template = {"spec": {"containers": containers, **pod}}
    return manifest("Workload", {"podSets": [{"name": "main", "count": 1, "template": template}]})


def cluster_queue(quota: Any, **spec: Any) -> Manifest:
    flavor = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": quota}]}
    return manifest("ClusterQueue", {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}], **spec})


def terms(*terms: Mapping[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def refusals(made: Manifest) -> list[tuple[str, str]]:
    with pytest.raises(ManifestError) as caught:
        Engine().apply([made])
    problems: Sequence[Problem] = caught.value.problems
    return [(problem.field, problem.message) for problem in problems]


@pytest.mark.parametrize(
    ("made", "field", "message"),
    [
        (cluster_queue(BIG), "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota", 'Invalid value: "number"'),
        (cluster_queue(1, fairSharing={"weight": BIG}), "spec.fairSharing.weight", 'Invalid value: "number"'),
        (
            workload(containers=[{"name": "c", "resources": {"requests": {"cpu": BIG}}}]),
            "spec.podSets[0].template.spec.containers[0].resources.requests.cpu",
            'Invalid value: "number"',
        ),
        (
            workload(containers=[{"name": "c", "resources": {"limits": {"cpu": 10**30}}}]),
            "spec.podSets[0].template.spec.containers[0].resources.limits.cpu",
            'Invalid value: "number"',
        ),
        (
            workload(affinity=terms({"matchExpressions": [{"operator": "Exists"}]})),
            "spec.podSets[0].template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            ".nodeSelectorTerms[0].matchExpressions[0].key",
            "Required value",
        ),
        (
            workload(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}),
            "spec.podSets[0].template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            ".nodeSelectorTerms",
            "Required value",
        ),
        (
            workload(affinity=terms({"matchFields": 5})),
            "spec.podSets[0].template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            ".nodeSelectorTerms[0].matchFields",
            'Invalid value: "integer"',
        ),
        (workload(restartPolicy=5), "spec.podSets[0].template.spec.restartPolicy", 'Invalid value: "integer"'),
        (
            workload(containers=[{"name": "c", "image": {}}]),
            "spec.podSets[0].template.spec.containers[0].image",
            'Invalid value: "object"',
        ),
        (workload(resourceClaims="c"), "spec.podSets[0].template.spec.resourceClaims", 'Invalid value: "string"'),
        (
            workload(containers=[{"name": "c", "resources": {"claims": [5]}}]),
            "spec.podSets[0].template.spec.containers[0].resources.claims[0]",
            'Invalid value: "integer"',
        ),
        (manifest("ResourceFlavor", {}, finalizers=["kueue.x-k8s.io/é"]), "metadata.finalizers", "name part"),
    ],
)
def test_a_server_refuses_it(made: Manifest, field: str, message: str) -> None:
    found = refusals(made)
    assert any(path == field and message in text for path, text in found), found


def test_labels_that_are_null_are_empty() -> None:
    engine = Engine()
    engine.apply([manifest("ResourceFlavor", {}, name="f", labels={"a": None})])
    selector = {"matchLabels": {"team": ""}}
    engine.apply(
        [
            cluster_queue(4, namespaceSelector=selector),
            manifest("LocalQueue", {"clusterQueue": "x"}),
            Manifest({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "labels": {"team": None}}}),
            manifest("Workload", {"queueName": "x", "podSets": [_pods({"cpu": 1})]}),
        ]
    )
    assert [admission.key for admission in engine.cycle(now="2026-01-01T00:00:00Z").admissions] == ["ns/x"]


def test_node_labels_and_requests_that_are_null_are_dropped() -> None:
    engine = Engine()
    flavor = manifest("ResourceFlavor", {"nodeLabels": {"zone": None, "disk": "ssd"}}, name="f")
    engine.apply(
        [
            Manifest({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}),
            flavor,
            cluster_queue(4, namespaceSelector={}),
            manifest("LocalQueue", {"clusterQueue": "x"}),
            manifest("Workload", {"queueName": "x", "podSets": [_pods({"cpu": 1, "example.com/gpu": None})]}),
        ]
    )
    (admission,) = engine.cycle(now="2026-01-01T00:00:00Z").admissions
    assert dict(admission.pod_sets[0].resource_usage) == {"cpu": "1"}


def _pods(requests: Mapping[str, Any]) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": requests}}]
    return {"name": "main", "count": 1, "template": {"spec": {"containers": containers}}}


def test_an_admission_without_a_cluster_queue_can_be_read_again() -> None:
    admitted = workload()
    admitted.object["status"] = {"admission": {"podSetAssignments": [{"name": "main", "count": 1}]}}
    engine = Engine()
    engine.apply([admitted])
    status = engine.workload("x", namespace="ns").status
    assert status["admission"] == {"podSetAssignments": [{"name": "main", "count": 1}]}
    Engine().apply([Manifest({**admitted.object, "status": dict(status)})])
