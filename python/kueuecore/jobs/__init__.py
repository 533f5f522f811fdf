"""Turns jobs into Workloads, starts and stops them, and reads the state that they report (rules/10).

All functions are pure. A kind of jobs is one `Integration`; `INTEGRATIONS` has all that Kueue knows, and `with_kinds`
adds your own.

Example:
    >>> from kueuecore.manifests import parse_manifests
    >>> result = workloads_for(parse_manifests('''
    ... apiVersion: batch/v1
    ... kind: Job
    ... metadata: {name: sample-job, namespace: default, labels: {kueue.x-k8s.io/queue-name: user-queue}}
    ... spec:
    ...   parallelism: 3
    ...   completions: 3
    ...   template:
    ...     spec:
    ...       containers: [{name: main, resources: {requests: {cpu: 1, memory: 200Mi}}}]
    ...       restartPolicy: Never
    ... '''))
    >>> workload = result.workloads[0].object
    >>> workload["metadata"]["name"], workload["spec"]["queueName"], workload["spec"]["podSets"][0]["count"]
    ('job-sample-job-4b8c4', 'user-queue', 3)
"""

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names
from kueuecore.jobs.pod_group import pod_group

if TYPE_CHECKING:
    from kueuecore.jobs.context import INSTALLED_FRAMEWORKS, JobsConfiguration, Surroundings, installed_frameworks
    from kueuecore.jobs.injection import PodSetInfo, StartError
    from kueuecore.jobs.integration import (
        Finished,
        Integration,
        JobPodSet,
        NoWorkload,
        WorkloadIdentity,
    )
    from kueuecore.jobs.integrations import INTEGRATIONS, with_kinds
    from kueuecore.jobs.job_event import JobEvent
    from kueuecore.jobs.job_report import JobReport
    from kueuecore.jobs.jobs_to_workloads import Ignored, JobsResult, workloads_for
    from kueuecore.jobs.leader_worker_set import pod_of_leader_worker_set
    from kueuecore.jobs.lifecycle import StopReason, integration_of, reclaimable_pods, start_job, stop_job
    from kueuecore.jobs.pod_release import PodRelease, release_pods
    from kueuecore.jobs.reconcile import Reconciliation, reconcile_job
    from kueuecore.jobs.requests import requests_of
    from kueuecore.jobs.set_pods import ungate_pods
    from kueuecore.jobs.stateful_set import pod_of_stateful_set
    from kueuecore.jobs.sync_steps import Action, Sync, WorkloadStep
    from kueuecore.jobs.topology_assignment import Domain, TopologyAssignment
    from kueuecore.jobs.update_validation import update_problems
    from kueuecore.jobs.workload_matching import fits_workload
    from kueuecore.jobs.workload_names import workload_name
    from kueuecore.jobs.workload_sync import sync_workloads

__all__ = [
    "INSTALLED_FRAMEWORKS",
    "INTEGRATIONS",
    "Action",
    "Domain",
    "Finished",
    "Ignored",
    "Integration",
    "JobEvent",
    "JobPodSet",
    "JobReport",
    "JobsConfiguration",
    "JobsResult",
    "NoWorkload",
    "PodRelease",
    "PodSetInfo",
    "Reconciliation",
    "StartError",
    "StopReason",
    "Surroundings",
    "Sync",
    "TopologyAssignment",
    "WorkloadIdentity",
    "WorkloadStep",
    "fits_workload",
    "installed_frameworks",
    "integration_of",
    "pod_group",
    "pod_of_leader_worker_set",
    "pod_of_stateful_set",
    "reclaimable_pods",
    "reconcile_job",
    "release_pods",
    "requests_of",
    "start_job",
    "stop_job",
    "sync_workloads",
    "ungate_pods",
    "update_problems",
    "with_kinds",
    "workload_name",
    "workloads_for",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.jobs.context": "INSTALLED_FRAMEWORKS JobsConfiguration Surroundings installed_frameworks",
        "kueuecore.jobs.injection": "PodSetInfo StartError",
        "kueuecore.jobs.integration": "Finished Integration JobPodSet NoWorkload WorkloadIdentity",
        "kueuecore.jobs.integrations": "INTEGRATIONS with_kinds",
        "kueuecore.jobs.job_event": "JobEvent",
        "kueuecore.jobs.job_report": "JobReport",
        "kueuecore.jobs.jobs_to_workloads": "Ignored JobsResult workloads_for",
        "kueuecore.jobs.leader_worker_set": "pod_of_leader_worker_set",
        "kueuecore.jobs.lifecycle": "StopReason integration_of reclaimable_pods start_job stop_job",
        "kueuecore.jobs.pod_release": "PodRelease release_pods",
        "kueuecore.jobs.reconcile": "Reconciliation reconcile_job",
        "kueuecore.jobs.requests": "requests_of",
        "kueuecore.jobs.set_pods": "ungate_pods",
        "kueuecore.jobs.stateful_set": "pod_of_stateful_set",
        "kueuecore.jobs.sync_steps": "Action Sync WorkloadStep",
        "kueuecore.jobs.topology_assignment": "Domain TopologyAssignment",
        "kueuecore.jobs.update_validation": "update_problems",
        "kueuecore.jobs.workload_matching": "fits_workload",
        "kueuecore.jobs.workload_names": "workload_name",
        "kueuecore.jobs.workload_sync": "sync_workloads",
    },
)
