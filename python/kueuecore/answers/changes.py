"""Data classes for changes that would admit a workload."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from kueuecore.answers.trials import Step
from kueuecore.decisions import Outcome, Preemption
from kueuecore.states import WorkloadState

__all__ = ["Change", "ChangeKind", "NotEnough", "Unblocking"]


class ChangeKind(StrEnum):
    """What is changed. Changes that rank equal otherwise are sorted in this order."""

    START = "Start"
    """Remove what holds it back on purpose: `stopPolicy` of its queues, `active: false`."""
    MISSING = "Missing"
    """Create flavors, Topologies and checks that its ClusterQueue lacks, or activate its checks (rules/02 §5)."""
    NODES = "Nodes"
    """Change its node selector, node affinity or tolerations, so that it can use another flavor."""
    NAMESPACE = "Namespace"
    """Label its Namespace as its ClusterQueue's `namespaceSelector` asks (rules/05 §6.1)."""
    TOPOLOGY = "Topology"
    """Ask for a wider level of a topology, prefer it rather than require it, or for no level (rules/08 §2)."""
    LOCAL_QUEUE = "LocalQueue"
    """Submit it to another LocalQueue in its namespace."""
    MIN_COUNT = "MinCount"
    """Set `minCount`: partial admission with fewer pods (rules/03 §9), if its job can ask for that."""
    PODS = "Pods"
    """Ask for fewer pods."""
    REQUEST = "Request"
    """Lower the requests of its containers."""
    FLAVOR = "Flavor"
    """Let a ResourceFlavor tolerate the taints of its nodes, for all its pods."""
    CLUSTER = "Cluster"
    """Change nodes of a flavor with a topology: uncordon, untaint or label some, or add some."""
    COVERAGE = "Coverage"
    """Give its ClusterQueue quota for resources that it does not cover."""
    QUOTA = "Quota"
    """Raise a `nominalQuota` of its ClusterQueue, or of a cohort above it."""
    BORROWING_LIMIT = "BorrowingLimit"
    """Raise a `borrowingLimit` of its ClusterQueue, or of a cohort above it."""
    LENDING_LIMIT = "LendingLimit"
    """Raise a `lendingLimit` of another ClusterQueue or cohort."""
    PRIORITY = "Priority"
    """Raise its priority."""
    PRIORITY_CLASS = "PriorityClass"
    """Use another of the existing WorkloadPriorityClasses."""
    PREEMPTION = "Preemption"
    """Change a preemption policy of its ClusterQueue."""
    VICTIMS = "Victims"
    """Delete workloads that hold quota."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change that would admit the workload. It was tried, and so was one step less, which would not.

    Args:
        kind: What is changed.
        what: The same in words, with names.
        before: The present value.
        after: The new value.
        step: The edits and deletions that make the change.
        less: The same change less one unit, pod or step of priority, in each possible way. None of them admits the
            workload. Empty if the only smaller change is no change.
        outcome: `Fits`, or `Preempts` if the workload has to preempt others.
        preemptions: The workloads it preempts.
        evicted: Keys of the other workloads that lose their quota, whichever workload preempts them.
        moved: Keys of all other workloads whose stage, queue or flavors change.
        size: Its size relative to the present value or to the request; only for comparisons.
        is_least: Whether no smaller change of this kind would do. False for victims among more than 12 candidates:
            each of them is needed, but another set might be smaller.
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
        """The sort key: how much the change disturbs others, then its size."""
        order = list(ChangeKind).index(self.kind)
        return bool(self.evicted), len(self.evicted) + len(self.moved), self.size, order, self.what


@dataclass(frozen=True, slots=True, kw_only=True)
class NotEnough:
    """A change that does not admit the workload even at its largest.

    Args:
        kind: What is changed.
        what: The same in words, with names.
        before: The present value.
        most: The largest value tried.
        why: What keeps the workload waiting then.
    """

    kind: ChangeKind
    what: str
    before: str
    most: str
    why: str


@dataclass(frozen=True, slots=True)
class Unblocking:
    """The changes that would admit a workload.

    Args:
        workload: Its state once cycles have run until nothing changes.
        changes: The changes, those that disturb others least first; empty if it has quota.
        n_tried: How many changes were tried.
        is_stopped: Whether the tries were used up before all kinds of changes were looked for.
        not_enough: What was tried in vain, at its largest, and what binds then.
        not_tried: What might help as well, but cannot be tried, in sentences without full stops.
    """

    workload: WorkloadState
    changes: tuple[Change, ...]
    n_tried: int
    is_stopped: bool = False
    not_enough: tuple[NotEnough, ...] = ()
    not_tried: tuple[str, ...] = ()
