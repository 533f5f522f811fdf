"""Sets the condition Active of AdmissionChecks where a controller would, or where that is assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.errors import ManifestError
from kueuecore.findings.topology_objects import KUEUE_GROUP
from kueuecore.manifests import Manifest, located
from kueuecore.times import format_time
from kueuecore.world import World

__all__ = ["READ_KINDS", "activity_of", "as_active", "is_check", "with_active_checks"]

READ_KINDS = frozenset({"ProvisioningRequestConfig"})
"""Kinds that no engine reads, but that decide whether checks are active."""


def with_active_checks(world: World, *, now: int, assumes_active: bool = False) -> World:
    """Set the condition Active of checks that have none, as Kueue's provisioning controller would.

    Args:
        world: The objects; those of a dump have their conditions already.
        now: The time of the conditions, in nanoseconds since 1970.
        assumes_active: Set it for checks of other controllers, too.

    Raises:
        ManifestError: A ProvisioningRequestConfig is wrong.
    """
    if not any(map(is_check, world.manifests)):
        return world
    manifests = world.manifests if world.trusted else _of_provisioning(world.manifests, now)
    if assumes_active:
        manifests = [as_active(manifest, now=now) for manifest in manifests]
    return replace(world, manifests=tuple(manifests))


def as_active(manifest: Manifest, *, now: int) -> Manifest:
    """Return an AdmissionCheck without a condition Active as an active one; everything else as it is."""
    if not is_check(manifest) or activity_of(manifest.object):
        return manifest
    from kueuecore.check_controllers import with_activity  # slow, and most states have no checks
    from kueuecore.checks import Activity

    active = Activity(is_active=True, reason="Active", message="The admission check is active")
    changed = with_activity(manifest.object, active, now=format_time(now))
    return manifest if changed is None else replace(manifest, object=changed)


def activity_of(check: JsonObject) -> JsonObject:
    """Return the condition Active of an AdmissionCheck; an empty object if it has none."""
    return next(
        (
            object_at(condition)
            for condition in list_at(check, "status", "conditions")
            if text_at(condition, "type") == "Active"
        ),
        {},
    )


def is_check(manifest: Manifest) -> bool:
    """Return whether an object is an AdmissionCheck."""
    plain = manifest.object
    return text_at(plain, "kind") == "AdmissionCheck" and text_at(plain, "apiVersion").startswith(KUEUE_GROUP)


def _of_provisioning(manifests: Sequence[Manifest], now: int) -> list[Manifest]:
    from kueuecore.check_controllers import CheckControllers, with_activity  # slow, and most states have no checks
    from kueuecore.provisioning import ProvisioningController

    checking = CheckControllers((ProvisioningController(),))
    for manifest in manifests:
        try:
            checking.observe(manifest.object, now=now)
        except ManifestError as error:
            raise located(error.mapped(lambda problem: replace(problem, index=0)), [manifest]) from None

    def with_condition(manifest: Manifest) -> Manifest:
        asks = is_check(manifest) and not activity_of(manifest.object)
        activity = checking.activity(manifest.object, now=now) if asks else None
        changed = activity and with_activity(manifest.object, activity, now=format_time(now))
        return replace(manifest, object=changed) if changed else manifest

    return list(map(with_condition, manifests))
