"""What LocalQueues have used, and which workload of a ClusterQueue goes first because of it (rules/09 §1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from kueuecore.reference import quantity, times
from kueuecore.reference.quantity import NANO
from kueuecore.reference.settings import Settings

Resources = Mapping[str, Fraction]
"""Usage by resource, in cores and bytes."""

# Before penalties were kept by workload, those of a LocalQueue were one sum.
_ALL = ""


def _alpha(elapsed_s: float, half_life_s: float) -> float:
    """Return the weight of current usage after some time has passed (rules/09 §1.2)."""
    return 0.0 if half_life_s == 0 else 1.0 - _power_of_half(elapsed_s / half_life_s)


def _fused(a: float, b: float, c: float) -> float:
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def _power_of_half(x: float) -> float:
    """Compute 0.5^x as Go does: the last bit shows in billionths of many bytes (rules/09 §1.2)."""
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


@dataclass
class Account:
    """What one LocalQueue had used at some time, and the penalties of its workloads (rules/09 §1.3)."""

    updated: int
    consumed: Resources = field(default_factory=dict)
    penalties: dict[str, Resources] = field(default_factory=dict)

    @property
    def pending(self) -> Resources:
        """The penalties of workloads that are not admitted yet."""
        return quantity.total(*(self.penalties[name] for name in sorted(self.penalties)))


def _approximate(used: Fraction) -> float:
    """Convert billionths to a float as Kubernetes does, which rounds once more than necessary (rules/09 §1.2)."""
    return float(int(used * NANO)) * 1e-9


class Ledger:
    """The accounts of all LocalQueues (rules/09 §1.3)."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.accounts: dict[str, Account] = {}

    def usage(self, local_queue: str, weight: float) -> float:
        """Return the usage of a LocalQueue as one number, which orders its workloads (rules/09 §1.2, §1.5)."""
        if weight <= 0 and self.settings.has("WeightOfZeroGoesLast"):
            return math.inf
        account = self.accounts.get(local_queue, Account(0))
        used, weights = quantity.total(account.consumed, account.pending), self.settings.resource_weights
        summed = sum(weights.get(name, 1.0) * _approximate(used[name]) for name in sorted(used))
        if weight == 0:
            # 0 by 0 was NaN, which Go sorts before all numbers.
            return math.inf if summed > 0 else -math.inf
        return summed / weight

    def penalize(self, local_queue: str, workload: str, requests: Resources, now: int) -> None:
        """Charge a workload that gets quota (rules/09 §1.2)."""
        account, penalty = self.accounts.setdefault(local_queue, Account(now)), self._penalty(requests)
        if self.settings.has("PenaltiesAreKeptByWorkload"):
            account.penalties[workload] = penalty
        else:
            account.penalties[_ALL] = quantity.total(account.pending, penalty)

    def take_back(self, local_queue: str, workload: str, requests: Resources) -> None:
        """Take back the charge of a workload whose reservation was refused."""
        if self.settings.has("PenaltiesAreKeptByWorkload"):
            self.forgive(local_queue, workload)
        elif local_queue in self.accounts:
            self._subtract(self.accounts[local_queue], self._penalty(requests))

    def forgive(self, local_queue: str, workload: str) -> None:
        """Drop the penalty of a workload that will not be admitted."""
        if local_queue in self.accounts and self.settings.has("PenaltiesAreKeptByWorkload"):
            self.accounts[local_queue].penalties.pop(workload, None)

    def has_penalty(self, local_queue: str, workload: str) -> bool:
        """Return whether a workload has a penalty that is not settled."""
        return local_queue in self.accounts and workload in self.accounts[local_queue].penalties

    def settle(self, local_queue: str, workload: str, own: Resources, admitted: Resources, now: int) -> None:
        """Turn the penalty of an admitted workload into usage; `own` is what it was given."""
        if not self.settings.has("AdmissionsAreSettled"):
            return
        account = self.accounts.setdefault(local_queue, Account(now))
        self._decay(account, admitted, now)
        if self.settings.has("PenaltiesAreKeptByWorkload"):
            penalty = account.penalties.pop(workload, {})
        else:
            penalty = self._penalty(own)
            self._subtract(account, penalty)
        account.consumed = quantity.total(account.consumed, penalty)

    def sample(self, local_queue: str, admitted: Resources, now: int) -> int:
        """Sample a LocalQueue, unless it is too early (rules/09 §1.4). Returns when to look again."""
        is_new = local_queue not in self.accounts
        account = self.accounts.setdefault(local_queue, Account(now))
        due = account.updated + self.settings.sampling_interval
        if not is_new and now < due and not any(account.pending.values()):
            return due
        if self.settings.half_life_s == 0:
            account.consumed, account.updated = {}, now
        else:
            self._decay(account, admitted, now)
        return now + self.settings.sampling_interval

    def _decay(self, account: Account, admitted: Resources, now: int) -> None:
        """Decay past usage, and move towards current usage (rules/09 §1.2)."""
        elapsed_s = max(0, now - account.updated) / times.SECOND
        alpha = _alpha(elapsed_s, self.settings.half_life_s)
        account.consumed = quantity.total(self._times(account.consumed, 1.0 - alpha), self._times(admitted, alpha))
        account.updated = max(account.updated, now)

    def _penalty(self, requests: Resources) -> Resources:
        """Return what a workload is charged at once (rules/09 §1.2)."""
        alpha = _alpha(self.settings.sampling_interval / times.SECOND, self.settings.half_life_s)
        return self._times(requests, alpha)

    def _subtract(self, account: Account, penalty: Resources) -> None:
        """Subtract from the sum of penalties, which vanishes once it is 0 everywhere (rules/09 §1.3)."""
        left = quantity.total(account.pending, {name: -total for name, total in penalty.items()})
        if self.settings.has("PenaltiesAreSettled"):
            left = {name: max(total, Fraction(0)) for name, total in left.items()}
        account.penalties = {_ALL: left} if any(left.values()) else {}

    def _times(self, resources: Resources, factor: float) -> Resources:
        """Multiply by the shortest decimal of a factor; products are cut after nine digits (rules/09 §1.2)."""
        if self.settings.has("SmallUsageCounts"):
            exact = Fraction(repr(factor)) * NANO
            return {name: Fraction(int(total * exact), NANO) for name, total in resources.items()}
        return {name: Fraction(int(math.ceil(total * 1000) * factor), 1000) for name, total in resources.items()}
