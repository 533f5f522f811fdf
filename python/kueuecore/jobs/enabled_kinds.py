"""Which kinds of jobs are managed: those of enabled integrations whose gates are on (rules/11 §2)."""

from __future__ import annotations

from kueuecore._json import JsonObject
from kueuecore.jobs.context import Surroundings, annotations_of
from kueuecore.jobs.integration import Integration
from kueuecore.jobs.pod import SUSPENDED_BY_PARENT

__all__ = ["why_off"]


def why_off(job: JsonObject, integration: Integration, surroundings: Surroundings) -> str:
    """Why nobody looks at jobs of this kind; empty if they are managed."""
    framework, gate = integration.framework, integration.feature_gate
    # Pods are enabled by what makes them, too, if only these.
    parent = annotations_of(job).get(SUSPENDED_BY_PARENT, "") if framework == "pod" else ""
    is_enabled = surroundings.is_enabled(framework) or surroundings.is_enabled(parent)
    is_gated = bool(gate) and not surroundings.enabled(gate)
    if not is_enabled:
        needed = f", and turn on the gate {gate}" if is_gated else ""
        return f"the integration {framework} is not enabled: name it in integrations.frameworks{needed}"
    return f"the integration {framework} needs the gate {gate}, which is off" if is_gated else ""
