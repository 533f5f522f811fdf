"""Discovery: which kinds there are; versions, health, and an OpenAPI document without content."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore_apiserver.requests import Object
from kueuecore_apiserver.resources import Registry, Resource

__all__ = ["VERSION", "discovered", "openapi_v2_protobuf"]

VERSION: Object = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0",
    "gitCommit": "0000000000000000000000000000000000000000",
    "gitTreeState": "clean",
    "buildDate": "2026-04-22T00:00:00Z",
    "goVersion": "go1.26.0",
    "compiler": "gc",
    "platform": "linux/amd64",
}
"""The version whose rules the server follows."""

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_INFO = {"title": "Kubernetes", "version": "v1.36.0"}


def discovered(registry: Registry, path: str) -> Object | None:
    """Return the document at a path of discovery; `None` if there is none."""
    parts = path.strip("/").split("/")
    match parts:
        case ["version"]:
            return VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = sorted({entry.group for entry in registry if entry.group})
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(registry, group) for group in groups]}
        case ["apis", group] if any(entry.group == group for entry in registry):
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(registry, group)}
        case ["api", "v1"]:
            return _resources("v1", (entry for entry in registry if not entry.group))
        case ["apis", group, version]:
            found = [entry for entry in registry if (entry.group, entry.version) == (group, version)]
            return _resources(f"{group}/{version}", found) if found else None
        case ["openapi", "v2"]:
            return {"swagger": "2.0", "info": _INFO, "paths": {}}
        case ["openapi", "v3"]:
            return {"paths": {}}
        case _:
            return None


def openapi_v2_protobuf() -> bytes:
    """Return an OpenAPI document without paths, in the form that older clients request.

    Field 1 is `swagger`, field 2 `info` with title (1) and version (2), field 8 `paths`.
    """

    def text(number: int, value: bytes) -> bytes:
        return bytes([number << 3 | 2, len(value)]) + value

    info = text(1, _INFO["title"].encode()) + text(2, _INFO["version"].encode())
    return text(1, b"2.0") + text(2, info) + text(8, b"")


def _group(registry: Registry, group: str) -> Object:
    """Return a group with its versions, the preferred one first."""
    versions = sorted({entry.version for entry in registry if entry.group == group}, key=_rank)
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _rank(version: str) -> tuple[int, list[int], str]:
    """Return the sort key of a version: Kubernetes prefers v2 to v1, then v1beta2, v1beta1, and v1alpha1."""
    digits = version.removeprefix("v").replace("beta", " beta ").replace("alpha", " alpha ").split()
    stage = {"beta": 1, "alpha": 2}.get(digits[1] if len(digits) == 3 else "", 0 if len(digits) == 1 else 3)
    numbers = [-int(digit) for digit in digits if digit.isdigit()]
    return stage, numbers, version


def _resources(group_version: str, resources: Iterable[Resource]) -> Object:
    listed: list[Object] = []
    for resource in resources:
        plain: Object = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": _VERBS,
        }
        if resource.short_names:
            plain["shortNames"] = list(resource.short_names)
        if resource.categories:
            plain["categories"] = list(resource.categories)
        listed.append(plain)
        listed += [_subresource(resource, name) for name in resource.subresources]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}


def _subresource(resource: Resource, name: str) -> Object:
    plain: Object = {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": ["get", "patch", "update"],
    }
    return {**plain, "verbs": ["update"]} if name == "finalize" else plain
