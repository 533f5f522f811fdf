"""The state of a cluster at one moment, built once, from which many futures are played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kueuecore import _core
from kueuecore.checks import WorkloadKey
from kueuecore.forecasts.present_workloads import PresentWorkload, Status
from kueuecore.manifests import Manifest
from kueuecore.scenarios import Scenario
from kueuecore.scenarios.cluster_scenario import changes_of
from kueuecore.scenarios.job_rows import JobRows
from kueuecore.scenarios.node_timetable import nodes_of
from kueuecore.simulation import Happening, Operation
from kueuecore.simulation.look_ahead import LookAhead
from kueuecore.simulation.stepper import Stepper

__all__ = ["Base", "State", "rows_of"]

# Only workloads that preempt each other forever need so many.
_MAX_CYCLES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A cluster at one moment, which is the scenario's start. It may be a past one.

    Args:
        scenario: Its configuration, and the known part of its future: its timetable, and its own work. The Workloads
            and other objects in it play no part.
        objects: All objects except Workloads.
        workloads: Its Workloads that have not finished: those that hold quota with the status that says so, and others
            as they wait.
        trusted: Whether the objects are taken as they are.
    """

    scenario: Scenario
    objects: tuple[Manifest, ...]
    workloads: tuple[PresentWorkload, ...]
    trusted: bool


class Base:
    """A state just before its first cycle, in which the jobs of the present workloads have no run times yet.

    Args:
        state: The state.
        targets: The Workloads to watch; others are ignored.
        templates: The Workloads to copy for arrivals.

    Raises:
        ManifestError: Everything that is wrong with the objects.
    """

    def __init__(self, state: State, targets: Sequence[WorkloadKey], templates: Sequence[Manifest] = ()) -> None:
        self._state, self._targets = state, tuple(targets)
        self._keys = [workload.namespace_and_name for workload in state.workloads]
        self.templates = tuple(Happening(at=0, op=Operation.CREATE, object=template) for template in templates)
        first = self._built(state.scenario)
        self._read_templates = first.templates(self.templates)
        self._shared = (first, first.numbers_of(self._keys)) if first.stepper.can_fork else None

    def future(self, seed: int) -> tuple[LookAhead, bytes]:
        """Return a future of its own, and the numbers of the present workloads in it.

        Args:
            seed: The seed of what is random in the scenario itself.
        """
        scenario = replace(self._state.scenario, seed=seed)
        if self._shared is None:
            run = self._built(scenario)
            numbers = run.numbers_of(self._keys)
        else:
            run, numbers = self._shared[0].fork(), self._shared[1]
        # Times of failures and repeated changes may be random. What changes at once does so before the first cycle.
        if changes := changes_of(scenario, scenario.cluster):
            run.stepper.schedule(changes)
        return run, numbers

    @property
    def read_templates(self) -> _core.CopyTemplates:
        """The templates, as `LookAhead.schedule_copies` takes them."""
        return self._read_templates

    def _built(self, scenario: Scenario) -> LookAhead:
        stepper = _stepper(self._state, scenario)
        # As in a scenario: reservations exist before anything else happens.
        present = sorted(self._state.workloads, key=lambda workload: workload.status is Status.PENDING)
        stepper.schedule([Happening(at=0, op=Operation.CREATE, object=workload.manifest) for workload in present])
        stepper.happened()
        run = LookAhead(stepper)
        run.arrive()
        run.watch(run.numbers_of(self._targets))
        return run


def rows_of(scenario: Scenario, *, trusted: bool) -> JobRows:
    """Return a scenario's objects as an engine takes them, and its own work.

    Args:
        scenario: The scenario.
        trusted: Whether its objects come from a dump: then nothing is added or checked.

    Raises:
        ManifestError: A job that Kueue's webhooks would refuse, or two of the same name.
    """
    generated = () if scenario.generated is None else map(Manifest, scenario.generated.objects)
    return JobRows.of(
        [*generated, *nodes_of(scenario.cluster.nodes, start=scenario.start), *scenario.cluster.objects],
        scenario.work,
        generated=scenario.generated,
        traces=scenario.traces,
        configuration=scenario.cluster.configuration,
        seed=scenario.seed,
        trusted=trusted,
    )


def _stepper(state: State, scenario: Scenario) -> Stepper:
    return Stepper(
        state.objects,
        configuration=scenario.cluster.configuration,
        now=scenario.start,
        checks=scenario.cluster.checks(seed=scenario.seed),
        trusted=state.trusted,
        cycle_seconds=scenario.cycle_seconds,
        max_cycles=_MAX_CYCLES,
        eviction_seconds=0.0,
        messages=False,
        cycles=False,
        finished=False,
        log=False,
        # A part of a cluster is played as it is in the whole.
        beat=True,
    )
