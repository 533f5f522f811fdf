"""What kueuecore knows about a kind of jobs: how it becomes pod sets, starts, stops, and reports its state.

A kind is one `Integration`. Kinds whose pods come from pod templates somewhere in the job say little more than where
these stand; the others bring functions of their own.

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
from enum import StrEnum
from typing import Self

from kueuecore._json import JsonObject, object_at, texts_at
from kueuecore.errors import Problem
from kueuecore.jobs.context import JobsConfiguration, Surroundings, group_of
from kueuecore.jobs.field_paths import Path, value_at, with_value
from kueuecore.jobs.field_types import Shape
from kueuecore.jobs.injection import PodSetInfo, StartError
from kueuecore.jobs.topology import topology_request

__all__ = [
    "Finished",
    "Integration",
    "JobPodSet",
    "NoWorkload",
    "WorkloadIdentity",
    "Write",
    "WriteKind",
    "merged_into_templates",
    "written_to_templates",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPodSet:
    """One pod set of a job.

    Args:
        name: Its name; made lower case.
        count: How many pods.
        template: The pod template.
        path: Where the template stands in the job, empty if the job is a pod itself; None if it was made up.
        count_path: Where the count comes from, for errors.
        min_count: The fewest pods with which the job can do.
        pod_index_label: The label in which its pods have their index.
        sub_group_index_label: The label in which they have the index of their group.
        sub_group_count: How many such groups there are.
        topology_annotations: Annotations that ask for topology, if they are not those of the template.
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
        """The pod set whose template stands at `path` of a job."""
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
        """The annotations that ask for topology."""
        if self.topology_annotations is not None:
            return dict(self.topology_annotations)
        return texts_at(self.template, "metadata", "annotations")

    def to_manifest(self, configuration: JobsConfiguration) -> JsonObject:
        """An item of `spec.podSets` of a Workload."""
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
        message: What the job says about it; the message of the Workload's condition Finished.
        success: Did it succeed?
    """

    message: str = ""
    success: bool = True

    @property
    def reason(self) -> str:
        """The reason of the Workload's condition Finished."""
        return "Succeeded" if self.success else "Failed"


class WriteKind(StrEnum):
    """What to do with the manifest of a `Write`."""

    CREATE = "Create"
    UPDATE = "Update"
    UPDATE_STATUS = "UpdateStatus"
    DELETE = "Delete"


@dataclass(frozen=True, slots=True)
class Write:
    """One change of an object. Of several for one object each builds on the one before.

    Args:
        manifest: The object as it is to be; of a deletion, as it is.
        kind: Create it, update it or its status (the rest is as before), or delete it.
    """

    manifest: JsonObject
    kind: WriteKind = WriteKind.UPDATE


