"""The world that the scheduler works in: objects, those who watch them, and cycles (rules/05 §2.1, §3.1)."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from kueuecore.reference import activeness, admission_fair_sharing, conditions, defaults, eviction, times, variants
from kueuecore.reference.admission_fair_sharing import Ledger
from kueuecore.reference.cache import Cache, Snapshot
from kueuecore.reference.cycle import Cycle
from kueuecore.reference.decision import Decision, Event
from kueuecore.reference.forest import CycleError
from kueuecore.reference.objects import key, local_queue_key, weight_of
from kueuecore.reference.pending import PendingQueue, RequeueReason
from kueuecore.reference.pods import adjusted
from kueuecore.reference.reconcile import reconcile
from kueuecore.reference.selectors import matches_labels
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.totals import Info, base_priority, boost

__all__ = ["World"]

_CLUSTER_SCOPED = ("AdmissionCheck", "ClusterQueue", "Cohort", "Namespace", "ResourceFlavor", "RuntimeClass")


class World:
    """Objects in, cycles, decisions out: what `kueuecore.Engine` does, in the dull way.

    Args:
        objects: Manifests, in the order in which they come. They have to be valid: nothing is checked.
        configuration: Kueue's Configuration as a dict.
        now: The time, as RFC 3339 or in nanoseconds since 1970.
        trusted: Take manifests as they are, instead of filling in what the API server would.
    """

    def __init__(
        self,
        objects: Iterable[Mapping[str, Any]] = (),
        *,
        configuration: Mapping[str, Any] | None = None,
        now: str | int,
        trusted: bool = False,
    ) -> None:
        self.settings = Settings.read(configuration)
        self.now = times.moment(now) if isinstance(now, str) else now
        self.api: dict[str, dict[str, Json]] = {}
        self.cache = Cache(self.settings)
        self.queues: dict[str, PendingQueue] = {}
        self.local_queues: dict[str, str] = {}
        self.assigned: dict[str, str] = {}
        self.notified: set[str] = set()
        self.expected: set[str] = set()
        self.ledger = Ledger(self.settings)
        self.n_cycles = 0
        self.changes: list[tuple[Json | None, Json | None]] = []
        self.dirty: set[str] = set()
        self.events: list[Event] = []
        self.apply(objects, trusted=trusted)

    # What others ask for.

    def kind(self, kind: str) -> dict[str, Json]:
        """All objects of a kind, by key (by name, if they have no namespace)."""
        return self.api.setdefault(kind, {})

    @property
    def namespaces(self) -> dict[str, Json]:
        """All Namespaces."""
        return self.kind("Namespace")

    def limit_ranges(self, workload: Json) -> list[Json]:
        """The LimitRanges that a Workload is subject to."""
        namespace = workload["metadata"].get("namespace", "")
        ranges = sorted(self.kind("LimitRange").items())
        return [r for _, r in ranges if r["metadata"].get("namespace", "") == namespace]

    def owned(self, workload_key: str) -> Json:
        """A Workload as it is now, to be changed and written."""
        return conditions.own(self.kind("Workload")[workload_key])

    def write(self, workload: Json) -> None:
        """Write a Workload; those who watch hear of it later."""
        old = self.kind("Workload").get(key(workload))
        self.kind("Workload")[key(workload)] = workload
        self.changes.append((old, workload))

    def snapshot(self) -> Snapshot:
        """What a cycle looks at."""
        return self.cache.snapshot(self.now, {name: self.used(name) for name in self.kind("LocalQueue")})

    # Objects.

    def apply(
        self, objects: Iterable[Mapping[str, Any]], *, now: str | int | None = None, trusted: bool = False
    ) -> None:
        """Create or change objects."""
        self._at(now)
        for manifest in objects:
            given = copy.deepcopy(dict(manifest))
            self._put(given if trusted else defaults.filled_in(given))
        self.deliver()

    def _at(self, now: str | int | None) -> None:
        if now is not None:
            self.now = times.moment(now) if isinstance(now, str) else now

    def _put(self, manifest: Json) -> None:
        kind, spec = manifest["kind"], manifest.get("spec")
        name = manifest["metadata"]["name"] if kind in _CLUSTER_SCOPED else key(manifest)
        if kind == "Workload":
            self.write(manifest)
            return
        old = self.kind(kind).get(name)
        active = {queue for queue in self.queues if self.cache.is_active(queue)}
        self.kind(kind)[name] = manifest
        is_changed = old is None or (old.get("spec") or {}) != (spec or {})
        match kind:
            case "ResourceFlavor":
                self.cache.flavors[name] = manifest
                if is_changed:
                    queues = self.cache.forest.cluster_queues.values()
                    self._notify(n.name for n in queues if n.spec is not None and name in n.spec.flavors and old)
            case "AdmissionCheck":
                self.cache.checks[name] = activeness.check_facts(manifest)
            case "Cohort" if is_changed:
                with suppress(CycleError):
                    self.cache.forest.set_cohort(manifest)
                    self.notified.add(f"/{self.cache.forest.cohorts[name].root.name}")
            case "ClusterQueue":
                self._put_cluster_queue(name, manifest, old, is_changed)
            case "LocalQueue":
                self._put_local_queue(name, manifest, old)
            case "Namespace":
                labels = [(o or {"metadata": {}})["metadata"].get("labels") or {} for o in (old, manifest)]
                selectors = {queue: self.queues[queue].namespace_selector for queue in self.queues}
                self._notify(
                    q
                    for q, s in selectors.items()
                    if matches_labels(s, labels[1]) and (old is None or not matches_labels(s, labels[0]))
                )
        self._notify(queue for queue in self.queues if queue not in active and self.cache.is_active(queue))

    def _put_cluster_queue(self, name: str, manifest: Json, old: Json | None, is_changed: bool) -> None:
        is_new = name not in self.queues
        with suppress(CycleError):
            self.cache.set_cluster_queue(manifest, self.kind("Workload").values())
        spec = manifest.get("spec") or {}
        if is_new:
            mode = (spec.get("admissionScope") or {}).get("admissionMode")
            is_usage_based = self.settings.admission_fair_sharing and mode == "UsageBasedAdmissionFairSharing"
            self.queues[name] = PendingQueue(self.settings, self.used if is_usage_based else None)
        queue = self.queues[name]
        queue.strategy, queue.namespace_selector = spec.get("queueingStrategy", ""), spec.get("namespaceSelector")
        if is_new:
            for local_queue in [lq for lq, of in self.local_queues.items() if of == name]:
                self._queue_all(local_queue)
        if is_changed:
            self._notify([name])
        before = (old or {}).get("spec") or {}
        parts = ("stopPolicy", "admissionChecksStrategy")
        if is_new or any(before.get(part) != spec.get(part) for part in parts):
            for local_queue, each in self.kind("LocalQueue").items():
                if each["spec"].get("clusterQueue") == name:
                    self._mark_dirty(local_queue)

    def _mark_dirty(self, local_queue: str) -> None:
        self.dirty |= {name for name, w in self.kind("Workload").items() if local_queue_key(w) == local_queue}

    def _put_local_queue(self, name: str, manifest: Json, old: Json | None) -> None:
        stops = [((m or {}).get("spec") or {}).get("stopPolicy") or "None" for m in (old, manifest)]
        target = manifest["spec"].get("clusterQueue", "")
        if stops[1] != "None":
            self._drop_local_queue(name)
        elif self.local_queues.get(name) != target:
            self._drop_local_queue(name)
            self.local_queues[name] = target
            self._queue_all(name)
        if old is None or stops[0] != stops[1]:
            self._mark_dirty(name)

    def _drop_local_queue(self, name: str) -> None:
        queue = self.queues.get(self.local_queues.pop(name, ""))
        if queue is not None:
            for info in [*queue.active.values(), *queue.inadmissible.values()]:
                if info.local_queue == name:
                    queue.delete(info.key)

    def _queue_all(self, local_queue: str) -> None:
        """A LocalQueue or its ClusterQueue appears: queue what it holds (rules/05 §2.1)."""
        queue = self.queues.get(self.local_queues[local_queue])
        for name, workload in self.kind("Workload").items():
            if local_queue_key(workload) == local_queue:
                self.assigned[name] = local_queue
                is_parent = self.settings.on("ConcurrentAdmission") and variants.is_parent(workload)
                if queue is not None and conditions.is_admissible(workload, self.settings) and not is_parent:
                    queue.push_if_absent(self.info(workload))

    def info(self, workload: Json) -> Info:
        """A Workload as the queues see it: with what the namespace fills in (rules/01 §7.3)."""
        limits = self.limit_ranges(workload)
        full = adjusted(workload, limit_ranges=limits, runtime_classes=self.kind("RuntimeClass"))
        return Info.read(full, self.settings)

    def delete(self, kind: str, name: str, *, namespace: str = "", now: str | int | None = None) -> bool:
        """Delete an object. Says whether it was there."""
        self._at(now)
        old = self.kind(kind).pop(name if kind in _CLUSTER_SCOPED else f"{namespace}/{name}", None)
        if old is None:
            return False
        match kind:
            case "Workload":
                self.changes.append((old, None))
            case "LocalQueue":
                self._drop_local_queue(key(old))
                self._mark_dirty(key(old))
                self.ledger.accounts.pop(key(old), None)
            case "ClusterQueue":
                self.cache.delete_cluster_queue(name)
                del self.queues[name]
            case "Cohort":
                self.cache.forest.delete_cohort(name)
            case "ResourceFlavor":
                self.cache.flavors.pop(name)
            case "AdmissionCheck":
                self.cache.checks.pop(name)
        self.deliver()
        return True

    # Those who watch workloads (rules/05 §2.1, §3.1).

    def deliver(self) -> set[str]:
        """Tell those who watch of all changes. Returns the keys."""
        changes, self.changes = self.changes, []
        changes.sort(key=lambda change: key(change[1] or change[0] or {}))
        for old, new in changes:
            self._on_change(old, new)
        keys = {key(new) for _, new in changes if new is not None}
        self.dirty |= keys
        return keys

    def _on_change(self, old: Json | None, new: Json | None) -> None:
        if new is None:
            assert old is not None, "something changed"
            self.expected.discard(key(old))
            self.cache.delete_workload(key(old))
            self._notify_associated(key(old))
            self._unqueue(key(old))
            self.assigned.pop(key(old), None)
            self.ledger.forgive(local_queue_key(old), key(old))
        elif old is None:
            if conditions.is_admissible(new, self.settings):
                self._queue(new)
            else:
                self._hold(new)
        else:
            self._on_update(old, new)
            self._on_update_penalties(old, new)

    def _on_update(self, old: Json, new: Json) -> None:
        name, stage, previous = key(new), conditions.stage(new), conditions.stage(old)
        if stage == "Finished" or not conditions.is_active(new):
            self._unqueue(name)
            self.cache.delete_workload(name)
            self._notify_associated(name)
        elif previous == stage == "Pending":
            if conditions.is_on_hold(new):
                self._unqueue(name)
            else:
                self._queue(new)
        elif previous == "Pending":
            self._unqueue(name)
            self._hold(new)
        elif stage == "Pending":
            self.cache.delete_workload(name)
            self._notify_associated(name)
            requeue_at = (new["status"].get("requeueState") or {}).get("requeueAt")
            is_due = requeue_at is None or times.moment(requeue_at) <= self.now
            if is_due and not conditions.is_on_hold(new):
                self._queue(new)
        else:
            self._hold(new)
            reclaimed = [(w.get("status") or {}).get("reclaimablePods") or [] for w in (old, new)]
            counts = [[p.get("count", 0) for p in w["spec"].get("podSets") or ()] for w in (old, new)]
            is_scaled_down = any(a > b for a, b in zip(*counts, strict=False)) and not any(
                a < b for a, b in zip(*counts, strict=False)
            )
            if (
                (previous == stage == "Admitted" and reclaimed[0] != reclaimed[1])
                or (is_scaled_down and self.settings.on("ElasticJobsViaWorkloadSlices"))
                or self._has_new_priority(old, new)
            ):
                self._notify_associated(name)

    def _has_new_priority(self, old: Json, new: Json) -> bool:
        """Did a workload get another class, or its class another value? (rules/05 §3.1)."""
        refs = [w["spec"].get("priorityClassRef") or {} for w in (old, new)]
        if refs[0].get("kind") == "PriorityClass" or refs[1].get("kind") != "WorkloadPriorityClass":
            return False
        if refs[1].get("name") and refs[0].get("name") != refs[1]["name"]:
            return True
        return base_priority(old) + boost(old, self.settings) != base_priority(new) + boost(new, self.settings)

    def _on_update_penalties(self, old: Json, new: Json) -> None:
        """Penalties of LocalQueues are settled or dropped (rules/09 §1.3)."""
        name, lq = key(new), local_queue_key(new)
        is_active, stage, previous = conditions.is_active(new), conditions.stage(new), conditions.stage(old)
        if is_active and stage == "Admitted" != previous:
            target = new["status"]["admission"]["clusterQueue"]
            points_at = (self.kind("LocalQueue").get(lq) or {"spec": {}})["spec"].get("clusterQueue")
            if points_at == target and self._is_usage_based(target):
                self.ledger.settle(lq, name, self.admitted_in(lq), self.now)
        if local_queue_key(old) != lq:
            self.ledger.forgive(local_queue_key(old), name)
        is_given_up = not is_active and not conditions.has_reservation(new)
        was_wanted = conditions.is_active(old) or conditions.has_reservation(old)
        if (is_given_up and was_wanted) or (stage == "Finished" != previous):
            self.ledger.forgive(lq, name)

    def _hold(self, workload: Json) -> None:
        """Note what a workload holds, unless others hold it for it (rules/09 §4.2)."""
        target = ((workload.get("status") or {}).get("admission") or {}).get("clusterQueue", "")
        if not self._is_parent_in(target, workload):
            self.cache.set_workload(workload)

    def _is_parent_in(self, cluster_queue: str, workload: Json) -> bool:
        node = self.cache.forest.cluster_queues.get(cluster_queue)
        has_policy = node is not None and node.spec is not None and node.spec.migration is not None
        return self.settings.on("ConcurrentAdmission") and has_policy and not variants.is_variant(workload)

    def _queue(self, workload: Json) -> None:
        """Queue a workload, or what is new of it (rules/05 §2.1)."""
        name, lq = key(workload), local_queue_key(workload)
        cluster_queue = self.local_queues.get(lq, "")
        if not conditions.is_admissible(workload, self.settings) or self._is_parent_in(cluster_queue, workload):
            return
        if self.assigned.get(name, lq) != lq:
            self._unqueue(name)
        if lq not in self.local_queues:
            return
        self.assigned[name] = lq
        queue = self.queues.get(cluster_queue)
        if queue is None or (self.settings.on("ConcurrentAdmission") and variants.is_parent(workload)):
            return
        info, tracked = self.info(workload), queue.find(name)
        progress = None if tracked is None else tracked.progress
        keeps = self.settings.on("FlavorFungibilityPreserveScanProgress")
        if keeps and progress is not None and progress.matches(info.shape):
            info.progress = progress
        queue.push(info, self.now)
        self.expected.discard(name)

    def _unqueue(self, name: str) -> None:
        queue = self.queues.get(self.local_queues.get(self.assigned.get(name, ""), ""))
        if queue is not None:
            queue.delete(name)

    def requeue(self, info: Info, reason: RequeueReason, quota_reserved_reason: str) -> None:
        """Put a head back, as it is now (rules/05 §3)."""
        workload = self.kind("Workload").get(info.key)
        queue = None if workload is None else self.queues.get(self.local_queues.get(local_queue_key(workload), ""))
        if workload is None or queue is None or not conditions.is_admissible(workload, self.settings):
            return
        self.assigned[info.key] = local_queue_key(workload)
        queue.requeue(info.renewed(self.info(workload)), reason, quota_reserved_reason, self.now)

    def _notify_associated(self, name: str) -> None:
        queue = self.local_queues.get(self.assigned.get(name, ""), "")
        self._notify([queue] if queue in self.queues else [])

    def _notify(self, cluster_queues: Iterable[str]) -> None:
        """Ask to try again all that wait in whole trees (rules/05 §3.1)."""
        for name in cluster_queues:
            node = self.cache.forest.cluster_queues[name]
            if node.parent is None:
                self.notified.add(name)
            elif not node.has_cycle:
                self.notified.add(f"/{node.root.name}")

    def flush(self) -> int:
        """Try again what was asked for. Returns how many workloads went back to their heaps (rules/05 §3.1)."""
        notified, self.notified = self.notified, set()
        moved = 0
        for name, queue in self.queues.items():
            node = self.cache.forest.cluster_queues[name]
            is_asked = name if node.parent is None else f"/{node.root.name}"
            if is_asked in notified and not node.has_cycle:
                moved += queue.flush(self.namespaces, self.now)
        return moved

    # Admission fair sharing (rules/09 §1).

    def used(self, local_queue: str) -> float:
        """What a LocalQueue has used; an unknown one weighs 1 (rules/09 §1.1)."""
        manifest = self.kind("LocalQueue").get(local_queue)
        return self.ledger.usage(local_queue, 1.0 if manifest is None else weight_of(manifest["spec"]))

    def _is_usage_based(self, cluster_queue: str) -> bool:
        node = self.cache.forest.cluster_queues.get(cluster_queue)
        mode = node.spec.admission_mode if node is not None and node.spec is not None else ""
        return self.settings.admission_fair_sharing is not None and mode == "UsageBasedAdmissionFairSharing"

    def admitted_in(self, local_queue: str) -> admission_fair_sharing.Resources:
        """What the admitted workloads of a LocalQueue use."""
        infos = (info for each in self.cache.workloads.values() for info in each.values())
        used = (i.usage for i in infos if i.local_queue == local_queue and conditions.is_admitted(i.workload))
        return admission_fair_sharing.in_units((fr[1], v) for usage in used for fr, v in usage.items())

    def penalize(self, info: Info) -> None:
        """Charge a workload that gets quota (rules/09 §1.3)."""
        if self._is_usage_based(info.cluster_queue):
            spec = self.cache.forest.cluster_queues[info.cluster_queue].spec
            requests = [(name, v) for total in info.totals for name, v in total.requests.items()]
            if self.settings.ignores_undeclared and spec is not None:
                requests = [(name, v) for name, v in requests if spec.group_of(name) is not None]
            charged = admission_fair_sharing.in_units(requests)
            self.ledger.penalize(info.local_queue, info.key, charged, self.now)

    def forgive(self, info: Info) -> None:
        """Take a charge back (rules/09 §1.3)."""
        self.ledger.forgive(info.local_queue, info.key)

    # Scheduling.

    @property
    def has_heads(self) -> bool:
        """Would a cycle have a head?"""
        return any(queue.active for name, queue in self.queues.items() if self.cache.is_active(name))

    def cycle(self, now: str | int) -> Decision:
        """Run one cycle, after what was asked to be tried again (rules/05 §6)."""
        self._at(now)
        self.deliver()
        self.flush()
        decision = Cycle(self).run()
        self.deliver()
        return decision

    def reconcile(self, now: str | int) -> list[Event]:
        """Write what the workload controller writes between cycles, until nothing changes (rules/07 §12)."""
        self._at(now)
        self.events = []
        self.deliver()
        while self.dirty:
            names, self.dirty = sorted(self.dirty), set()
            for name in names:
                self.reconcile_one(name)
            self.deliver()
        return self.events

    def reconcile_one(self, name: str) -> None:
        """One pass over one workload (rules/07 §12)."""
        if name in self.kind("Workload"):
            reconcile(self, name)

    def finish(
        self,
        name: str,
        *,
        namespace: str,
        now: str | int,
        reason: str = "Succeeded",
        message: str = "Job finished successfully",
    ) -> bool:
        """The job of a workload has ended. Says whether it had not before."""
        self._at(now)
        workload = self.owned(f"{namespace}/{name}")
        if conditions.is_finished(workload):
            return False
        conditions.put(workload, "Finished", True, reason, message, self.now)
        self.write(workload)
        self.deliver()
        return True

    def evict(
        self,
        name: str,
        *,
        namespace: str,
        now: str | int,
        reason: str = "Preempted",
        message: str = "",
        stopped: bool = True,
    ) -> bool:
        """Tell a workload to stop, and take it for stopped. Says whether it had not been told before."""
        self._at(now)
        workload = self.owned(f"{namespace}/{name}")
        is_new = not conditions.is_evicted(workload)
        if is_new:
            eviction.evict(workload, reason, message, self.now)
            self.write(workload)
            self.deliver()
        if stopped:
            self.release(name, namespace=namespace, now=now)
        return is_new

    def release(self, name: str, *, namespace: str, now: str | int) -> bool:
        """The job of an evicted workload has stopped (rules/04 §9). Says whether it held quota."""
        self._at(now)
        workload = self.owned(f"{namespace}/{name}")
        if not (conditions.is_evicted(workload) and conditions.has_reservation(workload)):
            return False
        eviction.release(workload, self.now, self.settings)
        self.write(workload)
        self.deliver()
        return True

    def fork(self) -> World:
        """A copy that shares nothing that changes."""
        return copy.deepcopy(self)

    # What it holds.

    def status(self, name: str, *, namespace: str) -> Json:
        """Status of a Workload."""
        return dict(self.kind("Workload")[f"{namespace}/{name}"].get("status") or {})

    def pending(self, cluster_queue: str) -> list[tuple[str, str]]:
        """Keys of the pending workloads in queue order, each with its place: active or inadmissible (rules/09 §9)."""
        queue = self.queues[cluster_queue]
        places = {name: place for place in ("active", "inadmissible") for name in getattr(queue, place)}
        both = [*queue.active.values(), *queue.inadmissible.values()]
        return [(name, places[name]) for name in queue.in_order(both)]

    def admissions(self) -> dict[str, Json]:
        """Who holds quota of active ClusterQueues, with the admissions."""
        return {
            info.key: info.workload["status"]["admission"]
            for name, infos in self.cache.workloads.items()
            if self.cache.is_active(name)
            for info in infos.values()
        }

    def quota(self) -> list[dict[str, Any]]:
        """Quota and usage of every node, flavor and resource, as integers; 2^63-1 is without limit (rules/02 §2)."""
        usage, rows = self.cache.used, []
        for kind, nodes in (("ClusterQueue", self.cache.forest.cluster_queues), ("Cohort", self.cache.forest.cohorts)):
            for name, node in sorted(nodes.items()):
                rows += [
                    {
                        "kind": kind,
                        "name": name,
                        "flavor": fr[0],
                        "resource": fr[1],
                        "nominal": node.quota(fr).nominal,
                        "subtreeQuota": node.subtree.get(fr, 0),
                        "usage": usage.at(node, fr),
                        "available": None if node.has_cycle else usage.raw_available(node, fr),
                        "potentialAvailable": None if node.has_cycle else node.potential.get(fr, 0),
                    }
                    for fr in sorted({*node.subtree, *usage.of(node)})
                ]
        return rows
