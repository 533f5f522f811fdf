"""What LocalQueues have used, and who of one ClusterQueue goes first for it (rules/09 §1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from kueuecore.reference import quantity, times
from kueuecore.reference.settings import Settings

__all__ = ["Account", "Ledger", "decayed", "entry_penalty", "usage"]

Resources = dict[str, Fraction]
_NANO = 10**9


def _times(resources: Mapping[str, Fraction], factor: float) -> Resources:
    """Products are cut after nine digits; the factor is its shortest decimal (rules/09 §1.2)."""
    exact = Fraction(repr(factor))
    return {name: Fraction(int(total * exact * _NANO), _NANO) for name, total in resources.items()}


def _sum(*lists: Mapping[str, Fraction]) -> Resources:
    total: Resources = {}
    for resources in lists:
        for name, more in resources.items():
            total[name] = total.get(name, Fraction(0)) + more
    return total


def _alpha(elapsed_s: float, half_life_s: float) -> float:
    return 0.0 if half_life_s == 0 else 1.0 - _power_of_half(elapsed_s / half_life_s)


def _fused(a: float, b: float, c: float) -> float:
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def _power_of_half(x: float) -> float:
    """0.5^x as Go works it out: the last bit shows in billionths of many bytes (rules/09 §1.2)."""
    if x == 0.5:
        return math.sqrt(0.5)
    rest, whole = math.modf(x)
    if rest > 0.5:
        rest, whole = rest - 1.0, whole + 1.0
    t = rest * math.log(0.5) / 16
    series = 1 / 40320
    for coefficient in (1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0):
        series = _fused(series, t, coefficient)
    grown = t * series
    for _ in range(3):
        grown *= grown + 2.0
    return math.ldexp(_fused(grown, grown + 2.0, 1.0), -int(whole))


def decayed(consumed: Resources, admitted: Resources, elapsed_s: float, settings: Settings) -> Resources:
    """What was used counts less and less, what is used now more and more (rules/09 §1.2)."""
    alpha = _alpha(max(elapsed_s, 0.0), settings.half_life_s)
    return _sum(_times(consumed, 1.0 - alpha), _times(admitted, alpha))


def entry_penalty(requests: Resources, settings: Settings) -> Resources:
    """What a workload is charged when it gets quota (rules/09 §1.2)."""
    alpha = _alpha(times.seconds_of(settings.sampling_interval), settings.half_life_s)
    return _times(requests, alpha)


def usage(used: Mapping[str, Fraction], weight: float, resource_weights: Mapping[str, float]) -> float:
    """One number for what a LocalQueue has used (rules/09 §1.2)."""
    if weight <= 0:
        return math.inf
    return sum(resource_weights.get(name, 1.0) * float(used[name]) for name in sorted(used)) / weight


@dataclass
class Account:
    """What one LocalQueue has used (rules/09 §1.3)."""

    updated: int
    consumed: Resources = field(default_factory=dict)
    penalties: dict[str, Resources] = field(default_factory=dict)

    @property
    def pending(self) -> Resources:
        """Penalties of workloads that are not admitted yet."""
        return _sum(*(self.penalties[name] for name in sorted(self.penalties)))


class Ledger:
    """The accounts of all LocalQueues (rules/09 §1.3)."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.accounts: dict[str, Account] = {}

    def restore(self, local_queue: str, consumed: Mapping[str, str], updated: int) -> None:
        """What a LocalQueue had used by some time (rules/09 §1.4 1)."""
        self.accounts[local_queue] = Account(updated, {n: quantity.parse(q) for n, q in consumed.items()})

    def usage(self, local_queue: str, weight: float) -> float:
        """What orders the workloads of a LocalQueue (rules/09 §1.5)."""
        account = self.accounts.get(local_queue)
        used = _sum(account.consumed, account.pending) if account is not None else {}
        return usage(used, weight, self.settings.resource_weights)

    def penalize(self, local_queue: str, workload: str, requests: Resources, now: int) -> None:
        """A workload gets quota."""
        account = self.accounts.setdefault(local_queue, Account(now))
        account.penalties[workload] = entry_penalty(requests, self.settings)

    def forgive(self, local_queue: str, workload: str) -> None:
        """A workload will not be admitted."""
        if local_queue in self.accounts:
            self.accounts[local_queue].penalties.pop(workload, None)

    def settle(self, local_queue: str, workload: str, admitted: Resources, now: int) -> None:
        """A workload is admitted: its penalty becomes usage."""
        account = self.accounts.setdefault(local_queue, Account(now))
        self._decay(account, admitted, now)
        account.consumed = _sum(account.consumed, account.penalties.pop(workload, {}))

    def sample(self, local_queue: str, admitted: Resources, now: int) -> int | None:
        """Look at a LocalQueue (rules/09 §1.4). Returns when to look again, if it is too early now."""
        is_new = local_queue not in self.accounts
        account = self.accounts.setdefault(local_queue, Account(now))
        due = account.updated + self.settings.sampling_interval
        if not is_new and now < due and not account.penalties:
            return due
        if self.settings.half_life_s == 0:
            account.consumed, account.updated = {}, now
        else:
            self._decay(account, admitted, now)
        return None

    def _decay(self, account: Account, admitted: Resources, now: int) -> None:
        elapsed_s = times.seconds_of(now - account.updated)
        account.consumed = decayed(account.consumed, admitted, elapsed_s, self.settings)
        account.updated = max(account.updated, now)


def in_units(requests: Iterable[tuple[str, int]]) -> Resources:
    """Integer requests in cores and bytes."""
    total: Resources = {}
    for name, number in requests:
        total[name] = total.get(name, Fraction(0)) + Fraction(number, 1000 if name == "cpu" else 1)
    return total
