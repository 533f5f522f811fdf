"""The event handlers for nodes, pods, topologies and flavors with one (rules/08 §4.4, §11.11, §13.1)."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore.reference.settings import Json
from kueuecore.reference.state import State
from kueuecore.reference.topology import failures
from kueuecore.reference.topology.nodes import (
    is_foreign,
    is_of_flavor,
    is_over,
    is_placed,
    is_ready,
    single_pod,
    watched_name,
)
from kueuecore.reference.topology.request import HOSTNAME


def changed(world: State, kind: str, old: Json | None, new: Json | None) -> None:
    """Handle an object that was created, changed or deleted."""
    if not world.settings.on("TopologyAwareScheduling"):
        return
    match kind:
        case "Node":
            _node(world, old, new)
        case "Pod":
            _room(world, old, new)
            _pod(world, old, new)
        case "Topology" if old is not None and new is not None and _levels(old) != _levels(new):
            world.notify(_queues_with(world, _flavors_of(world, new["metadata"]["name"])))
        case "ResourceFlavor" if new is not None and new["spec"].get("topologyName"):
            parts = ["topologyName"]
            if world.settings.has("FlavorEditsRetryWorkloads"):
                parts += ["tolerations", "nodeTaints", "nodeLabels"]
            before: Json = {} if old is None else old["spec"]
            if any((before.get(part) or None) != (new["spec"].get(part) or None) for part in parts):
                _retry(world, [new["metadata"]["name"]])


def look_again(world: State) -> None:
    """Check the nodes that are due (rules/08 §13.2)."""
    for name in sorted(name for name, at in world.node_checks.items() if at <= world.now):
        look(world, name)


def look(world: State, name: str) -> None:
    """Check a node, and note when to check it again."""
    again_at = failures.reconcile(world, name)
    world.node_checks.pop(name, None)
    if again_at is not None:
        world.node_checks[name] = again_at


def _levels(topology: Json) -> list[str]:
    return [level["nodeLabel"] for level in topology["spec"].get("levels") or ()]


def _active(world: State) -> list[str]:
    return [queue for queue in world.queues if world.cache.is_active(queue)]


def _retry(world: State, flavors: Iterable[str]) -> None:
    """Retry the workloads that nodes or a change of these flavors may let in (rules/08 §11.11)."""
    is_narrow = world.settings.has("NodeChangesRetryTheirQueues")
    world.notify(_queues_with(world, flavors) if is_narrow else _active(world))


def _flavors_of(world: State, topology: str) -> list[str]:
    flavors = world.kind("ResourceFlavor").items()
    return [name for name, flavor in flavors if flavor["spec"].get("topologyName") == topology]


def _queues_with(world: State, flavors: Iterable[str]) -> list[str]:
    """Return the ClusterQueues with any of these flavors."""
    nodes, named = world.cache.forest.cluster_queues.values(), set(flavors)
    return [node.name for node in nodes if node.spec is not None and node.spec.flavors & named]


def _flavors_on(world: State, node: Json) -> list[str]:
    """Return the flavors with a known topology that a node belongs to, by its labels."""
    found = []
    for name, flavor in world.kind("ResourceFlavor").items():
        levels = world.cache.cluster.levels(flavor["spec"].get("topologyName") or "")
        if levels is not None and is_of_flavor(node, flavor, levels):
            found.append(name)
    return found


def _node(world: State, old: Json | None, new: Json | None) -> None:
    node = new or old
    assert node is not None, "something changed"
    is_other = old is None or new is None or _place_of(old) != _place_of(new)
    flavors = [name for each in (old, new) if each is not None for name in _flavors_on(world, each)]
    if is_other and flavors:
        _retry(world, flavors)
    before, now = (None if each is None else watched_name(each, world.settings) for each in (old, new))
    name = before if now is None else now
    if name is None:
        return
    if before is not None and before != name and world.settings.on("TASFailedNodeReplacement"):
        look(world, before)
    if new is None or is_well(new):
        world.node_checks.pop(name, None)
    if world.settings.on("TASFailedNodeReplacement"):
        is_new = old is None or new is None or is_ready(old) != is_ready(new)
        by_taints = world.settings.on("TASReplaceNodeOnNodeTaints")
        if is_new or (by_taints and old is not None and new is not None and _taints(old) != _taints(new)):
            look(world, name)


def _taints(node: Json) -> list[Json]:
    return list(node["spec"].get("taints") or ())


def is_well(node: Json) -> bool:
    """Return whether it is ready, without a taint that repels pods."""
    return is_ready(node) and not any(taint.get("effect") in ("NoSchedule", "NoExecute") for taint in _taints(node))


def _place_of(node: Json) -> tuple[object, ...]:
    """Return the parts of a node that may let pods in (rules/08 §11.11)."""
    metadata, status = node["metadata"], node["status"]
    states = {condition["type"]: condition["status"] for condition in status.get("conditions") or ()}
    unschedulable = bool(node["spec"].get("unschedulable"))
    parts = (metadata["labels"], metadata["annotations"], status.get("allocatable") or {})
    return *parts, states, unschedulable, _taints(node)


def _pod(world: State, old: Json | None, new: Json | None) -> None:
    """Check a node when a pod that Kueue places waits for it or has left it (rules/08 §13.1)."""
    pod = new or old
    assert pod is not None, "something changed"
    if not is_placed(pod, world.settings) or not world.settings.on("TASFailedNodeReplacement"):
        return
    node, host = pod["spec"].get("nodeName"), (pod["spec"].get("nodeSelector") or {}).get(HOSTNAME)
    if node and new is not None and not is_over(new) and not new["metadata"].get("deletionTimestamp"):
        return
    if not node or world.settings.has("FailuresByHostname"):
        node = host
    if node:
        look(world, node)


def _room(world: State, old: Json | None, new: Json | None) -> None:
    """Requeue when a pod has ended, moved or needs less, so that a node has more room (rules/08 §4.4)."""
    if old is None or not is_foreign(old, world.settings) or not world.settings.has("FreedNodesRetryWorkloads"):
        return
    name = old["spec"]["nodeName"]
    if new is not None and is_foreign(new, world.settings) and new["spec"]["nodeName"] == name:
        before, after = (single_pod(entry["spec"], world.settings) for entry in (old, new))
        if not any(after.get(resource, number) < number for resource, number in before.items()):
            return
    node = world.kind("Node").get(name)
    if node is not None:
        world.notify(_queues_with(world, _flavors_on(world, node)))
