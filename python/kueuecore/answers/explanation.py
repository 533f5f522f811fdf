"""Why a workload waits, or where it would go: everything that the decision on it looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import Any

from kueuecore.decisions import WhatIf
from kueuecore.engine import Engine
from kueuecore.states import ClusterQueueState, PendingWorkload, WorkloadState
from kueuecore.times import TimeLike, nanoseconds

__all__ = [
    "Asked",
    "Explanation",
    "Fate",
    "FlavorTrial",
    "Holder",
    "KeptQuota",
    "Level",
    "PodSetTrials",
    "Search",
    "explain",
]

# Of a pod set whose requests are above its limits, or outside those of a LimitRange.
_ABOUT_REQUESTS = ("resources validation failed: ", "resources didn't satisfy LimitRange constraints: ")


class Fate(StrEnum):
    """What a search for victims did with a workload that uses what is contested (rules/04)."""

    VICTIM = "Victim"
    """It has to give way."""
    NOT_NEEDED = "NotNeeded"
    """It could have been taken, but others were enough."""
    NOT_ENOUGH = "NotEnough"
    """It could have been taken, but with all the others it would not have been enough."""
    POLICY = "Policy"
    """The policy of the preemptor's ClusterQueue takes nobody there."""
    PRIORITY = "Priority"
    """Its priority is not lower."""
    OLDER = "Older"
    """Its priority is equal, and it is older."""
    INACTIVE = "Inactive"
    """Its ClusterQueue is stopped or broken."""
    WITHIN_NOMINAL = "WithinNominal"
    """Its ClusterQueue uses no more than its nominal quota."""
    COHORT_WITHIN_NOMINAL = "CohortWithinNominal"
    """A cohort above it uses no more than its quota."""
    WOULD_BORROW = "WouldBorrow"
    """The preemptor would borrow, and its ClusterQueue has no borrowWithinCohort."""
    THRESHOLD = "Threshold"
    """The preemptor would borrow, and borrowWithinCohort protects this priority."""
    SHARE = "Share"
    """The preemptor's side of the cohort would have the larger share."""
    BACK_WITHIN_NOMINAL = "BackWithinNominal"
    """Those taken before it brought its ClusterQueue back to its quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What a ClusterQueue or Cohort has for an amount that comes to it. Amounts are quantities; None: no limit.

    Args:
        kind: `ClusterQueue` or `Cohort`.
        name: Its name.
        nominal: `nominalQuota`.
        borrowing_limit: `borrowingLimit`; None: no limit.
        lending_limit: `lendingLimit`; None: no limit.
        subtree_quota: Its own quota, and what its children lend.
        usage: What is used of that.
        needed: How much of what is asked for comes to it: what is below has no more.
        available: What it can give, with all above it.
        missing: By how much the limit here is too low, whatever is above it.
        binds: `Quota` or `BorrowingLimit` where what is needed runs out; None: not here.
    """

    kind: str
    name: str
    nominal: str | None
    borrowing_limit: str | None
    lending_limit: str | None
    subtree_quota: str | None
    usage: str
    needed: str
    available: str | None
    missing: str
    binds: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptQuota:
    """Free quota that a ClusterQueue or Cohort does not lend, because of its `lendingLimit`.

    Args:
        kind: `ClusterQueue` or `Cohort`.
        name: Its name.
        free: How much, as a quantity.
    """

    kind: str
    name: str
    free: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked for of one resource in a flavor (rules/03 §4.1).

    Args:
        resource: The resource.
        amount: How much, with what earlier pod sets take of it.
        potential: What the ClusterQueue could have if everything were idle; None: no limit.
        verdict: `Fits`, `Contested` (others use it), `ExceedsMaximum` (there is never so much).
        levels: The ClusterQueue, and each Cohort that would have to lend some, from below.
        kept: Free quota of others that they do not lend.
    """

    resource: str
    amount: str
    potential: str | None
    verdict: str
    levels: tuple[Level, ...]
    kept: tuple[KeptQuota, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorTrial:
    """A flavor that was tried for a pod set (rules/03 §4).

    Args:
        flavor: The flavor.
        mode: `Fit`, `Preempt` or `NoFit`.
        is_chosen: Is it the one?
        borrowing_level: How far up the tree it would borrow; 0: it would not.
        preemption: What a search for victims promised: `NoCandidates`, `Preempt`, `Reclaim`; None: there was none.
        reasons: What Kueue says against it.
        asked: What is asked of it.
    """

    flavor: str
    mode: str
    is_chosen: bool
    borrowing_level: int
    preemption: str | None
    reasons: tuple[str, ...]
    asked: tuple[Asked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetTrials:
    """What was tried for a pod set.

    Args:
        index: Its index in `spec.podSets`.
        trials: The flavors that were tried, in order.
        not_tried: Those that were not, because an earlier one was good enough.
        unavailable: Resources that its ClusterQueue has no quota for.
        reasons: What Kueue says against it, all flavors together; empty: it fits.
    """

    index: int
    trials: tuple[FlavorTrial, ...]
    not_tried: tuple[str, ...]
    unavailable: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A workload that uses what is contested.

    Args:
        namespace: Its namespace.
        name: Its name.
        cluster_queue: The ClusterQueue whose quota it holds.
        priority: Its effective priority.
        uses: What it uses of what is contested, by flavor and resource.
        fate: What the search did with it.
    """

    namespace: str
    name: str
    cluster_queue: str
    priority: int
    uses: Mapping[tuple[str, str], str]
    fate: Fate


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search for victims (rules/04 §4, §5).

    Args:
        contested: The flavors and resources of which there is too little.
        is_found: Were there enough?
        holders: All workloads in the tree of cohorts that use something contested.
    """

    contested: tuple[tuple[str, str], ...]
    is_found: bool
    holders: tuple[Holder, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything that the decision on a workload looked at.

    Args:
        workload: Where it stands.
        now: What it would come to if it were the only head of a cycle now; one that holds quota is asked about as if
            it had none.
        queue: How its ClusterQueue stands; None: there is none.
        ahead: The workloads of its ClusterQueue that stand before it, the first first.
        pod_sets: What was tried for its pod sets; empty if it does not come that far.
        searches: The searches for victims, in the order in which they were made.
    """

    workload: WorkloadState
    now: WhatIf
    queue: ClusterQueueState | None
    ahead: tuple[PendingWorkload, ...]
    pod_sets: tuple[PodSetTrials, ...]
    searches: tuple[Search, ...]

    @property
    def repeats_status(self) -> bool:
        """Does the decision say what the status says already, maybe in other words?

        Requests that a LimitRange forbids may be refused twice: a cycle looks at them with the LimitRange's defaults,
        and the status is written again without these (rules/05 §6.1). The status is what Kueue shows.
        """
        ours, status = self.now.message, self.workload.message
        return ours == status or (ours.startswith(_ABOUT_REQUESTS) and status.startswith(_ABOUT_REQUESTS))


