"""Domains, and how many pods each could take: the first phase of a placement (rules/08 §5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.topology import nodes as node_rules
from kueuecore.reference.topology.assignment import Assumed, Found, Requests, TopologyAssignment, Values, domain_id
from kueuecore.reference.topology.capacity import FlavorNodes, Leaf, TopologyUse, add_usage, fit, minus, usage_of, whole
from kueuecore.reference.topology.request import TopologyRequest

NO_TAIL = -1


@dataclass(eq=False)
class Domain:
    """A domain of any level. The counts first say what it could take, later what it was given.

    Args:
        path: Its label values from the highest level on.
        pods: P.
        slices: S: the number of slices.
        pods_with_leader: PL: the number of pods if the leader is placed here, too.
        slices_with_leader: SL.
        leaders: L: the number of leaders, at most one in a leaf.
        score: How strongly pods prefer its nodes.
        bound: bP, bL, bPL: what its own room allows, if its nodes do not know the usage (rules/08 §5.6).
        slices_with_tail: ST: the number of slices beside the shorter one; NO_TAIL if that does not fit (rules/08 §7.1).
        slices_with_both: SLT: the same beside a leader.
    """

    path: Values
    children: list[Domain] = field(default_factory=list)
    pods: int = 0
    slices: int = 0
    pods_with_leader: int = 0
    slices_with_leader: int = 0
    leaders: int = 0
    score: int = 0
    bound: tuple[int, int, int] | None = None
    slices_with_tail: int = NO_TAIL
    slices_with_both: int = NO_TAIL

    def tree(self) -> Iterator[Domain]:
        """Yield itself and all domains below."""
        yield self
        for child in self.children:
            yield from child.tree()

    def copy(self) -> Domain:
        """Return a deep copy."""
        counts = (self.pods, self.slices, self.pods_with_leader, self.slices_with_leader, self.leaders, self.score)
        return Domain(self.path, [child.copy() for child in self.children], *counts, self.bound)


@dataclass(frozen=True)
class Ask:
    """The part of one pod set to place (rules/08 §11.2).

    Args:
        name: Name of the pod set.
        count: The number of pods.
        single: The requests of one pod, by its template.
        request: Its topology request.
        is_implied: Whether the request is implied because its queue has no other flavors.
        template: Metadata and spec of its pods.
        updates: What checks that are Ready add to its pods.
        previous: Where the pods of the slice that it replaces are placed (rules/08 §14).
    """

    name: str
    count: int
    single: Requests
    request: TopologyRequest
    is_implied: bool = False
    template: Json = field(default_factory=dict)
    updates: tuple[Json, ...] = ()
    previous: TopologyAssignment | None = None


@dataclass(frozen=True)
class Shape:
    """What to look for: how many pods, in slices of which size, from which level on (rules/08 §2.3, §5.5)."""

    count: int
    leaders: int
    level: int
    slice_level: int
    slice_size: int
    inner_sizes: Mapping[int, int]
    is_required: bool
    is_unconstrained: bool
    # Whether the leader takes room only where it has room.
    needs_host: bool
    # Whether the ordinary placement takes over where a balanced one fails.
    falls_back: bool
    # How many pods make a last, shorter slice.
    tail: int = 0

    @property
    def n_slices(self) -> int:
        """The number of whole slices n; a remainder that is no slice of its own is dropped (rules/08 §7)."""
        return self.count // self.slice_size


@dataclass
class Exclusions:
    """Counts why leaves take nothing, for the message (rules/08 §10)."""

    n_leaves: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, why: str) -> None:
        """Count one more."""
        self.counts[why] = self.counts.get(why, 0) + 1

    @property
    def text(self) -> str:
        """The end of the message; refusals by the kube-scheduler are not mentioned."""
        if not self.counts.keys() - {"schedulerLibraryNoFit"}:
            return ""
        excluded = sorted(f"{why}: {number}" for why, number in self.counts.items())
        return f". Total nodes: {self.n_leaves}; excluded: {', '.join(excluded)}"


def forest(paths: Iterable[Values]) -> list[Domain]:
    """Return the domains of the highest level, with everything below."""
    roots: dict[Values, Domain] = {}
    known: dict[Values, Domain] = {}
    for path in paths:
        above: Domain | None = None
        for depth in range(1, len(path) + 1):
            part = path[:depth]
            if part not in known:
                known[part] = Domain(part)
                if above is None:
                    roots[part] = known[part]
                else:
                    above.children.append(known[part])
            above = known[part]
    return list(roots.values())


def level(roots: Iterable[Domain], depth: int) -> list[Domain]:
    """Return all domains of a level."""
    domains = list(roots)
    for _ in range(depth):
        domains = [child for domain in domains for child in domain.children]
    return domains


def roll_up(domain: Domain, shape: Shape, depth: int, inner_sizes: Mapping[int, int]) -> None:
    """Derive what a domain could take from what its children could (rules/08 §5.4)."""
    if not domain.children:
        if depth == shape.slice_level:
            _cut(domain, shape)
        return
    size = inner_sizes.get(depth + 1, 1)
    pods: dict[Domain, tuple[int, int]] = {}
    for child in domain.children:
        roll_up(child, shape, depth + 1, inner_sizes)
        pods[child] = whole(child.pods, size) * size, whole(child.pods_with_leader, size) * size
    hosts = [child for child in domain.children if child.leaders > 0 or not shape.needs_host]
    domain.pods = sum(without for without, _ in pods.values())
    domain.slices = sum(child.slices for child in domain.children)
    domain.leaders = max(child.leaders for child in domain.children)
    domain.score = sum(child.score for child in domain.children)
    # The leader costs as much as in the child where it costs least.
    domain.pods_with_leader = domain.slices_with_leader = 0
    if hosts:
        domain.pods_with_leader = domain.pods - min(pods[child][0] - pods[child][1] for child in hosts)
        domain.slices_with_leader = domain.slices - min(c.slices - c.slices_with_leader for c in hosts)
    if domain.bound is not None:
        pods_bound, leaders_bound, with_leader_bound = domain.bound
        domain.pods, domain.leaders = min(domain.pods, pods_bound), min(domain.leaders, leaders_bound)
        domain.pods_with_leader = min(max(domain.pods_with_leader, 0), with_leader_bound)
    if depth == shape.slice_level:
        _cut(domain, shape)
    elif depth < shape.slice_level and shape.tail:
        _find_room_for_tail(domain, shape)


def _cut(domain: Domain, shape: Shape) -> None:
    """Set how many slices fit into a domain of their level (rules/08 §5.4)."""
    domain.slices = whole(domain.pods, shape.slice_size)
    domain.slices_with_leader = whole(domain.pods_with_leader, shape.slice_size)
    if shape.tail:
        domain.slices_with_tail = _beside_tail(domain.pods, shape)
        domain.slices_with_both = _beside_tail(domain.pods_with_leader, shape)


def _beside_tail(pods: int, shape: Shape) -> int:
    return (pods - shape.tail) // shape.slice_size if pods >= shape.tail else NO_TAIL


def _find_room_for_tail(domain: Domain, shape: Shape) -> None:
    """Set how many slices fit beside the shorter one, which one child has to hold (rules/08 §7.1)."""
    children = domain.children
    there = sum(child.slices for child in children)
    tails = {i: c.slices - c.slices_with_tail for i, c in enumerate(children) if c.slices_with_tail != NO_TAIL}
    hosts = {i: c for i, c in enumerate(children) if c.leaders > 0} if shape.leaders else {}
    both = [c.slices - c.slices_with_both for c in hosts.values() if c.slices_with_both != NO_TAIL]
    both += [c.slices - c.slices_with_leader + loss for i, c in hosts.items() for j, loss in tails.items() if i != j]
    domain.slices_with_tail = domain.slices_with_both = NO_TAIL
    if tails:
        domain.slices_with_tail = min(there - min(tails.values()), _beside_tail(domain.pods, shape))
    if both:
        domain.slices_with_both = min(there - min(both), _beside_tail(domain.pods_with_leader, shape))


@dataclass(frozen=True)
class Search:
    """The input of a placement.

    Args:
        nodes: The nodes of the flavor.
        settings: The gates.
        assumed: What earlier pod sets take (rules/08 §11.3).
        is_empty: Whether to ignore the usage of workloads.
        uid: UID of the workload, maybe empty.
        within: Restricts the search to this domain (rules/08 §13.5).
    """

    nodes: FlavorNodes
    settings: Settings
    assumed: Assumed
    is_empty: bool = False
    uid: str = ""
    within: str = ""


def counted(
    search: Search, worker: Ask, leader: Ask | None, pods: tuple[Json, Json | None], shape: Shape
) -> tuple[list[Domain], Exclusions]:
    """Return what each domain could take, and what was left out (rules/08 §5).

    Args:
        search: The input of the placement.
        worker: The pod set.
        leader: The pod set with its leader.
        pods: The pods of the worker with what checks add, and those of the leader if they decide for themselves.
        shape: What to look for.
    """
    nodes, excluded, (pod, of_leader) = search.nodes, Exclusions(len(search.nodes.leaves)), pods
    roots = forest(leaf.path for leaf in nodes.leaves.values())
    bottom = {domain.path: domain for domain in level(roots, nodes.n_levels - 1)}
    likes = _asks_for_preferences(search, worker)
    for name, leaf in nodes.leaves.items():
        domain = bottom[leaf.path]
        guest = leader if leader is not None and _admits_leader(search, leaf, leader, of_leader) else None
        if why := nodes.admits(leaf, pod, worker.template.get("spec") or {}, search.settings):
            excluded.count(why)
            if guest is not None and of_leader is not None:
                # No worker may be there, but the leader may (rules/08 §5.3).
                there = _capacity(search, name, leaf)
                domain.leaders = int(fit(_with_pod(guest.single), there, search.settings)[0] > 0)
            continue
        if likes and leaf.node is not None:
            domain.score = node_rules.score(leaf.node, pod)
        path = domain_id(leaf.path)
        if search.within and path != search.within and not path.startswith(f"{search.within},"):
            excluded.count("topologyDomain")
            continue
        limiting = _fill(search, domain, _capacity(search, name, leaf), worker, guest)
        if domain.pods == 0 and limiting:
            excluded.count(f'resource "{limiting}"')
    for domain in level(roots, len(nodes.levels) - 1) if nodes.adds_nodes else ():
        domain.bound = _bound(search, domain_id(domain.path), worker, leader)
    for root in roots:
        roll_up(root, shape, 0, shape.inner_sizes)
    return roots, excluded


def _asks_for_preferences(search: Search, worker: Ask) -> bool:
    """Return whether preferences count: once for a pod set in a snapshot (rules/08 §4.8)."""
    settings, nodes, key = search.settings, search.nodes, (search.uid, worker.name)
    if not settings.on("TASRespectNodeAffinityPreferred") or not nodes.has_nodes:
        return False
    if not settings.on("TASCacheNodeMatchResults") or not search.uid:
        return True
    was_asked = key in nodes.scored
    nodes.scored.add(key)
    return not was_asked


def _admits_leader(search: Search, leaf: Leaf, leader: Ask, of_leader: Json | None) -> bool:
    if of_leader is None or leaf.node is None:
        return True
    return not search.nodes.admits(leaf, of_leader, leader.template.get("spec") or {}, search.settings)


def _capacity(search: Search, name: str, leaf: Leaf) -> dict[str, int]:
    assumed = search.assumed.nodes if search.nodes.adds_nodes else search.assumed.named
    return minus(leaf.remaining(is_empty=search.is_empty), assumed.get(name, {}))


def _bound(search: Search, name: str, worker: Ask, leader: Ask | None) -> tuple[int, int, int]:
    """Return bP, bL and bPL: what the room of a domain allows, whatever its nodes could take (rules/08 §5.6)."""
    there = search.nodes.named[name].remaining(is_empty=search.is_empty)
    counts = Domain(())
    _fill(search, counts, minus(there, search.assumed.named.get(name, {})), worker, leader)
    return counts.pods, counts.leaders, counts.pods_with_leader


def _fill(search: Search, domain: Domain, capacity: Requests, worker: Ask, leader: Ask | None) -> str:
    """Set what a leaf could take, and return the limiting resource (rules/08 §5.3)."""
    asked = _with_pod(worker.single)
    domain.pods, limiting = fit(asked, capacity, search.settings)
    if leader is not None and fit(_with_pod(leader.single), capacity, search.settings)[0] > 0:
        domain.leaders, capacity = 1, minus(capacity, _with_pod(leader.single))
    domain.pods_with_leader = fit(asked, capacity, search.settings)[0]
    return limiting


def assume(search: Search, assumed: Assumed, use: TopologyUse) -> None:
    """Let later pod sets see what the pods of one take (rules/08 §11.3)."""
    used = usage_of(use)
    if not search.settings.has("PodSetsShareRoomForPods"):
        used = {name: {r: n * count for r, n in use.single.items()} for name, count in _counts(use).items()}
    add_usage(assumed.named, used)


def assume_found(search: Search, assumed: Assumed, found: Found, single: Requests) -> None:
    """Do the same for pods that have just been placed, whose nodes are known (rules/08 §11.3)."""
    assume(search, assumed, TopologyUse(found.assignment, single))
    on_nodes = {name: {r: n * count for r, n in _with_pod(single).items()} for name, count in found.nodes.items()}
    add_usage(assumed.nodes, on_nodes)


def _counts(use: TopologyUse) -> dict[str, int]:
    counts: dict[str, int] = {}
    for values, count in use.assignment.domains:
        counts[domain_id(values)] = counts.get(domain_id(values), 0) + count
    return counts


def _with_pod(single: Requests) -> dict[str, int]:
    return {**single, "pods": single.get("pods", 0) + 1}
