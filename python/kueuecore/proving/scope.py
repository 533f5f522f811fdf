"""What is searched: a tree of cohorts at a time, as no quota is shared between trees, without its workloads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kueuecore._json import JsonObject, object_at, text_at, texts_at
from kueuecore.findings.building import facts_of
from kueuecore.findings.facts import Facts
from kueuecore.findings.manifest_fields import parent_of
from kueuecore.findings.quota_tree import Node
from kueuecore.findings.smallest_world import having_workloads
from kueuecore.manifests import Manifest, as_manifest
from kueuecore.proving.explorer import Explorer
from kueuecore.proving.shapes import Shape, shapes_of
from kueuecore.proving.ties import in_opposite_order
from kueuecore.steady_state import most_flavors

__all__ = ["Scope", "scopes_of"]

_QUEUE_KINDS = ("ClusterQueue", "LocalQueue", "Cohort")
# Of the nodes that are alike, losing one is as bad as losing another.
_MAX_NODES = 4


@dataclass(frozen=True, slots=True)
class Scope:
    """One tree of cohorts, or a ClusterQueue without a cohort.

    Args:
        name: The root.
        facts: Its objects, without workloads.
        shapes: What may arrive.
        queues: Its ClusterQueues.
        classes: A number for each of them: those of one class differ in nothing but their names.
        nodes: The nodes that may be lost.
        assumed: What was assumed to be there besides the objects, in a sentence each.
    """

    name: str
    facts: Facts
    shapes: tuple[Shape, ...]
    queues: tuple[str, ...]
    classes: tuple[int, ...]
    nodes: tuple[str, ...]
    assumed: tuple[str, ...]

    def explorer(self, shapes: Sequence[Shape] | None = None, *, facts: Facts | None = None) -> Explorer:
        """Return an explorer.

        Args:
            shapes: What may arrive, in place of all shapes.
            facts: The objects, in place of all of them.
        """
        where, arriving = facts or self.facts, self.shapes if shapes is None else shapes

        def opposite() -> Explorer | None:
            found = in_opposite_order(where, arriving, self.queues)
            return None if found is None else self._explorer(*found)

        return self._explorer(where, arriving, self.queues, opposite)

    def _explorer(
        self,
        facts: Facts,
        shapes: Sequence[Shape],
        queues: Sequence[str],
        opposite: Callable[[], Explorer | None] | None = None,
    ) -> Explorer:
        return Explorer(
            facts.engine,
            now=facts.now,
            shapes=shapes,
            queues=queues,
            classes=self.classes,
            nodes=[name for name in self.nodes if name in facts.nodes],
            n_flavors=most_flavors(facts.engine),
            opposite=opposite,
        )


def scopes_of(facts: Facts) -> Iterator[Scope]:
    """Yield a scope for each tree that has a ClusterQueue."""
    trees: dict[Node, list[str]] = {}
    for name in facts.cluster_queues:
        path = facts.tree.path(Node("ClusterQueue", name))
        if path:
            trees.setdefault(path[-1], []).append(name)
    rooted = [(manifest, _root(facts, manifest)) for manifest in having_workloads(facts, frozenset())]
    for root, names in trees.items():
        yield _scope(facts, root, names, [manifest for manifest, other in rooted if other in (None, root)])


def _scope(facts: Facts, root: Node, names: Sequence[str], given: Sequence[Manifest]) -> Scope:
    some = [*given]
    ways: dict[str, tuple[str, str]] = {}
    for manifest in given:
        if text_at(manifest.object, "kind") == "LocalQueue":
            name = text_at(manifest.object, "metadata", "name")
            namespace = text_at(manifest.object, "metadata", "namespace") or "default"
            ways.setdefault(text_at(manifest.object, "spec", "clusterQueue"), (namespace, name))
    assumed = []
    for name in names:
        if name not in ways:
            ways[name] = ("default", name)
            some.append(as_manifest(_local_queue(name)))
            assumed.append(f"a LocalQueue for ClusterQueue {name}, which has none")
    tree = facts_of(some, configuration=facts.configuration, now=facts.now, trusted=facts.world.trusted)
    queues = tuple(sorted(names))
    shapes = shapes_of(tree, {name: ways[name] for name in queues}, workloads=facts)
    return Scope(
        root.name, tree, shapes, queues, tuple(_classes(tree, queues, ways)), tuple(_nodes(tree)), tuple(assumed)
    )


def _root(facts: Facts, manifest: Manifest) -> Node | tuple[()] | None:
    """The root of the tree in which an object is; None if it is in all of them, empty if it is in none."""
    kind, name = text_at(manifest.object, "kind"), text_at(manifest.object, "metadata", "name")
    if kind not in _QUEUE_KINDS:
        return None
    node = Node("ClusterQueue", text_at(manifest.object, "spec", "clusterQueue")) if kind == "LocalQueue" else None
    path = facts.tree.path(node or Node(kind, name))
    return path[-1] if path else ()


def _local_queue(name: str) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": "default"}
    spec: JsonObject = {"clusterQueue": name}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": metadata, "spec": spec}


def _classes(facts: Facts, queues: Sequence[str], ways: Mapping[str, tuple[str, str]]) -> Iterator[int]:
    """The number of the first ClusterQueue that is like each one."""
    seen: dict[str, int] = {}
    for number, name in enumerate(queues):
        manifest = facts.cluster_queues[name]
        spec = object_at(manifest.object, "spec")
        labels = facts.namespaces.get(ways[name][0], {})
        like = json.dumps([spec, parent_of(manifest), labels], sort_keys=True)
        yield seen.setdefault(like, number)


def _nodes(facts: Facts) -> Iterator[str]:
    """Nodes of which each is unlike the others; none if no flavor places pods on them."""
    if not any(text_at(flavor.object, "spec", "topologyName") for flavor in facts.flavors.values()):
        return
    seen: set[str] = set()
    for name, manifest in facts.nodes.items():
        labels = dict(texts_at(manifest.object, "metadata", "labels"))
        labels.pop("kubernetes.io/hostname", None)
        like = json.dumps([labels, object_at(manifest.object, "status", "allocatable")], sort_keys=True)
        if like not in seen and len(seen) < _MAX_NODES:
            seen.add(like)
            yield name
