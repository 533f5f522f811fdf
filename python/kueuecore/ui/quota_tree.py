"""The tree of cohorts with what each node has, uses, borrows and lends, by flavor and resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from kueuecore.answers.amounts import quantity_of, units_of
from kueuecore.states import QuotaRow

__all__ = ["Bar", "QuotaBar", "TreeNode", "bars_of", "quota_tree", "walked"]

_WIDTH = 1000
# More than anyone reads at once, and than a browser shows quickly.
_MOST_BARS = 400


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a bar.

    Args:
        kind: `used`, `borrowed` or `lent`.
        at: Where it begins, in thousandths.
        width: How wide it is.
    """

    kind: str
    at: int
    width: int


@dataclass(frozen=True, slots=True)
class QuotaBar:
    """The quota of one node for one flavor and resource, as quantities.

    Args:
        row: Quota and usage.
        total: Its quota and what its children lend it; for a ClusterQueue its nominal quota.
        borrowed: What it uses beyond that.
        lent: What others use of it.
        free: What nobody uses of it.
        bars: The parts of the bar.
        limit: Where the total ends on the bar, in thousandths.
    """

    row: QuotaRow
    total: str
    borrowed: str
    lent: str
    free: str
    bars: tuple[Bar, ...]
    limit: int

    @property
    def says(self) -> str:
        """The bar in words."""
        return f"{self.row.usage} of {self.total} used, {self.borrowed} borrowed, {self.lent} lent, {self.free} free"


@dataclass(slots=True)
class TreeNode:
    """A Cohort or ClusterQueue with its children.

    Args:
        kind: `Cohort` or `ClusterQueue`.
        name: Its name.
        parent: The cohort above it.
        bars: Its quotas.
        below: Its children, cohorts first, by name.
        is_cut: Whether its children are on a page of their own.
    """

    kind: str
    name: str
    parent: str | None = None
    bars: list[QuotaBar] = field(default_factory=list)
    below: list[TreeNode] = field(default_factory=list)
    is_cut: bool = False


def quota_tree(rows: Sequence[QuotaRow], queues: Iterable[str], *, under: str = "") -> list[TreeNode]:
    """Return the roots of the tree: cohorts, then ClusterQueues without one.

    Args:
        rows: The rows of all nodes.
        queues: The names of all ClusterQueues: those without quota have no rows.
        under: Return only this cohort, with what is below.
    """
    nodes: dict[tuple[str, str], TreeNode] = {("ClusterQueue", name): TreeNode("ClusterQueue", name) for name in queues}
    for row, bar in zip(rows, _bars(rows), strict=True):
        node = nodes.setdefault((row.kind, row.name), TreeNode(row.kind, row.name))
        node.parent = row.parent
        node.bars.append(bar)
    roots = []
    for key in sorted(nodes):
        node = nodes[key]
        if node.parent is None:
            roots.append(node)
        else:
            above = nodes.get(("Cohort", node.parent))
            if above is None:  # a cohort that exists only as a parent has no row
                above = nodes[("Cohort", node.parent)] = TreeNode("Cohort", node.parent)
                roots.append(above)
            above.below.append(node)
    for node in nodes.values():
        node.below.sort(key=_order)
    if under:
        roots = [node for node in nodes.values() if (node.kind, node.name) == ("Cohort", under)]
    _cut(roots)
    return sorted(roots, key=_order)


def bars_of(rows: Sequence[QuotaRow], kind: str, name: str) -> list[QuotaBar]:
    """Return the quotas of one node."""
    return [bar for row, bar in zip(rows, _bars(rows), strict=True) if (row.kind, row.name) == (kind, name)]


def walked(roots: Sequence[TreeNode]) -> Iterator[tuple[TreeNode, int]]:
    """Yield every node that is shown, with how many lists end after it: a template needs no recursion for that."""
    todo = [(node, 1) for node in reversed(roots)]
    while todo:
        node, n_ends = todo.pop()
        below = [] if node.is_cut else node.below
        yield node, 0 if below else n_ends
        todo += [(child, 1 if place else n_ends + 1) for place, child in enumerate(reversed(below))]


