"""Changes tried on forks of a state: does a workload get quota, and who moves for it?"""

from __future__ import annotations

from dataclasses import dataclass

from kueuecore._json import JsonObject, object_at
from kueuecore.answers.moves import moves_between
from kueuecore.answers.state_changes import Deletion, change_state
from kueuecore.decisions import Preemption
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.scenarios.edits import Edit
from kueuecore.states import Stage
from kueuecore.steady_state import Ending, Settled, settle

__all__ = ["Step", "Trials", "Verdict"]

_MOST_CYCLES = 10_000


@dataclass(frozen=True, slots=True)
class Step:
    """What is changed. If it is the workload itself, it is submitted again, with its name and its time of creation.

    Args:
        edits: Fields.
        deletions: Objects that go.
        resubmits: Is the workload submitted again even if nothing of it changes?
    """

    edits: tuple[Edit, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    resubmits: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a step that admits the workload comes to.

    Args:
        preemptions: Whom the workload preempts.
        evicted: Keys of the others that lose their quota, for whomever, or are deleted with it.
        moved: Keys of all others that stand elsewhere then.
    """

    preemptions: tuple[Preemption, ...]
    evicted: tuple[str, ...]
    moved: tuple[str, ...]


class Trials:
    """Tries steps on forks of a state at rest.

    Args:
        engine: The state.
        namespace: Namespace of the workload that is to get quota.
        name: Its name.
        now: The time of everything that happens.
    """

    def __init__(self, engine: Engine, namespace: str, name: str, now: int) -> None:
        self.engine = engine
        self.namespace = namespace
        self.name = name
        self.n_tried = 0
        self._now = now
        self._own = f"{namespace}/{name}"
        plain = engine.object("Workload", name, namespace=namespace)
        metadata = {key: value for key, value in object_at(plain, "metadata").items() if key != "generation"}
        # As it was submitted: what a cycle has written is gone.
        self._object: JsonObject = {**plain, "metadata": metadata}
        self._object.pop("status", None)
        self._before = engine.workloads()

    def admits(self, step: Step) -> bool:
        """Does the workload hold quota once nothing changes any more? The step is taken as it is, unchecked."""
        return self._run(step, trusted=True) is not None

    def judge(self, step: Step) -> Verdict | None:
        """What a step comes to; `None`: it does not admit the workload, or an API server with Kueue would refuse it."""
        try:
            ran = self._run(step, trusted=False)
        except ManifestError:
            return None
        return None if ran is None else self._verdict(*ran)

    def _run(self, step: Step, *, trusted: bool) -> tuple[Engine, Settled] | None:
        self.n_tried += 1
        fork = self.engine.fork()
        own = [it for it in step.edits if (it.kind, it.name) == ("Workload", self._own)]
        others = [it for it in step.edits if it not in own]
        change_state(fork, others, step.deletions, now=self._now, trusted=trusted)
        if own or step.resubmits:
            plain = self._object
            for edit in own:
                plain = edit.apply(plain)
            fork.delete("Workload", self.name, namespace=self.namespace, now=self._now)
            fork.apply(plain, now=self._now, trusted=trusted)
        settled = settle(fork, now=self._now, max_cycles=_MOST_CYCLES)
        stage = fork.workload(self.name, namespace=self.namespace).stage
        has_quota = stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED)
        return (fork, settled) if has_quota and settled.ending is Ending.SETTLED else None

    def _verdict(self, fork: Engine, settled: Settled) -> Verdict:
        key = self._own
        moves = [it for it in moves_between(self._before, fork.workloads()) if it.key != key]
        lost = {it.key for it in moves if it.before and it.before.has_quota and not (it.after and it.after.has_quota)}
        # Who was evicted and is back where it was has lost what it had done all the same.
        had = {it.key for it in self._before if it.stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED)}
        ended = (it.key for decision in settled.decisions for it in (*decision.preemptions, *decision.evictions))
        evicted = (lost | set(ended) & had) - {key}
        preemptions = [it for decision in settled.decisions for it in decision.preemptions if it.preemptor == key]
        moved = {it.key for it in moves} - evicted
        return Verdict(tuple(preemptions), tuple(sorted(evicted)), tuple(sorted(moved)))
