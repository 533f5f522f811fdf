"""Those who watch objects, and keep the cache and the queues up to date (rules/05 §2.1, §3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from kueuecore.reference import activeness, conditions, defaults, times, variants
from kueuecore.reference.forest import CycleError
from kueuecore.reference.objects import CLUSTER_SCOPED, key, local_queue_key
from kueuecore.reference.pending import PendingQueue
from kueuecore.reference.selectors import matches_labels
from kueuecore.reference.settings import Json
from kueuecore.reference.state import State
from kueuecore.reference.totals import base_priority, boost

__all__ = ["Watchers"]


class Watchers(State):
    """Takes objects in, and hears of changes of Workloads."""

    def apply(
        self, objects: Iterable[Mapping[str, Any]], *, now: str | int | None = None, trusted: bool = False
    ) -> None:
        """Create or change objects."""
        self.advance(now)
        for manifest in objects:
            given = conditions.copied(dict(manifest))
            self._put(given if trusted else defaults.filled_in(given))
        self.deliver()

    def _put(self, manifest: Json) -> None:
        kind, spec = manifest["kind"], manifest.get("spec")
        name = manifest["metadata"]["name"] if kind in CLUSTER_SCOPED else key(manifest)
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
                    self.notify(n.name for n in queues if n.spec is not None and name in n.spec.flavors and old)
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
                self.notify(
                    q
                    for q, s in selectors.items()
                    if matches_labels(s, labels[1]) and (old is None or not matches_labels(s, labels[0]))
                )
        self.notify(queue for queue in self.queues if queue not in active and self.cache.is_active(queue))

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
            self.notify([name])
        before = (old or {}).get("spec") or {}
        parts = ("stopPolicy", "admissionChecksStrategy")
        if is_new or any(before.get(part) != spec.get(part) for part in parts):
            for local_queue, each in self.kind("LocalQueue").items():
                if each["spec"].get("clusterQueue") == name:
                    self.mark_dirty(local_queue)

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
            self.mark_dirty(name)

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

    def delete(self, kind: str, name: str, *, namespace: str = "", now: str | int | None = None) -> bool:
        """Delete an object. Says whether it was there."""
        self.advance(now)
        old = self.kind(kind).pop(name if kind in CLUSTER_SCOPED else f"{namespace}/{name}", None)
        if old is None:
            return False
        match kind:
            case "Workload":
                self.changes.append((old, None))
            case "LocalQueue":
                self._drop_local_queue(key(old))
                self.mark_dirty(key(old))
                self.ledger.accounts.pop(key(old), None)
            case "ClusterQueue":
                self.cache.delete_cluster_queue(name)
                del self.queues[name]
                for local_queue in [lq for lq, target in self.local_queues.items() if target == name]:
                    self.mark_dirty(local_queue)
            case "Cohort":
                self.cache.forest.delete_cohort(name)
            case "ResourceFlavor":
                self.cache.flavors.pop(name)
            case "AdmissionCheck":
                self.cache.checks.pop(name)
        self.deliver()
        return True

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
                if conditions.has_reservation(new):
                    # Nobody creates it so: it was there before, and its LocalQueue was asked for all that it has.
                    self.assigned[key(new)] = local_queue_key(new)
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
            requeue_at = (new["status"].get("requeueState") or {}).get("requeueAt")
            is_due = requeue_at is None or times.moment(requeue_at) <= self.now
            if is_due and not conditions.is_on_hold(new):
                self._queue(new)
            self._notify_associated(name)
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
            if points_at == target and self.is_usage_based(target):
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

    def _notify_associated(self, name: str) -> None:
        queue = self.local_queues.get(self.assigned.get(name, ""), "")
        self.notify([queue] if queue in self.queues else [])
