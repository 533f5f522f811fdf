"""The result of one move of a play."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kueuecore.decisions import Decision, Event
from kueuecore.testing.history import Move

__all__ = ["MoveResult", "Observation"]

Observation = dict[str, Any]
"""What an engine shows, as plain data that compares and prints well."""


@dataclass(frozen=True, slots=True)
class MoveResult:
    """The result of one move.

    Args:
        move: The move.
        time: When it happened, in nanoseconds since 1970.
        decision: What the cycle decided, if the move was one.
        events: The events for what was written outside of cycles.
        refused: Why the object was refused; empty if it was not.
        missing: Whether the object of the move does not exist.
    """

    move: Move
    time: int
    decision: Decision | None = None
    events: tuple[Event, ...] = ()
    refused: tuple[str, ...] = ()
    missing: bool = False

    def to_json(self) -> Observation:
        """Return the result as plain data, to compare and to print."""
        reported: Observation = {"move": str(self.move), "refused": list(self.refused), "missing": self.missing}
        if self.decision is not None:
            reported |= {
                "admissions": [
                    {
                        "key": admission.key,
                        "clusterQueue": admission.cluster_queue,
                        "isAdmitted": admission.is_admitted,
                        "podSets": [
                            (each.name, each.count, dict(each.flavors), dict(each.resource_usage))
                            for each in admission.pod_sets
                        ],
                    }
                    for admission in self.decision.admissions
                ],
                "preemptions": [
                    {
                        "key": preemption.key,
                        "preemptor": preemption.preemptor,
                        "reason": preemption.reason,
                        "message": preemption.message,
                    }
                    for preemption in self.decision.preemptions
                ],
                "pending": [
                    {
                        "key": pending.key,
                        "reason": pending.reason,
                        "message": pending.message,
                        "isParked": pending.is_parked,
                    }
                    for pending in self.decision.pending
                ],
                "parked": sorted(self.decision.parked),
                "events": [(event.type, event.reason, event.key, event.message) for event in self.decision.events],
                "skippedPreemptions": dict(self.decision.skipped_preemptions),
                "targetRecomputations": {
                    name: dict(results) for name, results in self.decision.target_recomputations.items()
                },
            }
        # Sorted, as nothing depends on the order of writes outside of cycles, which is that of the objects.
        reported["written"] = sorted((event.key, event.reason, event.type, event.message) for event in self.events)
        return reported
