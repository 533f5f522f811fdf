"""AdmissionChecks for the command: which are active, and what their controllers report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kueuecore._json import list_at, text_at
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest, located
from kueuecore.times import format_time
from kueuecore.world import World

if TYPE_CHECKING:
    from kueuecore.check_controllers import CheckControllers

__all__ = ["READ_KINDS", "CheckRow", "check_rows", "with_active_checks"]

READ_KINDS = frozenset({"ProvisioningRequestConfig"})
"""Kinds that no engine reads, but that decide whether checks are active."""
_OF_CHECKS = READ_KINDS | {"AdmissionCheck"}


@dataclass(frozen=True, slots=True)
class CheckRow:
    """An AdmissionCheck and its condition Active.

    Args:
        name: Its name.
        controller_name: `spec.controllerName`.
        active: Status of the condition; empty if there is none.
        reason: Its reason.
        message: Its message.
    """

    name: str
    controller_name: str
    active: str
    reason: str
    message: str


def with_active_checks(world: World, *, now: int) -> World:
    """Add the condition Active that Kueue's provisioning controller would write to checks that have none.

    Raises:
        ManifestError: A ProvisioningRequestConfig is wrong.
    """
    if world.trusted or not any(text_at(it.object, "kind") in _OF_CHECKS for it in world.manifests):
        return world
    # Slow, and most states have no checks.
    from kueuecore.check_controllers import CheckControllers
    from kueuecore.provisioning import ProvisioningController

    checking = CheckControllers((ProvisioningController(),))
    for manifest in world.manifests:
        try:
            checking.observe(manifest.object, now=now)
        except ManifestError as error:
            raise located(error.mapped(lambda problem: replace(problem, index=0)), [manifest]) from None
    manifests = tuple(_with_activity(it, checking, now) for it in world.manifests)
    return replace(world, manifests=manifests)


def check_rows(world: World) -> tuple[CheckRow, ...]:
    """The AdmissionChecks, sorted by name; the last one wins where a name is given twice."""
    checks = [it.object for it in world.manifests if _is_check(it)]
    rows = {text_at(it, "metadata", "name"): it for it in checks}
    found = []
    for name, check in sorted(rows.items()):
        conditions = (it for it in list_at(check, "status", "conditions") if text_at(it, "type") == "Active")
        active = next(conditions, None)
        reported = (text_at(active, key) for key in ("status", "reason", "message"))
        found.append(CheckRow(name, text_at(check, "spec", "controllerName"), *reported))
    return tuple(found)


def _with_activity(manifest: Manifest, checking: CheckControllers, now: int) -> Manifest:
    has_said = any(text_at(it, "type") == "Active" for it in list_at(manifest.object, "status", "conditions"))
    if not _is_check(manifest) or has_said:
        return manifest
    activity = checking.activity(manifest.object, now=now)
    if activity is None:
        return manifest
    from kueuecore.check_controllers import with_activity

    changed = with_activity(manifest.object, activity, now=format_time(now))
    return manifest if changed is None else replace(manifest, object=changed)


def _is_check(manifest: Manifest) -> bool:
    api_version, kind = text_at(manifest.object, "apiVersion"), text_at(manifest.object, "kind")
    return kind == "AdmissionCheck" and api_version.startswith("kueue.x-k8s.io/")
