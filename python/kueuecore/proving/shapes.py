"""The shapes of workloads that matter to a configuration: sizes at the borders of its quotas, one of each priority."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from fractions import Fraction

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore.findings.facts import Facts
from kueuecore.findings.manifest_fields import quota_fields, work_of
from kueuecore.findings.quota_tree import Node, plain

__all__ = ["Shape", "Tier", "shapes_of"]

_MAX_PODS = 8
# The quota of a tree is at least so many units, so that there are sizes between its borders.
_MIN_UNITS = 3
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")
_MAX_NAME = 40
_MOST = 2**31 - 1
# Kueue counts pods by itself.
_NOT_REQUESTED = ("pods",)


class Tier(IntEnum):
    """Which searches try a shape."""

    FIRST = 0
    """All, those with the fewest shapes among them."""
    SECOND = 1
    """Where there is time for more shapes."""
    DRAWN = 2
    """Only those that draw moves."""
    ELASTIC = 3
    """Only that for loops of workloads that may start with fewer pods."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a workload asks for.

    Args:
        name: Its name, from which those of its workloads are made.
        cluster_queue: Where it goes.
        workload: The Workload, without what tells two of one shape apart.
        tier: Which searches try it.
        simplicity: Of two shapes of a ClusterQueue that show something, the one with the smaller number is shown.
    """

    name: str
    cluster_queue: str
    workload: JsonObject
    tier: Tier
    simplicity: tuple[int, Fraction, int]


@dataclass(frozen=True, slots=True)
class _Priority:
    value: int
    name: str
    kind: str
    is_usual: bool


@dataclass(frozen=True, slots=True)
class _Size:
    amount: Fraction
    is_border: bool


def shapes_of(facts: Facts, queues: Mapping[str, tuple[str, str]], *, workloads: Facts) -> tuple[Shape, ...]:
    """Return the shapes for the ClusterQueues of one tree.

    Args:
        facts: The objects of the tree.
        queues: For each ClusterQueue, the namespace and name of the LocalQueue through which workloads come.
        workloads: All objects, whose Workloads are shapes, too.
    """
    units = _units(facts, queues)
    priorities = _priorities(facts)
    found = []
    for name, (namespace, local_queue) in queues.items():
        for n, (resource, per_pod, sizes) in enumerate(_sizes(facts, name, units)):
            for size in sizes:
                for priority in priorities:
                    spec = _spec(local_queue, resource, size.amount, per_pod, priority)
                    is_first = size.is_border and priority.is_usual
                    tier = Tier.DRAWN if n else Tier.FIRST if is_first else Tier.SECOND
                    found.append(_shape(name, namespace, resource, size, priority, spec, tier, is_elastic=False))
                    count = int_at(object_at(list_at(spec, "podSets")[0]), "count")
                    if count > 1 and is_first and not n:
                        elastic = _with_min_count(spec)
                        found.append(
                            _shape(name, namespace, resource, size, priority, elastic, Tier.ELASTIC, is_elastic=True)
                        )
    return tuple(_with_own_names((*_given(workloads, queues), *found)))


def _with_own_names(shapes: Iterable[Shape]) -> Iterator[Shape]:
    seen: Counter[str] = Counter()
    for shape in shapes:
        seen[shape.name] += 1
        if seen[shape.name] == 1:
            yield shape
            continue
        name = f"{shape.name}-v{seen[shape.name]}"
        metadata = {**object_at(shape.workload, "metadata"), "name": name}
        yield replace(shape, name=name, workload={**shape.workload, "metadata": metadata})


def _units(facts: Facts, queues: Iterable[str]) -> Mapping[str, Fraction]:
    """Return for each resource the amount of which all quotas and limits are multiples, or a fraction of it."""
    amounts: dict[str, list[Fraction]] = {}
    highest: dict[str, Fraction] = {}
    nodes = {node for name in queues for node in facts.tree.path(Node("ClusterQueue", name))}
    for node in nodes:
        for (_, resource), quotas in facts.tree.quotas.get(node, {}).items():
            for amount in (quotas.nominal, quotas.borrowing_limit, quotas.lending_limit):
                if isinstance(amount, Fraction) and amount > 0:
                    amounts.setdefault(resource, []).append(amount)
            if isinstance(quotas.potential, Fraction):
                highest[resource] = max(highest.get(resource, Fraction(0)), quotas.potential)
    found = {}
    for resource, each in amounts.items():
        unit = each[0]
        for amount in each[1:]:
            unit = _divisor(unit, amount)
        # A pod cannot ask for half of a device.
        least = Fraction(1, 1000) if resource == "cpu" else Fraction(1)
        for part in (2, 2, 2):
            if highest.get(resource, unit) / unit < _MIN_UNITS and (unit / part / least).denominator == 1:
                unit /= part
        found[resource] = unit
    return found


def _divisor(a: Fraction, b: Fraction) -> Fraction:
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)


def _sizes(
    facts: Facts, cluster_queue: str, units: Mapping[str, Fraction]
) -> Iterator[tuple[str, Fraction, list[_Size]]]:
    """Yield for each resource of a ClusterQueue that has quota: its name, what a pod takes, and the sizes."""
    flavors: dict[str, list[str]] = {}
    for quota in quota_fields(facts.cluster_queues[cluster_queue]):
        flavors.setdefault(quota.resource, []).append(quota.flavor)
    for resource, names in flavors.items():
        unit = units.get(resource)
        if unit is None or resource in _NOT_REQUESTED:
            continue
        borders: dict[Fraction, None] = {}
        others: dict[Fraction, None] = {}
        highest = Fraction(0)
        for flavor in names:
            quotas = facts.tree.quotas_of(Node("ClusterQueue", cluster_queue), flavor, resource)
            nominal = quotas.nominal if isinstance(quotas.nominal, Fraction) else Fraction(0)
            potential = quotas.potential if isinstance(quotas.potential, Fraction) else nominal + unit
            highest = max(highest, potential)
            borders.update(dict.fromkeys((nominal, nominal + unit, potential)))
            others.update(dict.fromkeys((unit, nominal - unit, potential - unit, 2 * unit)))
        found = [_Size(amount, is_border=True) for amount in borders if 0 < amount <= highest]
        found += [
            _Size(amount, is_border=False) for amount in others if 0 < amount <= highest and amount not in borders
        ]
        if found:
            yield resource, unit, found


def _priorities(facts: Facts) -> list[_Priority]:
    """Return the lowest, the highest, and those around thresholds; two without a class if there are no classes."""
    classes = {
        value: _Priority(value, text_at(manifest.object, "metadata", "name"), kind, is_usual=False)
        for kind in ("PriorityClass", "WorkloadPriorityClass")
        for manifest in facts.world.of_kind(kind)
        for value in [int_at(manifest.object, "value")]
    }
    thresholds = set()
    for manifest in facts.cluster_queues.values():
        threshold = object_at(manifest.object, "spec", "preemption", "borrowWithinCohort").get("maxPriorityThreshold")
        if isinstance(threshold, int):
            thresholds |= {threshold, min(threshold + 1, _MOST)}
    if not classes:
        classes = {value: _Priority(value, "", "", is_usual=False) for value in (0, 1, *thresholds)}
    values = sorted(classes)
    usual = {values[0], values[-1]}
    found = [_Priority(it.value, it.name, it.kind, is_usual=it.value in usual) for it in map(classes.get, values) if it]
    if len(found) > 4:
        around = {max((value for value in values if value <= edge), default=values[0]) for edge in thresholds}
        around |= {min((value for value in values if value >= edge), default=values[-1]) for edge in thresholds}
        around.add(values[len(values) // 2])
        found = [it for it in found if it.is_usual or it.value in around]
    return found


def _spec(local_queue: str, resource: str, amount: Fraction, unit: Fraction, priority: _Priority) -> JsonObject:
    n_pods = amount / unit
    count = int(n_pods) if n_pods.denominator == 1 and n_pods <= _MAX_PODS else 1
    requests: JsonObject = {resource: plain(amount / count, resource)}
    container: JsonObject = {"name": "main", "image": "image", "resources": {"requests": requests}}
    template: JsonObject = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    pod_sets: list[JsonValue] = [{"name": "main", "count": count, "template": template}]
    spec: JsonObject = {"queueName": local_queue, "podSets": pod_sets, "priority": priority.value}
    if priority.name:
        group = "kueue.x-k8s.io" if priority.kind == "WorkloadPriorityClass" else "scheduling.k8s.io"
        spec["priorityClassRef"] = {"group": group, "kind": priority.kind, "name": priority.name}
    return spec


def _with_min_count(spec: JsonObject) -> JsonObject:
    pod_sets: list[JsonValue] = [{**object_at(pod_set), "minCount": 1} for pod_set in list_at(spec, "podSets")]
    return {**spec, "podSets": pod_sets}


def _shape(
    cluster_queue: str,
    namespace: str,
    resource: str,
    size: _Size,
    priority: _Priority,
    spec: JsonObject,
    tier: Tier,
    *,
    is_elastic: bool,
) -> Shape:
    words = [cluster_queue, plain(size.amount, resource), resource.rpartition("/")[2]]
    words += [priority.name or f"priority-{priority.value}"] if priority.value or priority.name else []
    words += ["elastic"] if is_elastic else []
    name = _NOT_IN_A_NAME.sub("-", "-".join(words).lower()).strip("-")[:_MAX_NAME].rstrip("-")
    workload: JsonObject = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
    return Shape(name, cluster_queue, workload, tier, (int(is_elastic), size.amount, priority.value))


def _given(facts: Facts, queues: Mapping[str, tuple[str, str]]) -> Iterator[Shape]:
    """The shapes of the workloads that were given."""
    by_local_queue = {
        (namespace, text_at(manifest.object, "metadata", "name")): text_at(manifest.object, "spec", "clusterQueue")
        for (namespace, _), manifest in facts.local_queues.items()
    }
    seen = set()
    for (namespace, name), manifest in facts.workloads.items():
        spec = object_at(manifest.object, "spec")
        queue = by_local_queue.get((namespace, text_at(spec, "queueName")))
        work = work_of(manifest)
        if queue is None or queue not in queues or work in seen:
            continue
        seen.add(work)
        metadata = object_at(manifest.object, "metadata")
        kept: JsonObject = {name: metadata[name] for name in ("annotations", "labels") if name in metadata}
        short = name[:_MAX_NAME].rstrip("-.")
        workload: JsonObject = {
            "apiVersion": text_at(manifest.object, "apiVersion"),
            "kind": "Workload",
            "metadata": {**kept, "name": short, "namespace": namespace},
            "spec": spec,
        }
        yield Shape(short, queue, workload, Tier.FIRST, (0, Fraction(0), int_at(spec, "priority")))
