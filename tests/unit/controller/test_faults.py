"""Whatever goes wrong around a controller, nothing is admitted twice, no quota leaks, and nobody is forgotten."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.controller import Controller, JobController, Turn
from kueuecore.controller.queue_statuses import QueueStatuses
from kueuecore.controller.versions import Version
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.errors import ObjectRef
from kueuecore.jobs import JobReport, Reconciliation
from kueuecore.jobs.job_report import NOTHING
from kueuecore.times import TimeLike
from kueuecore.trials.faults import FaultyHistory
from kueuecore.trials.job_faults import FaultyJobHistory
from kueuecore.writes import Answer, Write

# Shorter ones than `make fuzz-controller` plays.
N_STEPS = 16


@pytest.mark.parametrize("first", [0, 75])
@pytest.mark.parametrize("kind", [FaultyHistory, FaultyJobHistory])
def test_75_histories(kind: type[FaultyHistory], first: int) -> None:
    happened: Counter[str] = Counter()
    for seed in range(first, first + 75):
        try:
            happened += kind(seed, n_steps=N_STEPS).play()
        except Exception as error:
            error.add_note(f"in history {seed}")
            raise
    ways = ("late", "refused", "conflict", "unheard", "before", "after")
    assert min(happened[f"writes {way}"] for way in ways) > 15
    assert min(happened[f"statuses {way}"] for way in ("refused", "conflict", "unheard", "lost")) > 15
    assert min(happened[f"events {way}"] for way in ("shuffled", "twice", "lost", "old")) > 15
    assert min(happened[name] for name in ("reservations", "evictions", "crashes", "elections", "lists")) > 15


class KeepsWhatWasRefused(Controller):
    """A reservation whose write was refused holds its quota forever."""

    def done(self, write: Write, answer: Answer, *, now: TimeLike) -> bool:
        if answer.is_accepted:
            return super().done(write, answer, now=now)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self._objects, "take", lambda *args: None)
            patch.setattr(self._answers, "_forget", lambda *args, **named: None)
            return super().done(write, answer, now=now)


class BelievesOldNews(Controller):
    """Every event counts, however old it is."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._objects.versions.is_news = lambda *args: True  # type: ignore[method-assign]


class KeepsWhatIsNotListed(Controller):
    """What a list does not have any more stays."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        delete = self._objects.delete

        def delete_what_was_deleted(key: Any, version: Version, at: int) -> None:
            if version.uid:
                delete(key, version, at)

        self._objects.delete = delete_what_was_deleted  # type: ignore[method-assign]


class WritesOverOthers(Controller):
    """Nobody refuses a write, because it does not say for which version it was made."""

    def turn(self, now: TimeLike) -> Turn:
        turn = super().turn(now)
        for write in turn.writes:
            metadata = object_at(write.manifest, "metadata")
            del metadata["uid"], metadata["resourceVersion"]
        return turn


class TellsOnce(Controller):
    """A lost write takes the job report it carries with it."""

    def done(self, write: Write, answer: Answer, *, now: TimeLike) -> bool:
        if not answer.is_accepted and (known := self._workloads.get((write.namespace, write.name))) is not None:
            known.telling = NOTHING
        return super().done(write, answer, now=now)


class ForgetsWhatWaits(Controller):
    """What of a status is not written with the turn after it changed never is."""

    def turn(self, now: TimeLike) -> Turn:
        turn = super().turn(now)
        next(side for side in self._sides if isinstance(side, QueueStatuses))._open.clear()
        return turn


@pytest.mark.parametrize(
    "broken",
    [
        KeepsWhatWasRefused,
        BelievesOldNews,
        KeepsWhatIsNotListed,
        WritesOverOthers,
        TellsOnce,
        ForgetsWhatWaits,
    ],
)
def test_a_bug_is_noticed(broken: type[Controller]) -> None:
    for seed in range(100):
        try:
            FaultyHistory(seed, make=broken, n_steps=N_STEPS).play()
        except AssertionError:
            return
    pytest.fail("nobody has noticed")


class SwallowsRefusals(JobController):
    """What was refused counts as done."""

    def done(self, job: ObjectRef, answer: Answer, *, now: TimeLike) -> None:
        super().done(job, Answer(), now=now)


class ForgetsRefusals(JobController):
    """What was refused is not tried again."""

    def done(self, job: ObjectRef, answer: Answer, *, now: TimeLike) -> None:
        super().done(job, answer, now=now)
        if not answer.is_accepted:
            self._due.pop(job, None)


class LetsEvictedJobsRun(JobController):
    """A job counts as stopped as soon as it is evicted."""

    def _look(self, job: JsonObject, at: int, *, gone: bool) -> Reconciliation:
        found = super()._look(job, at, gone=gone)
        is_stop = any(event.reason == "Stopped" for event in found.events)
        workload = object_at(found.workload, "metadata")
        if not is_stop or not workload:
            return found
        key = text_at(workload, "namespace"), text_at(workload, "name")
        return Reconciliation(workload=found.workload, reports={key: JobReport(stopped=True)})


class MissesDeletions(JobController):
    """A deleted job leaves its Workload behind."""

    def _look(self, job: JsonObject, at: int, *, gone: bool) -> Reconciliation:
        return Reconciliation() if gone else super()._look(job, at, gone=gone)


@pytest.mark.parametrize("broken", [SwallowsRefusals, ForgetsRefusals, LetsEvictedJobsRun, MissesDeletions])
def test_a_bug_of_job_controllers_is_noticed(broken: type[JobController]) -> None:
    for seed in range(100):
        try:
            FaultyJobHistory(seed, make_jobs=broken, n_steps=N_STEPS).play()
        except AssertionError:
            return
    pytest.fail("nobody has noticed")


def test_finished_workloads_go_whatever_goes_wrong() -> None:
    text = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
objectRetentionPolicies: {workloads: {afterFinished: 5s}}
"""
    configuration = Configuration.parse(text)
    happened: Counter[str] = Counter()
    for seed in range(40):
        history = FaultyHistory(seed, make=lambda: Controller(configuration))
        happened += history.play()
        if history.leader.controller.engine.configuration == configuration:
            stored = history.cluster.list("Workload")[0]
            assert not [letter for letter in stored if "Finished" in conditions_that_hold(letter)], f"in history {seed}"
    assert happened["deletions"] > 20
