"""The history of a workload whose every version was seen, such as one of a fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from kueuecore._json import text_at
from kueuecore.histories.conditions import stage_of, steps_of_workload
from kueuecore.histories.facts import Found
from kueuecore.histories.merging import in_order, merged
from kueuecore.histories.timeline import Timeline, What
from kueuecore.histories.uids import Uids
from kueuecore.histories.wording import step_of
from kueuecore.scenarios.outcomes import WorkloadVersion

__all__ = ["history_of_versions"]

_NONE: Mapping[str, str] = MappingProxyType({})


def history_of_versions(versions: Sequence[WorkloadVersion], *, keys: Mapping[str, str] = _NONE) -> Timeline:
    """Return what has happened to a workload, from all its versions, and those of its copies on workers.

    Nothing is lost between two versions, so nothing is missing; times are those at which a version was stored.

    Args:
        versions: The versions in their order; those without a cluster are of the manager.
        keys: The `namespace/name` of Workloads by UID.

    Raises:
        ValueError: There is no version.
    """
    if not versions:
        raise ValueError("versions: there is none")
    uids = Uids((), keys)
    found: list[Found] = []
    # By cluster, where the Workload is, and what its versions have said so far.
    places: dict[str, str] = {}
    said: dict[str, set[tuple[object, ...]]] = {}
    for version in versions:
        known = said.setdefault(version.cluster, set())
        if version.is_deleted:
            new = [Found(at=version.time, what=What.DELETED, sources=("deletion",))]
            known.clear()
        else:
            steps = [step for step in steps_of_workload(version.object)[0] if step.at is not None]
            new = [replace(step, at=version.time) for step in steps if _what(step) not in known]
            said[version.cluster] = {*map(_what, steps)}
        ordered, places[version.cluster] = in_order(merged(new), places.get(version.cluster, "pending"))
        found += (replace(step, facts=replace(step.facts, place=version.cluster)) for step in ordered)
    ours = [version for version in versions if not version.cluster] or versions
    last = ours[-1]
    return Timeline(
        namespace=text_at(last.object, "metadata", "namespace"),
        name=text_at(last.object, "metadata", "name"),
        stage="Deleted" if last.is_deleted else stage_of(last.object),
        steps=tuple(step_of(replace(step, facts=uids.resolved(step.facts))) for step in found),
    )


def _what(step: Found) -> tuple[object, ...]:
    """What a step says, to tell whether an earlier version said it too."""
    if step.what is What.CREATED:
        return (step.what,)
    if step.what is What.DEACTIVATED:
        # First the condition DeactivationTarget says so, then Evicted.
        return step.what, step.facts.cause
    return step.what, step.at, step.reason, step.message, step.facts
