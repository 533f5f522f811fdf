"""The MultiKueueConfig of a check: which workers it lists, and whether the check is active (rules/06 §3)."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._conditions import is_true, with_condition
from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.multikueue.settings import MULTIKUEUE

__all__ = [
    "ConfigError",
    "check_status",
    "clusters_of",
    "config_of_check",
    "is_of_multikueue",
    "multikueue_check",
    "parameters_of",
]

_GROUP = "kueue.x-k8s.io"
_KIND = "MultiKueueConfig"


class ConfigError(Exception):
    """Raised if the parameters of a check do not lead to a MultiKueueConfig."""

    def __init__(self, message: str, *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.is_missing = is_missing


def is_of_multikueue(check: JsonObject | None) -> bool:
    """Return whether an AdmissionCheck belongs to MultiKueue."""
    return text_at(check, "spec", "controllerName") == MULTIKUEUE


def parameters_of(check: JsonObject) -> JsonObject:
    """Return the parameters of an AdmissionCheck; empty if it has none or is not one of MultiKueue."""
    return object_at(check, "spec", "parameters") if is_of_multikueue(check) else {}


def multikueue_check(workload: JsonObject, checks: Mapping[str, JsonObject]) -> str:
    """Return the MultiKueue check of a Workload: the first in its status; empty if it has none."""
    for check in list_at(workload, "status", "admissionChecks"):
        if is_of_multikueue(checks.get(text_at(check, "name"))):
            return text_at(check, "name")
    return ""


def config_of_check(check: JsonObject, configs: Mapping[str, JsonObject]) -> JsonObject:
    """Return the MultiKueueConfig that an AdmissionCheck names.

    Raises:
        ConfigError: It names none, or none of that name exists.
    """
    parameters = object_at(check, "spec").get("parameters")
    if not isinstance(parameters, dict):
        raise ConfigError("missing parameters reference")
    name, group, kind = (text_at(parameters, key) for key in ("name", "apiGroup", "kind"))
    bad = "bad parameters reference"
    if not name:
        raise ConfigError(f"empty name: {bad}")
    if group != _GROUP:
        raise ConfigError(f'wrong group "{group}", expecting "{_GROUP}": {bad}')
    if kind != _KIND:
        raise ConfigError(f'wrong kind "{kind}", expecting "{_KIND}": {bad}')
    if name not in configs:
        raise ConfigError(f'MultiKueueConfig.{_GROUP} "{name}" not found', is_missing=True)
    return configs[name]


def clusters_of(config: JsonObject) -> tuple[str, ...]:
    """Return the workers of a MultiKueueConfig, in its order."""
    return tuple(cluster for cluster in list_at(config, "spec", "clusters") if isinstance(cluster, str))


def check_status(
    check: JsonObject, configs: Mapping[str, JsonObject], clusters: Mapping[str, JsonObject], now: int
) -> JsonObject:
    """Return the status of an AdmissionCheck of MultiKueue, with condition Active.

    Args:
        check: The stored AdmissionCheck.
        configs: MultiKueueConfigs by name.
        clusters: MultiKueueClusters by name.
        now: The time.
    """
    active, reason, message = True, "Active", "The admission check is active"
    try:
        wanted = clusters_of(config_of_check(check, configs))
    except ConfigError as error:
        active, reason, message = False, "BadConfig", f"Cannot load the AdmissionChecks parameters: {error}"
    else:
        missing = [name for name in wanted if name not in clusters]
        inactive = [name for name in wanted if name in clusters and not is_true(clusters[name], "Active")]
        if n_unusable := len(missing) + len(inactive):
            active = n_unusable < len(wanted)
            reason = "SomeActiveClusters" if active else "NoUsableClusters"
            parts = [("Missing", missing), ("Inactive", inactive)]
            message = ", ".join(f"{which} clusters: [{' '.join(names)}]" for which, names in parts if names)
    return with_condition(check, "Active", is_true=active, reason=reason, message=message, now=now)
