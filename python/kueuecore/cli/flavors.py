"""The flavors of pod sets, written as briefly as possible."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["flavors_of_pod_sets"]


def flavors_of_pod_sets(flavors: Mapping[str, Mapping[str, str]]) -> str:
    """Write the flavors of a workload, given by pod set and resource; `-` if there are none.

    Example:
        >>> flavors_of_pod_sets({"main": {"cpu": "spot", "memory": "spot"}})
        'spot'
        >>> flavors_of_pod_sets({"a": {"cpu": "spot"}, "b": {"cpu": "gold"}})
        'a: spot; b: gold'
    """
    per_pod_set = {name: _by_flavor(of_resources) for name, of_resources in flavors.items()}
    texts = list(per_pod_set.values())
    if not texts:
        return "-"
    if all(text == texts[0] for text in texts):
        return texts[0]
    return "; ".join(f"{name}: {text}" for name, text in per_pod_set.items())


def _by_flavor(flavors: Mapping[str, str]) -> str:
    """`spot` if all resources have that flavor, else `spot (cpu, memory), gpu-a (nvidia.com/gpu)`."""
    resources: dict[str, list[str]] = {}
    for resource, flavor in flavors.items():
        resources.setdefault(flavor, []).append(resource)
    if len(resources) <= 1:
        return next(iter(resources), "-")
    return ", ".join(f"{flavor} ({', '.join(names)})" for flavor, names in resources.items())
