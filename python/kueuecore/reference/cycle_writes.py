"""What a cycle writes to workloads: statuses, evictions, ends of replaced slices (rules/04 §8, rules/05 §6.4)."""

from __future__ import annotations

from kueuecore.reference import conditions, decision, eviction, messages, variants
from kueuecore.reference.cache import Snapshot
from kueuecore.reference.nominate import Entry
from kueuecore.reference.objects import key, names_of
from kueuecore.reference.pending import RequeueReason
from kueuecore.reference.preempt import Target
from kueuecore.reference.settings import Json
from kueuecore.reference.state import State
from kueuecore.reference.topology.flavors import unhealthy_nodes
from kueuecore.reference.totals import Info

__all__ = ["CycleWrites"]


class CycleWrites:
    """The writes of one cycle, and what they change in its decision.

    Args:
        world: The world.
        refused: If set, the API server refuses every status with this message (rules/05 §6.4 12).
    """

    def __init__(self, world: State, refused: str | None = None) -> None:
        self.world, self.refused, self.settings = world, refused, world.settings
        self.decision = decision.Decision()
        self.snapshot: Snapshot = world.snapshot()
        # Workloads that this cycle has evicted from failed nodes.
        self.evicted: set[str] = set()
        # Those whose pods got a place in a second pass: if they are preempted later in the cycle, it is lost.
        self.placed: set[str] = set()
        self.has_waited = False

    def _owned(self, info: Info) -> Json:
        """Return a Workload to change and write; a second pass writes its old status back (rules/08 §11.10)."""
        newest = self.world.owned(info.key)
        if conditions.has_reservation(info.workload):
            kept = {name: newest["status"][name] for name in ("reclaimablePods",) if name in newest["status"]}
            newest["status"] = {**conditions.copied(info.workload["status"]), **kept}
            newest["metadata"] = {**newest["metadata"], "generation": info.workload["metadata"]["generation"]}
        return newest

    def _as_seen(self, info: Info) -> Json:
        """Return a victim to change and write, as the cycle saw it; only its end is kept (rules/04 §8 3)."""
        victim, newest = self._owned(info), self.world.kind("Workload")[info.key]
        if conditions.is_finished(newest):
            victim["status"]["conditions"].append(conditions.copied(conditions.find(newest, "Finished")))
        return victim

    def _number(self, workload: Json) -> None:
        """Set the generation to the stored one, as the scheduler never changes it."""
        stored = self.world.kind("Workload")[key(workload)]
        workload["metadata"]["generation"] = stored["metadata"]["generation"]

    def _write(self, workload: Json) -> bool:
        if self.refused is None:
            self.world.write(workload)
        return self.refused is None

    def _event(self, info: Info, reason: str, message: str, kind: str = "Normal") -> None:
        self.decision.events.append(decision.Event(*names_of(info.workload), kind, reason, message))

    def _evict_from_failed_nodes(self, entry: Entry) -> None:
        """Evict a workload from failed nodes, as there is no other place for its pods (rules/08 §11.7)."""
        info, named = entry.info, ",".join(unhealthy_nodes(entry.info.workload))
        reason = "NodeFailures"
        message = f"Workload was evicted as there was no replacement for unhealthy node(s): {named}"
        again = conditions.is_true(self.world.kind("Workload")[info.key], "Evicted")
        evicted = self._owned(info)
        event = eviction.evict(evicted, reason, message, self.world.now)
        self._number(evicted)
        if not self._write(evicted) and self.refused != "NotFound":
            return
        entry.status = "evicted"
        self.evicted.add(info.key)
        so_far = self.decision
        so_far.events = [
            event for event in so_far.events if (event.key, event.reason) != (info.key, "WorkloadSliceReplaced")
        ]
        so_far.replaced_slices = [slice_ for slice_ in so_far.replaced_slices if slice_.key != info.key]
        if event is not None and self.refused is None:
            self.decision.events.append(event)
            self.decision.evictions.append(decision.Eviction(*names_of(info.workload), reason, message, again))

    def _evict(self, info: Info, reason: str, message: str, preemptor: Info, preempted: str = "") -> None:
        """Ask a workload to stop (rules/04 §8 3)."""
        is_old = self.has_waited or info.key in self.evicted | self.placed
        victim = self._as_seen(info) if is_old else self.world.owned(info.key)
        self.decision.evictions = [each for each in self.decision.evictions if each.key != info.key]
        if preempted:
            conditions.put(victim, "Preempted", True, preempted, message, self.world.now, observed=False)
        if event := eviction.evict(victim, reason, message, self.world.now):
            self.decision.events.append(event)
        self._number(victim)
        self._write(victim)
        self.world.note_reclaim(info, preempted)
        issued = decision.Preemption(*names_of(victim), info.cluster_queue, preemptor.key, preempted or reason, message)
        self.decision.preemptions.append(issued)

    def issue(self, entry: Entry, targets: list[Target]) -> None:
        """Ask the targets to stop (rules/04 §8)."""
        nodes, preemptor, expected = self.snapshot.nodes, entry.info, self.world.expected
        for target in targets:
            info, newest = target.info, self.world.kind("Workload").get(target.info.key)
            if newest is None or newest["metadata"]["uid"] != info.uid:
                continue
            # What the cycle saw decides: a victim may have been evicted, or have ended, while it waited for pods.
            is_out = conditions.is_true(newest, "Evicted") and not self.has_waited
            if info.is_evicted or (is_out and info.key not in self.evicted):
                expected.discard(info.key)
            elif info.key not in expected:
                expected.add(info.key)
                paths = (nodes[each.cluster_queue].path for each in (preemptor, info))
                message = messages.preemption(preemptor.workload, target.reason, *paths)
                self._evict(info, "Preempted", message, preemptor, preempted=target.reason)
                if self.settings.has("PreemptionPrioritiesAreNamed"):
                    both = messages.priorities(preemptor, info)
                    self._event(info, "Preempted", message + both)
                    self._event(preemptor, "PreemptedWorkload", messages.preempted_workload(info) + both)
                else:
                    self._event(info, "Preempted", message)
        preemptor.progress = None
        if targets:
            entry.message += f". Pending the preemption of {len(targets)} workload(s)"
            entry.requeue_reason = RequeueReason.PENDING_PREEMPTION

    def _migrate(self, entry: Entry, sibling: Info) -> None:
        """Let a variant with a better flavor take over (rules/09 §4.4)."""
        if not variants.may_migrate(entry.info, self.snapshot):
            return entry.waits("PendingEvaluation", "Target flavor is below LastAcceptableFlavorName")
        uid = entry.info.uid
        message = f"Evicted to accommodate a workload (UID: {uid}) due to migration to more favorable resource flavor"
        self._evict(sibling, "FlavorMigration", message, entry.info)
        entry.info.progress = None
        message = f"{entry.message}. Pending the migration of 1 workload(s)"
        return entry.waits("WaitingForPreemptedWorkloads", message, RequeueReason.PENDING_MIGRATION)

    def _finish_slice(self, old: Info, new: Info) -> None:
        """Finish a slice whose replacement got quota (rules/09 §2.3 5)."""
        if old.key in self.evicted:
            # The API server refuses this write, as the eviction has created a newer version (rules/08 §11.10).
            return
        uids = f"(UID: {new.uid}, JobUID: {messages.job_uid(new.workload)})"
        message = f"Replaced to accommodate a workload {uids} due to workload slice aggregation"
        finished = self.world.owned(old.key)
        conditions.put(finished, "Finished", True, "WorkloadSliceReplaced", message, self.world.now)
        self._write(finished)
        self._event(old, "WorkloadSliceReplaced", message)
        self.decision.replaced_slices.append(decision.ReplacedSlice(*names_of(old.workload), new.key, message))
