"""Says which Workloads would not even be admitted if they had the cluster to themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kueuecore.forecasts.past_jobs import template_of
from kueuecore.forecasts.present_workloads import PresentWorkload, Status
from kueuecore.manifests import Manifest
from kueuecore.scenarios import Scenario
from kueuecore.simulation import Happening, Operation
from kueuecore.simulation.stepper import Stepper
from kueuecore.waiting_cause import message_or_cause

__all__ = ["Alone"]

# Even alone, a workload may be admitted and evicted in turn for ever.
_MAX_CYCLES = 10_000


class Alone:
    """A cluster without Workloads.

    Args:
        scenario: The cluster.
        objects: All objects except Workloads.
        trusted: Whether the objects are taken as they are.
    """

    def __init__(self, scenario: Scenario, objects: Sequence[Manifest], *, trusted: bool) -> None:
        self._scenario, self._objects, self._trusted = scenario, tuple(objects), trusted
        self._base: Stepper | None = None
        # Why those that ask for the same would not be admitted.
        self._known: dict[str, str] = {}

    def why_never(self, workload: PresentWorkload) -> str:
        """Return why a workload would not be admitted if it had the cluster to itself; empty if it would or might."""
        scenario = self._scenario
        if scenario.timetable or scenario.cluster.nodes or workload.status is not Status.PENDING:
            return ""
        # Names and statuses do not matter.
        asked = json.dumps(template_of(workload.manifest.object), sort_keys=True)
        if asked not in self._known:
            self._known[asked] = self._found(workload)
        return self._known[asked]

    def _found(self, workload: PresentWorkload) -> str:
        stepper = self._stepper()
        stepper.schedule([Happening(at=0, op=Operation.CREATE, object=workload.manifest)])
        stepper.happened()
        stepper.advance()
        run = stepper.run()
        if run.outcome_table["admitted"][0] >= 0:
            return ""
        # A trusted name may have slashes, which a key does not tell from the one that it has.
        state = next(other for other in run.engine.workloads() if other.key == workload.key)
        return message_or_cause(run.engine, state) or "it is not admitted"

    def _stepper(self) -> Stepper:
        """Return a run of its own."""
        if self._base is None:
            self._base = Stepper(
                self._objects,
                configuration=self._scenario.cluster.configuration,
                now=self._scenario.start,
                checks=(),
                trusted=self._trusted,
                cycle_seconds=1.0,
                max_cycles=_MAX_CYCLES,
                eviction_seconds=0.0,
                messages=False,
                cycles=False,
            )
        if self._base.can_fork:
            return self._base.fork()
        base, self._base = self._base, None
        return base
