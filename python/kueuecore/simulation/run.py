"""What happens in a run through virtual time, and what came of it: plain data, whoever ran it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kueuecore import _core
from kueuecore.decisions import Decision
from kueuecore.engine import Engine
from kueuecore.manifests import ManifestLike
from kueuecore.steady_state import PreemptionLoop, find_preemption_loop

__all__ = [
    "Domain",
    "Happening",
    "NodeLoss",
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
    """What can happen from outside."""

    CREATE = "create"
    """An object appears."""
    UPDATE = "update"
    """An object is replaced: its spec, of a Workload also its labels and annotations, and `status.reclaimablePods`
    if there are any."""
    FINISH = "finish"
    """The job of a workload ends, whether it runs or not."""
    DELETE = "delete"
    """A workload, or another object, is deleted."""


class NodeLoss(StrEnum):
    """What becomes of the run of a job from when Kueue records a failed node of its (`status.unhealthyNodes`).

    The pods have left that node by then (`linger_seconds`). It lasts until they have got another one
    (`StepKind.REPLACED`) or the node is back; a job that is evicted instead begins anew once it is admitted again.
    """

    RUNS_ON = "RunsOn"
    """It runs on, as in the runs of Kueue that were recorded."""
    WAITS = "Waits"
    """It stands still and then goes on: what was done is kept elsewhere."""
    STARTS_OVER = "StartsOver"
    """It stands still and then begins anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something that happens from outside. What names a workload that is gone is ignored.

    Args:
        at: Seconds after the beginning; late if the cycles before took longer.
        op: What happens.
        object: The object that is created or updated.
        key: `namespace/name` of the Workload that is finished or deleted; of another object that is deleted, its name,
            after its namespace and a slash if it has one.
        kind: The kind of what is deleted.
        run_seconds: How long the job of a created Workload runs once it is admitted; `None`: for ever.
        ready_seconds: Where the configuration says `waitForPodsReady`: so long after its n-th admission the pods of a
            created Workload are ready; the last entry holds for all later admissions; `None` in the list: never.
            Without a list at once. `run_seconds` begins when the pods are first ready in an admission.
        fail_seconds: So long after they are first ready in an admission, one of them fails; `None`: never.
        recover_seconds: So long after the failure all are ready again; `None`: never.
        linger_seconds: How long the pods of a created Workload stay on a node that has failed (rules/08 §13.2); `None`:
            they are gone at once.
        node_loss: What becomes of the run of a created Workload once they are gone.
        save_seconds: How much work lies between two checkpoints of a job: one that is evicted, or begins anew as a node
            has failed, goes on from the last; `None`: it has none, and begins from the start.
        ends_failed: Once it has run its time, the job of a created Workload fails: the reason of its condition Finished
            is `Failed` in place of `Succeeded`.
        done_seconds: How much of its run was done when it appeared, as that of a Workload that was admitted before. An
            eviction loses that, too.
    """

    at: float
    op: Operation
    object: ManifestLike | None = None
    key: str | None = None
    kind: str = "Workload"
    run_seconds: float | None = None
    ready_seconds: Sequence[float | None] | None = None
    fail_seconds: float | None = None
    recover_seconds: float | None = None
    linger_seconds: float | None = None
    node_loss: NodeLoss = NodeLoss.RUNS_ON
    save_seconds: float | None = None
    ends_failed: bool = False
    done_seconds: float | None = None


class RunEnding(StrEnum):
    """Why a run ended."""

    COMPLETE = "Complete"
    """Nothing is left to happen."""
    CYCLE_LIMIT = "CycleLimit"
    """`max_cycles` was reached; if workloads preempt each other for ever, `Run.loop` says which."""
    INTERRUPTED = "Interrupted"
    """Ctrl-C was pressed."""


Progress: TypeAlias = Callable[[int, int, int], object]
"""Is called now and then in the course of a run, with its time in nanoseconds since 1970, how many workloads have come
and how many jobs have ended."""


class StepKind(StrEnum):
    """What became of a workload."""

    CREATED = "Created"
    """It appeared."""
    ADMITTED = "Admitted"
    """Its job may run."""
    STOPPED = "Stopped"
    """It was evicted, and its job has stopped: its quota is free."""
    FINISHED = "Finished"
    """Its job has ended."""
    DELETED = "Deleted"
    """It is gone."""
    REPLACED = "Replaced"
    """Its pods got other nodes in place of one that had failed, while its job runs."""


@dataclass(frozen=True, slots=True)
class Step:
    """One moment in the life of a workload.

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
    """Where pods were placed: a domain of a topology.

    Args:
        levels: The node labels of its levels, the widest first, as in the `topologyAssignment` of a Workload: of a
            topology whose lowest level is the hostname, this level alone (rules/08 §15.1).
        values: Its value of each of these labels.

    Example:
        >>> str(Domain(("example.com/block", "example.com/rack"), ("b1", "r2")))
        'b1/r2'
    """

    levels: tuple[str, ...]
    values: tuple[str, ...]

    def __str__(self) -> str:
        """Its values with slashes between them: mostly the name of a node."""
        return "/".join(self.values)


