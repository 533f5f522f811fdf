"""Finds the owners of a job: a job below a managed one gets no Workload of its own (rules/10 §2.3)."""

from __future__ import annotations

from kueuecore._json import JsonObject, JsonValue, list_at, text_at
from kueuecore.errors import ObjectRef
from kueuecore.jobs.context import QUEUE_LABEL, Surroundings, labels_of

__all__ = ["OwnerError", "controller_of", "has_managed_owner", "managed_ancestor", "should_wait"]

_WALKED_THROUGH = ("apps/v1", "ReplicaSet")
_MAX_HOPS = 10


class OwnerError(Exception):
    """The owners cannot be followed to the top.

    Args:
        reason: Why.
        warning: The reason of the Warning event that Kueue creates about the job; empty if it creates none.
        note: The message of that event.
        denial: The message of a webhook that refuses the job for it; by default the reason.
    """

    def __init__(self, reason: str, *, warning: str = "", note: str = "", denial: str = "") -> None:
        super().__init__(reason)
        self.warning = warning
        self.note = note
        self.denial = denial or reason


def controller_of(job: JsonObject) -> JsonValue:
    """Return the owner reference of the controller; None if there is none."""
    owners = list_at(job, "metadata", "ownerReferences")
    return next((owner for owner in owners if isinstance(owner, dict) and owner.get("controller") is True), None)


def has_managed_owner(job: JsonObject, surroundings: Surroundings) -> bool:
    """Return whether the controller of the job is of an enabled or an external type."""
    owner = controller_of(job)
    return owner is not None and _is_managed(text_at(owner, "apiVersion"), text_at(owner, "kind"), surroundings)


def managed_ancestor(job: JsonObject, surroundings: Surroundings) -> JsonObject | None:
    """Return the topmost owner that is managed by Kueue.

    Raises:
        OwnerError: An owner of a known type does not exist, owners own each other, or there are more than ten.
    """
    configuration = surroundings.configuration
    namespace = text_at(job, "metadata", "namespace") or configuration.default_namespace
    current, found = job, None
    seen = {(text_at(job, "apiVersion"), text_at(job, "kind"), text_at(job, "metadata", "name"))}
    while (owner := controller_of(current)) is not None:
        api_version, kind, name = text_at(owner, "apiVersion"), text_at(owner, "kind"), text_at(owner, "name")
        managed = _is_managed(api_version, kind, surroundings)
        if (
            not managed
            and (api_version, kind) not in surroundings.frameworks
            and (api_version, kind) != _WALKED_THROUGH
        ):
            break
        parent = surroundings.by_key.get((api_version, kind, namespace, name))
        if parent is None:
            owner_name = ObjectRef(kind, name, namespace)
            raise OwnerError(
                f"its owner {owner_name} is not among the manifests",
                denial=f"workload owner not found: {owner_name}",
            )
        has_other_uid = text_at(parent, "metadata", "uid") != text_at(owner, "uid")
        if has_other_uid and surroundings.has("AncestorUidsChecked"):
            break
        if managed and surroundings.is_meant_for_kueue(parent):
            found = parent
        if (api_version, kind, name) in seen:
            raise OwnerError("cyclic ownership")
        if len(seen) > _MAX_HOPS:
            note = "Terminated search for Kueue-managed Job because ancestor depth exceeded limit of"
            raise OwnerError(
                "managed owner chain limit reached", warning="JobNestingTooDeep", note=f"{note} {_MAX_HOPS}"
            )
        seen.add((api_version, kind, name))
        current = parent
    return found


def should_wait(job: JsonObject, surroundings: Surroundings, *, is_webhook: bool = False) -> bool:
    """Return whether a job has to wait for admission, rather than be ignored or belong to another (rules/10 §2.2).

    Args:
        job: The job.
        surroundings: The objects around it.
        is_webhook: Whether a webhook asks: it ignores jobs that are being deleted, whose owners may be gone already.

    Raises:
        OwnerError: See `managed_ancestor`.
    """
    is_deleted = bool(text_at(job, "metadata", "deletionTimestamp"))
    if is_webhook and is_deleted and surroundings.enabled("SkipAncestorCheckForDeletedWorkloads"):
        return False
    if managed_ancestor(job, surroundings) is not None:
        return False
    is_selected = surroundings.is_selected(text_at(job, "metadata", "namespace"))
    return bool(labels_of(job).get(QUEUE_LABEL)) or (
        surroundings.configuration.manage_jobs_without_queue_name and is_selected
    )


def _is_managed(api_version: str, kind: str, surroundings: Surroundings) -> bool:
    if surroundings.is_enabled(surroundings.frameworks.get((api_version, kind), "")):
        return True
    group, slash, version = api_version.partition("/")
    return bool(slash) and f"{kind}.{version}.{group}" in surroundings.configuration.external_frameworks
