"""The state of the world: objects, what the scheduler knows of them, and what waits (rules/05 §2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kueuecore.reference import conditions, experiments, quantity, times
from kueuecore.reference.admission_fair_sharing import Ledger, Resources
from kueuecore.reference.cache import MULTIKUEUE, Cache, Snapshot
from kueuecore.reference.decision import Event
from kueuecore.reference.objects import FlavorResource, key, local_queue_key, weight_of
from kueuecore.reference.pending import PendingQueue, RequeueReason
from kueuecore.reference.pods import adjusted
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.topology.cluster import Cluster
from kueuecore.reference.topology.second_pass import SecondPasses
from kueuecore.reference.totals import Info, Progress


def _has_none(namespace: str, node: str) -> bool:
    return False


def total_requests(info: Info) -> Resources:
    """Return what all pods of a workload request together, or hold (rules/09 §1.2)."""
    return quantity.total(*({n: quantity.exact(n, v) for n, v in total.requests.items()} for total in info.totals))


class State:
    """All that changes.

    Args:
        api: The objects, by kind and key, as an API server holds them.
        cache: What the scheduler knows.
        queues: Pending workloads, by ClusterQueue.
        local_queues: The LocalQueues that are not stopped, with their ClusterQueues.
        kept_progress: Where flavor scans resume, by LocalQueue without a ClusterQueue and Workload (rules/03 §6).
        assigned: The LocalQueue in which each workload was last queued.
        retry_delay: How long a retry waits for others.
        notified: ClusterQueues, and roots after a slash, to be tried again, and when (rules/05 §3.1).
        expected: Workloads asked to stop whose eviction no watch event has shown yet (rules/04 §8).
        changes: Workload changes not yet reported to the watchers.
        dirty: Workloads that the workload controller must reconcile.
        events: Events that the workload controller recorded.
        second_passes: Workloads waiting for a second pass (rules/08 §11.10).
        node_checks: When to check nodes again, by name (rules/08 §13.2).
        backoffs: Until when a ClusterQueue does not borrow something again (rules/13 §3).
        rung_at: When `ring` was called last.
        has_unseen_pods: Returns whether pods without objects run on a node, of a workload or of a whole namespace.
    """

    def __init__(self, configuration: Json | None, now: str | int) -> None:
        self.settings = Settings(configuration)
        self.now = 0
        self.advance(now)
        self.api: dict[str, dict[str, Json]] = {}
        cluster = Cluster(self.kind("Node"), self.kind("Pod"), self.kind("Topology"))
        flavors, checks = self.kind("ResourceFlavor"), self.kind("AdmissionCheck")
        self.cache = Cache(self.settings, flavors=flavors, checks=checks, cluster=cluster)
        self.queues: dict[str, PendingQueue] = {}
        self.local_queues: dict[str, str] = {}
        self.kept_progress: dict[str, dict[str, Progress]] = {}
        self.assigned: dict[str, str] = {}
        self.retry_delay = 0
        self.notified: dict[str, int] = {}
        self.expected: set[str] = set()
        self.ledger = Ledger(self.settings)
        self.n_cycles = 0
        self.changes: list[tuple[Json | None, Json | None]] = []
        self.dirty: set[str] = set()
        self.events: list[Event] = []
        self.second_passes = SecondPasses(keeps_first=self.settings.has("SecondPassTimersStay"))
        self.node_checks: dict[str, int] = {}
        self.backoffs: dict[tuple[str, FlavorResource], int] = {}
        self.rung_at = 0
        self.has_unseen_pods: Callable[[str, str], bool] = _has_none

    def kind(self, kind: str) -> dict[str, Json]:
        """Return all objects of a kind, by key (by name, if they have no namespace)."""
        return self.api.setdefault(kind, {})

    def limit_ranges(self, workload: Json) -> list[Json]:
        """Return the LimitRanges that apply to a Workload."""
        ranges, namespace = sorted(self.kind("LimitRange").items()), workload["metadata"]["namespace"]
        return [limit_range for _, limit_range in ranges if limit_range["metadata"]["namespace"] == namespace]

    def runs_elsewhere(self, workload: Json) -> bool:
        """Return whether the pods of a Workload run in another cluster, as a check of MultiKueue says (rules/07 §6)."""
        checks = (self.kind("AdmissionCheck").get(check["name"]) for check in conditions.check_states(workload))
        is_remote = any(check is not None and check["spec"].get("controllerName") == MULTIKUEUE for check in checks)
        return is_remote and self.settings.on("MultiKueue")

    def owned(self, workload_key: str) -> Json:
        """Return the current Workload, as a copy to change and write."""
        return conditions.own(self.kind("Workload")[workload_key])

    def write(self, workload: Json) -> None:
        """Write a Workload; watchers see it later."""
        self.changes.append((self.kind("Workload").get(key(workload)), workload))
        self.kind("Workload")[key(workload)] = workload

    def info(self, workload: Json) -> Info:
        """Return a Workload as the queues see it: with what the namespace adds (rules/01 §7.3)."""
        return Info(self._adjusted(workload), self.settings)

    def hold(self, workload: Json) -> None:
        """Note what a workload holds; its pods use what the namespace adds (rules/01 §7.3, 08 §4.5)."""
        self.cache.set_workload(self._adjusted(workload))

    def _adjusted(self, workload: Json) -> Json:
        limits, classes = self.limit_ranges(workload), self.kind("RuntimeClass")
        return adjusted(workload, limit_ranges=limits, runtime_classes=classes, settings=self.settings)

    def snapshot(self) -> Snapshot:
        """Return the snapshot for a cycle."""
        found = self.cache.snapshot(self.now, {name: self.used(name) for name in self.kind("LocalQueue")})
        found.backoffs = frozenset(what for what, until in self.backoffs.items() if self.now < until)
        return found

    def advance(self, now: str | int | None) -> None:
        """Set the clock, if a time is given."""
        if now is not None:
            self.now = times.moment(now) if isinstance(now, str) else now

    def mark_dirty(self, local_queue: str) -> None:
        """Let the workload controller reconcile all workloads of a LocalQueue."""
        self.dirty |= {name for name, w in self.kind("Workload").items() if local_queue_key(w) == local_queue}

    def _tree(self, cluster_queue: str) -> str:
        """Return what to note to try a ClusterQueue again; empty if its Cohort is in a cycle."""
        node = self.cache.forest.cluster_queues[cluster_queue]
        if node.has_cycle:
            return ""
        return f"/{node.root.name}" if node.parent is not None else cluster_queue

    def notify(self, cluster_queues: Iterable[str]) -> None:
        """Ask to try all workloads in whole trees again (rules/05 §3.1)."""
        for name in cluster_queues:
            self.note_retry(self._tree(name))

    def note_retry(self, tree: str) -> None:
        """Note what to try again; what waits already keeps its time."""
        if tree:
            self.notified.setdefault(tree, self.now + self.retry_delay)

    def note_reclaim(self, victim: Info, reason: str) -> None:
        """Note what a ClusterQueue loses: it does not borrow that again for a while (rules/13 §3)."""
        # It may have left while the cycle waited for pods.
        held = self.cache.find(victim.key)
        if self.settings.reclaim_backoff is not None and reason in experiments.RECLAIMS and held is not None:
            until = self.now + self.settings.reclaim_backoff
            self.backoffs |= {(victim.cluster_queue, fr): until for fr in held.usage}

    def _turns(self) -> Iterator[tuple[int, str]]:
        """Yield when workloads will have run for the time of an experiment, with their ClusterQueues (rules/13 §5)."""
        for name, infos in self.cache.workloads.items():
            for info in infos.values():
                yield from ((at, name) for at in experiments.ends(info, self.settings) if at > self.rung_at)

    def next_ring(self) -> int | None:
        """Return when the next wait of an experiment ends."""
        return min([*self.backoffs.values(), *(at for at, _ in self._turns())], default=None)

    def ring(self) -> None:
        """Ask to try those again whose wait has ended (rules/13 §5)."""
        due = {name for at, name in self._turns() if at <= self.now}
        due |= {name for (name, _), until in self.backoffs.items() if until <= self.now}
        self.backoffs = {what: until for what, until in self.backoffs.items() if until > self.now}
        self.rung_at = max(self.rung_at, self.now)
        self.notify(sorted(due & self.cache.forest.cluster_queues.keys()))

    def flush(self) -> None:
        """Requeue what `notify` asked for, once due: what was a root then, and is below it now (rules/05 §3.1)."""
        self.ring()
        notified = {tree for tree, due in self.notified.items() if due <= self.now}
        self.notified = {tree: due for tree, due in self.notified.items() if due > self.now}
        forest, found = self.cache.forest, set(notified)
        for name, cohort in forest.cohorts.items():
            if f"/{name}" in notified and not cohort.has_cycle:
                found |= {node.name for node in cohort.tree() if node.is_cluster_queue}
        for name, queue in self.queues.items():
            if name in found:
                queue.flush(self.kind("Namespace"), self.now)

    def requeue(self, info: Info, reason: RequeueReason, quota_reserved_reason: str) -> None:
        """Put the current version of a head back into its queue (rules/05 §3)."""
        workload = self.kind("Workload").get(info.key)
        queue = None if workload is None else self.queues.get(self.local_queues.get(local_queue_key(workload), ""))
        if workload is not None and queue is not None and conditions.is_admissible(workload, self.settings):
            self.assigned[info.key] = local_queue_key(workload)
            queue.requeue(info.renewed(self.info(workload)), reason, quota_reserved_reason, self.now)

    def used(self, local_queue: str) -> float:
        """Return what a LocalQueue has used; an unknown one has weight 1 (rules/09 §1.1)."""
        manifest = self.kind("LocalQueue").get(local_queue)
        return self.ledger.usage(local_queue, 1.0 if manifest is None else weight_of(manifest["spec"]))

    def is_usage_based(self, cluster_queue: str) -> bool:
        """Return whether the usage of LocalQueues matters in a ClusterQueue (rules/09 §1.1)."""
        node = self.cache.forest.cluster_queues.get(cluster_queue)
        is_asked = node is not None and node.spec is not None and node.spec.is_usage_based
        return is_asked and self.settings.has_admission_fair_sharing

    def counts_in(self, cluster_queue: str, stage: str) -> bool:
        """Return whether a workload in this stage counts in the usage of its LocalQueue (rules/09 §1.3)."""
        at_reservation = self.settings.on("AdmissionFairSharingAnchorAtQuotaReservation")
        is_early = at_reservation and self.is_usage_based(cluster_queue) and stage == "QuotaReserved"
        return is_early or stage == "Admitted"

    def admitted_in(self, local_queue: str) -> Resources:
        """Return what the workloads of a LocalQueue that count use in its own ClusterQueue (rules/09 §1.2)."""
        manifest = self.kind("LocalQueue").get(local_queue)
        target = "" if manifest is None else manifest["spec"].get("clusterQueue", "")
        infos = [i for i in self.cache.workloads.get(target, {}).values() if i.local_queue == local_queue]
        admitted = [i for i in infos if self.counts_in(target, conditions.stage(i.workload))]
        return quantity.total(*({fr[1]: quantity.exact(fr[1], v)} for i in admitted for fr, v in i.usage.items()))

    def penalize(self, info: Info) -> None:
        """Charge a workload that gets quota (rules/09 §1.3)."""
        if self._is_charged(info):
            self.ledger.penalize(info.local_queue, info.key, self._charge(info), self.now)

    def take_back_penalty(self, info: Info) -> None:
        """Take back the charge of a workload whose reservation was refused (rules/09 §1.3)."""
        if self._is_charged(info):
            self.ledger.take_back(info.local_queue, info.key, self._charge(info))

    def _is_charged(self, info: Info) -> bool:
        in_all = self.settings.has_admission_fair_sharing and not self.settings.has("PenaltiesAreSettled")
        return in_all or self.is_usage_based(info.cluster_queue)

    def _charge(self, info: Info) -> Resources:
        """Return what counts: with IgnoreUndeclared, only what has quota (rules/09 §1.2)."""
        spec = self.cache.forest.cluster_queues[info.cluster_queue].spec
        all_count = not self.settings.ignores_undeclared
        asked = total_requests(info).items()
        return {n: v for n, v in asked if all_count or (spec is not None and spec.group_of(n) is not None)}
