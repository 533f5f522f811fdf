"""Re-applies what a cycle has written, as a watch delivers it to a controller: Kueue sees its own writes, too."""

from __future__ import annotations

import json
from collections.abc import Mapping

from kueuecore._json import object_at
from kueuecore.errors import ManifestError
from kueuecore.objects import from_manifest
from kueuecore.states import WorkloadState
from kueuecore.testing.engine_view import EngineView
from kueuecore.testing.history import History, MoveKind, key_of, without_min_counts
from kueuecore.testing.move_result import MoveResult

__all__ = ["Echo"]


class Echo:
    """Applies what cycles have written.

    Args:
        scenario: The scenario that is played, with the workloads that are written.
    """

    def __init__(self, scenario: History) -> None:
        self._objects = {key_of(object_): object_ for object_ in scenario.objects if object_.get("kind") == "Workload"}
        gates = object_at(scenario.configuration or {}, "featureGates")
        self._has_min_counts = gates.get("PartialAdmission") is not False
        self._states: Mapping[str, WorkloadState] = {}
        self._generations: dict[str, int] = {}

    def look(self, seen: EngineView) -> None:
        """Record the state before a move."""
        self._states = seen.states

    def bring(self, seen: EngineView, result: MoveResult) -> bool:
        """Re-apply what a cycle has written. Returns whether there was anything."""
        given = result.move.object
        if given is not None and given.get("kind") == "Workload" and not result.refused:
            self._objects[key_of(given)] = given
        if result.move.kind is MoveKind.DELETE and result.move.object_kind == "Workload":
            # A workload that is created again under the name is another one.
            self._generations.pop(result.move.key, None)
        if result.decision is None:
            return False
        names = [
            admission.key
            for admission in (*result.decision.admissions, *result.decision.preemptions, *result.decision.pending)
        ]
        written = [name for name in names if seen.states[name].status != self._states[name].status]
        for name in written:
            status = seen.states[name].status
            # What a second pass writes may belong to an older generation.
            observed = max(condition.get("observedGeneration", 0) for condition in status["conditions"])
            generation = self._generations[name] = max(observed, self._generations.get(name, 0))
            plain = self._objects[name]
            if "priorityClassRef" in object_at(plain, "spec"):
                # The class may have another value now.
                plain = {**plain, "spec": {**object_at(plain, "spec"), "priority": seen.states[name].priority}}
            if not self._has_min_counts:
                plain = {**plain, "spec": without_min_counts(object_at(plain, "spec"))}
            metadata = {**object_at(plain, "metadata"), "generation": generation}
            back = json.dumps({**plain, "metadata": metadata, "status": status}).encode()
            try:
                seen.engine.apply(back, now=result.time)
            except ManifestError:
                # A saturated usage is not a multiple of the count, which the API requires of statuses.
                filled = {**from_manifest(plain).to_manifest(), "metadata": metadata, "status": status}
                seen.engine.apply(json.dumps(filled).encode(), now=result.time, trusted=True)
        return bool(written)
