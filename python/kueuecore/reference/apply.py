"""The event handlers that keep the cache and the queues up to date (rules/05 §2.1, §3.1)."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore.reference import conditions, times, variants
from kueuecore.reference.objects import (
    CLUSTER_SCOPED,
    ClusterQueue,
    complete,
    key,
    local_queue_key,
    with_effective_quotas,
)
from kueuecore.reference.pending import PendingQueue
from kueuecore.reference.pods import constraints, has_constraints
from kueuecore.reference.selectors import matches_labels
from kueuecore.reference.settings import Json
from kueuecore.reference.state import State, total_requests
from kueuecore.reference.topology import watch
from kueuecore.reference.totals import priority


class Watchers(State):
    """Applies objects, and handles changes of Workloads."""

    def apply(self, objects: Iterable[Json], *, now: str | int | None = None, trusted: bool = False) -> None:
        """Create or change objects."""
        self.advance(now)
        for manifest in (with_effective_quotas(object_, self.settings) for object_ in objects):
            completed = complete(conditions.copied(manifest), defaults=not trusted)
            if not trusted:
                completed["metadata"].setdefault("creationTimestamp", times.text(self.now))
            self._put(completed)
        self.deliver()

    def _put(self, manifest: Json) -> None:
        kind, spec = manifest["kind"], manifest["spec"]
        name = manifest["metadata"]["name"] if kind in CLUSTER_SCOPED else key(manifest)
        if kind == "Workload":
            return self.write(manifest)
        active = {queue for queue in self.queues if self.cache.is_active(queue)}
        old, self.kind(kind)[name] = self.kind(kind).get(name), manifest
        before: Json = {} if old is None else old["spec"]
        is_changed = old is None or before != spec
        match kind:
            case "ResourceFlavor" if is_changed and old is not None and self.settings.has("FlavorEditsRetryWorkloads"):
                queues = self.cache.forest.cluster_queues.values()
                self.notify(node.name for node in queues if node.spec is not None and name in node.spec.flavors)
            case "Cohort" if is_changed:
                if self.cache.forest.set_cohort(manifest):
                    self.note_retry(f"/{self.cache.forest.cohorts[name].root.name}")
            case "ClusterQueue":
                self._put_cluster_queue(manifest, before, is_changed)
            case "LocalQueue":
                self._put_local_queue(name, spec, None if old is None else before)
            case "WorkloadPriorityClass" if old is None or old["value"] != manifest["value"]:
                self._put_priority(name, manifest["value"])
            case "LimitRange" if is_changed:
                self._adjust_pending(manifest["metadata"]["namespace"])
                of_old = None if old is None else constraints(old)
                if constraints(manifest) != of_old if old is not None else has_constraints(manifest):
                    self._retry_pending_in(manifest["metadata"]["namespace"])
            case "Namespace":
                for queue, selector in [(name, each.namespace_selector) for name, each in self.queues.items()]:
                    was = old is not None and matches_labels(selector, old["metadata"]["labels"])
                    if not was and matches_labels(selector, manifest["metadata"]["labels"]):
                        self.notify([queue])
        if kind == "Cohort":
            # Whoever waits says so when its ClusterQueue comes below a cycle (rules/02 §5).
            turned = {queue for queue in self.queues if (queue in active) != self.cache.is_active(queue)}
            for local_queue, of in self.local_queues.items():
                if of in turned:
                    self.mark_dirty(local_queue)
        watch.changed(self, kind, old, manifest)
        return self.notify(queue for queue in self.queues if queue not in active and self.cache.is_active(queue))

    def _adjust_pending(self, namespace: str) -> None:
        """Recompute what the workloads of a namespace without quota request (rules/01 §7.3)."""
        for workload in list(self.kind("Workload").values()):
            is_here = workload["metadata"]["namespace"] == namespace
            if is_here and conditions.stage(workload) == "Pending" and not conditions.is_on_hold(workload):
                self._queue(workload)

    def _retry_pending_in(self, namespace: str) -> None:
        """Retry what waits in the queues of a namespace whose constraints have changed (rules/05 §3.1)."""
        if not self.settings.has("LimitRangeEditsRetryWorkloads"):
            return
        own = [w for w in self.kind("Workload").values() if w["metadata"]["namespace"] == namespace]
        pending = [local_queue_key(w) for w in own if conditions.stage(w) == "Pending"]
        targets = {self.local_queues.get(name, "") for name in pending}
        self.notify(name for name in sorted(targets) if name in self.queues)

    def _put_priority(self, name: str, value: int) -> None:
        """Give the Workloads that name a class its priority, even those that have finished (rules/11 §5)."""
        for workload in list(self.kind("Workload").values()):
            named, spec = workload["spec"].get("priorityClassRef") or {}, workload["spec"]
            is_of_class = (named.get("kind"), named.get("name")) == ("WorkloadPriorityClass", name)
            # Their manager has resolved the priority of those that MultiKueue created.
            is_remote = "kueue.x-k8s.io/multikueue-origin" in workload["metadata"]["labels"]
            if is_remote and self.settings.has("RemotePrioritiesStay"):
                continue
            if is_of_class and spec.get("priority") != value:
                generation = workload["metadata"]["generation"] + 1
                metadata = {**workload["metadata"], "generation": generation}
                self.write({**workload, "metadata": metadata, "spec": {**spec, "priority": value}})

    def _put_cluster_queue(self, manifest: Json, before: Json, is_changed: bool) -> None:
        spec = ClusterQueue(manifest)
        name, is_new = spec.name, spec.name not in self.queues
        self.cache.set_cluster_queue(manifest, self.kind("Workload").values())
        if is_new:
            is_usage_based = self.settings.has_admission_fair_sharing and spec.is_usage_based
            self.queues[name] = PendingQueue(self.settings, self.used if is_usage_based else None)
        self.queues[name].strategy, self.queues[name].namespace_selector = spec.strategy, spec.namespace_selector
        if is_new:
            for local_queue in [lq for lq, of in self.local_queues.items() if of == name]:
                self._queue_all(local_queue)
        if is_changed:
            self.notify([name])
        parts = ("stopPolicy", "admissionChecksStrategy")
        if is_new or any(before.get(part) != manifest["spec"].get(part) for part in parts):
            for local_queue, each in self.kind("LocalQueue").items():
                if each["spec"].get("clusterQueue") == name:
                    self.mark_dirty(local_queue)

    def _put_local_queue(self, name: str, spec: Json, before: Json | None) -> None:
        stop, target = spec.get("stopPolicy") or "None", spec.get("clusterQueue", "")
        if stop != "None":
            self._drop_local_queue(name)
        elif self.local_queues.get(name) != target:
            self._leave_cluster_queue(name)
            self.local_queues[name] = target
            self._queue_all(name)
        if before is None or (before.get("stopPolicy") or "None") != stop:
            self.mark_dirty(name)

    def _drop_local_queue(self, name: str) -> None:
        """Forget a LocalQueue and what waits in it (rules/05 §2.1)."""
        self._leave_cluster_queue(name)
        self.local_queues.pop(name, None)
        self.kept_progress.pop(name, None)

    def _leave_cluster_queue(self, name: str) -> None:
        """Take the workloads of a LocalQueue out of its ClusterQueue, but keep the progress of their flavor scans."""
        queue = self.queues.get(self.local_queues.get(name, ""))
        if queue is None:
            return
        own = {other: info.progress for other, info in queue.waiting().items() if self.assigned.get(other) == name}
        self.kept_progress[name] = {name: progress for name, progress in own.items() if progress is not None}
        for waiting in [*queue.waiting(), queue.inflight]:
            if waiting is not None and self.assigned.get(waiting) == name:
                queue.delete(waiting)

    def _queue_all(self, local_queue: str) -> None:
        """Queue the workloads of a LocalQueue that has appeared, or whose ClusterQueue has (rules/05 §2.1)."""
        queue = self.queues.get(self.local_queues[local_queue])
        progress = {} if queue is None else self.kept_progress.pop(local_queue, {})
        for name, workload in self.kind("Workload").items():
            if local_queue_key(workload) == local_queue:
                self.assigned[name] = local_queue
                is_parent = self._is_parent(workload) or self._is_parent_in(self.local_queues[local_queue], workload)
                may_wait = conditions.is_admissible(workload, self.settings) and not is_parent
                if queue is not None and may_wait:
                    info = self.info(workload)
                    info.progress = progress.get(name)
                    queue.push_if_absent(info)

    def delete(self, kind: str, name: str, *, namespace: str = "", now: str | int | None = None) -> bool:
        """Delete an object. Returns whether it existed."""
        self.advance(now)
        name = name if kind in CLUSTER_SCOPED else f"{namespace}/{name}"
        old = self.kind(kind).pop(name, None)
        if old is None:
            return False
        match kind:
            case "Workload":
                self.changes.append((old, None))
            case "LocalQueue":
                self._drop_local_queue(name)
                self.mark_dirty(name)
                self.ledger.accounts.pop(name, None)
            case "ClusterQueue":
                self.cache.delete_cluster_queue(name)
                for local_queue in [lq for lq, target in self.local_queues.items() if target == name]:
                    self._leave_cluster_queue(local_queue)
                    self.mark_dirty(local_queue)
                del self.queues[name]
            case "Cohort":
                self.cache.forest.delete_cohort(name)
            case "LimitRange":
                self._adjust_pending(namespace)
                if has_constraints(old):
                    self._retry_pending_in(namespace)
        watch.changed(self, kind, old, None)
        self.deliver()
        return True

    def deliver(self) -> None:
        """Report all Workload changes to the watchers."""
        changes, self.changes = self.changes, []
        for old, new in sorted(changes, key=lambda change: key(change[1] or change[0] or {})):
            if new is None:
                assert old is not None, "something changed"
                self._on_delete(old)
            elif old is None:
                self._on_create(new)
            else:
                self._on_update(old, new)
                self._on_update_penalties(old, new)
        self.dirty |= {key(new) for _, new in changes if new is not None}

    def _on_delete(self, old: Json) -> None:
        self.expected.discard(key(old))
        self.cache.delete_workload(key(old))
        self._notify_associated(key(old))
        self._unqueue(key(old))
        self.assigned.pop(key(old), None)
        self.ledger.forgive(local_queue_key(old), key(old))

    def _on_create(self, new: Json) -> None:
        if conditions.is_admissible(new, self.settings):
            return self._queue(new)
        if conditions.has_reservation(new):
            # No workload is created like this: it existed before, and was queued when its LocalQueue appeared.
            self.assigned[key(new)] = local_queue_key(new)
        self._hold(new)
        self.second_passes.put(self._adjusted(new), 0, self.now)
        return None

    def _on_update(self, old: Json, new: Json) -> None:
        name, stage, previous = key(new), conditions.stage(new), conditions.stage(old)
        if stage == "Finished" or not conditions.is_active(new):
            self._unqueue(name)
            self.cache.delete_workload(name)
            self._notify_associated(name)
        elif previous == stage == "Pending" and conditions.is_on_hold(new):
            self._unqueue(name)
        elif previous == stage == "Pending":
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
            self.second_passes.forget(name)
            self._notify_associated(name)
        else:
            self._hold(new)
            if self._gives_room(old, new, runs=previous == stage == "Admitted"):
                self._notify_associated(name)
        self.second_passes.put(self._adjusted(new), 0, self.now)

    def _gives_room(self, old: Json, new: Json, *, runs: bool) -> bool:
        """Return whether a workload that holds quota needs less now, or has another priority (rules/05 §3.1)."""
        reclaimed = [w["status"].get("reclaimablePods") or [] for w in (old, new)]
        steps = [a["count"] - b["count"] for a, b in zip(old["spec"]["podSets"], new["spec"]["podSets"], strict=False)]
        is_smaller = max(steps, default=0) > 0 and min(steps) >= 0 and self.settings.on("ElasticJobsViaWorkloadSlices")
        refs = [w["spec"].get("priorityClassRef") or {} for w in (old, new)]
        is_other = refs[1].get("name", "") not in ("", refs[0].get("name"))
        has_new_priority = is_other or priority(old, self.settings) != priority(new, self.settings)
        has_class = refs[0].get("kind") != "PriorityClass" and refs[1].get("kind") == "WorkloadPriorityClass"
        return (runs and reclaimed[0] != reclaimed[1]) or is_smaller or (has_class and has_new_priority)

    def _on_update_penalties(self, old: Json, new: Json) -> None:
        """Settle or drop penalties of LocalQueues (rules/09 §1.3)."""
        name, lq = key(new), local_queue_key(new)
        is_active, stage, previous = conditions.is_active(new), conditions.stage(new), conditions.stage(old)
        # rules/09 §1.3: whoever waited for checks was not settled at first.
        is_settled = previous == "Pending" or self.settings.has("PenaltiesAreSettled")
        target = conditions.admission(new).get("clusterQueue", "")
        is_new = not self.counts_in(target, previous)
        if self.settings.on("AdmissionFairSharingAnchorAtQuotaReservation"):
            # rules/09 §1.3: one that was inactive when it got quota is settled once it is active.
            is_new |= self.ledger.has_penalty(lq, name)
        if is_active and self.counts_in(target, stage) and is_new and is_settled:
            local_queue = self.kind("LocalQueue").get(lq)
            if local_queue and local_queue["spec"].get("clusterQueue") == target and self.is_usage_based(target):
                own = total_requests(self.info(new))
                self.ledger.settle(lq, name, own, self.admitted_in(lq), self.now)
        if local_queue_key(old) != lq:
            self.ledger.forgive(local_queue_key(old), name)
        is_given_up = not is_active and not conditions.has_reservation(new)
        was_wanted = conditions.is_active(old) or conditions.has_reservation(old)
        if (is_given_up and was_wanted) or stage == "Finished" != previous:
            self.ledger.forgive(lq, name)

    def _hold(self, workload: Json) -> None:
        """Note what a workload holds, unless its variants hold it instead (rules/09 §4.2)."""
        if not self._is_parent_in(conditions.admission(workload).get("clusterQueue", ""), workload):
            self.hold(workload)

    def _is_parent(self, workload: Json) -> bool:
        return self.settings.on("ConcurrentAdmission") and variants.is_parent(workload)

    def _is_parent_in(self, cluster_queue: str, workload: Json) -> bool:
        node = self.cache.forest.cluster_queues.get(cluster_queue)
        has_policy = node is not None and node.spec is not None and node.spec.migration is not None
        return self.settings.on("ConcurrentAdmission") and has_policy and not variants.is_variant(workload)

    def _queue(self, workload: Json) -> None:
        """Queue a workload, or update it in its queue (rules/05 §2.1)."""
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
        if queue is None:
            self._forget_progress(name)
        if queue is None or self._is_parent(workload):
            return
        info, tracked = self.info(workload), queue.waiting().get(name)
        progress = None if tracked is None else tracked.progress
        keeps = self.settings.on("FlavorFungibilityPreserveScanProgress")
        if keeps and progress is not None and progress.matches(info.shape):
            info.progress = progress
        queue.push(info, self.now)
        self.expected.discard(name)

    def _unqueue(self, name: str) -> None:
        local_queue = self.assigned.get(name, "")
        queue = self.queues.get(self.local_queues.get(local_queue, ""))
        if queue is not None:
            queue.delete(name)
        if local_queue in self.local_queues:
            self.second_passes.forget(name)
        self._forget_progress(name)

    def _forget_progress(self, name: str) -> None:
        self.kept_progress.get(self.assigned.get(name, ""), {}).pop(name, None)

    def _notify_associated(self, name: str) -> None:
        queue = self.local_queues.get(self.assigned.get(name, ""), "")
        self.notify([queue] if queue in self.queues else [])
