"""Handles scheduling gates, behind which pods wait for admission."""

from __future__ import annotations

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.jobs.context import ELASTIC_JOB, JobsConfiguration, is_elastic
from kueuecore.jobs.field_paths import Path, value_at, with_value

__all__ = ["elastic_gated", "has_gate", "with_gate", "without_gate"]


def has_gate(spec: JsonObject, name: str) -> bool:
    """Return whether a pod spec has a gate."""
    return any(text_at(gate, "name") == name for gate in list_at(spec, "schedulingGates"))


def with_gate(spec: JsonObject, name: str) -> JsonObject:
    """Return the pod spec with a gate added, unless it has it."""
    if has_gate(spec, name):
        return spec
    return {**spec, "schedulingGates": [*list_at(spec, "schedulingGates"), {"name": name}]}


def without_gate(spec: JsonObject, name: str) -> JsonObject:
    """Return the pod spec without a gate."""
    if not has_gate(spec, name):
        return spec
    left = [gate for gate in list_at(spec, "schedulingGates") if text_at(gate, "name") != name]
    result = {**spec, "schedulingGates": left}
    return result if left else {key: value for key, value in result.items() if key != "schedulingGates"}


def elastic_gated(job: JsonObject, specs: list[Path], configuration: JobsConfiguration) -> JsonObject:
    """Return an elastic job whose pods wait for a slice behind a gate (rules/10 §2.2.5); other jobs unchanged.

    Args:
        job: The job.
        specs: The paths of its pod specs.
        configuration: Has the feature gates.
    """
    if is_elastic(job, configuration):
        for path in specs:
            job = with_value(job, path, with_gate(object_at(value_at(job, path)), ELASTIC_JOB))
    return job
