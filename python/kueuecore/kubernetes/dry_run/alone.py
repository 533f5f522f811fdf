"""Asks whether a decision is right for a workload as the only head of its cycle, on one state."""

from __future__ import annotations

import re

from kueuecore.checks import WorkloadKey
from kueuecore.decisions import Outcome, WhatIf
from kueuecore.engine import Engine
from kueuecore.errors import UnknownObjectError
from kueuecore.kubernetes.dry_run.cluster_view import ClusterView
from kueuecore.kubernetes.dry_run.decisions_seen import Kind, Seen, admission_text, placement_text

__all__ = ["BYPASSED", "OVERTAKEN", "alone_text", "is_right_alone", "preemptor_in", "said_alone", "what_if"]

# What Kueue says of a head that would have had quota but for others of the same cycle.
OVERTAKEN = (
    "Workload no longer fits after processing another workload",
    "Workload has overlapping preemption targets with another workload",
)
# And of one that was not tried, because another of the same shape did not fit.
BYPASSED = "Bypassed scheduling evaluation because an equivalent workload recently failed"
_BY = re.compile(r"^preempted: (\w*), by ([\w.-]+)$")


def is_right_alone(engine: Engine, seen: Seen, view: ClusterView, *, has_others: bool) -> bool:
    """Return whether the engine decides so if the workload is the only head.

    Args:
        engine: The engine in a state that Kueue can have seen; it does not change.
        seen: The decision.
        view: Knows the workloads by their UIDs.
        has_others: Whether Kueue has decided on others in the same moment.
    """
    if seen.kind is Kind.PREEMPTION:
        return _is_victim(engine, seen, view)
    found = what_if(engine, seen.key, at=seen.at)
    if found is None:
        return False
    said = seen.text.removeprefix("waits: ")
    if seen.kind is Kind.MESSAGE and said.startswith((*OVERTAKEN, BYPASSED)):
        return has_others and (found.outcome is Outcome.WAITS) == said.startswith(BYPASSED)
    return alone_text(found, seen.kind) == seen.text


def alone_text(found: WhatIf, kind: Kind) -> str | None:
    """Return what would be decided, as `stated` says it."""
    match kind:
        case Kind.MESSAGE:
            return None if found.outcome is Outcome.FITS else f"waits: {found.message}"
        case Kind.ADMISSION if found.outcome is Outcome.FITS:
            return admission_text(found.cluster_queue, ((row.name, row.count, row.flavors) for row in found.pod_sets))
        case Kind.PLACEMENT if found.outcome is Outcome.FITS:
            return placement_text((row.name, row.topology_assignment) for row in found.pod_sets)
    return None


def said_alone(found: WhatIf) -> str:
    """Return what would be decided, as the end of a sentence."""
    if found.undecided is not None:
        return f"stays undecided: {': '.join(found.undecided)}"
    match found.outcome:
        case Outcome.FITS:
            return f"would be {alone_text(found, Kind.ADMISSION)}"
        case Outcome.PREEMPTS:
            return f"would preempt {', '.join(f'{it.key} ({it.reason})' for it in found.preemptions)}"
        case Outcome.WAITS:
            return f"would wait: {found.message}"


def preemptor_in(seen: Seen, view: ClusterView) -> WorkloadKey | None:
    """Return the workload for which another was preempted; None if it is not known."""
    by = _BY.match(seen.text)
    return view.workload_of(by[2]) if by else None


def what_if(engine: Engine, key: WorkloadKey, *, at: int) -> WhatIf | None:
    """Return what would be decided on a workload as the only head; None if it does not exist."""
    try:
        row, _ = engine._core.explain(*key, max(at, engine.now))
    except UnknownObjectError:
        return None
    return WhatIf.of(row)


def _is_victim(engine: Engine, seen: Seen, view: ClusterView) -> bool:
    by, preemptor = _BY.match(seen.text), preemptor_in(seen, view)
    found = what_if(engine, preemptor, at=seen.at) if preemptor else None
    if by is None or found is None:
        return False
    return any((it.namespace, it.name) == seen.key and it.reason == by[1] for it in found.preemptions)
