"""Nodes and racks as a map: the domains of a topology, what is used in each, and whose pods run there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kueuecore._quantities import number
from kueuecore.topology import DomainCapacity, Placement

__all__ = ["Domain", "DomainUse", "FlavorMap", "flavor_maps"]

_WIDTH = 1000
# So many domains of the lowest level on a page; more are reached through those above.
_MOST = 200


@dataclass(frozen=True, slots=True)
class DomainUse:
    """What is used of one resource in a domain.

    Args:
        capacity: The amounts.
        used: The share that workloads with quota take, in thousandths.
        outside: The share that other pods take.
    """

    capacity: DomainCapacity
    used: int
    outside: int

    @property
    def says(self) -> str:
        """The bar in words."""
        row = self.capacity
        others = f", {row.outside} by other pods" if self.outside else ""
        return f"{row.used} of {row.allocatable} used{others}, {row.free} free"


@dataclass(slots=True)
class Domain:
    """A block, a rack or a node.

    Args:
        path: Its values of the levels down to it.
        level: The node label of its level.
        n_nodes: How many usable nodes it has.
        uses: What is used of each resource.
        pods: Workloads and how many of their pods run here, by namespace and name; only of the lowest level.
        below: The domains in it.
        is_cut: Whether those are on a page of their own.
    """

    path: tuple[str, ...]
    level: str
    n_nodes: int
    uses: list[DomainUse]
    pods: list[tuple[str, int]]
    below: list[Domain]
    is_cut: bool = False

    @property
    def name(self) -> str:
        """The value of its own level."""
        return self.path[-1]


@dataclass(frozen=True, slots=True)
class FlavorMap:
    """The map of a flavor.

    Args:
        flavor: The ResourceFlavor.
        topology: Its Topology.
        levels: The node labels of the levels, the widest first.
        domains: The domains of the widest level, or the one that is asked for.
        n_nodes: How many usable nodes it has.
        unused: The resources of which nothing is used, and which are not shown.
    """

    flavor: str
    topology: str
    levels: tuple[str, ...]
    domains: Sequence[Domain]
    n_nodes: int
    unused: Sequence[str]


def flavor_maps(
    capacity: Sequence[DomainCapacity],
    placements: Iterable[Placement],
    *,
    flavor: str = "",
    under: tuple[str, ...] = (),
) -> list[FlavorMap]:
    """Return the map of each flavor with a topology.

    Args:
        capacity: The capacity of all domains.
        placements: Where pods run.
        flavor: Only this one.
        under: Only the domain with this path, with all that is in it.
    """
    domains: dict[str, dict[tuple[str, ...], Domain]] = {}
    topologies: dict[str, str] = {}
    in_use = {(row.flavor, row.resource) for row in capacity if {row.used, row.outside} != {"0"}}
    idle: dict[str, set[str]] = {}
    for row in capacity:
        if flavor in ("", row.flavor):
            topologies[row.flavor] = row.topology
            found = domains.setdefault(row.flavor, {})
            domain = found.setdefault(row.path, Domain(row.path, row.level, row.n_nodes, [], [], []))
            # Where nothing runs at all, everything is shown.
            if (row.flavor, row.resource) in in_use or not in_use:
                domain.uses.append(_use(row))
            else:
                idle.setdefault(row.flavor, set()).add(row.resource)
    for placement in placements:
        for pods in placement.domains:
            place = domains.get(placement.flavor, {}).get(pods.path)
            if place is not None:
                place.pods.append((placement.key, pods.count))
    maps = (_map(name, topologies[name], found, under) for name, found in sorted(domains.items()))
    return [replace(found, unused=sorted(idle.get(found.flavor, ()))) for found in maps]


def _map(flavor: str, topology: str, domains: dict[tuple[str, ...], Domain], under: tuple[str, ...]) -> FlavorMap:
    for path in sorted(domains):
        if len(path) > 1 and path[:-1] in domains:
            domains[path[:-1]].below.append(domains[path])
        domains[path].pods.sort()
    roots = [domains[path] for path in sorted(domains) if len(path) == 1]
    levels = {len(path): domain.level for path, domain in domains.items()}
    shown = [domains[under]] if under in domains else roots
    n_lowest = sum(path[: len(under)] == under and len(path) == len(levels) for path in domains)
    if n_lowest > _MOST:
        for domain in shown:
            parts = domain.below if under in domains else [domain]
            for part in parts:
                part.is_cut = bool(part.below)
    return FlavorMap(
        flavor,
        topology,
        tuple(levels[depth] for depth in sorted(levels)),
        shown,
        sum(domain.n_nodes for domain in roots),
        (),
    )


def _use(row: DomainCapacity) -> DomainUse:
    total = number(row.allocatable) or 0
    shares = []
    for part in (row.used, row.outside):
        amount = number(part) or 0
        shares.append(int(min(max(amount / total, 0), 1) * _WIDTH) if total > 0 else 0)
    used, outside = shares
    return DomainUse(row, used, min(outside, _WIDTH - used))
