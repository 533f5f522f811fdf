"""Where a request comes from that Kueue counts: it need not be in the job (rules/01 §7.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.coverage import coverage_hint, covered_resources
from kueuecore.engine import Engine
from kueuecore.waiting_cause import uncovered_in
from kueuecore.world import World, key_of

__all__ = ["RequestOrigins"]

_SHORT = re.compile(r"insufficient (?:unused )?quota for (\S+) in flavor ")


class RequestOrigins:
    """Knows where requests come from that the pods of a job do not make themselves.

    Args:
        world: The objects.
        engine: An engine that holds them.
    """

    def __init__(self, world: World, engine: Engine) -> None:
        self._world = world
        self._engine = engine

    def of(self, resource: str, workload: JsonObject) -> str:
        """Return where a counted request comes from; empty if the pods of the job itself ask for all of it.

        Args:
            resource: The resource, such as `ephemeral-storage`.
            workload: The Workload.
        """
        containers = list(_containers(workload))
        job = self._world.jobs.get(key_of(workload))
        asking = [container for container in containers if resource in _resources(container)]
        if asking:
            own = None if job is None else set(_names_in(job.object))
            added = [
                text_at(container, "name")
                for container in asking
                if own is not None and text_at(container, "name") not in own
            ]
            if len(added) == len(asking):
                return f"container {added[0]}, which is added to the job"
            also = self._of_runtime(resource, workload)
            return f"the job and {also}" if also else ""
        for transformation in self._transformations:
            name = text_at(transformation, "input")
            if resource in object_at(transformation, "outputs") and any(
                name in _resources(container) for container in containers
            ):
                return f"the transformation of {name}"
        return self._of_namespace(resource, key_of(workload)[0]) or self._of_runtime(resource, workload)

    def in_message(self, message: str, workload: JsonObject) -> str:
        """Say where the requests come from that Kueue's message is about, and that the job does not ask for.

        Args:
            message: Kueue's message.
            workload: The Workload.

        Returns:
            Text such as `ephemeral-storage is from LimitRange lab/d`; empty if the job asks for all of it.
        """
        resources = dict.fromkeys((*uncovered_in(message), *_SHORT.findall(message)))
        found = ((resource, self.of(resource, workload)) for resource in resources)
        return "; ".join(f"{resource} is from {origin}" for resource, origin in found if origin)

    def notes(self, message: str, workload: JsonObject, cluster_queue: str) -> str:
        """Say where uncovered requests come from, and what may be meant; empty if there is nothing to say.

        Args:
            message: Kueue's message.
            workload: The Workload.
            cluster_queue: Its ClusterQueue.
        """
        uncovered = uncovered_in(message)
        if not uncovered:
            return ""
        hints = (coverage_hint(name, cluster_queue, self._covered) for name in uncovered)
        return "; ".join(filter(None, [self.in_message(message, workload), *hints]))

    @cached_property
    def _covered(self) -> Mapping[str, frozenset[str]]:
        return covered_resources(self._engine)

    @cached_property
    def _transformations(self) -> tuple[JsonValue, ...]:
        return tuple(list_at(self._engine.configuration.to_dict(), "resources", "transformations"))

    @cached_property
    def _limit_ranges(self) -> Mapping[str, list[JsonObject]]:
        found: dict[str, list[JsonObject]] = {}
        for manifest in self._world.of_kind("LimitRange"):
            found.setdefault(key_of(manifest.object)[0], []).append(manifest.object)
        return found

    @cached_property
    def _runtime_classes(self) -> Mapping[str, JsonObject]:
        named = [manifest.object for manifest in self._world.of_kind("RuntimeClass")]
        return {text_at(other, "metadata", "name"): other for other in named}

    def _of_namespace(self, resource: str, namespace: str) -> str:
        for range_ in self._limit_ranges.get(namespace, ()):
            items = (item for item in list_at(range_, "spec", "limits") if text_at(item, "type") == "Container")
            if any(resource in (*object_at(item, "default"), *object_at(item, "defaultRequest")) for item in items):
                return f"LimitRange {namespace}/{text_at(range_, 'metadata', 'name')}"
        return ""

    def _of_runtime(self, resource: str, workload: JsonObject) -> str:
        for pod_set in list_at(workload, "spec", "podSets"):
            name = text_at(pod_set, "template", "spec", "runtimeClassName")
            # Kueue leaves an overhead that the pods have already as it is.
            own = object_at(pod_set, "template", "spec", "overhead")
            if name and resource in (own or object_at(self._runtime_classes.get(name), "overhead", "podFixed")):
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
