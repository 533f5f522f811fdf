"""Policy tests, and their results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from kueuecore.configuration import Configuration
from kueuecore.errors import KueuecoreError, ManifestError, Problem, UnknownObjectError, UnsettledError
from kueuecore.manifests import Manifest
from kueuecore.policy_tests.expectations import Expectation, SettlesExpectation
from kueuecore.policy_tests.policy_cluster import MAX_CYCLES, PolicyCluster
from kueuecore.policy_tests.verdict import Verdict
from kueuecore.scenarios.cluster_part import ClusterPart
from kueuecore.scenarios.scenario import Scenario
from kueuecore.scenarios.timed_changes import TimedChange
from kueuecore.scenarios.work import Work
from kueuecore.simulation import Happening

__all__ = ["CaseResult", "Failure", "PolicyTest", "WrittenConfiguration", "looks", "run_policy_test", "started"]


@dataclass(frozen=True, slots=True)
class WrittenConfiguration:
    """Where the Configuration of a policy test is written; nowhere if it is Kueue's own.

    Args:
        file: The file that the test names; None if it names none.
        fields: Its fields in the test itself, at their position; None if they are not there.
        gates: Documents with the `featureGates` of the test, at their position; the last one that has a gate counts.
    """

    file: Path | None = None
    fields: Manifest | None = None
    gates: tuple[Manifest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTest:
    """One case of a file: objects, the jobs that arrive, and the expectations.

    Args:
        file: Its file.
        line: The line on which it starts.
        name: Its name.
        objects: The objects that exist from the start.
        configuration: Kueue's Configuration, with its experiments.
        now: The start time, in nanoseconds since 1970; None for the newest time in the objects.
        seed: The random seed.
        cycle_seconds: How long a cycle takes.
        work: The jobs that arrive.
        timetable: Changes of the objects.
        until_seconds: When to stop, in seconds from the start; None to run until nothing is left to happen.
        expect: The expectations.
        notes: Which release of Kueue the objects show, in sentences.
        written: The Configuration as it is written.
    """

    file: str
    line: int
    name: str
    objects: tuple[Manifest, ...] = ()
    configuration: Configuration = field(default_factory=Configuration)
    now: int | None = None
    seed: int = 0
    cycle_seconds: float = 1.0
    work: tuple[Work, ...] = ()
    timetable: tuple[TimedChange, ...] = ()
    until_seconds: float | None = None
    expect: tuple[Expectation, ...] = ()
    notes: tuple[str, ...] = ()
    written: WrittenConfiguration = field(default_factory=WrittenConfiguration)

    @property
    def id(self) -> str:
        """File and name: `queues_test.yaml::who borrows`."""
        return f"{self.file}::{self.name}"


@dataclass(frozen=True, slots=True)
class Failure:
    """An expectation that is not met.

    Args:
        place: Its location, `file:line`.
        verdict: The verdict, with the actual state.
    """

    place: str
    verdict: Verdict

    def __str__(self) -> str:
        return f"{self.place}: {self.verdict}"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a policy test.

    Args:
        test: The test.
        failures: The expectations that are not met; none if it has passed.
        warnings: Warnings about unknown fields, and the like.
    """

    test: PolicyTest
    failures: tuple[Failure, ...]
    warnings: tuple[str, ...] = ()

    @property
    def has_passed(self) -> bool:
        """Whether all expectations are met."""
        return not self.failures


def run_policy_test(test: PolicyTest) -> CaseResult:
    """Run a policy test. The same test always has the same result.

    Raises:
        ManifestError: Everything that is wrong with its objects, its jobs, or the names in its expectations.
    """
    cluster = started(test)
    failures: list[Failure] = []
    problems: list[Problem] = []
    try:
        for at in looks(test, cluster):
            _look(test, cluster, at, failures, problems)
    except UnsettledError as error:
        asked = next((it for it in test.expect if isinstance(it, SettlesExpectation)), None)
        place = f"{test.file}:{test.line}" if asked is None else asked.place
        failures.append(Failure(place, (asked or SettlesExpectation()).verdict(error)))
    except KueuecoreError as error:
        if isinstance(error, ManifestError):
            raise
        raise ManifestError.of(str(error), file=test.file, line=test.line, remedy="write `until`") from None
    if problems:
        raise ManifestError(dict.fromkeys(problems))
    return CaseResult(test, tuple(failures), cluster.warnings)


def started(test: PolicyTest, *, max_cycles: int = MAX_CYCLES) -> PolicyCluster:
    """Return the cluster of a test, with its jobs on their way.

    Args:
        test: The test.
        max_cycles: The most cycles until preemptions count as endless.

    Raises:
        ManifestError: Everything that is wrong with its objects and jobs, and with what changes them.
    """
    cluster = PolicyCluster(
        test.objects,
        configuration=test.configuration,
        now=test.now,
        cycle_seconds=test.cycle_seconds,
        max_cycles=max_cycles,
    )
    if test.timetable:
        # At the same time, objects change before jobs arrive.
        cluster.change(_changes(test, cluster.start))
    cluster.submit([arrival for work in test.work for arrival in work.arrivals(test.seed)])
    return cluster


def _changes(test: PolicyTest, start: int) -> Iterator[Happening]:
    """What the timetable of a test does to its objects."""
    from kueuecore.scenarios.timetable import timetable_happenings  # few tests have one

    scenario = Scenario(
        cluster=ClusterPart(objects=test.objects, configuration=test.configuration),
        work=test.work,
        seed=test.seed,
        start=start,
        until_seconds=test.until_seconds,
        timetable=test.timetable,
    )
    return timetable_happenings(scenario)


def looks(test: PolicyTest, cluster: PolicyCluster) -> Iterator[float | None]:
    """Let time pass in a cluster, and yield at each time that the test has expectations for; None at the end.

    Raises:
        UnsettledError: Workloads preempt each other forever.
        OutOfTimeError: It goes on beyond April 2262.
    """
    for at in sorted({expectation.at for expectation in test.expect if expectation.at is not None}):
        cluster.settle(at)
        yield at
    cluster.settle(test.until_seconds)
    yield None


def _look(
    test: PolicyTest, cluster: PolicyCluster, at: float | None, failures: list[Failure], problems: list[Problem]
) -> None:
    """Check the expectations for this time."""
    for expectation in test.expect:
        if expectation.at != at:
            continue
        file, _, line = expectation.place.rpartition(":")
        try:
            failures += (
                Failure(expectation.place, verdict) for verdict in expectation.verdicts(cluster) if not verdict
            )
        except UnknownObjectError as error:
            unknown = Problem(f"there is no {error.object}", field="expect", remedy=error.remedy)
            problems.append(replace(unknown, file=file, line=int(line)))
