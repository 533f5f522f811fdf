"""Test a policy: queues, the jobs that arrive, and the expected outcome of each. For CI, and for pytest.

Example:
    >>> tests = read_policy_tests("examples/policy-tests/two-teams_test.yaml")
    >>> [run_policy_test(it).has_passed for it in tests[:2]]
    [True, True]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.policy_tests.checks import Admitted, Check, Finished, Flavors, Pending, Preempted, Waits
    from kueuecore.policy_tests.coverage.measuring import Measurement
    from kueuecore.policy_tests.coverage.results import Coverage, Exercise, FileCoverage, RuleCoverage, RuleOutcome
    from kueuecore.policy_tests.coverage.rule import Rule
    from kueuecore.policy_tests.expectations import (
        Amounts,
        Expectation,
        QueueExpectation,
        SettlesExpectation,
        WorkloadExpectation,
    )
    from kueuecore.policy_tests.policy_cluster import PolicyCluster
    from kueuecore.policy_tests.policy_test import (
        CaseResult,
        Failure,
        PolicyTest,
        WrittenConfiguration,
        run_policy_test,
    )
    from kueuecore.policy_tests.policy_test_reader import policy_test_files, read_policy_tests
    from kueuecore.policy_tests.schema import policy_test_schema
    from kueuecore.policy_tests.verdict import Verdict
    from kueuecore.scenarios.work import Arrival

__all__ = [
    "Admitted",
    "Amounts",
    "Arrival",
    "CaseResult",
    "Check",
    "Coverage",
    "Exercise",
    "Expectation",
    "Failure",
    "FileCoverage",
    "Finished",
    "Flavors",
    "Measurement",
    "Pending",
    "PolicyCluster",
    "PolicyTest",
    "Preempted",
    "QueueExpectation",
    "Rule",
    "RuleCoverage",
    "RuleOutcome",
    "SettlesExpectation",
    "Verdict",
    "Waits",
    "WorkloadExpectation",
    "WrittenConfiguration",
    "policy_test_files",
    "policy_test_schema",
    "read_policy_tests",
    "run_policy_test",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.policy_tests.checks": "Admitted Check Finished Flavors Pending Preempted Waits",
        "kueuecore.policy_tests.coverage.measuring": "Measurement",
        "kueuecore.policy_tests.coverage.results": "Coverage Exercise FileCoverage RuleCoverage RuleOutcome",
        "kueuecore.policy_tests.coverage.rule": "Rule",
        "kueuecore.policy_tests.expectations": (
            "Amounts Expectation QueueExpectation SettlesExpectation WorkloadExpectation"
        ),
        "kueuecore.policy_tests.policy_cluster": "PolicyCluster",
        "kueuecore.policy_tests.policy_test": "CaseResult Failure PolicyTest WrittenConfiguration run_policy_test",
        "kueuecore.policy_tests.policy_test_reader": "policy_test_files read_policy_tests",
        "kueuecore.policy_tests.schema": "policy_test_schema",
        "kueuecore.policy_tests.verdict": "Verdict",
        "kueuecore.scenarios.work": "Arrival",
    },
)
