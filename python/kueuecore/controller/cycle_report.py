"""Reports what a cycle looked at and decided, head by head: for logs, traces and dashboards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kueuecore._keyed import Keyed
from kueuecore.decisions import Decision

__all__ = ["Considered", "Verdict", "considered_in"]


class Verdict(StrEnum):
    """The outcome for a workload in a cycle."""

    RESERVED = "Reserved"
    """It got quota."""
    PENDING = "Pending"
    """It was a head and stays pending."""
    PARKED = "Parked"
    """It was parked without a look, because a workload of the same shape found no place (rules/05 §4)."""
    PREEMPTED = "Preempted"
    """It is to be preempted."""
    UNDECIDED = "Undecided"
    """It asks for something that is not decided here."""


@dataclass(frozen=True, slots=True)
class Considered(Keyed):
    """A workload that a cycle looked at, and the outcome.

    Args:
        namespace: Namespace of the workload.
        name: Name of the workload.
        cycle: Number of the cycle.
        cluster_queue: The ClusterQueue whose quota is meant; empty if the cycle did not get that far.
        verdict: The outcome.
        reason: Kueue's reason; empty if reserved, parked or undecided.
        message: Why, in Kueue's words; a reservation lists the flavors that were considered.
    """

    namespace: str
    name: str
    cycle: int
    cluster_queue: str
    verdict: Verdict
    reason: str
    message: str


def considered_in(decision: Decision) -> Iterator[Considered]:
    """Yield what a cycle looked at: reservations, pending heads, and parked, preempted and undecided workloads."""
    cycle = decision.cycle
    reported = {
        (event.namespace, event.name): event.message for event in decision.events if event.reason == "QuotaReserved"
    }
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
    for undecided in decision.undecided:
        yield Considered(
            undecided.namespace,
            undecided.name,
            cycle,
            "",
            Verdict.UNDECIDED,
            "",
            f"{undecided.field}: {undecided.message}",
        )
