"""Reads, checks and finds ProvisioningRequestConfigs (rules/07 §4)."""

from __future__ import annotations

import random
from dataclasses import replace

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import object_ref
from kueuecore.objects import ProvisioningRequestConfig, RetryStrategy

__all__ = ["CONTROLLER_NAME", "config_of", "delay_seconds", "reference_problem"]

CONTROLLER_NAME = "kueue.x-k8s.io/provisioning-request"
"""`spec.controllerName` of the AdmissionChecks that request capacity."""
_GROUP, _KIND = "kueue.x-k8s.io", "ProvisioningRequestConfig"
_MAX_PARAMETERS, _MAX_VALUE, _MAX_RESOURCES, _MAX_LABELS = 100, 255, 100, 8
_INT32_MAX = 2**31 - 1
# Kueue adds up to this share of a delay at random.
_JITTER = 1e-4


def config_of(manifest: JsonObject) -> ProvisioningRequestConfig:
    """Read a config from its manifest, v1beta2 or v1beta1.

    Raises:
        ManifestError: An API server would refuse it.
    """
    if text_at(manifest, "apiVersion") == f"{_GROUP}/v1beta1":
        # The two versions have the same fields.
        manifest = {**manifest, "apiVersion": f"{_GROUP}/v1beta2"}
    ref = object_ref(manifest)
    try:
        config = ProvisioningRequestConfig.from_manifest(manifest)
    except ManifestError as error:
        raise error.mapped(lambda problem: replace(problem, object=ref)) from None
    problems = _problems(config)
    if problems:
        raise ManifestError(
            Problem(message, field=field, remedy=remedy, object=ref) for field, message, remedy in problems
        )
    return config


def reference_problem(check: JsonObject) -> str:
    """Return the problem with an AdmissionCheck's reference to its config, in Kueue's words; empty if none."""
    reference = object_at(check, "spec").get("parameters")
    if reference is None:
        return "missing parameters reference"
    if not text_at(reference, "name"):
        return "empty name: bad parameters reference"
    group, kind = text_at(reference, "apiGroup"), text_at(reference, "kind")
    if group != _GROUP:
        return f'wrong group "{group}", expecting "{_GROUP}": bad parameters reference'
    if kind != _KIND:
        return f'wrong kind "{kind}", expecting "{_KIND}": bad parameters reference'
    return ""


def delay_seconds(strategy: RetryStrategy, attempt: int, *, seed: str | None = None) -> int:
    """Return how long to wait before a retry, in whole seconds (rules/07 §4.2).

    The first delay is the base, whatever the maximum; each further one is doubled, up to the maximum; 0 means no
    maximum. Kueue adds up to 0.01 % at random; without a seed nothing is added.

    Args:
        strategy: Base and maximum.
        attempt: Which retry, from 1.
        seed: The seed of the random part.

    Example:
        >>> [delay_seconds(RetryStrategy(backoff_base_seconds=60, backoff_max_seconds=200), n) for n in (1, 2, 3)]
        [60, 120, 200]
    """
    base, most = strategy.backoff_base_seconds, strategy.backoff_max_seconds
    # Doubling more often changes nothing.
    seconds = base << min(max(attempt, 1) - 1, 31)
    if attempt > 1:
        seconds = min(seconds, most or _INT32_MAX)
    if seed is not None:
        seconds += int(seconds * _JITTER * random.Random(f"{seed}/{attempt}").random())
    return min(seconds, _INT32_MAX)


def _problems(config: ProvisioningRequestConfig) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    if not config.provisioning_class_name:
        found.append(("spec.provisioningClassName", "Required value", "name a class, such as queued-provisioning"))
    if len(config.parameters) > _MAX_PARAMETERS:
        found.append(("spec.parameters", f"{len(config.parameters)} parameters", f"give at most {_MAX_PARAMETERS}"))
    found += [
        (f"spec.parameters[{name}]", f"{len(value)} characters", f"give at most {_MAX_VALUE}")
        for name, value in config.parameters.items()
        if len(value) > _MAX_VALUE
    ]
    if len(config.managed_resources) > _MAX_RESOURCES:
        n = len(config.managed_resources)
        found.append(("spec.managedResources", f"{n} resources", f"give at most {_MAX_RESOURCES}"))
    if len(config.node_selector_updates) > _MAX_LABELS:
        n = len(config.node_selector_updates)
        found.append(("spec.podSetUpdates.nodeSelector", f"{n} labels", f"give at most {_MAX_LABELS}"))
    strategy = config.retry_strategy
    for name, value in (
        ("backoffLimitCount", strategy.backoff_limit_count),
        ("backoffBaseSeconds", strategy.backoff_base_seconds),
        ("backoffMaxSeconds", strategy.backoff_max_seconds),
    ):
        if not 0 <= value <= _INT32_MAX:
            found.append((f"spec.retryStrategy.{name}", f"Invalid value: {value}", f"give 0 to {_INT32_MAX}"))
    return found
