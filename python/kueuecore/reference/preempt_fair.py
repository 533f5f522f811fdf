"""Preemption with fair sharing: takes victims from the greatest share, as long as that is fair (rules/04 §5)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kueuecore.reference import preempt
from kueuecore.reference.cache import Snapshot
from kueuecore.reference.forest import Node
from kueuecore.reference.preempt import FAIR_SHARING, IN_CLUSTER_QUEUE, RECLAMATION, Need, Target
from kueuecore.reference.share import Share, share
from kueuecore.reference.totals import Info


def _candidates(snapshot: Snapshot, need: Need) -> list[Info]:
    """Return all workloads that may be preempted, in order (rules/04 §5.1)."""
    node = snapshot.nodes[need.info.cluster_queue]
    found = preempt.candidates_of(snapshot, need, node.name)
    if node.parent is not None and snapshot.spec(node.name).reclaim_within_cohort != "Never":
        for other in snapshot.nodes.values():
            is_near = other is not node and other.root is node.root
            if is_near and any(snapshot.usage.is_borrowing_with(other, fr) for fr in need.frs):
                found += preempt.candidates_of(snapshot, need, other.name)
    return preempt.in_order(snapshot, need.info, found)


class _Search:
    """The search for targets on the snapshot, with W's requests counted as used (rules/04 §5.2)."""

    def __init__(self, snapshot: Snapshot, need: Need) -> None:
        self.need = need
        self.tried = snapshot
        self.own = snapshot.nodes[need.info.cluster_queue]
        self.targets: list[Target] = []
        self.retry: list[Info] = []
        # State of the tournament: remaining candidates by ClusterQueue, and pruned nodes.
        self.left: dict[str, list[Info]] = {}
        self.pruned: set[Node] = set()
        self.tried.usage.add(self.own, need.requests)

    def tournament(self, candidates: list[Info]) -> Iterator[Node]:
        """Yield the next ClusterQueue to take from; the caller pops a candidate or prunes it (rules/04 §5.3)."""
        self.left, self.pruned = {}, set()
        for candidate in candidates:
            self.left.setdefault(candidate.cluster_queue, []).append(candidate)
        if self.own.parent is None:
            while self.own not in self.pruned and self.left.get(self.own.name):
                yield self.own
            return
        while self.own.root not in self.pruned:
            found = self._greatest(self.own.root)
            if found is not None:
                yield found

    def _greatest(self, cohort: Node) -> Node | None:
        """Return the ClusterQueue with the greatest share, descending by Cohort; prune nodes without candidates."""
        # rules/04 §5.3: W's own queue and its ancestors are never pruned for not borrowing.
        shares, path = {}, self.own.chain()
        for child in cohort.children:
            if child in self.pruned or not child.is_active:
                continue
            found = share(self.tried.usage, child)
            has_none = child.is_cluster_queue and not self.left.get(child.name)
            if has_none or (not self._is_source(found) and child not in path):
                self.pruned.add(child)
            else:
                shares[child] = found.order
        if not shares:
            self.pruned.add(cohort)
            return None
        greatest = [child for child, order in shares.items() if order == max(shares.values())]
        # rules/04 §5.3: on a tie a Cohort goes before a ClusterQueue.
        if cohorts := [child for child in greatest if not child.is_cluster_queue]:
            return self._greatest(cohorts[-1])
        return min(greatest, key=lambda queue: preempt.order(self.tried, self.own.name, self.left[queue.name][0]))

    def _is_source(self, found: Share) -> bool:
        """Return whether a node with this share may give victims, because it borrows (rules/04 §5.3)."""
        by_usage = self.tried.settings.has("BorrowingIsUsageAboveQuota")
        return bool(found.borrowed) if by_usage else found.ratio != 0

    def take(self, info: Info, reason: str) -> bool:
        """Take a victim. Returns whether W fits now."""
        self.tried.remove(info)
        self.targets.append(Target(info, reason))
        self.tried.usage.remove(self.own, self.need.requests)
        does_fit = preempt.fits(self.tried, self.need, may_borrow=True)
        self.tried.usage.add(self.own, self.need.requests)
        return does_fit

    def below_common(self, queue: Node) -> tuple[Node, Node]:
        """Return the nodes on the paths of both queues right below their lowest common ancestor (rules/04 §5.4 3)."""
        mine, theirs = self.own.chain(), queue.chain()
        common = next(node for node in mine if node in theirs)
        return mine[mine.index(common) - 1], theirs[theirs.index(common) - 1]

    def shares(self, queue: Node) -> tuple[Share, Share]:
        """Return the share of W's side with W, and of the other side as it is now."""
        mine, theirs = (share(self.tried.usage, node) for node in self.below_common(queue))
        return mine, theirs

    def share_after(self, queue: Node, info: Info) -> Share:
        """Return the share of the other side without a candidate."""
        self.tried.usage.remove(queue, info.usage)
        found = share(self.tried.usage, self.below_common(queue)[1])
        self.tried.usage.add(queue, info.usage)
        return found

    def first_pass(self, candidates: list[Info], strategy: str) -> bool:
        """Go queue by queue, by the first strategy (rules/04 §5.4)."""
        # rules/04 §5.4: evaluated once, before any removal, with W counted.
        is_borrowing = any(self.tried.usage.is_borrowing_with(self.own, fr) for fr in self.need.frs)
        is_right = self.tried.settings.on("FairSharingPreemptWithinNominal") and not is_borrowing
        for queue in self.tournament(candidates):
            if queue is self.own or is_right:
                if self.take(self.left[queue.name].pop(0), IN_CLUSTER_QUEUE if queue is self.own else RECLAMATION):
                    return True
                continue
            new, old = self.shares(queue)
            if math.isinf(new.weighted) and not math.isinf(old.weighted):
                # rules/04 §5.4 3: W's share is infinite and theirs is not, so no candidate can pass.
                self.retry += self.left.pop(queue.name)
                continue
            while self.left[queue.name]:
                info = self.left[queue.name].pop(0)
                if strategy == "LessThanOrEqualToFinalShare":
                    passes = new.order <= self.share_after(queue, info).order
                else:
                    passes = new.order < old.order
                if passes:
                    if self.take(info, FAIR_SHARING):
                        return True
                    # rules/04 §5.4 4: every removal changes the shares, so the order is worked out again.
                    break
                self.retry.append(info)
        return False

    def second_pass(self) -> bool:
        """Take one victim from each queue, if W's side has less than theirs had (rules/04 §5.5)."""
        for queue in self.tournament(self.retry):
            new, old = self.shares(queue)
            info = self.left[queue.name].pop(0)
            if new.order < old.order and self.take(info, FAIR_SHARING):
                return True
            self.pruned.add(queue)
        return False


def fair(snapshot: Snapshot, need: Need) -> list[Target]:
    """Find targets with fair sharing (rules/04 §5.2)."""
    candidates, strategies = _candidates(snapshot, need), snapshot.settings.fair_sharing or ()
    if not candidates:
        return []
    search = _Search(snapshot, need)
    does_fit = search.first_pass(candidates, strategies[0])
    has_own_victim = any(target.info.cluster_queue == search.own.name for target in search.targets)
    if not does_fit and has_own_victim and snapshot.settings.on("FairSharingReevaluatePreemptionCandidates"):
        # rules/04 §5.2: W's share has become smaller, so whoever was passed over may be taken now.
        passed_over, search.retry = search.retry, []
        does_fit = search.first_pass(passed_over, strategies[0])
    if not does_fit and len(strategies) > 1:
        does_fit = search.second_pass()
    targets = search.targets
    snapshot.usage.remove(search.own, need.requests)
    if does_fit:
        # rules/04 §5.2 4: minimising does not check fairness again.
        targets = preempt.minimise(snapshot, need, targets, may_borrow=True)
    preempt.put_back(snapshot, targets)
    return targets if does_fit else []
