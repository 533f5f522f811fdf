"""Chooses among the slices of elastic jobs: which stands for the current size, which end (rules/10 §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore.jobs.context import JobsConfiguration, annotations_of
from kueuecore.jobs.field_paths import with_value
from kueuecore.jobs.injection import SLICE_REPLACEMENT_ANNOTATION
from kueuecore.jobs.job_status import has_condition
from kueuecore.jobs.sync_steps import Action, WorkloadStep

__all__ = ["ChosenSlice", "chosen_slice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenSlice:
    """The slice that represents a job.

    Args:
        workload: The updated slice; None if a new one is needed.
        steps: The changes of slices.
        is_compatible: Whether its pod sets are those of the job.
    """

    workload: JsonObject | None = None
    steps: Sequence[WorkloadStep] = ()
    is_compatible: bool = True


def chosen_slice(
    live: Sequence[JsonObject], counts: Mapping[str, int], configuration: JobsConfiguration
) -> ChosenSlice:
    """Return the slice for a job of some size.

    Args:
        live: Its unfinished slices, the oldest first.
        counts: How many pods the job has by pod set.
        configuration: Has the changes of Kueue.
    """
    if not live:
        return ChosenSlice()
    if configuration.has("EvictedSlicesWaitForTheirPods") and (stopping := _stopping(live)) is not None:
        return ChosenSlice(workload=stopping)
    chosen, steps = (live[0], []) if len(live) == 1 else _normalized(live, configuration)
    if chosen is None:
        return ChosenSlice(steps=steps)
    held = {
        text_at(pod_set, "name"): int_at(pod_set, "count", default=1) for pod_set in list_at(chosen, "spec", "podSets")
    }
    if held.keys() != counts.keys():
        return ChosenSlice(steps=steps, is_compatible=False)
    if held == counts:
        return ChosenSlice(workload=chosen, steps=steps)
    is_smaller = all(counts[name] <= count for name, count in held.items())
    if has_condition(chosen, "QuotaReserved") and not is_smaller:
        return ChosenSlice(steps=steps)
    pod_sets: list[JsonValue] = [
        {**object_at(pod_set), "count": counts[text_at(pod_set, "name")]}
        for pod_set in list_at(chosen, "spec", "podSets")
    ]
    resized = with_value(chosen, ("spec", "podSets"), pod_sets)
    return ChosenSlice(workload=resized, steps=[*steps, WorkloadStep(Action.UPDATE, resized)])


def _stopping(live: Sequence[JsonObject]) -> JsonObject | None:
    """Return the evicted slice whose pods may still run on its quota; None if another one has taken over."""
    if len(live) == 1 or any(
        has_condition(manifest, "Admitted") and not has_condition(manifest, "Evicted") for manifest in live
    ):
        return None
    return next(
        (manifest for manifest in reversed(live) if has_condition(manifest, "Evicted") and _holds(manifest)), None
    )


def _normalized(
    live: Sequence[JsonObject], configuration: JobsConfiguration
) -> tuple[JsonObject | None, list[WorkloadStep]]:
    """Return the slice that counts among several, and the ends of those that are neither it nor wait behind it."""
    there = [manifest for manifest in live if not has_condition(manifest, "Evicted")]
    replacements: dict[str, JsonObject] = {}
    for manifest in there:
        old = annotations_of(manifest).get(SLICE_REPLACEMENT_ANNOTATION)
        if old is not None and (old not in replacements or (_holds(manifest) and not _holds(replacements[old]))):
            replacements[old] = manifest
    reserved = [manifest for manifest in there if _holds(manifest) and not _holds(replacements.get(_key(manifest), {}))]
    latest = reserved[-1] if reserved else None
    chosen = latest
    if latest is None:
        chosen = there[-1] if there else None
    elif _key(latest) in replacements:
        chosen = replacements[_key(latest)]
    kept = {_key(entry) for entry in (chosen, latest) if entry is not None}
    steps = []
    for manifest in live:
        if _key(manifest) in kept:
            continue
        if _key(manifest) in replacements and configuration.has("ReplacedSlicesAreNamed"):
            reason, message = "WorkloadSliceReplaced", "Replaced to accommodate a new workload slice"
        else:
            reason, message = "OutOfSync", "The workload slice is out of sync with its parent job"
        steps.append(WorkloadStep(Action.FINISH, manifest, reason, message))
    return chosen, steps


def _holds(workload: JsonObject) -> bool:
    return has_condition(workload, "QuotaReserved")


def _key(workload: JsonObject) -> str:
    return f"{text_at(workload, 'metadata', 'namespace')}/{text_at(workload, 'metadata', 'name')}"
