"""Expectations about workloads, selected by name, and about the quota of a ClusterQueue or Cohort."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kueuecore._quantities import number
from kueuecore.policy_tests.checks import Check, standing
from kueuecore.policy_tests.policy_cluster import PolicyCluster
from kueuecore.policy_tests.verdict import Verdict
from kueuecore.states import QuotaRow
from kueuecore.steady_state import find_preemption_loop

__all__ = ["Amounts", "Expectation", "QueueExpectation", "SettlesExpectation", "WorkloadExpectation"]

Amounts: TypeAlias = Mapping[str, Mapping[str, str]]
"""Quantities by flavor and resource."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadExpectation:
    """An expectation about the workloads that match a name.

    Args:
        name: A name that `PolicyCluster.keys` takes.
        checks: The checks on each workload.
        count: How many of them must pass the checks; None for all.
        at: When to check, in seconds from the start; None for the end.
        place: Its location, `file:line`.
    """

    name: str
    checks: tuple[Check, ...]
    count: int | None = None
    at: float | None = None
    place: str = ""

    def verdicts(self, cluster: PolicyCluster) -> Iterator[Verdict]:
        """Yield the verdicts as of now.

        Raises:
            UnknownObjectError: No workload matches the name.
        """
        keys = cluster.keys(self.name)
        found = {key: [check.verdict(cluster, key) for check in self.checks] for key in keys}
        if self.count is None:
            yield from (verdict for verdicts in found.values() for verdict in verdicts)
            return
        good = [key for key, verdicts in found.items() if all(verdicts)]
        expected = " and ".join(dict.fromkeys(verdict.expected for verdicts in found.values() for verdict in verdicts))
        others = (standing(cluster, key)[1] for key in keys if key not in good)
        why = next(filter(None, others), "") if len(good) < self.count else ""
        got = f"{len(good)} of {len(keys)}{': ' if good else ''}{', '.join(map(cluster.name_of, good))}"
        yield Verdict(len(good) == self.count, self.name, f"{self.count} of {len(keys)}: {expected}", got, why)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueExpectation:
    """An expectation about the quota of a ClusterQueue or Cohort.

    Args:
        kind: `ClusterQueue` or `Cohort`.
        name: Its name.
        usage: The amounts in use.
        borrowed: The amounts borrowed.
        at: When to check, in seconds from the start; None for the end.
        place: Its location, `file:line`.
    """

    kind: str
    name: str
    usage: Amounts = field(default_factory=dict)
    borrowed: Amounts = field(default_factory=dict)
    at: float | None = None
    place: str = ""

    def verdicts(self, cluster: PolicyCluster) -> Iterator[Verdict]:
        """Yield the verdicts as of now.

        Raises:
            UnknownObjectError: There is no such queue.
        """
        rows = {(row.flavor, row.resource): row for row in cluster.quota(self.kind, self.name)}
        for what, amounts in (("uses", self.usage), ("borrows", self.borrowed)):
            for flavor, resources in amounts.items():
                for resource, wanted in resources.items():
                    yield self._verdict(rows.get((flavor, resource)), what, f"{flavor}/{resource}", wanted)

    def _verdict(self, row: QuotaRow | None, what: str, where: str, wanted: str) -> Verdict:
        subject, expected = f"{self.kind} {self.name}", f"{what} {wanted} of {where}"
        if row is None:
            return Verdict(False, subject, expected, f"no quota of {where}")
        has = row.usage if what == "uses" else row.borrowed
        quota = f" with a quota of {row.subtree_quota}" if row.subtree_quota is not None else ""
        return Verdict(number(has) == number(wanted), subject, expected, f"{what} {has}{quota}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlesExpectation:
    """An expectation that workloads do not preempt each other forever.

    Args:
        at: From when on nothing else happens, in seconds from the start; None for the end.
        place: Its location, `file:line`.
    """

    at: float | None = None
    place: str = ""

    def verdicts(self, cluster: PolicyCluster) -> Iterator[Verdict]:
        """Yield the verdict as of now."""
        yield self.verdict(find_preemption_loop(cluster.engine, now=cluster.now))

    def verdict(self, loop: object) -> Verdict:
        """Return the verdict.

        Args:
            loop: What goes on forever, in words; None if nothing does.
        """
        got = "it settles" if loop is None else "it never settles"
        return Verdict(loop is None, "workloads", "settles", got, "" if loop is None else str(loop))


Expectation: TypeAlias = WorkloadExpectation | QueueExpectation | SettlesExpectation
