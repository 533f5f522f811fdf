"""The assignment of a workload: its flavors, how good they are, and what was tried on the way (rules/03)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum

from kueuecore.reference.objects import FlavorResource
from kueuecore.reference.topology.assignment import TopologyAssignment
from kueuecore.reference.totals import Progress


class Mode(IntEnum):
    """How good an assignment is (rules/03 §2)."""

    NO_FIT = 0
    PREEMPT = 1
    DEFERRED_FIT = 2
    FIT = 3

    @property
    def text(self) -> str:
        """Kueue's word for the mode."""
        return ("NoFit", "Preempt", "DeferredFit", "Fit")[self]


class Way(IntEnum):
    """What it takes for a workload to fit (rules/03 §2)."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4

    @property
    def mode(self) -> Mode:
        """The mode to report."""
        return {Way.NO_FIT: Mode.NO_FIT, Way.FIT: Mode.FIT}.get(self, Mode.PREEMPT)

    @property
    def possibility(self) -> str:
        """Kueue's word for what preemption can do; empty if it has none."""
        return ("", "NoCandidates", "Preempt", "Reclaim", "")[self]


class NoFitReason(StrEnum):
    """Why nothing fits, in order of severity (rules/03 §7.1)."""

    NONE = ""
    TOPOLOGY = "TopologyPlacementFailed"
    QUOTA = "WaitingForQuota"
    MAXIMUM = "ExceedsMaxQuota"
    FLAVOR = "NoMatchingFlavor"


SEVERITY = list(NoFitReason)


def severest(reasons: Iterable[NoFitReason]) -> NoFitReason:
    """Return the most severe of these reasons."""
    return max(reasons, key=SEVERITY.index, default=NoFitReason.NONE)


@dataclass
class FlavorChoice:
    """The flavor chosen for one resource."""

    flavor: str
    mode: Mode
    borrow: int
    tried: int = 0


@dataclass(frozen=True)
class Attempt:
    """The result of trying a flavor (rules/03 §4 3e)."""

    mode: Mode = Mode.FIT
    borrow: int = 0
    way: Way | None = None
    reasons: tuple[str, ...] = ()
    no_fit: NoFitReason = NoFitReason.NONE

    @property
    def text(self) -> str:
        """The attempt as written in the event QuotaReserved (rules/03 §7)."""
        mode = f"preemptionMode={self.way.possibility}" if self.way is not None else self.mode.text
        return ";".join([mode, *([f"borrow={self.borrow}"] if self.borrow else []), *self.reasons])

    def failed(self, why: NoFitReason) -> Attempt:
        """Return the attempt as failed, for a flavor that does not fit after all (rules/08 §11.5)."""
        return replace(self, mode=Mode.NO_FIT, no_fit=why)

    def merged(self, other: Attempt) -> Attempt:
        """Return the worse of two attempts (rules/03 §7)."""
        return Attempt(
            min(self.mode, other.mode),
            max(self.borrow, other.borrow),
            min((way for way in (self.way, other.way) if way is not None), default=None),
            tuple(sorted({*self.reasons, *other.reasons})),
            severest((self.no_fit, other.no_fit)),
        )


@dataclass
class PodSetAssignment:
    """The assignment of one pod set.

    Args:
        topology: Where its pods are placed (rules/08 §11.4).
        delayed: Whether the placement is still to come: empty, Pending or Ready (rules/08 §11.2).
        no_fit: Why nothing was tried for a resource (rules/03 §7.1).
    """

    name: str
    count: int
    requests: Mapping[str, int]
    flavors: dict[str, FlavorChoice]
    reasons: list[str]
    attempts: dict[str, Attempt]
    error: str = ""
    topology: TopologyAssignment | None = None
    delayed: str = ""
    no_fit: NoFitReason = NoFitReason.NONE

    @property
    def mode(self) -> Mode:
        """The worst mode of its flavors; without reasons, it fits (rules/03 §3)."""
        if self.error:
            return Mode.NO_FIT
        if not self.reasons:
            return Mode.FIT
        return min((choice.mode for choice in self.flavors.values()), default=Mode.NO_FIT)


@dataclass
class Assignment:
    """The assignment of a workload. Pod sets after one that failed are missing (rules/03 §3 7).

    Args:
        settled: The mode set by topology, if any (rules/08 §11.4, §11.5).
    """

    progress: Progress
    pod_sets: list[PodSetAssignment] = field(default_factory=list)
    borrowing: int = 0
    usage: dict[FlavorResource, int] = field(default_factory=dict)
    no_fit: NoFitReason = NoFitReason.NONE
    is_deferred: bool = False
    settled: Mode | None = None

    @property
    def mode(self) -> Mode:
        """The worst mode of its pod sets (rules/03 §3), unless topology has set another."""
        if self.is_deferred:
            return Mode.DEFERRED_FIT
        if self.settled is not None:
            return self.settled
        return min((pod_set.mode for pod_set in self.pod_sets), default=Mode.NO_FIT)

    def pod_set(self, name: str) -> PodSetAssignment:
        """Return the assignment of a pod set."""
        return next(pod_set for pod_set in self.pod_sets if pod_set.name == name)

    @property
    def message(self) -> str:
        """Why it does not fit at once (rules/03 §7)."""
        if failed := next((pod_set for pod_set in self.pod_sets if pod_set.error), None):
            return f"failed to assign flavors to pod set {failed.name}: {failed.error}"
        unfit = [(pod_set.name, ", ".join(sorted(pod_set.reasons))) for pod_set in self.pod_sets if pod_set.reasons]
        return "; ".join(f"couldn't assign flavors to pod set {name}: {reasons}" for name, reasons in unfit)

    @property
    def considered(self) -> str:
        """The flavors that were tried, as written in the event QuotaReserved (rules/03 §7)."""
        texts = []
        for pod_set in self.pod_sets:
            attempts = [(flavor, a) for flavor, a in sorted(pod_set.attempts.items()) if a.mode != Mode.FIT or a.borrow]
            if attempts:
                tried = ", ".join(f"{flavor}({attempt.text})" for flavor, attempt in attempts)
                texts.append(f"{pod_set.name}: {tried}")
        return " | ".join(texts)

    @property
    def need_preemption(self) -> frozenset[FlavorResource]:
        """F: where room must be made (rules/04 §1)."""
        choices = (item for pod_set in self.pod_sets for item in pod_set.flavors.items())
        return frozenset((choice.flavor, name) for name, choice in choices if choice.mode == Mode.PREEMPT)
