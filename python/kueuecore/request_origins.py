"""Where a request comes from that Kueue counts: it need not be in the job (rules/01 §7.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.configuration import Configuration
from kueuecore.manifests import Manifest
from kueuecore.world import DEFAULT_NAMESPACE, World, key_of

__all__ = ["origin_of", "origins_in", "uncovered_in"]

_UNCOVERED = re.compile(r"resource (\S+) unavailable in ClusterQueue")
_SHORT = re.compile(r"insufficient (?:unused )?quota for (\S+) in flavor ")


def uncovered_in(message: str) -> tuple[str, ...]:
    """The resources that a ClusterQueue does not cover, according to Kueue's message, in order.

    Example:
        >>> uncovered_in("couldn't assign flavors to pod set main: resource gpu unavailable in ClusterQueue")
        ('gpu',)
    """
    return tuple(dict.fromkeys(_UNCOVERED.findall(message)))


def origins_in(message: str, workload: JsonObject, world: World, configuration: Configuration) -> str:
    """Where the requests come from that Kueue's message is about, and that the job does not ask for.

    Args:
        message: Kueue's message.
        workload: The Workload.
        world: The objects around it.
        configuration: Kueue's Configuration.

    Returns:
        Text such as `ephemeral-storage is from LimitRange lab/d`; empty if the job asks for all of it.
    """
    resources = dict.fromkeys((*_UNCOVERED.findall(message), *_SHORT.findall(message)))
    found = ((it, origin_of(it, workload, world, configuration)) for it in resources)
    return "; ".join(f"{resource} is from {origin}" for resource, origin in found if origin)


def origin_of(resource: str, workload: JsonObject, world: World, configuration: Configuration) -> str:
    """Where a counted request comes from; empty if the pods of the job itself ask for it.

    Args:
        resource: The resource, such as `ephemeral-storage`.
        workload: The Workload.
        world: The objects around it.
        configuration: Kueue's Configuration.
    """
    containers = list(_containers(workload))
    job = world.jobs.get(key_of(workload))
    asking = [it for it in containers if resource in _resources(it)]
    if asking:
        own = None if job is None else set(_names_in(job.object))
        added = [text_at(it, "name") for it in asking if own is not None and text_at(it, "name") not in own]
        return f"container {added[0]}, which is added to the job" if len(added) == len(asking) else ""
    for transformation in list_at(configuration.to_dict(), "resources", "transformations"):
        name = text_at(transformation, "input")
        if resource in object_at(transformation, "outputs") and any(name in _resources(it) for it in containers):
            return f"the transformation of {name}"
    return _of_namespace(resource, key_of(workload)[0], world.manifests) or _of_runtime(resource, workload, world)


def _of_namespace(resource: str, namespace: str, manifests: Sequence[Manifest]) -> str:
    for it in manifests:
        plain = it.object
        place = text_at(plain, "metadata", "namespace") or DEFAULT_NAMESPACE
        if text_at(plain, "kind") == "LimitRange" and place == namespace:
            items = (item for item in list_at(plain, "spec", "limits") if text_at(item, "type") == "Container")
            if any(resource in (*object_at(item, "default"), *object_at(item, "defaultRequest")) for item in items):
                return f"LimitRange {namespace}/{text_at(plain, 'metadata', 'name')}"
    return ""


def _of_runtime(resource: str, workload: JsonObject, world: World) -> str:
    specs = (object_at(it, "template", "spec") for it in list_at(workload, "spec", "podSets"))
    used = {text_at(spec, "runtimeClassName") for spec in specs}
    for it in world.manifests:
        name = text_at(it.object, "metadata", "name")
        is_used = text_at(it.object, "kind") == "RuntimeClass" and name in used
        if is_used and resource in object_at(it.object, "overhead", "podFixed"):
            return f"the overhead of RuntimeClass {name}"
    return ""


def _containers(workload: JsonObject) -> Iterator[JsonValue]:
    for pod_set in list_at(workload, "spec", "podSets"):
        spec = object_at(pod_set, "template", "spec")
        yield from list_at(spec, "initContainers")
        yield from list_at(spec, "containers")


def _resources(container: JsonValue) -> set[str]:
    return {name for part in ("requests", "limits") for name in object_at(container, "resources", part)}


def _names_in(plain: JsonValue) -> Iterator[str]:
    """All names in an object, those of its containers among them."""
    left: list[JsonValue] = [plain]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            if name := text_at(value, "name"):
                yield name
            left += value.values()
        elif isinstance(value, list):
            left += value
