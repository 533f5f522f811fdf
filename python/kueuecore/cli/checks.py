"""AdmissionChecks for the command: what their controllers report."""

from __future__ import annotations

from dataclasses import dataclass

from kueuecore._json import text_at
from kueuecore.findings.active_checks import activity_of, is_check
from kueuecore.world import World

__all__ = ["CheckRow", "check_rows"]


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


def check_rows(world: World) -> tuple[CheckRow, ...]:
    """The AdmissionChecks, sorted by name; the last one wins where a name is given twice."""
    checks = [manifest.object for manifest in world.of_kind("AdmissionCheck") if is_check(manifest)]
    rows = {text_at(check, "metadata", "name"): check for check in checks}
    found = []
    for name, check in sorted(rows.items()):
        active = activity_of(check)
        reported = (text_at(active, key) for key in ("status", "reason", "message"))
        found.append(CheckRow(name, text_at(check, "spec", "controllerName"), *reported))
    return tuple(found)
