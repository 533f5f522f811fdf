"""Nominates: finds what each head of a cycle could get (rules/05 §6.1, 03 §9)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from kueuecore.reference import conditions, pods, preempt
from kueuecore.reference.assign import Assigner, requests_of, search_fewer_pods
from kueuecore.reference.assignment import Assignment, Mode, Way
from kueuecore.reference.cache import Snapshot
from kueuecore.reference.objects import FlavorResource
from kueuecore.reference.pending import RequeueReason
from kueuecore.reference.preempt import Need, Target
from kueuecore.reference.preempt_fair import fair
from kueuecore.reference.selectors import matches_labels
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.topology import phase
from kueuecore.reference.topology.capacity import TopologyUse
from kueuecore.reference.totals import Info, Progress

NAMESPACE_MISMATCH = "workload namespace doesn't match ClusterQueue selector"
NAMESPACE_MISMATCH_WITH_CAPITAL = "Workload namespace doesn't match ClusterQueue selector"


@dataclass(eq=False)
class Entry:
    """A head on its way through a cycle (rules/05 §6).

    Args:
        status: Empty, or `skipped`, `gated`, `assumed`, `evicted` (rules/05 §6.5).
        reason: The reason of the condition QuotaReserved=False.
        n_tries: How often a second pass was tried, including this time (rules/08 §11.10).
        joined_later: Whether it joined the cycle after its start (rules/05 §6.3).
    """

    info: Info
    is_preemptor: bool = False
    n_tries: int = 0
    joined_later: bool = False
    assignment: Assignment = field(default_factory=lambda: Assignment(Progress()))
    targets: list[Target] = field(default_factory=list)
    status: str = ""
    message: str = ""
    reason: str = ""
    requeue_reason: RequeueReason = RequeueReason.GENERIC

    @property
    def usage(self) -> dict[FlavorResource, int]:
        """The quota that it would use (rules/05 §6.4 2)."""
        return {} if conditions.has_reservation(self.info.workload) else self.assignment.usage

    def topology_use(self, snapshot: Snapshot) -> dict[str, list[TopologyUse]]:
        """Return what it would use of nodes, beyond what it holds (rules/08 §11.6)."""
        known = snapshot.flavor_nodes(self.info.cluster_queue)
        return phase.net_use(known, self.info, self.assignment, snapshot.settings)

    def record(self, assignment: Assignment, targets: list[Target]) -> None:
        """Record an assignment and its targets (rules/05 §6.1)."""
        self.assignment, self.targets = assignment, targets
        self.message, self.info.progress = assignment.message, assignment.progress

    def waits(self, reason: str, message: str | None = None, requeue: RequeueReason | None = None) -> None:
        """Record why it stays pending (rules/05 §6.5)."""
        self.reason = reason
        self.message = self.message if message is None else message
        self.requeue_reason = requeue or self.requeue_reason


def obstacle(info: Info, snapshot: Snapshot, namespaces: Mapping[str, Json], limits: list[Json]) -> tuple[str, str]:
    """Return reason and message for a head that is not even tried (rules/05 §6.1 a to g); empty if it is."""
    if any(check["state"] in ("Retry", "Rejected") for check in conditions.check_states(info.workload)):
        return "PendingEvaluation", "The workload has failed admission checks"
    if info.cluster_queue in snapshot.inactive:
        return "Suspended", f"ClusterQueue {info.cluster_queue} is inactive"
    if info.cluster_queue not in snapshot.nodes:
        return "Misconfigured", f"ClusterQueue {info.cluster_queue} not found"
    selector = snapshot.spec(info.cluster_queue).namespace_selector
    message = inadmissible_because(info.workload, selector, namespaces, limits, snapshot.settings)
    return ("Misconfigured" if message else "", message)


def inadmissible_because(
    workload: Json, selector: Json | None, namespaces: Mapping[str, Json], limits: list[Json], settings: Settings
) -> str:
    """Return why a workload cannot be admitted as it is (rules/01 §7.6)."""
    name, is_lower = workload["metadata"]["namespace"], settings.has("NamespaceTextIsLowerCase")
    if name not in namespaces:
        what = f'workload namespace "{name}" does not exist' if is_lower else "Could not obtain workload namespace"
        return f'{what}: Namespace "{name}" not found'
    if not matches_labels(selector, namespaces[name]["metadata"]["labels"]):
        return NAMESPACE_MISMATCH if is_lower else NAMESPACE_MISMATCH_WITH_CAPITAL
    if problems := pods.resource_problems(workload):
        return f"resources validation failed: {pods.problem_text(problems)}"
    if problems := pods.limit_range_problems(workload, pods.summarize(limits), settings):
        return f"resources didn't satisfy LimitRange constraints: {pods.problem_text(problems)}"
    return ""


def replaced_slice(info: Info, snapshot: Snapshot) -> Info | None:
    """Return the slice that an elastic workload replaces (rules/09 §2.3 1)."""
    key = info.workload["metadata"]["annotations"].get("kueue.x-k8s.io/workload-slice-replacement-for", "")
    is_elastic = snapshot.settings.on("ElasticJobsViaWorkloadSlices")
    return snapshot.workloads[info.cluster_queue].get(key) if is_elastic else None


def _is_outdated(progress: Progress, info: Info, snapshot: Snapshot, cycle: int) -> bool:
    """Return whether the scan of flavors starts over (rules/03 §6)."""
    if snapshot.settings.on("FlavorFungibilityPreserveScanProgress"):
        if not progress.matches(info.shape):
            return True
        if cycle - progress.cycle <= 1:
            return False
    return snapshot.nodes[info.cluster_queue].generation > progress.generation


def find_targets(snapshot: Snapshot, need: Need) -> list[Target]:
    """Find workloads that together make enough room; empty if that is impossible (rules/04 §1)."""
    return preempt.classical(snapshot, need) if snapshot.settings.fair_sharing is None else fair(snapshot, need)


def _oracle(snapshot: Snapshot, info: Info, fr: FlavorResource, requested: int) -> tuple[Way, int]:
    """Return what preemption could do for one flavor and resource, and the borrowing level (rules/04 §6)."""
    node = snapshot.nodes[info.cluster_queue]
    targets = find_targets(snapshot, Need(info, frozenset([fr]), {fr: requested}))
    with snapshot.without(target.info for target in targets):
        level = snapshot.usage.level(node, fr, requested)[0]
    if not targets:
        return Way.NO_CANDIDATES, level
    is_own = any(target.info.cluster_queue == info.cluster_queue for target in targets)
    return Way.PREEMPT if is_own else Way.RECLAIM, level


def assign_with_targets(
    info: Info, snapshot: Snapshot, cycle: int, nominated: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[Assignment, list[Target]]:
    """Find flavors for a workload, and the workloads to preempt for it (rules/03 §9)."""
    if info.progress is not None and _is_outdated(info.progress, info, snapshot, cycle):
        info.progress = None
    replaced = replaced_slice(info, snapshot)
    own = [Target(replaced, "")] if replaced is not None else []
    oracle = functools.partial(_oracle, snapshot, info)
    assigner = Assigner(info, snapshot, oracle, cycle=cycle, replaced=replaced, nominated=nominated)

    def tried(counts: list[int] | None = None) -> tuple[bool, Assignment, list[Target]]:
        assignment, targets = assigner.assign(counts), []
        if assignment.mode == Mode.PREEMPT:
            requests = requests_of(assignment, info, replaced, snapshot.settings)
            asks = phase.asks_of(snapshot, info, assignment, replaced)
            targets = find_targets(snapshot, Need(info, assignment.need_preemption, requests, asks))
        works = assignment.mode == Mode.FIT or bool(targets)
        return works, assignment, own + targets if works else []

    found = tried()
    if not found[0] and snapshot.settings.on("PartialAdmission"):
        found = search_fewer_pods(info.pod_sets, tried) or found
    _, assignment, targets = found
    phase.renew(snapshot, info, assignment, (target.info for target in targets), replaced)
    return assignment, targets
