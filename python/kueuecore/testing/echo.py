"""What a cycle has written comes back, as a watch brings it to a controller: Kueue hears of its own writes, too."""

from __future__ import annotations

import json

from kueuecore._json import object_at
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.testing.scenario import Scenario, key_of
from kueuecore.testing.told import Told

__all__ = ["Echo"]


class Echo:
    """Applies what cycles have written.

    Args:
        scenario: What is played; its workloads are those that are written.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._objects = {key_of(it): it for it in scenario.objects if it.get("kind") == "Workload"}

    def bring(self, engine: Engine, told: Told) -> bool:
        """Bring back what a cycle has written. Says whether there was anything."""
        given = told.move.object
        if given is not None and given.get("kind") == "Workload" and not told.refused:
            self._objects[key_of(given)] = given
        if told.decision is None:
            return False
        both = (*told.decision.admissions, *told.decision.preemptions)
        for written in both:
            status = engine.workload(written.name, namespace=written.namespace).status
            generation = max(it.get("observedGeneration", 0) for it in status["conditions"])
            plain = self._objects[written.key]
            metadata = {**object_at(plain, "metadata"), "generation": generation}
            back = json.dumps({**plain, "metadata": metadata, "status": status}).encode()
            try:
                engine.apply(back, now=told.time)
            except ManifestError:
                # A saturated usage is no multiple of the count, which those who write statuses may not write.
                engine.apply(back, now=told.time, trusted=True)
        return bool(both)
