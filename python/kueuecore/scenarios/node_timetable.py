"""When the nodes of a scenario fail and recover, drawn from its seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from kueuecore.manifests import Manifest
from kueuecore.scenarios.node_groups import NodeFailure, NodeGroup, NodeState, PlacedNode
from kueuecore.times import SECOND_NS

__all__ = ["NodeChange", "failure_times", "node_changes", "nodes_of"]


@dataclass(frozen=True, slots=True)
class NodeChange:
    """The creation, deletion or change of a node.

    Args:
        at: When, in seconds from the start.
        name: The node.
        manifest: The node from then on; None: it is deleted.
    """

    at: float
    name: str
    manifest: Manifest | None


@dataclass(frozen=True, slots=True)
class _Outage:
    """An outage of a node.

    Args:
        begin: When it starts, in seconds from the start of the scenario.
        end: When it ends; None: never.
        failure: The failure.
    """

    begin: float
    end: float | None
    failure: NodeFailure

    def lasts_at(self, time: float) -> bool:
        """Return whether it has begun and not ended."""
        return self.begin <= time and (self.end is None or time < self.end)


def nodes_of(groups: Iterable[NodeGroup], *, start: int) -> tuple[Manifest, ...]:
    """Return all nodes as they are at `start`, in nanoseconds since 1970."""
    return tuple(group.manifest(node, since=start) for group in groups for node in group.nodes())


def failure_times(group: NodeGroup, index: int, seed: int) -> Iterator[tuple[float, float | None]]:
    """Yield when each occurrence of a group's failure begins and ends (None: never), in seconds from the start."""
    failure, random = group.failures[index], Random(f"{seed}/nodes/{group.name}/{index}")
    time, every = failure.at, failure.every.draws(random)
    spans = None if failure.lasts is None else failure.lasts.draws(random)
    for _ in range(failure.times):
        lasts = None if spans is None else next(spans)
        yield time, None if lasts is None else round(time + lasts, 3)
        time = round(time + next(every), 3)


def node_changes(groups: Iterable[NodeGroup], *, seed: int, start: int) -> tuple[NodeChange, ...]:
    """Return all node changes, in order of time.

    While several failures of a node overlap, it is deleted if one of them deletes it, else not ready if one makes it
    so, and has all their taints. A group's random draws do not depend on other groups.

    Args:
        groups: The nodes.
        seed: The seed of all random draws.
        start: The start time, in nanoseconds since 1970.

    Example:
        >>> from kueuecore.scenarios.node_groups import HOSTNAME, NodeLevel
        >>> from kueuecore.scenarios.distributions import Span
        >>> failure = NodeFailure(at=60, n_nodes=1, lasts=Span(30), state=NodeState.DELETED)
        >>> hosts = NodeLevel(name="n", count=3, label=HOSTNAME)
        >>> group = NodeGroup(name="g", levels=(hosts,), capacity={"cpu": 8}, failures=(failure,))
        >>> [(it.at, it.name, it.manifest is None) for it in node_changes([group], seed=1, start=0)]
        [(60, 'g-n1', True), (90, 'g-n1', False)]
    """
    changes = [change for group in groups for change in _of_group(group, seed, start)]
    return tuple(sorted(changes, key=lambda change: change.at))


def _of_group(group: NodeGroup, seed: int, start: int) -> Iterator[NodeChange]:
    nodes = tuple(group.nodes())
    outages: dict[PlacedNode, list[_Outage]] = {}
    times = [
        (begin, index, number, end)
        for index in range(len(group.failures))
        for number, (begin, end) in enumerate(failure_times(group, index, seed))
    ]
    for begin, index, number, end in sorted(times, key=lambda time: time[:3]):
        failure = group.failures[index]
        random = Random(f"{seed}/nodes/{group.name}/{index}/{number}")
        meant = [node for node in nodes if _is_meant(failure, node)]
        if failure.n_nodes is not None:
            well = [node for node in meant if not any(outage.lasts_at(begin) for outage in outages.get(node, ()))]
            meant = random.sample(well, min(failure.n_nodes, len(well)))
        for node in meant:
            outages.setdefault(node, []).append(_Outage(begin, end, failure))
    for node in nodes:
        yield from _of_node(group, node, outages.get(node, ()), start)


def _is_meant(failure: NodeFailure, node: PlacedNode) -> bool:
    return failure.node in ("", node.name) and (not failure.domain or failure.domain in node.domains)


def _of_node(group: NodeGroup, node: PlacedNode, outages: Sequence[_Outage], start: int) -> Iterator[NodeChange]:
    moments = sorted(
        {outage.begin for outage in outages} | {outage.end for outage in outages if outage.end is not None}
    )
    was: list[NodeFailure] = []
    was_ready, was_deleted, since = True, False, start
    for time in moments:
        last = [outage.failure for outage in outages if outage.lasts_at(time)]
        if last == was:
            continue
        was, states = last, {failure.state for failure in last}
        is_ready = NodeState.NOT_READY not in states
        if is_ready != was_ready or was_deleted:
            since = start + round(time * SECOND_NS)
        was_ready, was_deleted = is_ready, NodeState.DELETED in states
        taints = tuple(failure.taint for failure in last if failure.state is NodeState.TAINTED)
        node_then = group.manifest(node, is_ready=is_ready, since=since, taints=taints)
        yield NodeChange(time, node.name, None if was_deleted else node_then)
