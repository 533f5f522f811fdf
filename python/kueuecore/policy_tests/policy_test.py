"""Policy tests, and their results."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kueuecore.configuration import Configuration
from kueuecore.errors import KueuecoreError, ManifestError, Problem, UnknownObjectError, UnsettledError
from kueuecore.manifests import Manifest
from kueuecore.policy_tests.expectations import Expectation
from kueuecore.policy_tests.policy_cluster import PolicyCluster
from kueuecore.policy_tests.verdict import Verdict
from kueuecore.scenarios.work import Work

__all__ = ["CaseResult", "Failure", "PolicyTest", "run_policy_test"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTest:
    """One case of a file: objects, the jobs that arrive, and the expectations.

    Args:
        file: Its file.
        line: The line on which it starts.
        name: Its name.
        objects: The objects that exist from the start.
        configuration: Kueue's Configuration.
        now: The start time, in nanoseconds since 1970; None for the newest time in the objects.
        seed: The random seed.
        cycle_seconds: How long a cycle takes.
        work: The jobs that arrive.
        until_seconds: When to stop, in seconds from the start; None to run until nothing is left to happen.
        expect: The expectations.
        notes: Which release of Kueue the objects show, in sentences.
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
    until_seconds: float | None = None
    expect: tuple[Expectation, ...] = ()
    notes: tuple[str, ...] = ()

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
    cluster = PolicyCluster(
        test.objects, configuration=test.configuration, now=test.now, cycle_seconds=test.cycle_seconds
    )
    cluster.submit([arrival for work in test.work for arrival in work.arrivals(test.seed)])
    failures: list[Failure] = []
    problems: list[Problem] = []
    try:
        for at in sorted({expectation.at for expectation in test.expect if expectation.at is not None}):
            cluster.settle(at)
            _look(test, cluster, at, failures, problems)
        cluster.settle(test.until_seconds)
        _look(test, cluster, None, failures, problems)
    except UnsettledError as error:
        place = f"{test.file}:{test.line}"
        failures.append(Failure(place, Verdict(False, test.name, "settles", "it never settles", str(error))))
    except KueuecoreError as error:
        if isinstance(error, ManifestError):
            raise
        raise ManifestError.of(str(error), file=test.file, line=test.line, remedy="write `until`") from None
    if problems:
        raise ManifestError(dict.fromkeys(problems))
    return CaseResult(test, tuple(failures), cluster.warnings)


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
