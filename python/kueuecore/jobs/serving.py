"""Handles what serving sets of pods share: one Workload for all their pods, which are gated one by one."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.jobs.context import (
    JOB_UID_LABEL,
    MANAGED_LABEL,
    ORIGIN_LABEL,
    ORIGIN_UID,
    PREBUILT_WORKLOAD,
    PREFIX,
    JobsConfiguration,
    annotations_of,
    labels_of,
    set_annotation,
    set_label,
)
from kueuecore.jobs.field_types import Shape, check_fields
from kueuecore.jobs.integration import WorkloadIdentity
from kueuecore.jobs.manifest_shapes import METADATA
from kueuecore.jobs.pod import GROUP_NAME, TOTAL_COUNT
from kueuecore.jobs.pod_group import IS_GROUP_WORKLOAD
from kueuecore.jobs.role_hash import ROLE_HASH
from kueuecore.jobs.workload_names import owner_reference, workload_name
from kueuecore.manifests import object_ref

__all__ = ["check_pod", "has_origin", "marked_pod", "serving_identity", "serving_name"]


def serving_identity(
    job: JsonObject,
    configuration: JobsConfiguration,
    *,
    owner_name: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
) -> WorkloadIdentity:
    """Return the identity of a Workload whose pods are a group, and whose set does not control it.

    Args:
        job: The set.
        configuration: Has the feature gates.
        owner_name: The base of the Workload's name.
        labels: Labels in addition to the UID of the set.
        annotations: Annotations in addition to those that name its owner.
    """
    api_version, kind = text_at(job, "apiVersion"), text_at(job, "kind")
    return WorkloadIdentity(
        name=serving_name(job, owner_name, configuration),
        owner_references=[owner_reference(job, controller=False)],
        annotations={
            IS_GROUP_WORKLOAD: "true",
            f"{PREFIX}job-owner-gvk": f"{api_version}, Kind={kind}",
            f"{PREFIX}job-owner-name": text_at(job, "metadata", "name"),
            **annotations,
        },
        labels={**labels, JOB_UID_LABEL: text_at(job, "metadata", "uid")},
    )


def serving_name(job: JsonObject, owner_name: str, configuration: JobsConfiguration, *, with_uid: bool = True) -> str:
    """Return the name of a set's Workload; on a MultiKueue worker, the name that it has on the manager.

    Args:
        job: The set.
        owner_name: The base of the name.
        configuration: Has the feature gates.
        with_uid: Whether the name includes the UID of the set. Older versions of Kueue leave it out.
    """
    uid = text_at(job, "metadata", "uid")
    if has_origin(job):
        uid = annotations_of(job).get(ORIGIN_UID, uid)
    return workload_name(
        owner_name,
        kind=text_at(job, "kind"),
        group=text_at(job, "apiVersion").partition("/")[0],
        uid=uid if with_uid else "",
        short=configuration.enabled("ShortWorkloadNames"),
    )


def has_origin(job: JsonObject) -> bool:
    """Return whether a MultiKueue manager has created a set, and so creates the Workloads too."""
    return ORIGIN_LABEL in labels_of(job)


def check_pod(pod: JsonObject, job: JsonObject, fields: Mapping[str, Shape]) -> None:
    """Refuse a pod or a set that has fields of the wrong type.

    Args:
        pod: The pod.
        job: The set.
        fields: The fields of the set that are read.

    Raises:
        ManifestError: All problems of the first that has any.
    """
    check_fields(pod, {"metadata": METADATA}, replace(object_ref(object_at(pod)), kind="Pod"))
    check_fields(job, {"metadata": METADATA, **fields}, object_ref(object_at(job)))


def marked_pod(
    pod: JsonObject,
    workload: str,
    configuration: JobsConfiguration,
    *,
    labels: Mapping[str, str],
    size: int,
    role: str,
) -> JsonObject:
    """Return a pod of a set as a member of the group that its Workload stands for.

    Args:
        pod: The pod.
        workload: Name of the Workload, and of the group.
        configuration: Has the feature gates.
        labels: Labels that it gets from the set; those without a value are left out.
        size: How many pods the group has.
        role: The pod set that the pod belongs to.
    """
    marked = copy.deepcopy(pod)
    set_label(marked, MANAGED_LABEL, "true")
    for label, value in labels.items():
        if value:
            set_label(marked, label, value)
    set_identifier = set_annotation if configuration.enabled("WorkloadIdentifierAnnotations") else set_label
    for key in (PREBUILT_WORKLOAD, GROUP_NAME):
        set_identifier(marked, key, workload)
    set_annotation(marked, TOTAL_COUNT, str(size))
    set_annotation(marked, ROLE_HASH, role)
    return marked
