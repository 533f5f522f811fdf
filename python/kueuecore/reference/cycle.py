"""One scheduling cycle: heads, nomination, order, decisions, requeueing (rules/05 §6)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from enum import Enum, auto

from kueuecore.reference import amount, conditions, decision, messages, quantity, times, variants
from kueuecore.reference.assignment import Mode, PodSetAssignment
from kueuecore.reference.cycle_writes import CycleWrites
from kueuecore.reference.forest import Node
from kueuecore.reference.nominate import (
    NAMESPACE_MISMATCH,
    NAMESPACE_MISMATCH_WITH_CAPITAL,
    Entry,
    assign_with_targets,
    obstacle,
    replaced_slice,
)
from kueuecore.reference.objects import FlavorResource, names_of
from kueuecore.reference.pending import RequeueReason, has_closed_gate
from kueuecore.reference.preempt import Target
from kueuecore.reference.settings import Json
from kueuecore.reference.share import Share, share
from kueuecore.reference.state import State
from kueuecore.reference.topology.encoding import encoded
from kueuecore.reference.topology.flavors import placements_of, unhealthy_nodes
from kueuecore.reference.topology.phase import stands_on_failed_node
from kueuecore.reference.totals import Info

_OVERLAP = "Workload has overlapping preemption targets with another workload"


class Fits(Enum):
    """Whether an entry still fits, and if not, why."""

    YES = auto()
    NO_QUOTA = auto()
    NO_TOPOLOGY = auto()


class Cycle(CycleWrites):
    """One cycle over a world, which it changes (rules/05 §6).

    Args:
        refused: If set, the API server refuses every status with this message (rules/05 §6.4 12).
        wait: Lets time pass until the pods of all that hold quota are ready (rules/07 §6); only a run can.
    """

    def __init__(self, world: State, refused: str | None = None, wait: Callable[[], None] | None = None) -> None:
        super().__init__(world, refused)
        self.wait = wait
        self.victims: dict[str, Info] = {}
        # How many workloads may still join the cycle, and those that joined but were not nominated.
        is_on = self.settings.on("FairSharingRefill") and self.settings.fair_sharing is not None
        self.n_refills = 8 if is_on and not self.settings.blocks_admission else 0
        self.refused_refills: list[Entry] = []

    def run(self) -> decision.Decision:
        """Decide on the heads of all active ClusterQueues (rules/05 §3, §6)."""
        world = self.world
        heads = [self._second_pass(*ready) for ready in world.second_passes.take()]
        # Kueue leaves open which is first.
        for name, queue in sorted(world.queues.items()):
            if not world.cache.is_active(name):
                continue
            if head := queue.pop():
                head.cluster_queue = name
                held = (head.key, head.workload["metadata"]["generation"])
                is_preemptor = queue.preemptor is not None and held == (queue.preemptor.key, queue.preemptor.generation)
                heads.append(Entry(head, is_preemptor))
        if not heads:
            return self.decision
        world.n_cycles += 1
        self.decision.cycle = world.n_cycles
        heads = [entry for entry in heads if entry.n_tries or world.cache.find(entry.info.key) is None]
        entries = [entry for entry in heads if self._nominate(entry)]
        if self.settings.fair_sharing is None:
            entries.sort(key=self._order)
        for entry in self._tournaments(entries) if self.settings.fair_sharing is not None else entries:
            self._process(entry)
        for entry in [*entries, *(head for head in heads if head not in entries), *self.refused_refills]:
            # A second pass that was not served fails, even if the workload has finished in this very cycle.
            is_here = entry.n_tries > 0 or self._is_here(entry.info)
            if entry.status not in ("assumed", "evicted") and is_here:
                self._requeue(entry)
        return self.decision

    def _second_pass(self, workload: Json, n_tries: int) -> Entry:
        """Return an entry for a workload that holds quota, as it was when its pass was requested (rules/08 §11.10)."""
        return Entry(self.world.info(workload), n_tries=n_tries)

    def _is_here(self, info: Info) -> bool:
        """Return whether a workload is still to be decided on: it may go while a cycle waits for pods (rules/07 §6)."""
        workload = self.world.kind("Workload").get(info.key)
        return workload is not None and workload["metadata"]["uid"] == info.uid and not conditions.is_finished(workload)

    def _wait_for_pods(self, entry: Entry) -> None:
        """Wait until the pods of all others are ready (rules/07 §6)."""
        reason = "WaitingForPodsReady" if self.settings.on("UnadmittedWorkloadsObservability") else "Waiting"
        message = "waiting for all admitted workloads to be in PodsReady condition"
        # The scheduler also waits for a workload that went away while it waited for another.
        if self._is_here(entry.info):
            blocked = self.world.owned(entry.info.key)
            if conditions.unreserve(blocked, reason, message, self.world.now, self.settings):
                self._write(blocked)
        if self.wait is None:
            raise NotImplementedError("a cycle that waits for pods, outside of a run")
        self.world.cache.leave_snapshot()
        self.wait()
        self.has_waited = True

    def _nominate(self, entry: Entry) -> bool:
        """Find flavors and targets for a head by itself (rules/05 §6.1). Returns whether it is tried at all."""
        info, limits = entry.info, self.world.limit_ranges(entry.info.workload)
        entry.reason, entry.message = obstacle(info, self.snapshot, self.world.kind("Namespace"), limits)
        if entry.message in (NAMESPACE_MISMATCH, NAMESPACE_MISMATCH_WITH_CAPITAL):
            entry.requeue_reason = RequeueReason.NAMESPACE_MISMATCH
        if not entry.message:
            entry.record(*assign_with_targets(info, self.snapshot, self.world.n_cycles))
            return True
        return False

    def _order(self, entry: Entry) -> tuple[bool, bool, int, int, int]:
        """Return the sort key without fair sharing: less borrowing first (rules/05 §6.2)."""
        return (
            not conditions.has_reservation(entry.info.workload),
            not (entry.is_preemptor and self.settings.on("PrioritizePreemptorWorkloads")),
            entry.assignment.borrowing,
            -entry.info.priority if self.settings.on("PrioritySortingWithinCohort") else 0,
            entry.info.queued_at,
        )

    def _tournaments(self, entries: list[Entry]) -> Iterator[Entry]:
        """Yield entries with fair sharing: the smallest share first, evaluated each time (rules/05 §6.3)."""
        last = {entry.info.cluster_queue: entry for entry in entries}
        # Kueue leaves open which tree is first: here it is that of the first entry that takes part.
        left = {entry.info.cluster_queue: entry for entry in entries if entry is last[entry.info.cluster_queue]}
        while left:
            name = next(iter(left))
            node = self.snapshot.nodes[name]
            winner = left[name] if node.parent is None else self._winner(node.root, self._shares(node.root, left), left)
            assert winner is not None, "the tree has the entry that it was chosen for"
            del left[winner.info.cluster_queue]
            yield winner
            if (refill := self._refill(winner)) is not None:
                entries.append(refill)
                left[refill.info.cluster_queue] = refill

    def _refill(self, after: Entry) -> Entry | None:
        """Let the next workload join once a head of its ClusterQueue got quota (rules/05 §6.3)."""
        info = after.info
        is_variant = self.settings.on("ConcurrentAdmission") and variants.is_variant(info.workload)
        is_new = after.status == "assumed" and not conditions.has_reservation(info.workload)
        if not is_new or is_variant or self.n_refills == 0:
            return None
        head = self.world.queues[info.cluster_queue].pop_more()
        if head is None:
            return None
        self.n_refills -= 1
        head.cluster_queue = info.cluster_queue
        entry = Entry(head, joined_later=True)
        if self._nominate(entry):
            return entry
        self.refused_refills.append(entry)
        return None

    def _shares(self, root: Node, left: dict[str, Entry]) -> dict[tuple[Node, str], Share]:
        """Return, by Cohort and entry, the share of the child on the entry's path, with the entry (rules/05 §6.3 2)."""
        shares: dict[tuple[Node, str], Share] = {}
        for name, entry in left.items():
            chain = self.snapshot.nodes[name].chain()
            if chain[-1] is root:
                usage = self.snapshot.usage
                usage.add(chain[0], entry.usage)
                shares |= {(cohort, name): share(usage, child) for child, cohort in itertools.pairwise(chain)}
                usage.remove(chain[0], entry.usage)
        return shares

    def _winner(self, cohort: Node, shares: dict[tuple[Node, str], Share], left: dict[str, Entry]) -> Entry | None:
        """Return the first entry of a Cohort in order (rules/05 §6.3 3)."""
        found = (left.get(c.name) if c.is_cluster_queue else self._winner(c, shares, left) for c in cohort.children)

        def order(entry: Entry) -> tuple[bool, bool, tuple[bool, float], int, int, int]:
            info, on = entry.info, self.settings.on
            own = shares[cohort, info.cluster_queue]
            return (
                on("PrioritizePreemptorWorkloads") and not entry.is_preemptor,
                on("FairSharingPrioritizeNonBorrowing") and own.is_borrowing_on(entry.usage),
                own.order,
                -info.priority if on("PrioritySortingWithinCohort") else 0,
                info.queued_at,
                list(left).index(info.cluster_queue),  # Kueue leaves a full tie open.
            )

        return min((entry for entry in found if entry is not None), key=order, default=None)

    def _overlaps(self, targets: list[Target]) -> bool:
        return any(target.info.key in self.victims for target in targets)

    def _fits(self, entry: Entry) -> Fits:
        """Return whether it still fits, once all victims are gone (rules/05 §6.4 2, 08 §11.6)."""
        snapshot, queue = self.snapshot, entry.info.cluster_queue
        known, uses = snapshot.flavor_nodes(queue), entry.topology_use(snapshot)
        with self._without_victims(entry, entry.targets):
            if not snapshot.usage.fits(snapshot.nodes[queue], entry.usage):
                return Fits.NO_QUOTA
            has_room = all(known[flavor].fits(use) for flavor, each in uses.items() for use in each)
            return Fits.YES if has_room else Fits.NO_TOPOLOGY

    @contextmanager
    def _without_victims(self, entry: Entry, targets: Iterable[Target] = ()) -> Iterator[None]:
        """Remove all victims so far, and these targets, within the context; victims in other trees only free nodes."""
        nodes, own = self.snapshot.nodes, [target.info for target in targets]
        root = nodes[entry.info.cluster_queue].root
        gone = self.victims | {info.key: info for info in own}
        # Kueue leaves their order open; it matters where sums saturate.
        infos = [info for _, info in sorted(gone.items())]
        twice = [info for n, info in enumerate(own) if info.key in {each.key for each in own[:n]}]
        again = [] if self.settings.has("TargetsLeaveOnce") else twice
        near = [info for info in infos if nodes[info.cluster_queue].root is root]
        far = [info for info in infos if nodes[info.cluster_queue].root is not root]
        with self.snapshot.without(near), self.snapshot.without_topology(far), self.snapshot.without_usage(again):
            yield

    def _reassign(self, entry: Entry, fits: Fits) -> Fits:
        """Assign again within the nominated flavors, if the nomination is no longer available.

        If targets overlap, the victims of the cycle count as gone (rules/04 §7); if nodes are taken, they do not
        (rules/08 §11.6). Returns whether the entry fits.
        """
        overlaps = self._overlaps(entry.targets) and self.settings.on("RecomputeAssignmentUponPreemptionTargetsOverlap")
        has_no_place = fits is Fits.NO_TOPOLOGY and self.settings.on("TASRecomputeAssignmentWithinSchedulingCycle")
        if not overlaps and not has_no_place:
            return fits
        nominated = {p.name: {n: choice.flavor for n, choice in p.flavors.items()} for p in entry.assignment.pod_sets}
        entry.info.progress = None
        with self._without_victims(entry) if overlaps else nullcontext():
            entry.record(*assign_with_targets(entry.info, self.snapshot, self.world.n_cycles, nominated))
        entry.assignment.is_deferred = overlaps and entry.assignment.mode == Mode.FIT
        fits = self._fits(entry)
        if not overlaps:
            return fits
        if entry.assignment.is_deferred:
            result = "deferred_fit"
        else:
            works = entry.targets and fits is Fits.YES and not self._overlaps(entry.targets)
            result = "new_targets" if works else "skipped"
        counts = self.decision.target_recomputations.setdefault(entry.info.cluster_queue, {})
        counts[result] = counts.get(result, 0) + 1
        return fits

    def _process(self, entry: Entry) -> None:
        """Decide on one entry, given the decisions before it (rules/05 §6.4)."""
        info, node, on = entry.info, self.snapshot.nodes[entry.info.cluster_queue], self.settings.on
        is_variant = on("ConcurrentAdmission") and variants.is_variant(info.workload)
        if is_variant and variants.admitted_sibling(info, self.snapshot, lambda theirs, own: theirs < own):
            return self._skip(entry, "A more favorable variant is already admitted", "PendingEvaluation")
        # Evaluated for every entry, as it has a side effect where sums saturate.
        does_fit = self._reassign(entry, self._fits(entry)) is Fits.YES
        mode = entry.assignment.mode
        if mode != Mode.FIT and on("TASFailedNodeReplacementFailFast") and stands_on_failed_node(info.workload):
            return self._evict_from_failed_nodes(entry)
        if mode == Mode.NO_FIT:
            return entry.waits(str(entry.assignment.no_fit), requeue=RequeueReason.NO_FIT)
        if mode == Mode.PREEMPT and not entry.targets:
            is_any = self.snapshot.spec(node.name).reclaim_within_cohort == "Any"
            # rules/13 §2: whoever has just started keeps what would be reclaimed.
            reclaims_always = (is_any and self.settings.min_run is None) or entry.joined_later
            if not reclaims_always or (on("PrioritizePreemptorWorkloads") and entry.is_preemptor):
                self._use(entry, self._to_reserve(entry))
            return entry.waits("WaitingForQuota", requeue=RequeueReason.NO_CANDIDATES)
        if mode in (Mode.PREEMPT, Mode.DEFERRED_FIT) and entry.joined_later:
            # rules/05 §6.4: what is missing may just have been given away, so nobody is preempted for it.
            return entry.waits("WaitingForQuota", requeue=RequeueReason.FAILED_AFTER_NOMINATION)
        has_gates = on("ConcurrentAdmission") or on("MultiKueueOrchestratedPreemption")
        if mode == Mode.PREEMPT and has_gates and has_closed_gate(info.workload):
            entry.status, info.progress = "gated", None
            message = "Workload requires preemption, but it's gated"
            return entry.waits("AdmissionGated", message, RequeueReason.GATED)
        if mode == Mode.DEFERRED_FIT:
            info.progress = None
            self._use(entry, entry.usage)
            message = f"{_OVERLAP}, but will fit after these preemptions complete"
            return entry.waits("WaitingForPreemptedWorkloads", message, RequeueReason.PENDING_PREEMPTION)
        overlaps = self._overlaps(entry.targets)
        if overlaps or not does_fit:
            if overlaps or mode == Mode.PREEMPT:
                skipped = self.decision.skipped_preemptions
                skipped[node.name] = skipped.get(node.name, 0) + 1
            message = _OVERLAP if overlaps else "Workload no longer fits after processing another workload"
            return self._skip(entry, message, "WaitingForQuota")
        self.victims |= {target.info.key: target.info for target in entry.targets}
        self._use(entry, entry.usage)
        replaced = replaced_slice(info, self.snapshot)
        if mode == Mode.PREEMPT:
            if not self._is_here(info):
                return None
            entry.reason = "WaitingForPreemptedWorkloads"
            # The slice is removed only once: if it is also a candidate, it is preempted (rules/09 §2.3 8).
            slices = (
                i for i, target in enumerate(entry.targets) if replaced is not None and target.info.key == replaced.key
            )
            taken_out = next(slices, None)
            return self.issue(entry, [target for i, target in enumerate(entry.targets) if i != taken_out])
        worse = variants.admitted_sibling(info, self.snapshot, lambda theirs, own: theirs > own) if is_variant else None
        has_quota = conditions.has_reservation(info.workload)
        if self.settings.blocks_admission and not has_quota and not self.world.cache.are_pods_ready():
            entry.waits("WaitingForPodsReady")
            self._wait_for_pods(entry)
        if not self._is_here(info):
            return None
        return self._migrate(entry, worse) if worse is not None else self._admit(entry, replaced)

    def _use(self, entry: Entry, quota: Mapping[FlavorResource, int]) -> None:
        """Take quota and nodes from later entries of this cycle (rules/08 §11.6)."""
        self.snapshot.usage.add(self.snapshot.nodes[entry.info.cluster_queue], quota)
        self.snapshot.charge_topology(entry.info.cluster_queue, entry.topology_use(self.snapshot))

    def _skip(self, entry: Entry, message: str, reason: str) -> None:
        entry.status = "skipped"
        entry.waits(reason, message)
        if not self.settings.on("FlavorFungibilityPreserveScanProgress"):
            entry.info.progress = None

    def _to_reserve(self, entry: Entry) -> dict[FlavorResource, int]:
        """Return what to keep free for an entry that cannot preempt yet (rules/05 §6.4 4)."""
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

    def _admit(self, entry: Entry, replaced: Info | None) -> None:
        """Give quota (rules/05 §6.4 12, §6.6)."""
        world, info, now = self.world, entry.info, self.world.now
        pod_sets = [self._granted(pod_set) for pod_set in entry.assignment.pod_sets]
        held_quota, had_failed = conditions.has_reservation(info.workload), bool(unhealthy_nodes(info.workload))
        before, admitted = world.kind("Workload")[info.key], self._owned(info)
        conditions.reserve(admitted, {"clusterQueue": info.cluster_queue, "podSetAssignments": pod_sets}, now)
        used = {flavor for pod_set in pod_sets for flavor in pod_set.get("flavors", {}).values()}
        needed = self.snapshot.spec(info.cluster_queue).checks_of(used, self.settings)
        if needed <= {check["name"] for check in conditions.check_states(admitted)}:
            conditions.sync_admitted(admitted, now, self.settings)
        self._number(admitted)
        for past in ("resourceRequests", "unhealthyNodes"):
            admitted["status"].pop(past, None)
        entry.status = "assumed"
        world.hold(admitted)
        if is_charged := not held_quota or not self.settings.has("PenaltiesAreSettled"):
            world.penalize(info)
        if not self._write(admitted):
            world.cache.delete_workload(info.key)
            if is_charged:
                world.take_back_penalty(info)
            if self.refused != "NotFound":
                self._requeue(entry)
            return
        if held_quota:
            self.placed.add(info.key)
        world.expected.discard(info.key)
        reserved = f"Quota reserved in ClusterQueue {info.cluster_queue}, wait time since queued was "
        # With the workload as the cycle saw it: a backoff may have ended while it waited for pods.
        reserved += messages.waited(info.workload, now)
        if considered := entry.assignment.considered:
            reserved += f"; Flavors considered: {considered}"
        if not held_quota:
            self._event(info, "QuotaReserved", conditions.cut(reserved, conditions.EVENT_BYTES))
        may_start = conditions.is_true(admitted, "Admitted")
        if may_start and not had_failed:
            is_measured = held_quota and self.settings.has("AdmittedWaitIsMeasured")
            waited = (now - conditions.since(before, "QuotaReserved")) / times.SECOND if is_measured else 0
            text = f"Admitted by ClusterQueue {info.cluster_queue}, wait time since reservation was {waited:.0f}s"
            self._event(info, "Admitted", text)
        granted = tuple(
            decision.PodSetAdmission(
                p["name"],
                p["count"],
                p.get("flavors", {}),
                p.get("resourceUsage", {}),
                p.get("topologyAssignment"),
                p.get("delayedTopologyRequest", ""),
            )
            for p in pod_sets
        )
        admission = decision.Admission(*names_of(info.workload), info.cluster_queue, granted, may_start, now)
        if not held_quota:
            self.decision.admissions.append(admission)
        elif placements_of(before) != placements_of(admitted):
            self.decision.placements.append(admission)
        if replaced is not None:
            self._finish_slice(replaced, info)

    def _granted(self, pod_set: PodSetAssignment) -> Json:
        """Return the assignment of a pod set as the API writes it (rules/05 §6.6, 08 §15)."""
        made: Json = {"name": pod_set.name, "count": pod_set.count}
        if pod_set.flavors:
            made["flavors"] = {name: choice.flavor for name, choice in sorted(pod_set.flavors.items())}
            used = {name: pod_set.requests.get(name, 0) for name in made["flavors"]}
            made["resourceUsage"] = {name: quantity.text(name, number) for name, number in used.items()}
        if pod_set.topology is not None:
            by_prefix = self.settings.on("TASAssignmentsEncodingByHostnamePrefix")
            made["topologyAssignment"] = encoded(pod_set.topology, by_prefix=by_prefix)
        if pod_set.delayed:
            made["delayedTopologyRequest"] = pod_set.delayed
        return made

    def _requeue(self, entry: Entry) -> None:
        """Put a head back into its queue, and write why it waits (rules/05 §6.5)."""
        world, info = self.world, entry.info
        if world.second_passes.put(info.workload, entry.n_tries, world.now):
            message = conditions.cut(entry.message, conditions.EVENT_BYTES)
            self._event(info, "SecondPassFailed", message, "Warning")
            return
        if entry.status and entry.requeue_reason == RequeueReason.GENERIC:
            entry.requeue_reason = RequeueReason.FAILED_AFTER_NOMINATION
        queue = world.queues[info.cluster_queue]
        active = set(queue.active)
        world.requeue(info, entry.requeue_reason, entry.reason)
        self.decision.parked += sorted(active - set(queue.active))
        if entry.status == "assumed":
            return
        reason = entry.reason if self.settings.on("UnadmittedWorkloadsObservability") else "Pending"
        before, waiting = world.kind("Workload")[info.key], world.owned(info.key)
        conditions.unreserve(waiting, reason, entry.message, world.now, self.settings)
        asked = [(t.name, {n: quantity.text(n, v) for n, v in sorted(t.requests.items())}) for t in info.totals]
        shown = [{"name": name, "resources": resources} if resources else {"name": name} for name, resources in asked]
        waiting["status"]["resourceRequests"] = shown
        if entry.status == "gated":
            conditions.put(waiting, "BlockedOnPreemptionGates", True, "PreemptionGated", entry.message, world.now)
        # An API server refuses a condition without a reason, and with it the whole status (rules/08 §11.5).
        if reason and waiting["status"] != before["status"]:
            self._write(waiting)
        self._event(info, reason, conditions.cut(entry.message, conditions.EVENT_BYTES), "Warning")
        names, is_parked = names_of(info.workload), info.key in queue.inadmissible
        self.decision.pending.append(decision.Pending(*names, info.cluster_queue, reason, entry.message, is_parked))
