"""The forest of ClusterQueues and Cohorts, as Kueue builds it (rules/02 §2, §4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from kueuecore.reference import amount
from kueuecore.reference.objects import ClusterQueue, FlavorResource, Quota, ResourceGroup, groups_and_quotas, weight_of
from kueuecore.reference.settings import Json


@dataclass(eq=False)
class Node:
    """A ClusterQueue or a Cohort.

    Args:
        is_explicit: Whether it has an object of its own, and is not only named by others.
        subtree: S, its subtree quota, as of the last computation of its tree.
        potential: What it could use if nothing else used anything, as of then (rules/02 §2.3).
        lendable: The same by resource, summed over all flavors (rules/02 §6 4).
        generation: How often quota available to it has changed (rules/02 §4.1).
        groups: The resource groups of a ClusterQueue.
        spec: The spec of a ClusterQueue; of one that has never taken effect, there is none.
        is_active: Whether it is in the snapshot of this cycle (rules/02 §5).
    """

    name: str
    is_cluster_queue: bool = False
    is_explicit: bool = False
    parent: Node | None = None
    quotas: Mapping[FlavorResource, Quota] = field(default_factory=dict)
    groups: tuple[ResourceGroup, ...] = ()
    weight: float = 0.0
    children: list[Node] = field(default_factory=list)
    subtree: dict[FlavorResource, int] = field(default_factory=dict)
    potential: dict[FlavorResource, int] = field(default_factory=dict)
    lendable: dict[str, int] = field(default_factory=dict)
    generation: int = 0
    spec: ClusterQueue | None = None
    is_active: bool = True

    def quota(self, fr: FlavorResource) -> Quota:
        """Return what it declares for a flavor and resource."""
        return self.quotas.get(fr, Quota())

    def local(self, fr: FlavorResource) -> int:
        """Return L: the part of its quota that it does not lend (rules/02 §2)."""
        lending = self.quota(fr).lending_limit
        return 0 if lending is None else max(0, amount.subtract(self.subtree.get(fr, 0), lending))

    def chain(self) -> list[Node]:
        """Return the path from itself to the root. In a cycle, it ends before a node repeats."""
        found: list[Node] = []
        node: Node | None = self
        while node is not None and node not in found:
            found.append(node)
            node = node.parent
        return found

    @property
    def root(self) -> Node:
        """The root of its tree."""
        return self.chain()[-1]

    @property
    def has_cycle(self) -> bool:
        """Whether it is in or below a cycle (rules/02 §4 4)."""
        return self.root.parent is not None

    def tree(self) -> Iterator[Node]:
        """Yield itself and all nodes below, the deepest first."""
        for child in self.children:
            yield from child.tree()
        yield self

    def height(self) -> int:
        """Return the levels of Cohorts above ClusterQueues (rules/02 §2.5)."""
        children = [child for child in self.children if child.is_active]
        cohorts = [child.height() + 1 for child in children if not child.is_cluster_queue]
        return max([min(len(children), 1), *cohorts])

    @property
    def path(self) -> str:
        """The names from the root down (rules/04 §8)."""
        return "/" + "/".join(node.name for node in reversed(self.chain()))


class Forest:
    """All nodes, by name. Calls back with the root of each tree that was recomputed, for usage."""

    def __init__(self, on_recompute: Callable[[Node], None]) -> None:
        self.cluster_queues: dict[str, Node] = {}
        self.cohorts: dict[str, Node] = {}
        self._on_recompute = on_recompute

    def recompute(self, node: Node | None) -> None:
        """Recompute S and what follows in a whole tree; its ClusterQueues get new generations (rules/02 §2, §4.1)."""
        if node is None or node.has_cycle:
            return
        nodes = list(node.root.tree())
        for each in nodes:
            each.subtree = {fr: quota.nominal for fr, quota in each.quotas.items()}
            for child in each.children:
                for fr, quota in child.subtree.items():
                    lent = amount.subtract(quota, child.local(fr))
                    each.subtree[fr] = amount.add(each.subtree.get(fr, 0), lent)
            each.generation += each.is_cluster_queue
        for each in reversed(nodes):
            each.potential = {fr: self._potential(each, fr) for fr in node.root.subtree}
            each.lendable = {}
            for (_, resource), most in each.potential.items():
                each.lendable[resource] = amount.add(each.lendable.get(resource, 0), most)
        self._on_recompute(node.root)

    @staticmethod
    def _potential(node: Node, fr: FlavorResource) -> int:
        """Return what a node could use if nothing else used anything (rules/02 §2.3)."""
        subtree, limit = node.subtree.get(fr, 0), node.quota(fr).borrowing_limit
        if node.parent is None:
            return subtree
        most = amount.add(node.local(fr), node.parent.potential[fr])
        return most if limit is None else min(amount.add(subtree, limit), most)

    def _move(self, node: Node, parent: str) -> Node | None:
        """Move a node below a Cohort, which is created if necessary. Returns the former parent."""
        former = node.parent
        # An implicit Cohort with no other child is dropped first, and then created anew.
        stays = former is not None and (former.is_explicit or former.children != [node])
        if former is not None and former.name == parent and stays:
            return None
        if former is not None:
            former.children.remove(node)
            if not former.is_explicit and not former.children:
                del self.cohorts[former.name]
        node.parent = self.cohorts.setdefault(parent, Node(parent)) if parent else None
        if node.parent is not None:
            node.parent.children.append(node)
        return former

    def set_cohort(self, manifest: Json) -> bool:
        """Create or update a Cohort (rules/02 §4 1 and 5). Returns whether it took effect: not in a cycle."""
        name, spec = manifest["metadata"]["name"], manifest["spec"]
        node = self.cohorts.setdefault(name, Node(name))
        node.is_explicit = True
        former = self._move(node, spec.get("parentName", ""))
        node.quotas, node.weight = groups_and_quotas(spec)[1], weight_of(spec)
        self.recompute(former)
        if node.has_cycle:
            return False
        self.recompute(node)
        self.recompute(node)
        return True

    def delete_cohort(self, name: str) -> None:
        """Delete the object of a Cohort; one with children stays, as a root without quota (rules/02 §4 2)."""
        node = self.cohorts[name]
        former = self._move(node, "")
        node.is_explicit, node.quotas, node.weight = False, {}, 0.0
        if node.children:
            self.recompute(node)
        else:
            del self.cohorts[name]
        self.recompute(former)

    def set_cluster_queue(self, spec: ClusterQueue) -> bool:
        """Create or update a ClusterQueue (rules/02 §4 5, §4.1). Returns whether it took effect.

        Where its tree would have to be recomputed but has a cycle, only its quota and resource groups do.
        """
        node = self.cluster_queues.setdefault(spec.name, Node(spec.name, is_cluster_queue=True, is_explicit=True))
        parent, before = node.parent, (node.quotas, node.groups)
        former = self._move(node, spec.cohort)
        self.recompute(former)
        node.quotas, node.groups = spec.quotas, spec.groups
        if node.generation == 0 or before != (spec.quotas, spec.groups) or node.parent is not parent:
            if node.has_cycle:
                node.spec = None if node.spec is None else node.spec.with_groups_of(spec)
                return False
            self.recompute(node)
        node.weight, node.spec = spec.weight, spec
        return True

    def delete_cluster_queue(self, name: str) -> None:
        """Delete a ClusterQueue, and recompute what is left of its tree."""
        self.recompute(self._move(self.cluster_queues.pop(name), ""))
