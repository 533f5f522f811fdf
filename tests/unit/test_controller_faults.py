"""Whatever goes wrong around a controller, nothing is admitted twice, no quota leaks, and nobody is forgotten."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pytest

from kueuecore.controller import Controller, WorkloadWrite
from kueuecore.controller.job_report import NOTHING
from kueuecore.controller.versions import Version
from kueuecore.trials.faults import FaultyHistory

# Shorter ones than `make fuzz-controller` plays.
N_STEPS = 16


def test_200_histories() -> None:
    happened: Counter[str] = Counter()
    for seed in range(200):
        try:
            happened += FaultyHistory(seed, n_steps=N_STEPS).play()
        except Exception as error:
            error.add_note(f"in history {seed}")
            raise
    ways = ("late", "refused", "conflict", "unheard", "before", "after")
    assert min(happened[f"writes {way}"] for way in ways) > 50
    assert min(happened[f"events {way}"] for way in ("shuffled", "twice", "lost", "old")) > 50
    assert min(happened[name] for name in ("reservations", "evictions", "crashes", "elections", "lists")) > 50


class KeepsWhatWasRefused(Controller):
    """A reservation whose write was refused holds its quota for ever."""

    is_refusing = False

    def refuse(self, *args: Any, **named: Any) -> bool:
        self.is_refusing = True
        try:
            return super().refuse(*args, **named)
        finally:
            self.is_refusing = False

    def _forget(self, *args: Any, **named: Any) -> None:
        pass

    def _take(self, key: Any, version: Version, manifest: Any, at: int) -> None:
        if not self.is_refusing:
            super()._take(key, version, manifest, at)


class BelievesOldNews(Controller):
    """Every event counts, however old it is."""

    def _is_news(self, *args: Any) -> bool:
        return True


class KeepsWhatIsNotListed(Controller):
    """What a list does not have any more stays."""

    def _delete(self, key: Any, version: Version, at: int) -> None:
        if version.uid:
            super()._delete(key, version, at)


class WritesOverOthers(Controller):
    """Nobody refuses a write, because it does not say for which version it was made."""

    def _write(self, *args: Any) -> WorkloadWrite | None:
        write = super()._write(*args)
        if write is None:
            return None
        return dataclasses.replace(write, patch={name: it for name, it in write.patch.items() if name != "metadata"})


class TellsOnce(Controller):
    """What a job has done is lost with the write that tells it."""

    def refuse(self, write: WorkloadWrite, *args: Any, **named: Any) -> bool:
        if (known := self._workloads.get((write.namespace, write.name))) is not None:
            known.telling = NOTHING
        return super().refuse(write, *args, **named)


@pytest.mark.parametrize(
    "broken", [KeepsWhatWasRefused, BelievesOldNews, KeepsWhatIsNotListed, WritesOverOthers, TellsOnce]
)
def test_a_bug_is_noticed(broken: type[Controller]) -> None:
    for seed in range(100):
        try:
            FaultyHistory(seed, make=broken, n_steps=N_STEPS).play()
        except AssertionError:
            return
    pytest.fail("nobody has noticed")
