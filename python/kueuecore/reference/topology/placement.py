"""Places the pods of a pod set, and its leader if it has one, in domains (rules/08 §5 to §8)."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping

from kueuecore.reference.settings import Json
from kueuecore.reference.topology import balanced, texts
from kueuecore.reference.topology.assignment import Found, TopologyAssignment
from kueuecore.reference.topology.domains import NO_TAIL, Ask, Domain, Exclusions, Search, Shape, counted, level
from kueuecore.reference.topology.order import Order, beside_tail, best_fit_with_tail, leader_first, takes
from kueuecore.reference.topology.slice_order import has_whole_slices, tail_last


class NoPlaceError(Exception):
    """Raised if there is no place; the reason is reported on the workload."""


def find(search: Search, worker: Ask, leader: Ask | None = None) -> dict[str, Found]:
    """Place a pod set, and the pod set that leads it.

    Args:
        search: The input of the placement.
        worker: The pod set; its topology request applies to both.
        leader: The pod set with the leader.

    Raises:
        NoPlaceError: There is no place for all of it.

    Returns:
        What was found, by pod set.
    """
    pod, nodes = _updated(worker), search.nodes
    worker = dataclasses.replace(worker, request=worker.request.counting(search.settings))
    shape = _shape(search, worker, 0 if leader is None else 1)
    of_leader = None
    if leader is not None and search.settings.on("TASLeaderPodSetFeasibility"):
        of_leader = _updated(leader)
    roots, excluded = counted(search, worker, leader, (pod, of_leader), shape)
    found = _Placement(search, worker, shape, roots, excluded).run()
    found.sort(key=lambda domain: domain.path)
    given = {worker.name: _assignment(search, {domain: domain.pods for domain in found})}
    if leader is not None:
        given[leader.name] = _assignment(search, {domain: domain.leaders for domain in found})
    if shape.tail:
        placed = tail_last(nodes, given[worker.name].assignment, shape.slice_level, shape.slice_size)
        if placed.n_pods != shape.count or not has_whole_slices(nodes, placed, shape.slice_level, shape.slice_size):
            raise NoPlaceError(f"cannot place the partial slice of PodSet {worker.name} in a single topology domain")
        given[worker.name] = dataclasses.replace(given[worker.name], assignment=placed)
    return given


def place(search: Search, worker: Ask, leader: Ask | None = None) -> dict[str, TopologyAssignment]:
    """Place a pod set, and the pod set that leads it; return only assignments, by pod set."""
    return {name: found.assignment for name, found in find(search, worker, leader).items()}


def _updated(worker: Ask) -> Json:
    """Return the pods with what checks that are Ready add (rules/08 §4.7)."""
    metadata, pod = worker.template.get("metadata") or {}, dict(worker.template.get("spec") or {})
    parts: dict[str, dict[str, str]] = {part: dict(metadata.get(part) or {}) for part in ("annotations", "labels")}
    parts["nodeSelector"] = dict(pod.get("nodeSelector") or {})
    tolerations: list[Json] = list(pod.get("tolerations") or ())
    for update in worker.updates:
        for part, ours in parts.items():
            for name, theirs in sorted((update.get(part) or {}).items()):
                if ours.setdefault(name, theirs) != theirs:
                    raise NoPlaceError(texts.conflict(worker.name, part, name, ours[name], theirs))
        tolerations += [each for each in update.get("tolerations") or () if each not in tolerations]
    return {**pod, "nodeSelector": parts["nodeSelector"], "tolerations": tolerations}


def _shape(search: Search, worker: Ask, n_leaders: int) -> Shape:
    """Return what to look for (rules/08 §2.3, §10)."""
    request, levels = worker.request, search.nodes.levels
    if request.slice_size <= 0:
        raise NoPlaceError("slice topology requested, but slice size not provided")
    key = request.level(levels, is_implied=worker.is_implied)
    if key is None:
        raise NoPlaceError("topology level not specified")
    if key not in levels:
        raise NoPlaceError(f"no requested topology level: {key}")
    slice_key = request.slice_level(levels)
    if slice_key not in levels:
        raise NoPlaceError(f"no requested topology level for slices: {slice_key}")
    if levels.index(key) > levels.index(slice_key):
        raise NoPlaceError(f"podset slice topology {slice_key} is above the podset topology {key}")
    return Shape(
        worker.count,
        n_leaders,
        levels.index(key),
        levels.index(slice_key),
        request.slice_size,
        _inner_sizes(search, worker),
        request.required is not None,
        request.is_unconstrained(is_implied=worker.is_implied),
        n_leaders > 0 and search.settings.has("LeadersNeedDomains"),
        search.settings.has("BalanceFallsBack"),
        worker.count % request.slice_size if _may_have_tail(search, worker) else 0,
    )


def _may_have_tail(search: Search, worker: Ask) -> bool:
    """Return whether pods beyond whole slices make one shorter slice (rules/08 §7.1)."""
    request = worker.request
    return search.settings.on("TASPartialSlices") and len(request.constraints) == 1 and request.slice_size > 1


def _inner_sizes(search: Search, worker: Ask) -> Mapping[int, int]:
    """Return the size of slices within slices, by level (rules/08 §5.5)."""
    levels = search.nodes.levels
    sizes: dict[int, int] = {}
    for outer, inner in itertools.pairwise(worker.request.constraints):
        if inner.level not in levels:
            raise NoPlaceError(f"no requested topology level for additional slice layer: {inner.level}")
        above, below = levels.index(outer.level), levels.index(inner.level)
        if below <= above:
            raise NoPlaceError(
                f"additional slice layer topology {inner.level} must be at a lower level than {outer.level}"
            )
        if inner.size <= 0 or outer.size % inner.size:
            raise NoPlaceError(
                f"additional slice layer size {inner.size} must evenly divide parent layer size {outer.size}"
            )
        sizes |= dict.fromkeys(range(above + 1, below + 1), inner.size)
    return sizes


def _assignment(search: Search, counts: Mapping[Domain, int]) -> Found:
    """Return the assignment of the leaves, by hostname alone if that is the lowest level (rules/08 §8 4)."""
    nodes, named = search.nodes, dict[tuple[str, ...], int]()
    start, end = len(nodes.levels) - 1 if nodes.is_by_host else 0, len(nodes.levels)
    for domain, count in counts.items():
        if count > 0:
            named[domain.path[start:end]] = named.get(domain.path[start:end], 0) + count
    on_nodes = {domain.path[-1]: count for domain, count in counts.items() if count > 0} if nodes.adds_nodes else {}
    return Found(TopologyAssignment(nodes.levels[start:], tuple(named.items())), on_nodes)


class _Placement:
    """The second phase: from domains that could take pods to those that do (rules/08 §7, §8)."""

    def __init__(self, search: Search, worker: Ask, shape: Shape, roots: list[Domain], excluded: Exclusions) -> None:
        self.search, self.worker, self.shape, self.roots, self.excluded = search, worker, shape, roots, excluded
        self.order = Order.of(shape.is_unconstrained, search.settings)

    def run(self) -> list[Domain]:
        """Return the leaves that get something."""
        shape, n_levels = self.shape, self.search.nodes.n_levels
        is_free = shape.is_required or shape.is_unconstrained or shape.tail > 0
        found = None
        if self.search.settings.on("TASBalancedPlacement") and not is_free:
            given = balanced.choose(self.roots, shape, self.order)
            if isinstance(given, str) and given and not shape.falls_back:
                raise NoPlaceError(given)
            found = None if isinstance(given, str) else given
        depth, domains = self._choose(shape.level) if found is None else found
        domains = self._distribute_slices(domains)
        while depth < min(n_levels - 1, shape.slice_level) and found is None:
            children = self.order.plain(child for domain in domains for child in domain.children)
            domains = self._distribute_slices(children)
            depth += 1
        while depth < n_levels - 1:
            domains = [leaf for domain in domains for leaf in self._descend(domain, depth)]
            depth += 1
        return domains

    def _descend(self, domain: Domain, depth: int) -> list[Domain]:
        """Distribute what one domain was given over its own children (rules/08 §8 3)."""
        children = self.order.plain(domain.children)
        below_slices = self.shape.inner_sizes.get(depth + 1, 1)
        unit = below_slices if depth >= self.shape.slice_level else self.shape.slice_size
        if unit > 1:
            for child in children:
                child.slices, child.slices_with_leader = child.pods // unit, child.pods_with_leader // unit
        return self._distribute(children, domain.pods, domain.leaders, unit, in_slices=unit > 1)

    def _suffices(self, domain: Domain) -> bool:
        room = beside_tail(domain, self.shape.leaders) if self.shape.tail else domain.slices_with_leader
        return room >= self.shape.n_slices and domain.leaders >= self.shape.leaders

    def _best_fit(self, domains: list[Domain]) -> Domain:
        """Return the smallest domain for everything, else the first (rules/08 §6.3, §7.3)."""
        needed, leaders = self.shape.n_slices, self.shape.leaders
        if self.shape.tail:
            return best_fit_with_tail(self.order, domains, needed, leaders)
        return self.order.best_fit(domains, needed, leaders)

    def _choose(self, depth: int) -> tuple[int, list[Domain]]:
        """Return the level, and the domains on it that take everything (rules/08 §7)."""
        shape, order, leaders = self.shape, self.order, self.shape.leaders
        domains = order.with_leader(level(self.roots, depth))
        if not domains:
            raise NoPlaceError(f"no topology domains at level: {self.search.nodes.levels[depth]}")
        top = domains[0]
        # The first holds the most slices, but maybe not the shorter one beside them.
        if order.is_best_fit and (self._suffices(top) or (shape.tail and top.leaders >= leaders)):
            top = self._best_fit(domains)
        if not order.is_best_fit:
            for domain in domains:
                if self._suffices(domain):
                    return depth, [domain]
            if shape.is_required:
                raise self._no_place(depth, domains[-1].pods)
        if self._suffices(top):
            return depth, [top]
        if shape.is_required:
            for index, domain in enumerate(domains[1:] if order.by_score else (), 1):
                if self._suffices(domain):
                    return depth, [self._best_fit(domains[index:])]
            raise self._no_place(depth, top.slices)
        if depth > 0 and not shape.is_unconstrained:
            return self._choose(depth - 1)
        has_tail = shape.tail > 0
        domains = leader_first(domains, shape.n_slices, leaders, in_slices=True, has_tail=has_tail)
        return depth, self._several(depth, domains)

    def _several(self, depth: int, domains: list[Domain]) -> list[Domain]:
        """Return domains that take everything together, that of the leader first (rules/08 §7.7)."""
        order, leaders, needed = self.order, self.shape.leaders, self.shape.n_slices
        chosen: list[Domain] = []
        index, is_held = 0, self.shape.tail == 0
        while leaders > 0 and index < len(domains) and domains[index].leaders > 0:
            domain = domains[index]
            if order.is_best_fit and domain.slices_with_leader >= needed:
                domain = order.best_fit(domains[index:], needed, leaders)
            chosen.append(domain)
            room = beside_tail(domain, 1)
            is_held |= room != NO_TAIL and min(domain.slices_with_leader, needed) <= room
            leaders, needed, index = leaders - domain.leaders, needed - domain.slices_with_leader, index + 1
        if leaders > 0:
            raise self._no_place(depth, self.shape.leaders - leaders)
        rest = order.plain(domains[index:])
        for index, first in enumerate(rest):
            if needed <= 0:
                break
            does_end = order.is_best_fit and first.slices >= needed
            domain = order.best_fit(rest[index:], needed, 0) if does_end else first
            chosen.append(domain)
            room = beside_tail(domain, 0)
            is_held |= room != NO_TAIL and min(domain.slices, needed) <= room
            needed -= domain.slices
        if needed > 0:
            raise self._no_place(depth, self.shape.n_slices - needed)
        if not is_held:
            # One more domain, for the shorter slice alone.
            others = [d for d in rest if d not in chosen and d.slices_with_tail != NO_TAIL]
            if not others:
                raise self._no_place(depth, self.shape.n_slices)
            chosen.append(others[0])
        return chosen

    def _distribute_slices(self, domains: list[Domain]) -> list[Domain]:
        """Give all slices and the leader to domains in order, and the shorter slice to one of them (rules/08 §8)."""
        shape = self.shape
        if not shape.tail:
            return self._distribute(domains, shape.count, shape.leaders, shape.slice_size, in_slices=True)
        needed, leaders, is_held = shape.n_slices, shape.leaders, False
        domains = leader_first(domains, needed, leaders, in_slices=True, has_tail=True)
        given: list[Domain] = []
        for index, domain in enumerate(domains):
            last = None if is_held else self._last_with_tail(domains[index:], needed, leaders)
            if last is not None:
                _give(last, needed, leaders, shape.slice_size)
                last.pods += shape.tail
                return [*given, last]
            there = takes(domain, leaders, in_slices=True)
            if self.order.is_best_fit and there >= needed and domain.leaders >= leaders:
                domain = self.order.best_fit(domains[index:], needed, leaders)
                there = takes(domain, leaders, in_slices=True)
            does_end = there >= needed and domain.leaders >= leaders
            taken, hosted = min(there, needed), min(domain.leaders, leaders)
            _give(domain, taken, hosted, shape.slice_size)
            given.append(domain)
            is_held |= _holds_tail(domain)
            if does_end:
                return self._add_tail(given, domains)
            needed, leaders = needed - taken, leaders - hosted
        return []

    def _last_with_tail(self, domains: list[Domain], needed: int, leaders: int) -> Domain | None:
        """Return the domain that takes all that is left, if it has no more slices than one without the shorter one."""

        def room(domain: Domain) -> int:
            return takes(domain, leaders, in_slices=True)

        first = domains[0]
        if room(first) < needed or first.leaders < leaders:
            return None
        last = tightest = first
        if self.order.is_best_fit:
            last = best_fit_with_tail(self.order, domains, needed, leaders)
            tightest = self.order.best_fit(domains, needed, leaders)
        is_enough = beside_tail(last, leaders) >= needed and last.leaders >= leaders
        return last if is_enough and room(last) <= room(tightest) else None

    def _add_tail(self, given: list[Domain], domains: list[Domain]) -> list[Domain]:
        """Give the shorter slice to a domain in use, or else open another one for it."""
        for domain in given:
            if _holds_tail(domain):
                domain.pods += self.shape.tail
                return given
        for domain in domains:
            if domain not in given and domain.slices_with_tail != NO_TAIL:
                _give(domain, 0, 0, self.shape.slice_size)
                domain.pods = self.shape.tail
                return [*given, domain]
        return []

    def _distribute(
        self, domains: list[Domain], pods: int, leaders: int, unit: int, *, in_slices: bool
    ) -> list[Domain]:
        """Give pods and leader to domains in order; the last one is the best fit (rules/08 §8)."""
        needed = pods // unit
        domains = leader_first(domains, needed, leaders, in_slices=in_slices)
        given: list[Domain] = []
        for index, domain in enumerate(domains):
            there = takes(domain, leaders, in_slices=in_slices)
            if self.order.is_best_fit and there >= needed and domain.leaders >= leaders:
                domain = self.order.best_fit(domains[index:], needed, leaders, in_slices=in_slices)
                there = takes(domain, leaders, in_slices=in_slices)
            taken, hosted = min(there, needed), min(domain.leaders, leaders)
            does_end = there >= needed and domain.leaders >= leaders
            domain.pods, domain.slices, domain.leaders = taken * unit, taken, hosted
            given.append(domain)
            if does_end:
                return given
            needed, leaders = needed - taken, leaders - hosted
        # Unreachable by the counts; Kueue returns an empty assignment here.
        return []

    def _no_place(self, depth: int, shown: int) -> NoPlaceError:
        shape, nodes = self.shape, self.search.nodes
        if len(self.worker.request.constraints) > 1:
            domains = level(self.roots, depth)
            text = texts.no_layers(nodes, domains, depth, shape.count, self.worker.request.constraints)
        else:
            text = texts.no_fit(nodes.topology, shown, shape.n_slices + (shape.tail > 0), shape.slice_size)
        return NoPlaceError(text + self.excluded.text)


def _give(domain: Domain, slices: int, leaders: int, size: int) -> None:
    """Let a domain have slices and leaders, instead of what it could take."""
    domain.pods, domain.slices, domain.leaders = slices * size, slices, leaders


def _holds_tail(domain: Domain) -> bool:
    """Return whether a domain can hold the shorter slice beside what it was given."""
    room = beside_tail(domain, domain.leaders)
    return room != NO_TAIL and domain.slices <= room
