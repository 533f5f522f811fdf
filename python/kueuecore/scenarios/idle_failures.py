"""Failures of nodes that cannot change a run: Kueue does not know which jobs run on these nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kueuecore._json import JsonObject, list_at, text_at, texts_at
from kueuecore.configuration import Configuration
from kueuecore.manifests import Manifest
from kueuecore.scenarios.node_groups import HOSTNAME, NodeGroup

__all__ = ["idle_failures"]


def idle_failures(
    groups: Sequence[NodeGroup], objects: Iterable[Manifest], *, configuration: Configuration | None, field: str
) -> Iterator[str]:
    """Yield a warning for each group whose failures reach no running job (rules/08 §3, §13.1).

    Args:
        groups: The groups of nodes.
        objects: All objects of the cluster, also those that come later.
        configuration: Kueue's Configuration.
        field: Where the groups stand in the scenario.
    """
    failing = [(index, group) for index, group in enumerate(groups) if group.failures]
    if not failing:
        return
    given = [object_.object for object_ in objects]
    flavors = [
        other
        for other in given
        if text_at(other, "kind") == "ResourceFlavor" and text_at(other, "spec", "topologyName")
    ]
    hosts = {_name(other) for other in given if text_at(other, "kind") == "Topology" and _ends_at_hosts(other)}
    is_off = configuration is not None and not configuration.is_enabled("TopologyAwareScheduling")
    for index, group in failing:
        there = [] if is_off else [flavor for flavor in flavors if _selects(flavor, group)]
        names = sorted({text_at(flavor, "spec", "topologyName") for flavor in there})
        if is_off:
            says = "they change nothing: without the gate TopologyAwareScheduling Kueue ignores nodes; turn it on"
        elif not there:
            says = (
                f"they change nothing: no ResourceFlavor with a topologyName selects the nodes of {group.name}, "
                "so Kueue cannot tell which jobs run there; give one a Topology, and nodeLabels that these nodes have"
            )
        elif hosts.isdisjoint(names):
            says = (
                f"jobs that run on the nodes of {group.name} go on: Kueue replaces failed nodes only where the last "
                f"level of the Topology is {HOSTNAME}, unlike that of {', '.join(names)}; add this level"
            )
        else:
            continue
        yield f"{field}[{index}].failures: {says}"


def _selects(flavor: JsonObject, group: NodeGroup) -> bool:
    wanted = texts_at(flavor, "spec", "nodeLabels").items()
    labels = (texts_at(group.manifest(node, since=0).object, "metadata", "labels") for node in group.nodes())
    return any(wanted <= label.items() for label in labels)


def _name(given: JsonObject) -> str:
    return text_at(given, "metadata", "name")


def _ends_at_hosts(topology: JsonObject) -> bool:
    return [text_at(level, "nodeLabel") for level in list_at(topology, "spec", "levels")][-1:] == [HOSTNAME]
