"""What the visibility API says about itself: discovery, and the OpenAPI documents."""

from __future__ import annotations

from kueuecore._json import JsonObject, JsonValue
from kueuecore.version import version

__all__ = ["GROUP", "RESOURCES", "VERSIONS", "document"]

GROUP = "visibility.kueue.x-k8s.io"
VERSIONS = ("v1beta2", "v1beta1")
"""The versions that are served, the preferred one first. Their objects have the same fields."""
RESOURCES = {"clusterqueues": "clusterqueue", "localqueues": "localqueue"}
"""The queues, with their singular."""
_SUMMARY = "PendingWorkloadsSummary"


def document(path: str) -> JsonObject | None:
    """Return the document at a path; None if there is none.

    Example:
        >>> [found["name"] for found in document("/apis/visibility.kueue.x-k8s.io/v1beta2")["resources"]]
        ['clusterqueues', 'clusterqueues/pendingworkloads', 'localqueues', 'localqueues/pendingworkloads']
    """
    match path.strip("/").split("/"):
        case ["apis"]:
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group()]}
        case ["apis", group] if group == GROUP:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group()}
        case ["apis", group, api_version] if group == GROUP and api_version in VERSIONS:
            return _resources(api_version)
        case ["openapi", "v2"]:
            return _openapi_v2()
        case ["openapi", "v3"]:
            places: JsonObject = {f"apis/{GROUP}/{each}": _place(each) for each in VERSIONS}
            return {"paths": places}
        case ["openapi", "v3", "apis", group, api_version] if group == GROUP and api_version in VERSIONS:
            return _openapi_v3(api_version)
        case ["version"]:
            return {"gitVersion": f"v{version()}", "platform": "kueuecore"}
        case _:
            return None


def _group() -> JsonObject:
    listed: list[JsonValue] = [{"groupVersion": f"{GROUP}/{each}", "version": each} for each in VERSIONS]
    return {"name": GROUP, "versions": listed, "preferredVersion": listed[0]}


def _resources(api_version: str) -> JsonObject:
    listed: list[JsonValue] = []
    for plural, singular in RESOURCES.items():
        common: JsonObject = {"namespaced": plural == "localqueues", "kind": _SUMMARY}
        listed.append({"name": plural, "singularName": singular, **common, "verbs": []})
        listed.append({"name": f"{plural}/pendingworkloads", "singularName": "", **common, "verbs": ["get"]})
    head: JsonObject = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{api_version}"}
    return {**head, "resources": listed}


def _info() -> JsonObject:
    return {"title": "Kueue visibility-server", "version": f"v{version()}"}


def _place(api_version: str) -> JsonObject:
    return {"serverRelativeURL": f"/openapi/v3/apis/{GROUP}/{api_version}?hash={version()}"}


def _openapi_v2() -> JsonObject:
    paths: JsonObject = {}
    definitions: JsonObject = {}
    for each in VERSIONS:
        paths |= _paths(each, "#/definitions/")
        definitions |= _schemas(each, "#/definitions/")
    return {"swagger": "2.0", "info": _info(), "paths": paths, "definitions": definitions}


def _openapi_v3(api_version: str) -> JsonObject:
    schemas = _schemas(api_version, "#/components/schemas/")
    paths = _paths(api_version, "#/components/schemas/")
    return {"openapi": "3.0.0", "info": _info(), "paths": paths, "components": {"schemas": schemas}}


def _name(api_version: str, kind: str) -> str:
    return f"io.k8s.sigs.kueue.apis.visibility.{api_version}.{kind}"


def _paths(api_version: str, place: str) -> JsonObject:
    """Return the operations of a version. `place` is where its schemas are, which also says the version of OpenAPI."""
    is_v3 = "components" in place

    def parameter(name: str, where: str, kind: str) -> JsonObject:
        typed: JsonObject = {"schema": {"type": kind}} if is_v3 else {"type": kind}
        return {"name": name, "in": where, "required": where == "path", **typed}

    schema: JsonObject = {"$ref": place + _name(api_version, _SUMMARY)}
    answer: JsonObject = {"content": {"application/json": {"schema": schema}}} if is_v3 else {"schema": schema}
    kind: JsonObject = {"group": GROUP, "version": api_version, "kind": _SUMMARY}
    found: JsonObject = {}
    for plural in RESOURCES:
        scope = ["namespace"] if plural == "localqueues" else []
        within = "namespaces/{namespace}/" if scope else ""
        parameters: list[JsonValue] = [parameter(name, "path", "string") for name in [*scope, "name"]]
        parameters += [parameter(name, "query", "integer") for name in ("limit", "offset")]
        operation: JsonObject = {
            "description": f"the pending workloads of one of the {plural}, in their order",
            "operationId": f"read{api_version.capitalize()}{plural.capitalize()}Pendingworkloads",
            "parameters": parameters,
            "responses": {"200": {"description": "OK", **answer}, "401": {"description": "Unauthorized"}},
            "x-kubernetes-action": "get",
            "x-kubernetes-group-version-kind": kind,
        }
        if not is_v3:
            operation["produces"] = ["application/json"]
        found[f"/apis/{GROUP}/{api_version}/{within}{plural}/{{name}}/pendingworkloads"] = {"get": operation}
    return found


def _schemas(api_version: str, place: str) -> JsonObject:
    word: JsonObject = {"type": "string"}
    number: JsonObject = {"type": "integer", "format": "int32"}
    numbers = ("priority", "positionInClusterQueue", "positionInLocalQueue")
    fields: JsonObject = {"metadata": {"type": "object"}, "localQueueName": word, **dict.fromkeys(numbers, number)}
    required: list[JsonValue] = [*numbers, "localQueueName"]
    item: JsonObject = {"type": "object", "properties": fields, "required": required}
    items: JsonObject = {"type": "array", "items": {"$ref": place + _name(api_version, "PendingWorkload")}}
    summary: JsonObject = {
        "type": "object",
        "properties": {"apiVersion": word, "kind": word, "metadata": {"type": "object"}, "items": items},
        "required": ["items"],
        "x-kubernetes-group-version-kind": [{"group": GROUP, "version": api_version, "kind": _SUMMARY}],
    }
    return {_name(api_version, "PendingWorkload"): item, _name(api_version, _SUMMARY): summary}
