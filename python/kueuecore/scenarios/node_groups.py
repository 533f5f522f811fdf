"""The nodes of a scenario: groups of identical nodes in racks and blocks, and their failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from math import prod

from kueuecore._json import JsonObject, JsonValue
from kueuecore.manifests import Manifest, Source
from kueuecore.scenarios.distributions import Span, Spans
from kueuecore.times import SECOND_NS, format_time

__all__ = ["HOSTNAME", "NodeFailure", "NodeGroup", "NodeLevel", "NodeState", "PlacedNode"]

HOSTNAME = "kubernetes.io/hostname"
"""The label that every node has: its name, unless a level sets it."""
_AT_ONCE = Span()


class NodeState(StrEnum):
    """The state of a failed node."""

    NOT_READY = "NotReady"
    """Its condition Ready is False."""
    DELETED = "Deleted"
    """It does not exist."""
    TAINTED = "Tainted"
    """It is ready and has a taint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLevel:
    """One level of a group of nodes, such as its racks.

    Args:
        name: The name of the level in patterns.
        count: The number of domains in each domain of the level above.
        label: The node label whose values are its domains.
        value: The pattern of these values: `{group}` is the name of the group, the name of a level in braces its
            number, from 1. Empty: the value of the level above, or the group, followed by name and number.
    """

    name: str
    count: int
    label: str
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailure:
    """A failure of nodes, once or repeatedly.

    Args:
        at: When, in seconds from the start.
        every: The time from the start of one failure to the start of the next.
        times: The number of failures.
        node: The node; empty: any.
        domain: Only nodes with this value at some level; empty: the whole group.
        n_nodes: How many to draw at random among the healthy ones; None: all that match.
        lasts: How long until they recover; None: forever.
        state: Their state meanwhile.
        taint: The taint, if they are tainted.
    """

    at: float = 0.0
    every: Spans = _AT_ONCE
    times: int = 1
    node: str = ""
    domain: str = ""
    n_nodes: int | None = None
    lasts: Spans | None = None
    state: NodeState = NodeState.NOT_READY
    taint: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A node of a group.

    Args:
        name: Its name.
        domains: The values of its levels, from the top.
    """

    name: str
    domains: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """A group of identical nodes.

    Args:
        name: The name of the group.
        levels: From the top down to the nodes themselves.
        capacity: `allocatable` of each, as quantities.
        labels: Labels of all nodes.
        taints: Taints of all nodes.
        failures: Their failures.
        source: Its position in a file.

    Example:
        >>> levels = (NodeLevel(name="rack", count=2, label="rack"), NodeLevel(name="host", count=2, label=HOSTNAME))
        >>> group = NodeGroup(name="gpu", levels=levels, capacity={"cpu": "8"})
        >>> [node.name for node in group.nodes()]
        ['gpu-rack1-host1', 'gpu-rack1-host2', 'gpu-rack2-host1', 'gpu-rack2-host2']
    """

    name: str
    levels: tuple[NodeLevel, ...]
    capacity: Mapping[str, str | int]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    failures: tuple[NodeFailure, ...] = ()
    source: Source = field(default_factory=Source, compare=False)

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return prod(level.count for level in self.levels)

    def nodes(self) -> Iterator[PlacedNode]:
        """Yield the nodes, in order of their numbers."""
        for numbers in product(*(range(1, level.count + 1) for level in self.levels)):
            values, known = list[str](), {"group": self.name}
            for level, number in zip(self.levels, numbers, strict=True):
                known[level.name] = str(number)
                above = values[-1] if values else self.name
                values.append(level.value.format_map(known) if level.value else f"{above}-{level.name}{number}")
            yield PlacedNode(values[-1], tuple(values))

    def manifest(
        self, node: PlacedNode, *, is_ready: bool = True, since: int, taints: tuple[Mapping[str, str], ...] = ()
    ) -> Manifest:
        """Return a node as an API server stores it.

        Args:
            node: The node.
            is_ready: Its condition Ready.
            since: Since when, in nanoseconds since 1970.
            taints: Taints in addition to those of the group.
        """
        own = dict(zip((level.label for level in self.levels), node.domains, strict=True))
        labels: JsonObject = {HOSTNAME: node.name, **self.labels, **own}
        allocatable: JsonObject = {"pods": 110, **self.capacity}
        ready: JsonObject = {
            "type": "Ready",
            "status": "True" if is_ready else "False",
            "lastTransitionTime": format_time(since // SECOND_NS * SECOND_NS),
        }
        # An empty list, so that a patch also removes taints.
        tainted: list[JsonValue] = []
        for taint in (*self.taints, *taints):
            if taint not in tainted:
                tainted.append(dict(taint))
        plain: JsonObject = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node.name, "labels": labels},
            "spec": {"taints": tainted},
            "status": {"allocatable": allocatable, "conditions": [ready]},
        }
        return Manifest(plain, self.source)
