"""Recorded cases as worlds: the manifests that the engine and the reference are given alike. Holds no rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["begun", "key_of", "preempting", "with_checks"]

_Json = dict[str, Any]
_VERSION = "kueue.x-k8s.io/v1beta2"
_INCOMING = "incoming"
_ASKED = "recorded.example.com/asked"


def key_of(manifest: Mapping[str, Any]) -> str:
    """`namespace/name` of a manifest."""
    metadata = manifest["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def begun(case: _Json) -> list[_Json]:
    """The objects of a case of cycles, as the scheduler knows them when the first one begins."""
    gone = {(each["kind"], each["key"]) for each in case.get("input", {}).get("deletedFromAPI", ())}
    # The queues still know what is gone, but nobody can look up its weight.
    return [
        {**each, "spec": _without(each["spec"], "fairSharing")} if (each["kind"], key_of(each)) in gone else each
        for each in case["objects"]
    ]


def with_checks(case: _Json) -> list[_Json]:
    """The objects of a case of readiness: the ClusterQueue on its way out, if it is, and AdmissionChecks."""
    given = case["input"]
    objects = list(case.get("objects", ()))
    for name, check in given.get("admissionChecks", {}).items():
        status = {"conditions": [{"type": "Active", "status": str(check.get("active", False))}]}
        objects.append(_object("AdmissionCheck", name, {"controllerName": check.get("controller", "")}, status=status))
    if not given.get("terminate"):
        return objects
    deleted = {"deletionTimestamp": case["config"]["now"]}
    is_asked = {"ClusterQueue": given["clusterQueue"]}
    return [
        {**each, "metadata": each["metadata"] | deleted} if is_asked.get(each["kind"]) == key_of(each)[1:] else each
        for each in objects
    ]


def preempting(case: _Json) -> list[_Json]:
    """The objects of a case of preemption, and the workload as the only one that waits.

    Its pod sets tolerate no flavor but those that the case has assigned to them. What it asks for has a quota in its
    ClusterQueue, if only one of 0.
    """
    given = case["input"]
    assigned = given["assignment"]["podSets"]
    flavors = {each["metadata"]["name"]: each for each in case["objects"] if each["kind"] == "ResourceFlavor"}
    asked = {(choice["flavor"], resource) for each in assigned for resource, choice in each["flavors"].items()}
    named = {name: _object("ResourceFlavor", name, {}) for name, _ in sorted(asked)}
    objects = [_tainted(each) for each in (named | flavors).values()]
    for each in case["objects"]:
        if each["kind"] == "ClusterQueue" and each["metadata"]["name"] == given["clusterQueue"]:
            groups = _declaring(each["spec"].get("resourceGroups", ()), asked)
            each = {**each, "spec": each["spec"] | {"namespaceSelector": {}, "resourceGroups": groups}}
        if each["kind"] != "ResourceFlavor":
            objects.append(each)
    queue = _object("LocalQueue", _INCOMING, {"clusterQueue": given["clusterQueue"]}, namespace=_INCOMING)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _INCOMING}}
    return [*objects, space, queue, _waiting(given["workload"], assigned)]


def _object(kind: str, name: str, spec: _Json, *, namespace: str = "", status: _Json | None = None) -> _Json:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": _VERSION, "kind": kind, "metadata": metadata, "spec": spec, "status": status or {}}


def _without(fields: _Json, name: str) -> _Json:
    return {each: value for each, value in fields.items() if each != name}


def _tainted(flavor: _Json) -> _Json:
    taint = {"key": _ASKED, "value": flavor["metadata"]["name"], "effect": "NoSchedule"}
    return {**flavor, "spec": {**flavor.get("spec", {}), "nodeTaints": [taint]}}


def _declaring(groups: Iterable[_Json], asked: set[tuple[str, str]]) -> list[_Json]:
    """The groups with a quota of 0 for what is asked for and not declared."""
    found = []
    declared = set()
    for group in groups:
        names = [flavor["name"] for flavor in group["flavors"]]
        declared |= set(names)
        covered = group.get("coveredResources", [])
        missing = sorted({resource for flavor, resource in asked if flavor in names} - set(covered))
        flavors = [
            {**flavor, "resources": [*flavor.get("resources", ()), *_nothing(missing)]} for flavor in group["flavors"]
        ]
        found.append({**group, "coveredResources": [*covered, *missing], "flavors": flavors})
    for name in sorted({flavor for flavor, _ in asked} - declared):
        resources = sorted(resource for flavor, resource in asked if flavor == name)
        flavor = {"name": name, "resources": _nothing(resources)}
        found.append({"coveredResources": resources, "flavors": [flavor]})
    return found


def _nothing(resources: Iterable[str]) -> list[_Json]:
    return [{"name": name, "nominalQuota": "0"} for name in resources]


def _waiting(workload: _Json, assigned: Iterable[_Json]) -> _Json:
    """The workload without an admission, in the only LocalQueue, with pods as many as it is assigned for."""
    of_name = {each["name"]: each for each in assigned}
    pod_sets = []
    for pod_set in workload["spec"]["podSets"]:
        given = of_name[pod_set["name"]]
        names = sorted({choice["flavor"] for choice in given["flavors"].values()})
        tolerations = [{"key": _ASKED, "operator": "Equal", "value": name, "effect": "NoSchedule"} for name in names]
        spec = {**pod_set["template"].get("spec", {}), "tolerations": tolerations}
        pod_sets.append(
            {**pod_set, "count": given["count"] or pod_set["count"], "template": {**pod_set["template"], "spec": spec}}
        )
    return {
        **_without(workload, "status"),
        "metadata": {**workload["metadata"], "namespace": _INCOMING},
        "spec": {**workload["spec"], "podSets": pod_sets, "queueName": _INCOMING},
    }
