"""Explains why a workload waits, or where it would go: everything that the decision about it looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import takewhile
from typing import Any

from kueuecore._json import text_at
from kueuecore._rows import read_row
from kueuecore.answers.ahead import Ahead
from kueuecore.answers.shares import ShareComparison, ShareTie
from kueuecore.coverage import coverage_hint, covered_resources
from kueuecore.decisions import WhatIf
from kueuecore.engine import Engine
from kueuecore.states import ClusterQueueState, WorkloadState
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
    "ReplacedSlice",
    "Search",
    "explain",
]

# Messages about requests above the pod's limits, or outside a LimitRange.
_ABOUT_REQUESTS = ("resources validation failed: ", "resources didn't satisfy LimitRange constraints: ")


class Fate(StrEnum):
    """The verdict of a search for victims on a workload that uses what is contested (rules/04)."""

    VICTIM = "Victim"
    """It is preempted."""
    NOT_NEEDED = "NotNeeded"
    """It could be preempted, but others are enough."""
    NOT_ENOUGH = "NotEnough"
    """It could be preempted, but even with all other candidates that is not enough."""
    POLICY = "Policy"
    """The policy of the preemptor's ClusterQueue is `Never`."""
    PRIORITY = "Priority"
    """Its priority is not lower."""
    OLDER = "Older"
    """Its priority is the same, and it is older."""
    INACTIVE = "Inactive"
    """Its ClusterQueue is inactive."""
    WITHIN_NOMINAL = "WithinNominal"
    """Its ClusterQueue uses no more than its nominal quota."""
    COHORT_WITHIN_NOMINAL = "CohortWithinNominal"
    """A cohort above it uses no more than its quota."""
    WOULD_BORROW = "WouldBorrow"
    """The preemptor would borrow, and its ClusterQueue has no borrowWithinCohort."""
    THRESHOLD = "Threshold"
    """The preemptor would borrow, and borrowWithinCohort protects this priority."""
    SHARE = "Share"
    """The shares of the two sides of the cohort do not allow it."""
    BACK_WITHIN_NOMINAL = "BackWithinNominal"
    """Earlier victims already brought its ClusterQueue back within its quota."""
    JUST_STARTED = "JustStarted"
    """It has not run for as long as an experiment, which Kueue does not have, grants it (rules/13)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One node on a request's way up the cohort tree. Amounts are quantities; None is unlimited.

    Args:
        kind: `ClusterQueue` or `Cohort`.
        name: Its name.
        nominal: `nominalQuota`.
        borrowing_limit: `borrowingLimit`.
        lending_limit: `lendingLimit`.
        subtree_quota: Its own quota plus what its children lend.
        usage: How much of that is used.
        needed: How much of the request reaches this node because the nodes below cannot cover it.
        available: How much it can give, together with all nodes above it.
        missing: By how much the limit at this node is too low, whatever the nodes above it have.
        binds: `Quota` or `BorrowingLimit` if that is exhausted here; else None.
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
    """A request for one resource in a flavor (rules/03 §4.1).

    Args:
        resource: The resource.
        amount: How much, including what earlier pod sets take.
        potential: How much the ClusterQueue could use if nothing else ran; None is unlimited.
        verdict: `Fits`, `Contested` (others use it), `ExceedsMaximum` (there is never enough).
        levels: The ClusterQueue and each Cohort that would have to lend, from the bottom up.
        kept: Free quota that others do not lend.
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
        is_chosen: Whether it was chosen.
        borrowing_level: How far up the tree it would borrow; 0 if it would not.
        preemption: The result of the search for victims, `NoCandidates`, `Preempt` or `Reclaim`; None without one.
        reasons: Kueue's reasons against it.
        asked: The requests, by resource.
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
    """The flavors tried for a pod set.

    Args:
        index: Its index in `spec.podSets`.
        trials: The flavors that were tried, in order.
        not_tried: The flavors not tried because an earlier one was good enough.
        unavailable: Resources that its ClusterQueue has no quota for.
        reasons: Kueue's reasons against it, from all flavors; empty if it fits.
    """

    index: int
    trials: tuple[FlavorTrial, ...]
    not_tried: tuple[str, ...]
    unavailable: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def lacks_place(self) -> bool:
        """Whether the nodes have no place for its pods even without other workloads (rules/08 §11.5).

        Nothing else rules out a flavor that was chosen by its quota.
        """
        return any(trial.is_chosen and trial.mode == "NoFit" for trial in self.trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A workload that uses what is contested.

    Args:
        namespace: Its namespace.
        name: Its name.
        cluster_queue: The ClusterQueue whose quota it holds.
        priority: Its effective priority.
        uses: Its usage of contested resources, by flavor and resource.
        fate: The verdict of the search on it.
        comparisons: With fair sharing, the comparisons of shares made for it, in order; the last one decided.
        ties: With fair sharing, the choices between cohorts of equal shares that made it the victim. Kueue makes them
            at random.
    """

    namespace: str
    name: str
    cluster_queue: str
    priority: int
    uses: Mapping[tuple[str, str], str]
    fate: Fate
    comparisons: tuple[ShareComparison, ...] = ()
    ties: tuple[ShareTie, ...] = ()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedSlice:
    """The slice of an elastic workload that a larger one replaces, and whose quota goes over to that (rules/09 §2.3).

    Args:
        namespace: Its namespace.
        name: Its name.
        uses: What it holds, by flavor and resource.
    """

    namespace: str
    name: str
    uses: Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search for victims (rules/04 §4, §5).

    Args:
        contested: The flavors and resources that are short.
        is_found: Whether there were enough victims.
        holders: All workloads in the cohort tree that use a contested resource.
        asks_for_place: Whether the victims also had to leave a place on the nodes of the topology.
    """

    contested: tuple[tuple[str, str], ...]
    is_found: bool
    holders: tuple[Holder, ...]
    asks_for_place: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything that the decision about a workload looked at.

    Args:
        workload: Its state.
        now: The outcome if it were the only head of a cycle now; a workload that holds quota is evaluated as if it
            had none.
        queue: The state of its ClusterQueue; None if there is none.
        ahead: The workloads ahead of it in its ClusterQueue, in order, each with the reason.
        pod_sets: The flavors tried for its pod sets; empty if the decision did not get that far.
        searches: The searches for victims, in the order in which they were made.
        replaces: The slice that it replaces, which counts neither as used nor as a holder; None if there is none.
        is_strict: Whether its ClusterQueue is `StrictFIFO`: nothing is tried before the first has quota.
        uncovered: The resources that its ClusterQueue has no quota for, each with who covers it, or what may be meant.
    """

    workload: WorkloadState
    now: WhatIf
    queue: ClusterQueueState | None
    ahead: tuple[Ahead, ...]
    pod_sets: tuple[PodSetTrials, ...]
    searches: tuple[Search, ...]
    replaces: ReplacedSlice | None = None
    is_strict: bool = False
    uncovered: Mapping[str, str] = field(default_factory=dict)

    @property
    def lacks_place(self) -> bool:
        """Whether the nodes have no place for some of its pods even without other workloads (rules/08 §11.5)."""
        return any(pod_set.lacks_place for pod_set in self.pod_sets)

    def is_about_quota_alone(self, search: Search) -> bool:
        """Whether a search only asked for quota, where its victims must leave places on nodes as well."""
        has_places = self.lacks_place or any(search.asks_for_place for search in self.searches)
        return has_places and not search.asks_for_place

    @property
    def repeats_status(self) -> bool:
        """Whether the decision repeats the message of the status, maybe in other words.

        Requests that a LimitRange forbids may be rejected twice, with different messages: a cycle applies the
        LimitRange's defaults first, and the status is later written without them (rules/05 §6.1). Kueue shows the
        status.
        """
        ours, status = self.now.message, self.workload.message
        return ours == status or (ours.startswith(_ABOUT_REQUESTS) and status.startswith(_ABOUT_REQUESTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """What the engine recorded while it decided; the workloads ahead come without their places."""

    pod_sets: tuple[PodSetTrials, ...]
    searches: tuple[Search, ...]
    replaces: ReplacedSlice | None
    ahead: tuple[Mapping[str, Any], ...]


def explain(engine: Engine, name: str, *, namespace: str, now: TimeLike | None = None) -> Explanation:
    """Explain why a workload waits, or where it would go. Changes nothing, and costs no more than the decision itself.

    Args:
        engine: The engine.
        name: Name of the Workload.
        namespace: Its namespace.
        now: The current time; by default the latest time passed to any call.

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
    row, recorded = engine._core.explain(namespace, name, at)
    tried = read_row(_Tried, recorded)
    ahead: tuple[Ahead, ...] = ()
    queue, is_strict = None, False
    if workload.cluster_queue in engine.cluster_queues():
        queue = engine.cluster_queue(workload.cluster_queue)
        is_strict = text_at(engine.object("ClusterQueue", queue.name), "spec", "queueingStrategy") == "StrictFIFO"
    if workload.place is not None and queue is not None:
        first = takewhile(lambda pending_workload: pending_workload.key != workload.key, engine.pending(queue.name))
        why = {(ahead["namespace"], ahead["name"]): ahead for ahead in tried.ahead}
        known = (
            (why.get((pending_workload.namespace, pending_workload.name)), pending_workload.place)
            for pending_workload in first
        )
        ahead = tuple(read_row(Ahead, {**row, "place": place}) for row, place in known if row is not None)
    return Explanation(
        workload=workload,
        now=WhatIf.of(row),
        queue=queue,
        ahead=ahead,
        pod_sets=tried.pod_sets,
        searches=_searches(engine, workload, tried),
        replaces=tried.replaces,
        is_strict=is_strict,
        uncovered=_uncovered(engine, workload, tried.pod_sets),
    )


def _searches(engine: Engine, workload: WorkloadState, tried: _Tried) -> tuple[Search, ...]:
    if all(search.is_found for search in tried.searches):
        return tried.searches
    from kueuecore.answers.borrowing import with_borrowing  # most answers need none of it

    return with_borrowing(engine, workload, tried.pod_sets, tried.searches)


def _uncovered(engine: Engine, workload: WorkloadState, pod_sets: Sequence[PodSetTrials]) -> dict[str, str]:
    names = sorted({name for pod_set in pod_sets for name in pod_set.unavailable})
    covered = covered_resources(engine) if names else {}
    return {name: coverage_hint(name, workload.cluster_queue or "", covered) for name in names}
