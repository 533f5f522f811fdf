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
                        "key": it.key,
                        "clusterQueue": it.cluster_queue,
                        "isAdmitted": it.is_admitted,
                        "podSets": [
                            (each.name, each.count, dict(each.flavors), dict(each.resource_usage))
                            for each in it.pod_sets
                        ],
                    }
                    for it in self.decision.admissions
                ],
                "preemptions": [
                    {"key": it.key, "preemptor": it.preemptor, "reason": it.reason, "message": it.message}
                    for it in self.decision.preemptions
                ],
                "pending": [
                    {"key": it.key, "reason": it.reason, "message": it.message, "isParked": it.is_parked}
                    for it in self.decision.pending
                ],
                "parked": sorted(self.decision.parked),
                "events": [(it.type, it.reason, it.key, it.message) for it in self.decision.events],
                "skippedPreemptions": dict(self.decision.skipped_preemptions),
                "targetRecomputations": {
                    name: dict(results) for name, results in self.decision.target_recomputations.items()
                },
            }
        # Sorted, as nothing depends on the order of writes outside of cycles, which is that of the objects.
        reported["written"] = sorted((it.key, it.reason, it.type, it.message) for it in self.events)
        return reported
