"""Tries on a copy of an engine whether it would decide as Kueue did."""

from __future__ import annotations

from dataclasses import dataclass

from kueuecore._json import JsonObject, object_at
from kueuecore.checks import WorkloadKey
from kueuecore.decisions import Decision
from kueuecore.engine import Engine
from kueuecore.errors import UnknownObjectError
from kueuecore.kubernetes.dry_run.decisions_seen import Kind, Seen, stated

__all__ = ["Prediction", "Tried", "advance", "predict", "tried"]

_MOST_CYCLES = 400
_IDLE_CYCLES = 8


@dataclass(frozen=True, slots=True)
class Tried:
    """What the engine decided on one state.

    Args:
        agrees: Whether it is what Kueue decided.
        here: What it decided on that Workload, as `stated` says it; else the last that it said of it.
        ahead: The Workloads that got quota before.
    """

    agrees: bool
    here: str
    ahead: tuple[WorkloadKey, ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the engine would do next with a Workload.

    Args:
        kind: Admission, preemption or eviction.
        text: The decision, as `stated` says it.
    """

    kind: Kind
    text: str


def tried(engine: Engine, seen: Seen, *, at: int) -> Tried:
    """Let a copy of the engine decide until it has decided on a Workload what Kueue did, or decides no more.

    Args:
        engine: The copy; it is used up.
        seen: The decision of Kueue.
        at: The time of the cycles, in nanoseconds since 1970.
    """
    at = max(at, engine.now)
    ahead: list[WorkloadKey] = []
    texts: dict[Kind, str] = {}
    n_idle = 0
    engine.reconcile(at)
    for _ in range(_MOST_CYCLES):
        status = _status(engine, seen.key)
        for kind in Kind:
            text = stated(kind, status)
            if text is not None:
                texts[kind] = text
        if texts.get(seen.kind) == seen.text:
            return Tried(True, seen.text, tuple(ahead))
        if n_idle > _IDLE_CYCLES or not engine.has_heads:
            break
        decision = engine.cycle(at)
        n_idle = 0 if decision.has_changed_something and not decision.waits_for_pods else n_idle + 1
        ahead += ((it.namespace, it.name) for it in decision.admissions if (it.namespace, it.name) != seen.key)
        engine.reconcile(at)
    here = texts.get(seen.kind) or next((texts[kind] for kind in Kind if kind in texts), "nothing is decided")
    return Tried(False, here, tuple(ahead))


def advance(engine: Engine, *, at: int, most_cycles: int = 200) -> bool:
    """Run the cycles that decide nothing of consequence: heads that do not fit are parked, as by Kueue.

    Args:
        engine: The engine; it changes.
        at: The time of the cycles, in nanoseconds since 1970.
        most_cycles: Stop after as many.

    Returns:
        Whether the next cycle would admit or preempt somebody: Kueue has to do that first.
    """
    at = max(at, engine.now)
    n_idle = 0
    for _ in range(most_cycles):
        if not engine.has_heads or n_idle > _IDLE_CYCLES:
            return False
        if _has_consequences(engine, engine.fork().cycle(at)):
            return True
        decision = engine.cycle(at)
        n_idle = 0 if decision.has_changed_something and not decision.waits_for_pods else n_idle + 1
    return False


def predict(engine: Engine, *, at: int, most_cycles: int = 100) -> dict[WorkloadKey, Prediction]:
    """Return what the engine would decide next if nothing else happened.

    Args:
        engine: The engine; it does not change.
        at: The time, in nanoseconds since 1970.
        most_cycles: Stop after as many cycles.
    """
    copy = engine.fork()
    at = max(at, copy.now)
    found: dict[WorkloadKey, Prediction] = {}
    n_idle = 0
    for _ in range(most_cycles):
        if not copy.has_heads or n_idle > _IDLE_CYCLES:
            break
        decision = copy.cycle(at)
        n_idle = 0 if decision.has_changed_something and not decision.waits_for_pods else n_idle + 1
        found |= _of_kind(copy, Kind.ADMISSION, [(it.namespace, it.name) for it in decision.admissions])
        found |= _of_kind(copy, Kind.PREEMPTION, _fresh_victims(engine, decision))
    return found


def _has_consequences(engine: Engine, decision: Decision) -> bool:
    return bool(decision.admissions or decision.evictions or decision.placed or _fresh_victims(engine, decision))


def _fresh_victims(engine: Engine, decision: Decision) -> list[WorkloadKey]:
    """Return the Workloads that a cycle preempted, without those whose eviction Kueue has written already."""
    keys = [(it.namespace, it.name) for it in decision.preemptions]
    return [key for key in keys if stated(Kind.PREEMPTION, _status(engine, key)) is None]


def _of_kind(engine: Engine, kind: Kind, keys: list[WorkloadKey]) -> dict[WorkloadKey, Prediction]:
    texts = {key: stated(kind, _status(engine, key)) for key in keys}
    return {key: Prediction(kind, text) for key, text in texts.items() if text is not None}


def _status(engine: Engine, key: WorkloadKey) -> JsonObject:
    try:
        return {"status": object_at(dict(engine.workload(key[1], namespace=key[0]).status))}
    except UnknownObjectError:
        return {}
