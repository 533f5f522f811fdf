"""Each change that `unblock` proposes admits the workload once it is made, and one step less does not."""

from __future__ import annotations

import hashlib

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kueuecore import Engine, settle
from kueuecore.answers import Change, ChangeKind, Step, change_state, unblock
from kueuecore.decisions import Outcome
from kueuecore.scenarios import Edit
from kueuecore.states import Stage, WorkloadState
from kueuecore.steady_state import Ending
from kueuecore.testing import START, History, worlds
from kueuecore.testing.drawn_worlds import Limits
from tests.property.worlds import engine_of, times

HOLDING = (Stage.QUOTA_RESERVED, Stage.ADMITTED)
# Hypothesis draws many a world again; what fails is not in here, so it fails again.
ANSWERED: set[bytes] = set()


def made(engine: Engine, waiting: WorkloadState, step: Step, *, trusted: bool) -> Engine:
    """A copy on which a step is made as a user would: what changes about the workload comes with a new submission."""
    fork = engine.fork()
    own = [edit for edit in step.edits if edit.target.startswith(f"Workload/{waiting.key}:")]
    fork.apply(list(step.objects), now=START, trusted=trusted)
    change_state(fork, [edit for edit in step.edits if edit not in own], step.deletions, now=START, trusted=trusted)
    if own or step.resubmits:
        submitted = again(fork.object("Workload", waiting.name, namespace=waiting.namespace), own)
        fork.delete("Workload", waiting.name, namespace=waiting.namespace, now=START)
        fork.apply(submitted, now=START, trusted=trusted)
    return fork


def again(plain: dict, edits: list[Edit]) -> dict:  # type: ignore[type-arg]
    submitted = {name: value for name, value in plain.items() if name != "status"}
    submitted["metadata"] = {name: value for name, value in plain["metadata"].items() if name != "generation"}
    for edit in edits:
        submitted = edit.apply(submitted)
    return submitted


def gets_quota(fork: Engine, waiting: WorkloadState) -> bool:
    ending = settle(fork, now=START, max_cycles=10_000).ending
    stage = fork.workload(waiting.name, namespace=waiting.namespace).stage
    return ending is Ending.SETTLED and stage in HOLDING


def holders(engine: Engine) -> set[str]:
    return {workload.key for workload in engine.workloads() if workload.stage in HOLDING}


def check(engine: Engine, waiting: WorkloadState, change: Change) -> None:
    fork = made(engine, waiting, change.step, trusted=False)
    before = holders(engine)
    assert gets_quota(fork, waiting), change
    # Where there is no smaller step, nothing at all is the step less: the same workload, submitted again if it was.
    own = any(edit.target.startswith(f"Workload/{waiting.key}:") for edit in change.step.edits)
    nothing = Step(resubmits=own or (change.step.resubmits and change.kind is not ChangeKind.START))
    for less in change.less or (nothing,):
        assert not gets_quota(made(engine, waiting, less, trusted=True), waiting), (change, less)
    lost = before - holders(fork)
    assert lost <= set(change.evicted), change
    assert waiting.key not in (*change.evicted, *change.moved)
    assert not set(change.evicted) & set(change.moved)
    assert (change.outcome is Outcome.PREEMPTS) == bool(change.preemptions)
    assert {preemption.preemptor for preemption in change.preemptions} <= {waiting.key}


def waiting_in(world: History, data: st.DataObject) -> tuple[Engine, WorkloadState]:
    """A state at rest, and a workload that waits in it."""
    engine = engine_of(world)
    assume(settle(engine, now=START, max_cycles=1_000).ending is Ending.SETTLED)
    pending = [workload for workload in engine.workloads() if workload.stage is Stage.PENDING]
    assume(pending)
    return engine, data.draw(st.sampled_from(pending))


# Most of the time goes into what is tried. Worlds with fewer objects wait less often, and show no more a second.
@times(1)
@given(worlds(Limits()), st.data())
def test_each_change_admits_and_one_step_less_does_not(world: History, data: st.DataObject) -> None:
    engine, waiting = waiting_in(world, data)
    before = engine.save()
    question = hashlib.sha256(before + waiting.key.encode()).digest()
    if question in ANSWERED:
        return
    found = unblock(engine, waiting.name, namespace=waiting.namespace, now=START, was_at_rest=True)
    assert engine.save() == before
    assert [change.rank for change in found.changes] == sorted(change.rank for change in found.changes)
    for change in found.changes:
        check(engine, waiting, change)
    ANSWERED.add(question)


@settings(max_examples=15)
@given(worlds(Limits()), st.data())
def test_the_same_question_has_the_same_answer(world: History, data: st.DataObject) -> None:
    engine, waiting = waiting_in(world, data)
    first, second = (
        unblock(engine, waiting.name, namespace=waiting.namespace, now=START, was_at_rest=True) for _ in range(2)
    )
    assert first == second
