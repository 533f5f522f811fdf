"""Coverage of examples/policy-tests, counted by hand: which rules some decision depends on, and why."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kueuecore.policy_tests import policy_test_files, read_policy_tests
from kueuecore.policy_tests.coverage import Measurement
from kueuecore.policy_tests.policy_test import started
from tests.policy_test_files import EXAMPLES

QUOTA = "spec.resourceGroups[0].flavors[0]"
NOMINAL = f"{QUOTA}.resources[0].nominalQuota"
TAKING_BACK, TOPOLOGY = "taking-back/cluster.yaml", "topology/cluster.yaml"
TWO_TEAMS, PRIORITIES = "two-teams/queues.yaml", "two-teams/priorities.yaml"

# File, line, object, field, whether a test exercises it, and why.
BY_HAND = [
    # team-b runs 4 CPUs on its own one and three of team-a's. release-build of team-a asks for two of them.
    (TAKING_BACK, 12, "team-a", "spec.cohortName", True, "alone, team-a has 3 CPUs free and preempts nobody"),
    (TAKING_BACK, 13, "team-a", "spec.namespaceSelector", True, "release-build may not enter the queue"),
    (TAKING_BACK, 15, "team-a", "spec.preemption.reclaimWithinCohort", True, "Never: release-build waits"),
    (TAKING_BACK, 19, "team-a", QUOTA, True, "release-build has no quota for cpu"),
    (TAKING_BACK, 22, "team-a", NOMINAL, True, "0: release-build would have to borrow, and waits"),
    (TAKING_BACK, 29, "team-b", "spec.cohortName", True, "apart, team-a has 3 CPUs free and preempts nobody"),
    (TAKING_BACK, 30, "team-b", "spec.namespaceSelector", True, "sweep and report wait for another reason"),
    (TAKING_BACK, 32, "team-b", "spec.preemption.reclaimWithinCohort", False, "who waits in team-b would borrow"),
    (TAKING_BACK, 33, "team-b", "spec.preemption.withinClusterQueue", False, "all that runs has a higher priority"),
    (TAKING_BACK, 37, "team-b", QUOTA, True, "with 3 CPUs in all, training has to go, too"),
    (TAKING_BACK, 40, "team-b", NOMINAL, True, "0: with 3 CPUs in all, training has to go, too"),
    # Everything is in one queue with 32 GPUs.
    (TOPOLOGY, 26, "training", "spec.namespaceSelector", True, "no job may enter the queue"),
    (TOPOLOGY, 30, "training", QUOTA, True, "no job has quota for GPUs"),
    (TOPOLOGY, 33, "training", NOMINAL, True, "0: no job gets quota"),
    (PRIORITIES, 5, "urgent", "value", False, "no job of the tests is of this class"),
    # team-b, with 200m, runs jobs of 500m. release of team-a asks for two CPUs.
    (TWO_TEAMS, 12, "team-a", "spec.cohortName", True, "nobody lends to team-b"),
    (TWO_TEAMS, 13, "team-a", "spec.namespaceSelector", True, "release waits for another reason"),
    (TWO_TEAMS, 19, "team-a", QUOTA, True, "nobody lends to team-b"),
    (TWO_TEAMS, 22, "team-a", NOMINAL, True, "with more, release is admitted"),
    (TWO_TEAMS, 23, "team-a", f"{QUOTA}.resources[0].lendingLimit", True, "0: team-b cannot borrow"),
    (TWO_TEAMS, 30, "team-b", "spec.cohortName", True, "alone, team-b has 200m"),
    (TWO_TEAMS, 31, "team-b", "spec.namespaceSelector", True, "no job of team-b may enter the queue"),
    (TWO_TEAMS, 37, "team-b", QUOTA, True, "the jobs of team-b have no quota for cpu"),
    (TWO_TEAMS, 40, "team-b", NOMINAL, True, "with more, the fourth job is admitted"),
    (TWO_TEAMS, 41, "team-b", f"{QUOTA}.resources[0].borrowingLimit", True, "without it the fourth job is admitted"),
]


def test_the_coverage_of_the_examples_is_that_counted_by_hand() -> None:
    tests = [test for file in policy_test_files(EXAMPLES / "policy-tests") for test in read_policy_tests(file)]
    coverage = Measurement(tests).run()
    found = [
        (
            Path(it.rule.file).relative_to(EXAMPLES).as_posix(),
            it.rule.line,
            it.rule.object.name,
            it.rule.field,
            it.exercise is not None,
        )
        for it in coverage.rules
    ]
    assert found == [row[:5] for row in BY_HAND]
    assert all(it.is_measurable for it in coverage.rules)
    assert (coverage.n_exercised, coverage.n_measurable) == (22, 25)


# What some of the rows say, seen without anything that measures coverage: a test is played with other lines in a file,
# and these are the workloads that end otherwise.
TAKES_BACK, LIMIT = "a team takes its quota back", "nobody borrows beyond the limit"
RELEASE, ONE_RACK = "a running job is never preempted", "a job that requires one rack is placed in one"
RUNS, WAITS, NEVER, REFUSED = "Admitted", "WaitingForQuota", "ExceedsMaxQuota", "Misconfigured"
PARKED = ""  # behind one of the same shape

CHANGES = [
    (TAKES_BACK, TAKING_BACK, (12, 12), "cohortName: alone", {"report": RUNS, "sweep": RUNS}),
    (
        TAKES_BACK,
        TAKING_BACK,
        (15, 15),
        "reclaimWithinCohort: Never",
        {"release-build": WAITS, "report": RUNS, "sweep": RUNS},
    ),
    (TAKES_BACK, TAKING_BACK, (22, 22), "nominalQuota: 0", {"release-build": NEVER, "report": RUNS, "sweep": RUNS}),
    (TAKES_BACK, TAKING_BACK, (29, 29), "cohortName: alone", {"report": RUNS, "sweep": RUNS}),
    (TAKES_BACK, TAKING_BACK, (30, 30), "", {"report": REFUSED, "sweep": REFUSED}),
    (TAKES_BACK, TAKING_BACK, (32, 32), "reclaimWithinCohort: Never", {}),
    (TAKES_BACK, TAKING_BACK, (32, 32), "reclaimWithinCohort: LowerPriority", {}),
    (TAKES_BACK, TAKING_BACK, (33, 33), "withinClusterQueue: Never", {}),
    (TAKES_BACK, TAKING_BACK, (33, 33), "withinClusterQueue: LowerOrNewerEqualPriority", {}),
    # With three CPUs in all and four in use, three have to be freed for two: report, which goes first, may come back.
    (
        TAKES_BACK,
        TAKING_BACK,
        (34, 40),
        "",
        {"report": RUNS, "sweep": "NoMatchingFlavor", "training": "NoMatchingFlavor"},
    ),
    (TAKES_BACK, TAKING_BACK, (40, 40), "nominalQuota: 0", {"report": RUNS, "training": WAITS}),
    (
        ONE_RACK,
        TOPOLOGY,
        (33, 33),
        "nominalQuota: 0",
        {"distill": PARKED, "evaluate": NEVER, "notebooks": NEVER, "pretrain": NEVER, "tune": NEVER},
    ),
    (LIMIT, PRIORITIES, (5, 5), "value: -5", {}),
    (
        LIMIT,
        TWO_TEAMS,
        (12, 12),
        "cohortName: alone",
        {"test-1": NEVER, "test-2": PARKED, "test-3": PARKED, "test-4": PARKED},
    ),
    (
        LIMIT,
        TWO_TEAMS,
        (23, 23),
        "lendingLimit: 0",
        {"test-1": NEVER, "test-2": PARKED, "test-3": PARKED, "test-4": PARKED},
    ),
    (LIMIT, TWO_TEAMS, (23, 23), "", {}),
    (LIMIT, TWO_TEAMS, (41, 41), "", {"test-4": RUNS}),
    (LIMIT, TWO_TEAMS, (40, 40), "nominalQuota: 1000", {"test-4": RUNS}),
    (RELEASE, TWO_TEAMS, (13, 15), "", {"release": REFUSED}),
    (RELEASE, TWO_TEAMS, (22, 22), "nominalQuota: 1000", {"release": RUNS}),
]


@pytest.mark.parametrize(
    ("name", "file", "lines", "text", "otherwise"),
    CHANGES,
    ids=[f"{file}:{lines[0]} {text}" for _, file, lines, text, _ in CHANGES],
)
def test_a_rule_counted_by_hand_decides_this(
    tmp_path: Path, name: str, file: str, lines: tuple[int, int], text: str, otherwise: dict[str, str]
) -> None:
    folder = tmp_path / "examples"
    for part in {"policy-tests", *(Path(row[0]).parts[0] for row in BY_HAND)}:
        shutil.copytree(EXAMPLES / part, folder / part)
    before = ends(folder, name)
    path = folder / file
    written = path.read_text(encoding="utf-8").splitlines()
    first, last = lines
    indent = len(written[first - 1]) - len(written[first - 1].lstrip())
    written[first - 1 : last] = [" " * indent + text] if text else []
    path.write_text("\n".join(written), encoding="utf-8")
    after = ends(folder, name)
    assert {job: reason for job, reason in after.items() if before[job] != reason} == otherwise


def ends(folder: Path, name: str) -> dict[str, str]:
    """The reason of what a test's workloads do at its end, by the names of their jobs."""
    files = policy_test_files(folder / "policy-tests")
    test = next(test for file in files for test in read_policy_tests(file) if test.name == name)
    cluster = started(test)
    cluster.settle(test.until_seconds)
    return {cluster.name_of(state.key).rpartition("/")[2]: state.reason for state in cluster.all_states()}