@dataclass(frozen=True, slots=True)
class SimulatedCycle:
    """A cycle of a run in which something happened.

    Args:
        number: Its number in the run, from 1.
        time: When it began, in nanoseconds since 1970.
        decision: What it decided. Without `messages` it has neither events nor the heads that stayed pending.
        n_parked: How many workloads it set aside until something changes.
        parked: Their keys, sorted; with `messages` alone.
    """

    number: int
    time: int
    decision: Decision
    n_parked: int
    parked: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """What came of a run.

    Args:
        engine: The state at its end, to look at or to go on with.
        ending: Why it ended.
        start: The time at its beginning, in nanoseconds since 1970.
        end: The time at its end.
        n_cycles: Number of cycles, also of those in which nothing happened.
    """

    engine: Engine
    ending: RunEnding
    start: int
    end: int
    n_cycles: int
    _core: _core.Record = field(repr=False)

    @cached_property
    def cycles(self) -> tuple[SimulatedCycle, ...]:
        """The cycles in which something happened or, with `messages`, was said."""
        rows = (self._core.cycle(index) for index in range(self._core.n_recorded_cycles()))
        return tuple(
            SimulatedCycle(number, time, Decision(decision), n_parked, tuple(parked))
            for number, time, decision, n_parked, parked in rows
        )

    @cached_property
    def loop(self) -> PreemptionLoop | None:
        """The circle in which workloads evict each other, if that is why the run came to its limit of cycles.

        Looked for from the end of the run on, with time standing still, as `find_preemption_loop` does.
        """
        if self.ending is not RunEnding.CYCLE_LIMIT:
            return None
        return find_preemption_loop(self.engine, now=self.end)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What became of the workloads, in order of time."""
        return tuple(Step(time, StepKind(kind), key) for time, kind, key in zip(*self._core.steps(), strict=True))

    # The same as arrays, without a Python object a workload.

    @cached_property
    def workload_keys(self) -> tuple[str | None, ...]:
        """`namespace/name` by number; `None`: it never appeared.

        First come the rows of the submissions, then the Workloads that events create, in the order given, then those
        that were there from the start and that something happened to.
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

        `number`, `time` in nanoseconds since 1970, and how many workloads got quota (`admissions`), have to give way
        (`preemptions`), were set aside (`parked`).
        """
        names = ("number", "time", "admissions", "preemptions", "parked")
        dtype = np.dtype([(name, "<i8") for name in names])
        table: npt.NDArray[np.void] = np.frombuffer(self._core.cycle_columns(), dtype=dtype)
        return table

    @cached_property
    def preemption_table(self) -> npt.NDArray[np.void]:
        """Who was preempted for whom as a structured array, shape (n,), in order of time.

        `time` in nanoseconds since 1970, `workload` and `preemptor` as numbers, and `reason` as an index in
        `Engine.names().reasons`: `InClusterQueue`, `InCohortReclamation`, `InCohortFairSharing`,
        `InCohortReclaimWhileBorrowing` (rules/04), or `FlavorMigration` of variants. A job that takes time to stop
        gives its quota back later: `step_table` says when.

        Example:
            The evictions that each workload of a run has caused:
            `np.bincount(table["preemptor"], minlength=len(run.workload_keys))`.
        """
        names = ("time", "workload", "preemptor", "reason")
        return _table(names, ("<i8", "<u4", "<u4", "u1"), self._core.preemption_columns())

    @cached_property
    def placement_table(self) -> npt.NDArray[np.void]:
        """Where pods were placed as a structured array, shape (n,), in order of time.

        `time` in nanoseconds since 1970, `workload` as its number, `pod_set` as the index in its admission, `domain` as
        the index in `domains`, `pods` as their count. Workloads without a topology have no rows. All rows of a workload
        at one time are one placement: where its pods are from when its job starts, or when a failed node is replaced
        (`StepKind.ADMITTED`, `REPLACED`), until the next one or until the job stops, ends or goes.
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
        """Which nodes were lost and came back as a structured array, shape (n,), in order of time.

        `time` in nanoseconds since 1970, `node` as the index in `node_names`, `is_lost`: True where it was lost, False
        where it is back. A node is lost while it is not ready, is gone, or has a taint `NoSchedule` or `NoExecute`
        that it did not have before; one that is not ready at the beginning is lost then. A new node makes no row, and
        without the gate TopologyAwareScheduling there are none.
        """
        return _table(("time", "node", "is_lost"), ("<i8", "<u4", "?"), self._core.node_columns()[0])

    @cached_property
    def node_names(self) -> tuple[str, ...]:
        """The names of the nodes in `node_table`, each once."""
        return tuple(self._core.node_columns()[1])

    @cached_property
    def failed(self) -> npt.NDArray[np.bool_]:
        """Whose jobs have failed, by number, shape (n,): the reason of the condition Finished is `Failed`."""
        (numbers, reasons), words = self._core.endings()
        failed = np.zeros(self._core.n_workloads(), np.bool_)
        if _FAILED in words:
            failed[np.frombuffer(numbers, "<u4")[np.frombuffer(reasons, "<u4") == words.index(_FAILED)]] = True
        return failed

    @cached_property
    def outcome_table(self) -> npt.NDArray[np.void]:
        """What became of each workload as a structured array by number, shape (n,), of i8.

        `created`, `admitted` (the first time) and `finished` in nanoseconds since 1970, -1 for never; `admissions`,
        `evictions` and `replacements` of nodes that failed are counts.

        Example:
            The mean time that the jobs of a run waited: `wait = table["admitted"] - table["created"]`.
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
            # The last to be written stays, so the first goes last.
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
