"""Says what a resource may mean that a ClusterQueue has no quota for (rules/03 §3)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from kueuecore._near_names import near_names
from kueuecore.engine import Engine

__all__ = ["coverage_hint", "covered_resources", "meant_resource"]

_MAX_NAMES = 3
# Of shorter names, one letter makes another resource, as gpu and cpu.
_SHORTEST_WITH_A_TYPO = 4


def meant_resource(resource: str, covered: Iterable[str]) -> str:
    """Return the resource that an uncovered one may stand for; empty if there is none.

    Example:
        >>> covered = ["cpu", "nvidia.com/gpu", "hugepages-1Gi"]
        >>> meant_resource("gpu", covered), meant_resource("nvida.com/gpu", covered)
        ('nvidia.com/gpu', 'nvidia.com/gpu')
        >>> meant_resource("hugepages-2Mi", covered)
        ''
    """
    known = sorted(covered)
    for name in known:
        if name.endswith(f"/{resource}") or resource.endswith(f"/{name}"):
            return name
    alike = (
        name for name in known if _digits(name) == _digits(resource) and not _is_another_short_name(name, resource)
    )
    return next(iter(near_names(resource, alike)), "")


def covered_resources(engine: Engine) -> Mapping[str, frozenset[str]]:
    """Return the resources that each ClusterQueue has quota for, in any flavor."""
    found: dict[str, set[str]] = {name: set() for name in engine.cluster_queues()}
    for row in engine.quota():
        if row.kind == "ClusterQueue":
            found[row.name].add(row.resource)
    return {name: frozenset(row) for name, row in found.items()}


def coverage_hint(resource: str, cluster_queue: str, covered: Mapping[str, Collection[str]]) -> str:
    """Say which ClusterQueue has quota for a resource that one does not cover, or which resource may be meant.

    Args:
        resource: The resource.
        cluster_queue: The ClusterQueue that does not cover it.
        covered: The result of `covered_resources`.

    Returns:
        A clause, with a question mark if it is a guess; empty if there is nothing to say.

    Example:
        >>> coverage_hint("gpu", "a", {"a": ["cpu", "nvidia.com/gpu"]})
        'no ClusterQueue covers gpu; did you mean nvidia.com/gpu?'
        >>> coverage_hint("memory", "a", {"a": ["cpu"], "b": ["cpu", "memory"]})
        'ClusterQueue b covers memory'
    """
    if others := _covering(resource, covered):
        return f"{others} {'cover' if others.startswith('ClusterQueues ') else 'covers'} {resource}"
    if meant := meant_resource(resource, covered.get(cluster_queue, ())):
        return f"no ClusterQueue covers {resource}; did you mean {meant}?"
    if meant := meant_resource(resource, {name for names in covered.values() for name in names}):
        others = _covering(meant, covered)
        verb = "cover" if others.startswith("ClusterQueues ") else "covers"
        return f"no ClusterQueue covers {resource}; did you mean {meant}, which {others} {verb}?"
    return ""


def _covering(resource: str, covered: Mapping[str, Collection[str]]) -> str:
    """The ClusterQueues that cover a resource, in words; empty if there is none."""
    names = [name for name, item in sorted(covered.items()) if resource in item]
    if len(names) <= 1:
        return "".join(f"ClusterQueue {name}" for name in names)
    rest = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"ClusterQueues {', '.join(names[:_MAX_NAMES])}{rest}"


def _digits(name: str) -> list[str]:
    """The numbers in a name, which tell sizes and models apart."""
    return re.findall("[0-9]+", name)


def _is_another_short_name(one: str, other: str) -> bool:
    return len(one) == len(other) < _SHORTEST_WITH_A_TYPO and sorted(one) != sorted(other)
