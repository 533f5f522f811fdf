"""What a cycle looked at and what became of it, one head after the other: for logs, traces and dashboards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kueuecore._keyed import Keyed
from kueuecore.decisions import Decision

__all__ = ["Considered", "Verdict", "considered_in"]


class Verdict(StrEnum):
    """What became of a workload in a cycle."""

    RESERVED = "Reserved"
    """It got quota."""
    PENDING = "Pending"
    """It was a head and stays pending."""
    PARKED = "Parked"
    """It was parked unseen, because one of the same shape found no place (rules/05 §4)."""
    PREEMPTED = "Preempted"
    """It has to give way."""
    UNDECIDED = "Undecided"
    """It asks for something on which nothing is decided here."""


@dataclass(frozen=True, slots=True)
class Considered(Keyed):
    """A workload that a cycle looked at.

    Args:
        namespace: Namespace of the workload.
        name: Name of the workload.
        cycle: Number of the cycle.
        cluster_queue: The ClusterQueue whose quota it is about; empty where the cycle did not come so far.
        verdict: What became of it.
        reason: Kueue's reason; empty for what is reserved, parked or undecided.
        message: Why, in Kueue's words; of a reservation with the flavors that were considered.
    """

    namespace: str
    name: str
    cycle: int
    cluster_queue: str
    verdict: Verdict
    reason: str
    message: str


def considered_in(decision: Decision) -> Iterator[Considered]:
    """Everything that a cycle looked at: reservations, heads that wait, what was parked, victims, undecided."""
    cycle = decision.cycle
    reported = {(it.namespace, it.name): it.message for it in decision.events if it.reason == "QuotaReserved"}
    for got in decision.admissions:
        message = reported.get((got.namespace, got.name), "")
        yield Considered(got.namespace, got.name, cycle, got.cluster_queue, Verdict.RESERVED, "", message)
    for head in decision.pending:
        yield Considered(
            head.namespace, head.name, cycle, head.cluster_queue, Verdict.PENDING, head.reason, head.message
        )
    for key in decision.parked:
        namespace, _, name = key.partition("/")
        yield Considered(namespace, name, cycle, "", Verdict.PARKED, "", "")
    for victim in decision.preemptions:
        yield Considered(
            victim.namespace, victim.name, cycle, victim.cluster_queue, Verdict.PREEMPTED, victim.reason, victim.message
        )
    for it in decision.undecided:
        yield Considered(it.namespace, it.name, cycle, "", Verdict.UNDECIDED, "", f"{it.field}: {it.message}")
