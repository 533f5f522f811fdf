"""The order in which domains are tried (rules/08 §6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kueuecore.reference.settings import Settings
from kueuecore.reference.topology.domains import Domain


@dataclass(frozen=True)
class Order:
    """How to compare domains.

    Args:
        is_best_fit: Whether the most free goes first and the last is as small as possible; else the least free first.
        by_score: Whether preferences of pods come first (gate TASRespectNodeAffinityPreferred).
    """

    is_best_fit: bool
    by_score: bool

    @classmethod
    def of(cls, is_unconstrained: bool, settings: Settings) -> Order:
        """Return the order for a request (rules/08 §6.2)."""
        is_mixed = is_unconstrained and settings.on("TASProfileMixed")
        is_least_free = is_mixed or settings.on("TASProfileLeastFreeCapacity")
        return cls(not is_least_free, settings.on("TASRespectNodeAffinityPreferred"))

    def with_leader(self, domains: Iterable[Domain]) -> list[Domain]:
        """Sort domains with room for a leader first (rules/08 §6.1)."""
        sign = -1 if self.is_best_fit else 1

        def key(d: Domain) -> tuple[int, int, int, int, tuple[str, ...]]:
            return -d.leaders, self._score(d), sign * d.slices_with_leader, d.pods_with_leader, d.path

        return sorted(domains, key=key)

    def plain(self, domains: Iterable[Domain]) -> list[Domain]:
        """Sort by capacity without a leader; fewer pods beyond whole slices first (rules/08 §6.1)."""
        sign = -1 if self.is_best_fit else 1
        return sorted(domains, key=lambda d: (self._score(d), sign * d.slices, d.pods, d.path))

    def _score(self, domain: Domain) -> int:
        return -domain.score if self.by_score else 0

    def leading(self, domains: list[Domain]) -> list[Domain]:
        """Return those at the start that are preferred as much as the first."""
        end = next((i for i, d in enumerate(domains) if d.score != domains[0].score), len(domains))
        return domains[:end]

    def best_fit(self, domains: list[Domain], needed: int, leaders: int, *, in_slices: bool = True) -> Domain:
        """Return the smallest sufficient domain among those preferred as much as the first (rules/08 §6.3)."""
        near = self.leading(domains) if self.by_score else domains
        able = [d for d in near if d.leaders >= leaders and takes(d, leaders, in_slices=in_slices) >= needed]
        return min(able, key=lambda d: takes(d, leaders, in_slices=in_slices), default=domains[0])


def best_fit_with_tail(order: Order, domains: list[Domain], needed: int, leaders: int) -> Domain:
    """Return the smallest domain sufficient for slices and the shorter one (rules/08 §7.3)."""
    near = order.leading(domains) if order.by_score else domains
    able = [d for d in near if d.leaders >= leaders and beside_tail(d, leaders) >= needed]

    def key(domain: Domain) -> tuple[int, int]:
        return beside_tail(domain, leaders), takes(domain, leaders, in_slices=True)

    return min(able, key=key, default=domains[0])


def beside_tail(domain: Domain, leaders: int) -> int:
    """Return how many slices a domain can take beside the shorter one, and a leader if there is one."""
    return domain.slices_with_both if leaders > 0 else domain.slices_with_tail


def takes(domain: Domain, leaders: int, *, in_slices: bool) -> int:
    """Return what a domain can take, in slices or pods, beside a leader if there is one."""
    if leaders > 0:
        return domain.slices_with_leader if in_slices else domain.pods_with_leader
    return domain.slices if in_slices else domain.pods


def leader_first(
    domains: list[Domain], needed: int, leaders: int, *, in_slices: bool, has_tail: bool = False
) -> list[Domain]:
    """Put first a domain where a leader leaves enough room for all pods (rules/08 §7.8)."""
    if leaders == 0 or len(domains) < 2:
        return domains
    there = sum(takes(domain, 0, in_slices=in_slices) for domain in domains)
    for domain in domains:
        cost = takes(domain, 0, in_slices=in_slices) - takes(domain, 1, in_slices=in_slices)
        if has_tail:
            losses = [d.slices - d.slices_with_tail for d in domains if d is not domain and d.slices_with_tail >= 0]
            costs = [cost + loss for loss in losses]
            costs += [domain.slices - domain.slices_with_both] if domain.slices_with_both >= 0 else []
            if not costs:
                continue
            cost = min(costs)
        if domain.leaders >= leaders and there - cost >= needed:
            return [domain, *(other for other in domains if other is not domain)]
    return domains
