"""Amounts in the units of quota: thousandths of a `cpu`, whole units (bytes) of anything else (rules/01 §7)."""

from __future__ import annotations

from collections import Counter
from math import ceil

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at
from kueuecore._quantities import BINARY, number

__all__ = ["pod_requests", "quantity_of", "requests_of", "units_of"]

_CPU = "cpu"
_BYTES = ("memory", "storage", "hugepages")


def units_of(resource: str, quantity: JsonValue) -> int:
    """Convert a quantity to units, rounded up; 0 if it is not a quantity.

    Example:
        >>> units_of("cpu", "1500m"), units_of("memory", "2Ki"), units_of("nvidia.com/gpu", 8)
        (1500, 2048, 8)
    """
    found = number(quantity)
    return 0 if found is None else ceil(found * 1000 if resource == _CPU else found)


def quantity_of(resource: str, units: int) -> str:
    """Format a number of units as a quantity, with the largest suffix that divides it.

    Example:
        >>> quantity_of("cpu", 1500), quantity_of("cpu", 2000), quantity_of("memory", 2**31), quantity_of("gpu", 1024)
        ('1500m', '2', '2Gi', '1024')
    """
    if resource == _CPU:
        return str(units // 1000) if units % 1000 == 0 else f"{units}m"
    power = 0
    if any(word in resource for word in _BYTES):
        while units and units % 1024 == 0 and power < len(BINARY) - 1:
            units, power = units // 1024, power + 1
    return f"{units}{BINARY[power]}"


def requests_of(workload: JsonObject) -> dict[str, int]:
    """Add up what all pods of a Workload request, in units; good enough as a first guess.

    Uses `status.resourceRequests`, as computed by Kueue, if a cycle has looked at the workload already.
    """
    total: Counter[str] = Counter()
    stated = list_at(workload, "status", "resourceRequests")
    for entry in stated:
        resources = object_at(entry, "resources")
        total.update({name: units_of(name, quantity) for name, quantity in resources.items()})
    if not stated:
        for pod_set in list_at(workload, "spec", "podSets"):
            count = int_at(pod_set, "count")
            total.update({name: units * count for name, units in pod_requests(object_at(pod_set)).items()})
    return {name: units for name, units in sorted(total.items()) if units}


def pod_requests(pod_set: JsonObject) -> dict[str, int]:
    """Add up what the containers of one pod request, in units."""
    total: Counter[str] = Counter()
    for container in list_at(pod_set, "template", "spec", "containers"):
        requests = object_at(container, "resources", "requests")
        total.update({name: units_of(name, quantity) for name, quantity in requests.items()})
    return dict(total)
