"""In which order domains are looked at (rules/08 §6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kueuecore.reference.settings import Settings
from kueuecore.reference.topology.domains import Domain


@dataclass(frozen=True)
class Order:
    """How domains compare.

    Args:
        is_best_fit: Those with most free first, and the last one as small as it may be; else those with least first.
        by_score: Do preferences of pods count first? Gate TASRespectNodeAffinityPreferred.
    """

    is_best_fit: bool
    by_score: bool

    @classmethod
    def of(cls, is_unconstrained: bool, settings: Settings) -> Order:
        """The order for a request (rules/08 §6.2)."""
        is_least_free = is_unconstrained and settings.on("TASProfileMixed")
        return cls(not is_least_free, settings.on("TASRespectNodeAffinityPreferred"))

    def with_leader(self, domains: Iterable[Domain]) -> list[Domain]:
        """Those that can take a leader first (rules/08 §6.1)."""
        sign = -1 if self.is_best_fit else 1

        def key(d: Domain) -> tuple[int, int, int, int, tuple[str, ...]]:
            return -d.leaders, self._score(d), sign * d.slices_with_leader, d.pods_with_leader, d.path

        return sorted(domains, key=key)

    def plain(self, domains: Iterable[Domain]) -> list[Domain]:
        """By what they can take without a leader; fewer pods beyond whole slices first (rules/08 §6.1)."""
        sign = -1 if self.is_best_fit else 1
        return sorted(domains, key=lambda d: (self._score(d), sign * d.slices, d.pods, d.path))

    def _score(self, domain: Domain) -> int:
        return -domain.score if self.by_score else 0

    def best_fit(self, domains: list[Domain], needed: int, leaders: int, *, in_slices: bool = True) -> Domain:
        """The smallest that suffices, among those that are liked as much as the first (rules/08 §6.3)."""
        near = domains
        if self.by_score:
            end = next((i for i, d in enumerate(domains) if d.score != domains[0].score), len(domains))
            near = domains[:end]
        able = [d for d in near if d.leaders >= leaders and takes(d, leaders, in_slices=in_slices) >= needed]
        return min(able, key=lambda d: takes(d, leaders, in_slices=in_slices), default=domains[0])


def takes(domain: Domain, leaders: int, *, in_slices: bool) -> int:
    """What a domain can take, in slices or pods, beside a leader if there is one."""
    if leaders > 0:
        return domain.slices_with_leader if in_slices else domain.pods_with_leader
    return domain.slices if in_slices else domain.pods


def leader_first(domains: list[Domain], needed: int, leaders: int, *, in_slices: bool) -> list[Domain]:
    """Begin with one where a leader leaves enough room for all pods (rules/08 §7.8)."""
    if leaders == 0 or len(domains) < 2:
        return domains
    there = sum(takes(domain, 0, in_slices=in_slices) for domain in domains)
    for domain in domains:
        cost = takes(domain, 0, in_slices=in_slices) - takes(domain, 1, in_slices=in_slices)
        if domain.leaders >= leaders and there - cost >= needed:
            return [domain, *(other for other in domains if other is not domain)]
    return domains
