"""Decides what to reconcile after a change (rules/06 §4.7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kueuecore._conditions import has_quota
from kueuecore._json import JsonObject, text_at
from kueuecore.checks import WorkloadKey
from kueuecore.multikueue.active_checks import ActiveChecks
from kueuecore.multikueue.adapters import Adapter, prebuilt_name
from kueuecore.multikueue.affected_workloads import AffectedWorkloads, key_of
from kueuecore.multikueue.configs import clusters_of, parameters_of
from kueuecore.multikueue.job_moves import moved_workload
from kueuecore.multikueue.quota_automation import QuotaAutomation
from kueuecore.multikueue.settings import MultiKueueSettings
from kueuecore.multikueue.work_queue import WorkQueue, failure_delay_ns
from kueuecore.multikueue.worker_connections import WorkerConnections
from kueuecore.multikueue.workload_looks import WorkloadMemory
from kueuecore.writes import Write

__all__ = ["Triggers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggers:
    """Adds what a change affects to the queues of a manager.

    Args:
        settings: The settings of the manager.
        adapters: Adapters by kind.
        workloads: The queue of Workloads.
        affected: Finds the Workloads that a change affects.
        memory: Which Workloads are gone, and which have lost their quota and are not cleaned up yet.
        links: The connections to workers.
        checks: The AdmissionChecks.
        quota: The ClusterQueues with automated quota.
        asks_about_workers: Whether the dispatcher may depend on the state of workers. Kueue's own do not.
    """

    settings: MultiKueueSettings
    adapters: Mapping[str, Adapter]
    workloads: WorkQueue[WorkloadKey]
    affected: AffectedWorkloads
    memory: WorkloadMemory
    links: WorkerConnections
    checks: ActiveChecks
    quota: QuotaAutomation
    asks_about_workers: bool
    # How often in a row the writes of an object have failed, by kind and name.
    _failures: dict[tuple[str, str], int] = field(default_factory=dict)

    def here(self, before: JsonObject, after: JsonObject | None, at: int) -> None:
        """Handle an object of the manager that was changed, created (nothing before) or deleted (nothing after)."""
        manifest = after or before
        kind, soon = text_at(manifest, "kind"), at + self.settings.batch_period_ns
        match kind:
            case "Workload":
                self.affected.note(before, after)
                if after is not None and has_quota(before) and not has_quota(after):
                    self.memory.lost_quota.add(key_of(after))
                if after is None:
                    self.memory.gone[key_of(before)] = before
                    self.memory.lost_quota.discard(key_of(before))
                else:
                    self.memory.gone.pop(key_of(after), None)
                self.workloads.add(key_of(manifest), at)
                if not before:
                    # The first of several Workloads of one job waits for the others.
                    self.affected.by_sibling(manifest, soon)
            case "AdmissionCheck":
                self.checks.look_at_all(at)
                is_edited = after is not None and parameters_of(before) != parameters_of(after)
                if is_edited and self.settings.looks_again_at_checks:
                    self.affected.by_checks({text_at(manifest, "metadata", "name")}, soon)
                self.quota.look_at_all(soon)
            case "MultiKueueConfig":
                self.checks.look_at_all(at)
                if before and (after is None or clusters_of(before) != clusters_of(after)):
                    self.affected.by_config(text_at(manifest, "metadata", "name"), soon)
                self.quota.look_at_all(soon)
            case "MultiKueueCluster":
                self.checks.look_at_all(at)
                if not before or after is None or before.get("spec") != after.get("spec"):
                    self.links.look_at(text_at(manifest, "metadata", "name"), at)
                self.quota.look_at_all(soon)
            case "ClusterQueue" | "LocalQueue":
                self.quota.look_at_all(soon)
            case "ConfigMap":
                self.workloads.add(moved_workload(manifest), at)
            case _ if before.get("spec") != manifest.get("spec"):
                self.affected.by_job(manifest, soon)

    def worker(self, at: int) -> None:
        """Handle a worker that is gone or whose quota may have changed: waiting Workloads may now find a worker."""
        if self.asks_about_workers:
            self.affected.by_worker(at + self.settings.batch_period_ns)

    def there(self, manifest: JsonObject, at: int) -> None:
        """Handle an object of a connected worker that was changed, created or deleted."""
        kind, soon = text_at(manifest, "kind"), at + self.settings.batch_period_ns
        if kind in ("ClusterQueue", "LocalQueue"):
            self.quota.look_at_all(soon)
            self.worker(at)
        elif kind == "Workload":
            self.workloads.add(key_of(manifest), soon)
        elif self.adapters[kind].is_named_after_workload:
            if name := prebuilt_name(manifest, self.settings):
                self.workloads.add((text_at(manifest, "metadata", "namespace"), name), soon)
        else:
            self.affected.by_job(manifest, soon)

    def written(self, write: Write, at: int, *, has_failed: bool) -> None:
        """Handle the end of a write that was about no Workload; one that failed is repeated later each time."""
        key = write.kind, write.name
        n_failed = self._failures.pop(key, 0) + 1 if has_failed else 0
        if n_failed:
            self._failures[key] = n_failed
            at += failure_delay_ns(n_failed)
        else:
            self._failures.pop(key, None)
        if write.kind == "AdmissionCheck":
            self.checks.look_at_all(at)
        elif write.kind == "MultiKueueCluster":
            self.checks.look_at_all(at)
            self.links.look_at(write.name, at)
            self.quota.look_at_all(at + self.settings.batch_period_ns)
        elif write.kind == "ClusterQueue":
            self.quota.look_at_all(at)
