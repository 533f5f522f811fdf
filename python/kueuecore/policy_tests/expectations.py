"""Expectations: what is to hold of workloads by name, and of the quota of a ClusterQueue or a Cohort."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kueuecore._quantities import number
from kueuecore.policy_tests.checks import Check, standing
from kueuecore.policy_tests.policy_cluster import PolicyCluster
from kueuecore.policy_tests.verdict import Verdict
from kueuecore.states import QuotaRow

__all__ = ["Amounts", "Expectation", "QueueExpectation", "WorkloadExpectation"]

Amounts: TypeAlias = Mapping[str, Mapping[str, str]]
"""Flavor to resource to quantity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadExpectation:
    """What is expected of the workloads that a name stands for.

    Args:
        name: A name, as `PolicyCluster.keys` takes it.
        checks: What is to hold of each.
        count: Of how many of them it is to hold; None: of all.
        at: When, in seconds from the beginning; None: in the end.
        place: Where it stands, `file:line`.
    """

    name: str
    checks: tuple[Check, ...]
    count: int | None = None
    at: float | None = None
    place: str = ""

    def verdicts(self, cluster: PolicyCluster) -> Iterator[Verdict]:
        """What comes of it now.

        Raises:
            UnknownObjectError: Nobody is called so.
        """
        keys = cluster.keys(self.name)
        found = {key: [check.verdict(cluster, key) for check in self.checks] for key in keys}
        if self.count is None:
            yield from (verdict for verdicts in found.values() for verdict in verdicts)
            return
        good = [key for key, verdicts in found.items() if all(verdicts)]
        expected = " and ".join(dict.fromkeys(it.expected for verdicts in found.values() for it in verdicts))
        others = (standing(cluster, key)[1] for key in keys if key not in good)
        why = next(filter(None, others), "") if len(good) < self.count else ""
        got = f"{len(good)} of {len(keys)}{': ' if good else ''}{', '.join(map(cluster.name_of, good))}"
        yield Verdict(len(good) == self.count, self.name, f"{self.count} of {len(keys)}: {expected}", got, why)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueExpectation:
    """What is expected of the quota of a ClusterQueue or a Cohort.

    Args:
        kind: `ClusterQueue` or `Cohort`.
        name: Its name.
        usage: What is used there.
        borrowed: What is borrowed.
        at: When, in seconds from the beginning; None: in the end.
        place: Where it stands, `file:line`.
    """

    kind: str
    name: str
    usage: Amounts = field(default_factory=dict)
    borrowed: Amounts = field(default_factory=dict)
    at: float | None = None
    place: str = ""

    def verdicts(self, cluster: PolicyCluster) -> Iterator[Verdict]:
        """What comes of it now.

        Raises:
            UnknownObjectError: There is no such queue.
        """
        rows = {(it.flavor, it.resource): it for it in cluster.quota(self.kind, self.name)}
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


Expectation: TypeAlias = WorkloadExpectation | QueueExpectation
