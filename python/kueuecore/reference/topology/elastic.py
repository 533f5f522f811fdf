"""Places the pods of a slice that replaces another (rules/08 §14)."""

from __future__ import annotations

import dataclasses

from kueuecore.reference.topology.assignment import Assumed, TopologyAssignment
from kueuecore.reference.topology.capacity import TopologyUse
from kueuecore.reference.topology.domains import Ask, Search, assume_found
from kueuecore.reference.topology.domains import assume as add
from kueuecore.reference.topology.placement import find


def resized(search: Search, assumed: Assumed, worker: Ask, leader: Ask | None) -> dict[str, TopologyAssignment] | None:
    """Return assignments that keep the pods of the previous slice where they are.

    Args:
        search: The input of the placement.
        assumed: What earlier pod sets take; what these take is added.
        worker: The pod set.
        leader: The pod set with its leader.

    Raises:
        NoPlaceError: There is no place for the additional pods.

    Returns:
        Assignments by pod set; None if the pods must be placed from scratch.
    """
    old, led = worker.previous, None if leader is None else leader.previous
    if old is None or search.nodes.stale(old) is not None or (led is not None and search.nodes.stale(led) is not None):
        return None
    if worker.count <= old.n_pods and leader is not None and led is None:
        # Kueue panics here.
        return None

    def assume(ask: Ask, assignment: TopologyAssignment) -> TopologyAssignment:
        add(search, assumed, TopologyUse(assignment, ask.single))
        return assignment

    given: dict[str, TopologyAssignment] = {}
    if worker.count > old.n_pods:
        # In older releases, the usage of the old slice counts as well.
        assume(worker, old)
        if leader is not None and led is not None:
            given[leader.name] = assume(leader, led)
        more = dataclasses.replace(worker, count=worker.count - old.n_pods, previous=None)
        made = find(search, more, leader if led is None else None)
        if leader is not None and led is None:
            assume_found(search, assumed, made[leader.name], leader.single)
            given[leader.name] = made[leader.name].assignment
        assume_found(search, assumed, made[worker.name], worker.single)
        return given | {worker.name: made[worker.name].assignment.merged(old, search.nodes.path)}
    kept = old.cut(worker.count) if worker.count < old.n_pods else old
    given[worker.name] = assume(worker, kept)
    if leader is not None and led is not None:
        given[leader.name] = assume(leader, led)
    return given
