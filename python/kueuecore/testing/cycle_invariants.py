"""Checks what must hold from one moment to the next, above all around a cycle (docs/invariants.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.decisions import Decision, Preemption
from kueuecore.engine import Engine
from kueuecore.states import PendingWorkload, QuotaRow, WorkloadState
from kueuecore.testing.engine_view import EngineView, holds_quota, is_evicted
from kueuecore.testing.history import History, Move, MoveKind, key_of
from kueuecore.testing.invariants import Cell, Tree, amount, check_seen, known
from kueuecore.testing.move_result import MoveResult
from kueuecore.testing.play import first_difference, observed

__all__ = ["Invariants"]

_REASONS = ("InClusterQueue", "InCohortReclamation", "InCohortFairSharing", "InCohortReclaimWhileBorrowing")


class Invariants:
    """Watches a play, and checks invariants before, in and after every move.

    Args:
        scenario: The scenario that is played.

    Raises:
        AssertionError: An invariant does not hold; raised from within the play.

    Example:
        >>> from kueuecore.testing import Move, MoveKind, Play, History
        >>> scenario = History(())
        >>> play = Play.of(scenario, watchers=[Invariants(scenario)])
        >>> result = play.do(Move(kind=MoveKind.CYCLE))
    """

    def __init__(self, scenario: History) -> None:
        self._specs = {_id(object_): object_at(object_, "spec") for object_ in scenario.objects}
        self._created = {
            _id(object_): text_at(object_, "metadata", "creationTimestamp") for object_ in scenario.objects
        }
        # ClusterQueues of which only the quota is as in their specs (rules/02 §4 5).
        self._unsettled = {name for kind, name in self._specs if kind == "ClusterQueue" and self._is_in_cycle(name)}
        self._is_fair = "fairSharing" in (scenario.configuration or {})
        self._has_topology = any(object_.get("kind") == "Topology" for object_ in scenario.objects)
        self._is_usage_based = "admissionFairSharing" in (scenario.configuration or {})
        self._tree = Tree({}, frozenset())
        # Flavors and resources whose sums have saturated, and so are no longer exact.
        self._lost: frozenset[tuple[str, str]] = frozenset()
        self._is_new = True
        self._states: Mapping[str, WorkloadState] = {}
        self._orders: Mapping[str, tuple[PendingWorkload, ...]] = {}
        self._fork: Engine | None = None

    def before(self, seen: EngineView, move: Move) -> None:
        """Record the state before a move."""
        if self._is_new:
            # The initial objects may have saturated already.
            self._lost, self._is_new = Tree.of(seen).lost, False
        if move.kind in (MoveKind.CYCLE, MoveKind.LINGER):
            self._tree = Tree.of(seen, self._lost)
            self._states = seen.states
            self._orders = seen.orders
            self._fork = seen.engine.fork()

    def after(self, seen: EngineView, result: MoveResult) -> None:
        """Check what the move has changed."""
        if result.move.object is not None and not result.refused:
            self._note(result.move.object)
        if result.move.kind is MoveKind.DELETE:
            self._specs.pop((result.move.object_kind, result.move.key), None)
        if result.decision is None:
            return
        after = Tree.of(seen, self._lost)
        self._check_admissions(result.decision)
        # For heads after their preemptor in the cycle, victims count as gone, though they still hold quota;
        # so do those of earlier cycles, which no decision names again.
        has_victims = any(holds_quota(state) and is_evicted(state) for state in self._states.values())
        if not result.decision.replaced_slices and not result.decision.preemptions and not has_victims:
            _check_limits(self._tree, after)
        self._check_strict_fifo(seen, result.decision)
        for preemption in result.decision.preemptions:
            self._check_victim(preemption, after, busy={pending.cluster_queue for pending in result.decision.pending})
        assert self._fork is not None
        # Nodes may be reserved for heads that cannot preempt; without these heads, all would fit (rules/08 §11.6).
        if not self._has_topology:
            self._check_that_every_victim_is_needed(result)
        self._check_fork(seen, result)
        if not (result.decision.admissions or result.decision.placed or result.decision.replaced_slices):
            difference = first_difference(_usage(self._tree), _usage(after))
            assert difference is None, f"a cycle without admissions has changed usage: {difference}"

    def _note(self, manifest: JsonObject) -> None:
        kind, name = _id(manifest)
        self._specs[kind, name] = object_at(manifest, "spec")
        self._created[kind, name] = text_at(manifest, "metadata", "creationTimestamp")
        if kind == "ClusterQueue":
            self._unsettled -= {name}
            self._unsettled |= {name} if self._is_in_cycle(name) else set()

    def _is_in_cycle(self, cluster_queue: str) -> bool:
        """Return whether a ClusterQueue is below a cycle of cohorts."""
        above: list[str] = []
        cohort = text_at(self._specs["ClusterQueue", cluster_queue], "cohortName")
        while cohort and cohort not in above:
            above.append(cohort)
            cohort = text_at(self._specs.get(("Cohort", cohort), {}), "parentName")
        return bool(cohort)

    def settled(self, seen: EngineView) -> None:
        """Check the resulting state."""
        tree = Tree.of(seen, self._lost)
        self._lost = tree.lost
        check_seen(seen, tree, is_ordered=not self._is_usage_based)

    def _check_admissions(self, decision: Decision) -> None:
        """Check that what was admitted was pending in an active queue, and that its quota was available."""
        taken: dict[Cell, int] = defaultdict(int)
        for admission in decision.admissions:
            before = self._states[admission.key]
            assert not holds_quota(before), f"{admission.key} held quota when it was admitted"
            stop = self._specs["ClusterQueue", admission.cluster_queue].get("stopPolicy", "None")
            is_stopped = stop != "None" and admission.cluster_queue not in self._unsettled
            assert not is_stopped, f"{admission.cluster_queue} is stopped, but admits"
            for pod_set in admission.pod_sets:
                for resource, flavor in pod_set.flavors.items():
                    cell = (admission.cluster_queue, flavor, resource)
                    taken[cell] += amount(pod_set.resource_usage[resource])
        for replaced in decision.replaced_slices:
            before = self._states[replaced.key]
            for name, flavors in before.flavors.items():
                for resource, flavor in flavors.items():
                    # A slice takes over the quota of the one it replaces, and asks for the difference.
                    taken[before.status["admission"]["clusterQueue"], flavor, resource] -= _held(before, name, resource)
        for cell, quantity in taken.items():
            if quantity > 0 and cell[1:] in self._tree.exact:
                available = known(self._tree.rows["ClusterQueue", cell].available)
                assert quantity <= available, f"{cell}: {quantity} was admitted, {available} was available"

    def _check_strict_fifo(self, seen: EngineView, decision: Decision) -> None:
        """Check that a StrictFIFO queue admits nothing ahead of another workload that is tried."""
        for admission in decision.admissions:
            name = admission.cluster_queue
            if self._specs["ClusterQueue", name].get("queueingStrategy") != "StrictFIFO":
                continue
            active = {order.key for order in seen.orders[name] if order.place == "active"}
            keys = [order.key for order in self._orders[name]]
            overtaken = [key for key in keys[: keys.index(admission.key)] if key in active]
            assert not overtaken, f"{admission.key} has overtaken {overtaken} in the StrictFIFO queue {name}"

    def _check_victim(self, preemption: Preemption, after: Tree, *, busy: set[str]) -> None:
        """Check that the preemptor's ClusterQueue allows the victim, and that the reason says why (rules/04 §2)."""
        victim, preemptor = self._states[preemption.key], self._states[preemption.preemptor]
        text = f"{preemptor.key} in {preemptor.cluster_queue} preempts {victim.key} in {preemption.cluster_queue}"
        assert holds_quota(victim), f"{text}, which holds no quota"
        # On a second pass it may free nodes.
        assert self._has_topology or not holds_quota(preemptor), f"{text}, but holds quota itself"
        assert preemption.reason in _REASONS, f"{text} for the reason {preemption.reason}"
        if preemptor.cluster_queue in self._unsettled:
            return
        spec = self._specs["ClusterQueue", preemptor.cluster_queue or ""]
        is_within = preemption.cluster_queue == preemptor.cluster_queue
        field = "withinClusterQueue" if is_within else "reclaimWithinCohort"
        policy = text_at(spec, "preemption", field) or "Never"
        is_lower = victim.priority < preemptor.priority
        is_newer = victim.priority == preemptor.priority and self._age(preemptor.key) < self._age(victim.key)
        allowed = {"Any": True, "LowerPriority": is_lower, "LowerOrNewerEqualPriority": is_lower or is_newer}
        assert allowed.get(policy, False), f"{text}, but {field} is {policy}"
        assert is_within == (preemption.reason == "InClusterQueue"), f"{text} for the reason {preemption.reason}"
        if is_within:
            return
        assert self._root(preemption.cluster_queue) == self._root(preemptor.cluster_queue or ""), f"{text}: no cohort"
        # What an earlier entry of the cycle takes, or waits for, counts as used (rules/05 §6.4).
        borrows = any(_is_over(row) for tree in (self._tree, after) for row in _rows_of(tree, preemption.cluster_queue))
        assert borrows or preemption.cluster_queue in busy, f"{text}, which borrows nothing"
        if preemption.reason == "InCohortFairSharing":
            assert self._is_fair, f"{text} for fair sharing, which is off"
        if preemption.reason == "InCohortReclaimWhileBorrowing":
            borrow = object_at(spec, "preemption", "borrowWithinCohort")
            threshold = borrow.get("maxPriorityThreshold")
            is_below = threshold is None or (isinstance(threshold, int) and victim.priority <= threshold)
            is_allowed = borrow.get("policy") == "LowerPriority" and is_lower and is_below
            assert is_allowed, f"{text}, but {borrow}"

    def _age(self, key: str) -> str:
        return self._created["Workload", key]

    def _root(self, cluster_queue: str) -> str | None:
        """Return the root of its tree; `None` without a cohort."""
        rows = _rows_of(self._tree, cluster_queue)
        if not rows or rows[0].parent is None:
            return None
        root: str = rows[0].parent
        parents = {row.name: row.parent for row in self._tree.rows.values() if row.kind == "Cohort"}
        while (above := parents.get(root)) is not None:
            root = above
        return root

    def _check_that_every_victim_is_needed(self, result: MoveResult) -> None:
        """Check that each victim is needed: if it stayed, the preemptor would not fit its own quota (rules/04 §4.5).

        Checked only where nothing else can explain the outcome: one flavor for each resource, no partial admission, no
        recomputed targets (as these make room for earlier entries, too, rules/04 §7), and no sum that may have
        saturated. It is tried out with all other victims gone and nothing else waiting.
        """
        decision, fork = result.decision, self._fork
        assert decision is not None
        assert fork is not None
        by_preemptor: dict[str, list[Preemption]] = defaultdict(list)
        for preemption in decision.preemptions:
            by_preemptor[preemption.preemptor].append(preemption)
        for key, victims in by_preemptor.items():
            name = self._states[key].cluster_queue or ""
            groups = list_at(self._specs["ClusterQueue", name], "resourceGroups")
            pod_sets = list_at(self._specs["Workload", key], "podSets")
            has_choice = any(len(list_at(group, "flavors")) > 1 for group in groups)
            if (
                has_choice
                or name in decision.target_recomputations
                or any("minCount" in object_at(pod_set) for pod_set in pod_sets)
                or any((row.flavor, row.resource) in self._tree.lost for row in _rows_of(self._tree, name))
            ):
                continue
            for spared in victims:
                others = {victim.key for victim in victims if victim is not spared}
                waiting = {pair.key for order in self._orders.values() for pair in order if pair.key != key}
                what_if = fork.fork()
                for gone in sorted(others | waiting):
                    namespace, _, workload = gone.rpartition("/")
                    what_if.delete("Workload", workload, namespace=namespace, now=result.time)
                what_if.cycle(result.time)
                if holds_quota(what_if.workload(key.rpartition("/")[2], namespace=key.rpartition("/")[0])):
                    rows = _rows_of(Tree.of(EngineView(what_if)), name)
                    assert any(_is_over(row) for row in rows), f"{key} would fit without preempting {spared.key}"

    def _check_fork(self, seen: EngineView, result: MoveResult) -> None:
        """Check that a fork taken before the cycle decides the same."""
        assert self._fork is not None
        decided = MoveResult(result.move, result.time, self._fork.cycle(result.time)).to_json()
        assert (difference := first_difference(result.to_json(), decided)) is None, (
            f"a fork decides otherwise: {difference}"
        )
        fork = EngineView(self._fork)
        if not seen.is_as(fork):
            difference = first_difference(observed(seen), observed(fork))
            raise AssertionError(f"a fork comes to another state: {difference}")


