"""Reads where an admission places the pods of a pod set (rules/08 §15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at

__all__ = ["HOSTNAME", "Domain", "TopologyAssignment"]

HOSTNAME = "kubernetes.io/hostname"
"""The label of a level whose domains are single nodes."""


@dataclass(frozen=True, slots=True)
class Domain:
    """A node, rack or block, and how many pods run there.

    Args:
        values: Its value at each level of the assignment, the coarsest level first.
        count: How many pods.
    """

    values: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class TopologyAssignment:
    """Domains with their numbers of pods, in the order of the pods' ranks.

    Args:
        levels: The node labels that name a domain, the coarsest first.
        domains: The domains.

    Example:
        >>> values = [{"individual": {"prefix": "node-", "roots": ["1", "2"]}}]
        >>> plain = {"levels": ["kubernetes.io/hostname"],
        ...          "slices": [{"domainCount": 2, "valuesPerLevel": values, "podCounts": {"universal": 3}}]}
        >>> [(domain.values, domain.count) for domain in TopologyAssignment.of(plain).domains]
        [(('node-1',), 3), (('node-2',), 3)]
    """

    levels: tuple[str, ...]
    domains: tuple[Domain, ...]

    @classmethod
    def of(cls, plain: JsonObject) -> Self:
        """Read `topologyAssignment` of a pod set in `v1beta2`, with its slices joined."""
        levels = tuple(level for level in list_at(plain, "levels") if isinstance(level, str))
        domains: list[Domain] = []
        for piece in list_at(plain, "slices"):
            n_domains = int_at(piece, "domainCount")
            columns = [_values(value, n_domains) for value in list_at(piece, "valuesPerLevel")]
            counts = _counts(object_at(piece, "podCounts"), n_domains)
            domains += map(Domain, zip(*columns, strict=True), counts)
        return cls(levels, tuple(domains))

    @property
    def are_nodes(self) -> bool:
        """Whether each domain is a single node, whose name is the last of its values."""
        return self.levels[-1:] == (HOSTNAME,)

    def selector(self, domain: Domain) -> dict[str, str]:
        """Return the node selector of the pods in a domain."""
        return dict(zip(self.levels, domain.values, strict=True))

    def place_of(self, selector: Mapping[str, str]) -> tuple[str, ...]:
        """Return the values of the domain that a node selector names; empty at levels that it leaves out."""
        return tuple(selector.get(level, "") for level in self.levels)


def _values(plain: JsonValue, n_domains: int) -> list[str]:
    """Return the values of one level."""
    if "universal" in object_at(plain):
        return [text_at(plain, "universal")] * n_domains
    prefix, suffix = text_at(plain, "individual", "prefix"), text_at(plain, "individual", "suffix")
    return [f"{prefix}{root}{suffix}" for root in list_at(plain, "individual", "roots")]


def _counts(plain: JsonObject, n_domains: int) -> list[int]:
    if "universal" in plain:
        return [int_at(plain, "universal")] * n_domains
    return [count for count in list_at(plain, "individual") if isinstance(count, int)]
