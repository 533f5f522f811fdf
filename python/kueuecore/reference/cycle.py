"""One scheduling cycle: heads, nomination, order, decisions, requeueing (rules/05 §6)."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore.reference import amount, conditions, eviction, messages, quantity, variants
from kueuecore.reference.assign import Mode
from kueuecore.reference.cache import Snapshot
from kueuecore.reference.decision import (
    Admission,
    Decision,
    Event,
    Pending,
    PodSetAdmission,
    Preemption,
    ReplacedSlice,
)
from kueuecore.reference.forest import Node
from kueuecore.reference.nominate import NAMESPACE_MISMATCH, Entry, assign_with_targets, obstacle, replaced_slice
from kueuecore.reference.objects import FlavorResource, names_of
from kueuecore.reference.pending import RequeueReason, has_closed_gate
from kueuecore.reference.preempt import Target
from kueuecore.reference.settings import Json
from kueuecore.reference.share import Share, compare, share
from kueuecore.reference.state import State
from kueuecore.reference.totals import Info

__all__ = ["Cycle"]

_OVERLAP = "Workload has overlapping preemption targets with another workload"


class Cycle:
    """A cycle over a world, which it changes (rules/05 §6).

    Args:
        refused: If given, the API server refuses every status with this message (rules/05 §6.4 12).
    """

    def __init__(self, world: State, refused: str | None = None) -> None:
        self.world, self.refused, self.settings = world, refused, world.settings
        self.decision = Decision()
        self.victims: dict[str, Info] = {}
        self.snapshot: Snapshot = world.snapshot()

    def run(self) -> Decision:
        """Decide on the heads of all active ClusterQueues (rules/05 §3, §6)."""
        world = self.world
        queues = [queue for name, queue in world.queues.items() if world.cache.is_active(name)]
        heads = []
        for name, queue in world.queues.items():
            head = queue.pop() if queue in queues else None
            if head is not None:
                generation = head.workload["metadata"].get("generation", 0)
                held = queue.preemptor
                is_preemptor = held is not None and (held.key, held.generation) == (head.key, generation)
                head.cluster_queue = name
                heads.append(Entry(head, is_preemptor))
        if not heads:
            return self.decision
        world.n_cycles += 1
        self.decision.cycle = world.n_cycles
        entries, rejected = self._nominate(heads)
        if self.settings.fair_sharing is None:
            entries.sort(key=self._order)
            ordered = iter(entries)
        else:
            ordered = self._tournaments(entries)
        for entry in ordered:
            self._process(entry)
        for entry in [*entries, *rejected]:
            if entry.status != "assumed":
                self._requeue(entry)
        return self.decision

    def _nominate(self, heads: list[Entry]) -> tuple[list[Entry], list[Entry]]:
        """Flavors and targets for each head by itself (rules/05 §6.1)."""
        entries, rejected = [], []
        for entry in heads:
            info = entry.info
            if self.world.cache.find(info.key) is not None:
                continue
            limits = self.world.limit_ranges(info.workload)
            entry.reason, entry.message = obstacle(info, self.snapshot, self.world.namespaces, limits)
            if entry.message:
                if entry.message == NAMESPACE_MISMATCH:
                    entry.requeue_reason = RequeueReason.NAMESPACE_MISMATCH
                rejected.append(entry)
            else:
                entry.record(*assign_with_targets(info, self.snapshot, self.world.n_cycles))
                entries.append(entry)
        return entries, rejected

    def _order(self, entry: Entry) -> tuple[bool, bool, int, int, int]:
        """Without fair sharing: those that borrow less first (rules/05 §6.2)."""
        return (
            not conditions.has_reservation(entry.info.workload),
            not (entry.is_preemptor and self.settings.on("PrioritizePreemptorWorkloads")),
            entry.assignment.borrowing,
            -entry.info.priority if self.settings.on("PrioritySortingWithinCohort") else 0,
            entry.info.queued_at,
        )

    def _tournaments(self, entries: list[Entry]) -> Iterator[Entry]:
        """With fair sharing: those with the smallest share first, as it is at that moment (rules/05 §6.3)."""
        left = {entry.info.cluster_queue: entry for entry in entries}
        while left:
            name = next(iter(left))
            node = self.snapshot.nodes[name]
            winner = left[name] if node.parent is None else self._winner(node.root, self._shares(node.root, left), left)
            assert winner is not None, "the tree has the entry that it was chosen for"
            del left[winner.info.cluster_queue]
            yield winner

    def _shares(self, root: Node, left: dict[str, Entry]) -> dict[tuple[Node, str], Share]:
        """By Cohort and entry: the share of the child on the entry's path, with the entry (rules/05 §6.3 2)."""
        shares = {}
        for name, entry in left.items():
            node = self.snapshot.nodes[name]
            if node.root is root:
                usage = self.snapshot.usage.copy()
                usage.add(node, entry.usage)
                for child in [node, *node.ancestors()]:
                    if child.parent is not None:
                        shares[child.parent, name] = share(usage, child)
        return shares

    def _winner(self, cohort: Node, shares: dict[tuple[Node, str], Share], left: dict[str, Entry]) -> Entry | None:
        """The least of a Cohort (rules/05 §6.3 3)."""
        best: Entry | None = None
        for child in sorted(cohort.children, key=lambda child: child.is_cluster_queue):
            found = left.get(child.name) if child.is_cluster_queue else self._winner(child, shares, left)
            if found is not None and (best is None or self._is_before(found, best, cohort, shares)):
                best = found
        return best

    def _is_before(self, a: Entry, b: Entry, cohort: Node, shares: dict[tuple[Node, str], Share]) -> bool:
        on = self.settings.on
        if on("PrioritizePreemptorWorkloads") and a.is_preemptor != b.is_preemptor:
            return a.is_preemptor
        left, right = (shares[cohort, entry.info.cluster_queue] for entry in (a, b))
        if on("FairSharingPrioritizeNonBorrowing"):
            borrows = [s.is_borrowing_on(entry.usage) for s, entry in ((left, a), (right, b))]
            if borrows[0] != borrows[1]:
                return borrows[1]
        if compared := compare(left, right):
            return compared < 0
        if on("PrioritySortingWithinCohort") and a.info.priority != b.info.priority:
            return a.info.priority > b.info.priority
        # Kueue leaves a full tie open.
        return (a.info.queued_at, a.info.cluster_queue) < (b.info.queued_at, b.info.cluster_queue)

    def _overlaps(self, targets: list[Target]) -> bool:
        return any(target.info.key in self.victims for target in targets)

    def _fits(self, entry: Entry) -> bool:
        """Does it still fit, once all victims are gone? (rules/05 §6.4 2)."""
        usage = self.snapshot.usage.copy()
        for info in (self.victims | {target.info.key: target.info for target in entry.targets}).values():
            usage.remove(self.snapshot.nodes[info.cluster_queue], info.usage)
        node = self.snapshot.nodes[entry.info.cluster_queue]
        return all(requested <= usage.available(node, fr) for fr, requested in entry.usage.items())

    def _reassign(self, entry: Entry) -> None:
        """Assign again as if the victims of the cycle were gone, within the nominated flavors (rules/04 §7)."""
        nominated = {
            pod_set.name: {name: choice.flavor for name, choice in pod_set.flavors.items()}
            for pod_set in entry.assignment.pod_sets
        }
        entry.info.progress = None
        after = self.snapshot.without(self.victims.values())
        entry.record(*assign_with_targets(entry.info, after, self.world.n_cycles, nominated))
        entry.assignment.is_deferred = entry.assignment.mode == Mode.FIT
        counts = self.decision.target_recomputations.setdefault(entry.info.cluster_queue, {})
        if entry.assignment.is_deferred:
            result = "deferred_fit"
        elif entry.targets and self._fits(entry) and not self._overlaps(entry.targets):
            result = "new_targets"
        else:
            result = "skipped"
        counts[result] = counts.get(result, 0) + 1

    def _process(self, entry: Entry) -> None:
        """Decide on one entry, given those before it (rules/05 §6.4)."""
        info, node, on = entry.info, self.snapshot.nodes[entry.info.cluster_queue], self.settings.on
        is_variant = on("ConcurrentAdmission") and variants.is_variant(info.workload)
        if is_variant and variants.admitted_sibling(info, self.snapshot, lambda theirs, own: theirs < own):
            return self._skip(entry, "A more favorable variant is already admitted", "PendingEvaluation")
        if self._overlaps(entry.targets) and on("RecomputeAssignmentUponPreemptionTargetsOverlap"):
            self._reassign(entry)
        mode = entry.assignment.mode
        if mode == Mode.NO_FIT:
            entry.requeue_reason, entry.reason = RequeueReason.NO_FIT, str(entry.assignment.no_fit)
            return None
        if mode == Mode.PREEMPT and not entry.targets:
            entry.requeue_reason, entry.reason = RequeueReason.NO_CANDIDATES, "WaitingForQuota"
            reclaims_always = self.snapshot.spec(node.name).reclaim_within_cohort == "Any"
            if not reclaims_always or (on("PrioritizePreemptorWorkloads") and entry.is_preemptor):
                self.snapshot.usage.add(node, self._to_reserve(entry))
            return None
        has_gates = on("ConcurrentAdmission") or on("MultiKueueOrchestratedPreemption")
        if mode == Mode.PREEMPT and has_gates and has_closed_gate(info.workload):
            entry.status, entry.requeue_reason = "gated", RequeueReason.GATED
            entry.message, entry.reason = "Workload requires preemption, but it's gated", "AdmissionGated"
            info.progress = None
            return None
        if mode == Mode.DEFERRED_FIT:
            entry.message = f"{_OVERLAP}, but will fit after these preemptions complete"
            entry.reason, entry.requeue_reason = "WaitingForPreemptedWorkloads", RequeueReason.PENDING_PREEMPTION
            info.progress = None
            self.snapshot.usage.add(node, entry.usage)
            return None
        if self._overlaps(entry.targets):
            self._count_skip(node.name)
            return self._skip(entry, _OVERLAP, "WaitingForQuota")
        if not self._fits(entry):
            if mode == Mode.PREEMPT:
                self._count_skip(node.name)
            return self._skip(entry, "Workload no longer fits after processing another workload", "WaitingForQuota")
        self.victims |= {target.info.key: target.info for target in entry.targets}
        self.snapshot.usage.add(node, entry.usage)
        replaced = replaced_slice(info, self.snapshot)
        if mode == Mode.PREEMPT:
            entry.reason = "WaitingForPreemptedWorkloads"
            return self.issue(entry, [t for t in entry.targets if replaced is None or t.info.key != replaced.key])
        sibling = (
            variants.admitted_sibling(info, self.snapshot, lambda theirs, own: theirs > own) if is_variant else None
        )
        if sibling is not None:
            return self._migrate(entry, sibling)
        return self._admit(entry, replaced)

    def _skip(self, entry: Entry, message: str, reason: str) -> None:
        entry.status, entry.message, entry.reason = "skipped", message, reason
        if not self.settings.on("FlavorFungibilityPreserveScanProgress"):
            entry.info.progress = None

    def _count_skip(self, queue: str) -> None:
        self.decision.skipped_preemptions[queue] = self.decision.skipped_preemptions.get(queue, 0) + 1

    def _to_reserve(self, entry: Entry) -> dict[FlavorResource, int]:
        """What to keep free for an entry that cannot preempt yet (rules/05 §6.4 4)."""
        node = self.snapshot.nodes[entry.info.cluster_queue]
        reserved = {}
        for fr, requested in entry.usage.items():
            quota, used = node.quota(fr), self.snapshot.usage.at(node, fr)
            if entry.assignment.borrowing == 0:
                reserved[fr] = max(0, min(requested, amount.subtract(quota.nominal, used)))
            elif quota.borrowing_limit is None:
                reserved[fr] = requested
            else:
                most = amount.add(quota.nominal, quota.borrowing_limit)
                reserved[fr] = min(requested, amount.subtract(most, used))
        return reserved

    def _event(self, info: Info, kind: str, reason: str, message: str, *, is_cut: bool = True) -> None:
        text = conditions.cut(message, conditions.EVENT_BYTES) if is_cut else message
        self.decision.events.append(Event(kind, reason, *names_of(info.workload), text))

    def _evict(self, info: Info, reason: str, message: str, *, preempted: str = "", preemptor: Info) -> None:
        """Tell a workload to stop (rules/04 §8 3)."""
        victim = self.world.owned(info.key)
        if preempted:
            conditions.put(victim, "Preempted", True, preempted, message, self.world.now, generation=False)
        event = eviction.evict(victim, reason, message, self.world.now)
        if event is not None:
            self.decision.events.append(event)
        self._write(victim)
        told = preempted or reason
        self.decision.preemptions.append(
            Preemption(*names_of(victim), info.cluster_queue, preemptor.key, told, message)
        )

    def issue(self, entry: Entry, targets: list[Target]) -> None:
        """Tell the targets to stop (rules/04 §8)."""
        nodes, preemptor = self.snapshot.nodes, entry.info
        path = nodes[preemptor.cluster_queue].path
        for target in targets:
            info = target.info
            if info.is_evicted:
                self.world.expected.discard(info.key)
                continue
            if info.key in self.world.expected:
                continue
            self.world.expected.add(info.key)
            message = messages.preemption(preemptor.workload, target.reason, path, nodes[info.cluster_queue].path)
            self._evict(info, "Preempted", message, preempted=target.reason, preemptor=preemptor)
            both = messages.priorities(preemptor, info)
            self._event(info, "Normal", "Preempted", message + both, is_cut=False)
            self._event(
                preemptor, "Normal", "PreemptedWorkload", messages.preempted_workload(info) + both, is_cut=False
            )
        preemptor.progress = None
        if targets:
            entry.message += f". Pending the preemption of {len(targets)} workload(s)"
            entry.requeue_reason = RequeueReason.PENDING_PREEMPTION

    def _migrate(self, entry: Entry, sibling: Info) -> None:
        """Let a variant with a better flavor take over (rules/09 §4.4)."""
        if not variants.may_migrate(entry.info, self.snapshot):
            entry.message = "Target flavor is below LastAcceptableFlavorName"
            entry.reason = "PendingEvaluation"
            return
        entry.reason = "WaitingForPreemptedWorkloads"
        uid = entry.info.uid
        message = f"Evicted to accommodate a workload (UID: {uid}) due to migration to more favorable resource flavor"
        self._evict(sibling, "FlavorMigration", message, preemptor=entry.info)
        entry.info.progress, entry.requeue_reason = None, RequeueReason.PENDING_MIGRATION
        entry.message += ". Pending the migration of 1 workload(s)"

    def _write(self, workload: Json) -> bool:
        if self.refused is None:
            self.world.write(workload)
        return self.refused is None

    def _admit(self, entry: Entry, replaced: Info | None) -> None:
        """Give quota (rules/05 §6.4 12, §6.6)."""
        world, info, now = self.world, entry.info, self.world.now
        pod_sets: list[Json] = []
        for pod_set in entry.assignment.pod_sets:
            flavors = {name: choice.flavor for name, choice in sorted(pod_set.flavors.items())}
            usage = {name: quantity.text(name, pod_set.requests[name]) for name in flavors}
            made: Json = {"name": pod_set.name, "count": pod_set.count}
            pod_sets.append(made | ({"flavors": flavors, "resourceUsage": usage} if flavors else {}))
        before = world.owned(info.key)
        admitted = conditions.own(before)
        admission = {"clusterQueue": info.cluster_queue, "podSetAssignments": pod_sets}
        conditions.reserve(admitted, admission, now)
        used = {flavor for pod_set in pod_sets for flavor in pod_set.get("flavors", {}).values()}
        needed = {name for name, flavors in self.snapshot.spec(info.cluster_queue).checks.items() if used & flavors}
        if needed <= {check["name"] for check in conditions.check_states(admitted)}:
            conditions.sync_admitted(admitted, now, self.settings)
        admitted["status"].pop("resourceRequests", None)
        entry.status = "assumed"
        world.cache.set_workload(admitted)
        world.penalize(info)
        if not self._write(admitted):
            world.cache.delete_workload(info.key)
            world.forgive(info)
            if self.refused != "NotFound":
                self._requeue(entry)
            return
        world.expected.discard(info.key)
        reserved = f"Quota reserved in ClusterQueue {info.cluster_queue}, wait time since queued was "
        reserved += messages.waited(admitted, now)
        if considered := entry.assignment.considered:
            reserved += f"; Flavors considered: {considered}"
        self._event(info, "Normal", "QuotaReserved", reserved)
        may_start = conditions.is_admitted(admitted)
        if may_start:
            text = f"Admitted by ClusterQueue {info.cluster_queue}, wait time since reservation was 0s"
            self._event(info, "Normal", "Admitted", text, is_cut=False)
        told = tuple(
            PodSetAdmission(p["name"], p["count"], p.get("flavors", {}), p.get("resourceUsage", {})) for p in pod_sets
        )
        self.decision.admissions.append(Admission(*names_of(info.workload), info.cluster_queue, told, may_start))
        if replaced is not None:
            self._finish_slice(replaced, info)

    def _finish_slice(self, old: Info, new: Info) -> None:
        """A slice ends when its replacement got quota (rules/09 §2.3 5)."""
        job = (new.workload["metadata"].get("labels") or {}).get("kueue.x-k8s.io/job-uid", "")
        uids = f"(UID: {new.uid}, JobUID: {job})"
        message = f"Replaced to accommodate a workload {uids} due to workload slice aggregation"
        finished = self.world.owned(old.key)
        conditions.put(finished, "Finished", True, "WorkloadSliceReplaced", message, self.world.now)
        self._write(finished)
        self._event(old, "Normal", "WorkloadSliceReplaced", message, is_cut=False)
        self.decision.replaced_slices.append(ReplacedSlice(*names_of(old.workload), new.key, message))

    def _requeue(self, entry: Entry) -> None:
        """Put a head back, and say why it waits (rules/05 §6.5)."""
        world, info = self.world, entry.info
        if entry.status and entry.requeue_reason == RequeueReason.GENERIC:
            entry.requeue_reason = RequeueReason.FAILED_AFTER_NOMINATION
        queue = world.queues[info.cluster_queue]
        active = set(queue.active)
        world.requeue(info, entry.requeue_reason, entry.reason)
        self.decision.parked += sorted(active - set(queue.active))
        if entry.status == "assumed":
            return
        reason = entry.reason if self.settings.on("UnadmittedWorkloadsObservability") else "Pending"
        waiting = world.owned(info.key)
        before = conditions.own(waiting)
        conditions.unreserve(waiting, reason, entry.message, world.now, self.settings)
        waiting["status"]["resourceRequests"] = [
            {"name": t.name, "resources": {n: quantity.text(n, v) for n, v in sorted(t.requests.items())}}
            for t in info.totals
        ]
        if entry.status == "gated":
            args = ("PreemptionGated", entry.message, world.now)
            conditions.put(waiting, "BlockedOnPreemptionGates", True, *args)
        if waiting["status"] != before["status"]:
            self._write(waiting)
        self._event(info, "Warning", reason, entry.message)
        is_parked = info.key in queue.inadmissible
        self.decision.pending.append(
            Pending(*names_of(info.workload), info.cluster_queue, reason, entry.message, is_parked)
        )
