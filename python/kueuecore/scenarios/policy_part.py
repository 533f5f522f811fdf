"""The parts of a scenario that say who gets copies, and which jobs go on from the manager to its workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kueuecore._json import JsonObject
from kueuecore.multikueue import AllAtOnce, Dispatcher, Incremental
from kueuecore.multikueue.policies import (
    Filtered,
    JsonPatchError,
    Overflow,
    Overridden,
    Score,
    Scored,
    TakingBack,
    by_cost,
    by_data,
    by_free_quota,
    by_priority,
    by_weight,
)
from kueuecore.multikueue.policies.json_patch import check_json_patch
from kueuecore.scenarios.fields import Fields
from kueuecore.scenarios.own_policy import own_policy

__all__ = ["read_overflow", "read_policy"]

_SECOND_NS = 1_000_000_000
_VALUED: Mapping[str, Callable[[Mapping[str, float] | None], Score]] = {
    "priority": by_priority,
    "cost": by_cost,
    "weight": by_weight,
}
_CHOICES = ("all-at-once", "incremental", *_VALUED, "data", "free-quota")


def read_overflow(section: Fields) -> Overflow:
    """Which jobs go on to workers, as it stands in the file."""
    queues = section.part("queues")
    if queues is None:
        section.complain("queues", "Required value", "say `queues: {here: workers}`: from which LocalQueue to which")
    found = {} if queues is None else {name: queues.text(name) for name in queues.plain}
    overflow = Overflow(found, patience_ns=_ns(section.seconds("patience", 0.0)) or 0)
    section.end()
    return overflow


def read_policy(section: Fields, workers: Sequence[str], folder: Path) -> Dispatcher:
    """Who chooses, and around it what it leaves to others: constraints, taking back, overrides.

    Args:
        section: Its fields.
        workers: The names of the workers.
        folder: Where a policy of one's own is looked for.
    """
    dispatcher = _choosing(section, workers, folder)
    if section.truth("constraints", default=False):
        dispatcher = Filtered(dispatcher)
    admit, start = section.seconds("admitWithin"), section.seconds("startWithin")
    exclude, most = section.seconds("excludeFor", 600.0), section.whole("mostAttempts", 0)
    if admit is not None or start is not None:
        dispatcher = TakingBack(
            inner=dispatcher,
            admit_ns=_ns(admit),
            start_ns=_ns(start),
            exclude_ns=_ns(exclude) or 0,
            most_attempts=most or None,
        )
    if overrides := section.part("overrides"):
        patches: dict[str, list[JsonObject]] = {}
        for name in overrides.plain:
            if name not in workers:
                overrides.complain(name, "no worker of this name", f"name one of {', '.join(workers)}")
            operations = [dict(it.plain) for it in overrides.parts(name)]
            try:
                check_json_patch(operations)
                patches[name] = operations
            except JsonPatchError as error:
                overrides.complain(name, str(error), "write {op: replace, path: /spec/..., value: ...}, as in RFC 6902")
        dispatcher = Overridden(dispatcher, patches)
    section.end()
    return dispatcher


def _choosing(section: Fields, workers: Sequence[str], folder: Path) -> Dispatcher:
    if "use" in section.plain:
        return own_policy(section, folder)
    choose = section.text("choose", "all-at-once", one_of=_CHOICES)
    values = section.part("values")
    numbers = None if values is None else {name: values.number(name) for name in values.plain}
    for name in numbers or ():
        if values is not None and name not in workers:
            values.complain(name, "no worker of this name", f"name one of {', '.join(workers)}")
    resource, prefers_room = section.text("resource", "cpu"), section.truth("prefersRoom", default=False)
    is_incremental = choose == "incremental"
    step_size = section.whole("stepSize", 3 if is_incremental else 1, least=1)
    round_ns = _ns(section.seconds("round", 300.0)) or 0
    if is_incremental:
        return Incremental(step_size=step_size, round_ns=round_ns)
    if choose == "all-at-once":
        return AllAtOnce()
    scores: dict[str, Score] = {"data": by_data(), "free-quota": by_free_quota(resource)}
    score = scores[choose] if choose in scores else _VALUED[choose](numbers)
    return Scored(score=score, step_size=step_size, round_ns=round_ns, prefers_room=prefers_room)


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * _SECOND_NS)
