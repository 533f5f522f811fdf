"""Reads a scenario's dispatching policy, and which jobs overflow from the manager to its workers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kueuecore._fields import Fields, shown
from kueuecore._json import JsonObject
from kueuecore.multikueue import MAX_ATTEMPTS, AllAtOnce, Dispatcher, Incremental
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
from kueuecore.multikueue.policies.overflow import circle_of
from kueuecore.multikueue.policies.overrides import check_override
from kueuecore.scenarios.own_policy import own_policy
from kueuecore.times import SECOND_NS

__all__ = ["read_overflow", "read_policy"]

_QUEUES = "write `queues: {here: workers}`, from LocalQueue to LocalQueue"
_PATCH = "write {op: replace, path: /spec/..., value: ...}, as in RFC 6902"
_VALUED: Mapping[str, Callable[[Mapping[str, float] | None], Score]] = {
    "priority": by_priority,
    "cost": by_cost,
    "weight": by_weight,
}
_CHOICES = ("all-at-once", "incremental", *_VALUED, "data", "free-quota")


def read_overflow(section: Fields, local_queues: Collection[str]) -> Overflow:
    """Read which jobs overflow to workers.

    Args:
        section: Its fields.
        local_queues: The names of the manager's LocalQueues; if there are any, no others can be named.
    """
    queues, found = section.part("queues"), dict[str, str]()
    if queues is None:
        section.complain("queues", "Required value", _QUEUES)
    else:
        found = {name: target for name in queues.plain if queues.has(name, _QUEUES) and (target := queues.text(name))}
        for name in found if local_queues else ():
            unknown = [entry for entry in (name, found[name]) if entry not in local_queues]
            if unknown:
                remedy = f"name one of {', '.join(sorted(local_queues))}"
                queues.complain(name, f"the manager has no LocalQueue {', '.join(map(shown, unknown))}", remedy)
        if found.pop("", None) is not None:
            queues.complain("", "a LocalQueue without a name", "name one")
        if circle := circle_of(found):
            remedy = "end with a queue that forwards no jobs"
            queues.complain(circle[0], f"jobs would go in a circle: {' -> '.join(circle)}", remedy)
            found = {}
    overflow = Overflow(found, patience_ns=_ns(section.seconds("patience", 0.0)) or 0)
    section.end()
    return overflow


def read_policy(
    section: Fields, workers: Sequence[str] | None, folder: Path, *, allow_code: bool
) -> Dispatcher | Callable[[], Dispatcher]:
    """Read the dispatcher, and the constraints, recalls and overrides around it.

    Args:
        section: Its fields.
        workers: The names of the workers; None: they are not known yet.
        folder: The folder of a custom policy.
        allow_code: Whether a custom policy is allowed.

    Returns:
        The dispatcher, or for a custom policy, a function that loads and makes it.
    """
    own = own_policy(section, folder, allow_code=allow_code) if "use" in section.plain else None
    chosen = AllAtOnce() if own is not None else _choosing(section, workers)
    around = _around(section, workers)
    section.end()
    return around(chosen) if own is None else _OwnWrapped(around, own)


@dataclass(frozen=True, slots=True)
class _Around:
    """Wraps a dispatcher in constraints, recalls and overrides; an object, to be sent to other processes."""

    is_filtered: bool
    admit_ns: int | None
    start_ns: int | None
    exclude_ns: int
    most_attempts: int | None
    patches: Mapping[str, Sequence[JsonObject]] | None

    def __call__(self, dispatcher: Dispatcher) -> Dispatcher:
        if self.is_filtered:
            dispatcher = Filtered(dispatcher)
        if self.admit_ns is not None or self.start_ns is not None:
            dispatcher = TakingBack(
                inner=dispatcher,
                admit_ns=self.admit_ns,
                start_ns=self.start_ns,
                exclude_ns=self.exclude_ns,
                most_attempts=self.most_attempts,
            )
        return dispatcher if self.patches is None else Overridden(dispatcher, self.patches)


@dataclass(frozen=True, slots=True)
class _OwnWrapped:
    """Loads a custom policy, and wraps it."""

    around: _Around
    own: Callable[[], Dispatcher]

    def __call__(self) -> Dispatcher:
        return self.around(self.own())


def _around(section: Fields, workers: Sequence[str] | None) -> _Around:
    """Read what wraps the dispatcher."""
    is_filtered = section.truth("constraints", default=False)
    admit, start = section.seconds("admitWithin"), section.seconds("startWithin")
    exclude, most = section.seconds("excludeFor", 600.0), section.whole("mostAttempts", 0, most=MAX_ATTEMPTS)
    return _Around(
        is_filtered=is_filtered,
        admit_ns=_ns(admit),
        start_ns=_ns(start),
        exclude_ns=_ns(exclude) or 0,
        most_attempts=most or None,
        patches=_patches(section, workers),
    )


def _patches(section: Fields, workers: Sequence[str] | None) -> dict[str, list[JsonObject]] | None:
    """Read the overrides of each worker; None if there are none."""
    overrides = section.part("overrides")
    if overrides is None:
        return None
    patches: dict[str, list[JsonObject]] = {}
    for name in overrides.plain:
        if workers is not None and name not in workers:
            overrides.complain(name, "there is no such worker", f"name one of {', '.join(workers)}")
        if not overrides.has(name, _PATCH):
            continue
        operations = [dict(part.plain) for part in overrides.parts(name)]
        try:
            check_override(operations)
            patches[name] = operations
        except JsonPatchError as error:
            overrides.complain(name, str(error), _PATCH)
    return patches


def _choosing(section: Fields, workers: Sequence[str] | None) -> Dispatcher:
    choose = section.text("choose", "all-at-once", one_of=_CHOICES)
    values = section.part("values")
    numbers = None if values is None else _numbers(values, workers)
    resource, prefers_room = section.text("resource", "cpu"), section.truth("prefersRoom", default=False)
    is_incremental = choose == "incremental"
    step_size = section.whole("stepSize", 3 if is_incremental else 1, least=1)
    round_ns = _ns(section.seconds("round", 300.0)) or 0
    if round_ns == 0:
        section.complain("round", "Invalid value: 0", "write a duration greater than 0, such as 5m")
        round_ns = 1
    if is_incremental:
        return Incremental(step_size=step_size, round_ns=round_ns)
    if choose == "all-at-once":
        return AllAtOnce()
    scores: dict[str, Score] = {"data": by_data(), "free-quota": by_free_quota(resource)}
    score = scores[choose] if choose in scores else _VALUED[choose](numbers)
    return Scored(score=score, step_size=step_size, round_ns=round_ns, prefers_room=prefers_room)


def _numbers(values: Fields, workers: Sequence[str] | None) -> dict[str, float]:
    """Read the priority, cost or weight of each worker."""
    for name in values.plain:
        if workers is not None and name not in workers:
            values.complain(name, "there is no such worker", f"name one of {', '.join(workers)}")
    return {name: values.number(name) for name in values.plain if values.has(name, "write a number")}


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * SECOND_NS)
