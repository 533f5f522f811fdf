"""The copy of a Workload on a worker: how it is made, and whether it is still in sync (rules/06 §4.2, §5)."""

from __future__ import annotations

import hashlib
import json

from kueuecore._json import JsonObject, int_at, object_at, text_at, texts_at
from kueuecore._patches import patched
from kueuecore.jobs.context import JOB_UID_LABEL
from kueuecore.multikueue.adapters import clone_metadata, with_text
from kueuecore.multikueue.dispatcher_protocol import Override
from kueuecore.multikueue.settings import MULTIKUEUE, ORIGIN_LABEL, MultiKueueSettings

__all__ = ["copy_of", "has_changed_priority", "is_in_sync", "job_override", "same_spec"]

_OVERRIDE = "multikueue.kueuecore/override"


def copy_of(
    workload: JsonObject, settings: MultiKueueSettings, *, is_gated: bool, override: Override | None = None
) -> JsonObject:
    """Return the Workload to create on a worker.

    Args:
        workload: The Workload on the manager.
        settings: The settings, for the origin and the gates.
        is_gated: Whether it has to wait for its gate before it may preempt; only with orchestrated preemption.
        override: What differs on that worker.
    """
    metadata = clone_metadata(workload)
    labels = {key: text for key, text in texts_at(metadata, "labels").items() if key != JOB_UID_LABEL}
    spec = dict(object_at(workload, "spec"))
    if settings.has_orchestrated_preemption and is_gated:
        # Each cluster sets its own gates.
        spec["preemptionGates"] = [{"name": MULTIKUEUE}]
    copy: JsonObject = {
        "apiVersion": text_at(workload, "apiVersion"),
        "kind": "Workload",
        "metadata": {**metadata, "labels": {**labels, ORIGIN_LABEL: settings.origin}},
        "spec": spec,
    }
    if override is None:
        return copy
    note = json.dumps({"spec": _digest(workload), "job": override.job}, sort_keys=True)
    return with_text(patched(copy, override.workload), "annotations", _OVERRIDE, note)


def job_override(copy: JsonObject) -> JsonObject:
    """Return the merge patch for the job of a copy that was made with an override; empty without one."""
    return object_at(_note(copy), "job")


def is_in_sync(workload: JsonObject, copy: JsonObject) -> bool:
    """Return whether the spec of a copy still matches its original, ignoring overrides and gates."""
    note = _note(copy)
    if note:
        return text_at(note, "spec") == _digest(workload)
    return same_spec(workload, copy)


def same_spec(one: JsonObject, other: JsonObject) -> bool:
    """Return whether two Workloads ask for the same, ignoring preemption gates."""
    return _spec(one) == _spec(other)


def has_changed_priority(workload: JsonObject, copy: JsonObject) -> bool:
    """Return whether the priority of a Workload, set by a class of Kueue's own, differs from that of its copy."""
    here, there = (object_at(entry, "spec", "priorityClassRef") for entry in (workload, copy))
    if text_at(here, "kind") == "PriorityClass" or text_at(there, "kind") != "WorkloadPriorityClass":
        return False
    if text_at(there, "name") and text_at(here, "name") != text_at(there, "name"):
        return True
    return int_at(workload, "spec", "priority") != int_at(copy, "spec", "priority")


def _note(copy: JsonObject) -> JsonObject:
    text = texts_at(copy, "metadata", "annotations").get(_OVERRIDE)
    try:
        return object_at(json.loads(text)) if text else {}
    except (ValueError, RecursionError):
        # Written by somebody else.
        return {}


def _spec(workload: JsonObject) -> JsonObject:
    # An API server defaults `active` to true.
    return {"active": True, **object_at(workload, "spec"), "preemptionGates": None}


def _digest(workload: JsonObject) -> str:
    return hashlib.sha256(json.dumps(_spec(workload), sort_keys=True).encode()).hexdigest()
