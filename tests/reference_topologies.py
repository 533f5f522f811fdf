"""Nodes of a flavor, and what is to be placed on them, as the reference model knows them."""

from __future__ import annotations

from typing import Any

from kueuecore.reference.objects import complete
from kueuecore.reference.settings import Settings
from kueuecore.reference.topology.capacity import FlavorNodes
from kueuecore.reference.topology.domains import Ask
from kueuecore.reference.topology.nodes import is_schedulable
from kueuecore.reference.topology.request import request_of
from tests.topologies import flavor

Json = dict[str, Any]


def flavor_nodes(
    levels: tuple[str, ...], *nodes: Json, pods: tuple[Json, ...] = (), settings: Settings | None = None, **spec: Any
) -> FlavorNodes:
    """The nodes of a flavor."""
    there = [each for each in map(complete, nodes) if is_schedulable(each)]
    return FlavorNodes(complete(flavor(**spec)), levels, there, map(complete, pods), settings or Settings())


def ask(count: int, cpu: int = 1, name: str = "main", **request: Any) -> Ask:
    """What is to be placed: so many pods of so many CPUs."""
    single = {"cpu": cpu * 1000}
    asked = request_of({"topologyRequest": request})
    return Ask(name, count, single, asked, is_implied=not asked.is_explicit)
