"""Tries changes on forks of a state: does a workload get quota, and which others move?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from kueuecore._json import JsonObject
from kueuecore.answers.binding import what_binds
from kueuecore.answers.moves import moves_between
from kueuecore.answers.state_changes import Deletion, change_state, resubmit
from kueuecore.decisions import Preemption
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, UnknownObjectError
from kueuecore.scenarios.edits import Edit
from kueuecore.states import Stage, WorkloadState
from kueuecore.steady_state import Ending, Settled, most_flavors, settle

__all__ = ["MAX_TRIES", "OutOfTriesError", "Step", "Trials", "Verdict"]

MAX_TRIES = 1_000
"""How many steps are tried by default. Counted, not timed, so that an answer is the same on every machine."""

# Stops endless evictions; a state that settles takes far fewer.
_MAX_CYCLES = 2_000


@dataclass(frozen=True, slots=True)
class Step:
    """A set of changes. If they touch the workload itself, it is submitted again, with its name and creation time.

    Args:
        edits: The fields to change.
        deletions: The objects to delete.
        resubmits: Whether the workload is submitted again even if nothing about it changes.
        objects: The objects to add.
    """

    edits: tuple[Edit, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    resubmits: bool = False
    objects: tuple[JsonObject, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether it changes no object."""
        return not (self.edits or self.deletions or self.objects)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The consequences of a step that admits the workload.

    Args:
        preemptions: The workloads that it preempts.
        evicted: Keys of other workloads that lose their quota, whichever workload preempts them, or are deleted.
        moved: Keys of all other workloads whose stage, queue or flavors change.
    """

    preemptions: tuple[Preemption, ...]
    evicted: tuple[str, ...]
    moved: tuple[str, ...]


class OutOfTriesError(Exception):
    """All tries are used up."""


class Trials:
    """Tries steps on forks of a settled state.

    Args:
        engine: The settled state.
        namespace: Namespace of the workload that should get quota.
        name: Its name.
        now: The time of everything that happens.
        most: How many steps may be tried; each further one raises `OutOfTriesError`.
        progress: Called with the number of steps tried so far, before each of them.
    """

    def __init__(
        self,
        engine: Engine,
        namespace: str,
        name: str,
        now: int,
        *,
        most: int = MAX_TRIES,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.engine = engine
        self.namespace = namespace
        self.name = name
        self.most = most
        self.n_tried = 0
        self.now = now
        self._own = f"{namespace}/{name}"
        self._progress = progress
        self._n_flavors = most_flavors(engine)
        self._refused = engine

    @property
    def n_left(self) -> int:
        """How many steps may still be tried."""
        return self.most - self.n_tried

    def admits(self, step: Step) -> bool:
        """Whether the workload holds quota once nothing changes any more. Does not validate the step."""
        return self._run(step, trusted=True) is not None

    def judge(self, step: Step) -> Verdict | None:
        """Try a step; `None` if it does not admit the workload, or an API server with Kueue would reject it."""
        try:
            ran = self._run(step, trusted=False)
        except ManifestError:
            return None
        return None if ran is None else self._verdict(step, *ran)

    def _run(self, step: Step, *, trusted: bool) -> tuple[Engine, Settled] | None:
        if self.n_tried >= self.most:
            raise OutOfTriesError
        if self._progress is not None:
            self._progress(self.n_tried)
        self.n_tried += 1
        fork, settled = self._settled(step, trusted=trusted, finds_loops=False)
        evicted = Counter(preemption.key for decision in settled.decisions for preemption in decision.preemptions)
        if any(n > 1 for n in evicted.values()):
            # Perhaps in a circle; to find that out takes a look at all workloads after each eviction.
            fork, settled = self._settled(step, trusted=trusted, finds_loops=True)
        stage = fork.workload(self.name, namespace=self.namespace).stage
        has_quota = stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED)
        if has_quota and settled.ending is Ending.SETTLED:
            return fork, settled
        self._refused = fork
        return None

    def what_binds(self, *, by_preemption: bool = False) -> str:
        """What keeps the workload waiting after the last step that did not admit it.

        Args:
            by_preemption: Whether the step was to let it preempt others.
        """
        return what_binds(self._refused, self.name, namespace=self.namespace, now=self.now, by_preemption=by_preemption)

    def _settled(self, step: Step, *, trusted: bool, finds_loops: bool) -> tuple[Engine, Settled]:
        fork = self.engine.fork()
        if step.objects:
            fork.apply(list(step.objects), now=self.now, trusted=trusted)
        change_state(fork, step.edits, step.deletions, now=self.now, trusted=trusted)
        if step.resubmits:
            workload = fork.object("Workload", self.name, namespace=self.namespace)
            resubmit(fork, workload, now=self.now, trusted=trusted)
        settled = settle(
            fork,
            now=self.now,
            max_cycles=_MAX_CYCLES,
            was_at_rest=True,
            finds_loops=finds_loops,
            # No step adds a flavor to a ClusterQueue.
            n_flavors=self._n_flavors,
        )
        return fork, settled

    def _verdict(self, step: Step, fork: Engine, settled: Settled) -> Verdict:
        decisions = settled.decisions
        ended = [preemption for decision in decisions for preemption in (*decision.preemptions, *decision.evictions)]
        admitted = [admission for decision in decisions for admission in (*decision.admissions, *decision.placed)]
        # Every move leaves a decision or an event: comparing those workloads is enough.
        said = {(decision.namespace, decision.name) for decision in (*ended, *admitted)}
        said |= {(event.namespace, event.name) for event in settled.events}
        said |= {(deletion.namespace, deletion.name) for deletion in step.deletions}
        said -= {(self.namespace, self.name)}
        before, after = _states(self.engine, said), _states(fork, said)
        had = {error.key for error in before if error.stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED)}
        moves = moves_between(before, after)
        # A workload that was evicted and readmitted to the same place has still lost its work.
        lost = {move.key for move in moves if not (move.after and move.after.has_quota)} | {
            decision.key for decision in ended
        }
        # A slice ends because its successor has quota: its pods stay (rules/09 §2.3).
        replaced = {slice_.key for decision in decisions for slice_ in decision.replaced_slices}
        evicted = (lost & had) - replaced
        preemptions = tuple(
            decision for decision in ended if isinstance(decision, Preemption) and decision.preemptor == self._own
        )
        return Verdict(
            preemptions, tuple(sorted(evicted)), tuple(sorted({move.key for move in moves} - evicted - replaced))
        )


def _states(engine: Engine, keys: Iterable[tuple[str, str]]) -> list[WorkloadState]:
    found = []
    for namespace, name in sorted(keys):
        with suppress(UnknownObjectError):
            found.append(engine.workload(name, namespace=namespace))
    return found
