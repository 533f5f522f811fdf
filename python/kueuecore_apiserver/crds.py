"""Kueue's CustomResourceDefinitions, generated from the tables by which kueuecore itself checks objects.

For an API server to test against: `kubectl apply` them to a real one, or pass them to
[`CrdSchema`][kueuecore_apiserver.crd_schema.CrdSchema]. Shapes, bounds, defaults and rules are Kueue's, written down
again in our own words. Descriptions and the conversion webhook are left out, so between v1beta1 and v1beta2 a real
server changes only the version.

Example:
    >>> [it["metadata"]["name"] for it in crds()][:3]
    ['admissionchecks.kueue.x-k8s.io', 'clusterqueues.kueue.x-k8s.io', 'cohorts.kueue.x-k8s.io']
    >>> versions = crd("Workload")["spec"]["versions"]
    >>> [(it["name"], it["storage"]) for it in versions]
    [('v1beta1', False), ('v1beta2', True)]
    >>> [it["name"] for it in versions if it["served"]]
    ['v1beta2']
    >>> import yaml
    >>> print(yaml.safe_dump(crd("Cohort"), sort_keys=False)[:66])
    apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from kueuecore import _core
from kueuecore.releases import Release
from kueuecore.version import DEFAULT_RELEASE

__all__ = ["KINDS", "crd", "crds"]

_Object: TypeAlias = dict[str, Any]

_GROUP = "kueue.x-k8s.io"
_VERSIONS = ("v1beta1", "v1beta2")
_STORED = "v1beta2"
# The release that serves one version alone, and shows whether queues are active.
_0_20 = Release.named("0.20.0")


@dataclass(frozen=True, slots=True)
class _Kind:
    """The names of a kind, and the columns that `kubectl get` shows.

    Args:
        plural: Its name in URL paths.
        short_names: Abbreviations that `kubectl` accepts.
        columns: Type and path of each column, by heading; `_OLD_PATHS` has those of v1beta1 that differ.
        wide: The headings of those that only `-o wide` shows.
        is_namespaced: Whether its objects have a namespace.
        warns: Whether its v1beta1 is marked as deprecated.
    """

    plural: str
    short_names: tuple[str, ...]
    columns: Mapping[str, tuple[str, str]]
    wide: tuple[str, ...] = ()
    is_namespaced: bool = False
    warns: bool = True


def _condition(name: str) -> tuple[str, str]:
    return "string", f".status.conditions[?(@.type=='{name}')].status"


_AGE = {"Age": ("date", ".metadata.creationTimestamp")}
# Since 0.20.0.
_ACTIVITY = {"Active": _condition("Active"), "Reason": ("string", ".status.conditions[?(@.type=='Active')].reason")}
_KINDS = {
    "AdmissionCheck": _Kind("admissionchecks", ("ac",), {"Active": _condition("Active"), **_AGE}),
    "ClusterQueue": _Kind(
        "clusterqueues",
        ("cq",),
        {
            "Cohort": ("string", ".spec.cohortName"),
            "Strategy": ("string", ".spec.queueingStrategy"),
            "Pending Workloads": ("integer", ".status.pendingWorkloads"),
            "Admitted Workloads": ("integer", ".status.admittedWorkloads"),
            **_ACTIVITY,
        },
        wide=("Strategy", "Admitted Workloads", *_ACTIVITY),
    ),
    "Cohort": _Kind("cohorts", ("co",), {"Parent": ("string", ".spec.parentName"), **_AGE}),
    "LocalQueue": _Kind(
        "localqueues",
        ("queue", "queues", "lq"),
        {
            "ClusterQueue": ("string", ".spec.clusterQueue"),
            "Pending Workloads": ("integer", ".status.pendingWorkloads"),
            "Admitted Workloads": ("integer", ".status.admittedWorkloads"),
            **_ACTIVITY,
        },
        wide=tuple(_ACTIVITY),
        is_namespaced=True,
    ),
    "MultiKueueCluster": _Kind("multikueueclusters", ("mkc",), {"Connected": _condition("Active"), **_AGE}),
    "MultiKueueConfig": _Kind("multikueueconfigs", ("mkconf",), _AGE, warns=False),
    "ProvisioningRequestConfig": _Kind(
        "provisioningrequestconfigs", ("prc",), {"Class": ("string", ".spec.provisioningClassName"), **_AGE}
    ),
    "ResourceFlavor": _Kind("resourceflavors", ("flavor", "flavors", "rf"), _AGE),
    "Topology": _Kind("topologies", ("topo",), _AGE),
    "Workload": _Kind(
        "workloads",
        ("kwl", "kueueworkload", "kueueworkloads"),
        {
            "Queue": ("string", ".spec.queueName"),
            "Reserved in": ("string", ".status.admission.clusterQueue"),
            "Admitted": _condition("Admitted"),
            "Finished": _condition("Finished"),
            **_AGE,
        },
        is_namespaced=True,
    ),
    "WorkloadPriorityClass": _Kind("workloadpriorityclasses", ("wpc",), {"Value": ("integer", ".value")}),
}
_OLD_PATHS = {".spec.cohortName": ".spec.cohort"}

KINDS = tuple(_KINDS)
"""Kueue's kinds."""


def crds(*, release: str = DEFAULT_RELEASE) -> list[_Object]:
    """Return the definitions of all of Kueue's kinds, sorted by name.

    Args:
        release: As for `crd`.
    """
    return sorted((crd(kind, release=release) for kind in KINDS), key=lambda kind: str(kind["metadata"]["name"]))


def crd(kind: str, *, release: str = DEFAULT_RELEASE) -> _Object:
    """Return the definition of a kind.

    Args:
        kind: The kind, such as `Workload`.
        release: The release of Kueue whose versions and columns it has: since 0.20.0 v1beta1 is not served. The schemas
            are those of the newest release.

    Raises:
        ValueError: Kueue has no such kind, or no such release.
    """
    if kind not in _KINDS:
        raise ValueError(f"Kueue has no kind {kind!r}, only {', '.join(KINDS)}")
    return copy.deepcopy(_made(kind, Release.named(release)))


@cache
def _made(kind: str, release: Release) -> _Object:
    reported = _KINDS[kind]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{reported.plural}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": reported.plural,
                "shortNames": list(reported.short_names),
                "singular": kind.lower(),
            },
            "scope": "Namespaced" if reported.is_namespaced else "Cluster",
            "versions": [_version(kind, reported, version, release) for version in _VERSIONS],
        },
    }


def _version(kind: str, reported: _Kind, version: str, release: Release) -> _Object:
    schema = _core.open_api(f"{_GROUP}/{version}", kind)
    assert schema is not None, kind
    is_old, is_before = version != _STORED, release < _0_20
    hidden = frozenset(_ACTIVITY) & frozenset(reported.wide) if is_before else frozenset()
    columns = [
        {
            "name": name,
            "type": type_name,
            "jsonPath": _OLD_PATHS.get(path, path) if is_old else path,
            **({"priority": 1} if name in reported.wide else {}),
        }
        for name, (type_name, path) in reported.columns.items()
        if name not in hidden
    ]
    warning = {"deprecated": True, "deprecationWarning": f"This version is deprecated. Use {_STORED} instead."}
    return {
        "name": version,
        "served": is_before or not is_old,
        "storage": not is_old,
        **(warning if is_old and reported.warns else {}),
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": schema},
        **({"subresources": {"status": {}}} if "status" in schema["properties"] else {}),
    }
