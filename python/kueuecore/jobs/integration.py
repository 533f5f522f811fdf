"""Describes a kind of jobs: how it becomes pod sets, starts, stops, and reports its state.

A kind is one `Integration`. Kinds whose pods come from pod templates in the job need little more than the paths of
these; the others bring functions of their own.

Example:
    >>> def pods(job, surroundings):
    ...     return [JobPodSet.at(job, ("spec", "template"), name="main", count=job["spec"]["replicas"])]
    >>> crew = Integration(framework="example.com/crew", api_version="example.com/v1", kind="Crew", pod_sets=pods)
    >>> job = {"kind": "Crew", "spec": {"replicas": 2, "suspend": True, "template": {"spec": {}}}}
    >>> crew.is_suspended(job)
    True
    >>> info = PodSetInfo("main", 2, node_selector={"pool": "spot"})
    >>> crew.start(job, [info], JobsConfiguration())[0].manifest["spec"]
    {'replicas': 2, 'suspend': False, 'template': {'spec': {'nodeSelector': {'pool': 'spot'}}}}
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from kueuecore._json import JsonObject, object_at, texts_at
from kueuecore.errors import Problem
from kueuecore.jobs.context import JobsConfiguration, Surroundings, group_of
from kueuecore.jobs.field_paths import Path, value_at, with_value
from kueuecore.jobs.field_types import Shape
from kueuecore.jobs.injection import PodSetInfo, StartError
from kueuecore.jobs.topology import topology_request
from kueuecore.writes import Verb, Write

__all__ = [
    "Finished",
    "Integration",
    "JobPodSet",
    "NoWorkload",
    "WorkloadIdentity",
    "merged_into_templates",
    "written_to_templates",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPodSet:
    """One pod set of a job.

    Args:
        name: Its name; converted to lower case.
        count: How many pods.
        template: The pod template.
        path: The path of the template in the job; empty if the job is a pod itself; None if the template is derived.
        count_path: The path of the count, for errors.
        min_count: The fewest pods that the job can run with.
        pod_index_label: The label with the index of a pod.
        sub_group_index_label: The label with the index of a pod's group.
        sub_group_count: How many such groups there are.
        topology_annotations: Annotations that request a topology, if not those of the template.
    """

    name: str
    count: int
    template: JsonObject
    path: Path | None = None
    count_path: Path = ()
    min_count: int | None = None
    pod_index_label: str | None = None
    sub_group_index_label: str | None = None
    sub_group_count: int | None = None
    topology_annotations: Mapping[str, str] | None = None

    @classmethod
    def at(
        cls,
        job: JsonObject,
        path: Path,
        *,
        name: str,
        count: int,
        count_path: Path = (),
        pod_index_label: str | None = None,
        sub_group_index_label: str | None = None,
        sub_group_count: int | None = None,
    ) -> Self:
        """Return the pod set whose template is at `path` of a job."""
        return cls(
            name=name,
            count=count,
            template=object_at(value_at(job, path)),
            path=path,
            count_path=count_path,
            pod_index_label=pod_index_label,
            sub_group_index_label=sub_group_index_label,
            sub_group_count=sub_group_count,
        )

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations that request a topology."""
        if self.topology_annotations is not None:
            return dict(self.topology_annotations)
        return texts_at(self.template, "metadata", "annotations")

    def to_manifest(self, configuration: JobsConfiguration) -> JsonObject:
        """Return it as an item of `spec.podSets` of a Workload."""
        result: JsonObject = {"name": self.name.lower(), "template": self.template, "count": self.count}
        if self.min_count is not None:
            result["minCount"] = self.min_count
        request = topology_request(
            self.annotations,
            configuration,
            pod_index_label=self.pod_index_label,
            sub_group_index_label=self.sub_group_index_label,
            sub_group_count=self.sub_group_count,
        )
        if request is not None:
            result["topologyRequest"] = request
        return result


@dataclass(frozen=True, slots=True)
class Finished:
    """How a job ended.

    Args:
        message: The job's own message; becomes that of the Workload's condition Finished.
        success: Whether it succeeded.
    """

    message: str = ""
    success: bool = True

    @property
    def reason(self) -> str:
        """The reason of the Workload's condition Finished."""
        return "Succeeded" if self.success else "Failed"


