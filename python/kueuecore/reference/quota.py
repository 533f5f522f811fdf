"""The usage of quota in the forest: what is used, available and borrowed (rules/02 §2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kueuecore.reference import amount
from kueuecore.reference.forest import Node
from kueuecore.reference.objects import Amounts, FlavorResource


class Usage:
    """The usage at each node."""

    def __init__(self, used: Mapping[Node, Amounts] | None = None) -> None:
        self._used = {node: dict(each) for node, each in (used or {}).items()}

    def copy(self) -> Usage:
        """Return an independent copy."""
        return Usage(self._used)

    def at(self, node: Node, fr: FlavorResource) -> int:
        """Return u: what is used at a node (rules/02 §2)."""
        return self._used.get(node, {}).get(fr, 0)

    def of(self, node: Node) -> dict[FlavorResource, int]:
        """Return all that is used at a node."""
        return dict(self._used.get(node, {}))

    def rebuild(self, root: Node) -> None:
        """Recompute the usage of Cohorts from that of their children (rules/02 §2)."""
        for cohort in (node for node in root.tree() if not node.is_cluster_queue):
            self._used[cohort] = {}
            for child in cohort.children:
                for fr, used in self._used.get(child, {}).items():
                    stored = max(0, amount.subtract(used, child.local(fr)))
                    self._set(cohort, fr, amount.add(self.at(cohort, fr), stored))

    def _set(self, node: Node, fr: FlavorResource, used: int) -> None:
        self._used.setdefault(node, {})[fr] = used

    def add(self, node: Node, usage: Amounts) -> None:
        """Add usage; what exceeds the local quota goes to the parent (rules/02 §2.1)."""
        path = [node] if node.has_cycle else node.chain()
        for fr, more in usage.items():
            for at in path:
                local = self.local_available(at, fr)
                self._set(at, fr, amount.add(self.at(at, fr), more))
                if more <= local:
                    break
                more = amount.subtract(more, local)

    def remove(self, node: Node, usage: Amounts) -> None:
        """Remove usage; the parent first gets back what it had lent (rules/02 §2.1)."""
        path = [node] if node.has_cycle else node.chain()
        for fr, less in usage.items():
            for at in path:
                stored = amount.subtract(self.at(at, fr), at.local(fr))
                self._set(at, fr, amount.subtract(self.at(at, fr), less))
                if stored <= 0:
                    break
                less = min(less, stored)

    def local_available(self, node: Node, fr: FlavorResource) -> int:
        """Return LA: what is left of its local quota (rules/02 §2)."""
        return max(0, amount.subtract(node.local(fr), self.at(node, fr)))

    def raw_available(self, node: Node, fr: FlavorResource) -> int:
        """Return what is left for a node, negative if too much is used (rules/02 §2.2)."""
        subtree, used = node.subtree.get(fr, 0), self.at(node, fr)
        if node.parent is None:
            return amount.subtract(subtree, used)
        above = self.raw_available(node.parent, fr)
        limit = node.quota(fr).borrowing_limit
        if limit is not None:
            stored = max(0, amount.subtract(used, node.local(fr)))
            lent = amount.subtract(subtree, node.local(fr))
            above = min(above, amount.add(amount.subtract(lent, stored), limit))
        return amount.add(self.local_available(node, fr), above)

    def available(self, node: Node, fr: FlavorResource) -> int:
        """Return what a ClusterQueue may use now (rules/02 §2.2)."""
        return max(0, self.raw_available(node, fr))

    def fits(self, node: Node, requests: Amounts) -> bool:
        """Return whether a ClusterQueue may use all this now."""
        return all(requested <= self.available(node, fr) for fr, requested in requests.items())

    def is_borrowing_with(self, node: Node, fr: FlavorResource, more: int = 0) -> bool:
        """Return whether it would exceed its own quota (rules/02 §2.4)."""
        own = node.quota(fr).nominal if node.is_cluster_queue else node.subtree.get(fr, 0)
        return own < amount.add(self.at(node, fr), more)

    def is_within_nominal(self, node: Node, frs: Iterable[FlavorResource]) -> bool:
        """Return whether it exceeds its own quota in none of these (rules/02 §2.4)."""
        return not any(self.at(node, fr) > node.subtree.get(fr, 0) for fr in frs)

    def fits_quota(self, node: Node, requests: Amounts) -> tuple[bool, dict[FlavorResource, int]]:
        """Return whether requests fit its own quota, and what of them goes to its parent (rules/02 §2.4)."""
        fits = all(node.subtree.get(fr, 0) >= amount.add(self.at(node, fr), v) for fr, v in requests.items())
        return fits, {fr: max(0, amount.subtract(v, self.local_available(node, fr))) for fr, v in requests.items()}

    def level(self, node: Node, fr: FlavorResource, requested: int) -> tuple[int, bool]:
        """Return the height of the lowest subtree that fits, and whether that is less than the tree (rules/02 §2.5)."""
        if node.parent is None or not self.is_borrowing_with(node, fr, requested):
            return 0, node.parent is not None
        left = amount.subtract(requested, self.local_available(node, fr))
        for ancestor in node.chain()[1:]:
            if not self.is_borrowing_with(ancestor, fr, left):
                return ancestor.height(), ancestor.parent is not None
            left = amount.subtract(left, self.local_available(ancestor, fr))
        return node.root.height(), False
