"""How a kind of jobs goes to a worker and how its status comes back: what all kinds share (rules/06 §7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at, texts_at
from kueuecore.jobs.context import PREBUILT_WORKLOAD
from kueuecore.jobs.field_paths import Path, value_at, without_value
from kueuecore.multikueue.settings import MULTIKUEUE, ORIGIN_LABEL, MultiKueueSettings

__all__ = [
    "ORIGIN_UID",
    "OWNER_GVK",
    "OWNER_NAME",
    "Adapter",
    "Status",
    "SyncContext",
    "adapter_for",
    "clone_metadata",
    "gvk_text",
    "is_owned",
    "owner_of",
    "prebuilt_name",
    "with_prebuilt_name",
    "with_text",
]

ORIGIN_UID = "kueue.x-k8s.io/multikueue-origin-uid"
OWNER_GVK = "kueue.x-k8s.io/job-owner-gvk"
OWNER_NAME = "kueue.x-k8s.io/job-owner-name"
_MAX_LABEL = 63


@dataclass(frozen=True, slots=True)
class Status:
    """What a sync writes into the status of a job on the manager.

    Args:
        status: The new status; None to leave it as it is.
        is_deferred: Whether the worker's status was held back for now and is to be copied soon.
    """

    status: JsonValue
    is_deferred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncContext:
    """The context in which a job is copied or its status is synced back.

    Args:
        workload: Name of the Workload.
        settings: The settings of the manager.
        now: The time, in nanoseconds since 1970.
    """

    workload: str
    settings: MultiKueueSettings
    now: int


def _same(job: JsonObject) -> JsonObject:
    return job


def _whole_status(_local: JsonObject, remote: JsonObject, _context: SyncContext) -> Status:
    return Status(remote.get("status"))


def _unchanged(_local: JsonObject, remote: JsonObject, _context: SyncContext) -> JsonObject:
    return remote


def _itself(job: JsonObject, _all: Iterable[JsonObject]) -> Sequence[JsonObject]:
    return (job,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """Describes how jobs of one kind run on a worker. All functions are pure.

    Args:
        api_version: Group and version of the kind.
        kind: The kind.
        managed_by: The field that must name MultiKueue and is removed from copies; None if the kind has none.
        managed_by_shown: How messages refer to that field.
        prepare: Removes whatever else a copy must not have.
        status: Returns the manager's status, given the job there, the job on the worker, and the context.
        update: Returns the desired job on the worker, given the same three.
        members: Given a job and all jobs of its kind in the namespace, returns those that belong to it.
        is_named_after_workload: Whether a copy names its Workload. False if a job can have several.
        has_origin_uid: Whether a copy carries the UID of its original in an annotation.
        n_workloads: Returns how many Workloads a job has; None for kinds with one.
        keeps_check_pending: Whether the check stays Pending while the job runs on the worker.
    """

    api_version: str
    kind: str
    managed_by: Path | None = ("spec", "managedBy")
    managed_by_shown: str = "spec.managedBy"
    prepare: Callable[[JsonObject], JsonObject] = _same
    status: Callable[[JsonObject, JsonObject, SyncContext], Status] = _whole_status
    update: Callable[[JsonObject, JsonObject, SyncContext], JsonObject] = _unchanged
    members: Callable[[JsonObject, Iterable[JsonObject]], Sequence[JsonObject]] = _itself
    is_named_after_workload: bool = True
    has_origin_uid: bool = False
    n_workloads: Callable[[JsonObject], int] | None = None
    keeps_check_pending: bool = False

    @property
    def has_members(self) -> bool:
        """Whether a job of this kind may be one of several objects that run together."""
        return self.members is not _itself

    @property
    def gvk(self) -> str:
        """Group, version and kind, written as Kueue writes them.

        Example:
            >>> Adapter(api_version="batch/v1", kind="Job").gvk, Adapter(api_version="v1", kind="Pod").gvk
            ('batch/v1, Kind=Job', '/v1, Kind=Pod')
        """
        return gvk_text(self.api_version, self.kind)

    def why_unmanaged(self, job: JsonObject, settings: MultiKueueSettings) -> str:
        """Return why a job is not delegated; empty if it is."""
        if self.managed_by is None:
            return ""
        manager = value_at(job, self.managed_by)
        shown = manager if isinstance(manager, str) else ""
        if shown == MULTIKUEUE:
            return ""
        return f'Expecting {self.managed_by_shown} to be "{MULTIKUEUE}" not "{shown}"'

    def copy(self, job: JsonObject, context: SyncContext) -> JsonObject:
        """Return the job to create on the worker: user-written metadata, and the spec without `managedBy`."""
        result: JsonObject = {
            "apiVersion": text_at(job, "apiVersion"),
            "kind": text_at(job, "kind"),
            "metadata": clone_metadata(job),
            "spec": object_at(job, "spec"),
        }
        if self.managed_by is not None:
            result = without_value(result, self.managed_by)
        result = with_text(self.prepare(result), "labels", ORIGIN_LABEL, context.settings.origin)
        if self.has_origin_uid:
            result = with_text(result, "annotations", ORIGIN_UID, text_at(job, "metadata", "uid"))
        return with_prebuilt_name(result, context) if self.is_named_after_workload else result


def gvk_text(api_version: str, kind: str) -> str:
    """Return group, version and kind, written as Kueue writes them."""
    return f"{api_version if '/' in api_version else '/' + api_version}, Kind={kind}"


def clone_metadata(manifest: JsonObject) -> JsonObject:
    """Return what a copy on another cluster keeps of the metadata: name, namespace, labels and annotations."""
    metadata = object_at(manifest, "metadata")
    return {key: metadata[key] for key in ("name", "namespace", "labels", "annotations") if metadata.get(key)}


def with_text(manifest: JsonObject, which: str, key: str, text: str) -> JsonObject:
    """Return a copy of an object with a label or an annotation added."""
    metadata = object_at(manifest, "metadata")
    return {**manifest, "metadata": {**metadata, which: {**object_at(metadata, which), key: text}}}


def with_prebuilt_name(job: JsonObject, context: SyncContext) -> JsonObject:
    """Return a copy of a job that names its Workload: in an annotation, or in a label if that gate is off."""
    use_annotation = context.settings.has_identifier_annotations or len(context.workload) > _MAX_LABEL
    return with_text(job, "annotations" if use_annotation else "labels", PREBUILT_WORKLOAD, context.workload)


def prebuilt_name(job: JsonObject, settings: MultiKueueSettings) -> str:
    """Return the name of the Workload that a job names; empty if it names none."""
    annotation = texts_at(job, "metadata", "annotations").get(PREBUILT_WORKLOAD, "")
    label = texts_at(job, "metadata", "labels").get(PREBUILT_WORKLOAD, "")
    if settings.has_identifier_annotations:
        return annotation or label
    return label or (annotation if len(annotation) > _MAX_LABEL else "")


def is_owned(manifest: JsonObject, origin: str) -> bool:
    """Return whether an object on a worker was created by the manager with this origin."""
    return texts_at(manifest, "metadata", "labels").get(ORIGIN_LABEL) == origin


def adapter_for(workload: JsonObject, adapters: Mapping[str, Adapter]) -> tuple[Adapter | None, JsonObject | None]:
    """Return the adapter for a Workload and a reference to its job (rules/06 §4.1 step 1).

    Args:
        workload: The Workload.
        adapters: Adapters by group, version and kind.

    Returns:
        None for both if the Workload has no owner; None for the adapter if its owner's kind has none.
    """
    annotations = texts_at(workload, "metadata", "annotations")
    adapter = adapters.get(annotations.get(OWNER_GVK, ""))
    if adapter is not None and (name := annotations.get(OWNER_NAME)):
        return adapter, {"apiVersion": adapter.api_version, "kind": adapter.kind, "name": name}
    owner = owner_of(workload)
    if owner is None:
        return None, None
    return adapters.get(gvk_text(text_at(owner, "apiVersion"), text_at(owner, "kind"))), owner


def owner_of(workload: JsonObject) -> JsonObject | None:
    """Return the owner that controls an object, or else its first owner."""
    owners = [object_at(reference) for reference in list_at(workload, "metadata", "ownerReferences")]
    return next((owner for owner in owners if owner.get("controller") is True), owners[0] if owners else None)