class NoWorkload(Exception):  # noqa: N818  # nothing is wrong with the job
    """A job gets no Workload, now or ever; the message says why.

    Args:
        reason: Why.
        warning: The reason of the Warning event that Kueue creates about the job; empty if it creates none.
        note: The message of that event, if it is not `reason`.
        missing: The problem with an object that the job names, if it gets a Workload once that object exists.
    """

    def __init__(self, reason: str, *, warning: str = "", note: str = "", missing: Problem | None = None) -> None:
        super().__init__(reason)
        self.warning = warning
        self.note = note or reason
        self.missing = missing


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadIdentity:
    """What distinguishes the Workloads of a kind from those of other kinds.

    Args:
        name: Name of the Workload.
        owner_references: Its owners.
        annotations: Annotations in addition to those of its job.
        labels: Its labels; None: those of `integrations.labelKeysToCopy`, and the UID of its job.
    """

    name: str
    owner_references: Sequence[JsonObject]
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] | None = None


PodSets = Callable[[JsonObject, Surroundings], Sequence[JobPodSet]]
Inject = Callable[[JsonObject, Sequence[PodSetInfo], JobsConfiguration], JsonObject]
Restore = Callable[[JsonObject, Sequence[PodSetInfo]], JsonObject]


def _nothing_wrong(_job: JsonObject) -> list[Problem]:
    return []


def _all_valid(_job: JsonObject, _pod_sets: Sequence[JobPodSet], _surroundings: Surroundings) -> list[Problem]:
    return []


def _none_reclaimable(_job: JsonObject, _configuration: JobsConfiguration) -> Mapping[str, int]:
    return {}


def _unchanged(job: JsonObject, _configuration: JobsConfiguration) -> JsonObject:
    return job


