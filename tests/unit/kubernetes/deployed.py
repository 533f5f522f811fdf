"""What deploy/ says: roles and the Configuration; which rights rules give and requests take; which fields exist."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import kubernetes.client
import yaml
from pydantic import BaseModel

from kueuecore_apiserver import Request

USER = "system:serviceaccount:kueue-system:kueuecore"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: here, cluster: {{server: "{url}"}}}}]
users: [{{name: kueuecore, user: {{token: secret}}}}]
contexts: [{{name: here, context: {{cluster: here, user: kueuecore}}}}]
"""


def manifests_of(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(Path("deploy", name).read_text("utf-8")))


def deployed() -> tuple[list[dict[str, Any]], str]:
    """The roles with their bindings, and the Configuration."""
    manifests = manifests_of("kueuecore.yaml")
    (configured,) = (
        manifest["data"]["configuration.yaml"] for manifest in manifests if manifest["kind"] == "ConfigMap"
    )
    return roles_in("kueuecore.yaml"), configured


def roles_in(name: str) -> list[dict[str, Any]]:
    """Roles and bindings."""
    return [manifest for manifest in manifests_of(name) if manifest["kind"].endswith(("Role", "RoleBinding"))]


def allowed(roles: Iterable[Mapping[str, Any]]) -> set[tuple[str, str, str]]:
    """Verb, group and resource of all rules."""
    return {
        (verb, group, resource)
        for role in roles
        for rule in role.get("rules", ())
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def rights(requests: Iterable[Request]) -> set[tuple[str, str, str]]:
    """Verb, group and resource of requests."""
    return {
        (request.verb, request.group, "/".join(filter(None, (request.resource, request.subresource))))
        for request in requests
    }


def unknown(model: Any, plain: Any, path: str) -> Iterator[str]:
    """The paths of fields that a type of the client does not have."""
    arguments = [part for part in typing.get_args(model) if part is not type(None)]
    if typing.get_origin(model) in (typing.Union, types.UnionType):
        yield from unknown(arguments[0], plain, path)
    elif isinstance(plain, list) and arguments:
        for at, item in enumerate(plain):
            yield from unknown(arguments[0], item, f"{path}[{at}]")
    elif isinstance(model, type) and issubclass(model, BaseModel) and isinstance(plain, dict):
        attributes = {json: name for name, json in model.attribute_map.items()}  # type: ignore[attr-defined]
        for name, part in plain.items():
            if name not in attributes:
                yield f"{path}.{name}"
            else:
                yield from unknown(model.model_fields[attributes[name]].annotation, part, f"{path}.{name}")


def model_of(manifest: Mapping[str, Any]) -> Any:
    """The type of the client for an object."""
    version = manifest["apiVersion"].rpartition("/")[2]
    return getattr(kubernetes.client, f"{version[0].upper()}{version[1:]}{manifest['kind']}")