def _check_limits(before: Tree, after: Tree) -> None:
    """Check that a cycle exceeds no quota or borrowing limit, unless a quota cut has already left one exceeded."""
    for key, row in after.exact_rows().items():
        old = before.exact_rows().get(key)
        if old is None:
            continue
        limit = known(row.subtree_quota)
        if row.parent is not None:
            if row.borrowing_limit is None:
                continue
            limit += amount(row.borrowing_limit)
        if amount(old.usage) <= limit:
            assert amount(row.usage) <= limit, f"{key}: usage is {row.usage} after the cycle, beyond its limit {limit}"


def _held(workload: WorkloadState, pod_set: str, resource: str) -> int:
    """Return what a pod set holds of a resource, including pods that are done."""
    assignments = workload.status["admission"]["podSetAssignments"]
    return sum(
        amount(assignment["resourceUsage"][resource]) for assignment in assignments if assignment["name"] == pod_set
    )


def _usage(tree: Tree) -> dict[str, str]:
    return {f"{kind} {cell}": row.usage for (kind, cell), row in tree.rows.items()}


def _rows_of(tree: Tree, cluster_queue: str) -> list[QuotaRow]:
    return [row for (kind, cell), row in tree.rows.items() if kind == "ClusterQueue" and cell[0] == cluster_queue]


def _is_over(row: QuotaRow) -> bool:
    """Return whether usage exceeds its own quota. Unlimited quota is never exceeded."""
    return row.nominal is not None and amount(row.usage) > amount(row.nominal)


def _id(manifest: JsonObject) -> tuple[str, str]:
    return text_at(manifest, "kind"), key_of(manifest)