def explain(engine: Engine, name: str, *, namespace: str, now: TimeLike | None = None) -> Explanation:
    """Why a workload waits, or where it would go. Nothing changes, and it costs no more than the decision itself.

    Args:
        engine: The engine.
        name: Name of the Workload.
        namespace: Its namespace.
        now: When it is asked; by default the latest time that any call named.

    Raises:
        UnknownObjectError: There is no such Workload.

    Example:
        >>> from kueuecore.manifests import read_manifests
        >>> from kueuecore.steady_state import settle
        >>> from kueuecore.world import World
        >>> world = World.of(read_manifests("examples/two-teams"))
        >>> engine = Engine()
        >>> _ = world.apply_to(engine, now=0)
        >>> _ = settle(engine, now=0, until=0)
        >>> found = explain(engine, "everything-at-once", namespace="team-b")
        >>> found.now.reason
        'ExceedsMaxQuota'
    """
    at = engine.now if now is None else nanoseconds(now)
    workload = engine.workload(name, namespace=namespace)
    row, tried = engine._core.explain(namespace, name, at)
    ahead: tuple[PendingWorkload, ...] = ()
    queue = None
    if workload.cluster_queue in engine.cluster_queues():
        queue = engine.cluster_queue(workload.cluster_queue)
    if workload.place is not None and queue is not None:
        ahead = tuple(takewhile(lambda it: it.key != workload.key, engine.pending(queue.name)))
    return Explanation(
        workload=workload,
        now=WhatIf.of(row),
        queue=queue,
        ahead=ahead,
        pod_sets=tuple(map(_pod_set, tried["podSets"])),
        searches=tuple(map(_search, tried["searches"])),
    )


def _pod_set(row: Mapping[str, Any]) -> PodSetTrials:
    return PodSetTrials(
        index=row["index"],
        trials=tuple(map(_trial, row["trials"])),
        not_tried=tuple(row["notTried"]),
        unavailable=tuple(row["unavailable"]),
        reasons=tuple(row["reasons"]),
    )


def _trial(row: Mapping[str, Any]) -> FlavorTrial:
    return FlavorTrial(
        flavor=row["flavor"],
        mode=row["mode"],
        is_chosen=row["isChosen"],
        borrowing_level=row["borrowingLevel"],
        preemption=row["preemption"],
        reasons=tuple(row["reasons"]),
        asked=tuple(map(_asked, row["asked"])),
    )


def _asked(row: Mapping[str, Any]) -> Asked:
    return Asked(
        resource=row["resource"],
        amount=row["amount"],
        potential=row["potential"],
        verdict=row["verdict"],
        levels=tuple(map(_level, row["levels"])),
        kept=tuple(KeptQuota(**it) for it in row["kept"]),
    )


def _level(row: Mapping[str, Any]) -> Level:
    return Level(
        kind=row["kind"],
        name=row["name"],
        nominal=row["nominal"],
        borrowing_limit=row["borrowingLimit"],
        lending_limit=row["lendingLimit"],
        subtree_quota=row["subtreeQuota"],
        usage=row["usage"],
        needed=row["needed"],
        available=row["available"],
        missing=row["missing"],
        binds=row["binds"],
    )


def _search(row: Mapping[str, Any]) -> Search:
    return Search(
        contested=tuple((it["flavor"], it["resource"]) for it in row["contested"]),
        is_found=row["isFound"],
        holders=tuple(map(_holder, row["holders"])),
    )


def _holder(row: Mapping[str, Any]) -> Holder:
    return Holder(
        namespace=row["namespace"],
        name=row["name"],
        cluster_queue=row["clusterQueue"],
        priority=row["priority"],
        uses={(it["flavor"], it["resource"]): it["amount"] for it in row["uses"]},
        fate=Fate(row["fate"]),
    )
