"""Rules about workloads that Kueue counts or ranks otherwise than it looks."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._quantities import number
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.topology_objects import KUEUE_GROUP
from kueuecore.world import DEFAULT_NAMESPACE, key_of

__all__ = ["counted_less", "stale_priorities"]


@rule("KC605", "counted-less", Severity.WARNING, "a workload whose pods request more than Kueue counts")
def counted_less(facts: Facts) -> Iterator[Hit]:
    """A LimitRange's defaultRequest is counted before limits; an API server takes the limits first (rules/01 §7.3)."""
    defaults = _default_requests(facts)
    for (namespace, _), workload in facts.workloads.items():
        seen = set()
        for index, pod_set in enumerate(list_at(workload.object, "spec", "podSets")):
            for path, container in _containers(pod_set):
                for resource, limit in object_at(container, "resources", "limits").items():
                    if resource in object_at(container, "resources", "requests"):
                        continue
                    name, counted = defaults.get((namespace, resource), ("", None))
                    least, most = number(counted), number(limit)
                    if least is None or most is None or least >= most or (index, resource) in seen:
                        continue
                    seen.add((index, resource))
                    yield hit(
                        workload,
                        f"Kueue counts {counted} {resource} for each such container, from LimitRange "
                        f"{namespace}/{name}, but its pods will request {limit}, their limit",
                        field=f"spec.podSets[{index}].template.spec.{path}.resources.limits[{resource}]",
                        remedy="write the requests",
                    )


def _default_requests(facts: Facts) -> dict[tuple[str, str], tuple[str, JsonValue]]:
    """For each namespace and resource the LimitRange that gives containers a request, and the request."""
    found: dict[tuple[str, str], tuple[str, JsonValue]] = {}
    for manifest in facts.given:
        if text_at(manifest.object, "kind") != "LimitRange" or text_at(manifest.object, "apiVersion") != "v1":
            continue
        namespace = text_at(manifest.object, "metadata", "namespace") or DEFAULT_NAMESPACE
        for item in list_at(manifest.object, "spec", "limits"):
            if text_at(item, "type") == "Container":
                name = text_at(manifest.object, "metadata", "name")
                for resource, value in (object_at(item, "default") | object_at(item, "defaultRequest")).items():
                    found.setdefault((namespace, resource), (name, value))
    return found


def _containers(pod_set: JsonValue) -> Iterator[tuple[str, JsonObject]]:
    spec = object_at(pod_set, "template", "spec")
    for field in ("initContainers", "containers"):
        for index, container in enumerate(list_at(spec, field)):
            yield f"{field}[{index}]", object_at(container)


@rule("KC606", "stale-priority", Severity.NOTE, "a Workload whose priority is not that of its class")
def stale_priorities(facts: Facts) -> Iterator[Hit]:
    """Kueue gives it the value of the class when it starts, and when the class changes (rules/01 §5)."""
    classes = facts.of_kind("WorkloadPriorityClass")
    made = {key_of(manifest.object) for manifest in facts.world.made}
    for key, workload in facts.workloads.items():
        spec = object_at(workload.object, "spec")
        name = text_at(spec, "priorityClassRef", "name") or text_at(spec, "priorityClassName")
        group = text_at(spec, "priorityClassRef", "group") or text_at(spec, "priorityClassSource")
        is_kueue = f"{group}/" == KUEUE_GROUP or group == f"{KUEUE_GROUP}workloadpriorityclass"
        if key in made or not is_kueue or name not in classes:
            continue
        priority, value = spec.get("priority"), classes[name].object.get("value")
        if isinstance(priority, int) and isinstance(value, int) and priority != value:
            yield hit(
                workload,
                f"its priority {priority} differs from that of WorkloadPriorityClass {name}, {value}: it counts with "
                f"{priority} here, and with {value} once Kueue has looked at the class",
                field="spec.priority",
                remedy=f"write {value}",
            )