def _order(node: TreeNode) -> tuple[bool, str]:
    return node.kind != "Cohort", node.name


def _cut(roots: Sequence[TreeNode]) -> None:
    """Leave the children of lower cohorts to pages of their own where they are too many for one."""
    n_bars, level = 0, list(roots)
    while level:
        n_bars += sum(1 + len(node.bars) for node in level)
        following = [child for node in level for child in node.below]
        n_next = sum(1 + len(child.bars) for child in following)
        # The roots and their children are always shown.
        if following and level != list(roots) and n_bars + n_next > _MOST_BARS:
            for node in level:
                node.is_cut = bool(node.below)
            return
        level = following


def _bars(rows: Sequence[QuotaRow]) -> list[QuotaBar]:
    lent = _lent(rows)
    return [_bar(row, units) for row, units in zip(rows, lent, strict=True)]


def _bar(row: QuotaRow, lent: int) -> QuotaBar:
    resource = row.resource
    usage, borrowed = units_of(resource, row.usage), units_of(resource, row.borrowed)
    total = None if row.subtree_quota is None else units_of(resource, row.subtree_quota)
    within = usage - borrowed
    if total is None:
        share = _WIDTH // 2 if usage else 0
        half = (Bar("used", 0, share),) if share else ()
        return QuotaBar(row, "no limit", "0", "0", "no limit", half, _WIDTH)
    free = max(0, total - within - lent)
    scale = max(total, usage, 1)
    ends = [*accumulate((within, free, lent, max(0, usage - total)))]
    # In the order of the bar: used, free, lent, then beyond the quota what is borrowed.
    places = [0, *(min(_WIDTH, end * _WIDTH // scale) for end in ends)]
    kinds = ("used", "free", "lent", "borrowed")
    bars = tuple(
        Bar(kind, begin, end - begin)
        for kind, (begin, end) in zip(kinds, pairwise(places), strict=True)
        if kind != "free" and end > begin
    )
    has, borrows, lends, leaves = (quantity_of(resource, units) for units in (total, borrowed, lent, free))
    return QuotaBar(row, has, borrows, lends, leaves, bars, min(_WIDTH, total * _WIDTH // scale))


def _lent(rows: Sequence[QuotaRow]) -> list[int]:
    """How much of each row's quota others use, by the definition of docs/simulate.md, "What is lent"."""
    families: dict[tuple[str, str, str], list[int]] = {}
    own: dict[tuple[str, str, str], int] = {}
    for place, row in enumerate(rows):
        if row.parent is not None:
            families.setdefault((row.parent, row.flavor, row.resource), []).append(place)
        if row.kind == "Cohort":
            own[row.name, row.flavor, row.resource] = place
    found = [0] * len(rows)
    # From the roots down: what a cohort lends comes from its children.
    todo = [key for key in families if key not in own or rows[own[key]].parent is None]
    while todo:
        key = todo.pop()
        children, above = families[key], own.get(key)
        asked = (found[above] if above is not None else 0) + sum(
            units_of(rows[place].resource, rows[place].borrowed) for place in children
        )
        own_quota = 0 if above is None else units_of(key[2], rows[above].nominal)
        pool = [own_quota, *(_idle(rows[place]) for place in children)]
        for place, part in zip(children, _parts(asked, pool)[1:], strict=True):
            found[place] = part
        below = ((rows[place].name, key[1], key[2]) for place in children if rows[place].kind == "Cohort")
        todo += [child for child in below if child in families]
    return found


def _idle(row: QuotaRow) -> int:
    """What a node could lend of what it does not use."""
    total, usage = units_of(row.resource, row.subtree_quota), units_of(row.resource, row.usage)
    kept = 0 if row.lending_limit is None else max(0, total - units_of(row.resource, row.lending_limit))
    return max(0, total - max(usage, kept))


def _parts(asked: int, idle: Sequence[int]) -> list[int]:
    """Divide an amount in proportion, into whole units that add up."""
    pool = sum(idle)
    asked = min(asked, pool)
    ends = [0, *(asked * end // pool if pool else 0 for end in accumulate(idle))]
    return [end - begin for begin, end in pairwise(ends)]
