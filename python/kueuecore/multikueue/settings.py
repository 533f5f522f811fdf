"""The settings of a MultiKueue manager (rules/06 §1, rules/11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from kueuecore._json import int_at, list_at, object_at, text_at
from kueuecore.configuration import Configuration
from kueuecore.jobs.context import INSTALLED_FRAMEWORKS
from kueuecore.times import SECOND_NS, duration_ns

__all__ = ["ALL_AT_ONCE", "INCREMENTAL", "MULTIKUEUE", "ORIGIN_LABEL", "MultiKueueSettings", "WinCondition"]

MULTIKUEUE = "kueue.x-k8s.io/multikueue"
"""Controller name of the checks, value of `managedBy`, and name of the gate of orchestrated preemption."""
ORIGIN_LABEL = "kueue.x-k8s.io/multikueue-origin"
"""The label of everything that a manager creates on its workers."""
ALL_AT_ONCE = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"
INCREMENTAL = "kueue.x-k8s.io/multikueue-dispatcher-incremental"

_MINUTE_NS = 60 * SECOND_NS


class WinCondition(StrEnum):
    """The condition that the Workload on a worker must reach for the worker to win (rules/06 §4.3 rule 1)."""

    ADMITTED = "Admitted"
    QUOTA_RESERVED = "QuotaReserved"
    """Kueue's behaviour with its former gate `MultiKueueWaitForWorkloadAdmitted` off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiKueueSettings:
    """The times and switches of a manager, with Kueue's defaults; those without a Configuration field are our own.

    Args:
        origin: Value of the origin label.
        gc_interval_ns: How often objects without a Workload here are removed from the workers; 0: never.
        worker_lost_timeout_ns: How long a worker may be unreachable before its workloads are dispatched anew.
        dispatcher_name: Name of the dispatcher.
        step_size: How many clusters a round of the incremental dispatcher adds.
        frameworks: `integrations.frameworks`: jobs of other kinds are not dispatched; by default those of Kueue's
            release manifest.
        external_frameworks: Kinds of jobs that use the common adapter, as `Kind.version.group`.
        respects_config_order: Whether the incremental dispatcher follows the order of the MultiKueueConfig.
        has_orchestrated_preemption: Whether the gate `MultiKueueOrchestratedPreemption` is on.
        has_quota_automation: Whether the gate `MultiKueueManagerQuotaAutomation` is on.
        has_cluster_profiles: Whether the gate `MultiKueueClusterProfile` is on.
        validates_kubeconfig_paths: Whether the gate `MultiKueueKubeConfigPathValidation` is on.
        has_custom_jobs: Whether the gate `MultiKueueAdaptersForCustomJobs` is on.
        syncs_remote_spec: Whether the gate `MultiKueueRemoteSpecSync` is on.
        has_identifier_annotations: Whether the gate `WorkloadIdentifierAnnotations` is on.
        has_elastic_jobs: Whether the gate `ElasticJobsViaWorkloadSlices` is on.
        retries_without_owner: Whether the change `WorkersWithoutOwnerAreRetried` is in effect.
        removes_evicted_slices: Whether the change `EvictedSlicesLoseTheirCopies` is in effect.
        drops_job_ttl: Whether the gate `MultiKueueBatchJobClearingTTLSecondsAfterFinishedOnWorkerCluster` is on.
        workers_scale_ray: Whether the gate `MultiKueueRayInTreeAutoscaling` is on.
        looks_again_at_checks: Whether the change `MultiKueueCheckEditsRequeue` is in effect.
        tells_next_attempt: Whether the change `MultiKueueBackoffInMessage` is in effect.
        batch_period_ns: How long changes by others are batched before a workload is reconciled.
        deferred_sync_ns: How long to wait before copying a status that had to be deferred.
        round_ns: How long a round of the incremental dispatcher lasts.
        preemption_timeout_ns: How long one worker may preempt before the next may (rules/06 §8).
        win_condition: The condition that a worker must reach to win.
        batch_job_with_managed_by: Whether the gate `MultiKueueBatchJobWithManagedBy` is on. With it off, a `batch/v1`
            Job needs no `managedBy`; its check stays Pending while it runs on the worker, and its status is copied
            once, at its end.
    """

    origin: str = "multikueue"
    gc_interval_ns: int = _MINUTE_NS
    worker_lost_timeout_ns: int = 15 * _MINUTE_NS
    dispatcher_name: str = ALL_AT_ONCE
    step_size: int = 3
    frameworks: Sequence[str] = INSTALLED_FRAMEWORKS
    external_frameworks: Sequence[str] = ()
    respects_config_order: bool = True
    has_orchestrated_preemption: bool = True
    has_quota_automation: bool = False
    has_cluster_profiles: bool = False
    validates_kubeconfig_paths: bool = True
    has_custom_jobs: bool = True
    syncs_remote_spec: bool = True
    has_identifier_annotations: bool = True
    has_elastic_jobs: bool = True
    retries_without_owner: bool = True
    removes_evicted_slices: bool = True
    drops_job_ttl: bool = False
    workers_scale_ray: bool = False
    looks_again_at_checks: bool = True
    tells_next_attempt: bool = True
    batch_period_ns: int = SECOND_NS
    deferred_sync_ns: int = 2 * SECOND_NS
    round_ns: int = 5 * _MINUTE_NS
    preemption_timeout_ns: int = 5 * _MINUTE_NS
    win_condition: WinCondition = WinCondition.ADMITTED
    batch_job_with_managed_by: bool = True

    def wake_in_ns(self, look_again: int | None, now: int) -> int | None:
        """Return how long to wait before asking a policy again; a time in the past means a moment.

        Args:
            look_again: When it wants to be asked, in nanoseconds since 1970; None: no need to.
            now: The time.
        """
        if look_again is None:
            return None
        return look_again - now if look_again > now else max(self.batch_period_ns, 1)

    @classmethod
    def of(cls, configuration: Configuration) -> Self:
        """Return the settings that a Configuration gives.

        Example:
            >>> settings = MultiKueueSettings.of(Configuration())
            >>> settings.origin, settings.worker_lost_timeout_ns // 10**9, settings.step_size
            ('multikueue', 900, 3)
        """
        settings = configuration.to_dict()
        given = object_at(settings, "multiKueue")
        enabled_kinds = list_at(settings, "integrations", "frameworks")
        frameworks = [text_at(framework, "name") for framework in list_at(given, "externalFrameworks")]
        enabled = configuration.is_enabled
        waits_for_admission = enabled("MultiKueueWaitForWorkloadAdmitted")
        step_size = int_at(given, "incrementalDispatcherConfig", "stepSize", default=3)
        return cls(
            origin=text_at(given, "origin") or "multikueue",
            gc_interval_ns=duration_ns(text_at(given, "gcInterval") or "1m"),
            worker_lost_timeout_ns=duration_ns(text_at(given, "workerLostTimeout") or "15m"),
            dispatcher_name=text_at(given, "dispatcherName") or ALL_AT_ONCE,
            step_size=step_size if enabled("MultiKueueIncrementalDispatcherConfig") else 3,
            frameworks=[kind for kind in enabled_kinds if isinstance(kind, str)],
            external_frameworks=frameworks,
            respects_config_order=enabled("MultiKueueIncrementalDispatcherRespectConfigOrder"),
            has_orchestrated_preemption=enabled("MultiKueueOrchestratedPreemption"),
            has_quota_automation=enabled("MultiKueueManagerQuotaAutomation"),
            has_cluster_profiles=enabled("MultiKueueClusterProfile"),
            validates_kubeconfig_paths=enabled("MultiKueueKubeConfigPathValidation"),
            has_custom_jobs=enabled("MultiKueueAdaptersForCustomJobs"),
            syncs_remote_spec=enabled("MultiKueueRemoteSpecSync"),
            has_identifier_annotations=enabled("WorkloadIdentifierAnnotations"),
            has_elastic_jobs=enabled("ElasticJobsViaWorkloadSlices"),
            retries_without_owner=configuration.has_change("WorkersWithoutOwnerAreRetried"),
            removes_evicted_slices=configuration.has_change("EvictedSlicesLoseTheirCopies"),
            drops_job_ttl=enabled("MultiKueueBatchJobClearingTTLSecondsAfterFinishedOnWorkerCluster"),
            workers_scale_ray=enabled("MultiKueueRayInTreeAutoscaling"),
            looks_again_at_checks=configuration.has_change("MultiKueueCheckEditsRequeue"),
            tells_next_attempt=configuration.has_change("MultiKueueBackoffInMessage"),
            win_condition=WinCondition.ADMITTED if waits_for_admission else WinCondition.QUOTA_RESERVED,
            batch_job_with_managed_by=enabled("MultiKueueBatchJobWithManagedBy"),
        )
