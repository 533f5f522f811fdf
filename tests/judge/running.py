"""Plays many worlds on all cores: a worker for each, which has its own program that plays them with Kueue."""

from __future__ import annotations

import gc
import itertools
import json
import multiprocessing
import resource
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from queue import Empty
from typing import Self

from kueuecore.releases import Release
from tests.judge.oracle import OracleError
from tests.judge.playing import Found, Outcome, Player

__all__ = ["Plan", "Report", "reports"]

_BETWEEN_REPORTS = 1.0
_BETWEEN_LOOKS = 5.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What to play.

    Args:
        release: Name of the release.
        command: How to start the program that plays it.
        first: Seed of the first world.
        worlds: The most worlds to play.
        until: When no more are begun.
        jobs: How many workers.
        reference_every: The reference plays one world of this many; 0: none.
        most_found: After so many differences no more worlds are begun.
    """

    release: str
    command: tuple[str, ...]
    first: int
    worlds: int
    until: float
    jobs: int
    reference_every: int = 10
    most_found: int = 20


@dataclass(slots=True)
class Report:
    """What happened in some worlds.

    Args:
        worlds: How many they are.
        families: How many belong to each family.
        counts: What happened in them.
        crashes: How Kueue failed, with the first seed of each way.
        errors: Why worlds could not be played, with the first seed of each reason.
        found: Differences.
        oracle_seconds: CPU time of the programs that play Kueue; reported at the end.
        seconds: CPU time of this side.
        failure: Why a worker gave up.
        ended: How many workers have ended.
    """

    worlds: int = 0
    families: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    crashes: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    found: list[Found] = field(default_factory=list)
    oracle_seconds: float = 0.0
    seconds: float = 0.0
    failure: str = ""
    ended: int = 0

    def add(self, outcome: Outcome) -> None:
        """Count one world."""
        self.worlds += 1
        self.families.update(outcome.families)
        self.counts.update(outcome.counts)
        if outcome.crash:
            self.counts["crashes of Kueue"] += 1
            self.crashes.setdefault(outcome.crash, outcome.seed)
        if outcome.error:
            self.counts["not played"] += 1
            self.errors.setdefault(outcome.error, outcome.seed)
        if outcome.found is not None:
            self.found.append(outcome.found)

    def __iadd__(self, other: Report) -> Self:
        self.worlds += other.worlds
        self.families += other.families
        self.counts += other.counts
        self.crashes = {**other.crashes, **self.crashes}
        self.errors = {**other.errors, **self.errors}
        self.found += other.found
        self.oracle_seconds += other.oracle_seconds
        self.seconds += other.seconds
        self.failure = self.failure or other.failure
        self.ended += other.ended
        return self


def reports(plan: Plan) -> Iterator[Report]:
    """Play a plan, and yield what happens about every second, from whichever worker.

    Ctrl-C lets the workers end with the worlds that they are at; a second one kills them.
    """
    context = multiprocessing.get_context("spawn")
    queue: Queue[Report] = context.Queue()
    enough = context.Event()
    workers = [context.Process(target=_work, args=(plan, number, queue, enough)) for number in range(plan.jobs)]
    for worker in workers:
        worker.start()
    n_ended = n_found = 0
    try:
        while n_ended < plan.jobs:
            try:
                report = queue.get(timeout=_BETWEEN_LOOKS)
            except Empty:
                if not any(worker.is_alive() for worker in workers) and queue.empty():
                    yield Report(failure=f"{plan.jobs - n_ended} workers ended without a word")
                    return
                continue
            except KeyboardInterrupt:
                if enough.is_set():
                    raise
                enough.set()
                continue
            n_ended += report.ended
            n_found += len(report.found)
            if n_found >= plan.most_found or report.failure:
                enough.set()
            yield report
    finally:
        enough.set()
        for worker in workers:
            if n_ended < plan.jobs:
                worker.terminate()
            worker.join()


def _work(plan: Plan, number: int, queue: Queue[Report], enough: Event) -> None:
    """Play every so many-th world of a plan."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Worlds are freed by reference counts; collecting cycles takes time and finds little.
    gc.disable()
    report, at = Report(), time.time()
    try:
        seeds = range(plan.first + number, plan.first + plan.worlds, plan.jobs)
        with Player(Release.named(plan.release), plan.command, reference_every=plan.reference_every) as player:
            open_seeds = itertools.takewhile(lambda _: not enough.is_set(), seeds)
            for outcome in player.play(open_seeds, until=plan.until):
                report.add(outcome)
                if time.time() > at + _BETWEEN_REPORTS:
                    queue.put(report)
                    report, at = Report(), time.time()
                    gc.collect()
    except OracleError as error:
        report.failure = str(error)
    except Exception:
        # Else the others would go on, and nobody would hear of it.
        report.failure = traceback.format_exc()
    # The programs have ended by now.
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    report.oracle_seconds = used.ru_utime + used.ru_stime
    report.seconds = time.process_time()
    report.ended = 1
    queue.put(report)


def line_of(found: Found) -> str:
    """Return a difference as a line of a file in tests/regressions/kueue."""
    return json.dumps({"why": "", **found.case}, separators=(",", ":"), ensure_ascii=False)
