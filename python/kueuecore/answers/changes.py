"""Changes that would admit a workload, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from kueuecore.answers.trials import Step
from kueuecore.decisions import Outcome, Preemption
from kueuecore.states import WorkloadState

__all__ = ["Change", "ChangeKind", "Unblocking"]


class ChangeKind(StrEnum):
    """What is changed. Changes that are alike in all else are in this order."""

    START = "Start"
    """What holds it back on purpose goes: `stopPolicy` of its queues, `active: false`."""
    NODES = "Nodes"
    """Node selector, node affinity or tolerations, so that another flavor may have its pods."""
    LOCAL_QUEUE = "LocalQueue"
    """Another LocalQueue of its namespace."""
    MIN_COUNT = "MinCount"
    """`minCount`: partial admission with fewer pods (rules/03 §9)."""
    PODS = "Pods"
    """Fewer pods."""
    REQUEST = "Request"
    """Smaller requests of containers."""
    QUOTA = "Quota"
    """More `nominalQuota` of its ClusterQueue or of a cohort above it."""
    BORROWING_LIMIT = "BorrowingLimit"
    """A higher `borrowingLimit` of its ClusterQueue or of a cohort above it."""
    LENDING_LIMIT = "LendingLimit"
    """A higher `lendingLimit` of another one."""
    PRIORITY = "Priority"
    """A higher priority."""
    PRIORITY_CLASS = "PriorityClass"
    """A WorkloadPriorityClass that exists."""
    PREEMPTION = "Preemption"
    """Another preemption policy of its ClusterQueue."""
    VICTIMS = "Victims"
    """Workloads that hold quota are deleted."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change that would admit the workload: it was tried, and so was one step less, which would not.

    Args:
        kind: What is changed.
        what: The same in words, with names.
        before: What stands there now.
        after: What is to stand there.
        step: The edits and deletions.
        less: Each way to do one step less: one unit, pod or step of priority less. None of them admits the workload.
            Empty: nothing less is possible but to change nothing.
        outcome: `Fits`, or `Preempts` if the workload itself has others give way.
        preemptions: Whom it preempts.
        evicted: Keys of the others that lose their quota then, for whomever.
        moved: Keys of all others that stand elsewhere then.
        size: How large it is beside what was there or what is asked for; only for comparing.
        is_least: Is nothing smaller of this kind enough? False for victims beyond 12 candidates: then only none of them
            can be spared.
    """

    kind: ChangeKind
    what: str
    before: str
    after: str
    step: Step
    less: tuple[Step, ...]
    outcome: Outcome
    preemptions: tuple[Preemption, ...]
    evicted: tuple[str, ...]
    moved: tuple[str, ...]
    size: Fraction
    is_least: bool = True

    @property
    def rank(self) -> tuple[bool, int, Fraction, int, str]:
        """By what changes are sorted: how much they disturb others, then their size."""
        order = list(ChangeKind).index(self.kind)
        return bool(self.evicted), len(self.evicted) + len(self.moved), self.size, order, self.what


@dataclass(frozen=True, slots=True)
class Unblocking:
    """What would admit a workload.

    Args:
        workload: Where it stands once cycles have run until nothing changes.
        changes: The changes, those that disturb others least first; empty if it has quota.
        n_tried: How many changes were tried.
    """

    workload: WorkloadState
    changes: tuple[Change, ...]
    n_tried: int