class NoWorkload(Exception):  # noqa: N818  # nothing is wrong with the job
    """A job that gets no Workload, now or for good; the message says why.

    Args:
        reason: Why.
        warning: The reason of the Warning event that Kueue creates about the job; empty if it creates none.
        note: The message of that event, if it is not `reason`.
    """

    def __init__(self, reason: str, *, warning: str = "", note: str = "") -> None:
        super().__init__(reason)
        self.warning = warning
        self.note = note or reason


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadIdentity:
    """What distinguishes the Workloads of a kind from those of other kinds.

    Args:
        name: Name of the Workload.
        owner_references: Its owners.
        annotations: Annotations that it has beside those of its job.
        labels: Its labels; None for those of `integrations.labelKeysToCopy`, and the UID of its job.
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


def _none_reclaimable(_job: JsonObject) -> Mapping[str, int]:
    return {}


def _unchanged(job: JsonObject, _configuration: JobsConfiguration) -> JsonObject:
    return job


@dataclass(frozen=True, slots=True, kw_only=True)
class Integration:
    """A kind of jobs. All functions are pure and change no job that they are given.

    Only the first four have no default: such a kind keeps its pod templates in the job, starts by an update of
    `spec.suspend`, and never reports that it runs, is ready or has finished.

    Args:
        framework: The name in `integrations.frameworks`.
        api_version: Group and version of the kind.
        kind: The kind.
        pod_sets: Its pod sets.
        feature_gate: The gate without which the kind is off; empty if there is none.
        suspend_field: Where the truth value stands that suspends it; None if it has none.
        is_serving: Do its pods serve rather than finish? Then it is its pods that a namespace leaves out, and nobody
            looks for an existing Workload or a maximum execution time.
        supports_prebuilt: May a job name an existing Workload (annotation `kueue.x-k8s.io/prebuilt-workload-name`)?
        supports_elastic: May a job ask for workload slices (annotation `kueue.x-k8s.io/elastic-job`)?
        default_managed_by: What `managed_by_field` names when nobody took it over; None if the kind has no such field.
        managed_by_field: Where the controller that runs the job is named.
        is_top_level: Does a job have a Workload of its own, whoever owns it?
        with_defaults: A copy of a raw manifest with the defaults of the API server.
        webhook_defaults: The job with what Kueue's webhook for this kind changes beside queue, priority and suspension.
        hold_back: A managed job with what its webhook adds so that its pods wait, beside `suspend_field`.
        fields: The types of the fields that are read of a job, beside its metadata: a job with others is refused, and
            no function here meets it.
        shape_problems: What is missing in a manifest whose fields have these types, so that nothing else can be asked.
        validate: What the webhook of the kind rejects, beside what it rejects for all kinds.
        validate_creation: What its webhook rejects of a new job alone.
        is_revalidated: Is a changed job checked like a new one, its queue and other names too? Else only by `validate`.
        is_validated_if_managed: Is a change only looked at if the job names a queue, or did?
        validate_update: What its webhook rejects of a change beside that: the old job, the new one.
        skipped: Why Kueue leaves a job alone; empty if it does not.
        priority_class: The pod priority class of the job; None to take that of the first pod set that has one.
        pods_made: The pods that become Workloads in place of the job: its controller makes them. None that are there.
        n_workloads: How many Workloads a job has itself.
        identify: Name, owners, annotations of its Workload of an index; None for one Workload that the job controls.
        inject: The job with what its pod sets get when it starts. By default, merged into the templates.
        restore: The job with what its pod sets had before. By default, written to the templates.
        custom_is_suspended: Whether a job is suspended, where that is not `suspend_field` alone.
        custom_start: The writes that start a job, where one update does not.
        custom_stop: The writes that stop a job, where one update does not.
        finalize: The writes that let the job go once it has ended, or is deleted.
        is_active: Whether any pod of the job may still run.
        is_on_hold: Whether the job gives its quota back for as long as it cannot run.
        finished: How the job ended; None while it has not.
        pods_ready: Whether all pods are ready or done.
        elastic_annotations: Annotations that an elastic job gets when it is looked at: what its size comes from.
        reclaimable_pods: Pods whose quota is free because they are done, by pod set (`status.reclaimablePods`).
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
    priority_class: Callable[[JsonObject], str | None] = lambda _: None
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
    pods_ready: Callable[[JsonObject], bool] = lambda _: False
    elastic_annotations: Callable[[JsonObject, Surroundings], Mapping[str, str]] = lambda _job, _surroundings: {}
    reclaimable_pods: Callable[[JsonObject], Mapping[str, int]] = _none_reclaimable

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return group_of(self.api_version)

    @property
    def tells_reclaimable_pods(self) -> bool:
        """Whether jobs report finished pods; if not, what others have written stays."""
        return self.reclaimable_pods is not _none_reclaimable

    def suspend(self, job: JsonObject) -> JsonObject:
        """The job, suspended; a kind without such a field is as before."""
        return job if self.suspend_field is None else with_value(job, self.suspend_field, True)

    def is_suspended(self, job: JsonObject) -> bool:
        """Whether the job is suspended."""
        if self.custom_is_suspended is not None:
            return self.custom_is_suspended(job)
        return self.suspend_field is not None and value_at(job, self.suspend_field) is True

    def start(
        self, job: JsonObject, infos: Sequence[PodSetInfo], configuration: JobsConfiguration
    ) -> tuple[Write, ...]:
        """The writes that start the job with what its pod sets got.

        Raises:
            StartError: The job has values of its own for what it should get, or other pod sets.
        """
        if self.custom_start is not None:
            return tuple(self.custom_start(job, infos, configuration))
        if self.inject is not None:
            started = self.inject(job, infos, configuration)
        else:
            started = merged_into_templates(job, self._paths(job), infos, configuration)
        if self.suspend_field is not None:
            started = with_value(started, self.suspend_field, False)
        return (Write(started),)

    def stop(
        self, job: JsonObject, infos: Sequence[PodSetInfo] | None, *, reason: str, message: str = ""
    ) -> tuple[Write, ...]:
        """The writes that stop the job and put its templates back; none if it is suspended already.

        Args:
            job: The job.
            infos: What its pod sets had before; None if nobody knows, then nothing is put back.
            reason: Why, a word: `WorkloadEvicted`.
            message: Why, for people.
        """
        if self.custom_stop is not None:
            return tuple(self.custom_stop(job, infos, reason, message))
        if self.is_suspended(job):
            return ()
        return (Write(self.restored(self.suspend(job), infos)),)

    def restored(self, job: JsonObject, infos: Sequence[PodSetInfo] | None) -> JsonObject:
        """The job with what its pod sets had before; unchanged if their number differs."""
        if not infos:
            return job
        return self.restore(job, infos) if self.restore else written_to_templates(job, self._paths(job), infos)

    def _paths(self, job: JsonObject) -> list[Path]:
        return [pod_set.path for pod_set in self.pod_sets(job, Surroundings()) if pod_set.path is not None]


def merged_into_templates(
    job: JsonObject, paths: Sequence[Path], infos: Sequence[PodSetInfo], configuration: JobsConfiguration
) -> JsonObject:
    """The job with each info merged into the template at its path.

    Raises:
        StartError: Another number of infos, or a template with other values.
    """
    if len(infos) != len(paths):
        raise StartError(f"invalid podset infos: expecting {len(paths)} podset, got {len(infos)}")
    for path, info in zip(paths, infos, strict=True):
        job = with_value(job, path, info.merged_into(object_at(value_at(job, path)), configuration))
    return job


def written_to_templates(job: JsonObject, paths: Sequence[Path], infos: Sequence[PodSetInfo]) -> JsonObject:
    """The job with each info in place of what the template at its path says; unchanged if their numbers differ."""
    if len(infos) != len(paths):
        return job
    for path, info in zip(paths, infos, strict=True):
        job = with_value(job, path, info.written_to(object_at(value_at(job, path))))
    return job
