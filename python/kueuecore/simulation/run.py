"""The events and results of a run through virtual time, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kueuecore import _core
from kueuecore.configuration import Configuration
from kueuecore.decisions import Decision, Event
from kueuecore.engine import Engine
from kueuecore.manifests import ManifestLike
from kueuecore.simulation.job_plan import JobPlan
from kueuecore.steady_state import PreemptionLoop, find_preemption_loop

__all__ = [
    "Domain",
    "Happening",
    "Operation",
    "Progress",
    "Run",
    "RunEnding",
    "SimulatedCycle",
    "Step",
    "StepKind",
]

_FAILED = "Failed"


class Operation(StrEnum):
    """The kinds of outside events."""

    CREATE = "create"
    """An object appears."""
    UPDATE = "update"
    """An object is replaced: its spec; for a Workload also its labels and annotations, and `status.reclaimablePods`
    if given."""
    FINISH = "finish"
    """The job of a workload ends, whether it runs or not."""
    DELETE = "delete"
    """A workload, or another object, is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """An outside event. It is ignored if it names a workload that is gone.

    Args:
        at: Seconds after the start; later if the cycles before took longer.
        op: What happens.
        object: The object to create or update.
        key: `namespace/name` of the Workload that finishes or is deleted; for another deleted object its name, preceded
            by its namespace and a slash if it has one.
        kind: The kind of the deleted object.
        plan: What the job of a created Workload does.
    """

    at: float
    op: Operation
    object: ManifestLike | None = None
    key: str | None = None
    kind: str = "Workload"
    plan: JobPlan = field(default_factory=JobPlan)


class RunEnding(StrEnum):
    """Why a run ended."""

    COMPLETE = "Complete"
    """Nothing is left to happen."""
    CYCLE_LIMIT = "CycleLimit"
    """`max_cycles` was reached; if workloads preempt each other forever, `Run.loop` says which."""
    INTERRUPTED = "Interrupted"
    """Ctrl-C was pressed."""


Progress: TypeAlias = Callable[[int, int, int], object]
"""Called now and then during a run with its time in nanoseconds since 1970, and the numbers of workloads that have
arrived and of jobs that have ended."""


class StepKind(StrEnum):
    """What happened to a workload."""

    CREATED = "Created"
    """It was created."""
    ADMITTED = "Admitted"
    """Its job may run."""
    STOPPED = "Stopped"
    """It was evicted, and its job has stopped: its quota is free."""
    FINISHED = "Finished"
    """Its job has ended."""
    DELETED = "Deleted"
    """It is gone."""
    REPLACED = "Replaced"
    """Its pods got other nodes for a failed one, while its job runs."""


