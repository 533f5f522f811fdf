"""The world of the scheduler: objects go in, cycles run, decisions come out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from kueuecore.reference import conditions, eviction
from kueuecore.reference.apply import Watchers
from kueuecore.reference.cycle import Cycle
from kueuecore.reference.decision import Decision, Event
from kueuecore.reference.reconcile import reconcile
from kueuecore.reference.settings import Json
from kueuecore.reference.times import SECOND
from kueuecore.reference.topology import watch


class World(Watchers):
    """The simple counterpart of `kueuecore.Engine`: objects go in, cycles run, decisions come out.

    Args:
        objects: Manifests, in the order of their creation. They must be valid: nothing is checked.
        configuration: Kueue's Configuration as a dict.
        now: The time, as RFC 3339 or in nanoseconds since 1970.
        trusted: Whether to take manifests as they are, without the API server's defaults.
        batches_retries: Whether retries of parked workloads wait for others (rules/05 §3.1).
    """

    def __init__(
        self,
        objects: Iterable[Json] = (),
        *,
        configuration: Json | None = None,
        now: str | int,
        trusted: bool = False,
        batches_retries: bool = False,
    ) -> None:
        super().__init__(configuration, now)
        if batches_retries and self.settings.has("RetriesAreBatched"):
            self.retry_delay = (10 if self.settings.on("SchedulerLongRequeueInterval") else 1) * SECOND
        self.apply(objects, trusted=trusted)

    def cycle(self, now: str | int) -> Decision:
        """Run one cycle, after requeueing what was asked for (rules/05 §6)."""
        self.advance(now)
        self.deliver()
        self.second_passes.advance(self.now)
        self.flush()
        decision = Cycle(self).run()
        self.deliver()
        return decision

    def reconcile(self, now: str | int) -> list[Event]:
        """Write what the workload controller writes between cycles, until nothing changes (rules/07 §12)."""
        self.advance(now)
        watch.look_again(self)
        self.settle()
        written, self.events = self.events, []
        return written

    def settle(self, react: Callable[[str], None] = lambda name: None) -> None:
        """Let the watchers, the workload controller and `react` work until nothing changes."""
        self.deliver()
        while self.dirty:
            names, self.dirty = sorted(self.dirty), set()
            for name in names:
                if name in self.kind("Workload"):
                    reconcile(self, name)
                react(name)
            self.deliver()

    def finish(self, name: str, *, namespace: str, now: str | int) -> bool:
        """Finish the job of a workload. Returns whether it was not finished before."""
        self.advance(now)
        changed = self.end(f"{namespace}/{name}", "Job finished successfully")
        self.deliver()
        return changed

    def end(self, workload_key: str, message: str) -> bool:
        """Mark a workload as finished. Returns whether it was not finished before."""
        workload = self.owned(workload_key)
        if conditions.is_finished(workload):
            return False
        conditions.put(workload, "Finished", True, "Succeeded", message, self.now)
        self.write(workload)
        return True

    def evict(self, name: str, *, namespace: str, now: str | int, reason: str = "Preempted") -> bool:
        """Ask a workload to stop and treat it as stopped. Returns whether this is the first request."""
        self.advance(now)
        workload = self.owned(f"{namespace}/{name}")
        is_new = not conditions.is_true(workload, "Evicted")
        if is_new:
            eviction.evict(workload, reason, "", self.now)
            self.write(workload)
            self.deliver()
        self.release(name, namespace=namespace, now=now)
        return is_new

    def release(self, name: str, *, namespace: str, now: str | int) -> bool:
        """Release an evicted workload whose job has stopped (rules/04 §9). Returns whether it held quota."""
        self.advance(now)
        workload = self.owned(f"{namespace}/{name}")
        if not (conditions.is_true(workload, "Evicted") and conditions.has_reservation(workload)):
            return False
        eviction.release(workload, self.now, self.settings)
        self.write(workload)
        self.deliver()
        return True

    def fork(self) -> World:
        """Return an independent copy."""
        return copy.deepcopy(self)

    def pending(self, cluster_queue: str) -> list[tuple[str, str]]:
        """Return the keys of pending workloads in queue order, each marked active or inadmissible (rules/09 §9)."""
        queue = self.queues[cluster_queue]
        infos = sorted(queue.waiting().values(), key=queue.order)
        return [(info.key, "active" if info.key in queue.active else "inadmissible") for info in infos]

    def quota(self) -> list[dict[str, Any]]:
        """Return quota and usage of every node, flavor and resource, as integers; 2^63-1 is unlimited (rules/02 §2)."""
        usage, rows = self.cache.used, []
        for kind, nodes in (("ClusterQueue", self.cache.forest.cluster_queues), ("Cohort", self.cache.forest.cohorts)):
            for name, node in sorted(nodes.items()):
                for fr in sorted({*node.subtree, *usage.of(node)}):
                    row: Json = {"kind": kind, "name": name, "flavor": fr[0], "resource": fr[1]}
                    row |= {"nominal": node.quota(fr).nominal, "usage": usage.at(node, fr)}
                    rows.append(row | ({} if node.has_cycle else {"available": usage.raw_available(node, fr)}))
        return rows
