"""The quota of the manager beside that of its workers, measured (docs/sources.md G4)."""

from kueuecore.scenarios import ScenarioOutcome
from tests.unit.multikueue.scenarios import run


def with_quota(cpu: int) -> ScenarioOutcome:
    """Eight jobs of three cpus, of which the workers have room for four at a time."""
    return run(cpu, {"west": 6, "east": 6}, jobs=8, every=5, runs=60)


def mean_wait(outcome: ScenarioOutcome) -> float:
    assert outcome.all.mean is not None
    return outcome.all.mean


def test_less_quota_than_the_workers_have_starves_them() -> None:
    below, equal = with_quota(6), with_quota(12)
    assert [quota.verdict for quota in below.quotas] == ["below: the workers have more than it admits"]
    assert [quota.verdict for quota in equal.quotas] == ["equal"]
    # Half of the workers' quota is never used.
    assert mean_wait(below) > 3 * mean_wait(equal)
    assert below.end - below.start > 1.5 * (equal.end - equal.start)


def test_more_quota_than_the_workers_have_gains_nothing() -> None:
    equal, above = with_quota(12), with_quota(24)
    assert [quota.verdict for quota in above.quotas] == ["above: it admits more than the workers have"]
    assert equal.end - above.end < 10**9
    # What cannot be admitted waits on every worker now, and not on the manager.
    assert above.all.copy_wait > 10 * equal.all.copy_wait
