"""Counts what happens in histories, as shares of all of them: worlds without events find no bugs."""

from __future__ import annotations

from collections import Counter
from typing import Self

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.decisions import WorkloadAdmission
from kueuecore.testing.engine_view import EngineView
from kueuecore.testing.history import History, Move, MoveKind, key_of
from kueuecore.testing.move_result import MoveResult

__all__ = ["Shares", "Witness"]


_SETTINGS = {
    "fairSharing": "fair sharing",
    "admissionFairSharing": "admission fair sharing",
    "featureGates": "other feature gate",
}


class Witness:
    """Watches one play, and notes what happens in it, in `seen`.

    Args:
        scenario: The scenario that is played.

    Example:
        >>> Witness(History((), configuration={"fairSharing": {}})).seen
        {'fair sharing'}
    """

    def __init__(self, scenario: History) -> None:
        settings = scenario.configuration or {}
        self.seen: set[str] = {name for key, name in _SETTINGS.items() if key in settings}
        objects = [*scenario.objects, *(move.object for move in scenario.moves if move.object is not None)]
        self._counts = {key_of(object_): _counts(object_) for object_ in objects if object_.get("kind") == "Workload"}
        self._gone: set[str] = set()
        self._above = {
            key_of(object_): _parent(object_) for object_ in scenario.objects if object_.get("kind") == "Cohort"
        }
        if any(object_.get("kind") == "WorkloadPriorityClass" for object_ in objects):
            self.seen.add("priority class")

    def before(self, seen: EngineView, move: Move) -> None:
        """Do nothing: nothing has happened yet."""

    def after(self, seen: EngineView, result: MoveResult) -> None:
        """Note what the move has changed."""
        if result.refused:
            self.seen.add("refused change")
        if result.move.kind is MoveKind.FORK:
            self.seen.add("fork")
        if result.move.kind is MoveKind.DELETE and result.move.object_kind == "LocalQueue":
            self._gone.add(result.move.key)
        self._note_object(result.move.object or {})
        if result.decision is None:
            return
        for preemption in result.decision.preemptions:
            self.seen |= {"preemption", f"preemption: {preemption.reason}"}
        if result.decision.replaced_slices:
            self.seen.add("replaced slice")
        for admission in result.decision.admissions:
            self.seen.add("admission" if admission.is_admitted else "reservation before checks")
            state = seen.states[admission.key]
            if "reclaimablePods" not in state.status and self._is_partial(admission):
                self.seen.add("partial admission")
            if any(len(set(flavors.values())) > 1 for flavors in state.flavors.values()):
                self.seen.add("several flavors")
        if result.decision.parked:
            self.seen.add("parked unseen")

    def _note_object(self, given: JsonObject) -> None:
        if given.get("kind") == "LocalQueue" and key_of(given) in self._gone:
            self.seen.add("LocalQueue created anew")
        if given.get("kind") == "Cohort":
            self._above[key_of(given)] = _parent(given)
        if given.get("kind") == "ClusterQueue":
            cohort, passed = text_at(given, "spec", "cohortName"), set[str]()
            while cohort and cohort not in passed:
                passed.add(cohort)
                cohort = self._above.get(cohort, "")
            if cohort:
                self.seen.add("ClusterQueue changed below a cycle")

    def settled(self, seen: EngineView) -> None:
        """Note what the state shows."""
        if any(row.borrowed != "0" for row in seen.quota):
            self.seen.add("borrowing")

    def _is_partial(self, admission: WorkloadAdmission) -> bool:
        counts = self._counts.get(admission.key, {})
        return any(pod_set.count < counts.get(pod_set.name, 0) for pod_set in admission.pod_sets)


class Shares:
    """The share of histories in which something happened.

    Example:
        >>> shares = Shares()
        >>> shares.add({"borrowing"})
        >>> shares.add({"borrowing", "preemption"})
        >>> shares.of("preemption")
        0.5
        >>> print(shares)
        2 histories
          100.0 %  borrowing
           50.0 %  preemption
    """

    def __init__(self) -> None:
        self.n_histories = 0
        self.counts: Counter[str] = Counter()

    def add(self, seen: set[str]) -> None:
        """Count what happened in one history."""
        self.n_histories += 1
        self.counts.update(seen)

    def __iadd__(self, other: Shares) -> Self:
        """Add the counts of another."""
        self.n_histories += other.n_histories
        self.counts += other.counts
        return self

    def of(self, what: str) -> float:
        """Return the share of histories in which something happened, from 0 to 1."""
        return self.counts[what] / self.n_histories if self.n_histories else 0.0

    def __str__(self) -> str:
        rows = sorted(self.counts.items(), key=lambda row: (-row[1], row[0]))
        lines = [f"  {100 * n / self.n_histories:5.1f} %  {what}" for what, n in rows]
        return "\n".join([f"{self.n_histories} histories", *lines])


def _parent(cohort: JsonObject) -> str:
    return text_at(cohort, "spec", "parentName")


def _counts(workload: JsonObject) -> dict[str, int]:
    counts: dict[str, int] = {}
    for pod_set in list_at(workload, "spec", "podSets"):
        count = object_at(pod_set).get("count", 1)
        counts[text_at(pod_set, "name")] = count if isinstance(count, int) else 0
    return counts
