"""Decides which kinds of jobs are managed: those of enabled integrations whose gates are on (rules/11 §2)."""

from __future__ import annotations

from kueuecore._json import JsonObject
from kueuecore.jobs.context import Surroundings, annotations_of
from kueuecore.jobs.integration import Integration
from kueuecore.jobs.pod import SUSPENDED_BY_PARENT

__all__ = ["has_webhook", "why_off"]

# A kind that creates pods enables the webhook for all pods too.
_MAKE_PODS = ("deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset")


def why_off(job: JsonObject, integration: Integration, surroundings: Surroundings) -> str:
    """Return why jobs of this kind are not managed; empty if they are."""
    framework, gate = integration.framework, integration.feature_gate
    # Kinds that create pods enable those pods, and no others.
    parent = annotations_of(job).get(SUSPENDED_BY_PARENT, "") if framework == "pod" else ""
    is_enabled = surroundings.is_enabled(framework) or surroundings.is_enabled(parent)
    is_gated = bool(gate) and not surroundings.enabled(gate)
    if not is_enabled:
        needed = f", and turn on the gate {gate}" if is_gated else ""
        return f"the integration {framework} is not enabled: name it in integrations.frameworks{needed}"
    return f"the integration {framework} needs the gate {gate}, which is off" if is_gated else ""


def has_webhook(integration: Integration, surroundings: Surroundings) -> bool:
    """Return whether jobs of this kind go through Kueue's webhooks."""
    if integration.feature_gate and not surroundings.enabled(integration.feature_gate):
        return False
    frameworks = (integration.framework, *(_MAKE_PODS if integration.framework == "pod" else ()))
    return any(map(surroundings.is_enabled, frameworks))
