"""The timeouts for its pods that a job has of its own, in an annotation (rules/07 §6, rules/10 §4.4)."""

from __future__ import annotations

import json

from kueuecore._json import JsonObject
from kueuecore.errors import Problem
from kueuecore.jobs.context import PREFIX, JobsConfiguration, annotations_of
from kueuecore.jobs.field_paths import with_value, without_value
from kueuecore.jobs.rejections import immutable, invalid

__all__ = ["OWN_TIMEOUTS", "changed_timeouts", "own_timeouts_followed", "timeout_problems"]

OWN_TIMEOUTS = f"{PREFIX}wait-for-pods-ready"
_GATE = "WorkloadLevelWaitForPodsReady"
_FIELD = f"metadata.annotations[{OWN_TIMEOUTS}]"
_LEAST = {"timeoutSeconds": 1, "recoveryTimeoutSeconds": 0}


def timeout_problems(job: JsonObject, configuration: JobsConfiguration) -> list[Problem]:
    """Return what is wrong with the timeouts of a job."""
    text = annotations_of(job).get(OWN_TIMEOUTS)
    if text is None or not configuration.enabled(_GATE):
        return []
    remedy = 'write {"timeoutSeconds": 600, "recoveryTimeoutSeconds": 300}'
    try:
        own = json.loads(text)
    except ValueError:
        own = None
    if not isinstance(own, dict):
        return [invalid(_FIELD, text, "must be a JSON object", remedy=remedy)]
    problems = []
    for key, value in own.items():
        if key not in _LEAST:
            problems.append(invalid(_FIELD, text, f"unknown field {key}", remedy=remedy))
        elif type(value) is not int or value < _LEAST[key]:
            problems.append(invalid(_FIELD, text, f"{key} must be a whole number of at least {_LEAST[key]}"))
        elif value > configuration.most_own_timeout_s:
            detail = f"{key} must be less than or equal to {configuration.most_own_timeout_s}"
            problems.append(invalid(_FIELD, text, detail))
    if "recoveryTimeoutSeconds" in own and "timeoutSeconds" not in own:
        problems.append(invalid(_FIELD, text, "recoveryTimeoutSeconds requires timeoutSeconds", remedy=remedy))
    return problems


def changed_timeouts(old: JsonObject, new: JsonObject, configuration: JobsConfiguration) -> list[Problem]:
    """Return that a job which is not suspended has other timeouts, which is not allowed."""
    if not configuration.enabled(_GATE):
        return []
    return immutable(_FIELD, *(annotations_of(entry).get(OWN_TIMEOUTS, "") for entry in (new, old)))


def own_timeouts_followed(job: JsonObject, workload: JsonObject, configuration: JobsConfiguration) -> JsonObject:
    """Return a Workload with the timeouts of its job."""
    text = annotations_of(job).get(OWN_TIMEOUTS)
    if not configuration.enabled(_GATE) or text == annotations_of(workload).get(OWN_TIMEOUTS):
        return workload
    path = ("metadata", "annotations", OWN_TIMEOUTS)
    return without_value(workload, path) if text is None else with_value(workload, path, text)
