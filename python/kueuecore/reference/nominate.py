"""What each head of a cycle could get (rules/05 §6.1, 03 §9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kueuecore.reference import conditions, pods, preempt
from kueuecore.reference.assign import Assigner, Assignment, Mode, requests_of, search_fewer_pods
from kueuecore.reference.cache import Snapshot
from kueuecore.reference.objects import FlavorResource
from kueuecore.reference.pending import RequeueReason
from kueuecore.reference.preempt import Need, Target
from kueuecore.reference.selectors import matches_labels
from kueuecore.reference.settings import Json
from kueuecore.reference.totals import Info, Progress

__all__ = ["Entry", "assign_with_targets", "obstacle", "replaced_slice"]


@dataclass
class Entry:
    """A head on its way through a cycle (rules/05 §6).

    Args:
        status: Nothing, or `skipped`, `gated`, `assumed` (rules/05 §6.5).
        reason: Reason for the condition QuotaReserved=False.
    """

    info: Info
    is_preemptor: bool = False
    assignment: Assignment = field(default_factory=lambda: Assignment(Progress([], 0, 0, None)))
    targets: list[Target] = field(default_factory=list)
    status: str = ""
    message: str = ""
    reason: str = ""
    requeue_reason: RequeueReason = RequeueReason.GENERIC

    @property
    def usage(self) -> dict[FlavorResource, int]:
        """The quota that it would use (rules/05 §6.4 2)."""
        return {} if conditions.has_reservation(self.info.workload) else self.assignment.usage

    def record(self, assignment: Assignment, targets: list[Target]) -> None:
        """Keep what was found (rules/05 §6.1)."""
        self.assignment, self.targets = assignment, targets
        self.message, self.info.progress = assignment.message, assignment.progress


def obstacle(info: Info, snapshot: Snapshot, namespaces: Mapping[str, Json], limits: list[Json]) -> tuple[str, str]:
    """Reason and message for a head that is not even tried (rules/05 §6.1 a to g); empty if it is."""
    queue = info.cluster_queue
    if any(check["state"] in ("Retry", "Rejected") for check in conditions.check_states(info.workload)):
        return "PendingEvaluation", "The workload has failed admission checks"
    if queue in snapshot.inactive:
        return "Suspended", f"ClusterQueue {queue} is inactive"
    if queue not in snapshot.nodes:
        return "Misconfigured", f"ClusterQueue {queue} not found"
    message = inadmissible_because(info.workload, snapshot.spec(queue).namespace_selector, namespaces, limits)
    return ("Misconfigured" if message else "", message)


NAMESPACE_MISMATCH = "workload namespace doesn't match ClusterQueue selector"


def inadmissible_because(
    workload: Json, selector: Json | None, namespaces: Mapping[str, Json], limits: list[Json]
) -> str:
    """Why a workload cannot be admitted as it is (rules/01 §7.6)."""
    name = workload["metadata"].get("namespace", "")
    namespace = namespaces.get(name)
    if namespace is None:
        return f'workload namespace "{name}" does not exist: Namespace "{name}" not found'
    if not matches_labels(selector, namespace["metadata"].get("labels") or {}):
        return NAMESPACE_MISMATCH
    if problems := pods.resource_problems(workload):
        return f"resources validation failed: {pods.problem_text(problems)}"
    if problems := pods.limit_range_problems(workload, pods.summarize(limits)):
        return f"resources didn't satisfy LimitRange constraints: {pods.problem_text(problems)}"
    return ""


def replaced_slice(info: Info, snapshot: Snapshot) -> Info | None:
    """The slice that an elastic workload takes the place of (rules/09 §2.3 1)."""
    annotations = info.workload["metadata"].get("annotations") or {}
    key = annotations.get("kueue.x-k8s.io/workload-slice-replacement-for", "")
    if not snapshot.settings.on("ElasticJobsViaWorkloadSlices"):
        return None
    return snapshot.workloads[info.cluster_queue].get(key)


def _is_outdated(progress: Progress, info: Info, snapshot: Snapshot, cycle: int) -> bool:
    """Does the scan of flavors begin anew? (rules/03 §6)."""
    if snapshot.settings.on("FlavorFungibilityPreserveScanProgress"):
        if not progress.matches(info.shape):
            return True
        if cycle - progress.cycle <= 1:
            return False
    return snapshot.nodes[info.cluster_queue].generation > progress.generation


def assign_with_targets(
    info: Info, snapshot: Snapshot, cycle: int, nominated: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[Assignment, list[Target]]:
    """Flavors for a workload, and who has to give way for it (rules/03 §9)."""
    if info.progress is not None and _is_outdated(info.progress, info, snapshot, cycle):
        info.progress = None
    replaced = replaced_slice(info, snapshot)
    own = [Target(replaced, "")] if replaced is not None else []
    simulate = preempt.oracle(snapshot, info)
    assigner = Assigner(info, snapshot, simulate, cycle=cycle, replaced=replaced, nominated=nominated)

    def targets_for(assignment: Assignment) -> list[Target]:
        need = Need(info, assignment.need_preemption, requests_of(assignment, info, assigner.replaced))
        return preempt.find_targets(snapshot, need)

    full = assigner.assign()
    if full.mode == Mode.FIT:
        return full, own
    if full.mode == Mode.PREEMPT and (targets := targets_for(full)):
        return full, own + targets
    found: list[tuple[Assignment, list[Target]]] = []

    def works(counts: list[int]) -> bool:
        assignment = assigner.assign(counts)
        targets = targets_for(assignment) if assignment.mode == Mode.PREEMPT else []
        if assignment.mode != Mode.FIT and not targets:
            return False
        found.append((assignment, targets))
        return True

    if snapshot.settings.on("PartialAdmission") and search_fewer_pods(info.pod_sets, works):
        assignment, targets = found[-1]
        return assignment, own + targets
    return full, []
