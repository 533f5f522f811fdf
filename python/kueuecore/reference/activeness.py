"""Which ClusterQueues may admit, and what is said of the others (rules/02 §5)."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore.reference.objects import ClusterQueue
from kueuecore.reference.settings import Json, Settings

__all__ = ["CheckFacts", "check_facts", "inactive_because", "readiness"]

CheckFacts = tuple[bool, str]
"""Is a check active, and whose is it?"""

_MULTIKUEUE = "kueue.x-k8s.io/multikueue"
_PROVISIONING = "kueue.x-k8s.io/provisioning-request"


def check_facts(manifest: Json) -> CheckFacts:
    """Read an AdmissionCheck."""
    conditions = (manifest.get("status") or {}).get("conditions") or ()
    is_active = any(c["type"] == "Active" and c["status"] == "True" for c in conditions)
    return is_active, (manifest.get("spec") or {}).get("controllerName", "")


def inactive_because(
    queue: ClusterQueue, *, flavors: Mapping[str, Json], checks: Mapping[str, CheckFacts], settings: Settings
) -> list[tuple[str, str]]:
    """Reason and text for each thing that keeps it from admitting (rules/02 §5)."""
    found: list[tuple[str, str]] = []
    if queue.stop_policy != "None":
        found.append(("Stopped", "is stopped"))
    named = list(dict.fromkeys(flavor for group in queue.groups for flavor in group.flavors))
    if missing := [flavor for flavor in named if flavor not in flavors]:
        found.append(("FlavorNotFound", f"references missing ResourceFlavor(s): {','.join(missing)}"))
    known = {name: checks[name] for name in sorted(queue.checks) if name in checks}
    if missing := [name for name in sorted(queue.checks) if name not in checks]:
        found.append(("AdmissionCheckNotFound", f"references missing AdmissionCheck(s): {','.join(missing)}"))
    if idle := [name for name, (is_active, _) in known.items() if not is_active]:
        found.append(("AdmissionCheckInactive", f"references inactive AdmissionCheck(s): {','.join(idle)}"))
    multikueue = [name for name, (_, controller) in known.items() if controller == _MULTIKUEUE]
    provisioning = [name for name, (_, controller) in known.items() if controller == _PROVISIONING]
    if len(multikueue) > 1:
        text = "Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: "
        found.append(("MultipleMultiKueueAdmissionChecks", text + ",".join(multikueue)))
    if partial := [name for name in multikueue if queue.checks[name] != queue.flavors]:
        text = f"Cannot specify MultiKueue AdmissionCheck per flavor, found: {','.join(partial)}"
        found.append(("MultiKueueAdmissionCheckAppliedPerFlavor", text))
    if multikueue and provisioning:
        text = "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found: "
        found.append(("MultiKueueWithProvisioningRequest", text + ", ".join([*multikueue, *provisioning])))
    return found


def readiness(
    queue: ClusterQueue | None,
    *,
    is_terminating: bool,
    flavors: Mapping[str, Json],
    checks: Mapping[str, CheckFacts],
    settings: Settings,
) -> tuple[bool, str, str]:
    """Whether a ClusterQueue is Active, with reason and message (rules/02 §5)."""
    if queue is None:
        return False, "NotFound", "ClusterQueue not found"
    if is_terminating:
        return False, "Terminating", "Can't admit new workloads; clusterQueue is terminating"
    if found := inactive_because(queue, flavors=flavors, checks=checks, settings=settings):
        return False, found[0][0], f"Can't admit new workloads: {', '.join(text for _, text in found)}."
    return True, "Ready", "Can admit new workloads"