@dataclass(frozen=True, slots=True)
class Step:
    """One event in the life of a workload.

    Args:
        time: When, in nanoseconds since 1970.
        kind: What happened.
        key: `namespace/name` of the workload.
    """

    time: int
    kind: StepKind
    key: str


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain of a topology where pods were placed.

    Args:
        levels: The node labels of its levels, the widest first, as in a Workload's `topologyAssignment`: if the lowest
            level is the hostname, only that level (rules/08 §15.1).
        values: Its value for each of these labels.

    Example:
        >>> str(Domain(("example.com/block", "example.com/rack"), ("b1", "r2")))
        'b1/r2'
    """

    levels: tuple[str, ...]
    values: tuple[str, ...]

    def __str__(self) -> str:
        """Return its values joined with slashes; usually the name of a node."""
        return "/".join(self.values)


@dataclass(frozen=True, slots=True)
class SimulatedCycle:
    """A cycle of a run in which something happened.

    Args:
        number: Its number in the run, from 1.
        time: When it started, in nanoseconds since 1970.
        decision: Its decision. Without `messages` it has neither events nor the heads that stayed pending.
        n_parked: How many workloads it parked until something changes.
        parked: Their keys, sorted; only with `messages`.
    """

    number: int
    time: int
    decision: Decision
    n_parked: int
    parked: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Run:
    """The result of a run. Two are equal if the same happened at the same times.

    Pickling keeps all of it, and the engine as `Engine.save` does: without a journal.

    Args:
        engine: The engine in its final state, to inspect or to continue with.
        ending: Why it ended.
        start: The start time, in nanoseconds since 1970.
        end: The end time.
        n_cycles: Number of cycles, including those in which nothing happened.
        events: The events that Kueue would have emitted, with their times in nanoseconds since 1970; only with
            `messages`.
    """

    engine: Engine
    ending: RunEnding
    start: int
    end: int
    n_cycles: int
    _core: _core.Record = field(repr=False)
    events: tuple[tuple[int, Event], ...] = field(default=(), repr=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        return self._happened() == other._happened()

    def __hash__(self) -> int:
        return hash((self.ending, self.start, self.end, self.n_cycles))

    def __reduce__(self) -> tuple[object, ...]:
        core, engine = self._core, self.engine
        record = core.log_part(), core.ending, core.end, core.n_cycles, core.n_workloads()
        when = self.ending, self.start, self.end, self.n_cycles
        kept = self._cycle_columns, self.cycles, self.events
        return _unpickled, ((engine.save(), engine.configuration), when, record, kept)

    def _happened(self) -> tuple[object, ...]:
        core = self._core
        columns = core.step_columns(), self._cycle_columns, core.preemption_columns(), core.placement_columns()
        when = self.ending, self.start, self.end, self.n_cycles
        return *when, core.keys(), *columns, core.domains(), core.node_columns(), core.endings(), self.events

    @cached_property
    def _cycle_columns(self) -> bytes:
        return self._core.cycle_columns()

    @cached_property
    def cycles(self) -> tuple[SimulatedCycle, ...]:
        """The cycles in which something happened or, with `messages`, a message was written."""
        rows = (self._core.cycle(index) for index in range(self._core.n_recorded_cycles()))
        return tuple(
            SimulatedCycle(number, time, Decision(decision), n_parked, tuple(parked))
            for number, time, decision, n_parked, parked in rows
        )

    @cached_property
    def loop(self) -> PreemptionLoop | None:
        """The loop in which workloads evict each other, if that is why the run reached its limit of cycles.

        It is searched for from the end of the run, with time standing still, as `find_preemption_loop` does.
        """
        if self.ending is not RunEnding.CYCLE_LIMIT:
            return None
        return find_preemption_loop(self.engine, now=self.end)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What happened to workloads, in order of time."""
        return tuple(Step(time, StepKind(kind), key) for time, kind, key in zip(*self._core.steps(), strict=True))

    # The same as arrays, without a Python object per workload.

    @cached_property
    def workload_keys(self) -> tuple[str | None, ...]:
        """The `namespace/name` of each workload by number; `None`: it was never created.

        First come the rows of the submissions, then the Workloads that events create, in the order given, then the
        initial Workloads that something happened to.
        """
        return tuple(self._core.keys())

    @cached_property
    def step_table(self) -> npt.NDArray[np.void]:
        """The steps as a structured array, shape (n,).

        `time` in nanoseconds since 1970, `kind` as the index in `StepKind`, `workload` as its number.
        """
        return _table(("time", "kind", "workload"), ("<i8", "u1", "<u4"), self._core.step_columns())

    @cached_property
    def cycle_table(self) -> npt.NDArray[np.void]:
        """The cycles in which something happened as a structured array, shape (n,), of i8.

        `number`, `time` in nanoseconds since 1970, and how many workloads got quota (`admissions`), were preempted
        (`preemptions`) or parked (`parked`).
        """
        names = ("number", "time", "admissions", "preemptions", "parked")
        dtype = np.dtype([(name, "<i8") for name in names])
        table: npt.NDArray[np.void] = np.frombuffer(self._cycle_columns, dtype=dtype)
        return table

    @cached_property
    def preemption_table(self) -> npt.NDArray[np.void]:
        """The preemptions as a structured array, shape (n,), in order of time.

        `time` in nanoseconds since 1970, `workload` and `preemptor` as numbers, and `reason` as an index in
        `Engine.names().reasons`: `InClusterQueue`, `InCohortReclamation`, `InCohortFairSharing`,
        `InCohortReclaimWhileBorrowing` (rules/04), or `FlavorMigration` for variants. A job that takes time to stop
        releases its quota later: `step_table` says when.

        Example:
            The number of evictions that each workload caused:
            `np.bincount(table["preemptor"], minlength=len(run.workload_keys))`.
        """
        names = ("time", "workload", "preemptor", "reason")
        return _table(names, ("<i8", "<u4", "<u4", "u1"), self._core.preemption_columns())

    @cached_property
    def placement_table(self) -> npt.NDArray[np.void]:
        """The placements of pods as a structured array, shape (n,), in order of time.

        `time` in nanoseconds since 1970, `workload` as its number, `pod_set` as the index in its admission, `domain` as
        the index in `domains`, `pods` as their count. Workloads without a topology have no rows. All rows of a workload
        at the same time are one placement. It holds from when its job starts or a failed node is replaced
        (`StepKind.ADMITTED`, `REPLACED`) until the next one, or until the job stops, ends or is deleted.
        """
        names = ("time", "workload", "pod_set", "domain", "pods")
        return _table(names, ("<i8", "<u4", "<u4", "<u4", "<i4"), self._core.placement_columns())

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        """The domains that `placement_table` refers to, each once."""
        levels, domains = self._core.domains()
        return tuple(Domain(tuple(levels[index]), tuple(values)) for index, values in domains)

    @cached_property
    def node_table(self) -> npt.NDArray[np.void]:
        """The losses and returns of nodes as a structured array, shape (n,), in order of time.

        `time` in nanoseconds since 1970, `node` as the index in `node_names`, `is_lost`: True if it was lost, False if
        it is back. A node is lost while it is not ready, is gone, or has a new taint `NoSchedule` or `NoExecute`; one
        that is not ready at the start is lost then. A new node has no row. Without the gate TopologyAwareScheduling
        there are no rows.
        """
        return _table(("time", "node", "is_lost"), ("<i8", "<u4", "?"), self._core.node_columns()[0])

    @cached_property
    def node_names(self) -> tuple[str, ...]:
        """The names of the nodes in `node_table`, each once."""
        return tuple(self._core.node_columns()[1])

    @cached_property
    def failed(self) -> npt.NDArray[np.bool_]:
        """Whether each job has failed, by number, shape (n,): the reason of the condition Finished is `Failed`."""
        (numbers, reasons), words = self._core.endings()
        failed = np.zeros(self._core.n_workloads(), np.bool_)
        if _FAILED in words:
            failed[np.frombuffer(numbers, "<u4")[np.frombuffer(reasons, "<u4") == words.index(_FAILED)]] = True
        return failed

    @cached_property
    def outcome_table(self) -> npt.NDArray[np.void]:
        """The outcome of each workload as a structured array by number, shape (n,), of i8.

        `created`, `admitted` (the first time) and `finished` in nanoseconds since 1970, -1 for never; `admissions`,
        `evictions` and `replacements` of failed nodes are counts.

        Example:
            The waits of admitted jobs: `wait = table["admitted"] - table["created"]`.
        """
        steps = self.step_table
        n = self._core.n_workloads()
        names = ("created", "admitted", "finished", "admissions", "evictions", "replacements")
        table = np.zeros(n, dtype=[(name, "<i8") for name in names])
        kinds = list(StepKind)

        def of(kind: StepKind) -> npt.NDArray[np.void]:
            rows: npt.NDArray[np.void] = steps[steps["kind"] == kinds.index(kind)]
            return rows

        for name, kind in (
            ("created", StepKind.CREATED),
            ("admitted", StepKind.ADMITTED),
            ("finished", StepKind.FINISHED),
        ):
            rows = of(kind)
            table[name] = -1
            # The last write wins, so write the first one last.
            table[name][rows["workload"][::-1]] = rows["time"][::-1]
        for name, kind in (
            ("admissions", StepKind.ADMITTED),
            ("evictions", StepKind.STOPPED),
            ("replacements", StepKind.REPLACED),
        ):
            table[name] = np.bincount(of(kind)["workload"], minlength=n)
        return table


def _table(names: Sequence[str], types: Sequence[str], columns: Sequence[bytes]) -> npt.NDArray[np.void]:
    arrays = [np.frombuffer(column, type_) for type_, column in zip(types, columns, strict=True)]
    table = np.empty(len(arrays[0]), dtype=[*zip(names, types, strict=True)])
    for name, array in zip(names, arrays, strict=True):
        table[name] = array
    return table


def _unpickled(
    engine: tuple[bytes, Configuration],
    when: tuple[RunEnding, int, int, int],
    record: tuple[bytes, str, int, int, int],
    kept: tuple[bytes, tuple[SimulatedCycle, ...], tuple[tuple[int, Event], ...]],
) -> Run:
    """Make a run of its parts in a pickle. The record cannot keep cycles, so they stand beside it."""
    saved, configuration = engine
    loaded = Engine.load(saved, configuration=configuration)
    columns, cycles, events = kept
    run = Run(loaded, *when, _core.Record.of_log_part(*record), events)
    vars(run)["_cycle_columns"], vars(run)["cycles"] = columns, cycles
    return run
