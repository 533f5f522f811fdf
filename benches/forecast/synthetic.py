"""Generate a log like those of real machines, for where there are none: the same text every time.

Users come in sessions, by day and on weekdays, and submit again some time after; some submit many equal jobs at once.
Run times are heavy-tailed around those of a few programs for each user, who requests a round number of hours for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from random import Random

from kueuecore.times import SECOND_NS, format_time, nanoseconds

__all__ = ["PROCESSORS", "synthetic_log"]

PROCESSORS = 64
_START = "2001-01-01T00:00:00Z"
_LOAD = 0.75
_DAY = 86400
_N_USERS = 24
_ROUNDS = 6
_LIMITS = (600, 1800, 3600, 7200, 4 * 3600, 8 * 3600, 12 * 3600, 24 * 3600, 48 * 3600)
# By hour of the day, and by day of the week from Monday.
_HOURS = (1, 1, 1, 1, 1, 1, 1, 2, 5, 8, 9, 9, 6, 8, 9, 9, 8, 6, 4, 3, 3, 2, 2, 1)
_DAYS = (9, 10, 10, 10, 8, 3, 2)


@dataclass(frozen=True, slots=True)
class _Program:
    number: int
    median: float
    spread: float
    pods: int
    patience: float


@dataclass(frozen=True, slots=True)
class _Job:
    at: int
    seconds: float
    user: int
    program: _Program


def synthetic_log(*, days: int = 84, n_jobs: int = 4_000, seed: int = 1) -> str:
    """Return the text of a log in the Standard Workload Format.

    Args:
        days: How many days jobs are submitted.
        n_jobs: About how many.
        seed: The seed of all random draws.
    """
    random = Random(f"synthetic/{seed}")
    jobs: list[_Job] = []
    programs = [
        [_program(random, 4 * user + place) for place in range(random.randint(1, 4))] for user in range(_N_USERS)
    ]
    while len(jobs) < n_jobs:
        # Some users do most of the work.
        user = min(int(_N_USERS * random.random() ** 2.2), _N_USERS - 1)
        jobs += _session(random, user, programs[user], _arrival(random, days))
    jobs = sorted((job for job in jobs if job.at < days * _DAY), key=lambda job: (job.at, job.user))
    begin, factor = nanoseconds(_START), _factor(jobs, days)
    lines = [
        "; Version: 2.2",
        f"; UnixStartTime: {begin // SECOND_NS}",
        f"; StartTime: {format_time(begin)}",
        f"; MaxProcs: {PROCESSORS}",
        *(_line(number, job, factor) for number, job in enumerate(jobs, 1)),
    ]
    return "\n".join(lines) + "\n"


def _factor(jobs: list[_Job], days: int) -> float:
    """Return the factor of run times at which the machine has its load: limits grow with them, in steps."""
    factor = 1.0
    for _ in range(_ROUNDS):
        work = sum(_seconds(job, factor)[0] * job.program.pods for job in jobs)
        factor *= _LOAD * PROCESSORS * days * _DAY / work
    return factor


def _seconds(job: _Job, factor: float) -> tuple[int, int]:
    """Return how long a job runs, and the time that is requested for it."""
    wanted = job.program.median * factor * job.program.patience
    limit = next((limit for limit in _LIMITS if limit >= wanted), _LIMITS[-1])
    # It is killed at its limit, as on most machines.
    return max(min(round(job.seconds * factor), limit), 1), limit


def _program(random: Random, number: int) -> _Program:
    return _Program(
        number=number,
        median=exp(random.gauss(log(3000), 1.2)),
        spread=random.uniform(0.4, 1.6),
        pods=random.choices((1, 2, 4, 8, 16, 32, 6, 12, 48), (6, 5, 7, 6, 4, 1, 1, 1, 0.3))[0],
        patience=random.uniform(1.2, 8.0),
    )


def _arrival(random: Random, days: int) -> int:
    day = random.choices(range(days), [_DAYS[day % 7] for day in range(days)])[0]
    hour = random.choices(range(24), _HOURS)[0]
    return day * _DAY + hour * 3600 + random.randrange(3600)


def _session(random: Random, user: int, programs: list[_Program], at: int) -> list[_Job]:
    """Return the jobs of a session: submissions some time apart, of one program or of another."""
    jobs: list[_Job] = []
    while True:
        program = random.choice(programs)
        n_equal = random.randint(3, 12) if random.random() < 0.12 else 1
        # Jobs that are submitted together are alike.
        center = exp(random.gauss(log(program.median), program.spread))
        for _ in range(n_equal):
            seconds = center * exp(random.gauss(0, 0.15 if n_equal > 1 else 0.0))
            jobs.append(_Job(at, min(seconds, 60 * program.median), user, program))
        if random.random() < 0.35:
            return jobs
        at += max(round(exp(random.gauss(log(900), 1.3))), 1)


def _line(number: int, job: _Job, factor: float) -> str:
    seconds, limit = _seconds(job, factor)
    status = 1 if seconds < limit else 0
    pods, user = job.program.pods, job.user + 1
    asked, owner = f"{pods} {limit} -1 {status}", f"{user} 1 {job.program.number}"
    return f"{number} {job.at} -1 {seconds} {pods} -1 -1 {asked} {owner} -1 1 -1 -1"
