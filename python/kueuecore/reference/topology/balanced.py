"""Balanced placement: as few domains as possible, with slices spread evenly over them (rules/08 §9)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from kueuecore.reference.topology.domains import Domain, Shape, level, roll_up
from kueuecore.reference.topology.order import Order


@dataclass(frozen=True)
class Greedy:
    """The result of serving a request one domain after the other: how many it takes, and which are the last."""

    n_domains: int
    last_with_leader: Domain | None
    last: Domain | None


@dataclass(frozen=True)
class Balance:
    """Pruned copies of domains, each of which takes a fixed number of slices or none."""

    threshold: int = 0
    n_domains: int = 0
    domains: tuple[Domain, ...] = ()


_NO_SET = "TAS Balanced Placement: Cannot find optimal domain set to fit the request"


def choose(roots: Iterable[Domain], shape: Shape, order: Order) -> tuple[int, list[Domain]] | str:
    """Return the level, and the domains with their shares; a reason if that fails, maybe empty (rules/08 §9.3)."""
    found = best(list(roots), shape, order)
    domains = list(found.domains)
    depth = shape.level
    if not found.threshold:
        return ""
    if shape.level < shape.slice_level:
        chosen = optimal(found.domains, shape, order, by_entropy=True)
        if chosen is None:
            return _NO_SET
        domains, depth = [child for domain in chosen for child in domain.children], depth + 1
    given = share_out(domains, shape, order, found.threshold)
    return given if isinstance(given, str) else (depth, given)


def greedy(domains: Iterable[Domain], n_slices: int, leaders: int, order: Order) -> Greedy | None:
    """Take domains in order until all fits; None if it does not (rules/08 §9.1)."""
    taken: list[Domain] = []
    rest = list(domains)
    last_with_leader = last = None
    if leaders > 0:
        rest = order.with_leader(rest)
        while leaders > 0 and rest and rest[0].leaders > 0:
            last_with_leader = rest.pop(0)
            taken.append(last_with_leader)
            leaders, n_slices = leaders - last_with_leader.leaders, n_slices - last_with_leader.slices_with_leader
    if leaders > 0:
        return None
    for domain in order.plain(rest):
        if n_slices <= 0 or domain.slices <= 0:
            break
        last = domain
        taken.append(domain)
        n_slices -= domain.slices
    return None if n_slices > 0 else Greedy(len(taken), last_with_leader, last)


def best(roots: list[Domain], shape: Shape, order: Order) -> Balance:
    """Return the siblings on which the least loaded domain gets most (rules/08 §9.2)."""
    siblings = [level(roots, 0)]
    if shape.level > 0:
        above = sorted(level(roots, shape.level - 1), key=lambda domain: domain.path)
        siblings = [domain.children for domain in above]
    found = Balance()
    for domains in siblings:
        better = _balance(domains, shape, order, found)
        found = better if better is not None else found
    return found


def _balance(domains: list[Domain], shape: Shape, order: Order, so_far: Balance) -> Balance | None:
    """Return the balance of these siblings, if it is better than the best so far."""
    lower = [child for domain in domains for child in domain.children] if shape.level < shape.slice_level else domains
    first = greedy(lower, shape.n_slices, shape.leaders, order)
    if first is None or first.n_domains == 0:
        # With no request, Kueue divides by zero.
        return None
    threshold = shape.n_slices // first.n_domains
    if first.last_with_leader is not None:
        threshold = min(threshold, first.last_with_leader.slices_with_leader)
    if first.last is not None:
        threshold = min(threshold, first.last.slices if shape.falls_back else first.last.slices_with_leader)
    # With room for the leader on the last one, too.
    reserved = threshold
    if shape.leaders > 0 and first.last is not None:
        reserved = min(threshold, first.last.slices_with_leader)
    if threshold < so_far.threshold:
        return None
    pruned = _pruned(domains, shape, threshold)
    if not shape.falls_back:
        after = greedy(pruned, shape.n_slices, shape.leaders, order)
        return _better(threshold, 0 if after is None else after.n_domains, pruned, so_far)
    again = greedy(pruned, shape.n_slices, shape.leaders, order)
    if again is None and reserved < threshold:
        if reserved <= 0 or reserved < so_far.threshold:
            return None
        threshold, pruned = reserved, _pruned(domains, shape, reserved)
        again = greedy(pruned, shape.n_slices, shape.leaders, order)
    if again is None:
        return None
    return _better(threshold, again.n_domains, pruned, so_far)


def _better(threshold: int, n_domains: int, domains: Iterable[Domain], so_far: Balance) -> Balance | None:
    is_better = threshold > so_far.threshold or n_domains < so_far.n_domains
    return Balance(threshold, n_domains, tuple(domains)) if is_better else None


def _pruned(domains: Iterable[Domain], shape: Shape, threshold: int) -> list[Domain]:
    """Copy domains, without those below the threshold. Slices within slices do not count here (rules/08 §9.2)."""
    copies = [domain.copy() for domain in domains] if shape.falls_back else list(domains)
    for domain in copies:
        for child in domain.children:
            _prune(child, shape, threshold)
    for domain in copies:
        roll_up(domain, shape, shape.level, {})
        _prune(domain, shape, threshold)
    return copies


def _prune(domain: Domain, shape: Shape, threshold: int) -> None:
    has_too_few = (domain.slices if shape.falls_back else domain.slices_with_leader) < threshold
    hosts_too_few = shape.leaders > 0 and domain.leaders > 0 and domain.slices_with_leader < threshold
    for each in domain.tree() if has_too_few or hosts_too_few else ():
        each.leaders = each.pods_with_leader = each.slices_with_leader = 0
        if has_too_few:
            each.pods = each.slices = 0


def _entropy(domains: Iterable[Domain]) -> float:
    """Return how evenly pods are spread."""
    counts = [domain.pods for domain in domains]
    shares = [count / sum(counts) for count in counts if count > 0]
    return sum((-part * math.log2(part) for part in shares), 0.0)


def optimal(domains: Iterable[Domain], shape: Shape, order: Order, *, by_entropy: bool) -> list[Domain] | None:
    """Return as few domains as greedy needs, with as little room as possible (rules/08 §9.4)."""
    domains = list(domains)
    served = greedy(domains, shape.n_slices, shape.leaders, order)
    if served is None:
        return None
    if by_entropy:
        domains.sort(key=lambda d: (-d.leaders, -d.slices_with_leader, -_entropy(d.children), d.path))
    else:
        domains.sort(key=lambda d: d.path)
    # By number of domains: how to reach so many leaders and remaining pods.
    table: list[dict[tuple[int, int], list[Domain]]] = [{} for _ in range(served.n_domains + 1)]
    table[0][shape.leaders, shape.n_slices * shape.slice_size] = []
    for domain in domains:
        for n_taken in range(served.n_domains, 0, -1):
            for (leaders, pods), taken in sorted(table[n_taken - 1].items(), key=lambda item: item[0]):
                if leaders <= 0 and pods <= 0:
                    continue
                if leaders > 0 and domain.leaders > 0:
                    left = leaders - domain.leaders, pods - domain.pods_with_leader
                    table[n_taken].setdefault(left, [*taken, domain])
                if domain.slices > 0:
                    table[n_taken].setdefault((leaders, pods - domain.pods), [*taken, domain])
    ends = [pods for leaders, pods in table[served.n_domains] if leaders == 0 and pods <= 0]
    return table[served.n_domains][0, max(ends)] if ends else None


def share_out(domains: Iterable[Domain], shape: Shape, order: Order, threshold: int) -> list[Domain] | str:
    """Give each domain the threshold, and the rest to the first (rules/08 §9.3). Returns the reason if that fails."""
    chosen = optimal(domains, shape, order, by_entropy=False)
    if chosen is None:
        return _NO_SET
    extra, leaders = shape.n_slices - len(chosen) * threshold, shape.leaders
    if extra < 0:
        return "TAS Balanced Placement: Not enough slices to meet the threshold"
    chosen = order.with_leader(chosen)
    for domain in chosen:
        hosts = leaders > 0
        more = min((domain.slices_with_leader if hosts else domain.slices) - threshold, extra) if hosts or extra else 0
        domain.leaders = int(hosts)
        domain.slices = domain.slices_with_leader = threshold + more
        domain.pods = domain.slices * shape.slice_size
        domain.pods_with_leader = domain.pods - domain.leaders
        extra, leaders = extra - more, leaders - int(hosts)
    return "TAS Balanced Placement: Not all slices or leaders could be placed" if extra > 0 or leaders > 0 else chosen
