"""Tells how the Workloads of a work's jobs follow from the names of the jobs, so that one job stands for all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, tee

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at, texts_at
from kueuecore.jobs.workload_names import workload_names
from kueuecore.manifests import Manifest
from kueuecore.scenarios.job_variants import with_text

__all__ = ["JOB_UID", "NamedWorkloads"]

JOB_UID = "kueue.x-k8s.io/job-uid"
_IDENTITY = frozenset({"name", "uid", "labels", "annotations", "ownerReferences"})
_GROUP_INDEX = "kueue.x-k8s.io/component-workload-index"


@dataclass(frozen=True, slots=True)
class NamedWorkloads:
    """The Workloads of jobs that differ only in name.

    Args:
        first: Those of the first job, without its name if `is_one_for_all`.
        job: The name of the first job.
        owners: What each Workload is named after; None: it has the name of the job.
        short: Whether their names are cut to 63 bytes.
        is_one_for_all: Whether they are the same for all jobs but for names that no decision depends on.
    """

    first: Sequence[Manifest]
    job: str
    owners: Sequence[_Owner | None]
    short: bool
    is_one_for_all: bool

    @classmethod
    def of(
        cls, first: Sequence[Manifest], last: Sequence[Manifest], *, jobs: tuple[str, str], short: bool
    ) -> NamedWorkloads | None:
        """Return how Workloads follow from names; None if that does not show in the first job and the last.

        Args:
            first: The Workloads of the first job.
            last: Those of the last, whose name is the longest.
            jobs: The names of both.
            short: Whether names of Workloads are cut to 63 bytes.
        """
        owners = [_Owner.of(workload.object, jobs[0]) for workload in first]
        found = cls(first, jobs[0], owners, short, is_one_for_all=True)
        if not first or any(
            found.names([job]) != [text_at(workload.object, "metadata", "name") for workload in workloads]
            for job, workloads in zip(jobs, (first, last), strict=True)
        ):
            return None
        nameless, of_last = (
            [_nameless(workload.object, job) for workload in workloads]
            for job, workloads in zip(jobs, (first, last), strict=True)
        )
        if nameless == of_last:
            # The pods of a single job keep their labels.
            plain = nameless if jobs[0] != jobs[1] else [_nameless(workload.object, "") for workload in first]
            return replace(found, first=_with_objects(first, plain))
        renamed = [_without_identity(workload.object) for workload in found._renamed(jobs[1])]
        is_same = renamed == [_without_identity(workload.object) for workload in last]
        return replace(found, is_one_for_all=False) if is_same else None

    def names(self, jobs: Iterable[str]) -> list[str]:
        """Return the names of all Workloads of these jobs, job by job."""
        columns = [
            list(named) if owner is None else owner.workload_names(named, short=self.short)
            for owner, named in zip(self.owners, tee(jobs, len(self.owners)), strict=True)
        ]
        return columns[0] if len(columns) == 1 else list(chain.from_iterable(zip(*columns, strict=True)))

    def templates(self, jobs: Iterable[str]) -> Sequence[Manifest]:
        """Return what Workloads are copied from: those of one job, or those of each of these jobs."""
        return self.first if self.is_one_for_all else list(chain.from_iterable(map(self._renamed, jobs)))

    def _renamed(self, job: str) -> Sequence[Manifest]:
        """Return the Workloads of another job; their own names are still those of the first job's."""
        return _with_objects(self.first, [with_text(workload.object, self.job, job) for workload in self.first])


@dataclass(frozen=True, slots=True)
class _Owner:
    """What a Workload is named after: the job, a pod that is made for it, or a group of its pods.

    Args:
        kind: Its kind.
        group: Its API group.
        suffix: What follows the name of the job in its name.
    """

    kind: str
    group: str
    suffix: str

    @classmethod
    def of(cls, workload: JsonObject, job: str) -> _Owner | None:
        """Return what a Workload of a job is named after; None if it has the name of the job."""
        owner = next(iter(list_at(workload, "metadata", "ownerReferences")), None)
        if owner is None or text_at(workload, "metadata", "name") == job:
            return None
        index = texts_at(workload, "metadata", "annotations").get(_GROUP_INDEX)
        suffix = text_at(owner, "name").removeprefix(job) + ("" if index is None else f"-{index}")
        return cls(text_at(owner, "kind"), text_at(owner, "apiVersion").rpartition("/")[0], suffix)

    def workload_names(self, jobs: Iterable[str], *, short: bool) -> list[str]:
        """Return the name that the Workload has for each of these jobs."""
        named = (f"{job}{self.suffix}" for job in jobs) if self.suffix else jobs
        return workload_names(named, kind=self.kind, group=self.group, short=short)


def _with_objects(manifests: Sequence[Manifest], objects: Iterable[JsonObject]) -> list[Manifest]:
    return [replace(manifest, object=plain) for manifest, plain in zip(manifests, objects, strict=True)]


def _without_identity(workload: JsonObject) -> JsonObject:
    """Return a Workload without name and UID, which each copy gets for itself."""
    metadata = {name: row for name, row in object_at(workload, "metadata").items() if name not in ("name", "uid")}
    return {**workload, "metadata": metadata}


def _nameless(workload: JsonObject, job: str) -> JsonObject:
    """Return a Workload without its job's name, where no decision depends on it.

    Args:
        workload: The Workload.
        job: The name; empty: its annotations and its pods' labels are kept.
    """
    metadata, spec = object_at(workload, "metadata"), object_at(workload, "spec")
    kept: JsonObject = {name: row for name, row in metadata.items() if name not in _IDENTITY}
    labels = {name: text for name, text in texts_at(metadata, "labels").items() if name != JOB_UID}
    annotations = {name: text for name, text in texts_at(metadata, "annotations").items() if not job or text != job}
    # A template is validated as it is, so it needs a name.
    kept |= {"name": "template"} | ({"labels": dict(labels)} if labels else {})
    kept |= {"annotations": dict(annotations)} if annotations else {}
    pod_sets = [_without_label(pod_set, job) for pod_set in list_at(spec, "podSets")] if job else []
    return {**workload, "metadata": kept, **({"spec": {**spec, "podSets": pod_sets}} if pod_sets else {})}


def _without_label(pod_set: JsonValue, value: str) -> JsonValue:
    """Return a pod set without the labels of its pods that have this value."""
    template = object_at(pod_set, "template")
    metadata = object_at(template, "metadata")
    labels = object_at(metadata, "labels")
    kept = {name: text for name, text in labels.items() if text != value}
    if len(kept) == len(labels):
        return pod_set
    rest = {name: row for name, row in metadata.items() if name != "labels"} | ({"labels": kept} if kept else {})
    plain = {name: row for name, row in template.items() if name != "metadata"} | ({"metadata": rest} if rest else {})
    return {**object_at(pod_set), "template": plain}
