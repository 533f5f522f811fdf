"""Objects of Kueue's kinds with much in them, and what breaks each rule of their CustomResourceDefinitions."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from kueuecore import Configuration
from kueuecore._json import text_at
from kueuecore._patches import patched
from kueuecore.api_server import RefusedError
from kueuecore.releases import DEFAULT_RELEASE
from kueuecore.webhooks import admit
from kueuecore_apiserver.crd_schema import CrdSchema
from kueuecore_apiserver.crds import KINDS, crd

Plain = dict[str, Any]

TIME = "2026-01-01T00:00:00Z"
HOSTNAME = "kubernetes.io/hostname"


def condition(kind: str, status: str = "True") -> Plain:
    return {"type": kind, "status": status, "reason": "Test", "message": "", "lastTransitionTime": TIME}


def own(kind: str, spec: Plain, **more: Any) -> Plain:
    namespace = {"namespace": "n"} if kind in ("Workload", "LocalQueue") else {}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": "o", **namespace},
        "spec": spec,
        **more,
    }


def group(n_resources: int = 1) -> Plain:
    names = ["cpu", "memory"][:n_resources]
    resources = [{"name": name, "nominalQuota": 4, "borrowingLimit": "2"} for name in names]
    return {"coveredResources": names, "flavors": [{"name": "f", "resources": resources}]}


SLICE: Plain = {
    "domainCount": 2,
    "podCounts": {"individual": [1, 3]},
    "valuesPerLevel": [{"universal": "r"}, {"individual": {"roots": ["a", "b"], "prefix": "n-"}}],
}
TOLERATION: Plain = {"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 3}

RICH: Mapping[str, Plain] = {
    "AdmissionCheck": own(
        "AdmissionCheck",
        {"controllerName": "c", "parameters": {"apiGroup": "g.x", "kind": "K", "name": "p"}},
        status={"conditions": [condition("Active")]},
    ),
    "ClusterQueue": own(
        "ClusterQueue",
        {
            "cohortName": "all",
            "resourceGroups": [group(2)],
            "namespaceSelector": {"matchLabels": {"a": "b"}},
            "flavorFungibility": {
                "whenCanBorrow": "TryNextFlavor",
                "whenCanPreempt": "TryNextFlavor",
                "preference": "BorrowingOverPreemption",
            },
            "preemption": {
                "reclaimWithinCohort": "Any",
                "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 3},
            },
            "admissionChecksStrategy": {"admissionChecks": [{"name": "c", "onFlavors": ["f"]}]},
            "fairSharing": {"weight": "2"},
        },
        status={"conditions": [condition("Active")], "pendingWorkloads": 1, "fairSharing": {"weightedShare": 0}},
    ),
    "Cohort": own("Cohort", {"parentName": "root", "resourceGroups": [group()]}),
    "LocalQueue": own("LocalQueue", {"clusterQueue": "q"}, status={"pendingWorkloads": 1}),
    "MultiKueueCluster": own("MultiKueueCluster", {"clusterSource": {"kubeConfig": {"location": "l"}}}),
    "MultiKueueConfig": own("MultiKueueConfig", {"clusters": ["w1", "w2"]}),
    "ProvisioningRequestConfig": own(
        "ProvisioningRequestConfig",
        {"provisioningClassName": "c", "managedResources": ["cpu"], "parameters": {"a": "b"}},
    ),
    "ResourceFlavor": own(
        "ResourceFlavor",
        {
            "nodeLabels": {"a": "b"},
            "nodeTaints": [{"key": "k", "effect": "NoSchedule"}],
            "tolerations": [TOLERATION, {"operator": "Exists"}],
            "topologyName": "t",
        },
    ),
    "Topology": own("Topology", {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": HOSTNAME}]}),
    "Workload": own(
        "Workload",
        {
            "queueName": "lq",
            "priority": 3,
            "priorityClassRef": {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high"},
            "maximumExecutionTimeSeconds": 60,
            "podSets": [
                {
                    "name": "main",
                    "count": 4,
                    "minCount": 2,
                    "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]}},
                }
            ],
        },
        status={
            "conditions": [condition("QuotaReserved"), condition("Admitted")],
            "admission": {
                "clusterQueue": "q",
                "podSetAssignments": [
                    {
                        "name": "main",
                        "count": 4,
                        "flavors": {"cpu": "f"},
                        "resourceUsage": {"cpu": 4},
                        "topologyAssignment": {"levels": ["rack", HOSTNAME], "slices": [SLICE]},
                    }
                ],
            },
            "admissionChecks": [
                {
                    "name": "c",
                    "state": "Ready",
                    "message": "",
                    "lastTransitionTime": TIME,
                    "podSetUpdates": [{"name": "main", "tolerations": [TOLERATION]}],
                }
            ],
            "clusterName": "w1",
        },
    ),
    "WorkloadPriorityClass": {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": "o"},
        "value": 3,
    },
}
assert set(RICH) == set(KINDS)

_ASSIGNMENT = "status.admission.podSetAssignments[0].topologyAssignment"
_UPDATED = "status.admissionChecks[0].podSetUpdates[0].tolerations"
_EXACTLY = "exactly one of the fields in [universal individual] must be set"
_EFFECTS = "supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'"


def _assigned(change: Plain) -> Plain:
    """A patch of the one slice of a topology assignment."""
    assignment = copy.deepcopy(RICH["Workload"]["status"]["admission"])
    assignment["podSetAssignments"][0]["topologyAssignment"]["slices"] = [patched(SLICE, change)]
    return {"status": {"admission": assignment}}


def _tolerating(kind: str, toleration: Plain) -> Plain:
    if kind == "ResourceFlavor":
        return {"spec": {"tolerations": [TOLERATION, toleration]}}
    check = copy.deepcopy(RICH["Workload"]["status"]["admissionChecks"][0])
    check["podSetUpdates"][0]["tolerations"] = [TOLERATION, toleration]
    return {"status": {"admissionChecks": [check]}}


_OF_TOLERATIONS: list[tuple[Plain, str]] = [
    (
        {"operator": "Equal", "value": "v"},
        "operator must be Exists when 'key' is empty, which means 'match all values and all keys'",
    ),
    (
        {"key": "k", "effect": "NoSchedule", "tolerationSeconds": 1},
        "effect must be 'NoExecute' when 'tolerationSeconds' is set",
    ),
    ({"key": "k", "operator": "Near"}, "supported toleration values: 'Equal'(default), 'Exists'"),
    ({"key": "k", "operator": "Exists", "value": "v"}, "a value must be empty when 'operator' is 'Exists'"),
    ({"key": "k", "effect": "Never"}, _EFFECTS),
]

# What is wrong when the object is changed so: its kind, the patch, field and message of the only cause.
BROKEN: list[tuple[str, Plain, str, str]] = [
    ("ClusterQueue", {"spec": {"cohortName": None}}, "spec", "borrowingLimit must be nil when cohort is empty"),
    (
        "ClusterQueue",
        {"spec": {"flavorFungibility": {"whenCanBorrow": "MayStopSearch"}}},
        "spec.flavorFungibility",
        "preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor",
    ),
    (
        "ClusterQueue",
        {"spec": {"preemption": {"reclaimWithinCohort": "Never"}}},
        "spec.preemption",
        "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never",
    ),
    *(
        (
            kind,
            {"spec": {"resourceGroups": [group(), {**group(2), "coveredResources": ["gpu"]}]}},
            "spec.resourceGroups[1]",
            "flavors must have the same number of resources as the coveredResources",
        )
        for kind in ("ClusterQueue", "Cohort")
    ),
    (
        "ResourceFlavor",
        {"spec": {"nodeLabels": {"a": None}}},
        "spec",
        "at least one nodeLabel is required when topology is set",
    ),
    (
        "ResourceFlavor",
        {"spec": {"nodeTaints": [{"key": "k", "effect": "Never"}]}},
        "spec.nodeTaints",
        _EFFECTS,
    ),
    *(
        (kind, _tolerating(kind, toleration), field, message)
        for kind, field in (("ResourceFlavor", "spec.tolerations"), ("Workload", _UPDATED))
        for toleration, message in _OF_TOLERATIONS
    ),
    (
        "Topology",
        {"spec": {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "rack"}]}},
        "spec.levels",
        "must be unique",
    ),
    (
        "Topology",
        {"spec": {"levels": [{"nodeLabel": HOSTNAME}, {"nodeLabel": "rack"}]}},
        "spec.levels",
        "the kubernetes.io/hostname label can only be used at the lowest level of topology",
    ),
    ("MultiKueueConfig", {"spec": {"clusters": ["a", "b", "a"]}}, "spec.clusters", "must be unique"),
    (
        "MultiKueueCluster",
        {"spec": {"clusterSource": {"clusterProfileRef": {"name": "p"}}}},
        "spec.clusterSource",
        "exactly one of the fields in [kubeConfig clusterProfileRef] must be set",
    ),
    (
        "Workload",
        {"spec": {"priority": None}},
        "spec",
        "priority should not be nil when priorityClassRef is set",
    ),
    (
        "Workload",
        {"spec": {"priorityClassRef": {"kind": "WorkloadPriorityClass"}}},
        "spec.priorityClassRef",
        "only the PriorityClass kind is allowed for the scheduling.k8s.io group",
    ),
    (
        "Workload",
        {"spec": {"priorityClassRef": {"group": "kueue.x-k8s.io"}}},
        "spec.priorityClassRef",
        "only the WorkloadPriorityClass kind is allowed for the kueue.x-k8s.io group",
    ),
    (
        "Workload",
        {"spec": {"podSets": [{**RICH["Workload"]["spec"]["podSets"][0], "minCount": 5}]}},
        "spec.podSets[0]",
        "minCount should be positive and less or equal to count",
    ),
    (
        "Workload",
        {"status": {"admission": {"podSetAssignments": []}}},
        "<nil>",
        "podSetAssignments must have the same number of podSets as the spec",
    ),
    (
        "Workload",
        {"status": {"nominatedClusterNames": ["w1"]}},
        "status",
        "clusterName and nominatedClusterNames are mutually exclusive",
    ),
    ("Workload", _assigned({"podCounts": {"universal": 2}}), f"{_ASSIGNMENT}.slices[0].podCounts", _EXACTLY),
    (
        "Workload",
        _assigned({"valuesPerLevel": [{}, {"universal": "r"}]}),
        f"{_ASSIGNMENT}.slices[0].valuesPerLevel[0]",
        _EXACTLY,
    ),
    (
        "Workload",
        _assigned({"podCounts": {"individual": [1, 2, 3]}}),
        f"{_ASSIGNMENT}.slices[0]",
        "podCounts.individual must have length equal to domainCount",
    ),
    (
        "Workload",
        _assigned({"valuesPerLevel": [{"universal": "r"}, {"individual": {"roots": ["a"]}}]}),
        f"{_ASSIGNMENT}.slices[0]",
        "valuesPerLevel.individual, if set, must have roots of length equal to domainCount of this "
        "TopologyAssignmentSlice",
    ),
    (
        "Workload",
        _assigned({"valuesPerLevel": [{"universal": "r"}]}),
        _ASSIGNMENT,
        "valuesPerLevel must have the same length as the number of levels in this TopologyAssignment",
    ),
]

_WHILE_RESERVED = "immutable while workload quota reserved"

# The same for updates of an object of which the first patch has been made.
CHANGED: list[tuple[str, Plain, Plain, str, str]] = [
    ("LocalQueue", {}, {"spec": {"clusterQueue": "r"}}, "spec.clusterQueue", "field is immutable"),
    ("AdmissionCheck", {}, {"spec": {"controllerName": "d"}}, "spec.controllerName", "field is immutable"),
    *(
        (
            "ResourceFlavor",
            {},
            {"spec": {"topologyName": name}},
            "spec",
            "topologyName is immutable when topologyName is set",
        )
        for name in ("u", None)
    ),
    (
        "Topology",
        {},
        {"spec": {"levels": [{"nodeLabel": "rack"}]}},
        "spec.levels",
        "levels are mutable only when kubernetes.io/hostname is the lowest level both before and after the change",
    ),
    *(
        ("Workload", *change, "<nil>", message)
        for change, message in (
            (({}, {"spec": {"priorityClassRef": None}}), f"priorityClassRef is {_WHILE_RESERVED}"),
            (
                ({"spec": {"priorityClassRef": None}}, {"spec": RICH["Workload"]["spec"]}),
                f"priorityClassRef is {_WHILE_RESERVED}",
            ),
            (
                ({}, {"spec": {"priorityClassRef": {"name": "low"}}}),
                "priorityClassRef.name is immutable for scheduling.k8s.io/priorityclass while workload quota reserved",
            ),
            (({}, {"spec": {"queueName": "other"}}), f"queueName is {_WHILE_RESERVED}"),
            (({}, {"spec": {"queueName": None}}), f"queueName is {_WHILE_RESERVED}"),
            (
                ({}, {"spec": {"maximumExecutionTimeSeconds": 61}}),
                f"maximumExecutionTimeSeconds is {_WHILE_RESERVED}",
            ),
            (
                ({}, {"spec": {"maximumExecutionTimeSeconds": None}}),
                f"maximumExecutionTimeSeconds is {_WHILE_RESERVED}",
            ),
        )
    ),
    ("Workload", {}, {"status": {"clusterName": "w2"}}, "status", "clusterName is immutable once set"),
]


@cache
def schema_of(kind: str, version: str = "v1beta2") -> CrdSchema:
    """The schema of a kind that takes a status with all else."""
    definition = crd(kind)
    for other in definition["spec"]["versions"]:
        other.pop("subresources", None)
    return CrdSchema.of(definition, version)


def by_definition(new: Plain, old: Plain | None = None) -> set[tuple[str, str]]:
    """Fields and messages of what is wrong, by the CustomResourceDefinition."""
    version = new["apiVersion"].split("/")[1]
    try:
        schema_of(new["kind"], version).stored(new, old)
    except RefusedError as refused:
        return _causes(refused)
    return set()


def by_engine(new: Plain, old: Plain | None = None, *, release: str = DEFAULT_RELEASE) -> set[tuple[str, str]]:
    """The same by the closures of the engine; what a webhook refuses is right for the schema."""
    try:
        admit(new, old=old, configuration=Configuration(release=release))
    except RefusedError as refused:
        if refused.code == 404:  # the release does not serve it
            raise
        return _causes(refused) if refused.code == 422 else set()
    return set()


def _causes(refused: RefusedError) -> set[tuple[str, str]]:
    return {(text_at(cause, "field"), text_at(cause, "message")) for cause in refused.causes}


def rules_of(schema: Any, place: str = "") -> Iterator[tuple[str, Plain]]:
    """The rules of an OpenAPI schema, with the place of each."""
    for rule in schema.get("x-kubernetes-validations", []):
        yield place, rule
    for name, part in schema.get("properties", {}).items():
        yield from rules_of(part, f"{place}.{name}".removeprefix("."))
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from rules_of(schema[name], f"{place}[]" if name == "items" else f"{place}{{}}")


ODD: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        5,
        1.0,
        2.0,
        1.5,
        2**31,
        2**63,
        1e300,
        "",
        "a",
        "Never",
        "Exists",
        "1Gi",
        "é",
        "\n",
    ),
    *([], {}, ["a"], ["a", "a"], {"a": "b"}, {"universal": "r"}, [{}], "NoExecute", "main", HOSTNAME, TIME),
]


def mutated(plain: Plain, random_numbers: random.Random, n: int) -> Plain:
    """An object changed at random places, but for what says which object it is."""
    changed = copy.deepcopy(plain)
    for _ in range(n):
        places = [
            place for place in _places(changed) if place[0] is not changed or place[1] in ("spec", "status", "value")
        ]
        places = [place for place in places if place[0] is not changed["metadata"]]
        if not places:
            break
        holder, key = random_numbers.choice(places)
        match random_numbers.randrange(5):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case 2:
                other, where = random_numbers.choice(places)
                holder[key] = copy.deepcopy(other[where])
            case _:
                holder[key] = copy.deepcopy(random_numbers.choice(ODD))
    return changed


def _places(part: Any) -> Iterator[tuple[Any, Any]]:
    for key in part if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ():
        yield part, key
        yield from _places(part[key])


def has_list_for_time(causes: set[tuple[str, str]]) -> bool:
    """Is a list where a time should be? A server takes any; the engine, which could not read it, does not."""
    times = ("Time", ".timeAdded", ".requeueAt")
    return any(field.endswith(times) and message.endswith(': "array"') for field, message in causes)
