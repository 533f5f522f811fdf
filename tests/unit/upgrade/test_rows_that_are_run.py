"""What rows of docs/upgrade.md say that kueuecore decides, with the gate off and on where there is one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueuecore.cli import main

PAGE = (Path(__file__).parents[3] / "docs/upgrade.md").read_text(encoding="utf-8")
# A quota by flavor and resource.
Quotas = Mapping[str, Mapping[str, object]]
V1BETA2 = "kueue.x-k8s.io/v1beta2"
BOTH = "integrations: {frameworks: [batch/job, ray.io/raycluster, deployment]}\n"


def thing(kind: str, name: str, spec: object = None, version: str = V1BETA2, **metadata: object) -> dict[str, Any]:
    made: dict[str, Any] = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}}
    return made if spec is None else made | {"spec": spec}


def flavor(name: str = "default", **spec: object) -> dict[str, Any]:
    return thing("ResourceFlavor", name, spec)


def queue(quotas: Quotas, name: str = "team", **spec: Any) -> list[dict[str, Any]]:
    """A ClusterQueue with a LocalQueue of its name: quotas by flavor and resource."""
    flavors = [
        {"name": flavor, "resources": [{"name": resource, "nominalQuota": quota} for resource, quota in of.items()]}
        for flavor, of in quotas.items()
    ]
    covered = list(next(iter(quotas.values())))
    group = {"coveredResources": covered, "flavors": flavors}
    return [
        thing("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": [group], **spec}),
        thing("LocalQueue", name, {"clusterQueue": name}, namespace="default"),
    ]


def pods(requests: Mapping[str, object], **spec: object) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}], **spec}}


def workload(
    name: str, requests: Mapping[str, object], count: int = 1, annotations: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"namespace": "default", "uid": spec.pop("uid", name)}
    metadata["creationTimestamp"] = f"2026-01-01T00:00:0{spec.pop('second', 0)}Z"
    template = spec.pop("template", None) or pods(requests)
    pod_set = {"name": "main", "count": count, "template": template, **spec.pop("pod_set", {})}
    return thing(
        "Workload",
        name,
        {"queueName": "team", "podSets": [pod_set], **spec},
        annotations=annotations or {},
        **metadata,
    )


def node(name: str = "n1", /, **allocatable: Any) -> dict[str, Any]:
    ready = [{"type": "Ready", "status": "True"}]
    labels = {"pool": "x", "kubernetes.io/hostname": name}
    return thing("Node", name, version="v1", labels=labels) | {
        "status": {"allocatable": allocatable, "conditions": ready}
    }


PLACED = [
    thing("Topology", "hosts", {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}),
    flavor(topologyName="hosts", nodeLabels={"pool": "x"}),
]
CPU: Quotas = {"default": {"cpu": 4}}
DEPLOYMENT = thing(
    "Deployment",
    "web",
    {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, **pods({"cpu": 1})},
    },
    version="apps/v1",
    namespace="default",
    labels={"kueue.x-k8s.io/queue-name": "team"},
)
RAY = thing(
    "RayCluster",
    "ray",
    {"suspend": True, "enableInTreeAutoscaling": True, "headGroupSpec": {"template": pods({"cpu": 1})}},
    version="ray.io/v1",
    namespace="default",
    labels={"kueue.x-k8s.io/queue-name": "team"},
    annotations={"kueue.x-k8s.io/elastic-job": "true"},
)
FUNGIBLE: dict[str, Any] = {
    "cohortName": "all",
    "flavorFungibility": {
        "whenCanBorrow": "TryNextFlavor",
        "whenCanPreempt": "TryNextFlavor",
        "preference": "PreemptionOverBorrowing",
    },
    "preemption": {"withinClusterQueue": "LowerPriority"},
}


@dataclass(frozen=True)
class Case:
    """A row by its first source, a world, and what comes of it: flavors or messages by workload, or an error."""

    source: int
    objects: list[dict[str, Any]]
    answer: dict[str, str] | str
    gate: str = ""
    without: dict[str, str] | str = ""
    configuration: str = ""


CASES = [
    Case(8096, [flavor(), *queue(CPU), DEPLOYMENT], {"pod-web-00001": "default"}),
    Case(8241, [flavor(), *queue(CPU), workload("w", {"cpu": 1, "example.com/gpu": 0})], {"w": "default"}),
    Case(
        9101,
        [flavor(), *queue(CPU), workload("a", {"cpu": 3}, uid="2"), workload("b", {"cpu": 3}, uid="1")],
        {"a": "insufficient unused quota", "b": "default"},
    ),
    Case(
        8865,
        [
            *PLACED,
            *queue(CPU),
            node(cpu=8, pods=10, **{"example.com/gpu": 1}),
            workload("a", {"cpu": 1, "example.com/gpu": 1}),
            workload("b", {"cpu": 1, "example.com/gpu": 1}, second=1),
        ],
        {"a": "default", "b": 'excluded: resource "example.com/gpu": 1'},
        configuration="resources: {excludeResourcePrefixes: [example.com/]}",
    ),
    Case(
        10336,
        [
            flavor(),
            *queue(CPU, admissionChecksStrategy={"admissionChecks": [{"name": "c", "onFlavors": ["other"]}]}),
        ],
        "onFlavors",
    ),
    Case(
        11293,
        [
            *PLACED,
            *queue(CPU),
            node(cpu=8, pods=3),
            workload(
                "w",
                {"cpu": 1},
                count=2,
                podSets=[{"name": name, "count": 2, "template": pods({"cpu": 1})} for name in ("left", "right")],
            ),
        ],
        {"w": "fit only 1 out of 2 pod(s)"},
    ),
    Case(
        12334,
        [flavor(), *queue(CPU), workload("w", {}, template=pods({"cpu": 1}, resources={"requests": {"cpu": 5}}))],
        {"w": "current podset request (5) > maximum capacity (4)"},
    ),
    Case(
        12405,
        [flavor(), *queue({"default": {"cpu": "1400m", "memory": "4Gi"}}), RAY],
        {"raycluster-ray": "current podset request (1500m) > maximum capacity (1400m)"},
    ),
    Case(
        12953,
        [flavor(), *queue({"default": {"cpu": 4, "credits": 300}}), workload("w", {"cpu": "100m"})],
        {"w": "default"},
        configuration="resources: {transformations: [{input: cpu, strategy: Retain, outputs: {credits: 3000}}]}",
    ),
    Case(
        9792,
        [flavor(), *queue(CPU), workload("w", {"cpu": 1}, annotations={"kueue.x-k8s.io/admission-gated-by": "a.b/c"})],
        {"w": "Admission is gated by: a.b/c"},
        "AdmissionGatedBy",
        {"w": "default"},
    ),
    Case(
        13075,
        [flavor(), *queue(CPU), workload("w", {"cpu": 1, "example.com/gpu": 1})],
        {"w": "default"},
        "QuotaCheckStrategy",
        {"w": "resource example.com/gpu unavailable in ClusterQueue"},
        "resources: {quotaCheckStrategy: IgnoreUndeclared}",
    ),
    Case(
        13616,
        [
            *[flavor("on-demand"), flavor("spot")],
            *queue({"on-demand": {"cpu": 4}, "spot": {"cpu": 0}}, **FUNGIBLE),
            *queue({"spot": {"cpu": 4}}, "lender", cohortName="all"),
            workload("first", {"cpu": 4}),
            workload("second", {"cpu": 4}, second=1),
        ],
        {"first": "on-demand", "second": "spot"},
    ),
    Case(
        12838,
        [flavor(), *queue(CPU), workload("w", {"cpu": -1})],
        "must be greater than or equal to 0",
        "WorkloadValidateResourcesAreNonNegative",
        {"w": "default"},
    ),
    Case(
        13986,
        [flavor(), *queue({"default": {"cpu": 4, "memory": "4Gi"}}), workload("w", {"cpu": 5, "memory": 1})],
        {"w": "current podset request (5) > maximum capacity (4)"},
        configuration="resources: {transformations: [{input: memory, strategy: Retain, outputs: {cpu: -3}}]}",
    ),
    Case(
        13634,
        [
            *PLACED,
            *queue(CPU),
            workload(
                "w", {"cpu": 1}, pod_set={"topologyRequest": {"podSetSliceRequiredTopology": "kubernetes.io/hostname"}}
            ),
        ],
        "must be set when podSetSliceRequiredTopology is specified",
        "TASValidateWorkloadSliceSize",
        {"w": "slice topology requested, but slice size not provided"},
    ),
    Case(
        14191,
        [
            thing("Topology", "pools", {"levels": [{"nodeLabel": "pool"}]}),
            flavor(topologyName="pools", nodeLabels={"pool": "x"}),
            *queue({"default": {"cpu": 8}}),
            *[node("n1", cpu=4, pods=10), node("n2", cpu=4, pods=10)],
            workload("w", {"cpu": 6}),
        ],
        {"w": 'excluded: resource "cpu": 2'},
        "TASNodeFeasibilityForAllLevels",
        {"w": "default"},
    ),
    Case(
        15023,
        [
            flavor(),
            *queue(CPU),
            thing(
                "LimitRange",
                "defaults",
                {"limits": [{"type": "Container", "defaultRequest": {"cpu": 1}}]},
                version="v1",
                namespace="default",
            ),
            workload(
                "w",
                {},
                template={"spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": 5}}}]}},
            ),
        ],
        {"w": "current podset request (5) > maximum capacity (4)"},
    ),
    Case(
        15954,
        [
            flavor(),
            *queue({"default": {"cpu": 4, "credits": 1}}),
            workload("w", {"cpu": 1, "example.com/gpu": 2}),
        ],
        {"w": "current podset request (2) > maximum capacity (1)"},
        configuration="resources: {excludeResourcePrefixes: [example.com/], transformations: "
        "[{input: example.com/gpu, strategy: Replace, outputs: {credits: 1}}]}",
    ),
    Case(
        13989,
        [flavor(), *queue({"default": {"cpu": 4, "pods": 4}}), workload("w", {"cpu": 1})],
        "transformations",
        "ReservedResourceNameValidation",
        {"w": "default"},
        "resources: {transformations: [{input: cpu, strategy: Retain, outputs: {pods: 3}}]}",
    ),
    Case(
        16047,
        [flavor(), *queue(CPU), workload("w", {}, template=pods({"cpu": 5}, resources={"requests": {"cpu": 0}}))],
        {"w": "current podset request (5) > maximum capacity (4)"},
    ),
    Case(
        14720,
        [flavor(), *queue(CPU), workload("w", {"cpu": 1}, count=5, pod_set={"minCount": 0})],
        {"w": "default"},
    ),
]


def run(case: Case, folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, str] | str:
    """The flavor that each workload gets, or why it waits; or the error."""
    (folder / "world.yaml").write_text(yaml.safe_dump_all(case.objects), encoding="utf-8")
    if case.configuration:
        head = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
        (folder / "kueue.yaml").write_text(f"{head}{BOTH}{case.configuration}\n", encoding="utf-8")
        options = ("--config", str(folder / "kueue.yaml"), *options)
    code = main(["run", str(folder / "world.yaml"), "-o", "json", *options])
    said = capsys.readouterr()
    if code:
        return said.err
    found: dict[str, str] = {}
    for job in json.loads(said.out)["workloads"]:
        flavors = {flavor for pod_set in job["podSets"] for flavor in pod_set["flavors"].values()}
        found[job["name"]] = ",".join(sorted(flavors)) or f"waits: {job['message']}"
    return found


def is_as(found: dict[str, str] | str, expected: dict[str, str] | str) -> bool:
    if isinstance(expected, str) or isinstance(found, str):
        return isinstance(expected, str) and isinstance(found, str) and expected in found
    return len(found) == len(expected) and all(
        any(key.startswith(name) and (got == want or (" " in want and want in got)) for key, got in found.items())
        for name, want in expected.items()
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.source))
def test_a_row(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(case, tmp_path, capsys)
    assert is_as(found, case.answer), found
    if case.gate:
        found = run(case, tmp_path, capsys, "--feature-gates", f"{case.gate}=false")
        assert is_as(found, case.without), found


def test_rows_say_that_they_are_run() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and "*Run.*" in line]
    first = {int(re.findall(r"\[#(\d+)\]", row.split("|")[-2])[0]) for row in rows}
    assert first == {case.source for case in CASES}
