"""Which workloads make room for another: candidates, classical preemption, and the oracle (rules/04)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kueuecore.reference import experiments, times
from kueuecore.reference.cache import Snapshot
from kueuecore.reference.forest import Node
from kueuecore.reference.objects import Amounts, FlavorResource
from kueuecore.reference.settings import Settings
from kueuecore.reference.topology import phase
from kueuecore.reference.topology.phase import Asks
from kueuecore.reference.totals import Info

IN_CLUSTER_QUEUE = "InClusterQueue"
RECLAMATION = "InCohortReclamation"
RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"
FAIR_SHARING = "InCohortFairSharing"


@dataclass(frozen=True)
class Need:
    """What a workload needs room for (rules/04 §1).

    Args:
        info: W, the workload.
        frs: F, where room must be made.
        requests: R, all that must fit.
        asks: What must also find a place on nodes (rules/08 §11.6).
    """

    info: Info
    frs: frozenset[FlavorResource]
    requests: Amounts
    asks: Asks = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """A workload to preempt, with the reason. A slice that is replaced needs no reason."""

    info: Info
    reason: str


def satisfies_policy(preemptor: Info, candidate: Info, policy: str, settings: Settings) -> bool:
    """Return whether a workload may preempt another, by priority (rules/04 §2)."""
    is_lower, is_equal = preemptor.priority > candidate.priority, preemptor.priority == candidate.priority
    buffer = 300 * times.SECOND if settings.on("SchedulerTimestampPreemptionBuffer") else 0
    is_newer_equal = is_equal and preemptor.queued_at + buffer < candidate.queued_at
    answers = {"Any": True, "LowerPriority": is_lower, "LowerOrNewerEqualPriority": is_lower or is_newer_equal}
    return answers.get(policy, False)


def candidates_of(snapshot: Snapshot, need: Need, queue: str) -> list[Info]:
    """Return the workloads of a ClusterQueue that use something of F and may be preempted (rules/04 §2, §4.2)."""
    spec = snapshot.spec(need.info.cluster_queue)
    policy = spec.within_cluster_queue if queue == spec.name else spec.reclaim_within_cohort
    settings, now = snapshot.settings, snapshot.now

    def gives_way(candidate: Info) -> bool:
        if queue != spec.name and experiments.has_just_started(candidate, settings, now):
            return False
        by_turn = experiments.turn_is_over(need.info, candidate, policy, settings, now) if queue == spec.name else None
        return satisfies_policy(need.info, candidate, policy, settings) if by_turn is None else by_turn

    return [
        candidate
        for candidate in snapshot.workloads[queue].values()
        if any((flavor, name) in need.frs for total in candidate.totals for name, flavor in total.flavors.items())
        and gives_way(candidate)
    ]


def order(snapshot: Snapshot, queue: str, info: Info) -> tuple[bool, bool, int, int, str]:
    """Return the sort key of a candidate for a preemptor in `queue`, without LocalQueue usage (rules/04 §3)."""
    # rules/04 §3 5: without QuotaReserved the reservation time is now, so such a workload counts as the newest.
    reserved_at = snapshot.now if info.reserved_at is None else info.reserved_at
    return not info.is_evicted, info.cluster_queue == queue, info.priority, -reserved_at, info.uid


def in_order(snapshot: Snapshot, preemptor: Info, candidates: Iterable[Info]) -> list[Info]:
    """Sort candidates: each ClusterQueue by LocalQueue usage, then merge the ClusterQueues (rules/04 §3)."""
    queue = preemptor.cluster_queue
    # LocalQueue usage is compared within a ClusterQueue only, which makes a single sort intransitive.
    by_queue: dict[str, list[Info]] = {}
    for info in candidates:
        by_queue.setdefault(info.cluster_queue, []).append(info)
    for infos in by_queue.values():
        # Until 0.20.0 Kueue did not compare LocalQueues of one name in two namespaces.
        names = {info.workload["spec"]["queueName"] for info in infos}
        infos.sort(key=lambda i: order(snapshot, queue, i))
        if snapshot.settings.time_share is not None and infos[0].cluster_queue == queue:
            infos.sort(key=lambda i: experiments.by_turn(preemptor, i))
        if len(names) > 1 or snapshot.settings.has("SameNamedLocalQueuesDiffer"):
            infos.sort(key=lambda i: (not i.is_evicted, -snapshot.used_by_local_queue(i)))
    return list(heapq.merge(*by_queue.values(), key=lambda i: order(snapshot, queue, i)))


def fits(snapshot: Snapshot, need: Need, *, may_borrow: bool) -> bool:
    """Return whether all of R fits now (rules/04 §4.4)."""
    # rules/04 §4.4: all of R is tested, not only F.
    node, usage, requests = snapshot.nodes[need.info.cluster_queue], snapshot.usage, need.requests
    borrows = any(usage.is_borrowing_with(node, fr, requested) for fr, requested in requests.items())
    has_quota = (may_borrow or not borrows) and usage.fits(node, requests)
    return has_quota and phase.fits(snapshot, need.info, need.asks)


def minimise(tried: Snapshot, need: Need, targets: list[Target], *, may_borrow: bool) -> list[Target]:
    """Drop targets that are not needed, starting from the last but one (rules/04 §4.5)."""
    targets = list(targets)
    for index in range(len(targets) - 2, -1, -1):
        tried.add(targets[index].info)
        if fits(tried, need, may_borrow=may_borrow):
            # rules/04 §4.5: the last target moves into the free slot, so the order of the rest changes.
            targets[index] = targets[-1]
            targets.pop()
        else:
            tried.remove(targets[index].info)
    return targets


@dataclass(frozen=True)
class _Candidate:
    """A candidate. In another ClusterQueue it counts only while all nodes `below` the common ancestor with W borrow."""

    info: Info
    reason: str
    only_without_borrowing: bool = False
    below: tuple[Node, ...] = ()


def _from_queue(snapshot: Snapshot, need: Need, queue: Node, ancestor: Node, advantage: bool) -> Iterator[_Candidate]:
    """Yield candidates of another ClusterQueue, by kind (rules/04 §4.1)."""
    spec = snapshot.spec(need.info.cluster_queue)
    chain, most = queue.chain(), need.info.priority - 1
    below = tuple(chain[: chain.index(ancestor)])
    if spec.priority_threshold is not None:
        most = min(most, spec.priority_threshold)
    for info in candidates_of(snapshot, need, queue.name):
        if advantage or not spec.borrows_to_preempt or info.priority > most:
            yield _Candidate(info, RECLAMATION, not advantage, below)
        else:
            yield _Candidate(info, RECLAIM_WHILE_BORROWING, below=below)


def _borrowing_queues(snapshot: Snapshot, need: Need, cohort: Node, visited: Node | None) -> Iterator[Node]:
    """Yield the borrowing ClusterQueues below a Cohort, via borrowing Cohorts (rules/04 §4.2 2)."""
    for child in cohort.children:
        is_left_out = child in (visited, snapshot.nodes[need.info.cluster_queue]) or not child.is_active
        if is_left_out or snapshot.usage.is_within_nominal(child, need.frs):
            continue
        if child.is_cluster_queue:
            yield child
        else:
            yield from _borrowing_queues(snapshot, need, child, visited)


def _other_queues_candidates(snapshot: Snapshot, need: Need) -> tuple[list[_Candidate], list[_Candidate]]:
    """Return candidates of other ClusterQueues, with and without hierarchical advantage (rules/04 §4.2)."""
    node = snapshot.nodes[need.info.cluster_queue]
    hierarchy: list[_Candidate] = []
    others: list[_Candidate] = []
    if snapshot.spec(node.name).reclaim_within_cohort == "Never":
        return hierarchy, others
    advantage, left = snapshot.usage.fits_quota(node, need.requests)
    visited: Node | None = None
    for ancestor in node.chain()[1:]:
        for queue in _borrowing_queues(snapshot, need, ancestor, visited):
            (hierarchy if advantage else others).extend(_from_queue(snapshot, need, queue, ancestor, advantage))
        fits_here, left = snapshot.usage.fits_quota(ancestor, left)
        advantage, visited = advantage or fits_here, ancestor
    return hierarchy, others


def classical(snapshot: Snapshot, need: Need) -> list[Target]:
    """Find targets without fair sharing (rules/04 §4)."""
    node = snapshot.nodes[need.info.cluster_queue]
    spec = snapshot.spec(node.name)
    hierarchy, others = _other_queues_candidates(snapshot, need)
    same = [_Candidate(info, IN_CLUSTER_QUEUE) for info in candidates_of(snapshot, need, node.name)]
    sequence = []
    for is_evicted in (True, False):
        for found in (hierarchy, others, same):
            by_key = {candidate.info.key: candidate for candidate in found if candidate.info.is_evicted == is_evicted}
            ordered = in_order(snapshot, need.info, (candidate.info for candidate in by_key.values()))
            sequence += [by_key[info.key] for info in ordered]
    # rules/04 §4.3: whether to borrow, by attempt.
    is_under = all(snapshot.usage.at(node, fr) < node.quota(fr).nominal for fr in need.frs)
    if not (hierarchy or others) or (not spec.borrows_to_preempt and not is_under):
        attempts = [True]
    elif not spec.borrows_to_preempt and not hierarchy:
        attempts = [False, True]
    else:
        attempts = [True, False]
    return next(filter(None, (_attempt(snapshot, need, sequence, may_borrow) for may_borrow in attempts)), [])


def _attempt(tried: Snapshot, need: Need, sequence: Iterable[_Candidate], may_borrow: bool) -> list[Target]:
    """Take candidates until W fits, then put them back (rules/04 §4.4)."""
    targets: list[Target] = []
    does_fit = False
    for candidate in sequence:
        if may_borrow and candidate.only_without_borrowing:
            continue
        # rules/04 §4.4: tested after the removals so far; the common ancestor itself is not tested.
        if any(tried.usage.is_within_nominal(node, need.frs) for node in candidate.below):
            continue
        tried.remove(candidate.info)
        targets.append(Target(candidate.info, candidate.reason))
        if does_fit := fits(tried, need, may_borrow=may_borrow):
            targets = minimise(tried, need, targets, may_borrow=may_borrow)
            break
    put_back(tried, targets)
    return targets if does_fit else []


def put_back(tried: Snapshot, targets: Iterable[Target]) -> None:
    """End a search: restore the targets taken."""
    for target in targets:
        tried.add(target.info)