@dataclass(frozen=True, slots=True, kw_only=True)
class Integration:
    """A kind of jobs. All functions are pure and do not modify the jobs they are given.

    Only the first four are required. With the defaults, a kind keeps its pod templates in the job, starts by an update
    of `spec.suspend`, and never reports that it runs, is ready or has finished.

    Args:
        framework: The name in `integrations.frameworks`.
        api_version: Group and version of the kind.
        kind: The kind.
        pod_sets: Returns the pod sets of a job.
        feature_gate: The gate that the kind requires; empty if none.
        suspend_field: The path of the boolean that suspends it; None if it has none.
        is_serving: Whether its pods serve rather than finish. If so, the namespace selector applies to its pods, and
            existing Workloads and maximum execution times are ignored.
        supports_prebuilt: Whether a job may name an existing Workload (annotation
            `kueue.x-k8s.io/prebuilt-workload-name`).
        supports_elastic: Whether a job may request workload slices (annotation `kueue.x-k8s.io/elastic-job`).
        supports_multikueue: Whether MultiKueue dispatches a job to workers.
        default_managed_by: The value of `managed_by_field` by default; None if the kind has no such field.
        managed_by_field: The path of the name of the controller that runs the job.
        is_top_level: Whether a job has its own Workload, whoever owns it.
        with_defaults: Returns a copy of a raw manifest with the API server's defaults.
        webhook_defaults: Returns the job with what Kueue's webhook for this kind changes besides queue, priority and
            suspension.
        hold_back: Returns a managed job with what its webhook adds so that its pods wait, besides `suspend_field`.
        fields: The types of the fields that are read of a job, besides its metadata: a job with other types is refused
            before any function here sees it.
        shape_problems: Returns what is missing in a manifest whose fields have these types, and needed by all other
            functions.
        validate: Returns what the kind's webhook rejects, besides what it rejects for all kinds.
        validate_creation: Returns what its webhook rejects only in new jobs.
        is_revalidated: Whether a changed job is checked like a new one, with its queue and other names. If not, only by
            `validate`.
        is_validated_if_managed: Whether a change is only checked if the job names or named a queue.
        validate_update: Returns what else its webhook rejects in a change; takes the old job and the new one.
        skipped: Returns why Kueue leaves a job alone; empty if it does not.
        priority_class_field: Where a job may name the priority class of all its pods, before those of its pod sets.
        pods_made: Returns the pods, created by its controller, that become Workloads instead of the job; without those
            that exist.
        n_workloads: Returns how many Workloads a job itself has.
        identify: Returns name, owners and annotations of its Workload with an index; None: one Workload that the job
            controls.
        inject: Returns the job with what its pod sets get when it starts; by default, merged into the templates.
        restore: Returns the job with what its pod sets had before; by default, written to the templates.
        custom_is_suspended: Returns whether a job is suspended, if that is not `suspend_field` alone.
        custom_start: Returns the writes that start a job, if one update is not enough.
        custom_stop: Returns the writes that stop a job, if one update is not enough.
        finalize: Returns the writes that release the job once it has ended or is deleted.
        is_active: Returns whether any pod of the job may still run.
        is_on_hold: Returns whether the job gives up its quota while it cannot run.
        finished: Returns how the job ended; None if it has not.
        custom_finished: Returns the same where a change of Kueue matters; None: `finished` says it.
        pods_ready: Returns whether all pods are ready or done.
        custom_pods_ready: Returns the same where a feature gate matters; None: `pods_ready` says it.
        label_uid: Returns whose UID the Workload is labelled with, if it is not the job's; else None.
        elastic_annotations: Returns annotations that an elastic job gets when it is read: the source of its size.
        reclaimable_pods: Returns the number of pods whose quota is free because they are done, by pod set
            (`status.reclaimablePods`).
    """

    framework: str
    api_version: str
    kind: str
    pod_sets: PodSets
    feature_gate: str = ""
    suspend_field: Path | None = ("spec", "suspend")
    is_serving: bool = False
    supports_prebuilt: bool = False
    supports_elastic: bool = False
    supports_multikueue: bool = False
    default_managed_by: str | None = None
    managed_by_field: Path = ("spec", "managedBy")
    is_top_level: Callable[[JsonObject], bool] = lambda _: False
    with_defaults: Callable[[JsonObject], JsonObject] = copy.deepcopy
    webhook_defaults: Callable[[JsonObject, JobsConfiguration], JsonObject] = _unchanged
    hold_back: Callable[[JsonObject, JobsConfiguration], JsonObject] = _unchanged
    fields: Mapping[str, Shape] = field(default_factory=dict)
    shape_problems: Callable[[JsonObject], list[Problem]] = _nothing_wrong
    validate: Callable[[JsonObject, Sequence[JobPodSet], Surroundings], list[Problem]] = _all_valid
    validate_creation: Callable[[JsonObject, JobsConfiguration], list[Problem]] = lambda *_: []
    is_revalidated: bool = False
    is_validated_if_managed: bool = False
    validate_update: Callable[[JsonObject, JsonObject, Surroundings], list[Problem]] = lambda *_: []
    skipped: Callable[[JsonObject], str] = lambda _: ""
    priority_class_field: Path | None = None
    pods_made: Callable[[JsonObject, Surroundings], Sequence[JsonObject]] = lambda _job, _surroundings: ()
    n_workloads: Callable[[JsonObject], int] = lambda _: 1
    identify: Callable[[JsonObject, int, JobsConfiguration], WorkloadIdentity] | None = None
    inject: Inject | None = None
    restore: Restore | None = None
    custom_is_suspended: Callable[[JsonObject], bool] | None = None
    custom_start: Callable[[JsonObject, Sequence[PodSetInfo], JobsConfiguration], Sequence[Write]] | None = None
    custom_stop: Callable[[JsonObject, Sequence[PodSetInfo] | None, str, str], Sequence[Write]] | None = None
    finalize: Callable[[JsonObject], Sequence[Write]] = lambda _: ()
    is_active: Callable[[JsonObject], bool] = lambda _: False
    is_on_hold: Callable[[JsonObject], bool] = lambda _: False
    finished: Callable[[JsonObject], Finished | None] = lambda _: None
    custom_finished: Callable[[JsonObject, JobsConfiguration], Finished | None] | None = None
    pods_ready: Callable[[JsonObject], bool] = lambda _: False
    custom_pods_ready: Callable[[JsonObject, JobsConfiguration], bool] | None = None
    label_uid: Callable[[JsonObject, Surroundings], str | None] = lambda _job, _surroundings: None
    elastic_annotations: Callable[[JsonObject, Surroundings], Mapping[str, str]] = lambda _job, _surroundings: {}
    reclaimable_pods: Callable[[JsonObject, JobsConfiguration], Mapping[str, int]] = _none_reclaimable

    def how_ended(self, job: JsonObject, configuration: JobsConfiguration) -> Finished | None:
        """Return how a job ended; None if it has not."""
        return self.finished(job) if self.custom_finished is None else self.custom_finished(job, configuration)

    def are_pods_ready(self, job: JsonObject, configuration: JobsConfiguration) -> bool:
        """Return whether all pods of a job are ready or done, as far as they have to be."""
        if self.custom_pods_ready is not None:
            return self.custom_pods_ready(job, configuration)
        return self.pods_ready(job)

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return group_of(self.api_version)

    @property
    def tells_reclaimable_pods(self) -> bool:
        """Whether jobs report finished pods; if not, what others have written stays."""
        return self.reclaimable_pods is not _none_reclaimable

    def priority_class(self, job: JsonObject) -> str | None:
        """Return the priority class that the job names for all its pods, if any."""
        found = None if self.priority_class_field is None else value_at(job, self.priority_class_field)
        return found if isinstance(found, str) and found else None

    def suspend(self, job: JsonObject) -> JsonObject:
        """Return the job, suspended; unchanged if its kind has no such field."""
        return job if self.suspend_field is None else with_value(job, self.suspend_field, True)

    def is_suspended(self, job: JsonObject) -> bool:
        """Return whether the job is suspended."""
        if self.custom_is_suspended is not None:
            return self.custom_is_suspended(job)
        return self.suspend_field is not None and value_at(job, self.suspend_field) is True

    def start(
        self, job: JsonObject, infos: Sequence[PodSetInfo], configuration: JobsConfiguration
    ) -> tuple[Write, ...]:
        """Return the writes that start the job with what its pod sets got.

        Raises:
            StartError: The job has other values where the admission sets some, or other pod sets.
        """
        if self.custom_start is not None:
            return tuple(self.custom_start(job, infos, configuration))
        if self.inject is not None:
            started = self.inject(job, infos, configuration)
        else:
            started = merged_into_templates(job, self._paths(job), infos, configuration)
        if self.suspend_field is not None:
            started = with_value(started, self.suspend_field, False)
        return (Write(Verb.UPDATE, started),)

    def stop(
        self, job: JsonObject, infos: Sequence[PodSetInfo] | None, *, reason: str, message: str = ""
    ) -> tuple[Write, ...]:
        """Return the writes that stop the job and restore its templates; none if it is already suspended.

        Args:
            job: The job.
            infos: What its pod sets had before; None if unknown: nothing is restored.
            reason: A word for why, such as `WorkloadEvicted`.
            message: Why, in a sentence.
        """
        if self.custom_stop is not None:
            return tuple(self.custom_stop(job, infos, reason, message))
        if self.is_suspended(job):
            return ()
        return (Write(Verb.UPDATE, self.restored(self.suspend(job), infos)),)

    def restored(self, job: JsonObject, infos: Sequence[PodSetInfo] | None) -> JsonObject:
        """Return the job with what its pod sets had before; unchanged if their number differs."""
        if not infos:
            return job
        return self.restore(job, infos) if self.restore else written_to_templates(job, self._paths(job), infos)

    def _paths(self, job: JsonObject) -> list[Path]:
        return [pod_set.path for pod_set in self.pod_sets(job, Surroundings()) if pod_set.path is not None]


def merged_into_templates(
    job: JsonObject, paths: Sequence[Path], infos: Sequence[PodSetInfo], configuration: JobsConfiguration
) -> JsonObject:
    """Return the job with each info merged into the template at its path.

    Raises:
        StartError: The number of infos differs, or a template has other values.
    """
    if len(infos) != len(paths):
        raise StartError(f"invalid podset infos: expecting {len(paths)} podset, got {len(infos)}")
    for path, info in zip(paths, infos, strict=True):
        job = with_value(job, path, info.merged_into(object_at(value_at(job, path)), configuration))
    return job


def written_to_templates(job: JsonObject, paths: Sequence[Path], infos: Sequence[PodSetInfo]) -> JsonObject:
    """Return the job with each info written to the template at its path; unchanged if their numbers differ."""
    if len(infos) != len(paths):
        return job
    for path, info in zip(paths, infos, strict=True):
        job = with_value(job, path, info.written_to(object_at(value_at(job, path))))
    return job
